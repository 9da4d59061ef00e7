package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/plan"
)

// agents is a conversation whose calls run beside each other: a sub-agent's two while the main one goes on, and one that waits for both.
const agents = `{"id": "a", "block_size": 4, "requests": [
 {"t": 0, "type": "s", "model": "m", "in": 10, "out": 3, "hash_ids": [1, 2], "api_time": 2},
 {"t": 2.5, "type": "s", "model": "m", "in": 14, "out": 3, "hash_ids": [1, 2, 3], "api_time": 2.75, "think_time": 0.25},
 {"t": 3, "type": "subagent", "agent_id": "x", "requests": [
  {"t": 0, "type": "n", "model": "m", "in": 9, "out": 2, "hash_ids": [1, 2], "api_time": 1},
  {"t": 1.5, "type": "n", "model": "big", "in": 13, "out": 2, "hash_ids": [1, 2, 3], "api_time": 1}]},
 {"t": 47, "type": "s", "model": "m", "in": 18, "out": 3, "hash_ids": [1, 2, 3, 4], "api_time": 1, "think_time": 30}]}
{"id": "b", "block_size": 4, "requests": [{"t": 0, "type": "s", "model": "m", "in": 8, "out": 1, "hash_ids": [1, 2], "api_time": 1}]}
`

// spans are two calls, of which the second repeats what the first one said, and a third that quotes neither.
const spans = `{"trace_id": "t", "spans": [
 {"span_id": "1", "name": "chat m", "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "attributes": {"gen_ai.request.model": "m",
  "gen_ai.request.max_tokens": 77, "tenant": "red", "kind": "plan", "gen_ai.input.messages": "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"hi\"}]",
  "gen_ai.output.text": "what was said then", "gen_ai.usage.input_tokens": 5}},
 {"span_id": "2", "name": "chat m", "start_time": "2026-01-01T00:00:21Z", "end_time": "2026-01-01T00:00:22Z", "attributes": {"gen_ai.request.model": "m",
  "gen_ai.input.messages": "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"what was said then\"},{\"role\":\"user\",\"content\":\"more\"}]",
  "gen_ai.output.text": "no more", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 2}}]}
`

// recording writes a recording into a file, in one line for each conversation.
func recording(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	text = strings.ReplaceAll(text, "\n ", " ")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// resuming is a closed load of a recording's sessions, all of them unless a change says otherwise.
func resuming(path string, change func(*plan.Spec)) func(*plan.Spec) {
	return func(s *plan.Spec) {
		s.Load.Concurrency = 2
		s.Workload.Trace = plan.Trace{File: path, Sessions: true}
		if change != nil {
			change(s)
		}
	}
}

func TestRecordedSessionsKeepTheirGraph(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*plan.Trace)
		pauses []time.Duration // ms, by turn
	}{
		{"as recorded", func(*plan.Trace) {}, []time.Duration{0, 500, 1000, 500, 41500}},
		{"cut", func(w *plan.Trace) { w.MaxGap = 5 * time.Second }, []time.Duration{0, 500, 1000, 500, 5000}},
		{"think times", func(w *plan.Trace) { w.Pauses = plan.PausesThink }, []time.Duration{0, 250, 0, 0, 30000}},
		{"none", func(w *plan.Trace) { w.Pauses = plan.PausesNone }, []time.Duration{0, 0, 0, 0, 0}},
	} {
		p := frozen(t, text{}, resuming(recording(t, agents), func(s *plan.Spec) { test.change(&s.Workload.Trace) }))
		w := p.Walk()
		var r, later plan.Request
		if !w.Next(&r) || r.Turns != 5 || p.Stages[0].Sessions != 2 || p.Stages[0].Requests != 6 {
			t.Fatalf("%s: got %d turns in a stage of %d sessions and %d requests, want 5, 2 and 6", test.name, r.Turns, p.Stages[0].Sessions, p.Stages[0].Requests)
		}
		// in order of time: the first call, the main one's second, the sub-agent's two, the main one's last
		want := [][]int32{nil, {0}, {0}, {2}, {1, 3}}
		for turn := range r.Turns {
			if got := r.Graph.After(turn); !slices.Equal(got, want[turn]) {
				t.Errorf("%s: turn %d comes after %v, want %v", test.name, turn, got, want[turn])
			}
			if turn == 0 {
				continue
			}
			if !w.Follow(&later, r.Origin(), turn, nil) || later.Pause != test.pauses[turn]*time.Millisecond || later.Index != int64(turn) {
				t.Errorf("%s: turn %d: index %d, %v after what it comes after, error %v, want %v", test.name, turn, later.Index, later.Pause, w.Err(), test.pauses[turn]*time.Millisecond)
			}
		}
		if len(r.Graph.Starts()) != 0 || !slices.Equal(r.Graph.Then(0), []int32{1, 2}) || !slices.Equal(r.Graph.Then(3), []int32{4}) {
			t.Errorf("%s: behind turn 0 come %v, behind 3 %v, and %v wait for none", test.name, r.Graph.Then(0), r.Graph.Then(3), r.Graph.Starts())
		}
	}
}

