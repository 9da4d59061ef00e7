package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/internal/judge/stats"
)

// The oracles are scipy 1.x's mannwhitneyu and permutation_test, statsmodels' HAC errors and multipletests.

var (
	five = []float64{1.1, 2.2, 3.3, 4.4, 9.1}
	six  = []float64{2.5, 5.5, 6.6, 7.7, 8.8, 10.1}
)

func TestMannWhitneyAgreesWithOthers(t *testing.T) {
	forty, thirtyFive := make([]float64, 40), make([]float64, 35)
	for i := range forty {
		forty[i] = float64(i*37%101) / 10
	}
	for i := range thirtyFive {
		thirtyFive[i] = float64(i*53%97) / 8
	}
	for _, tt := range []struct {
		name  string
		a, b  []float64
		u, p  float64
		exact bool
	}{
		{"without ties", five, six, 7, 0.17748917748917747, true},
		{"turned round", six, five, 23, 0.17748917748917747, true},
		{"with ties", []float64{1, 2, 2, 3, 5}, []float64{2, 4, 4, 6, 7}, 5, 0.14285714285714285, true},
		{"many", forty, thirtyFive, 632.5, 0.4767387757422058, false},
		{"three apart", []float64{1, 2, 3}, []float64{4, 5, 6}, 0, 0.1, true},
		{"four apart", []float64{5, 6, 7, 8}, []float64{1, 2, 3, 4}, 16, 2.0 / 70, true},
		{"all equal", []float64{1, 1, 1}, []float64{1, 1}, 3, 1, true},
		{"many equal", make([]float64, 40), make([]float64, 40), 800, 1, false},
	} {
		got, ok := stats.MannWhitney(tt.a, tt.b)
		if !ok || got.Exact != tt.exact {
			t.Errorf("%s: got %+v %v, want exact %v", tt.name, got, ok, tt.exact)
		}
		near(t, tt.name+" U", got.U, tt.u, 1e-9)
		near(t, tt.name+" p", got.P, tt.p, 1e-9)
	}
}

func TestExactAndApproximateTestsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(n int, shift float64) (values []float64) {
		for range n {
			values = append(values, rng.NormFloat64()+shift)
		}
		return values
	}
	for range 20 {
		a, b := draw(25, 0), draw(25, 0.4)
		exact, _ := stats.MannWhitney(a, b)
		more, _ := stats.MannWhitney(append(a, 50), append(b, -50, 50.5, 50.6)) // over the limit of exactness, about the same
		if !exact.Exact || more.Exact || math.Abs(exact.P-more.P) > 0.15 {
			t.Errorf("got p = %.3g counted and %.3g approximated, want them close", exact.P, more.P)
		}
	}
}

func TestMannWhitneyOfNothing(t *testing.T) {
	if _, ok := stats.MannWhitney(nil, five); ok {
		t.Error("a test without runs")
	}
	if _, ok := stats.HodgesLehmann(five, nil); ok {
		t.Error("a shift without runs")
	}
}

func TestHodgesLehmannBelongsToTheTest(t *testing.T) {
	s, _ := stats.HodgesLehmann(five, six)
	near(t, "median of the differences", s.Median, -3.3, 1e-9)
	near(t, "low", s.Low, -6.8, 1e-9) // the fourth of thirty
	near(t, "high", s.High, 1.9, 1e-9)
	for _, tt := range []struct {
		n, m    int
		bounded bool
	}{{3, 3, false}, {3, 4, false}, {4, 4, true}, {3, 5, true}, {5, 5, true}} {
		s, _ := stats.HodgesLehmann(slices.Repeat([]float64{2}, tt.n), slices.Repeat([]float64{1}, tt.m))
		if s.Bounded != tt.bounded || s.Median != 1 {
			t.Errorf("%d against %d: got %+v, want bounded %v", tt.n, tt.m, s, tt.bounded)
		}
	}
}

