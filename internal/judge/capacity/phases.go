package capacity

import (
	"cmp"
	"math"
	"slices"

	"tare/internal/judge/stats"
)

// asked is a trial with the arrivals that the user asked for, at a rate that was found.
func (s *search) asked(phase Phase, rate float64, n float64) Load {
	return s.timed(Load{Phase: phase, Rate: rate, Tolerance: s.loose(rate)}, n, 1)
}

// confirm repeats the rate that was found, with the arrivals asked for. Together the runs are as long as one that tells the width. It takes more
// of them, and longer ones, to tell a share of failures.
func (s *search) confirm(rate float64) (Load, bool) {
	least := float64(leastRequests)
	if s.refuses() {
		least = refusedRequests
	}
	l := s.asked(Confirm, rate, max(least, s.needed(1+s.unevenness(), s.within(rate))/float64(s.Replications)))
	times := s.Replications
	if together(s.of(&l)).doubtful() {
		times *= 2
	}
	return l, s.wants(&l, times)
}

// refusedRequests is how many requests a run has that is to tell whether a few in a hundred are refused.
const refusedRequests = 2000

// joint is what several runs at one rate say together.
type joint struct {
	shortfall, err  float64
	failed, planned float64
}

func together(runs []*Trial) (j joint) {
	n := float64(len(runs))
	for _, t := range runs {
		j.shortfall += t.Shortfall / n
		j.err += t.Error * t.Error / (n * n)
		j.failed += t.Failed / n
		j.planned += float64(t.Planned)
	}
	j.err = math.Sqrt(j.err)
	return j
}

// doubtful reports whether chance alone could decide if too many fail.
func (j joint) doubtful() bool {
	const sure = 2.33
	return j.failed > 0 && math.Abs(j.failed-stats.MostFailed) < sure*math.Sqrt(j.failed/max(j.planned, 1))
}

// loose is the tolerance of one of the runs that are judged together.
func (s *search) loose(rate float64) float64 {
	return min(s.within(rate)*math.Sqrt(float64(s.Replications)), 0.5)
}

// refuted reports whether the runs that were to confirm a rate show together that it is not carried.
func (s *search) refuted(rate float64) bool {
	runs := s.of(&Load{Phase: Confirm, Rate: rate})
	if len(runs) < s.Replications {
		return false
	}
	j := together(runs)
	if j.doubtful() && len(runs) < 2*s.Replications {
		return false
	}
	return j.failed > stats.MostFailed || j.shortfall > s.within(rate)/2 && j.shortfall-2.33*j.err > 0
}

// plateau looks for the most that the server completes, whatever is in flight: from what was in flight at the rate found, twice as many
// each time, until that gains nothing. A server that refuses what is too much is not asked: refused requests free their places at once, and
// a closed loop would storm it.
func (s *search) plateau(low *level) (Load, bool) {
	if s.refuses() {
		return Load{}, false
	}
	standing := 1.0
	for _, t := range low.votes {
		standing = max(standing, t.InFlight)
	}
	before := 0.0
	for n := min(int(math.Ceil(1.5*standing))+1, s.MostInFlight); ; n *= 2 {
		n = min(n, s.MostInFlight)
		l := Load{Phase: Plateau, InFlight: n}
		if s.wants(&l, 1) {
			timed := s.timed(Load{Rate: low.rate}, s.needed(s.unevenness(), s.Width), 1)
			l.Dwell, l.Warmup = timed.Dwell, min(max(timed.Warmup, seconds(2*float64(n)/low.rate)), s.MostDwell)
			return l, true
		}
		runs := s.of(&l)
		if len(runs) == 0 || n == s.MostInFlight {
			return Load{}, false
		}
		if t := runs[0]; t.Failed > 0.1 || before > 0 && t.Rate.Value <= before*(1+s.Width/2) {
			return Load{}, false
		}
		before = runs[0].Rate.Value
	}
}

// refuses reports whether requests failed at a rate that was not carried.
func (s *search) refuses() bool {
	return slices.ContainsFunc(s.levels, func(l level) bool { return l.refused > 0 })
}

// curveRequests is how many requests a point of the curve has, if they fit into the longest trial.
const curveRequests = 1000

// Parts are the shares of the rate found at which the curve is taken.
func Parts() []float64 { return []float64{0.25, 0.5, 0.75, 0.9} }

func (s *search) curve(low *level) (Load, bool) {
	for _, part := range Parts() {
		if l := s.asked(Curve, rounded(part*low.rate), curveRequests); l.Rate >= s.LeastRate && s.wants(&l, 1) {
			return l, true
		}
	}
	return Load{}, false
}

// promise is how the objectives were met at a rate, with the arrivals asked for.
type promise struct {
	rate          float64
	good, planned int64
	trials        int
	missed        int     // of the trials, those that missed an objective on all requests together
	variance      float64 // of the number of good requests
}

// bounds are the 95 % interval of the share of good requests.
func (p *promise) bounds() (low, high float64) {
	half := 1.96 * math.Sqrt(p.variance) / float64(max(p.planned, 1))
	return p.share() - half, p.share() + half
}

