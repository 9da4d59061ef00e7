package bias_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/internal/judge/bias"
)

// A client that each traffic loads alike is told by a different model for each; the replay tells all of them.
func TestBestNamesTheModelOfTheTraffic(t *testing.T) {
	const rate, spacing = 50_000, 3e-6
	const within, between = spacing, 400/float64(rate) - 399*spacing // gaps of steps of 400
	service := func(r *rand.Rand) float64 { return 4e-6 + 6e-6*r.ExpFloat64() }
	moments := bias.Service{Mean: 10e-6, Second: 136e-12, Third: 2512e-18}
	for _, tt := range []struct {
		name   string
		gap    func(*rand.Rand) float64 // s to the next step
		load   bias.Load
		models []string
	}{
		{"well mixed", func(r *rand.Rand) float64 { return r.ExpFloat64() / rate },
			bias.Load{Rate: rate, Loops: 1, Service: moments, Variation: 1, Step: bias.Step{Mean: 1}},
			[]string{"p-k", "kingman", "m^x/g/1", "p-k + setup", "p-k + vacation"}},
		{"engine steps", func(*rand.Rand) float64 { return 400 / float64(rate) }, bias.Load{
			Rate: rate, Loops: 1, Service: moments, Variation: (399*within*within+between*between)/400*rate*rate - 1,
			Step: bias.Step{Mean: 400, Pairs: 400 * 399}, Spacing: spacing,
		}, []string{"batch drain"}},
	} {
		r := rand.New(rand.NewPCG(9, 9))
		size := int(tt.load.Step.Mean)
		var truth, replay loop
		at, n := 0.0, 0
		for n < 200_000 {
			at += tt.gap(r)
			for i := range size {
				stamp, took := at+float64(i)*spacing, service(r)
				truth.serve(stamp, took)
				replay.serve(stamp, took+1e-7*(2*r.Float64()-1)) // the service is not known to the nanosecond
				n++
			}
		}
		all := bias.Predict(tt.load, truth.waited/float64(n), replay.waited/float64(n), true)
		best, ok := bias.Best(all[:len(all)-1])
		if !ok || !best.Close() || !slices.Contains(tt.models, best.Model) {
			t.Errorf("%s: got %+v, want one of %v", tt.name, best, tt.models)
		}
		if last := all[len(all)-1]; last.Model != bias.Replay || math.Abs(last.Ratio-1) > 0.02 {
			t.Errorf("%s: got %+v of the replay, want a ratio of 1", tt.name, last)
		}
	}
}

// loop serves events one after another, first come first served.
type loop struct{ free, waited float64 }

func (l *loop) serve(at, took float64) {
	start := max(l.free, at)
	l.waited += start - at
	l.free = start + took
}

func TestBestOfNothing(t *testing.T) {
	l := bias.Load{Rate: 2, Loops: 1, Service: exponential(1).service()}
	all := bias.Predict(l, 3, 0, false)
	if len(all) != len(bias.Models()) {
		t.Errorf("predictions: got %d, want one of each model", len(all))
	}
	for _, p := range all {
		if p.Bounded || p.Close() || p.Ratio != 0 || p.Mean != 0 {
			t.Errorf("at ρ = 2: got %+v, want it unbounded", p)
		}
	}
	if best, ok := bias.Best(all); ok {
		t.Errorf("got %+v, want none", best)
	}
	l.Rate = 0.5
	if best, ok := bias.Best(bias.Predict(l, 0, 1, true)); ok {
		t.Errorf("without a measurement: got %+v, want none", best)
	}
	close := func(ratio float64) bool { return bias.Prediction{Bounded: true, Ratio: ratio}.Close() }
	if !close(0.5) || !close(2) || close(0.49) || close(2.01) {
		t.Error("close: want ratios from 0.5 to 2")
	}
}
