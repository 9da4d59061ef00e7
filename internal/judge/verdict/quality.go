package verdict

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/judge/stats"
)

// planIDs asks for the hashes that others can hold a repetition against.
func planIDs(e *Evidence) []finding {
	if !e.PlanIDs.Complete {
		return []finding{{level: Unobservable, measured: "the plan was not walked to its end: it has no ids"}}
	}
	return []finding{{level: CertifiedLevel, measured: fmt.Sprintf("%d requests hashed", e.PlanIDs.Requests)}}
}

// arrivals holds the dispersion of the counts sent against those planned: what was asked for must also come in bursts, or
// evenly, as it was asked for.
func arrivals(e *Evidence, s *Stage) finding {
	switch {
	case !s.Open:
		return finding{level: NotApplicable, measured: "closed loop: requests follow the replies"}
	case s.Capped > 0:
		return finding{level: NotApplicable, measured: "the in-flight limit shapes what is sent"}
	case s.DialNs > 0.1e9:
		return finding{level: NotApplicable, measured: "connections that took up to " + span(s.DialNs) + " shape what is sent"}
	case e.Killed():
		return killed
	}
	var all []finding
	for _, d := range s.Arrivals {
		if !d.Known {
			continue
		}
		off := math.Abs(d.Sent - d.Planned)
		level, strain := arrivalLimits.at(d.Planned).grade(off)
		all = append(all, finding{level: level, strain: strain, measured: fmt.Sprintf("dispersion over %s: %.3g sent, %.3g planned", d.Span, d.Sent, d.Planned)})
	}
	if len(all) == 0 {
		return finding{level: Unobservable, measured: "the stage is shorter than ten seconds"}
	}
	return worstOf(all...)
}

// outputs asks for the planned length where the server was told to go on to it.
func outputs(e *Evidence, s *Stage) finding {
	switch {
	case !e.FixedLength:
		return finding{level: NotApplicable, measured: "replies may end when the model does (workload.ignore_eos is off)"}
	case s.Lengths == 0:
		return finding{level: Unobservable, measured: "the server counted the tokens of no reply"}
	}
	share := float64(s.OtherLengths) / float64(s.Lengths)
	level, strain := lengthLimits.grade(share)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("%d of %d replies of another length", s.OtherLengths, s.Lengths)}
}

// models asks whether the wait of a loop is that of a queue. Waits too short to matter need no explanation.
func models(e *Evidence) (all []finding) {
	for i, q := range e.Queues {
		f := finding{level: ValidLevel, measured: fmt.Sprintf("loop %d waits %s in the mean, which needs no explanation", i, span(q.WaitMs*1e6))}
		switch {
		case q.Close:
			f = finding{level: CertifiedLevel, measured: fmt.Sprintf("loop %d waits %s in the mean, %.2g times that by %s", i, span(q.WaitMs*1e6), q.Ratio, q.Fits)}
		case q.WaitMs*1e6 >= mattersNs:
			f.level, f.strain = Failed, q.WaitMs
			f.measured = fmt.Sprintf("loop %d waits %s in the mean, which no model explains", i, span(q.WaitMs*1e6))
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return []finding{{level: Unobservable, measured: "no loop of its own with kernel stamps"}}
	}
	return all
}

// corrected only asks that the figure is there: how large it may be is C2's.
func corrected(_ *Evidence, s *Stage) finding {
	if !s.Correction.Known {
		return finding{level: Unobservable, measured: "nothing completed"}
	}
	return finding{level: CertifiedLevel, strain: s.Correction.P99,
		measured: fmt.Sprintf("%s from due is %+.2g %% at p50 and %+.2g %% at p99 over that from send", s.Correction.Metric, 100*s.Correction.P50, 100*s.Correction.P99)}
}

func balance(e *Evidence, s *Stage) finding {
	switch {
	case e.Killed():
		return killed
	case !s.Balance.Known:
		return finding{level: Unobservable, measured: "the manifest holds no gauge"}
	}
	level, strain := balanceLimits.grade(s.Balance.Gap)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("%.4g in flight by the gauge, %.4g by the records, %.2g %% apart", s.Balance.Gauge, s.Balance.Records, 100*s.Balance.Gap)}
}

