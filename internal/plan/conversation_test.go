package plan_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/plan"
)

// transcript is an encoder that sends messages as lines, or the bare prompt.
type transcript struct{}

func (transcript) AppendBody(dst []byte, r *plan.Request) []byte {
	dst = append(dst, r.Prompt...)
	for _, m := range r.Messages {
		dst = fmt.Appendf(dst, "%s: %s\n", m.Role, m.Text)
	}
	return dst
}

func conversing(turns, history string) func(*plan.Spec) {
	return func(s *plan.Spec) {
		s.Load.Arrival, s.Load.Stages = "constant", []plan.LoadStage{{Rate: 10, Requests: 20}, {Concurrency: 3, Requests: 10}}
		s.Workload.InputTokens, s.Workload.OutputTokens = "8", "5"
		s.Workload.Conversation = plan.Conversation{Turns: plan.Lengths(turns), ThinkTime: time.Second, History: history}
	}
}

func TestSessionsTakeIndexesForTheirTurns(t *testing.T) {
	p := frozen(t, transcript{}, conversing("uniform(1,4)", plan.HistoryRecorded))
	w := p.Walk()
	seen, sessions, lengths := map[int64]bool{}, [2]int{}, map[int]int{}
	var r, later plan.Request
	for w.Next(&r) {
		if r.Session != r.Index || r.Turn != 0 || r.Turns < 1 || r.Turns > 4 {
			t.Errorf("got %+v, want the first of 1 to 4 turns of session %d of its stage", r, sessions[r.Stage])
		}
		sessions[r.Stage]++
		lengths[r.Turns]++
		for turn := range r.Turns {
			index := r.Index + int64(turn)
			if seen[index] {
				t.Errorf("index %d is taken twice", index)
			}
			seen[index] = true
			if turn == 0 {
				continue
			}
			w.Follow(&later, r.Origin(), turn, nil)
			if later.Index != index || later.Session != r.Session || later.Turn != turn || later.Turns != r.Turns || later.Due != 0 {
				t.Errorf("got %+v, want turn %d of session %d, of %d", later, turn, r.Session, r.Turns)
			}
			if want := 8 + turn*13; later.InputTokens != want || later.OutputTokens != 5 {
				t.Errorf("turn %d asks for %d tokens with %d, want 5 with %d", turn, later.OutputTokens, later.InputTokens, want)
			}
			if later.Pause <= 0 || r.Pause != 0 {
				t.Errorf("turn %d of %d: think time %v before it, and %v before the first, which alone has none", turn, r.Turns, later.Pause, r.Pause)
			}
		}
	}
	ids := w.IDs()
	if sessions != [2]int{20, 10} || len(lengths) != 4 || ids.Requests != int64(len(seen)) {
		t.Errorf("got %v sessions of %v turns and %d requests in the ids, want 20 and 10 of 1 to 4, and %d", sessions, lengths, ids.Requests, len(seen))
	}
}

// Each session has a system message of its own, behind the one that all have, in all of its turns and in no other session's.
func TestSessionsHaveSystemMessagesOfTheirOwn(t *testing.T) {
	p := frozen(t, transcript{}, func(s *plan.Spec) {
		conversing("2", plan.HistoryRecorded)(s)
		s.Workload.SystemTokens, s.Workload.Conversation.SystemTokens = 16, "uniform(5,20)"
		s.Target.SessionHeader = "X-Session"
	})
	w := p.Walk()
	seen := map[string]bool{}
	var r, later plan.Request
	for sessions := 0; w.Next(&r); sessions++ {
		system := strings.Fields(r.Messages[0].Text)
		if own := len(system) - 16; r.Messages[0].Role != "system" || own < 5 || own > 20 || r.InputTokens != 16+own+8 {
			t.Fatalf("session %d: %d tokens with a system message of %d, want 16 and 5 to 20 of its own", r.Session, r.InputTokens, len(system))
		}
		own := strings.Join(system[16:], " ")
		if seen[own] {
			t.Errorf("session %d has the system message of another one", r.Session)
		}
		seen[own] = true
		header, first := string(r.Header), r.Messages[0].Text
		w.Follow(&later, r.Origin(), 1, nil)
		if later.Messages[0].Text != first || later.InputTokens != r.InputTokens+5+8 {
			t.Errorf("session %d: its second turn has %d tokens and begins %q, want %d and %q", r.Session, later.InputTokens, later.Messages[0].Text, r.InputTokens+13, first)
		}
		if want := fmt.Sprintf("X-Session: tare-%d\r\n", r.Session); header != want || string(later.Header) != want {
			t.Errorf("session %d: headers %q and %q, want %q", r.Session, header, later.Header, want)
		}
	}
	if input, _, _ := p.MeanLengths(); math.Abs(input-(16+12.5+8)-0.5*13) > 1e-9 {
		t.Errorf("asked mean of prompts: got %v, want 43", input)
	}
}

