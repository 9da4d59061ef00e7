package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

// indicator is a chain that stays what it is with a chance; its correlation time is (1+stay)/(1−stay).
func indicator(rng *rand.Rand, n int, share, stay float64) (*stats.Indicator, []float64) {
	s := new(stats.Indicator)
	values := make([]float64, n)
	yes := rng.Float64() < share
	for i := range values {
		if rng.Float64() >= stay {
			yes = rng.Float64() < share
		}
		s.Append(yes)
		if yes {
			values[i] = 1
		}
	}
	return s, values
}

func TestDependenceFindsTheCorrelationTime(t *testing.T) {
	for _, stay := range []float64{0, 0.5, 0.9, 0.98} {
		for share, tolerance := range map[float64]float64{0.5: 0.1, 0.99: 0.25} {
			rng := rand.New(rand.NewPCG(1, uint64(1000*stay)))
			s, _ := indicator(rng, 400_001, share, stay)
			got, want := s.Dependence(), (1+stay)/(1-stay)
			if got.Cut || math.Abs(got.Time-want) > tolerance*want {
				t.Errorf("share %g, stay %g: got τ %.3g (cut %v), want %.3g ± %g", share, stay, got.Time, got.Cut, want, tolerance*want)
			}
			if eff := got.Effective(); math.Abs(eff-400_001/got.Time) > 1e-6 {
				t.Errorf("n_eff: got %g, want n/τ", eff)
			}
		}
	}
}

// Bits and numbers must tell the same: lags and edges of words are where the former could go wrong.
func TestIndicatorCountsAsNumbersDo(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s, values := indicator(rng, 1+rng.IntN(700), rng.Float64(), rng.Float64())
		got, want := s.Dependence(), stats.Depend(values)
		if got.N != want.N || got.Cut != want.Cut || math.Abs(got.Time-want.Time) > 1e-9*want.Time {
			t.Errorf("seed %d, n %d: got %v, want %v", seed, len(values), got, want)
		}
	}
}

// From 65,537 on places are taken in groups: the same chain must come out the same, give or take one value more.
func TestGroupsTellWhatSinglePlacesDo(t *testing.T) {
	for seed, stay := range []float64{0, 0.4, 0.8, 0.95, 0.99} {
		rng := rand.New(rand.NewPCG(uint64(seed), 23))
		s, _ := indicator(rng, 1<<16, 0.9, stay)
		fine := s.Dependence()
		s.Append(true)
		coarse := s.Dependence()
		if coarse.N != fine.N+1 || coarse.Cut || math.Abs(coarse.Time-fine.Time) > 0.15*fine.Time {
			t.Errorf("stay %g: got %v in groups, want about %v", stay, coarse, fine)
		}
	}
}

func TestDependenceOfTheExtremes(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	all, _ := indicator(rng, 1000, 1, 0)
	if d := all.Dependence(); d.Time != 1 || d.Cut {
		t.Errorf("a constant: got %v, want τ = 1", d)
	}
	short, _ := indicator(rng, 7, 1, 0)
	if d := short.Dependence(); !d.Cut {
		t.Errorf("seven values: got %v, want it cut: they tell nothing", d)
	}
	var none stats.Indicator
	if d := none.Dependence(); !d.Cut || d.N != 0 || d.Effective() != 0 {
		t.Errorf("nothing: got %v, want it cut", d)
	}
	var drift, same stats.Indicator
	for i := range 1_000_000 {
		drift.Append(i > 300_000)
		same.Append(true)
	}
	if d := drift.Dependence(); !d.Cut || d.Effective() > 10 {
		t.Errorf("one change in a million: got %v, want it cut with a long τ", d)
	}
	if d := same.Dependence(); d.Time != 1 || d.Cut || d.N != 1_000_000 {
		t.Errorf("a long constant: got %v, want τ = 1", d)
	}
	trend := make([]float64, 1000)
	alternate := make([]float64, 1000)
	for i := range trend {
		trend[i], alternate[i] = float64(i), float64(i%2)
	}
	if d := stats.Depend(trend); !d.Cut || d.Time < 100 {
		t.Errorf("a trend: got %v, want it cut with a long τ", d)
	}
	if d := stats.Depend(alternate); d.Time != 1 {
		t.Errorf("values that alternate: got τ %v, want 1: no more than n", d.Time)
	}
}
