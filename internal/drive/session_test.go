package drive_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// talker is a server over pipes that takes down the conversations it is sent, and answers each after a time with a text of its
// own. It refuses those that say so.
type talker struct {
	after  time.Duration
	refuse func(messages int, nth int) bool // given how many messages came, and how many requests before

	mu    sync.Mutex
	heard [][]string // what each request says, role and text
	said  int
}

func (s *talker) dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		in := bufio.NewReader(server)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			text, ok := s.hear(body)
			<-time.After(s.after)
			if !ok {
				fmt.Fprint(server, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			quoted, _ := json.Marshal(text)
			io.WriteString(server, streamHead+chunked(fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", quoted))+
				chunked(sseFinish+"data: [DONE]\n\n")+"0\r\n\r\n")
		}
	}()
	return client, nil
}

func (s *talker) hear(body []byte) (reply string, ok bool) {
	var b struct {
		Messages []struct{ Role, Content string } `json:"messages"`
	}
	_ = json.Unmarshal(body, &b)
	var heard []string
	for _, m := range b.Messages {
		heard = append(heard, m.Role+" "+m.Content)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, heard)
	s.said++
	return fmt.Sprintf("reply %d\n\"é\"", s.said), s.refuse == nil || !s.refuse(len(heard), s.said-1)
}

// conversing is a load of sessions.
func conversing(load plan.Load, c plan.Conversation) plan.Spec {
	s := spec(load)
	s.Workload.Conversation = c
	if c.History == "" {
		s.Workload.Conversation.History = plan.HistoryRecorded
	}
	return s
}

// bySession returns what was recorded by session, in the order of turns, and holds it to the plan: every turn of every session
// once, with the index it has there.
func bySession(t *testing.T, s plan.Spec, all []record.Exchange) map[int64][]record.Exchange {
	t.Helper()
	got := map[int64][]record.Exchange{}
	seen := map[int64]bool{}
	for _, x := range all {
		if x.Index != x.Session+int64(x.Turn) || seen[x.Index] {
			t.Errorf("request %d is turn %d of session %d, recorded before: %v", x.Index, x.Turn, x.Session, seen[x.Index])
		}
		seen[x.Index] = true
		got[x.Session] = append(got[x.Session], x)
	}
	for _, xs := range got {
		slices.SortFunc(xs, func(a, b record.Exchange) int { return a.Turn - b.Turn })
	}
	p, err := plan.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := p.Walk()
	for r := (plan.Request{}); w.Next(&r); {
		if p.Stages[r.Stage].Closed && p.Stages[r.Stage].Duration > 0 {
			w.EndStage()
			continue
		}
		if n := len(got[r.Session]); n != r.Turns {
			t.Errorf("session %d: %d turns recorded, want %d", r.Session, n, r.Turns)
		}
	}
	return got
}

// pauses returns the planned time after each request until the next turn, by index.
func pauses(t *testing.T, s plan.Spec, sessions map[int64][]record.Exchange) map[int64]time.Duration {
	t.Helper()
	p, err := plan.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := p.Walk()
	at := map[int64]time.Duration{}
	for session, xs := range sessions {
		for _, x := range xs {
			var r plan.Request
			if w.Sketch(&r, plan.Origin{Stage: x.Stage, Session: session}, x.Turn); x.Turn > 0 {
				at[x.Index-1] = r.Pause
			}
		}
	}
	return at
}