// A live reply takes the place of the recorded one that a prompt repeats; the header and the class come from attributes, the length from
// max_tokens where no output was counted.
func TestLiveRepliesTakeThePlaceOfRecordedOnes(t *testing.T) {
	path := recording(t, spans)
	for _, history := range []string{plan.HistoryLive, plan.HistoryRecorded} {
		p := frozen(t, transcript{}, resuming(path, func(s *plan.Spec) {
			s.Workload.Conversation.History = history
			s.Workload.Trace.Headers, s.Workload.Trace.Class, s.Workload.Trace.Models = "tenant=X-Tenant", "kind", "m=mine"
			s.Target.SessionHeader = "X-Session"
		}))
		w := p.Walk()
		var r, later plan.Request
		w.Next(&r)
		if r.OutputTokens != 77 || r.Class != "plan" || r.Model != "mine" || string(r.Header) != "X-Tenant: red\r\nX-Session: tare-0\r\n" {
			t.Errorf("got %d tokens asked of model %q, class %q, header %q", r.OutputTokens, r.Model, r.Class, r.Header)
		}
		if !w.Follow(&later, r.Origin(), 1, [][]byte{[]byte("said now"), nil}) {
			t.Fatal(w.Err())
		}
		said := map[string]string{plan.HistoryLive: "said now", plan.HistoryRecorded: "what was said then"}[history]
		want := "system: Be brief.\nuser: hi\nassistant: " + said + "\nuser: more\n"
		if got := string(later.Body); got != want || later.Pause != 20*time.Second || string(later.Header) != "X-Session: tare-0\r\n" {
			t.Errorf("%s: got %q after %v with header %q, want %q after 20s", history, got, later.Pause, later.Header, want)
		}
		if p.Live() != (history == plan.HistoryLive) {
			t.Errorf("%s: live: %v", history, p.Live())
		}
	}
}

// A session that is used again says the same with words of its own before it, and has blocks of its own, so that it is not found in a cache.
func TestSessionsThatAreUsedAgainAreTheirOwn(t *testing.T) {
	for name, text := range map[string]string{"agents": agents, "spans": spans} {
		p := frozen(t, transcript{}, resuming(recording(t, text), func(s *plan.Spec) {
			s.Workload.Trace.MinSessions, s.Workload.Conversation.History = 4, plan.HistoryRecorded
		}))
		if n := p.Stages[0].Sessions; n != 4 {
			t.Fatalf("%s: %d sessions, want 4", name, n)
		}
		begins := map[string]bool{}
		w := p.Walk()
		var r, later plan.Request
		index := int64(0)
		for w.Next(&r) {
			begin, _, _ := strings.Cut(string(r.Body), "\n\n")
			if name == "agents" {
				begin = strings.Join(strings.Fields(string(r.Body))[:4], " ")
			}
			if begins[begin] || r.SharedTokens != 0 || r.Index != index {
				t.Errorf("%s: session %d, request %d of %d, shares %d tokens and begins %q, as another one", name, r.Number, r.Index, index, r.SharedTokens, begin)
			}
			begins[begin] = true
			index += int64(r.Turns)
			for turn := 1; turn < r.Turns; turn++ {
				if w.Follow(&later, r.Origin(), turn, nil); name == "spans" && r.Number > 0 && !strings.HasPrefix(string(later.Body), begin) {
					t.Errorf("turn %d of session %d begins otherwise than its first", turn, r.Number)
				}
			}
		}
	}
}