// The oracle is scipy 1.17.1: the median of all differences, and the shifts for which its exact two-sided test does not come below 5 %. The
// first pair of samples is that of Hollander and Wolfe, for which R's wilcox.test says the same.
func TestHodgesLehmannInvertsTheExactTest(t *testing.T) {
	for _, tt := range []struct {
		a, b                   []float64
		u, p, shift, low, high float64
	}{
		{
			[]float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}, []float64{1.15, 0.88, 0.90, 0.74, 1.21},
			35, 0.2544122544122544, 0.305, -0.15, 0.76,
		},
		{[]float64{103.4, 102.2, 104.0, 101.9, 103.1}, []float64{101.2, 99.8, 100.5, 100.9, 99.1}, 25, 0.007936507936507936, 2.6, 1, 4.2},
		{
			[]float64{12.11, 12.6, 13.05, 14.2, 13.71, 12.95, 14.9}, []float64{12.31, 11.87, 12.9, 12.02, 13.44, 12.75},
			33, 0.10139860139860139, 0.75, -0.3, 2,
		},
	} {
		r, _ := stats.MannWhitney(tt.a, tt.b)
		near(t, "U", r.U, tt.u, 1e-9)
		near(t, "p", r.P, tt.p, 1e-12)
		s, _ := stats.HodgesLehmann(tt.a, tt.b)
		near(t, "shift", s.Median, tt.shift, 1e-9)
		near(t, "low", s.Low, tt.low, 1e-9)
		near(t, "high", s.High, tt.high, 1e-9)
	}
}

func TestLeastPIsThatOfSamplesApart(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for m := 1; m <= 6; m++ {
			var a, b []float64
			for i := range n {
				a = append(a, float64(i))
			}
			for i := range m {
				b = append(b, float64(100+i))
			}
			r, _ := stats.MannWhitney(a, b)
			near(t, "p", stats.LeastP(n, m), r.P, 1e-12)
		}
	}
}

func TestShiftIntervalCoversTheShift(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{5, 8, 30} {
		covered := 0
		for range 400 {
			a, b := make([]float64, n), make([]float64, n)
			for i := range n {
				a[i], b[i] = rng.ExpFloat64()+3, rng.ExpFloat64()
			}
			if s, _ := stats.HodgesLehmann(a, b); s.Bounded && s.Low <= 3 && 3 <= s.High {
				covered++
			}
		}
		if covered < 400*92/100 || covered > 399 {
			t.Errorf("%d against %d: covered %d of 400 times, want 95 %% or a little more", n, n, covered)
		}
	}
}

func TestHolmCorrectsInPlace(t *testing.T) {
	for _, tt := range []struct{ p, want []float64 }{
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.5, 0.9}, []float64{1, 1}},
		{[]float64{0.2}, []float64{0.2}},
		{nil, nil},
	} {
		got := stats.Holm(tt.p)
		for i := range tt.want {
			near(t, "corrected p", got[i], tt.want[i], 1e-12)
		}
	}
}

func TestTrendHasNeweyAndWestsError(t *testing.T) {
	y := []float64{3, 4, 4, 6, 9, 8, 7, 9, 12, 14, 13, 12}
	x := make([]float64, len(y))
	for i := range x {
		x[i] = float64(i)
	}
	for lags, want := range map[int]float64{3: 0.07885458561233158, 0: 0.10478874313706531} {
		got, ok := stats.Trend(x, y, lags)
		if !ok {
			t.Fatal("no line")
		}
		near(t, "slope", got.Slope, 0.9755244755244756, 1e-12)
		near(t, "error", got.Error, want, 1e-12)
	}
	if got := stats.NeweyWestLags(100); got != 4 {
		t.Errorf("lags for 100 values: got %d, want 4", got)
	}
	for name, points := range map[string][2][]float64{
		"two points": {x[:2], y[:2]}, "one moment": {make([]float64, 12), y}, "uneven": {x[:5], y},
	} {
		if line, ok := stats.Trend(points[0], points[1], 1); ok {
			t.Errorf("%s: got %v, want no line", name, line)
		}
	}
	if line, ok := stats.Trend(x[:3], []float64{1, 1, 1}, 50); !ok || line.Slope != 0 || line.Error != 0 {
		t.Errorf("a constant: got %v %v, want 0 ± 0", line, ok)
	}
}

// Against a slope of 0 the error must be that of the slopes seen, where neighbours are alike.
func TestTrendErrorIsTheSpreadOfSlopes(t *testing.T) {
	x := make([]float64, 400)
	for i := range x {
		x[i] = float64(i)
	}
	var slopes, claimed, plain []float64
	for seed := range uint64(300) {
		y := autoregressive(seed, len(x), 0.6)
		line, _ := stats.Trend(x, y, 12)
		without, _ := stats.Trend(x, y, 0)
		slopes, claimed, plain = append(slopes, line.Slope), append(claimed, line.Error), append(plain, without.Error)
	}
	spread, _ := stats.Replicate(slopes)
	real := spread.Variation * math.Abs(spread.Mean)
	honest, _ := stats.Replicate(claimed)
	short, _ := stats.Replicate(plain)
	if honest.Mean < 0.8*real || honest.Mean > 1.15*real || short.Mean > 0.65*real {
		t.Errorf("got a mean error of %.3g (%.3g without lags), want about the spread %.3g", honest.Mean, short.Mean, real)
	}
}
