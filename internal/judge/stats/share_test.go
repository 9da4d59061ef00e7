package stats_test

import (
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

// Intervals of Clopper and Pearson as textbooks and R's binom.test give them.
func TestShareIsTheExactInterval(t *testing.T) {
	for _, tt := range []struct {
		yes, n    int64
		low, high float64
	}{{95, 100, 0.88717, 0.98357}, {0, 10, 0, 0.30850}, {10, 10, 0.69150, 1}, {5, 10, 0.18709, 0.81291}} {
		i, ok := stats.Share(tt.yes, stats.Dependence{N: tt.n, Time: 1})
		if !ok {
			t.Fatalf("%d of %d: got no interval", tt.yes, tt.n)
		}
		near(t, "mean", i.Mean, float64(tt.yes)/float64(tt.n), 1e-12)
		near(t, "low", i.Low, tt.low, 1e-5)
		near(t, "high", i.High, tt.high, 1e-5)
	}
	if _, ok := stats.Share(0, stats.Dependence{}); ok {
		t.Error("no requests: got an interval, want none")
	}
}

func TestShareCountsWhatRequestsAreWorth(t *testing.T) {
	got, _ := stats.Share(950, stats.Dependence{N: 1000, Time: 10})
	want, _ := stats.Share(95, stats.Dependence{N: 100, Time: 1})
	near(t, "low", got.Low, want.Low, 1e-9)
	near(t, "high", got.High, want.High, 1e-9)
}

func TestShareCoversTheTruth(t *testing.T) {
	const truth, runs = 0.97, 2000
	rng, held := rand.New(rand.NewPCG(3, 4)), 0
	for range runs {
		yes := int64(0)
		for range 300 {
			if rng.Float64() < truth {
				yes++
			}
		}
		if i, _ := stats.Share(yes, stats.Dependence{N: 300, Time: 1}); i.Low <= truth && truth <= i.High {
			held++
		}
	}
	if held < runs*95/100 {
		t.Errorf("got the truth in %d of %d intervals, want at least 95 %%", held, runs)
	}
}
