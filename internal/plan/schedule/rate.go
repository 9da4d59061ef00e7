package schedule

import (
	"math"
	"math/bits"
	"time"
)

// rate is a rate over time, from the start of the stage.
type rate interface {
	// at returns when the integral of the rate reaches s, in units of 2⁻³², to the nearest nanosecond.
	at(s uint64) time.Duration
	// until returns the integral over so many seconds.
	until(seconds float64) float64
}

// steady is a rate that stays, requests per second.
type steady float64

func (r steady) at(s uint64) time.Duration { return divide(s, float64(r)) }

func (r steady) until(seconds float64) float64 { return float64(float64(r) * seconds) }

// divide returns s/rate in integers: due = s·10¹⁸/(2³²·q), where q is the rate in requests per 10⁹ seconds.
func divide(s uint64, rate float64) time.Duration {
	q := perGigasecond(rate)
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

// perGigasecond is a rate in requests per 10⁹ seconds.
func perGigasecond(rate float64) uint64 { return uint64(math.Round(float64(rate * 1e9))) }

// times returns rate·d in units of 2⁻³², rounded down, in integers; the largest number where it does not fit.
func times(rate float64, d time.Duration) uint64 {
	high, low := bits.Mul64(perGigasecond(rate), uint64(d)) // in units of 10⁻¹⁸
	if high >= 1e18 {
		return math.MaxUint64
	}
	whole, rest := bits.Div64(high, low, 1e18)
	fraction, _ := bits.Div64(rest>>(64-unit), rest<<unit, 1e18)
	if whole >= 1<<unit {
		return math.MaxUint64
	}
	return whole<<unit | fraction
}

// ramp is a rate that changes linearly from the start to the end of the span (seconds), and then stays.
type ramp struct{ from, to, span float64 }

// at inverts s = from·t + ½ct². Every product is rounded explicitly, so that no architecture fuses it with an addition.
func (r ramp) at(sum uint64) time.Duration {
	s := seconds(sum)
	if whole := r.until(r.span); s > whole {
		return nanoseconds(r.span + (s-whole)/r.to)
	}
	change := (r.to - r.from) / r.span
	root := math.Sqrt(max(0, float64(r.from*r.from)+float64(float64(2*change)*s)))
	return nanoseconds(float64(2*s) / (r.from + root))
}

// until is asked for the whole span only.
func (r ramp) until(seconds float64) float64 { return float64(float64((r.from+r.to)/2) * seconds) }

// Spike is a rate that is Peak for a while, and the stage's before and after.
type Spike struct {
	Peak  float64       // requests per second
	Start time.Duration // offset from the start of the stage
	Width time.Duration // 0 for no spike
}

type spike struct {
	base float64
	Spike
}

// at goes through the three parts in integers.
func (r spike) at(s uint64) time.Duration {
	before, within := times(r.base, r.Start), times(r.Peak, r.Width)
	switch {
	case s <= before:
		return divide(s, r.base)
	case s-before <= within:
		return later(r.Start, divide(s-before, r.Peak))
	}
	return later(r.Start+r.Width, divide(s-before-within, r.base))
}

func (r spike) until(seconds float64) float64 {
	start, end := r.Start.Seconds(), (r.Start + r.Width).Seconds()
	peak := max(0, min(seconds, end)-start)
	return float64(r.base*(seconds-peak)) + float64(r.Peak*peak)
}

// later adds offsets; one that does not fit becomes the largest.
func later(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// Wave is a rate that goes up and down around the stage's, as days do: rate·(1 + Amplitude·sin 2π(t/Period + Phase)).
type Wave struct {
	Amplitude float64       // fraction of the rate, within 0 and 1
	Period    time.Duration // 0 for no wave
	Phase     float64       // part of the period that is over at the start, within 0 and 1
}

type wave struct {
	mean float64
	Wave
}

// at finds the whole periods by division and the place in the last one by Newton's method, kept between two bounds since the
// rate may fall to 0: with x in periods, s/(mean·period) = x + A/2π·(cos 2πφ − cos 2π(x+φ)).
func (r wave) at(sum uint64) time.Duration {
	period := r.Period.Seconds()
	y := seconds(sum) / float64(r.mean*period)
	whole := math.Floor(y)
	return nanoseconds(float64((whole + r.place(y-whole)) * period))
}

// place solves for x in [0, 1].
func (r wave) place(y float64) float64 {
	low, high, x := 0.0, 1.0, y
	for range 100 {
		over := r.periods(x) - y
		if over > 0 {
			high = x
		} else {
			low = x
		}
		next := x - over/max(1+float64(r.Amplitude*sine(x+r.Phase)), 1e-9)
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		if math.Abs(next-x) < 1e-16 || next == low || next == high {
			return next
		}
		x = next
	}
	return x
}

// periods is the integral of the rate over x periods, in units of a whole period's.
func (r wave) periods(x float64) float64 {
	return x + float64(r.Amplitude/(2*math.Pi)*(cosine(r.Phase)-cosine(x+r.Phase)))
}

func (r wave) until(seconds float64) float64 {
	period := r.Period.Seconds()
	return float64(float64(r.mean*period) * r.periods(seconds/period))
}

// cosine returns cos 2πv for v ≥ 0.
func cosine(v float64) float64 { return sine(v + 0.25) }

// sine returns sin 2πv for v ≥ 0. Note: math.Sin has its own code on some architectures and may be fused on others.
func sine(v float64) float64 {
	v -= math.Floor(v)
	quarter := math.Floor(float64(4*v) + 0.5)
	z := float64((v - quarter/4) * (2 * math.Pi)) // within ±π/4
	square := float64(z * z)
	sin, cos := 0.0, 0.0
	for n := 18.0; n >= 2; n -= 2 {
		cos = 1 - float64(cos*square)/float64(n*(n-1))
		sin = 1 - float64(sin*square)/float64(n*(n+1))
	}
	switch sin = float64(sin * z); quarter {
	case 1:
		return cos
	case 2:
		return -sin
	case 3:
		return -cos
	}
	return sin
}

// seconds returns a sum as a float.
func seconds(s uint64) float64 { return float64(int64(s>>1)) / (1 << (unit - 1)) }

// nanoseconds rounds seconds to the nearest nanosecond.
func nanoseconds(seconds float64) time.Duration {
	ns := float64(seconds * 1e9)
	if ns >= math.MaxInt64/2 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}
