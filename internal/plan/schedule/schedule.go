// Package schedule decides when the requests of a stage fall due.
//
// Open arrivals are made at the rate of one per unit first, as sums of gaps in fixed-point numbers, and then brought onto the
// stage's rate by inverting its integral. The sums are absolute: rounding a due time does not move the one after it. A Trace
// has its times already. Of closed stages and of sessions, whose due times follow from replies, it draws what can be drawn
// before: the think times, and when sessions start.
package schedule

import (
	"math"
	"math/bits"
	"time"

	"tare/internal/plan/draw"
)

// Process is a family of arrivals.
type Process int

const (
	Constant Process = iota // request n falls due at n/rate; the first at 0
	Poisson                 // exponential gaps, the first before the first request
	Gamma                   // gamma gaps of variation 1/√shape, the first before the first request
	Weibull                 // Weibull gaps, the first before the first request
	MMPP                    // Poisson arrivals whose rate changes between States
	Clients                 // the arrivals of several Clients together
)

// MaxRequests is the largest number of requests in one stage.
const MaxRequests = 1<<32 - 1

// Open is a stage in which requests do not wait for replies. At most one of RateTo, Wave and Spike is set.
type Open struct {
	Process Process
	Shape   float64  // of Gamma, within 0.05 and 100; of Weibull, within 0.2 and 100
	States  []State  // of MMPP
	Clients []Client // of Clients

	Rate   float64       // requests per second in the mean, at least 1e-6
	RateTo float64       // requests per second at the end of the window, changing linearly; 0 for none
	Wave   Wave          // a rate that goes up and down
	Spike  Spike         // a rate that is another one for a while
	Window time.Duration // requests fall due within it; 0 to end by count
	Limit  int64         // the stage ends after so many requests; 0 to end by the window
}

// Span returns the window. For a stage that ends by count it is the one in which so many requests are expected; random
// arrivals may end before it or after it.
func (o Open) Span() time.Duration {
	switch {
	case o.Window > 0:
		return o.Window
	case o.ramps():
		return nanoseconds(float64(2*float64(o.Limit)) / (o.Rate + o.RateTo))
	}
	return o.rate().at(uint64(o.Limit) << unit)
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
	rate := o.rate()
	n = max(0, int64(o.Mean())-2)
	for rate.at(uint64(n)<<unit) < o.Window {
		n++
	}
	return o.limited(n), true
}

// Mean returns how many requests are expected, unless the limit comes first.
func (o Open) Mean() float64 {
	mean := o.rate().until(o.Span().Seconds())
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

func (o Open) ramps() bool { return o.RateTo != 0 && o.RateTo != o.Rate }

// unit is the number of bits after the binary point of a sum of gaps of mean 1.
const unit = 32

// rate is the stage's rate over time.
func (o Open) rate() rate {
	switch {
	case o.ramps():
		return ramp{from: o.Rate, to: o.RateTo, span: o.Span().Seconds()}
	case o.Wave.Period > 0:
		return wave{mean: o.Rate, Wave: o.Wave}
	case o.Spike.Width > 0:
		return spike{base: o.Rate, Spike: o.Spike}
	}
	return steady(o.Rate)
}

// sums makes the arrivals of a process of one per unit: each call gives the next one's place, in units of 2⁻³², which never
// decreases. ok is false where there is none below 2³².
type sums interface {
	next(n int64) (sum uint64, ok bool) // of the n-th arrival of the stage, from 0
}

// Arrivals makes the due times of one stage, in order. It is not safe for concurrent use.
type Arrivals struct {
	rate   rate
	sums   sums
	window time.Duration
	count  int64 // requests of the stage where known, otherwise its limit or the largest allowed
	known  bool

	made int64
	last time.Duration
}

// Arrivals starts a stage whose first request has that index.
func (o Open) Arrivals(seed uint64, first int64) *Arrivals {
	a := &Arrivals{rate: o.rate(), sums: o.sums(seed, first), window: o.Window}
	if a.count, a.known = o.Count(); !a.known {
		a.count = o.limited(MaxRequests)
	}
	return a
}

func (o Open) sums(seed uint64, first int64) sums {
	switch o.Process {
	case Constant:
		return even{}
	case MMPP:
		return newModulated(seed, first, o.States, o.Rate)
	case Clients:
		return newMerged(seed, first, o.Clients)
	}
	return &renewal{gaps: gapsOf(o.Process, o.Shape), source: draw.New(seed, "gap"), first: first}
}

// Next returns when the next request falls due, an offset from the start of the stage; ok is false after the last one.
// Due times never decrease.
func (a *Arrivals) Next() (due time.Duration, ok bool) {
	if a.made == a.count {
		return 0, false
	}
	sum, ok := a.sums.next(a.made)
	if !ok {
		a.count = a.made
		return 0, false
	}
	due = max(a.last, a.rate.at(sum))
	if !a.known && due >= a.window {
		a.count = a.made
		return 0, false
	}
	a.made++
	a.last = due
	return due, true
}

// Client returns which of the stage's Clients the last request came from; 0 without any.
func (a *Arrivals) Client() int {
	if m, ok := a.sums.(*merged); ok {
		return m.last
	}
	return 0
}

// even has an arrival at every unit.
type even struct{}

func (even) next(n int64) (sum uint64, ok bool) { return uint64(n) << unit, true }

// renewal adds up independent gaps. The gap before request n is drawn at its index.
type renewal struct {
	gaps   gaps
	source *draw.Source
	first  int64
	sum    uint64
}

func (r *renewal) next(n int64) (sum uint64, ok bool) {
	r.source.Seek(uint64(r.first + n))
	var carry uint64
	r.sum, carry = bits.Add64(r.sum, (r.gaps.draw(r.source)+1<<(excess-1))>>excess, 0)
	return r.sum, carry == 0
}

// excess is how many bits finer gaps are than sums of them: draw.One is 2⁴⁸.
const excess = 48 - unit

// gaps draws gaps of mean 1 in units of 1/draw.One.
type gaps struct {
	process Process
	gamma   draw.Gamma
	weibull draw.Weibull
}

func gapsOf(p Process, shape float64) gaps {
	g := gaps{process: p}
	switch p {
	case Gamma:
		g.gamma = draw.NewGamma(shape)
	case Weibull:
		g.weibull = draw.NewWeibull(shape)
	}
	return g
}

func (g *gaps) draw(s *draw.Source) uint64 {
	switch g.process {
	case Constant:
		return draw.One
	case Gamma:
		return g.gamma.Draw(s)
	case Weibull:
		return g.weibull.Draw(s)
	}
	return s.Exponential()
}

// residual draws how long it is until the next arrival of a process that has been going on forever.
func (g *gaps) residual(s *draw.Source) uint64 {
	switch g.process {
	case Constant:
		return s.Below(draw.One)
	case Gamma:
		return g.gamma.Residual(s)
	case Weibull:
		return g.weibull.Residual(s)
	}
	return s.Exponential()
}

// Variation returns the asked coefficient of variation of the gaps at a steady rate; ok is false where gaps depend on each
// other: MMPP and Clients.
func (o Open) Variation() (cv float64, ok bool) {
	switch o.Process {
	case Constant:
		return 0, true
	case Poisson:
		return 1, true
	case Gamma:
		return 1 / math.Sqrt(o.Shape), true
	case Weibull:
		first, second := math.Gamma(1+1/o.Shape), math.Gamma(1+2/o.Shape)
		return math.Sqrt(second/(first*first) - 1), true
	}
	return 0, false
}
