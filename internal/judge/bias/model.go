package bias

import "math"

// Model is one way to predict the mean wait of an event, in seconds, between its arrival and the start of its service.
type Model struct {
	Name    string
	Formula string
	Holds   string // where it does
	mean    func(loop Load) float64
}

// Models lists the models. Sources and checks are in docs/bias.md.
func Models() []Model {
	return []Model{
		{"p-k", "λE[S²] / 2(1−ρ)", "arrivals are Poisson: many streams, well mixed", pollaczekKhinchine},
		{"p-k + setup", "p-k + (2E[D] + λE[D²]) / 2(1+λE[D])", "as p-k; a loop without events sleeps and must be woken", withSetup},
		{"p-k + vacation", "p-k + E[V²] / 2E[V]", "as p-k; a loop without events is away for spans of its own", withVacation},
		{"kingman", "E[S]·ρ/(1−ρ)·(c_a²+c_s²)/2", "gaps are independent of each other; close as ρ nears 1", kingman},
		{"m^x/g/1", "λE[S²] / 2(1−ρ) + E[X(X−1)]E[S] / 2E[X](1−ρ)", "steps of X events at once, the steps Poisson", batchPoisson},
		{"batch drain", "E[X(X−1)]/2E[X]·(E[S]−τ)", "engine steps: X events in a row, the next step after the last one was drained", batchDrain},
	}
}

// Mean predicts the mean wait. ok is false when it is unbounded, at ρ ≥ 1, and for a load whose numbers make no sense.
func (m Model) Mean(l Load) (seconds float64, ok bool) {
	if !l.stable() {
		return 0, false
	}
	return m.mean(l.perLoop()), true
}

// pollaczekKhinchine is E[W] of M/G/1, exact (Pollaczek 1930, Khinchine 1932).
func pollaczekKhinchine(l Load) float64 {
	return l.Rate * l.Service.Second / (2 * (1 - l.Utilisation()))
}

// withSetup adds what the first event of each busy period waits for the wake-up D and passes on (Welch 1964).
func withSetup(l Load) float64 { return pollaczekKhinchine(l) + setup(l.Rate, l.Setup) }

func setup(rate float64, d Moments) float64 {
	return (2*d.Mean + rate*d.Second) / (2 * (1 + rate*d.Mean))
}

// withVacation adds the rest of the absence an event comes into (Fuhrmann and Cooper 1985).
func withVacation(l Load) float64 {
	if l.Vacation.Mean <= 0 {
		return pollaczekKhinchine(l)
	}
	return pollaczekKhinchine(l) + l.Vacation.Second/(2*l.Vacation.Mean)
}

// kingman is the two-moment approximation of GI/G/1 (Kingman 1961): the heavy-traffic limit scaled by ρ, exact for Poisson
// arrivals. Gaps that depend on each other, as those of periodic streams do, break it.
func kingman(l Load) float64 {
	rho := l.Utilisation()
	return l.Service.Mean * rho / (1 - rho) * (l.Variation + l.Service.Variation()) / 2
}

// batchPoisson is E[W] of an event in M^X/G/1, exact (Burke 1975). The wake-up, if any, is per step.
func batchPoisson(l Load) float64 {
	left := 1 - l.Utilisation()
	wait := l.Rate*l.Service.Second/(2*left) + l.Step.Pairs*l.Service.Mean/(2*l.Step.Mean*left)
	return wait + setup(l.Rate/l.Step.Mean, l.Setup)
}

// batchDrain is the mean wait in a step that comes in a row of spacing τ at a loop that has drained the one before: the
// n-th event waits (n−1)(E[S]−τ). It does not depend on ρ. Where E[S] is near τ or below it the wait is chance, and more than this.
func batchDrain(l Load) float64 {
	return l.Step.Pairs / (2 * l.Step.Mean) * max(l.Service.Mean-l.Spacing, 0)
}

// Spread is the distribution of the wait in M/G/1 as far as two moments tell it.
type Spread struct {
	Mean   float64 // E[W], s
	Second float64 // E[W²], s²
	Busy   float64 // ρ: the share of events that wait at all
}

// Wait predicts the distribution of the wait in M/G/1. ok is false when it is unbounded.
func Wait(l Load) (s Spread, ok bool) {
	if !l.stable() {
		return Spread{}, false
	}
	l = l.perLoop()
	mean := pollaczekKhinchine(l)
	rho := l.Utilisation()
	return Spread{mean, 2*mean*mean + l.Rate*l.Service.Third/(3*(1-rho)), rho}, true
}

// Beyond is P(W > t) ≈ ρ·exp(−t·ρ/E[W]), exact for exponential service. Service with rare long times at a low ρ, such as a
// collector's pauses, has a far longer tail than this: a half more at p99 for c_s² = 10 and ρ = 0.1.
func (s Spread) Beyond(t float64) float64 {
	switch {
	case t < 0:
		return 1
	case s.Mean <= 0:
		return 0
	}
	return s.Busy * math.Exp(-t*s.Busy/s.Mean)
}

// Quantile is the wait that a share q of the events does not exceed, by the same approximation: (E[W]/ρ)·ln(ρ/(1−q)), and 0 up
// to q = 1−ρ. ok is false outside of [0,1).
func (s Spread) Quantile(q float64) (seconds float64, ok bool) {
	if !(q >= 0 && q < 1) {
		return 0, false
	}
	if s.Mean <= 0 || q <= 1-s.Busy {
		return 0, true
	}
	return s.Mean / s.Busy * math.Log(s.Busy/(1-q)), true
}

// Deviation is the standard deviation of the wait, in seconds.
func (s Spread) Deviation() float64 { return math.Sqrt(max(s.Second-s.Mean*s.Mean, 0)) }

// Cantelli bounds the wait at q from above whatever its distribution: E[W] + σ√(q/(1−q)). ok is false outside of [0,1).
func (s Spread) Cantelli(q float64) (seconds float64, ok bool) {
	if !(q >= 0 && q < 1) {
		return 0, false
	}
	return s.Mean + s.Deviation()*math.Sqrt(q/(1-q)), true
}
