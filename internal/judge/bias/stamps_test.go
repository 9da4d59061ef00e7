package bias_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/judge/bias"
)

// backlog tells a wait by what is left to do when an event comes, counted in steps of a nanosecond.
func backlog(arrivals, services []int64) (waits []int64) {
	left, now, next := int64(0), int64(0), 0
	for next < len(arrivals) {
		for next < len(arrivals) && arrivals[next] == now {
			waits = append(waits, left)
			left += services[next]
			next++
		}
		left = max(left-1, 0)
		now++
	}
	return waits
}

func TestLindleyIsTheWorkLeft(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var arrivals, services []int64
		at := int64(0)
		for range 500 {
			at += r.Int64N(20)
			arrivals, services = append(arrivals, at), append(services, r.Int64N(18))
		}
		var l bias.Lindley
		sum := 0.0
		for i, want := range backlog(arrivals, services) {
			got := l.Next(arrivals[i], services[i])
			if got != want {
				t.Fatalf("seed %d, event %d: got wait %d, want %d", seed, i, got, want)
			}
			sum += float64(want)
		}
		got, ok := l.Mean()
		if !ok {
			t.Fatal("no mean")
		}
		within(t, "mean", got, sum/500/1e9, 1e-12)
	}
}

func TestLindleyWakesAnIdleLoop(t *testing.T) {
	l := bias.Lindley{Setup: 5}
	for i, tt := range []struct{ arrival, service, want int64 }{
		{-100, 10, 5}, // asleep: begins at −95, free at −85
		{-90, 10, 5},  // behind it: free at −75
		{-75, 1, 5},   // free at this very moment: asleep again
		{-73, -4, 4},  // a negative service takes no time
		{-80, 3, 11},  // read behind later ones
		{50, 1, 5},
	} {
		if got := l.Next(tt.arrival, tt.service); got != tt.want {
			t.Errorf("event %d: got wait %d, want %d", i, got, tt.want)
		}
	}
	if _, ok := new(bias.Lindley).Mean(); ok {
		t.Error("a replay of nothing has a mean")
	}
}

func TestArrivalsFindTheSteps(t *testing.T) {
	var a bias.Arrivals
	for step := range int64(100) {
		size := 3 + step%2*4 // 3 and 7 in turns
		for i := range size {
			a.Add(step*50_000_000 + i*7_000)
		}
	}
	l, ok := a.Load()
	if !ok {
		t.Fatal("no load")
	}
	within(t, "E[X]", l.Step.Mean, 5, 1e-12)
	within(t, "E[X(X−1)]", l.Step.Pairs, (6+42)/2.0, 1e-12)
	within(t, "τ", l.Spacing, 7e-6, 1e-9)
	within(t, "λ", l.Rate, 499/(99*0.05+6*7e-6), 1e-9)
	mean := 1 / l.Rate
	within(t, "c_a²", l.Variation, (50*math.Pow(0.05-2*7e-6, 2)+49*math.Pow(0.05-6*7e-6, 2)+400*math.Pow(7e-6, 2))/499/(mean*mean)-1, 1e-9)
}

func TestArrivalsOfPoissonHaveVariationOne(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var a bias.Arrivals
	at := 0.0
	for range 300_000 {
		at += r.ExpFloat64() * 1e6
		a.Add(int64(at))
	}
	l, _ := a.Load()
	within(t, "c_a²", l.Variation, 1, 0.02)
	within(t, "λ", l.Rate, 1000, 0.01)
	within(t, "E[X]", l.Step.Mean, 1/math.Exp(-0.02), 0.01)
}

func TestArrivalsNeedTwoMoments(t *testing.T) {
	var a bias.Arrivals
	if _, ok := a.Load(); ok {
		t.Error("a load of nothing")
	}
	a.Add(5)
	a.Add(5)
	a.Add(4)
	if l, ok := a.Load(); ok {
		t.Errorf("got a load %v of one moment, want none", l)
	}
	a.Add(5 + bias.StepGap + 1)
	if l, ok := a.Load(); !ok || l.Step.Mean != 2 || l.Spacing != 0 {
		t.Errorf("got %v %v, want steps of 3 and 1 without spacing", l, ok)
	}
	a.Add(5 + 2*bias.StepGap + 1)
	if l, ok := a.Load(); !ok || l.Step.Mean != 2.5 {
		t.Errorf("got %v %v, want steps of 3 and 2", l, ok)
	}
}

// A client that each traffic loads alike is told by a different model for each; the replay tells all of them.
func TestBestNamesTheModelOfTheTraffic(t *testing.T) {
	for _, tt := range []struct {
		name   string
		gap    func(*rand.Rand) float64 // ns to the next step
		size   int
		models []string
	}{
		{"well mixed", func(r *rand.Rand) float64 { return 20_000 * r.ExpFloat64() }, 1, []string{"p-k", "kingman", "m^x/g/1", "p-k + setup", "p-k + vacation"}},
		{"engine steps", func(*rand.Rand) float64 { return 400 * 20_000 }, 400, []string{"batch drain"}},
	} {
		r := rand.New(rand.NewPCG(9, 9))
		var a bias.Arrivals
		var truth, replay bias.Lindley
		var sums [3]float64
		at, n := 0.0, int64(0)
		for n < 200_000 {
			at += tt.gap(r)
			for i := range tt.size {
				stamp, service := int64(at)+int64(i)*3_000, int64(4_000+6_000*r.ExpFloat64())
				a.Add(stamp)
				truth.Next(stamp, service)
				replay.Next(stamp, service+int64(r.IntN(200))-100) // the service is not known to the nanosecond
				for p := range sums {
					sums[p] += math.Pow(float64(service)/1e9, float64(p+1))
				}
				n++
			}
		}
		l, _ := a.Load()
		l.Service, _ = bias.ServiceOf(n, sums[0], sums[1], sums[2])
		measured, _ := truth.Mean()
		all := bias.Predict(l, &replay, measured)
		best, ok := bias.Best(all[:len(all)-1])
		if !ok || !best.Close() || !contains(tt.models, best.Model) {
			t.Errorf("%s: got %+v, want one of %v", tt.name, best, tt.models)
		}
		if last := all[len(all)-1]; last.Model != "lindley" || math.Abs(last.Ratio-1) > 0.02 {
			t.Errorf("%s: got %+v of the replay, want a ratio of 1", tt.name, last)
		}
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func TestBestOfNothing(t *testing.T) {
	l := bias.Load{Rate: 2, Loops: 1, Service: exponential(1).service()}
	all := bias.Predict(l, nil, 3)
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
	if best, ok := bias.Best(bias.Predict(l, nil, 0)); ok {
		t.Errorf("without a measurement: got %+v, want none", best)
	}
	close := func(ratio float64) bool { return bias.Prediction{Bounded: true, Ratio: ratio}.Close() }
	if !close(0.5) || !close(2) || close(0.49) || close(2.01) {
		t.Error("close: want ratios from 0.5 to 2")
	}
}
