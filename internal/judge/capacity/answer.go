package capacity

import (
	"fmt"
	"strings"
)

// Answer is what a search came to.
type Answer struct {
	Stable    Limit   `json:"stable"`    // λ_stab, the largest stable rate of an open loop
	Objective Limit   `json:"objective"` // λ_SLO, the largest rate that meets the objectives
	Plateau   Limit   `json:"plateau"`   // X_max, the most that completes in a closed loop
	Valid     bool    `json:"valid"`
	Reason    string  `json:"reason"` // why it is not valid, or what stands behind it
	Checks    []Check `json:"checks"`
	Cut       string  `json:"cut,omitempty"` // why the search ended early
}

// Limit is a rate in requests per second. One that is not known says why.
type Limit struct {
	Known      bool    `json:"known"`
	Why        string  `json:"why,omitempty"`
	Rate       float64 `json:"rate_per_s,omitempty"`
	Low        float64 `json:"low_per_s,omitempty"`
	High       float64 `json:"high_per_s,omitempty"`
	Above      bool    `json:"above,omitempty"`      // no upper end was found: it is this or more
	Resolution float64 `json:"resolution,omitempty"` // share of the rate within which it is known
}

// Outcome is what became of a check.
type Outcome string

const (
	Passed       Outcome = "passed"
	Failed       Outcome = "failed"
	Unobservable Outcome = "unobservable"
)

// Check is a condition on a claim of capacity, K1 to K6 of docs/capacity.md.
type Check struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Outcome  Outcome `json:"outcome"`
	Measured string  `json:"measured"`
	advisory bool
}

func (s *search) answer() Answer {
	a := Answer{Cut: s.cut}
	low, high := s.bounds()
	a.Stable = s.stable(low, high)
	a.Plateau = s.most()
	a.Objective = s.promised(a.Stable)
	if !a.Stable.Known {
		a.Checks = []Check{}
		a.Reason = a.Stable.Why
		return a
	}
	a.Checks = []Check{s.bracketed(low, high), s.clean(), s.fine(a.Stable), ordered(&a, s.Width), s.roomy(), s.recovered()}
	a.Valid, a.Reason = true, "every check was passed"
	var bad, unseen []string
	for _, c := range a.Checks {
		switch {
		case c.Outcome == Failed && !c.advisory:
			bad = append(bad, c.ID+" "+c.Name+": "+c.Measured)
		case c.Outcome != Passed:
			unseen = append(unseen, c.ID+" "+c.Name)
		}
	}
	switch {
	case len(bad) > 0:
		a.Valid, a.Reason = false, strings.Join(bad, "; ")
	case len(unseen) > 0:
		a.Reason = "no check failed; not shown: " + strings.Join(unseen, ", ")
	}
	return a
}

// stable is the largest stable rate with its interval: below, by the tolerance at which it was called stable; above, by the least rate that
// was not carried.
func (s *search) stable(low, high *level) Limit {
	if low == nil {
		return Limit{Why: s.nothing(high)}
	}
	l := Limit{Known: true, Rate: low.rate, Low: low.rate / (1 + low.tolerance), Resolution: low.tolerance}
	if high == nil || high.unoffered() {
		l.Above = true
		return l
	}
	l.High = high.rate
	l.Resolution = max(l.Resolution, high.rate/low.rate-1)
	return l
}

// nothing says why no rate was carried.
func (s *search) nothing(high *level) string {
	switch {
	case s.base == nil && len(s.trials) == 0:
		return "nothing was measured"
	case s.base == nil:
		return "the idle server could not be measured: " + s.trials[len(s.trials)-1].Fault
	case s.base.Completed == 0:
		return fmt.Sprintf("no request completed: of %d sent one at a time, none", s.base.Planned)
	case high == nil:
		return "no rate was carried by the time the search ended"
	case high.blocked:
		return fmt.Sprintf("the client could not offer %.4g/s", high.rate)
	case high.refused > 0:
		return fmt.Sprintf("requests fail at every rate that was tried, down to %.4g/s", high.rate)
	}
	return fmt.Sprintf("no rate that was tried is carried, down to %.4g/s", high.rate)
}

// most is the plateau: the highest rate of completions in a closed loop.
func (s *search) most() Limit {
	best := Limit{Why: "no closed loop was measured"}
	if s.refuses() {
		best.Why = "the server refuses what is too much, which a closed loop would only turn into a storm"
	}
	for i := range s.trials {
		t := &s.trials[i]
		if t.Load.Phase == Plateau && t.Valid && t.Rate.Value > best.Rate {
			best = Limit{Known: true, Rate: t.Rate.Value, Low: t.Rate.Low, High: t.Rate.High}
			if t.Rate.High > t.Rate.Low {
				best.Resolution = (t.Rate.High - t.Rate.Low) / 2 / t.Rate.Value
			}
			best.Above = t.Load.InFlight >= s.MostInFlight
		}
	}
	return best
}

// promised is the largest rate that meets the objectives. Its interval is from the highest rate that surely meets them to the least that surely does not, or
// that is not stable.
func (s *search) promised(stable Limit) Limit {
	if s.Target <= 0 {
		return Limit{Why: "no objectives were given"}
	}
	if !stable.Known {
		return Limit{Why: stable.Why}
	}
	low, high := s.kept()
	switch {
	case low == nil && high == nil:
		return Limit{Why: "no trial was held against the objectives"}
	case low == nil:
		return Limit{Why: fmt.Sprintf("%.4g %% of the requests are to meet the objectives; at %.4g/s, the least rate tried, %.4g %% do", 100*s.Target, high.rate, 100*high.share())}
	}
	l := Limit{Known: true, Rate: low.rate}
	l.Low, l.High = s.sure(low.rate)
	if l.High <= 0 {
		l.High, l.Above = stable.High, stable.Above
	}
	switch {
	case l.High > 0 && l.Low > 0:
		l.Resolution = max(l.High/l.Rate, l.Rate/l.Low) - 1
	case !l.Above:
		l.Resolution = 1
	}
	return l
}

