// Package bias says how long events wait in the client, by the theory of queues: the client is a server of events, and what waits
// there is blamed on the server under test. docs/bias.md lists the models, where each holds and how each was checked.
//
// Times are float64 seconds since their moments are; recorded stamps are int64 nanoseconds since the start of the run.
package bias

import "math"

// Load is what a client has to handle and how fast it is. Models read from it what they need.
type Load struct {
	Rate      float64 // λ: events per second, over all loops
	Loops     int     // k: event loops that share nothing, each with its part of the streams; at least 1
	Service   Service // of one event
	Variation float64 // c_a²: squared coefficient of variation of the gaps between events, 1 for Poisson arrivals
	Step      Step    // how many events come together
	Spacing   float64 // τ: seconds between the events of one step as the server sends them
	Setup     Moments // of the wake-up: seconds from an event's arrival at a sleeping loop to the start of its service
	Vacation  Moments // of the absences: seconds a loop without events is away at a time, whether or not events come
}

// Moments are the first two raw moments of a span, in s and s². The zero value is a span of no length.
type Moments struct{ Mean, Second float64 }

// Service holds the raw moments of the time one event takes, in s, s² and s³.
type Service struct{ Mean, Second, Third float64 }

// Step describes how many events arrive at once (X). The zero value means one.
type Step struct {
	Mean  float64 // E[X]
	Pairs float64 // E[X(X−1)]
}

// ServiceOf makes the moments out of sums over n events, in seconds, their squares and their cubes. ok is false without events
// or with sums no times can have.
func ServiceOf(n int64, sum, squares, cubes float64) (s Service, ok bool) {
	if n < 1 || sum <= 0 || squares <= 0 || cubes <= 0 {
		return Service{}, false
	}
	of := float64(n)
	s = Service{sum / of, squares / of, cubes / of}
	const slack = 1 - 1e-9 // a constant's sums are equal up to rounding
	return s, s.Second >= s.Mean*s.Mean*slack && s.Mean*s.Third >= s.Second*s.Second*slack
}

// Variation is c_s² = Var S / E[S]², 0 for a constant and 1 for an exponential time.
func (s Service) Variation() float64 { return max(s.Second/(s.Mean*s.Mean)-1, 0) }

// Utilisation is ρ = λ·E[S]/k = λ/(kμ), the share of time that a loop is busy. From 1 on a queue grows without bound.
func (l Load) Utilisation() float64 { return l.perLoop().Rate * l.Service.Mean }

// perLoop is what one loop gets when each event goes to any of the k loops with equal chance: gaps become more like
// Poisson's, and a step is shared out. Measure each loop on its own, with Loops = 1, where the facts are there.
func (l Load) perLoop() Load {
	k := float64(max(l.Loops, 1))
	if l.Step == (Step{}) {
		l.Step.Mean = 1
	}
	l.Loops = 1
	l.Rate /= k
	l.Variation = 1 + (l.Variation-1)/k
	l.Step.Mean /= k
	l.Step.Pairs /= k * k
	l.Spacing *= k
	return l
}

// valid reports whether the numbers can be those of a load.
func (l Load) valid() bool {
	for _, v := range []float64{
		l.Rate, l.Service.Mean, l.Service.Second, l.Service.Third, l.Variation, l.Step.Mean, l.Step.Pairs, l.Spacing,
		l.Setup.Mean, l.Setup.Second, l.Vacation.Mean, l.Vacation.Second,
	} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return false
		}
	}
	return l.Rate > 0 && l.Service.Mean > 0
}

// stable reports whether the mean wait exists.
func (l Load) stable() bool { return l.valid() && l.Utilisation() < 1 }
