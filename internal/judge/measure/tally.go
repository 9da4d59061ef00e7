package measure

import (
	"math"

	"tare/internal/judge/stats"
)

// Tally gathers one metric over many replies. The zero value is empty and ready.
type Tally struct {
	Undefined int64 // replies the metric is not defined for
	Bounded   int64 // values of which only a lower and an upper bound are known

	exact     stats.Distribution // values whose ends are known exactly
	nominal   stats.Distribution // bounded values as stamped, where the metric keeps them
	low, high stats.Distribution // the ends of bounded values

	numerator, denominator stats.Distribution // of ratio metrics
}

// Add puts in a value that is known exactly.
func (t *Tally) Add(v int64) { t.exact.Add(v) }

// span is a value known to lie within [low, high].
type span struct{ low, high int64 }

// between is the time from a to b. Order is kept within a reply, so that it is never negative through bounds alone.
func between(a, b Arrival) span {
	high := b.At - a.Low
	low := b.Low - a.At
	if !a.Exact() || !b.Exact() {
		low = max(low, 0)
	}
	return span{int64(low), int64(high)}
}

// keep puts in n values that were stamped v and lie within s. Bounded ones are counted, and stay in with their stamp.
func (t *Tally) keep(v int64, s span) {
	if s.low == s.high {
		t.exact.Add(v)
		return
	}
	t.nominal.Add(v)
	t.bound(s, 1)
}

// bound puts in n values of which no more is known than that they lie within s.
func (t *Tally) bound(s span, n int64) {
	t.Bounded += n
	t.low.AddN(s.low, n)
	t.high.AddN(s.high, n)
}

// quotient is a numerator, known to lie within a span, over a denominator above 0.
type quotient struct {
	numerator, denominator int64
	within                 span
}

// value is the quotient, rounded to a whole number of the metric's base unit.
func (q quotient) value() Value {
	over := func(v int64) int64 { return perToken(v, q.denominator) }
	return Value{At: over(q.numerator), Low: over(q.within.low), High: over(q.within.high)}
}

// ratio puts in a quotient.
func (t *Tally) ratio(q quotient) {
	t.numerator.Add(q.numerator)
	t.denominator.Add(q.denominator)
	v := q.value()
	t.keep(v.At, span{v.Low, v.High})
}

func perToken(v, tokens int64) int64 { return int64(math.Round(float64(v) / float64(tokens))) }

// Merge puts in everything other holds. It leaves other as it is.
func (t *Tally) Merge(other *Tally) {
	t.Undefined += other.Undefined
	t.Bounded += other.Bounded
	t.exact.Merge(&other.exact)
	t.nominal.Merge(&other.nominal)
	t.low.Merge(&other.low)
	t.high.Merge(&other.high)
	t.numerator.Merge(&other.numerator)
	t.denominator.Merge(&other.denominator)
}

// Values returns what the metric's figures are made of, in its base unit (nanoseconds, tokens).
func (t *Tally) Values() *stats.Distribution { return join(&t.exact, &t.nominal) }

// Lows returns the values with every bounded one at its lower bound: each quantile of it is a lower bound of the true one.
func (t *Tally) Lows() *stats.Distribution { return join(&t.exact, &t.low) }

// Highs returns the values with every bounded one at its upper bound.
func (t *Tally) Highs() *stats.Distribution { return join(&t.exact, &t.high) }

// RatioOfMeans returns the sum of the numerators over the sum of the denominators: the mean weighted by denominator. ok is
// false for metrics that are no ratio, and without values.
func (t *Tally) RatioOfMeans() (v float64, ok bool) {
	if t.denominator.N() == 0 {
		return 0, false
	}
	return t.numerator.Sum() / t.denominator.Sum(), true
}

func join(a, b *stats.Distribution) *stats.Distribution {
	d := new(stats.Distribution)
	d.Merge(a)
	d.Merge(b)
	return d
}
