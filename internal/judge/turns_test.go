package judge_test

import (
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/record"
)

// Sessions of two turns begin every 20 ms; the second turn follows 10 ms, or now and then 3 ms, later.
func TestSessionsAreShownByTurn(t *testing.T) {
	m := twoStages()
	m.Workload = &record.Workload{MeanTurns: 2}
	m.Target.Servers = []string{"http://a", "http://b"}
	l, err := judge.Begin(m)
	if err != nil {
		t.Fatal(err)
	}
	var at [2]int64 // each server's requests
	for i := range int64(1100) {
		x := request(i)
		if x.Usage.CachedKnown = true; i%2 == 1 {
			x.Session, x.Turn, x.Usage.Cached = i-1, 1, 6
			if i%6 == 1 {
				x.Due -= 7 * time.Millisecond
			}
			reply(x, 20*time.Millisecond)
		}
		if x.Stage == 1 {
			at[record.ServerOf(x.Session, 2, true)]++
		}
		if err := l.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	s := l.Finish(record.Tail{})
	if len(s.Turns) != 2 || s.Turns[0].Turns != "first" || s.Turns[1].Turns != "later" {
		t.Fatalf("turns: got %+v, want first and later ones", s.Turns)
	}
	for i, want := range []struct{ cached, ttft float64 }{{0, 50}, {6.0 / 8, 20}} {
		turns := &s.Turns[i]
		cached, ok := turns.Cached.Get()
		ttft, _ := turns.Metrics[measure.TTFT].Mean.Get()
		if turns.Outcomes.Completed != 500 || !ok || cached != want.cached || ttft != want.ttft {
			t.Errorf("%s turns: %d completed, %v cached, TTFT %v ms in the mean; want 500, %v, %v", turns.Turns, turns.Outcomes.Completed, cached, ttft, want.cached, want.ttft)
		}
	}
	steady := &s.Stages[1]
	if cv, ok := steady.Arrivals.Planned.Variation.Get(); !ok || cv > 1e-9 {
		t.Errorf("gaps between sessions: got a CV of %v, want 0, whatever later turns do", cv)
	}
	for i := range at {
		if got := s.Servers[i].Outcomes.Sum(); got != at[i] {
			t.Errorf("server %d: %d requests, want %d", i, got, at[i])
		}
	}
}

func TestRequestsWithoutSessionsAreNotShownByTurn(t *testing.T) {
	l, err := judge.Begin(twoStages())
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Finish(record.Tail{}); s.Turns != nil {
		t.Errorf("turns: got %+v, want none", s.Turns)
	}
}