func TestLaterTurnsFallDueAThinkTimeAfterTheReply(t *testing.T) {
	for _, loops := range []int{1, 2, 3} {
		for _, think := range []string{plan.ThinkConstant, plan.ThinkExponential} {
			synctest.Test(t, func(t *testing.T) {
				server := &talker{after: 30 * time.Millisecond}
				cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: loops, Dial: server.dial}
				s := conversing(plan.Load{Rate: 50, Requests: 40}, plan.Conversation{Turns: "uniform(1,5)", ThinkTime: 400 * time.Millisecond, Think: think})
				all, m := carry(t, t.Context(), cfg, s)
				sessions := bySession(t, s, all)
				pause := pauses(t, s, sessions)
				last := time.Duration(0)
				for i, session := range slices.Sorted(maps.Keys(sessions)) {
					due := time.Duration(i) * 20 * time.Millisecond
					for _, x := range sessions[session] {
						sent, _ := x.FirstWrite.Get()
						end, _ := x.End.Get()
						late := sent - due // while it is being made, which a turn that follows at once cannot wait out
						if x.Outcome != record.Completed || x.Due != due || late < 0 || late > 300*time.Microsecond || late > 0 && pause[x.Index-1] > 200*time.Microsecond {
							t.Errorf("%s, %d loops, turn %d of session %d: %v, due %v, sent %v, want both %v", think, loops, x.Turn, session, x.Outcome, x.Due, sent, due)
						}
						if late > 0 && x.Delay != record.DelayNotPrepared && late > 100*time.Microsecond {
							t.Errorf("turn %d of session %d: sent %v late for %v, want not prepared", x.Turn, session, late, x.Delay)
						}
						if end != sent+30*time.Millisecond {
							t.Errorf("turn %d of session %d ended %v after it was sent", x.Turn, session, end-sent)
						}
						due = end + pause[x.Index]
						last = max(last, x.Due)
					}
				}
				if got := m.Stages[0].EndMs; got != float64(last)/1e6 {
					t.Errorf("%s, %d loops: the stage ends at %v ms, want %v, when the last turn falls due", think, loops, got, last)
				}
			})
		}
	}
}

func TestAClosedLoopHoldsSessionsInProgress(t *testing.T) {
	for _, loops := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			server := &talker{after: 20 * time.Millisecond}
			cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: loops, Dial: server.dial}
			s := conversing(plan.Load{Concurrency: 4, Requests: 30}, plan.Conversation{Turns: "uniform(1,4)", ThinkTime: 100 * time.Millisecond, Think: plan.ThinkConstant})
			all, _ := carry(t, t.Context(), cfg, s)
			sessions := bySession(t, s, all)
			open := map[time.Duration]int{0: 4} // moments at which a session should begin
			for _, xs := range sessions {
				end, _ := xs[len(xs)-1].End.Get()
				open[end]++
			}
			for session, xs := range sessions {
				if open[xs[0].Due]--; open[xs[0].Due] < 0 {
					t.Errorf("%d loops, session %d begins at %v, when no other has ended", loops, session, xs[0].Due)
				}
				for i := 1; i < len(xs); i++ {
					before, _ := xs[i-1].End.Get()
					sent, _ := xs[i].FirstWrite.Get()
					if want := before + 100*time.Millisecond; xs[i].Due != want || sent != want {
						t.Errorf("%d loops, turn %d of session %d: due %v, sent %v, want both %v", loops, i, session, xs[i].Due, sent, want)
					}
				}
			}
			if len(sessions) != 30 {
				t.Errorf("%d sessions, want 30", len(sessions))
			}
		})
	}
}

func TestAClosedLoopEndsSessionsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &talker{after: 20 * time.Millisecond}
		cfg := virtual(drive.Config{Dial: server.dial})
		s := conversing(plan.Load{Stages: []plan.LoadStage{{Concurrency: 2, Duration: time.Second}, {Rate: 10, Requests: 3}}},
			plan.Conversation{Turns: "4", ThinkTime: 100 * time.Millisecond, Think: plan.ThinkConstant})
		all, m := carry(t, t.Context(), cfg, s)
		// A session takes 4·20 + 3·100 ms: two in each place, and of the third the turns at 760, 880 and, not any more, 1000 ms.
		if m.Stages[0].Planned != 20 || m.Stages[0].EndMs != 1000 || m.Stages[1].Planned != 12 || len(all) != 32 {
			t.Errorf("got %d requests in %v ms and %d, want 20 in 1000 and 12", m.Stages[0].Planned, m.Stages[0].EndMs, m.Stages[1].Planned)
		}
		if n := outcomes(all); n["completed"] != 32 {
			t.Errorf("outcomes %v, want 32 completed", n)
		}
		bySession(t, s, all)
	})
}

