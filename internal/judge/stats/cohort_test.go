package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

func completed(values []int64) *stats.Incidence {
	in := new(stats.Incidence)
	for _, v := range values {
		in.Completed.Add(v)
	}
	return in
}

// The ranks of Hahn and Meeker's table for n independent values, checked against scipy's binomial distribution.
func TestIntervalOfIndependentValuesIsThatOfTheOrderStatistics(t *testing.T) {
	for _, tt := range []struct{ n, ppm, low, high int64 }{
		{100, stats.P50, 40, 61}, {100, stats.P90, 84, 96}, {1000, stats.P99, 983, 997}, {10_000, stats.P99, 9880, 9920}, {368, stats.P99, 360, 368}, {100, stats.P10, 5, 17},
	} {
		values := make([]int64, tt.n)
		for i := range values {
			values[i] = int64(i + 1)
		}
		e := completed(values).Estimate(tt.ppm, stats.Dependence{N: tt.n, Time: 1})
		if e.Withheld != stats.Shown || math.Abs(e.Low.Value-float64(tt.low)) > float64(tt.low)/512 || math.Abs(e.High.Value-float64(tt.high)) > float64(tt.high)/512 {
			t.Errorf("quantile %d of %d: got %v…%v (%q), want %d…%d", tt.ppm, tt.n, e.Low.Value, e.High.Value, e.Withheld, tt.low, tt.high)
		}
	}
}

func TestIntervalWidensWithDependence(t *testing.T) {
	values := make([]int64, 900)
	for i := range values {
		values[i] = int64(i + 1)
	}
	in := completed(values)
	before := 0.0
	for _, time := range []float64{1, 2, 9, 30} {
		e := in.Estimate(stats.P50, stats.Dependence{N: 900, Time: time})
		width := e.High.Value - e.Low.Value
		want := 2 * 1.96 * math.Sqrt(0.25*time*900)
		if width <= before || math.Abs(width-want) > 0.15*want {
			t.Errorf("τ = %g: got width %g, want about %.3g and above %g", time, width, want, before)
		}
		before = width
	}
}

// 100 effective ones have their interval at ranks 40 and 61; of 1,000 these are 396.4 and 604.6, widened to whole ranks.
func TestIntervalIsRoundedOutwards(t *testing.T) {
	values := make([]int64, 1000)
	for i := range values {
		values[i] = int64(i + 1)
	}
	e := completed(values).Estimate(stats.P50, stats.Dependence{N: 1000, Time: 10})
	if e.Low.Value != 396 || e.High.Value != 605 {
		t.Errorf("got %v…%v, want 396…605", e.Low.Value, e.High.Value)
	}
}

// Where a quantile is out of reach, what clusters is the failures.
func TestDependenceOfAnUnattainableQuantileIsThatOfTheFailures(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	var c stats.Cohort
	for range 1000 {
		fails := rng.Float64() < 0.6
		for range 50 {
			if fails {
				c.Fail(1e6)
			} else {
				c.Complete(int64(1e6 * rng.Float64()))
			}
		}
	}
	if d := c.Dependence(stats.P50); d.Time < 35 || d.Time > 70 {
		t.Errorf("failures in rows of 50: got τ %g, want about 50", d.Time)
	}
}

func TestPercentileIsWithheldWithReasonAndNeed(t *testing.T) {
	in := completed(make([]int64, 1000))
	for _, tt := range []struct {
		name string
		in   *stats.Incidence
		d    stats.Dependence
		ppm  int64
		want stats.Reason
		need int64
	}{
		{"enough", in, stats.Dependence{N: 1000, Time: 2.7}, stats.P99, stats.Shown, 0},
		{"dependent", in, stats.Dependence{N: 1000, Time: 2.8}, stats.P99, stats.TooFew, 1031},
		{"p99.9", in, stats.Dependence{N: 1000, Time: 1}, stats.P999, stats.TooFew, 3688},
		{"p90 of the same", in, stats.Dependence{N: 1000, Time: 2.8}, stats.P90, stats.Shown, 0},
		{"cut", in, stats.Dependence{N: 1000, Time: 1, Cut: true}, stats.P50, stats.TooLong, 0},
		{"nothing", new(stats.Incidence), stats.Dependence{}, stats.P50, stats.NoRequests, 0},
		{"the greatest", in, stats.Dependence{N: 1000, Time: 1}, 1_000_000, stats.TooFew, math.MaxInt64},
	} {
		e := tt.in.Estimate(tt.ppm, tt.d)
		if e.Withheld != tt.want || e.Needed != tt.need {
			t.Errorf("%s: got %q, needed %d, want %q, %d", tt.name, e.Withheld, e.Needed, tt.want, tt.need)
		}
		if shown := e.Low.Reach != stats.Undefined; shown != (tt.want == stats.Shown) {
			t.Errorf("%s: got an interval %v, want %v", tt.name, shown, tt.want == stats.Shown)
		}
	}
}

