package stats_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tare/internal/judge/stats"
)

const second = int64(1e9)

func TestIncidenceOfCompletedRequestsIsTheirDistribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var in stats.Incidence
	for _, v := range sample(rng, 5000) {
		in.Completed.Add(v)
	}
	for _, ppm := range []int64{0, stats.P1, stats.P50, stats.P99, 1_000_000} {
		want, _ := in.Completed.Quantile(ppm)
		if got := in.Quantile(ppm); got != (stats.Crossing{Value: want, Reach: stats.Reached}) {
			t.Errorf("quantile %d: got %v, want %v reached", ppm, got, want)
		}
	}
}

// 90 complete after 1…90 ms, 10 do not: what happened to them decides what can be said of the quantiles above.
func TestQuantilesCountThoseWhoDidNotComplete(t *testing.T) {
	const ms = int64(1e6)
	for _, tt := range []struct {
		name             string
		failed, censored int64
		ppm              int64
		want             stats.Reach
		value            float64
	}{
		{"time-outs, p50", 0, 10, stats.P50, stats.Reached, 50e6},
		{"time-outs, p90", 0, 10, stats.P90, stats.Reached, 90e6},
		{"time-outs, p95", 0, 10, stats.P95, stats.Above, 30e9},
		{"errors, p50", 10, 0, stats.P50, stats.Reached, 50e6},
		{"errors, p90", 10, 0, stats.P90, stats.Reached, 90e6},
		{"errors, p95", 10, 0, stats.P95, stats.Unattainable, 0},
		{"both, p90", 5, 5, stats.P90, stats.Reached, 90e6},
		{"both, p95", 5, 5, stats.P95, stats.Above, 30e9},
		{"both, p99", 5, 5, stats.P99, stats.Unattainable, 0},
	} {
		var in stats.Incidence
		for v := range int64(90) {
			in.Completed.Add((v + 1) * ms)
		}
		in.Failed.AddN(3*ms, tt.failed)
		in.Censored.AddN(30*second, tt.censored)
		got := in.Quantile(tt.ppm)
		if got.Reach != tt.want || math.Abs(got.Value-tt.value) > tt.value/512 {
			t.Errorf("%s: got %v, want %v %v", tt.name, got, tt.want, tt.value)
		}
	}
}

// The figures of the survivors improve as a server fails; those over all do not.
func TestFailuresNeverImproveAQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var in stats.Incidence
	before := 0.0
	values := make([]int64, 2000)
	for i := range values {
		values[i] = int64(1e6 * rng.ExpFloat64())
	}
	slices.Sort(values)
	for lost := range 10 {
		in = stats.Incidence{}
		for i, v := range values {
			if i >= len(values)-lost*100 { // the slowest are lost first
				in.Censored.Add(second)
			} else {
				in.Completed.Add(v)
			}
		}
		got := in.Quantile(stats.P90)
		if got.Reach == stats.Above {
			got.Value = math.Inf(1)
		}
		if got.Value < before {
			t.Errorf("%d lost: got p90 %v, below %v of fewer lost", lost*100, got.Value, before)
		}
		before = got.Value
	}
	if !math.IsInf(before, 1) {
		t.Errorf("900 of 2000 lost: got p90 %v, want it above the time-out", before)
	}
}

// Aalen and Johansen by hand: of four, one completes at 1, one is given up at 2, one fails at 3, one completes at 4.
// F(1) = 1/4; the open 3/4 are 2 at risk from 3 on: half of it fails, half completes, F(4) = 1/4 + 3/8.
func TestIncidenceByHand(t *testing.T) {
	var in stats.Incidence
	in.Completed.Add(1)
	in.Censored.Add(2)
	in.Failed.Add(3)
	in.Completed.Add(4)
	for rank, want := range []stats.Crossing{{}, {1, stats.Reached}, {4, stats.Reached}, {0, stats.Unattainable}, {0, stats.Unattainable}, {}} {
		if got := in.At(int64(rank)); got != want {
			t.Errorf("rank %d: got %v, want %v", rank, got, want)
		}
	}
}