func TestAFailedTurnEndsItsSession(t *testing.T) {
	for name, load := range map[string]plan.Load{
		"open": {Rate: 10, Requests: 6}, "closed": {Concurrency: 2, Requests: 6}, "closed by time": {Concurrency: 2, Requests: 6, Duration: time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &talker{after: 20 * time.Millisecond, refuse: func(messages, _ int) bool { return messages == 3 }}
			cfg := virtual(drive.Config{Dial: server.dial})
			s := conversing(load, plan.Conversation{Turns: "5", ThinkTime: time.Second, Think: plan.ThinkConstant})
			all, m := carry(t, t.Context(), cfg, s)
			for session, xs := range bySession(t, s, all) {
				var causes []string
				for _, x := range xs {
					causes = append(causes, x.Cause.String())
				}
				if got, want := strings.Join(causes, " "), " http_status session_ended session_ended session_ended"; got != want {
					t.Errorf("%s, session %d: got causes %q, want %q", name, session, got, want)
				}
				failed, _ := xs[1].End.Get()
				if late := xs[4].Due - failed; late < 0 || late > time.Millisecond || xs[4].PlannedIn != 8+4*12 {
					t.Errorf("%s, session %d: lost turns count from %v and ask for %d tokens, want %v and 56", name, session, xs[4].Due, xs[4].PlannedIn, failed)
				}
			}
			if n := outcomes(all); n["completed"] != 6 || n["http_error"] != 6 || n["not_sent"] != 18 || m.Stages[0].Planned != 30 {
				t.Errorf("%s: outcomes %v of %d planned, want 6 completed, 6 http_error, 18 not_sent of 30", name, n, m.Stages[0].Planned)
			}
		})
	}
}

func TestLostTurnsKeepNoStageOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &talker{after: 20 * time.Millisecond, refuse: func(messages, nth int) bool { return nth < 6 }}
		cfg := virtual(drive.Config{Dial: server.dial})
		s := conversing(plan.Load{Stages: []plan.LoadStage{{Rate: 100, Requests: 6}, {Concurrency: 1, Requests: 1}}},
			plan.Conversation{Turns: "3", ThinkTime: time.Second, Think: plan.ThinkConstant})
		all, m := carry(t, t.Context(), cfg, s)
		if n := outcomes(all); n["http_error"] != 6 || n["not_sent"] != 12 || n["completed"] != 3 {
			t.Errorf("outcomes %v, want 6 http_error, 12 not_sent and, in the next stage, 3 completed", n)
		}
		if end := m.Stages[0].EndMs; end < 70 || end > 71 {
			t.Errorf("the first stage ends at %v ms, want 70, when its last session fails", end)
		}
	})
}

// What fails behind the end of a stage that ends by its time takes no turns with it: those were not planned any more.
func TestAFailureBehindTheEndLosesNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &talker{after: 20 * time.Millisecond, refuse: func(messages, nth int) bool { return messages == 3 }}
		cfg := virtual(drive.Config{Dial: server.dial})
		s := conversing(plan.Load{Concurrency: 1, Duration: 50 * time.Millisecond}, plan.Conversation{Turns: "5", ThinkTime: 15 * time.Millisecond, Think: plan.ThinkConstant})
		all, m := carry(t, t.Context(), cfg, s)
		if n := outcomes(all); n["completed"] != 1 || n["http_error"] != 1 || len(all) != 2 || m.Stages[0].Planned != 2 {
			t.Errorf("outcomes %v of %d planned, want 1 completed and 1 http_error, of 2", n, m.Stages[0].Planned)
		}
	})
}

func TestSessionsThatWereNotMadeReadyAreRecordedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := &talker{after: 20 * time.Millisecond}
		cfg := virtual(drive.Config{Dial: server.dial})
		s := conversing(plan.Load{Rate: 10, Requests: 6000}, plan.Conversation{Turns: "uniform(1,3)", ThinkTime: time.Second})
		time.AfterFunc(time.Second, cancel)
		all, _ := carry(t, ctx, cfg, s)
		if got := len(bySession(t, s, all)); got != 6000 {
			t.Errorf("%d sessions on record, want 6000", got)
		}
	})
}

