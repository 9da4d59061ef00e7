package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.9g, want %.9g ± %g", what, got, want, tolerance)
	}
}

// Student's quantile at 97.5 % is 2.776445 for four degrees of freedom, 12.7062 for one.
func TestReplicateIsStudentsInterval(t *testing.T) {
	r, ok := stats.Replicate([]float64{10, 12, 11, 13, 14})
	if !ok || r.Runs != 5 {
		t.Fatalf("got %+v %v", r, ok)
	}
	half := 2.7764451051977934 * math.Sqrt(2.5/5)
	near(t, "mean", r.Mean, 12, 1e-12)
	near(t, "low", r.Low, 12-half, 1e-9)
	near(t, "high", r.High, 12+half, 1e-9)
	near(t, "variation", r.Variation, math.Sqrt(2.5)/12, 1e-12)
	share, ok := r.HalfWidth()
	near(t, "half width", share, half/12, 1e-9)
	if !ok {
		t.Error("no half width")
	}
	two, _ := stats.Replicate([]float64{1, 3})
	near(t, "of two", two.High, 2+12.706204736174694, 1e-8)
}

func TestReplicateOfTheExtremes(t *testing.T) {
	for _, few := range [][]float64{nil, {5}} {
		if r, ok := stats.Replicate(few); ok {
			t.Errorf("of %d runs: got %v, want none", len(few), r)
		}
	}
	r, ok := stats.Replicate([]float64{0, 0, 0})
	if _, wide := r.HalfWidth(); !ok || wide || r.Variation != 0 || r.Low != 0 || r.High != 0 {
		t.Errorf("of zeros: got %+v, want [0, 0] without a relative width", r)
	}
	r, _ = stats.Replicate([]float64{-4, -6})
	near(t, "variation of a negative mean", r.Variation, math.Sqrt2/5, 1e-12)
}

// autoregressive is a throughput per bin around 50 that remembers the bin before.
func autoregressive(seed uint64, n int, memory float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 13))
	bins := make([]float64, n)
	off := rng.NormFloat64() / math.Sqrt(1-memory*memory)
	for i := range bins {
		off = memory*off + rng.NormFloat64()
		bins[i] = 50 + off
	}
	return bins
}

func TestBatchMeansCoverTheMean(t *testing.T) {
	const runs = 600
	batches, bins := 0, 0
	for seed := range uint64(runs) {
		series := autoregressive(seed, 600, 0.6)
		b, ok := stats.BatchMeans(series)
		if !ok {
			t.Fatal("no interval")
		}
		if b.Low <= 50 && 50 <= b.High {
			batches++
		}
		if each, _ := stats.Replicate(series); each.Low <= 50 && 50 <= each.High {
			bins++
		}
	}
	if batches < runs*91/100 || bins > runs*75/100 {
		t.Errorf("covered: got %d of %d by batches and %d by bins, want 95 %% and far fewer", batches, runs, bins)
	}
}

func TestBatchesAreEqualAndUseWhatTheyCan(t *testing.T) {
	for _, tt := range []struct{ bins, batches, size int }{{600, 30, 20}, {599, 26, 23}, {40, 20, 2}, {61, 30, 2}, {2300, 25, 92}} {
		b, ok := stats.BatchMeans(autoregressive(1, tt.bins, 0))
		if !ok || b.Batches != tt.batches || b.Size != tt.size {
			t.Errorf("%d bins: got %d batches of %d, want %d of %d", tt.bins, b.Batches, b.Size, tt.batches, tt.size)
		}
	}
	if _, ok := stats.BatchMeans(make([]float64, 39)); ok {
		t.Error("39 bins give an interval")
	}
	bins := make([]float64, 61)
	bins[0] = 1e9 // left out: the first of 61
	if b, _ := stats.BatchMeans(bins); b.Mean != 0 {
		t.Errorf("mean: got %v, want 0: what does not fill a batch is left out at the start", b.Mean)
	}
}

func TestDependentBatchesAreSaid(t *testing.T) {
	if b, _ := stats.BatchMeans(autoregressive(3, 60, 0.95)); b.Independent() {
		t.Errorf("batches of two bins, τ = 39: got %+v independent", b)
	}
	independent := 0
	for seed := range uint64(100) {
		if b, _ := stats.BatchMeans(autoregressive(seed, 1200, 0.3)); b.Independent() {
			independent++
		}
	}
	if independent < 70 {
		t.Errorf("long batches: got %d of 100 independent, want five in six", independent)
	}
	for _, tt := range []struct {
		b    stats.Batches
		want bool
	}{
		{stats.Batches{Size: 10, Time: 1, Neighbours: 0.19}, true},
		{stats.Batches{Size: 10, Time: 1, Neighbours: 0.21}, false},
		{stats.Batches{Size: 10, Time: 1.1, Neighbours: 0.19}, false},
	} {
		if got := tt.b.Independent(); got != tt.want {
			t.Errorf("%+v: got independent %v, want %v", tt.b, got, tt.want)
		}
	}
	if b, _ := stats.BatchMeans(make([]float64, 400)); !b.Independent() {
		t.Errorf("a constant: got %+v, want it independent", b)
	}
}
