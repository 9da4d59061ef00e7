package judge_test

import (
	"math"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/record"
)

// steady is the measured stage of a summary.
func steady(t *testing.T, m *record.Manifest, change func(*record.Exchange) *record.Exchange) *judge.Part {
	t.Helper()
	return &summarize(t, m, requests(change)).Stages[1]
}

func TestQuantilesOverAllPlannedDoNotImproveAsRequestsAreGivenUp(t *testing.T) {
	p := steady(t, twoStages(), func(x *record.Exchange) *record.Exchange {
		if x.Index%20 == 0 { // 5 %
			fail(x, record.TimedOut, "timeout")
			x.End = record.At(x.Due + 30*time.Second)
		}
		return x
	})
	q := p.AllPlanned[measure.E2EFromDue]
	if q.N != 1000 || q.Censored != 50 || q.Failed != 0 {
		t.Errorf("got %d requests, %d censored, %d failed, want 1000, 50, 0", q.N, q.Censored, q.Failed)
	}
	if at, _ := q.P99.Value.Get(); q.P99.Reach != "above" || at != 30_000 {
		t.Errorf("p99: got %s %v ms, want above 30000", q.P99.Reach, at)
	}
	if at, _ := q.P90.Value.Get(); q.P90.Reach != "reached" || at != 81 {
		t.Errorf("p90: got %s %v ms, want reached 81", q.P90.Reach, at)
	}
	number(t, "p99 of the completed", p.Metrics[measure.E2EFromDue].P99, 81)
}

func TestAFirstTokenCountsThoughTheReplyWasGivenUp(t *testing.T) {
	p := steady(t, twoStages(), func(x *record.Exchange) *record.Exchange {
		switch x.Index % 10 {
		case 0:
			x.Outcome = record.TimedOut // after its tokens
		case 1:
			x.Outcome = record.StreamError
		}
		return x
	})
	ttft, e2e := p.AllPlanned[measure.TTFT], p.AllPlanned[measure.E2E]
	if ttft.Censored != 0 || ttft.Failed != 100 || e2e.Censored != 100 || e2e.Failed != 100 {
		t.Errorf("got TTFT %d censored %d failed, E2E %d, %d, want 0, 100, 100, 100", ttft.Censored, ttft.Failed, e2e.Censored, e2e.Failed)
	}
	if ttft.P95.Reach != "unattainable" {
		t.Errorf("TTFT p95 with 10 %% failed: got %q, want unattainable", ttft.P95.Reach)
	}
}

func TestQuantilesOfTooFewAreWithheldWithTheReason(t *testing.T) {
	q := steady(t, twoStages(), nil).AllPlanned[measure.TTFT]
	if q.P999.Withheld == "" || q.P999.Needed != 3688 {
		t.Errorf("p99.9 of 1000: got withheld %q, needed %d, want a reason and 3688", q.P999.Withheld, q.P999.Needed)
	}
	low, _ := q.P99.Low.Value.Get()
	if q.P99.Withheld != "" || low != 50 {
		t.Errorf("p99 of 1000 equal ones: got withheld %q, low %v, want none, 50", q.P99.Withheld, low)
	}
	if _, ok := q.P99.HalfWidth(); !ok {
		t.Error("p99 of 1000: got no half-width, want one")
	}
}

func TestWhatWasPlannedForAfterTheStopIsNotCountedIn(t *testing.T) {
	m := twoStages()
	m.State.Cause, m.Stages[1].EndMs = "interrupted", 6000
	p := steady(t, m, func(x *record.Exchange) *record.Exchange {
		if x.Due >= 6*time.Second {
			fail(x, record.NotSent, "")
		}
		return x
	})
	if q := p.AllPlanned[measure.E2E]; q.N != 500 || q.Failed != 0 {
		t.Errorf("got %d requests, %d failed, want 500, 0", q.N, q.Failed)
	}
}