// What a cache finds is counted over all turns, in the order of the plan.
func TestLaterCallsAreFoundInTheCache(t *testing.T) {
	p := frozen(t, text{}, resuming(recording(t, agents), nil))
	w := p.Walk()
	for r := new(plan.Request); w.Next(r); {
	}
	// the second main call finds blocks 1 and 2, the last one 1 to 3, the sub-agent's second its own 1 and 2
	if got, want := w.Cache(), (plan.CacheFacts{Prompt: 10 + 14 + 9 + 13 + 18 + 8, Shared: 8 + 12 + 8}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if ids := w.IDs(); ids.Requests != 6 || ids.ContentID == "" {
		t.Errorf("got %+v, want the ids of 6 requests", ids)
	}
}

func TestSessionsOfOtherLengthsAreLeftOut(t *testing.T) {
	path := recording(t, agents)
	p := frozen(t, text{}, resuming(path, func(s *plan.Spec) { s.Workload.Trace.MinCalls = 2 }))
	if p.Stages[0].Sessions != 1 || p.Stages[0].Requests != 5 || !strings.Contains(strings.Join(p.Notes(), "\n"), "1 of 2 sessions left out") {
		t.Errorf("got %d sessions, notes %q", p.Stages[0].Sessions, p.Notes())
	}
	s := plan.Defaults()
	resuming(path, func(s *plan.Spec) { s.Workload.Trace.MinCalls = 9 })(&s)
	if _, err := plan.New(s, text{}); err == nil || !strings.Contains(err.Error(), "workload.trace.min_calls: leaves no session") {
		t.Errorf("got %v, want a fault of min_calls", err)
	}
}

// Sessions of a recording that knows them begin at their recorded times, each stage goes on where the one before it ended, and every
// request has an index of its own.
func TestStagesGoOnInARecording(t *testing.T) {
	path := recording(t, agents)
	p := frozen(t, text{}, resuming(path, func(s *plan.Spec) {
		s.Load.Concurrency = 0
		s.Load.Stages = []plan.LoadStage{{Rate: 10, Requests: 1}, {Concurrency: 1, Requests: 1, Duration: time.Hour}, {Concurrency: 3}}
		s.Workload.Trace.MinSessions = 5
	}))
	w := p.Walk()
	var numbers, turns []int64
	seen := map[int64]bool{}
	for r := new(plan.Request); w.Next(r); {
		numbers, turns = append(numbers, r.Number), append(turns, int64(r.Turns))
		for turn := range r.Turns {
			if index := r.Index + int64(turn); seen[index] {
				t.Errorf("index %d is taken twice", index)
			} else {
				seen[index] = true
			}
		}
	}
	if !slices.Equal(numbers, []int64{0, 1, 2, 3, 4}) || !slices.Equal(turns, []int64{5, 1, 5, 1, 5}) || p.Stages[2].Requests != 11 {
		t.Errorf("got sessions %v of %v turns, %d requests in the last stage", numbers, turns, p.Stages[2].Requests)
	}
	at := frozen(t, text{}, resuming(recording(t, spans+strings.ReplaceAll(strings.ReplaceAll(spans, `"t"`, `"u"`), "00:00:", "00:01:")), func(s *plan.Spec) {
		s.Load.Concurrency, s.Load.Arrival = 0, plan.ArrivalTrace
	}))
	w = at.Walk()
	var due []time.Duration
	for r := new(plan.Request); w.Next(r); {
		due = append(due, r.Due)
	}
	if !slices.Equal(due, []time.Duration{0, time.Minute}) || at.Stages[0].Requests != 4 || at.Stages[0].Sessions != 2 {
		t.Errorf("sessions begin at %v, %d requests, want 0s and 1m and 4", due, at.Stages[0].Requests)
	}
}
