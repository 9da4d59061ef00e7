package stats_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"tare/internal/judge/stats"
)

func gathered(times []time.Duration, order []int) *stats.Arrivals {
	a := new(stats.Arrivals)
	for _, i := range order {
		a.Add(int64(i), times[i])
	}
	return a
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func TestEqualGapsHaveNoVariationAndNoDispersion(t *testing.T) {
	times := make([]time.Duration, 6000)
	for i := range times {
		times[i] = time.Duration(i) * 100 * time.Millisecond
	}
	a := gathered(times, inOrder(len(times)))
	if cv, ok := a.Variation(); !ok || cv != 0 {
		t.Errorf("variation: got %v, %v, want 0", cv, ok)
	}
	for _, span := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		if index, ok := a.Dispersion(span, 600*time.Second); !ok || index != 0 {
			t.Errorf("dispersion in %v: got %v, %v, want 0", span, index, ok)
		}
	}
}

func TestFiguresOfArrivalsAreThoseOfTheTextbook(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var times []time.Duration
	for at := time.Duration(0); at < 2000*time.Second; at += time.Duration(r.ExpFloat64() * float64(50*time.Millisecond)) {
		times = append(times, at)
	}
	order := inOrder(len(times))
	a := gathered(times, order)
	var gaps, counts []float64
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, (times[i] - times[i-1]).Seconds())
	}
	counts = make([]float64, 200)
	for _, at := range times {
		counts[at/(10*time.Second)]++
	}
	moments := func(x []float64) (mean, variance float64) {
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			variance += (v - mean) * (v - mean) / float64(len(x)-1)
		}
		return mean, variance
	}
	mean, variance := moments(gaps)
	if got, _ := a.Variation(); math.Abs(got-math.Sqrt(variance)/mean) > 1e-9 {
		t.Errorf("variation: got %v, want %v", got, math.Sqrt(variance)/mean)
	}
	mean, variance = moments(counts)
	if got, _ := a.Dispersion(10*time.Second, 2000*time.Second); math.Abs(got-variance/mean) > 1e-9 {
		t.Errorf("dispersion: got %v, want %v", got, variance/mean)
	}
	for range 3 {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if !reflect.DeepEqual(gathered(times, order), a) {
			t.Error("another order gives another state")
		}
	}
}

func TestArrivalsNearlyInOrderTakeNoMemoryEach(t *testing.T) {
	a := new(stats.Arrivals)
	add := func(i int64) { a.Add(i, time.Duration(i)*time.Microsecond) }
	for i := int64(0); i < 64; i++ {
		add(i)
	}
	i := int64(64)
	got := testing.AllocsPerRun(2000, func() {
		for _, k := range []int64{3, 1, 0, 2} {
			add(i + k)
		}
		i += 4
	})
	if got != 0 {
		t.Errorf("allocations per four arrivals: got %v, want 0", got)
	}
}

func TestFewArrivalsHaveNoFigures(t *testing.T) {
	a := new(stats.Arrivals)
	if _, ok := a.Variation(); ok {
		t.Error("variation of none: got one")
	}
	a.Add(0, 0)
	a.Add(1, time.Second)
	a.Add(5, 5*time.Second) // not a neighbour
	if _, ok := a.Variation(); ok {
		t.Error("variation of one gap: got one")
	}
	if _, ok := a.Dispersion(time.Second, 9*time.Second); ok {
		t.Error("dispersion of nine spans: got one")
	}
	if _, ok := new(stats.Arrivals).Dispersion(time.Second, time.Minute); ok {
		t.Error("dispersion of nothing: got one")
	}
	if got, ok := a.Dispersion(time.Second, 10*time.Second); !ok || math.Abs(got-7.0/9) > 1e-12 || a.N() != 3 {
		t.Errorf("dispersion of 3 in ten seconds: got %v, %v of %d, want 0.778", got, ok, a.N())
	}
}