func TestCorrectionIsTheShareThatLatenessAdds(t *testing.T) {
	p := steady(t, twoStages(), func(x *record.Exchange) *record.Exchange {
		delay(x, 5*time.Millisecond, record.DelayBusy)
		return x
	})
	number(t, "correction of the TTFT", p.Correction.TTFTP50, 0.1)
}

func TestTheGaugeIsHeldAgainstTheRecords(t *testing.T) {
	stays := int64(81 * time.Millisecond)
	for _, c := range []struct {
		gauge int64
		want  float64
	}{{1000 * stays, 0}, {1250 * stays, 0.2}} {
		m := twoStages()
		m.Loops[0].InFlightNs = []int64{100 * stays, c.gauge}
		got, ok := steady(t, m, nil).Steadiness.Little.Gap.Get()
		if !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("gauge %d: got a gap of %v, %v, want %v", c.gauge, got, ok, c.want)
		}
	}
	if _, ok := steady(t, twoStages(), nil).Steadiness.Little.Gap.Get(); ok {
		t.Error("without a gauge: got a gap, want none")
	}
}

func TestAnOverloadedStageDrifts(t *testing.T) {
	p := steady(t, twoStages(), nil)
	growth, _ := p.Steadiness.Drift.Growth.Get()
	number(t, "requests in flight", p.Steadiness.Drift.Mean, 8.1) // 100/s · 81 ms, those of the warm-up included
	if math.Abs(growth) > 1 {
		t.Errorf("constant load: got a growth of %v requests, want none", growth)
	}
	p = steady(t, twoStages(), func(x *record.Exchange) *record.Exchange {
		reply(x, 50*time.Millisecond+x.Due/2) // each answered later than the one before
		return x
	})
	growth, _ = p.Steadiness.Drift.Growth.Get()
	if slope, _ := p.Steadiness.Drift.Error.Get(); growth < 100 || growth < 2.33*slope {
		t.Errorf("overload: got a growth of %v ± %v requests, want hundreds", growth, slope)
	}
}

func TestALoopIsHeldAgainstTheModels(t *testing.T) {
	m := twoStages()
	spans := func(n int64, each float64) record.Spans { // exponential
		return record.Spans{N: n, Sum: float64(n) * each, Squares: 2 * float64(n) * each * each, Cubes: 6 * float64(n) * each * each * each}
	}
	l := &m.Loops[0]
	l.Reads, l.Events = 100_000, 125_000
	l.Work = record.Work{
		Reading: spans(100_000, 50e-6), Waiting: spans(100_000, 52e-6), Gaps: spans(100_000, 100e-6), Lag: spans(100_000, 55e-6),
		Steps: record.Counts{N: 100_000, Sum: 100_000, Squares: 100_000}, Merged: 25_000,
	}
	s := summarize(t, m, requests(nil))
	if len(s.Run.Loops) != 1 {
		t.Fatalf("got %d loops, want 1", len(s.Run.Loops))
	}
	got := s.Run.Loops[0]
	number(t, "utilisation", got.Utilisation, 0.5)
	number(t, "reads per event", got.EventReads, 0.8)
	number(t, "merged share", got.MergedShare, 0.2)
	number(t, "c_a²", got.GapCV2, 1)
	if got.Fits != "p-k" || !got.Close {
		t.Errorf("M/M/1 at 0.5 waits 50 µs: got model %q, close %v, want p-k, true", got.Fits, got.Close)
	}
	l.Work.Reading, l.Work.Sending = spans(50_000, 50e-6), spans(50_000, 50e-6)
	if got := summarize(t, m, requests(nil)).Run.Loops[0]; got.Fits != "p-k" || !got.Close {
		t.Errorf("half of the services being sends: got model %q, close %v, want p-k, true", got.Fits, got.Close)
	}
	l.Work.Waiting = spans(100_000, 1)
	if got := summarize(t, m, requests(nil)).Run.Loops[0]; got.Close {
		t.Errorf("a wait of 1 s: got %q close, want no model", got.Fits)
	}
}