// A request that completes at the very time-out completed; one that timed out is known to take longer.
func TestCompletionComesBeforeTheTimeOutOfTheSameMoment(t *testing.T) {
	var in stats.Incidence
	in.Censored.Add(30)
	in.Completed.Add(10)
	in.Completed.Add(30)
	for rank, want := range map[int64]stats.Crossing{2: {30, stats.Reached}, 3: {30, stats.Above}} {
		if got := in.At(rank); got != want {
			t.Errorf("rank %d: got %v, want %v", rank, got, want)
		}
	}
}

func TestFailuresShiftNoRank(t *testing.T) {
	for n := range int64(1000) {
		var in stats.Incidence
		in.Failed.AddN(0, 7)
		for v := range n {
			in.Completed.Add(v + 1)
		}
		for _, rank := range []int64{1, n / 3, n / 2, n - 1, n} {
			if got := in.At(rank); rank > 0 && rank <= n && got.Value != float64(rank) {
				t.Fatalf("rank %d of %d: got %v, want the value %d", rank, n, got, rank)
			}
		}
	}
}

// With time-outs at random times the incidence still finds the quantiles of the values that were cut off.
func TestIncidenceUndoesIndependentCensoring(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var in stats.Incidence
	for range 200_000 {
		done, failed, limit := 100e6*rng.ExpFloat64(), 400e6*rng.ExpFloat64(), 300e6*rng.ExpFloat64()
		switch first := min(done, failed, limit); {
		case limit <= first:
			in.Censored.Add(int64(limit))
		case failed <= first:
			in.Failed.Add(int64(failed))
		default:
			in.Completed.Add(int64(done))
		}
	}
	// Without censoring 80 % complete, by then F(t) = 0.8·(1 − exp(−t/80 ms)).
	for ppm, share := range map[int64]float64{stats.P25: 0.25, stats.P50: 0.5, stats.P75: 0.75} {
		want := -80e6 * math.Log(1-share/0.8)
		if got := in.Quantile(ppm); got.Reach != stats.Reached || math.Abs(got.Value-want) > 0.02*want {
			t.Errorf("quantile %d: got %v, want %.4g", ppm, got, want)
		}
	}
	if got := in.Quantile(stats.P90); got.Reach == stats.Reached {
		t.Errorf("p90: got %v, want it out of reach: a fifth fails", got)
	}
}

func TestIncidencesMergeWithoutLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var whole stats.Incidence
	parts := make([]stats.Incidence, 3)
	for range 3000 {
		v := rng.Int64N(second)
		for _, in := range []*stats.Incidence{&whole, &parts[rng.IntN(3)]} {
			switch v % 7 {
			case 0:
				in.Failed.Add(v)
			case 1:
				in.Censored.Add(v)
			default:
				in.Completed.Add(v)
			}
		}
	}
	var got stats.Incidence
	for _, i := range []int{2, 0, 1} {
		got.Merge(&parts[i])
	}
	if !reflect.DeepEqual(got, whole) || got.N() != 3000 {
		t.Errorf("three parts do not merge to the whole: got n = %d", got.N())
	}
}

func TestIncidenceOfNothing(t *testing.T) {
	var in stats.Incidence
	if got := in.Quantile(stats.P50); got.Reach != stats.Undefined {
		t.Errorf("got %v, want undefined", got)
	}
	in.Failed.Add(0)
	if got := in.Quantile(stats.P50); got.Reach != stats.Unattainable {
		t.Errorf("all failed: got %v, want unattainable", got)
	}
	in = stats.Incidence{}
	in.Censored.Add(30 * second)
	if got := in.Quantile(stats.P50); got != (stats.Crossing{Value: 30e9, Reach: stats.Above}) {
		t.Errorf("all timed out: got %v, want above 30 s", got)
	}
}