func TestLaterTurnsSayWhatWasSaidBefore(t *testing.T) {
	for _, history := range []string{plan.HistoryLive, plan.HistoryRecorded} {
		p := frozen(t, transcript{}, conversing("3", history))
		w := p.Walk()
		var r plan.Request
		var before string
		replies := [][]byte{[]byte("One, said \"I\"."), []byte("Two.")}
		w.Next(&r)
		w.Next(&r)
		session, body := r.Session, string(r.Body)
		for turn := 1; turn < 3; turn++ {
			before = body
			w.Follow(&r, plan.Origin{Session: session}, turn, replies[:turn])
			body = string(r.Body)
			added, ok := strings.CutPrefix(body, before)
			lines := strings.Split(strings.TrimSpace(added), "\n")
			if !ok || len(lines) != 2 || !strings.HasPrefix(lines[0], "assistant: ") || !strings.HasPrefix(lines[1], "user: ") {
				t.Fatalf("%s, turn %d: got\n%swant two lines behind\n%s", history, turn, body, before)
			}
			said := strings.TrimPrefix(lines[0], "assistant: ")
			if live := said == string(replies[turn-1]); live != (history == plan.HistoryLive) || len(strings.Fields(said)) != 5 && !live {
				t.Errorf("%s, turn %d: the assistant said %q", history, turn, said)
			}
			if n := len(strings.Fields(lines[1])) - 1; n != 8 || strings.Contains(before, lines[1]) {
				t.Errorf("%s, turn %d: the user says %d words, %q, want 8 new ones", history, turn, n, lines[1])
			}
		}
		again := p.Walk()
		again.Follow(&r, plan.Origin{Session: session}, 2, replies)
		if string(r.Body) != body {
			t.Errorf("%s: another walk makes turn 2 of session %d\n%swant\n%s", history, session, r.Body, body)
		}
	}
}

