package judge

import (
	"tare/internal/judge/measure"
	"tare/internal/judge/verdict"
)

// addQuality gives the gates the figures of a part that they look at.
func addQuality(s *verdict.Stage, p *Part) {
	for _, d := range []struct {
		span          string
		planned, sent Number
	}{
		{"1s", p.Arrivals.Planned.Second, p.Arrivals.Sent.Second}, {"10s", p.Arrivals.Planned.TenSeconds, p.Arrivals.Sent.TenSeconds},
		{"60s", p.Arrivals.Planned.Minute, p.Arrivals.Sent.Minute},
	} {
		planned, ok := d.planned.Get()
		sent, okSent := d.sent.Get()
		s.Arrivals = append(s.Arrivals, verdict.Dispersion{Span: d.span, Planned: planned, Sent: sent, Known: ok && okSent})
	}
	dial, _ := p.Delays.NoConnection.Longest.Get()
	s.DialNs = dial * 1e6
	s.Correction = correctionOf(p)
	for _, m := range []struct{ name, text string }{{measure.TTFTFromDue, "TTFT"}, {measure.E2EFromDue, "E2E"}} {
		if q, ok := p.AllPlanned[m.name]; ok {
			s.Estimates = append(s.Estimates, estimateOf(m.text, "p50", &q.P50), estimateOf(m.text, "p99", &q.P99))
		}
	}
	addCourse(s, p)
}

func correctionOf(p *Part) verdict.Correction {
	c := verdict.Correction{Metric: "TTFT"}
	var ok50, ok99 bool
	c.P50, ok50 = p.Correction.TTFTP50.Get()
	c.P99, ok99 = p.Correction.TTFTP99.Get()
	if !ok50 || !ok99 {
		c.Metric = "E2E"
		c.P50, ok50 = p.Correction.E2EP50.Get()
		c.P99, ok99 = p.Correction.E2EP99.Get()
	}
	c.Known = ok50 && ok99
	return c
}

func estimateOf(metric, level string, e *Estimate) verdict.Estimate {
	out := verdict.Estimate{Metric: metric, Level: level, Withheld: e.Withheld}
	out.Effective, _ = e.Effective.Get()
	out.HalfWidth, out.HasWidth = e.HalfWidth()
	return out
}

func addCourse(s *verdict.Stage, p *Part) {
	if p.Steadiness == nil {
		return
	}
	w, d, l := &p.Steadiness.Warmup, &p.Steadiness.Drift, &p.Steadiness.Little
	suggested, _ := w.SuggestedMs.Get()
	s.Course = verdict.Course{Steady: w.Steady, DeclaredNs: w.DeclaredMs * 1e6, SuggestedNs: suggested * 1e6, WindowNs: p.WindowMs * 1e6}
	s.Drift.Growth, s.Drift.Known = d.Growth.Get()
	s.Drift.Error, _ = d.Error.Get()
	s.Drift.InFlight, _ = d.Mean.Get()
	s.Balance.Gap, s.Balance.Known = l.Gap.Get()
	s.Balance.Gauge, _ = l.Gauge.Get()
	s.Balance.Records, _ = l.Stays.Get()
}

// queues are the loops whose waits were measured.
func queues(loops []Loop) (all []verdict.Queue) {
	for i := range loops {
		l := &loops[i]
		wait, ok := l.WaitMs.Get()
		if !ok {
			continue
		}
		q := verdict.Queue{WaitMs: wait, Fits: l.Fits, Close: l.Close}
		for _, m := range l.Models {
			if m.Model == l.Fits {
				q.Ratio, _ = m.Ratio.Get()
			}
		}
		all = append(all, q)
	}
	return all
}
