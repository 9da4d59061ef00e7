package stats

import (
	"math"
	"slices"
)

// Cohort is the planned requests of one metric in the order of their due times, however each ended. It keeps eight bytes of each, and the
// order is what its intervals come from; where only quantiles are asked for, an Incidence alone will do. The zero value is empty and ready.
type Cohort struct {
	all    Incidence
	values []int64 // math.MaxInt64 for one that did not complete
}

// Grow makes room for n more requests, so that none of them has the others copied.
func (c *Cohort) Grow(n int) { c.values = slices.Grow(c.values, n) }

// Complete adds a request that completed with a value.
func (c *Cohort) Complete(v int64) {
	c.all.Completed.Add(v)
	c.values = append(c.values, v)
}

// Fail adds one that failed at a time, counted like the values; 0 for one that was never sent.
func (c *Cohort) Fail(at int64) {
	c.all.Failed.Add(at)
	c.values = append(c.values, math.MaxInt64)
}

// Censor adds one that was given up at a time, without a value until then.
func (c *Cohort) Censor(at int64) {
	c.all.Censored.Add(at)
	c.values = append(c.values, math.MaxInt64)
}

// Incidence returns the requests without their order. It belongs to the cohort.
func (c *Cohort) Incidence() *Incidence { return &c.all }

// Estimates gives the quantiles at levels in parts per million, with intervals where the requests carry them.
func (c *Cohort) Estimates(levels ...int64) (all []Estimate) {
	known := make(map[int64]Dependence)
	for _, ppm := range levels {
		all = append(all, c.all.Estimate(ppm, c.dependence(ppm, known)))
	}
	return all
}

// Dependence measures how the requests depend on each other as far as the quantile at ppm goes.
func (c *Cohort) Dependence(ppm int64) Dependence {
	return c.dependence(ppm, make(map[int64]Dependence))
}

// dependence is the longest of the quantile's own and those of the steps between the median and it. Few requests of a short run are
// beyond a p99, too few to show how they cluster, and the runs that show least of it would pass for the best; nearer to the
// median more requests tell.
func (c *Cohort) dependence(ppm int64, known map[int64]Dependence) Dependence {
	longest := c.own(ppm, known)
	for _, step := range []int64{P1, P5, P10, P25, P50, P75, P90, P95, P99} {
		if step >= min(ppm, P50) && step <= max(ppm, P50) {
			d := c.own(step, known)
			longest.Time, longest.Cut = max(longest.Time, d.Time), longest.Cut || d.Cut
		}
	}
	return longest
}

func (c *Cohort) own(ppm int64, known map[int64]Dependence) Dependence {
	d, ok := known[ppm]
	if !ok {
		d = c.within(c.all.Quantile(ppm)).Dependence()
		known[ppm] = d
	}
	return d
}

// within says of each request whether it completed by the crossing.
func (c *Cohort) within(at Crossing) *Indicator {
	limit := at.Value
	if at.Reach == Unattainable {
		limit = math.MaxInt64 / 2
	}
	s := new(Indicator)
	for _, v := range c.values {
		s.Append(v < math.MaxInt64 && float64(v) <= limit)
	}
	return s
}

// Within counts the requests that completed with a value of which keeps says yes, and measures how they depend on each other in that.
func (c *Cohort) Within(keeps func(v int64) bool) (yes int64, d Dependence) {
	s := new(Indicator)
	for _, v := range c.values {
		s.Append(v < math.MaxInt64 && keeps(v))
	}
	return int64(s.ones()), s.Dependence()
}

// Mean is the mean of the requests that completed, and its 95 % interval for as many as they are worth. ok is false for fewer than
// eight, and where they depend on each other over more than a quarter of the run.
func (c *Cohort) Mean() (i Interval, ok bool) {
	var values []float64
	for _, v := range c.values {
		if v < math.MaxInt64 {
			values = append(values, float64(v))
		}
	}
	values = grouped(values)
	d := Depend(values)
	if d.Cut {
		return Interval{}, false
	}
	mean, variance := moments(values)
	half := student(0.975, max(d.Effective()-1, 1)) * math.Sqrt(variance/d.Effective())
	return Interval{mean, mean - half, mean + half}, true
}

// grouped takes the means of equal groups of many values, in their order, so that measuring their dependence takes no time to speak
// of. Values behind the last whole group are left out.
func grouped(values []float64) []float64 {
	if len(values) <= mostFine {
		return values
	}
	return batchMeans(values, (len(values)+mostFine/4-1)/(mostFine/4))
}
