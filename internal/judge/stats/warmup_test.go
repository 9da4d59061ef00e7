package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

// transient is a series that starts at a height above its level and falls off over some bins.
func transient(seed uint64, n int, height, over float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 11))
	bins := make([]float64, n)
	for i := range bins {
		bins[i] = 100 + height*math.Exp(-float64(i)/over) + 5*rng.NormFloat64()
	}
	return bins
}

// cutByDefinition is MSER-5 as it is written down.
func cutByDefinition(bins []float64) int {
	var y []float64
	for i := 0; i+5 <= len(bins); i += 5 {
		y = append(y, (bins[i]+bins[i+1]+bins[i+2]+bins[i+3]+bins[i+4])/5)
	}
	best, cut := math.Inf(1), 0
	for d := 0; d <= len(y)/2; d++ {
		mean, score := 0.0, 0.0
		for _, v := range y[d:] {
			mean += v / float64(len(y)-d)
		}
		for _, v := range y[d:] {
			score += (v - mean) * (v - mean)
		}
		if score /= math.Pow(float64(len(y)-d), 2); score < best {
			best, cut = score, d
		}
	}
	return 5 * cut
}

func TestSteadyFromIsMSER5(t *testing.T) {
	for seed := range uint64(60) {
		bins := transient(seed, 50+int(seed)*9, float64(seed*3), 1+float64(seed))
		got, _ := stats.SteadyFrom(bins, 0)
		if want := cutByDefinition(bins); got != want {
			t.Errorf("seed %d, %d bins: got a cut of %d, want %d", seed, len(bins), got, want)
		}
	}
}

func TestSteadyFromFindsTheEndOfTheTransient(t *testing.T) {
	for seed := range uint64(30) {
		from, steady := stats.SteadyFrom(transient(seed, 600, 200, 20), 0)
		if !steady || from < 40 || from > 200 {
			t.Errorf("seed %d: got %d bins (steady %v), want it after the fall of 20 bins: 40…200", seed, from, steady)
		}
	}
}

func TestSteadyFromKeepsTheDeclaredMinimum(t *testing.T) {
	bins := transient(1, 600, 200, 20)
	for declared, want := range map[int]int{300: 300, 599: 599} {
		if from, steady := stats.SteadyFrom(bins, declared); from != want || !steady {
			t.Errorf("declared %d: got %d %v, want that", declared, from, steady)
		}
	}
	found, _ := stats.SteadyFrom(bins, -3)
	if from, _ := stats.SteadyFrom(bins, 2); from != found {
		t.Errorf("declared 2: got %d, want the %d of MSER", from, found)
	}
	if _, steady := stats.SteadyFrom(bins, 600); steady {
		t.Error("all bins are warm-up, and the rest is steady")
	}
}

func TestNoSteadyStateIsSaid(t *testing.T) {
	rising := make([]float64, 200)
	for i := range rising {
		rising[i] = float64(i)
	}
	if from, steady := stats.SteadyFrom(rising, 0); steady || from != 100 {
		t.Errorf("a rise: got %d %v, want no steady state by the middle", from, steady)
	}
	if from, steady := stats.SteadyFrom(rising[:49], 7); steady || from != 7 {
		t.Errorf("49 bins: got %d %v, want too few", from, steady)
	}
	if from, steady := stats.SteadyFrom(make([]float64, 50), 0); !steady || from != 0 {
		t.Errorf("a constant: got %d %v, want it steady from the start", from, steady)
	}
}
