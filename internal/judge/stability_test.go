package judge_test

import (
	"testing"
	"time"

	"tare/internal/judge/stats"
	"tare/internal/record"
)

func TestStageSaysWhetherTheServerKeepsUp(t *testing.T) {
	slower := func(each time.Duration) func(*record.Exchange) *record.Exchange { // each request of the stage takes longer than the one before
		return func(x *record.Exchange) *record.Exchange {
			if x.Stage == 1 {
				reply(x, 50*time.Millisecond+time.Duration(x.Index-100)*each)
			}
			return x
		}
	}
	for name, test := range map[string]struct {
		request func(*record.Exchange) *record.Exchange
		state   stats.State
		why     string
		left    float64
	}{
		"a server that keeps up":   {nil, stats.Stable, "", 0},
		"one that does half":       {slower(10 * time.Millisecond), stats.Overloaded, "the backlog grows", 0.5},
		"one that does 100 of 102": {slower(200 * time.Microsecond), stats.Stable, "", 0.02},
		"one that never answers": {func(x *record.Exchange) *record.Exchange {
			fail(x, record.TimedOut, "")
			x.End = record.At(x.Due + time.Minute)
			return x
		}, stats.Overloaded, "the backlog grows", 1},
		"one that refuses every tenth": {func(x *record.Exchange) *record.Exchange {
			if x.Index%10 == 0 {
				fail(x, record.HTTPError, "")
				x.End = record.At(x.Due + time.Millisecond)
			}
			return x
		}, stats.Overloaded, "requests fail", 0},
		"a client that holds requests back": {func(x *record.Exchange) *record.Exchange {
			if x.Index%2 == 0 {
				fail(x, record.NotSent, "")
				x.Delay = record.DelayInFlightCap
			}
			return x
		}, stats.Overloaded, "the backlog grows", 0.5},
	} {
		s := summarize(t, twoStages(), requests(test.request))
		got := s.Stages[1].Steadiness.Stability
		if got == nil || got.State != test.state || got.Why != test.why {
			t.Errorf("%s: got %+v, want %s (%s)", name, got, test.state, test.why)
			continue
		}
		if left, _ := got.Shortfall.Get(); left < test.left-0.03 || left > test.left+0.03 {
			t.Errorf("%s: %v left standing, want about %v", name, left, test.left)
		}
	}
}

func TestStabilityIsAskedOfSteadyOpenStagesOnly(t *testing.T) {
	for name, change := range map[string]func(*record.Stage){
		"a closed loop": func(s *record.Stage) { s.Kind, s.RatePerS, s.Concurrency = "closed", 0, 4 },
		"a ramp":        func(s *record.Stage) { s.RateToPerS = 200 },
	} {
		m := twoStages()
		change(&m.Stages[1])
		if got := summarize(t, m, requests(nil)).Stages[1].Steadiness.Stability; got != nil {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

func TestStabilityLooksAtTheServersOwnQueue(t *testing.T) {
	all := requests(nil)
	var looks []record.ServerSample
	for at := 1000.0; at < 11000; at += 400 {
		looks = append(looks, record.ServerSample{AtMs: at, Source: "http://s/metrics", Kind: record.SourceServer,
			Values: &record.ServerValues{Dialect: "vllm", Values: map[record.Quantity]float64{record.Waiting: (at - 1000) / 50}}})
	}
	s, _ := examine(t, twoStages(), all, looks...)
	got := s.Stages[1].Steadiness.Stability
	growth, ok := got.Queue.Get()
	if !ok || growth < 0.15 || growth > 0.25 || got.State != stats.Unclear {
		t.Errorf("got %+v, want a queue that grows by 200 of 1,000 requests, and unclear", got)
	}
	if state, _ := got.Within(0.5); state != stats.Stable {
		t.Errorf("within a half: got %s, want stable", state)
	}
	if s.Stages[0].Steadiness != nil {
		t.Error("a warm-up is not judged")
	}
}
