package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"tare/internal/judge/stats"
)

// search is a look at all trials so far.
type search struct {
	Config
	trials []Trial // all
	levels []level // of open-loop trials with constant arrivals, by rate
	base   *Trial  // the idle server; nil before it was measured
	cut    string  // why the search ended early
}

// level is the votes at one rate.
type level struct {
	rate       float64
	fine       int // stable at the width asked for
	coarse     int // stable at a wider tolerance only
	failed     int
	unclear    int
	refused    int     // of failed, those in which requests failed
	overturned bool    // it did not stand when it was confirmed
	blocked    bool    // the client could not offer it
	tolerance  float64 // least at which it was stable
	votes      []*Trial
}

func newSearch(c Config, trials []Trial) *search {
	if c.Biased {
		trials = slices.Clone(trials)
		for i := range trials {
			trials[i].Valid = true
		}
	}
	s := &search{Config: c, trials: trials}
	for i := range trials {
		t := &trials[i]
		switch t.Load.Phase {
		case Baseline:
			if t.Valid {
				s.base = t
			}
		case Bracket, Refine:
			s.vote(t)
		}
	}
	slices.SortFunc(s.levels, func(a, b level) int { return cmp.Compare(a.rate, b.rate) })
	for i := range s.levels {
		l := &s.levels[i]
		l.overturned = s.refuted(l.rate)
	}
	return s
}

func (s *search) vote(t *Trial) {
	at := slices.IndexFunc(s.levels, func(l level) bool { return equal(l.rate, t.Load.Rate) })
	if at < 0 {
		s.levels = append(s.levels, level{rate: t.Load.Rate})
		at = len(s.levels) - 1
	}
	l := &s.levels[at]
	switch {
	case !t.Valid:
		l.blocked = s.invalid(&t.Load) >= s.Repeats
		return
	case t.State == stats.Overloaded:
		l.failed++
		if t.Failed > stats.MostFailed {
			l.refused++
		}
	case t.State == stats.Stable && t.Load.Tolerance <= s.within(t.Load.Rate)*(1+1e-9):
		l.fine++
	case t.State == stats.Stable:
		l.coarse++
	default:
		l.unclear++
	}
	if t.State == stats.Stable && (l.tolerance <= 0 || t.Load.Tolerance < l.tolerance) {
		l.tolerance = t.Load.Tolerance
	}
	l.votes = append(l.votes, t)
}

// standing is what the votes at a level come to.
type standing int

const (
	open    standing = iota // more votes are needed
	carried                 // the rate is a lower bound
	broken                  // it is an upper bound
)

// mostUnclear is how many trials in a row may fail to tell before a rate counts as one that was not shown to be stable.
const mostUnclear = 3

// mostVotes is how many votes a level may have; if they are even by then, it counts as not carried.
const mostVotes = 7

// stands counts the votes. One at the width asked for outweighs all wider ones: those were asked an easier question.
func (l *level) stands() standing {
	passed := l.fine
	if passed == 0 {
		passed = l.coarse
	}
	switch {
	case l.overturned, l.blocked:
		return broken
	case l.failed > passed:
		return broken
	case passed > l.failed:
		return carried
	case l.fine+l.coarse+l.failed+l.unclear >= mostVotes, passed+l.failed == 0 && l.unclear >= mostUnclear:
		return broken
	}
	return open
}

// confirmed reports whether a broken level is known to be one by more than one vote.
func (l *level) confirmed() bool {
	passed := max(l.fine, min(l.coarse, 1))
	return l.overturned || l.blocked || l.failed >= passed+2 || l.failed == 0 || len(l.votes) >= mostVotes
}

// unoffered reports whether the rate is an upper bound of the client alone: there is nothing to narrow down.
func (l *level) unoffered() bool { return l.blocked && l.failed == 0 }

// bounds are the highest rate that was carried below the least that was not. A rate above, that was carried, counts for nothing once that is
// confirmed: what a server can carry, it can carry less of.
func (s *search) bounds() (low, high *level) {
	for i := range s.levels {
		l := &s.levels[i]
		switch l.stands() {
		case broken:
			return low, l
		case carried:
			low = l
		}
	}
	return low, nil
}