// bracketed (K1): a pass at the rate claimed, and a confirmed fail not far above.
func (s *search) bracketed(low, high *level) Check {
	c := Check{ID: "K1", Name: "bracket", Outcome: Passed}
	switch {
	case high == nil || high.unoffered():
		c.Outcome = Unobservable
		c.Measured = fmt.Sprintf("%.4g/s is carried; no higher rate was refuted", low.rate)
		return c
	case low.fine == 0 || !high.confirmed() || high.rate/low.rate > (1+s.within(low.rate))*(1+1e-9):
		c.Outcome = Failed
	}
	c.Measured = fmt.Sprintf("carried at %.4g/s in %d of %d trials, not at %.4g/s in %d of %d", low.rate, low.fine+low.coarse, len(low.votes), high.rate,
		len(high.votes)-high.fine-high.coarse, len(high.votes))
	if high.overturned {
		c.Measured += "; there the runs to confirm it refuted it"
	}
	return c
}

// clean (K2): trials whose client gates failed were repeated, and none given up.
func (s *search) clean() Check {
	c := Check{ID: "K2", Name: "client", Outcome: Passed}
	n := 0
	for i := range s.trials {
		if s.trials[i].Fault != "" {
			n++
		}
	}
	c.Measured = fmt.Sprintf("%d of %d trials failed the client's gates; they are not counted", n, len(s.trials))
	if s.Biased && n > 0 {
		c.Outcome = Failed
		c.Measured = fmt.Sprintf("%d of %d trials failed the client's gates, and were counted on request", n, len(s.trials))
	}
	if given := s.given(); len(given) > 0 {
		c.Outcome = Failed
		c.Measured += "; given up: " + strings.Join(given, ", ")
	}
	return c
}

// fine (K3): the trials lasted long enough for the width. Where they did not, the answer is as wide as they allow.
func (s *search) fine(l Limit) Check {
	c := Check{ID: "K3", Name: "dwell", Outcome: Passed, advisory: true}
	c.Measured = fmt.Sprintf("known to %.3g %%", 100*l.Resolution)
	if l.Resolution > s.Width*(1+1e-6) {
		c.Outcome = Failed
		c.Measured += fmt.Sprintf(", not to %.3g %%: trials of %v tell no more at this rate", 100*s.Width, s.MostDwell)
	}
	return c
}

// ordered (K4): no rate may be above what bounds it.
func ordered(a *Answer, width float64) Check {
	c := Check{ID: "K4", Name: "order", Outcome: Passed}
	var parts []string
	hold := func(text string, ok bool) {
		if parts = append(parts, text); !ok {
			c.Outcome = Failed
		}
	}
	if a.Objective.Known {
		hold(fmt.Sprintf("λ_SLO %.4g ≤ λ_stab %.4g", a.Objective.Rate, a.Stable.Rate), a.Objective.Rate <= a.Stable.Rate*(1+1e-9))
	}
	if a.Plateau.Known {
		slack := 1 + max(width, a.Stable.Resolution) + a.Plateau.Resolution
		hold(fmt.Sprintf("λ_stab %.4g ≤ X_max %.4g × %.3g", a.Stable.Rate, a.Plateau.Rate, slack), a.Stable.Rate <= a.Plateau.Rate*slack)
	}
	if len(parts) == 0 {
		return Check{ID: c.ID, Name: c.Name, Outcome: Unobservable, Measured: "there is nothing to hold it against"}
	}
	c.Measured = strings.Join(parts, ", ")
	return c
}

// roomy (K5): the client can do twice the highest rate it offered.
func (s *search) roomy() Check {
	c := Check{ID: "K5", Name: "client capacity", Outcome: Passed}
	highest := 0.0
	for i := range s.trials {
		highest = max(highest, s.trials[i].Load.Rate, s.trials[i].Rate.Value)
	}
	if s.ClientRequests <= 0 {
		c.Outcome, c.Measured = Unobservable, "this machine was not calibrated for such a load"
		return c
	}
	c.Measured = fmt.Sprintf("%.4g requests/s calibrated, %.4g offered at most", s.ClientRequests, highest)
	if s.ClientRequests < 2*highest {
		c.Outcome = Failed
	}
	return c
}

// recovered (K6): what became of the server after an overload is on record.
func (s *search) recovered() Check {
	c := Check{ID: "K6", Name: "recovery", Outcome: Unobservable, Measured: "no overload was made"}
	for i := range s.trials {
		t := &s.trials[i]
		if t.Load.Phase != Overload || !t.Valid {
			continue
		}
		c.Outcome = Passed
		c.Measured = fmt.Sprintf("after %v at %.4g/s, back to normal %.3g s into %.4g/s", t.Load.Dwell, t.Load.Rate, t.Recovery, t.Load.Then)
		if !t.Recovered {
			c.Measured = fmt.Sprintf("after %v at %.4g/s, not back to normal within %v at %.4g/s", t.Load.Dwell, t.Load.Rate, t.Load.Recovery, t.Load.Then)
		}
	}
	return c
}
