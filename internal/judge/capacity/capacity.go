// Package capacity decides what to measure next until it is known how much load a server can carry.
//
// The decision is a pure function of the trials so far: Next reads no clock and sends nothing. How a trial is carried out is the caller's.
package capacity

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tare/internal/judge/stats"
)

// Config says how closely to look, and within which limits.
type Config struct {
	Width          float64       `json:"width"`                           // relative width of the interval that the largest stable rate is to be known to, such as 0.05
	LeastRate      float64       `json:"least_rate_per_s"`                // below which no trial goes
	MostRate       float64       `json:"most_rate_per_s"`                 // beyond which no open-loop trial goes
	MostInFlight   int           `json:"most_concurrency"`                // beyond which no closed-loop trial goes
	LeastDwell     time.Duration `json:"least_window_ns"`                 // window of the shortest trial
	MostDwell      time.Duration `json:"most_window_ns"`                  // of the longest; it bounds the resolution
	Time           time.Duration `json:"time_ns"`                         // for all trials; none begins after it; 0 for no limit
	MostTrials     int           `json:"most_trials"`                     // of the whole search
	Replications   int           `json:"replications"`                    // runs that confirm the rate that was found
	Repeats        int           `json:"repeats"`                         // trials at one load in a row whose client gates fail before that load is given up
	Target         float64       `json:"target,omitempty"`                // share of requests that are to meet their objectives; 0 where there are none
	ClientRequests float64       `json:"client_requests_per_s,omitempty"` // that the client was calibrated for; 0 where that is not known
	Biased         bool          `json:"biased,omitempty"`                // count trials whose client gates fail, and call the answer not valid
	Only           bool          `json:"only,omitempty"`                  // the largest stable rate alone: no plateau, curve, objectives or overload
}

// Defaults are the values of a search that nothing is asked of.
func Defaults() Config {
	return Config{
		Width: 0.05, LeastRate: 0.001, MostRate: 1e5, MostInFlight: 1 << 14, LeastDwell: 6 * time.Second, MostDwell: 5 * time.Minute,
		MostTrials: 120, Replications: 5, Repeats: 3,
	}
}

// Check reports all that is wrong with c.
func (c *Config) Check() error {
	var faults []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	must(c.Width >= 0.005 && c.Width <= 0.5, "width: must be from 0.005 to 0.5, got %v", c.Width)
	must(c.LeastRate > 0 && c.LeastRate <= c.MostRate && !math.IsInf(c.MostRate, 0), "rates: must be above 0 and in order, got %v to %v", c.LeastRate, c.MostRate)
	must(c.MostInFlight >= 1, "concurrency: must be at least 1, got %d", c.MostInFlight)
	must(c.LeastDwell >= 5*time.Second && c.LeastDwell <= c.MostDwell, "dwell: must be at least 5s and in order, got %v to %v", c.LeastDwell, c.MostDwell)
	must(c.Time >= 0, "time: must not be below 0s, got %v", c.Time)
	must(c.MostTrials >= 1 && c.Replications >= 1 && c.Repeats >= 1, "trials, replications, repeats: must be at least 1, got %d, %d, %d", c.MostTrials, c.Replications, c.Repeats)
	must(c.Target >= 0 && c.Target < 1 && !math.IsNaN(c.Target), "target: must be from 0 to below 1, got %v", c.Target)
	must(c.ClientRequests >= 0, "client: must not be below 0 requests/s, got %v", c.ClientRequests)
	return errors.Join(faults...)
}

// Phase is what a trial is for.
type Phase string

const (
	Baseline  Phase = "baseline"  // one request at a time, on an idle server
	Bracket   Phase = "bracket"   // constant arrivals, twice the rate each time
	Refine    Phase = "refine"    // constant arrivals, between the largest rate carried and the least that was not
	Plateau   Phase = "plateau"   // closed loop, twice the requests in flight each time
	Confirm   Phase = "confirm"   // the arrivals asked for, at the rate that was found
	Curve     Phase = "curve"     // the same at parts of it
	Objective Phase = "objective" // the same, for the largest rate that meets the objectives
	Overload  Phase = "overload"  // above it, and back below
)

