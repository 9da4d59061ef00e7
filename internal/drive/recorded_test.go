package drive_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// Two agents beside each other, and a call that waits for both; a session of one call; and one whose second call was under way before the
// first had ended, so that it counts from the session's start.
const agents = `{"id": "a", "requests": [{"t": 0, "type": "s", "in": 10, "out": 3, "api_time": 2}, {"t": 2.5, "type": "s", "in": 14, "out": 3, "api_time": 2.75}, {"t": 3, "type": "subagent", "requests": [{"t": 0, "type": "n", "in": 9, "out": 2, "api_time": 1}, {"t": 1.5, "type": "n", "in": 13, "out": 2, "api_time": 1}]}, {"t": 6, "type": "s", "in": 18, "out": 3, "api_time": 1}]}
{"id": "b", "requests": [{"t": 0, "type": "s", "in": 8, "out": 1, "api_time": 1}]}
{"id": "c", "requests": [{"t": 0, "type": "s", "in": 8, "out": 1, "api_time": 9}, {"t": 0.7, "type": "s", "in": 8, "out": 1, "api_time": 1}, {"t": 10, "type": "s", "in": 8, "out": 1, "api_time": 1}]}
`

func replayed(t *testing.T, load plan.Load) plan.Spec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents.jsonl")
	if err := os.WriteFile(path, []byte(agents), 0o600); err != nil {
		t.Fatal(err)
	}
	s := spec(load)
	s.Workload.Trace = plan.Trace{File: path, Sessions: true}
	return s
}

// dues returns when each request should fall due by the ends of those before it.
func dues(t *testing.T, s plan.Spec, all []record.Exchange) map[int64]time.Duration {
	t.Helper()
	p, err := plan.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := map[int64]record.Exchange{}
	for _, x := range all {
		at[x.Index] = x
	}
	due := map[int64]time.Duration{}
	w := p.Walk()
	var later plan.Request
	for r := (plan.Request{}); w.Next(&r); {
		due[r.Index] = at[r.Index].Due
		for turn := 1; turn < r.Turns; turn++ {
			w.Sketch(&later, r.Origin(), turn)
			from := at[r.Index].Due
			for i, before := range r.Graph.After(turn) {
				end, _ := at[r.Session+int64(before)].End.Get()
				if from = max(from, end); i == 0 {
					from = end
				}
			}
			due[later.Index] = from + later.Pause
		}
	}
	return due
}

func TestCallsWaitForThoseThatTheyCameAfter(t *testing.T) {
	for _, load := range []plan.Load{{Rate: 0.2, Requests: 9}, {Concurrency: 2, Requests: 9}, {Concurrency: 1}} {
		for _, loops := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				server := &talker{after: 900 * time.Millisecond}
				cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: loops, Dial: server.dial}
				s := replayed(t, load)
				all, _ := carry(t, t.Context(), cfg, s)
				due := dues(t, s, all)
				if len(all) != len(due) || len(all) != map[int64]int{9: 27, 0: 9}[load.Requests] {
					t.Fatalf("got %d records of %d requests", len(all), len(due))
				}
				beside := 0
				for _, x := range all {
					sent, _ := x.FirstWrite.Get()
					if x.Outcome != record.Completed || x.Due != due[x.Index] || sent < x.Due || sent > x.Due+300*time.Microsecond {
						t.Errorf("turn %d of session %d: %v, due %v, sent %v, want both %v", x.Turn, x.Session, x.Outcome, x.Due, sent, due[x.Index])
					}
					end, _ := x.End.Get()
					for _, y := range all {
						if at, _ := y.FirstWrite.Get(); y.Session == x.Session && y.Index != x.Index && sent < at && at < end {
							beside++
						}
					}
				}
				if beside == 0 {
					t.Error("no two calls of a session were in flight beside each other")
				}
			})
		}
	}
}

// A call that fails takes with it those that come after it, and none else; its session's place is free when the others have ended.
func TestAFailedCallTakesThoseBehindItAlone(t *testing.T) {
	const ok, no, lost = record.Completed, record.HTTPError, record.NotSent
	for nth, want := range map[int][]record.Outcome{
		1: {ok, no, ok, ok, lost, ok},   // the main agent's second call: the other agent goes on
		2: {ok, ok, no, lost, lost, ok}, // the other agent's first
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &talker{after: 300 * time.Millisecond, refuse: func(_, n int) bool { return n == nth }}
			cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: 1, Dial: server.dial}
			all, _ := carry(t, t.Context(), cfg, replayed(t, plan.Load{Concurrency: 1, Requests: 2}))
			got := map[int64]record.Exchange{}
			var last time.Duration
			for _, x := range all {
				got[x.Index] = x
				if end, ok := x.End.Get(); ok && x.Session == 0 {
					last = max(last, end)
				}
			}
			for index, want := range want {
				if x := got[int64(index)]; x.Outcome != want || want == lost && x.Cause != record.CauseSessionEnded {
					t.Errorf("request %d of those after failure %d: %v (%v), want %v", index, nth, x.Outcome, x.Cause, want)
				}
			}
			if len(all) != 6 || got[5].Due != last {
				t.Errorf("%d records, the next session begins at %v, want 6 and %v", len(all), got[5].Due, last)
			}
		})
	}
}

// The places of a closed stage begin one after another where a rate says so, over all shards; then they follow their replies.
func TestPlacesBeginAtTheirRate(t *testing.T) {
	for _, loops := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			server := &talker{after: 3 * time.Second}
			cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: loops, Dial: server.dial}
			all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{{Concurrency: 4, StartRate: 2, Requests: 8}}}))
			var due []time.Duration
			for _, x := range all {
				due = append(due, x.Due)
			}
			slices.Sort(due)
			var want []time.Duration
			for _, at := range []time.Duration{0, 500, 1000, 1500, 3000, 3500, 4000, 4500} {
				want = append(want, at*time.Millisecond)
			}
			if !slices.Equal(due, want) {
				t.Errorf("%d loops: due at %v, want %v", loops, due, want)
			}
		})
	}
}