func TestIntervalReachesIntoTheTimeOuts(t *testing.T) {
	var c stats.Cohort
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 5000 {
		switch {
		case i%110 == 0:
			c.Censor(30e9)
		case i%2499 == 1:
			c.Fail(1e6)
		default:
			c.Complete(int64(1e6 * (1 + rng.Float64())))
		}
	}
	e := c.Estimates(stats.P99)[0]
	if e.N != 5000 || e.Withheld != stats.Shown || e.Point.Reach != stats.Reached || e.Low.Reach != stats.Reached || e.High != (stats.Crossing{Value: 30e9, Reach: stats.Above}) {
		t.Errorf("got %+v, want a p99 whose interval ends above 30 s", e)
	}
}

// queue is one server's response times at ρ: exponential with mean 1/(1−ρ), and each close to the one before.
func queue(seed uint64, rho float64, n int) (values []int64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	wait := 0.0
	for i := range n + 5000 {
		response := wait + rng.ExpFloat64()
		wait = max(response-rng.ExpFloat64()/rho, 0)
		if i >= 5000 {
			values = append(values, int64(1e6*response))
		}
	}
	return values
}

// bench/coverage makes the whole table of docs/statistics.md; this is a corner of it.
func TestIntervalsOfAQueueCoverTheTruth(t *testing.T) {
	const runs = 150
	levels := []int64{stats.P50, stats.P90, stats.P99}
	ours, independent := make([]int, 3), make([]int, 3)
	for seed := range uint64(runs) {
		var c stats.Cohort
		for _, v := range queue(seed, 0.5, 20_000) {
			c.Complete(v)
		}
		for i, e := range c.Estimates(levels...) {
			truth := -2e6 * math.Log(1-float64(levels[i])/1e6)
			if e.Withheld != stats.Shown {
				t.Fatalf("quantile %d withheld: %q", e.PPM, e.Withheld)
			}
			if e.Low.Value <= truth && truth <= e.High.Value {
				ours[i]++
			}
			if e := c.Incidence().Estimate(e.PPM, stats.Dependence{N: e.N, Time: 1}); e.Low.Value <= truth && truth <= e.High.Value {
				independent[i]++
			}
		}
	}
	for i, ppm := range levels {
		if ours[i] < runs*90/100 {
			t.Errorf("quantile %d: covered %d of %d times, want 95 %%", ppm, ours[i], runs)
		}
		if independent[i] > runs*82/100 {
			t.Errorf("quantile %d, taken for independent: covered %d of %d times, want far fewer", ppm, independent[i], runs)
		}
	}
}

// A run too short for its queue must not pass for a good one by showing too few clusters.
func TestShortRunOfALoadedQueueHasNoP99(t *testing.T) {
	shown := 0
	for seed := range uint64(100) {
		var c stats.Cohort
		for _, v := range queue(seed, 0.8, 5000) {
			c.Complete(v)
		}
		if c.Estimates(stats.P99)[0].Withheld == stats.Shown {
			shown++
		}
	}
	if shown > 1 {
		t.Errorf("p99 shown in %d of 100 runs, want none", shown)
	}
}

func TestDependenceOfAQuantileIncludesThatTowardsTheMedian(t *testing.T) {
	var c stats.Cohort
	for _, v := range queue(1, 0.7, 20_000) {
		c.Complete(v)
	}
	before := 0.0
	for _, ppm := range []int64{stats.P50, stats.P75, stats.P90, stats.P95, stats.P99} {
		d := c.Dependence(ppm)
		if d.Time < before || d.N != 20_000 {
			t.Errorf("quantile %d: got τ %g of %d, want at least %g", ppm, d.Time, d.N, before)
		}
		before = d.Time
	}
	if c.Dependence(stats.P10).Time < c.Dependence(stats.P25).Time {
		t.Error("p10: got a shorter τ than p25")
	}
}

func TestWithinCountsWhatCompletedInTime(t *testing.T) {
	var c stats.Cohort
	for v := range int64(10) {
		c.Complete(v)
	}
	c.Fail(0)
	c.Censor(3)
	if yes, d := c.Within(func(v int64) bool { return v <= 4 }); yes != 5 || d.N != 12 {
		t.Errorf("got %d of %d, want 5 of 12", yes, d.N)
	}
}

// The mean response time of an M/M/1 queue is E[S]/(1−ρ); its requests depend on each other, and an interval that takes them for
// independent holds it in half of the runs.
func TestMeanOfACohortCoversTheTruth(t *testing.T) {
	const rho, runs = 0.5, 200
	held := 0
	for seed := range uint64(runs) {
		var c stats.Cohort
		sum := 0.0
		for _, v := range queue(seed, rho, 5000) {
			c.Complete(v)
			sum += float64(v)
		}
		i, ok := c.Mean()
		if !ok {
			continue
		}
		near(t, "mean", i.Mean, sum/5000, 1e-3)
		if truth := 1e6 / (1 - rho); i.Low <= truth && truth <= i.High {
			held++
		}
	}
	if held < runs*88/100 {
		t.Errorf("got the truth in %d of %d intervals, want nearly 95 %%", held, runs)
	}
	var few stats.Cohort
	few.Complete(1)
	if _, ok := few.Mean(); ok {
		t.Error("one request: got an interval, want none")
	}
}