// Load is one trial to be made. It has either a rate or a number in flight.
type Load struct {
	Phase     Phase         `json:"phase"`
	Rate      float64       `json:"rate_per_s,omitempty"`
	InFlight  int           `json:"concurrency,omitempty"`
	Requests  int64         `json:"requests,omitempty"` // ends a closed loop, beside Dwell
	Even      bool          `json:"constant_arrivals,omitempty"`
	Warmup    time.Duration `json:"warmup_ns"`             // the same load before, which nothing counts
	Dwell     time.Duration `json:"window_ns"`             // what is counted
	Tolerance float64       `json:"tolerance,omitempty"`   // overload, as a share, that the trial is to exclude
	Then      float64       `json:"then_per_s,omitempty"`  // of an overload, the rate after it
	Recovery  time.Duration `json:"recovery_ns,omitempty"` // how long that goes on
	Normal    float64       `json:"normal,omitempty"`      // backlog at that rate, in requests, up to which the server has recovered
	Number    int           `json:"number"`                // of the trial among those at this load, from 1: each has a seed of its own
}

// Span is how long the trial takes, without what the last replies take.
func (l *Load) Span() time.Duration { return l.Warmup + l.Dwell + l.Recovery }

// same reports whether two loads measure the same thing.
func (l *Load) same(m *Load) bool {
	return l.Phase.group() == m.Phase.group() && equal(l.Rate, m.Rate) && l.InFlight == m.InFlight && equal(l.Then, m.Then)
}

// group puts the phases together whose trials at one rate are votes on the same question.
func (p Phase) group() Phase {
	if p == Bracket {
		return Refine
	}
	return p
}

func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// Trial is what became of a load.
type Trial struct {
	Load  Load
	Took  time.Duration
	Valid bool   // the client's gates were passed: else the trial counts for nothing and is repeated
	Fault string // why it is not valid; with Config.Biased such a trial counts all the same

	Planned   int64
	Completed int64
	Good      int64   // completed, and every objective on single requests met; of Planned
	Judged    bool    // there are objectives, and Good counts
	GoodError float64 // standard error of Good over Planned, which allows for requests that meet the same queue
	Missed    bool    // an objective on all requests together, such as a percentile, was missed

	State     stats.State // of an open stage, at the tolerance
	Why       string
	Shortfall float64 // share of the load left standing
	Error     float64 // its standard error
	Failed    float64 // share of requests

	Rate     Range   // completed requests per second
	E2E      float64 // mean, seconds
	E2EP99   float64
	TTFTP50  float64
	Varies   float64 // coefficient of variation of E2E; of an idle server, that of its service times
	InFlight float64 // mean number

	Recovered bool    // after an overload, the backlog came down again
	Recovery  float64 // how long that took, seconds
}

// Range is a figure with its 95 % interval. Without an interval Low and High are 0.
type Range struct{ Value, Low, High float64 }

// Step is the next trial, or the answer.
type Step struct {
	Load   Load
	Done   bool
	Answer Answer
}

// Next returns what to measure after the trials so far, in their order, or the answer once nothing more is to be measured. It always
// ends: no load is given more trials than Config allows, and no search more than MostTrials. The answer of a search that was cut short is
// what is known by then. c must have passed Check.
func Next(c Config, trials []Trial) Step {
	s := newSearch(c, trials)
	load, ok := s.next()
	if ok {
		if why := s.over(); why != "" {
			s.cut, ok = why, false
		}
	}
	if !ok {
		return Step{Done: true, Answer: s.answer()}
	}
	load.Number = s.count(&load) + 1
	return Step{Load: load}
}

// over says why no further trial may be made.
func (s *search) over() string {
	spent := time.Duration(0)
	for i := range s.trials {
		spent += s.trials[i].Took
	}
	switch {
	case len(s.trials) >= s.MostTrials:
		return fmt.Sprintf("the search ended after %d trials", len(s.trials))
	case s.Time > 0 && spent >= s.Time:
		return fmt.Sprintf("the search ended after %v of load", spent.Round(time.Second))
	}
	return ""
}
