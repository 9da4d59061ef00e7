package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// curve is the law at powers of 2 from 1, with relative noise.
func curve(l law, n int, noise float64, seed uint64) (points []Scaled) {
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		at := math.Pow(2, float64(i))
		x := l.at(at)
		points = append(points, Scaled{at, x * (1 + noise*r.NormFloat64()), x * noise})
	}
	return points
}

func TestScaleFindsTheLaw(t *testing.T) {
	for _, l := range []law{{5, 0.02, 0.0005}, {100, 0.1, 0}, {1, 0, 0.001}, {3, 0, 0}} {
		s, ok := Scale(curve(l, 9, 0, 1))
		if !ok || math.Abs(s.Gamma.Value/l.gamma-1) > 1e-6 || math.Abs(s.Sigma.Value-l.sigma) > 1e-6 || math.Abs(s.Kappa.Value-l.kappa) > 1e-8 {
			t.Errorf("%+v: got %+v", l, s)
		}
		if want := l.kappa > 0; s.Peaks != want {
			t.Errorf("%+v: peaks %v, want %v", l, s.Peaks, want)
		}
	}
}

func TestScaleIntervalsHoldTheTruth(t *testing.T) {
	l := law{5, 0.02, 0.0005}
	held, runs := 0, 200
	for seed := range runs {
		s, ok := Scale(curve(l, 9, 0.02, uint64(seed)))
		if !ok {
			t.Fatal("not fitted")
		}
		if truth := math.Sqrt((1 - l.sigma) / l.kappa); s.Peak.Low <= truth && truth <= s.Peak.High {
			held++
		}
	}
	if held < runs*85/100 {
		t.Errorf("the interval of the peak holds the truth in %d of %d, want at least 85 %%", held, runs)
	}
}

func TestKneeIsWhereAServerIsFull(t *testing.T) {
	var points []Scaled
	for n := 1.0; n <= 64; n *= 2 { // 16 slots of a second each
		points = append(points, Scaled{n, min(n, 16), 0.1})
	}
	s, ok := Scale(points)
	if !ok || math.Abs(s.Knee.Value-16) > 1e-9 || s.Knee.Low > 16 || s.Knee.High < 16 {
		t.Errorf("got %+v, want the knee at 16", s.Knee)
	}
}

func TestScaleNeedsFiveNumbersInFlight(t *testing.T) {
	points := curve(law{5, 0.02, 0.0005}, 4, 0, 1)
	points = append(points, points...)
	if _, ok := Scale(append(points, Scaled{0, 3, 0}, Scaled{9, 0, 0})); ok {
		t.Error("fitted four different points")
	}
}
