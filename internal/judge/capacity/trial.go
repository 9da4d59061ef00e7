package capacity

import (
	"fmt"
	"strings"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// Read judges the run in a directory as a trial of a load.
func Read(dir string, l Load) (Trial, *judge.Summary, error) {
	s, err := judge.Summarize(dir)
	if err != nil {
		return Trial{}, nil, err
	}
	t := TrialOf(l, s)
	if l.Recovery <= 0 {
		return t, s, nil
	}
	var dues, ends []float64
	_, err = record.ReadLog(dir, func(x *record.Exchange) error {
		dues = append(dues, x.Due.Seconds())
		if end, ok := x.End.Get(); ok {
			ends = append(ends, end.Seconds())
		}
		return nil
	})
	if err != nil {
		return Trial{}, nil, fmt.Errorf("read %s: %w", dir, err)
	}
	t.Recovery, t.Recovered = Recovery(dues, ends, (l.Warmup + l.Dwell).Seconds(), l.Span().Seconds(), l.Normal)
	return t, s, nil
}

// TrialOf reads off the summary of a run what became of a load. What an overload needs besides, Recovery says.
func TrialOf(l Load, s *judge.Summary) Trial {
	t := Trial{Load: l, Valid: true, Took: time.Duration(value(s.Run.EndMs) * 1e6)}
	t.Fault = faultOf(&s.Verdict)
	t.Valid = t.Fault == ""
	p := measured(s)
	if p == nil {
		t.Valid, t.Fault = false, "the run has no measured stage"
		return t
	}
	o := &p.Outcomes
	t.Planned, t.Completed = p.Planned, o.Completed
	if tried := o.Sum() - o.NotSent; tried > 0 {
		t.Failed = 1 - float64(o.Completed)/float64(tried)
	}
	t.promise(p.Objectives)
	t.Rate = rateOf(p)
	e2e := p.Metrics[measure.E2E]
	t.E2E, t.E2EP99, t.TTFTP50 = inSeconds(e2e.Mean), inSeconds(e2e.P99), inSeconds(p.Metrics[measure.TTFT].P50)
	if t.E2E > 0 {
		t.Varies = (inSeconds(e2e.P90) - inSeconds(e2e.P10)) / 2.56 / t.E2E // of a normal distribution, the standard deviation
	}
	if steady := p.Steadiness; steady != nil {
		t.InFlight = value(steady.Drift.Mean)
		t.judge(steady.Stability)
	}
	return t
}

// judge takes over what the stage says of the server.
func (t *Trial) judge(s *judge.Stability) {
	if s == nil || t.Load.Tolerance <= 0 {
		return
	}
	t.State, t.Why = s.Within(t.Load.Tolerance)
	t.Shortfall, t.Error, t.Failed = value(s.Shortfall), value(s.Error), value(s.Failed)
}

// promise takes over how the requests stood to their objectives.
func (t *Trial) promise(o *judge.Objectives) {
	if o == nil {
		return
	}
	_, each := o.Attainment.Value.Get()
	t.Judged = each || len(o.Together) > 0
	if t.Good = t.Planned; each {
		t.Good, t.Planned = o.Good, o.Planned
	}
	low, known := o.Attainment.Low.Get()
	high, _ := o.Attainment.High.Get()
	switch {
	case known:
		t.GoodError = (high - low) / 2 / 1.96
	case each && o.Decision != string(stats.NoGo): // requests that depend on each other over too long show nothing, but when they are plainly bad
		t.GoodError = widest
	}
	for i := range o.Together {
		t.Missed = t.Missed || o.Together[i].Result == judge.Missed
	}
}

// widest is the greatest standard error that a share can have: that of one request.
const widest = 0.5

// measured is the first stage that counts.
func measured(s *judge.Summary) *judge.Part {
	for i := range s.Stages {
		if !s.Stages[i].Warmup {
			return &s.Stages[i]
		}
	}
	return nil
}

// faultOf is the first gate that does not stand and is not about the server.
func faultOf(v *verdict.Verdict) string {
	for _, g := range v.Gates {
		if g.Level == verdict.Failed && !g.Advisory && !strings.HasPrefix(g.ID, "S") {
			return g.ID + " " + g.Name + ": " + g.Measured
		}
	}
	return ""
}

func rateOf(p *judge.Part) (r Range) {
	r.Value = value(p.CompletedRate)
	if s := p.Steadiness; s != nil {
		if mean, ok := s.Completed.Mean.Get(); ok && mean > 0 {
			r.Low, r.High = value(s.Completed.Low), value(s.Completed.High)
		}
	}
	return r
}

func value(n judge.Number) float64 { v, _ := n.Get(); return v }

func inSeconds(ms judge.Number) float64 { return value(ms) / 1e3 }
