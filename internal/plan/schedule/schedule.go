// Package schedule decides when the requests of an open stage fall due.
//
// Arrivals are made at the rate of one per unit first, as a sum of gaps in fixed-point numbers, and then brought onto the
// stage's rate by inverting its integral. The sum is absolute: rounding a due time does not move the one after it.
package schedule

import (
	"math"
	"math/bits"
	"time"

	"tare/internal/plan/draw"
)

// Process is a family of gaps between arrivals.
type Process int

const (
	Constant Process = iota // request n falls due at n/rate; the first at 0
	Poisson                 // exponential gaps, the first before the first request
	Gamma                   // gamma gaps of variation 1/√shape, the first before the first request
)

// MaxRequests is the largest number of requests in one stage.
const MaxRequests = 1<<32 - 1

// Open is a stage in which requests do not wait for replies.
type Open struct {
	Process Process
	Shape   float64 // of Gamma, within 0.05 and 100

	Rate   float64       // requests per second, at least 1e-6
	RateTo float64       // requests per second at the end of the window, changing linearly; 0 for a steady rate
	Window time.Duration // requests fall due within it; 0 to end by count
	Limit  int64         // the stage ends after so many requests; 0 to end by the window
}

// Span returns the window. For a stage that ends by count it is the one in which so many requests are expected; random
// arrivals may end before it or after it.
func (o Open) Span() time.Duration {
	if o.Window > 0 {
		return o.Window
	}
	if o.steady() {
		return o.at(uint64(o.Limit) << unit)
	}
	return nanoseconds(float64(2*float64(o.Limit)) / (o.Rate + o.RateTo))
}

// Count returns how many requests the stage has. It is not known, short of drawing them, where random arrivals end by a
// window.
func (o Open) Count() (n int64, known bool) {
	switch {
	case o.Window == 0:
		return o.Limit, true
	case o.Process != Constant:
		return 0, false
	}
	n = max(0, int64(o.Mean())-2)
	for o.at(uint64(n)<<unit) < o.Window {
		n++
	}
	return o.limited(n), true
}

// Mean returns how many requests are expected, unless the limit comes first.
func (o Open) Mean() float64 {
	mean := float64(o.Rate * o.Span().Seconds())
	if !o.steady() {
		mean = float64((o.Rate+o.RateTo)/2) * o.Span().Seconds()
	}
	if o.Limit > 0 {
		return min(mean, float64(o.Limit))
	}
	return mean
}

func (o Open) limited(n int64) int64 {
	if o.Limit > 0 {
		return min(n, o.Limit)
	}
	return n
}

func (o Open) steady() bool { return o.RateTo == 0 || o.RateTo == o.Rate }

// unit is the number of bits after the binary point of a sum of gaps of mean 1.
const unit = 32

// at returns when the sum of the rate reaches s, to the nearest nanosecond.
func (o Open) at(s uint64) time.Duration {
	if o.steady() {
		return divide(s, o.Rate)
	}
	return o.ramp(float64(int64(s>>1)) / (1 << (unit - 1)))
}

// divide returns s/rate in integers: due = s·10¹⁸/(2³²·q), where q is the rate in requests per 10⁹ seconds.
func divide(s uint64, rate float64) time.Duration {
	q := uint64(math.Round(rate * 1e9))
	high, low := bits.Mul64(s, 1e18)
	halfHigh, halfLow := bits.Mul64(q, 1<<(unit-1))
	low, carry := bits.Add64(low, halfLow, 0)
	high += halfHigh + carry
	high, low = high>>unit, high<<(64-unit)|low>>unit
	if high >= q {
		return math.MaxInt64
	}
	due, _ := bits.Div64(high, low, q)
	return time.Duration(min(due, math.MaxInt64))
}

// ramp inverts s = at + ½ct² for a linear ramp, which goes on at its last rate after the window. Every product is rounded
// explicitly, so that no architecture fuses it with an addition.
func (o Open) ramp(s float64) time.Duration {
	span := o.Span().Seconds()
	if whole := float64(float64((o.Rate+o.RateTo)/2) * span); s > whole {
		return nanoseconds(span + (s-whole)/o.RateTo)
	}
	change := (o.RateTo - o.Rate) / span
	root := math.Sqrt(max(0, float64(o.Rate*o.Rate)+float64(float64(2*change)*s)))
	return nanoseconds(float64(2*s) / (o.Rate + root))
}

// nanoseconds rounds seconds to the nearest nanosecond.
func nanoseconds(seconds float64) time.Duration {
	ns := float64(seconds * 1e9)
	if ns >= math.MaxInt64/2 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}

// Arrivals makes the due times of one stage, in order. It is not safe for concurrent use.
type Arrivals struct {
	open   Open
	source *draw.Source
	gamma  draw.Gamma
	first  int64
	count  int64 // requests of the stage where known, otherwise its limit or the largest allowed
	known  bool

	made int64
	sum  uint64
	last time.Duration
}

// Arrivals starts a stage whose first request has that index.
func (o Open) Arrivals(seed uint64, first int64) *Arrivals {
	a := &Arrivals{open: o, first: first, source: draw.New(seed, "gap")}
	if a.count, a.known = o.Count(); !a.known {
		a.count = o.limited(MaxRequests)
	}
	if o.Process == Gamma {
		a.gamma = draw.NewGamma(o.Shape)
	}
	return a
}

// Next returns when the next request falls due, an offset from the start of the stage; ok is false after the last one.
// Due times never decrease.
func (a *Arrivals) Next() (due time.Duration, ok bool) {
	if a.made == a.count || !a.advance() {
		return 0, false
	}
	due = max(a.last, a.open.at(a.sum))
	if !a.known && due >= a.open.Window {
		a.count = a.made
		return 0, false
	}
	a.made++
	a.last = due
	return due, true
}

// advance adds the gap before the next request to the sum; ok is false where that overflows.
func (a *Arrivals) advance() (ok bool) {
	var gap uint64
	if a.open.Process == Constant {
		gap = uint64(min(a.made, 1)) << unit
	} else {
		a.source.Seek(uint64(a.first + a.made))
		gap = a.random()
	}
	sum, carry := bits.Add64(a.sum, gap, 0)
	a.sum = sum
	return carry == 0
}

func (a *Arrivals) random() uint64 {
	const excess = 48 - unit // draw.One is 2⁴⁸
	if a.open.Process == Gamma {
		return (a.gamma.Draw(a.source) + 1<<(excess-1)) >> excess
	}
	return (a.source.Exponential() + 1<<(excess-1)) >> excess
}