func TestALiveHistoryIsWhatTheServerSaid(t *testing.T) {
	for _, history := range []string{plan.HistoryLive, plan.HistoryRecorded} {
		synctest.Test(t, func(t *testing.T) {
			server := &talker{after: 20 * time.Millisecond}
			cfg := virtual(drive.Config{Dial: server.dial})
			two := []plan.LoadStage{{Rate: 10, Requests: 6}, {Concurrency: 2, Requests: 6}} // the second uses the memory of the first again
			s := conversing(plan.Load{Stages: two}, plan.Conversation{Turns: "3", ThinkTime: 250 * time.Millisecond, History: history})
			carry(t, t.Context(), cfg, s)
			heard := map[string]int{} // by what was heard
			for n, request := range server.heard {
				heard[strings.Join(request, "|")] = n
			}
			for n, request := range server.heard {
				if len(request) == 1 {
					continue
				}
				before, ok := heard[strings.Join(request[:len(request)-2], "|")]
				if !ok || before >= n {
					t.Errorf("%s: request %d does not go on from one before: %q", history, n, request)
					continue
				}
				live := request[len(request)-2] == fmt.Sprintf("assistant reply %d\n\"é\"", before+1)
				if live != (history == plan.HistoryLive) {
					t.Errorf("%s: request %d says that the assistant said %q to request %d", history, n, request[len(request)-2], before)
				}
			}
			if len(server.heard) != 36 {
				t.Errorf("%s: %d requests heard, want 36", history, len(server.heard))
			}
		})
	}
}

func TestSessionsEndWithTheRun(t *testing.T) {
	for name, load := range map[string]plan.Load{
		"open": {Rate: 10, Requests: 50}, "closed": {Concurrency: 3, Requests: 50}, "closed by time": {Concurrency: 3, Duration: time.Minute},
	} {
		for _, history := range []string{plan.HistoryLive, plan.HistoryRecorded} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				server := &talker{after: 20 * time.Millisecond}
				cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: 2, Dial: server.dial}
				s := conversing(load, plan.Conversation{Turns: "4", ThinkTime: 500 * time.Millisecond, History: history})
				time.AfterFunc(3*time.Second, cancel)
				all, m := carry(t, ctx, cfg, s)
				sessions := bySession(t, s, all)
				n := outcomes(all)
				if name == "closed by time" {
					if n["not_sent"] != 0 || n["completed"] != len(all) || len(all) < 10 {
						t.Errorf("%s: outcomes %v, want those completed that were sent", name, n)
					}
				} else if len(sessions) != 50 || n["not_sent"]+n["completed"] != 200 || n["not_sent"] == 0 || n["completed"] == 0 {
					t.Errorf("%s: %d sessions, outcomes %v, want 200 turns of 50, completed or not sent", name, len(sessions), n)
				}
				if m.State.EndMs > 3500 {
					t.Errorf("%s: the run ended at %v ms, want soon after 3000", name, m.State.EndMs)
				}
			})
		}
	}
}

// The server counts as cached what it has said or been told before, word by word.
func TestCachedTokensGrowWithTheTurns(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		s := conversing(plan.Load{Rate: 500, Requests: 30}, plan.Conversation{Turns: "4", History: plan.HistoryLive})
		s.Workload.SystemTokens = 3
		var mu sync.Mutex
		known := map[string]int{} // words in each conversation so far, by its text
		n := 0
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			var b struct {
				Messages []struct{ Role, Content string } `json:"messages"`
			}
			_ = json.NewDecoder(r.Body).Decode(&b)
			mu.Lock()
			defer mu.Unlock()
			text, words, cached := "", 0, 0
			take := func(role, content string) {
				text += role + ":" + content + "\n"
				words += len(strings.Fields(content))
			}
			for _, m := range b.Messages {
				take(m.Role, m.Content)
				cached = max(cached, known[text])
				known[text] = words
			}
			prompt := words
			n++
			reply := fmt.Sprintf("the reply %d ends", n)
			take("assistant", reply)
			known[text] = words
			w.Header().Set("Content-Type", "text/event-stream")
			for i, word := range strings.SplitAfter(reply, " ") {
				fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}`+"\n\n", word)
				if i == 1 {
					w.(http.Flusher).Flush()
				}
			}
			fmt.Fprint(w, sseFinish)
			fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":%d}}}`+"\n\ndata: [DONE]\n\n", prompt, cached)
		})
		all, _ := carry(t, t.Context(), drive.Config{Engine: engine, Servers: at(addr), Loops: 2}, s)
		for session, xs := range bySession(t, s, all) {
			for turn, x := range xs {
				cached := 3 + 12*turn // the system message; of each turn before 8 words and the 4 of its reply
				if turn == 0 && x.Usage.Cached == 0 {
					cached = 0 // the first to say the system message
				}
				if x.Usage.Input != 3+12*turn+8 || x.Usage.Cached != cached || x.PlannedIn != x.Usage.Input {
					t.Errorf("turn %d of session %d: %d tokens counted, %d cached, %d planned; want %d, %d", turn, session, x.Usage.Input, x.Usage.Cached, x.PlannedIn, 3+12*turn+8, cached)
				}
			}
		}
	})
}

func TestRetriedTurnsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		cfg := virtual(drive.Config{Retries: 2, Drain: time.Minute})
		cfg.Dial = scripted(func(int) []step {
			if n++; n%2 == 1 {
				return refusal("503 Busy\r\nRetry-After: 2")
			}
			return answer()
		})
		s := conversing(plan.Load{Rate: 10, Requests: 1}, plan.Conversation{Turns: "3", ThinkTime: 10 * time.Second, Think: plan.ThinkConstant})
		all, _ := carry(t, t.Context(), cfg, s)
		for session, xs := range bySession(t, s, all) {
			for turn, x := range xs {
				sent, _ := x.FirstWrite.Get()
				if x.Outcome != record.Completed || sent != x.Due {
					t.Errorf("turn %d of session %d: %v, due %v, sent %v", turn, session, x.Outcome, x.Due, sent)
				}
				if turn > 0 {
					if end, _ := xs[turn-1].End.Get(); x.Due != end+10*time.Second {
						t.Errorf("turn %d of session %d: due %v, want 10s after %v", turn, session, x.Due, end)
					}
				}
			}
		}
	})
}

// Sessions of two turns take even indexes only, and still go to both servers.
func TestASessionKeepsToItsServerAndItsHistory(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		var mu sync.Mutex
		begun := map[string]int{} // the server of each session, by its first message
		talkers := []*talker{{}, {}}
		var servers []drive.Server
		for i, s := range talkers {
			servers = append(servers, at(serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				text, _ := s.hear(body)
				heard := s.heard[len(s.heard)-1]
				if first, ok := begun[heard[0]]; ok && first != i || ok == (len(heard) == 1) {
					t.Errorf("server %d is sent message %d of a session that server %d has", i, len(heard), first)
				}
				begun[heard[0]] = i
				w.Header().Set("Content-Type", "text/event-stream")
				quoted, _ := json.Marshal(text)
				fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n"+sseFinish+"data: [DONE]\n\n", quoted)
			}))...)
		}
		for _, load := range []plan.Load{{Rate: 2000, Requests: 200}, {Concurrency: 8, Requests: 200}} {
			clear(begun)
			for _, s := range talkers {
				s.heard = nil
			}
			s := conversing(load, plan.Conversation{Turns: "2", History: plan.HistoryLive})
			all, _ := carry(t, t.Context(), drive.Config{Engine: engine, Servers: slices.Clone(servers), Loops: 2}, s)
			bySession(t, s, all)
			if n := outcomes(all); n["completed"] != 400 || len(talkers[0].heard) < 120 || len(talkers[0].heard) > 280 {
				t.Errorf("outcomes %v, %d at the first server, want 400 completed, about half of them there", n, len(talkers[0].heard))
			}
			for _, s := range talkers {
				for n, heard := range s.heard {
					if len(heard) == 3 && !strings.HasPrefix(heard[1], "assistant reply ") {
						t.Errorf("request %d: %q, want the reply before", n, heard)
					}
				}
			}
		}
	})
}