// next finds the next trial; ok is false when nothing more is to be measured.
func (s *search) next() (load Load, ok bool) {
	if s.base == nil {
		load := Load{Phase: Baseline, InFlight: 1, Requests: idleRequests, Dwell: s.MostDwell}
		return load, s.invalid(&load) < s.Repeats
	}
	if s.base.Completed == 0 {
		return Load{}, false
	}
	if load, ok := s.find(); ok {
		return load, true
	}
	low, _ := s.bounds()
	if low == nil {
		return Load{}, false
	}
	if load, ok := s.confirm(low.rate); ok {
		return load, true
	}
	if s.Only {
		return Load{}, false
	}
	for _, phase := range []func(*level) (Load, bool){s.plateau, s.curve, s.objective, s.overload} {
		if load, ok := phase(low); ok {
			return load, true
		}
	}
	return Load{}, false
}

// idleRequests is how many requests the idle server is measured by.
const idleRequests = 30

// mostHalvings is how often the rate is halved before a server counts as one that carries nothing.
const mostHalvings = 6

// find brackets the largest stable rate and narrows the bracket down.
func (s *search) find() (load Load, ok bool) {
	first := s.first()
	if len(s.levels) == 0 {
		return s.even(Bracket, first, 1), true
	}
	low, high := s.bounds()
	if l := s.undecided(low, high); l != nil {
		return s.even(Refine, l.rate, s.Width), true
	}
	switch {
	case low == nil && high == nil: // no trial counts yet
		return s.even(Bracket, s.levels[0].rate, 1), true
	case high == nil:
		if low.rate >= s.MostRate || equal(low.rate, s.MostRate) {
			return s.assure(low)
		}
		return s.even(Bracket, min(rounded(2*low.rate), s.MostRate), 1), true
	case low == nil && !high.confirmed():
		return s.even(Bracket, high.rate, 1), true
	case low == nil:
		if s.hopeless() || high.rate <= max(s.LeastRate, first/math.Pow(2, mostHalvings))*(1+1e-9) {
			return Load{}, false
		}
		return s.even(Bracket, max(rounded(high.rate/2), s.LeastRate), 1), true
	}
	if mid := between(low.rate, high.rate); !high.unoffered() && high.rate/low.rate > (1+s.Width)*(1+1e-9) && mid > low.rate && mid < high.rate && s.telling(low, high) {
		return s.even(Refine, mid, (high.rate/low.rate-1)/2), true
	}
	if load, ok := s.assure(low); ok {
		return load, true
	}
	if !high.confirmed() {
		return s.even(Refine, high.rate, s.Width), true
	}
	return Load{}, false
}

// hopeless reports whether no rate is carried since requests fail, and a quarter of the rate does not help: they fail whatever the rate.
func (s *search) hopeless() bool {
	least, most := &s.levels[0], &s.levels[len(s.levels)-1]
	failing := func(l *level) (share float64) {
		for _, t := range l.votes {
			share += t.Failed / float64(len(l.votes))
		}
		return share
	}
	return least.refused > 0 && least.rate <= most.rate/4*1.01 && failing(least) >= failing(most)/2
}

// telling reports whether the bracket is wider than what the longest trial tells apart: narrower, votes would be those of chance.
func (s *search) telling(low, high *level) bool {
	return high.rate/low.rate > (1+s.within(low.rate))*(1+1e-9)
}

// assure asks for a vote at the width wanted at the lower bound, which may have been carried at a wider tolerance only.
func (s *search) assure(low *level) (Load, bool) {
	return s.even(Refine, low.rate, s.Width), low.fine == 0
}

// undecided is a level at or between the bounds that needs further votes.
func (s *search) undecided(low, high *level) *level {
	for i := range s.levels {
		l := &s.levels[i]
		if len(l.votes) > 0 && l.stands() == open && (low == nil || l.rate > low.rate) && (high == nil || l.rate < high.rate) {
			return l
		}
	}
	return nil
}

// first is where the search begins: as fast as an idle server answered one request after another.
func (s *search) first() float64 {
	rate := (1 - s.base.Failed) / max(s.base.E2E, 1e-6)
	return min(max(rounded(rate), s.LeastRate), s.MostRate)
}

// rounded is a rate in four digits, which people can read.
func rounded(rate float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 4, 64), 64)
	if err != nil {
		return rate
	}
	return r
}

func between(low, high float64) float64 { return rounded(math.Sqrt(low * high)) }