func warmup(e *Evidence, s *Stage) finding {
	if !s.Course.Steady {
		return finding{level: Unobservable, measured: "no steady state was seen, or the stage is too short to look for one"}
	}
	text := fmt.Sprintf("declared %s, MSER-5 suggests %s", span(s.Course.DeclaredNs), span(s.Course.SuggestedNs))
	longest := 0.0
	if _, of := reference([]string{""}, s.E2E); of != nil {
		longest, _ = of.Quantile(stats.P99)
	}
	f := finding{level: CertifiedLevel, measured: text}
	if s.Course.SuggestedNs > s.Course.DeclaredNs+0.05*s.Course.WindowNs {
		f.level, f.strain = ValidLevel, s.Course.SuggestedNs
	}
	if s.Course.WindowNs < 3*longest {
		f.level, f.strain = ValidLevel, longest
		f.measured += fmt.Sprintf("; the window of %s is shorter than three times the E2E p99 of %s", span(s.Course.WindowNs), span(longest))
	}
	return f
}

// drift looks for a stage in which the backlog grew throughout: its latencies say how long it lasted. To overload a server may be
// what the user wants.
func drift(_ *Evidence, s *Stage) finding {
	d := s.Drift
	switch {
	case !s.Open:
		return finding{level: NotApplicable, measured: "closed loop: the number in flight is given"}
	case s.Ramp:
		return finding{level: NotApplicable, measured: "the rate is meant to change"}
	case !d.Known:
		return finding{level: Unobservable, measured: "the stage is shorter than five seconds"}
	}
	sure := d.Growth - driftQuantile*d.Error
	level, strain := driftLimits.at(d.InFlight).grade(sure)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("backlog %+.3g ± %.2g over the window, %.3g in flight in the mean", d.Growth, d.Error, d.InFlight)}
}

// backing asks what the headline's percentiles are worth. Those that are worth too little are withheld, so that none misleads.
func backing(_ *Evidence, s *Stage) finding {
	if len(s.Estimates) == 0 {
		return finding{level: Unobservable, measured: "nothing was planned or completed"}
	}
	var withheld []string
	least := math.Inf(1)
	for _, q := range s.Estimates {
		least = min(least, q.Effective)
		if q.Withheld != "" {
			withheld = append(withheld, q.Metric+" "+q.Level)
		}
	}
	text := fmt.Sprintf("the least n_eff is %.4g", least)
	if len(withheld) == 0 {
		return finding{level: CertifiedLevel, measured: text}
	}
	return finding{level: ValidLevel, strain: 1, measured: text + "; withheld: " + strings.Join(withheld, ", ")}
}

// width looks at the medians' intervals.
func width(_ *Evidence, s *Stage) finding {
	var all []finding
	for _, q := range s.Estimates {
		if q.Level != "p50" {
			continue
		}
		f := finding{level: Unobservable, measured: q.Metric + " p50 has no interval"}
		if q.Withheld == "" && q.HasWidth {
			f.measured = fmt.Sprintf("%s p50 ± %.2g %%", q.Metric, 100*q.HalfWidth)
			if f.level, f.strain = widthLimits.grade(q.HalfWidth); f.level == Failed {
				f.level = Unobservable
				f.measured += ": too wide to tell"
			}
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return finding{level: Unobservable, measured: "nothing was planned or completed"}
	}
	return worstOf(all...)
}

// overAll tells what stands beside the completed requests in the percentiles.
func overAll(_ *Evidence, s *Stage) finding {
	return finding{level: CertifiedLevel, strain: float64(s.Failed), measured: fmt.Sprintf("%d failed or given up counted in", s.Failed)}
}