func (p *promise) share() float64 { return float64(p.good) / float64(max(p.planned, 1)) }

// kept reports whether enough requests are good, and most trials kept what is asked of all requests together.
func (p *promise) kept(target float64) bool { return p.share() >= target && 2*p.missed <= p.trials }

// promises are all such rates, in ascending order.
func (s *search) promises() (all []promise) {
	for i := range s.trials {
		t := &s.trials[i]
		realistic := t.Load.Phase == Confirm || t.Load.Phase == Curve || t.Load.Phase == Objective
		if !realistic || !t.Valid || !t.Judged || t.Planned == 0 || t.Load.Phase == Confirm && s.refuted(t.Load.Rate) {
			continue
		}
		at := slices.IndexFunc(all, func(p promise) bool { return equal(p.rate, t.Load.Rate) })
		if at < 0 {
			all, at = append(all, promise{rate: t.Load.Rate}), len(all)
		}
		all[at].good += t.Good
		all[at].planned += t.Planned
		all[at].variance += t.GoodError * t.GoodError * float64(t.Planned) * float64(t.Planned)
		all[at].trials++
		if t.Missed {
			all[at].missed++
		}
	}
	slices.SortFunc(all, func(a, b promise) int { return cmp.Compare(a.rate, b.rate) })
	return all
}

// kept are the highest rate that met the objectives below the least that did not.
func (s *search) kept() (low, high *promise) {
	all := s.promises()
	for i := range all {
		if !all[i].kept(s.Target) {
			return low, &all[i]
		}
		low = &all[i]
	}
	return low, nil
}

// sure are the highest rate up to the one that was found of which it is sure that it meets the objectives, and the least from it on of which it is
// sure that it does not; 0 where there is none.
func (s *search) sure(found float64) (low, high float64) {
	for _, p := range s.promises() {
		least, most := p.bounds()
		failed := 2*p.missed > p.trials
		switch {
		case p.rate <= found*(1+1e-9) && least >= s.Target && !failed:
			low = p.rate
		case p.rate > found*(1+1e-9) && high <= 0 && (most < s.Target || failed):
			high = p.rate
		}
	}
	return low, high
}

// objectiveRequests is how many requests a trial has that is held to the objectives: they depend on each other, and are worth far fewer.
const objectiveRequests = 2000

// objective narrows down the largest rate that meets the objectives, and asks twice at both ends.
func (s *search) objective(stable *level) (Load, bool) {
	if s.Target <= 0 {
		return Load{}, false
	}
	low, high := s.kept()
	n := max(objectiveRequests, 20/(1-s.Target))
	try := func(rate float64, times int) (Load, bool) {
		l := s.asked(Objective, rate, n)
		return l, rate >= s.LeastRate && s.wants(&l, times)
	}
	switch {
	case high == nil:
		return Load{}, false // met wherever the load is carried, or nothing was judged
	case low == nil:
		if high.rate < stable.rate/40 {
			return Load{}, false
		}
		return try(rounded(high.rate/2), 1)
	}
	if mid := between(low.rate, high.rate); high.rate/low.rate > (1+s.Width)*(1+1e-9) && mid > low.rate && mid < high.rate {
		if l, ok := try(mid, 1); ok {
			return l, true
		}
	}
	for _, end := range []*promise{high, low} {
		if end.trials < 2 {
			again := s.asked(Objective, end.rate, n)
			if l, ok := try(end.rate, len(s.of(&again))+1); ok {
				return l, true
			}
		}
	}
	return Load{}, false
}

// How far above the rate found the server is overloaded, and what it gets after that.
const (
	overloadBy = 1.2
	recoverAt  = 0.9
)

func (s *search) overload(low *level) (Load, bool) {
	l := s.asked(Overload, rounded(overloadBy*low.rate), s.needed(1+s.unevenness(), overloadBy-1))
	l.Then = rounded(recoverAt * low.rate)
	l.Dwell = min(l.Dwell, s.MostDwell/3)
	l.Recovery = 3 * l.Dwell
	for _, t := range s.of(&Load{Phase: Curve, Rate: l.Then}) {
		l.Normal = max(l.Normal, t.InFlight)
	}
	l.Normal = 1.5*l.Normal + 5
	return l, l.Rate <= s.MostRate && l.Then >= s.LeastRate && s.wants(&l, 1)
}

// Recovery is how long after the end of an overload the backlog was back at what is normal. Dues and ends are the moments of all requests, in seconds,
// since the start; from is the end of the overload, until the end of the load. ok is false when it did not come back.
func Recovery(dues, ends []float64, from, until, normal float64) (after float64, ok bool) {
	type step struct {
		at  float64
		add int
	}
	steps := make([]step, 0, len(dues)+len(ends))
	for _, at := range dues {
		steps = append(steps, step{at, 1})
	}
	for _, at := range ends {
		steps = append(steps, step{at, -1})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), a.add-b.add) })
	backlog := 0
	for _, st := range steps {
		if st.at > until {
			break
		}
		backlog += st.add
		if st.at >= from && float64(backlog) <= normal {
			return st.at - from, true
		}
	}
	return 0, false
}