// even is a trial with constant arrivals, which tell a capacity soonest.
func (s *search) even(phase Phase, rate, tolerance float64) Load {
	tolerance = min(max(tolerance, s.within(rate)), 0.5)
	return s.timed(Load{Phase: phase, Rate: rate, Even: true, Tolerance: tolerance}, s.needed(s.unevenness(), tolerance), s.hurried(rate))
}

// timed gives a load its window, long enough for n requests and for a few of the longest, and its warm-up.
func (s *search) timed(l Load, n float64, stretch float64) Load {
	longest := seconds(3 * s.base.E2EP99)
	l.Dwell = min(max(seconds(stretch*n/l.Rate), longest, s.LeastDwell), s.MostDwell)
	l.Warmup = min(max(longest, s.LeastDwell/3), s.MostDwell)
	return l
}

func seconds(v float64) time.Duration {
	return time.Duration(min(v, 1e9) * 1e9)
}

// The number of requests that tell an overload ε: √(1.2·c²/n)·(2.33+1.28) ≤ ε, and a third more, since c² is itself an estimate.
const (
	needFactor    = 1.2 * 13 * 4 / 3
	leastRequests = 200
)

func (s *search) needed(unevenness, tolerance float64) float64 {
	return max(leastRequests, needFactor*unevenness/(tolerance*tolerance))
}

// within is the finest tolerance that the longest trial at a rate can keep: the width asked for, or more.
func (s *search) within(rate float64) float64 {
	n := rate * s.MostDwell.Seconds()
	return max(s.Width, math.Sqrt(needFactor*s.unevenness()/n))
}

// unevenness is c_a² + c_s² of a load with constant arrivals: what the trials so far show, in the middle, or the variation of the idle
// server's times. A server that is overloaded shows it; one that is not, sends what comes.
func (s *search) unevenness() float64 {
	const least, most = 0.02, 10
	var seen []float64
	for i := range s.trials {
		t := &s.trials[i]
		if t.Valid && t.Load.Even && t.State == stats.Overloaded && t.Failed <= stats.MostFailed && t.Planned > 0 {
			seen = append(seen, t.Error*t.Error*float64(t.Planned)/1.2)
		}
	}
	c2 := s.base.Varies * s.base.Varies
	if len(seen) > 0 {
		slices.Sort(seen)
		c2 = seen[len(seen)/2]
	}
	return min(max(c2, least), most)
}

// hurried stretches a trial where earlier ones at the rate did not tell.
func (s *search) hurried(rate float64) float64 {
	stretch := 1.0
	for _, l := range s.levels {
		if equal(l.rate, rate) && l.fine+l.failed+l.coarse == 0 {
			stretch = math.Pow(2, float64(l.unclear))
		}
	}
	return stretch
}

// count is how many trials there were at a load, invalid how many of the last in a row do not count.
func (s *search) count(l *Load) (n int) {
	for i := range s.trials {
		if s.trials[i].Load.same(l) {
			n++
		}
	}
	return n
}

func (s *search) invalid(l *Load) (n int) {
	for i := range s.trials {
		switch t := &s.trials[i]; {
		case !t.Load.same(l):
		case t.Valid:
			n = 0
		default:
			n++
		}
	}
	return n
}

// of gathers the valid trials at a load.
func (s *search) of(l *Load) (all []*Trial) {
	for i := range s.trials {
		if t := &s.trials[i]; t.Valid && t.Load.same(l) {
			all = append(all, t)
		}
	}
	return all
}

// wants reports whether a load is still to be measured so many times; one at which the client failed too often is given up.
func (s *search) wants(l *Load, times int) bool {
	return len(s.of(l)) < times && s.invalid(l) < s.Repeats
}

// given lists the loads that were given up, since the client could not offer them.
func (s *search) given() (all []string) {
	seen := map[string]bool{}
	for i := range s.trials {
		t := &s.trials[i]
		if t.Valid || s.invalid(&t.Load) < s.Repeats {
			continue
		}
		if name := fmt.Sprintf("%s at %s: %s", t.Load.Phase, t.Load.name(), t.Fault); !seen[t.Load.name()] {
			seen[t.Load.name()] = true
			all = append(all, name)
		}
	}
	return all
}

func (l *Load) name() string {
	if l.Rate > 0 {
		return fmt.Sprintf("%.4g/s", l.Rate)
	}
	return fmt.Sprintf("%d in flight", l.InFlight)
}