func TestIDsCoverTurns(t *testing.T) {
	ids := func(change func(*plan.Spec)) plan.IDs {
		ids, err := frozen(t, transcript{}, change).Identify(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	one := ids(conversing("3", plan.HistoryRecorded))
	if got := ids(conversing("3", plan.HistoryRecorded)); got != one || one.Requests != 90 {
		t.Errorf("got %+v and %+v, want the same of 90 requests", got, one)
	}
	thinking := func(s *plan.Spec) {
		conversing("3", plan.HistoryRecorded)(s)
		s.Workload.Conversation.ThinkTime = 2 * time.Second
	}
	for name, other := range map[string]plan.IDs{
		"turns": ids(conversing("uniform(3,4)", plan.HistoryRecorded)), "history": ids(conversing("3", plan.HistoryLive)), "think time": ids(thinking),
	} {
		if other.PlanID == one.PlanID {
			t.Errorf("%s: the plan id is the same", name)
		}
	}
	if live := ids(conversing("3", plan.HistoryLive)); live.ContentID == one.ContentID || live.ContentID == "" {
		t.Errorf("history: content id %q is that of recorded replies, or none", live.ContentID)
	}
	if got := ids(thinking); got.ContentID != one.ContentID {
		t.Error("think time: the content id differs")
	}
}

func TestAPlanWithTurnsIsNotStored(t *testing.T) {
	_, err := frozen(t, transcript{}, conversing("2", plan.HistoryRecorded)).Store(context.Background(), io.Discard)
	if faults, ok := errors.AsType[plan.Faults](err); !ok || faults[0].Key != "workload.conversation.turns" {
		t.Errorf("got %v, want a fault of workload.conversation.turns", err)
	}
}

func TestTurnsAreCounted(t *testing.T) {
	p := frozen(t, nil, conversing("4", plan.HistoryLive))
	if a, b := p.Stages[0], p.Stages[1]; a.Requests != 80 || a.Sessions != 20 || b.First != 80 || b.Requests != 40 || b.Sessions != 10 {
		t.Errorf("got stages of %d and %d requests from %d on, want 80 and 40 from 80", a.Requests, b.Requests, b.First)
	}
	p = frozen(t, nil, conversing("uniform(2,4)", plan.HistoryLive))
	if a := p.Stages[0]; a.Requests != 0 || a.Expected != 60 || a.Sessions != 20 {
		t.Errorf("got %d requests, %v expected in %d sessions, want 60 expected in 20, their number not known", a.Requests, a.Expected, a.Sessions)
	}
}

func TestFaultyConversationsAreRefused(t *testing.T) {
	for _, turns := range []string{"0", "", "-1", "x", "1001", "uniform(2,1)", "uniform(1)", "uniform(1,2", "1,2", "2.5"} {
		s := plan.Defaults()
		s.Load.Rate, s.Load.Requests = 1, 1
		s.Workload.Conversation.Turns = plan.Lengths(turns)
		_, err := plan.New(s, nil)
		if faults, ok := errors.AsType[plan.Faults](err); !ok || len(faults) != 1 || faults[0].Key != "workload.conversation.turns" {
			t.Errorf("turns %q: got %v, want one fault", turns, err)
		}
	}
	s := plan.Defaults()
	s.Load.Rate, s.Load.Requests = 1, 1
	s.Workload.Conversation.ThinkTime = time.Second
	if _, err := plan.New(s, nil); err == nil {
		t.Error("a think time between single turns: got none, want a fault")
	}
}

func TestFollowAllocatesNothing(t *testing.T) {
	w := frozen(t, text{}, conversing("9", plan.HistoryRecorded)).Walk()
	var r plan.Request
	w.Next(&r)
	session := r.Session
	w.Follow(&r, plan.Origin{Session: session}, 8, nil)
	if got := testing.AllocsPerRun(100, func() { w.Follow(&r, plan.Origin{Session: session}, 8, nil) }); got != 0 {
		t.Errorf("allocations per turn: got %v, want 0", got)
	}
}

func TestTurnsHaveClassAndSaltOfTheirSession(t *testing.T) {
	p := frozen(t, transcript{}, func(s *plan.Spec) {
		conversing("3", plan.HistoryLive)(s)
		s.Workload.Cache = plan.CacheSalted
		s.Workload.Classes = []plan.Class{{Name: "a", Model: "lora-a", InputTokens: "3"}, {Name: "b", Model: "lora-b", InputTokens: "30"}}
	})
	w := p.Walk()
	replies := [][]byte{[]byte("x"), []byte("y")}
	seen := map[string]int{}
	var r plan.Request
	for w.Next(&r) {
		first := r
		seen[first.Class]++
		for turn := 1; turn < 3; turn++ {
			w.Follow(&r, first.Origin(), turn, replies[:turn])
			if r.Class != first.Class || r.Model != first.Model || r.CacheSalt != first.CacheSalt || r.CacheSalt == "" {
				t.Errorf("turn %d of session %d is of class %s, model %s, salt %s; its first of %s, %s, %s",
					turn, first.Session, r.Class, r.Model, r.CacheSalt, first.Class, first.Model, first.CacheSalt)
			}
		}
	}
	if seen["a"] == 0 || seen["b"] == 0 {
		t.Errorf("got sessions of classes %v, want both", seen)
	}
}

func TestACacheFindsTheTurnsBefore(t *testing.T) {
	for history, want := range map[string][]int{ // 48 + 19, and the same again
		plan.HistoryLive: {0, 67 - 67%16, 134 - 134%16}, plan.HistoryRecorded: {0, 48, 115 - 115%16},
	} {
		p := frozen(t, transcript{}, func(s *plan.Spec) {
			conversing("3", history)(s)
			s.Load.Stages = []plan.LoadStage{{Rate: 1, Requests: 1}}
			s.Workload.InputTokens, s.Workload.OutputTokens = "48", "19"
		})
		var got []int
		if _, err := p.EachKnown(t.Context(), func(r *plan.Request) error { got = append(got, r.SharedTokens); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v tokens shared, want %v", history, got, want)
		}
		w := p.Walk()
		for r := (plan.Request{}); w.Next(&r); {
		}
		if c := w.Cache(); c.Prompt != 48+115+182 || c.Shared != int64(want[1]+want[2]) {
			t.Errorf("%s: got %+v, want %d of %d", history, c, want[1]+want[2], 48+115+182)
		}
	}
}

func TestSessionsOfDrawnTurnsReserveRoom(t *testing.T) {
	p := frozen(t, nil, conversing("uniform(2,4)", plan.HistoryLive))
	if got := p.Stages[1].First; got != 4<<32 {
		t.Errorf("the second stage begins at %d, want %d: its room for sessions of up to 4 turns", got, int64(4<<32))
	}
}
