package judge

import (
	"fmt"

	"tare/internal/judge/stats"
	"tare/internal/objective"
)

// SLO is what the run was asked to keep, and the test that makes a go or a no go of the share of good requests.
type SLO struct {
	Objectives []string `json:"objectives,omitempty"` // of the spec; classes may have their own
	Target     float64  `json:"target"`               // share of good requests that is a go
	NoGo       float64  `json:"no_go"`                // share that is none
	Alpha      float64  `json:"alpha"`                // chance of a no go where the share is the target
	Beta       float64  `json:"beta"`                 // chance of a go where it is NoGo
}

// Objectives is how the planned requests of a part stand to their objectives.
type Objectives struct {
	Planned int64 `json:"planned"` // that are on record, but for those that were planned for after a stop
	Good    int64 `json:"good"`    // completed, and every objective of each request kept
	Unsure  int64 `json:"unsure"`  // of which that hinges on merged reads

	Attainment Share  `json:"attainment"` // good of planned; null where nothing is asked of each request
	Effective  Number `json:"n_eff"`      // what the planned are worth as independent ones
	Decision   string `json:"decision,omitempty"`
	Reason     string `json:"reason,omitempty"` // why there is none yet, or what it rests on

	RequestGoodput Number   `json:"request_goodput_per_s"` // good requests that ended in the window
	TokenGoodput   Number   `json:"token_goodput_per_s"`   // tokens of good requests that arrived in the window
	SmoothGoodput  Number   `json:"smooth_goodput_per_s"`  // tokens less idle time, of requests that ended in the window
	Fluidity       Fluidity `json:"fluidity_index"`

	Each     []Each     `json:"each,omitempty"`
	Together []Together `json:"together,omitempty"`
}

// Share is a share of requests with its 95 % interval.
type Share struct {
	Value Number `json:"value"`
	Low   Number `json:"low"`
	High  Number `json:"high"`
}

// Fluidity is the fluidity-index over planned requests.
type Fluidity struct {
	Mean      Number `json:"mean"`
	P1        Number `json:"p1"` // that 99 % of the requests reach
	Undefined int64  `json:"undefined"`
}

// Each is an objective of each request, and how the completed ones stand to it.
type Each struct {
	Objective string `json:"objective"`
	Class     string `json:"class,omitempty"` // whose own it is
	Kept      int64  `json:"kept"`
	Missed    int64  `json:"missed"`
	Undefined int64  `json:"undefined"` // completed, and nobody knows: they are not good
}

// Together is an objective of all planned requests together.
type Together struct {
	Objective string `json:"objective"`
	Class     string `json:"class,omitempty"`
	Estimate         // in the limit's unit
	Limit     Number `json:"limit"` // ms, ms/token, or a share
	Result    Result `json:"result"`
	Reason    string `json:"reason,omitempty"` // why nobody can tell
}

// Result is whether an objective was met.
type Result string

const (
	Met        Result = "met"
	Missed     Result = "missed"
	CannotTell Result = "cannot tell"
)

// Misses lists the objectives that were missed, and those of which nobody can tell, of each measured stage and each class.
func (s *Summary) Misses() (missed, open []string) {
	take := func(where string, o *Objectives) {
		if o == nil {
			return
		}
		for i := range o.Together {
			t := &o.Together[i]
			text := where + ": " + t.Objective
			if t.Class != "" {
				text += " of class " + t.Class
			}
			missed, open = sorted(t.Result, text, t.Reason, missed, open)
		}
		share, _ := o.Attainment.Value.Get()
		text := fmt.Sprintf("%s: %.4g %% of the planned requests are good, of a target of %.4g %%", where, 100*share, 100*s.SLO.Target)
		missed, open = sorted(map[string]Result{string(stats.NoGo): Missed, string(stats.Undecided): CannotTell}[o.Decision], text, o.Reason, missed, open)
	}
	for i := range s.Stages {
		take("stage "+s.Stages[i].Name, s.Stages[i].Objectives)
	}
	for i := range s.Classes {
		take("class "+s.Classes[i].Name, s.Classes[i].Objectives)
	}
	return missed, open
}

func sorted(r Result, text, reason string, missed, open []string) (m, o []string) {
	if reason != "" {
		text += " (" + reason + ")"
	}
	switch r {
	case Missed:
		missed = append(missed, text)
	case CannotTell:
		open = append(open, text)
	}
	return missed, open
}

// slo is the head of it all; nil where nothing is asked.
func (l *Ledger) slo() *SLO {
	if l.promises == nil {
		return nil
	}
	t := l.promises.test
	s := &SLO{Target: t.Go, NoGo: t.NoGo, Alpha: t.Alpha, Beta: t.Beta}
	general := l.promises.list[0]
	for _, o := range general.each {
		s.Objectives = append(s.Objectives, o.String())
	}
	for _, o := range general.together {
		s.Objectives = append(s.Objectives, o.String())
	}
	return s
}

// objectives says how some of the requests stand, of which g are the counts, in a window that lasted so long. only names the class when
// they are all of one.
func (l *Ledger) objectives(g *goods, which selection, only string, window spans) *Objectives {
	if l.promises == nil {
		return nil
	}
	o := &Objectives{Planned: g.planned}
	if l.promises.ofEach {
		l.attain(o, g, which, window)
	}
	if g.useful {
		o.SmoothGoodput = perSecondOf(float64(g.benefit)/1000, window.lasted)
	}
	if n := g.fluid.N(); n > 0 || g.notFluid > 0 {
		share := func(ppm float64, ok bool) Number { return numberOf(ppm/1e6, ok) }
		o.Fluidity = Fluidity{Mean: share(g.fluid.Mean()), P1: share(g.fluid.Quantile(stats.P1)), Undefined: g.notFluid}
	}
	for i, p := range l.promises.list {
		if only != "" && p != l.promises.of(only) {
			continue
		}
		name := p.class
		if only != "" {
			name = ""
		}
		for j := range p.each {
			e := Each{Objective: p.each[j].String(), Class: name}
			if i < len(g.limits) && g.limits[i] != nil {
				h := g.limits[i][j]
				e.Kept, e.Missed, e.Undefined = h[kept], h[missed], h[undefined]
			}
			o.Each = append(o.Each, e)
		}
		for _, asked := range p.together {
			t := l.together(asked, promised(which, p.number))
			t.Class = name
			o.Together = append(o.Together, t)
		}
	}
	return o
}

// attain fills in what follows from the good requests.
func (l *Ledger) attain(o *Objectives, g *goods, which selection, window spans) {
	o.Good, o.Unsure = g.good, g.unsure
	d := l.rows.series(which, func(p *page, i int) bool { return p.stands.good[i] }).Dependence()
	if share, ok := stats.Share(g.good, d); ok {
		o.Attainment = shareOf(share, d)
		o.Effective = Some(min(d.Effective(), float64(d.N)))
	}
	decision, reason := l.promises.test.Settle(g.good, d)
	o.Decision, o.Reason = string(decision), string(reason)
	if decision == stats.NoGo && reason != stats.Shown {
		o.Reason = "by the share seen: " + o.Reason
	}
	o.RequestGoodput = perSecond(g.ended, window.lasted)
	if g.counted || g.good == 0 {
		o.TokenGoodput = perSecond(g.tokens, window.lasted)
	}
}

// shareOf leaves the interval out where the requests depend on each other too long for one.
func shareOf(s stats.Interval, d stats.Dependence) Share {
	if d.Cut {
		return Share{Value: Some(s.Mean)}
	}
	return Share{Value: Some(s.Mean), Low: Some(s.Low), High: Some(s.High)}
}

// together holds all planned requests of a selection against an objective.
func (l *Ledger) together(o objective.Objective, which selection) Together {
	t := Together{Objective: o.String(), Limit: Some(o.Limit)}
	if o.Metric == objective.ErrorRate {
		t.errors(o, l.rows.series(which, func(p *page, i int) bool { return p.as[i] != completed }))
		return t
	}
	m, _ := l.promises.latency(o.Metric)
	c, ok := l.rows.cohort(which, m)
	switch {
	case c.Incidence().N() == 0:
		t.Result, t.Reason = CannotTell, "no request has the metric"
	case !ok && l.rows.series(which, func(p *page, i int) bool { return p.as[i] == completed }).Yes() > 0:
		t.Result, t.Reason = CannotTell, "no completed request has the metric"
	case o.Mean:
		t.mean(o, c)
	default:
		t.quantile(o, c)
	}
	return t
}

// errors holds the share of requests that did not complete against its limit.
func (t *Together) errors(o objective.Objective, failed *stats.Indicator) {
	d := failed.Dependence()
	share, ok := stats.Share(failed.Yes(), d)
	if !ok {
		t.Result, t.Reason = CannotTell, string(stats.NoRequests)
		return
	}
	reached := func(v float64) Bound { return Bound{Value: Some(v), Reach: string(stats.Reached)} }
	t.Bound, t.Effective = reached(share.Mean), Some(d.Effective())
	if !d.Cut {
		t.Low, t.High = reached(share.Low), reached(share.High)
	}
	t.Result, t.Reason = within(1-o.Limit, failed.N()-failed.Yes(), d)
	if t.Result == Met && !o.Keeps(share.Mean) { // the limit itself
		t.Result, t.Reason = CannotTell, string(stats.TooFew)
	}
}

// within says whether a share of the requests at least is one of yes. Where they depend on each other too long, twice as many that are not
// as the share leaves are too many.
func within(share float64, yes int64, d stats.Dependence) (Result, string) {
	seen, _ := stats.Share(yes, d)
	switch {
	case d.Cut && 1-seen.Mean >= 2*(1-share) && seen.Mean < share:
		return Missed, ""
	case d.Cut:
		return CannotTell, string(d.Unknown())
	case seen.Low >= share:
		return Met, ""
	case seen.High < share:
		return Missed, ""
	}
	return CannotTell, string(stats.TooFew)
}

// quantile holds a quantile over all planned requests against its limit, by its interval; where that is withheld, by the share of
// the requests that kept the limit.
func (t *Together) quantile(o objective.Objective, c *stats.Cohort) {
	e := c.Estimates(o.Level)[0]
	t.Estimate = estimate(c.Incidence(), e)
	low, high := t.Low.Value, t.High.Value
	least, hasLow := low.Get()
	most, hasHigh := high.Get()
	switch {
	case e.Withheld != stats.Shown:
		yes, d := c.Within(func(v int64) bool { return o.Keeps(float64(v) / 1e6) })
		d.Cut = d.Cut || e.Withheld == stats.TooLong
		t.Result, t.Reason = within(float64(o.Level)/1e6, yes, d)
	case t.High.Reach == string(stats.Reached) && hasHigh && o.Keeps(most):
		t.Result = Met
	case t.Low.Reach == string(stats.Unattainable) || hasLow && !o.Keeps(least):
		t.Result = Missed
	default:
		t.Result, t.Reason = CannotTell, "the limit lies within the interval"
	}
}

// mean holds the mean of the completed requests against its limit. Those that did not complete have no value, and would raise it: with one of
// them it is not met.
func (t *Together) mean(o objective.Objective, c *stats.Cohort) {
	reached := func(v float64) Bound { return Bound{Value: Some(v / 1e6), Reach: string(stats.Reached)} }
	in := c.Incidence()
	i, ok := c.Mean()
	without := in.N() - in.Completed.N()
	switch {
	case !ok:
		if v, some := in.Completed.Mean(); some {
			t.Bound = reached(v)
		}
		t.Result, t.Reason = CannotTell, "requests are too few, or depend on each other over more than a quarter of the run"
		return
	case !o.Keeps(i.Low / 1e6):
		t.Result = Missed
	case without > 0:
		t.Result, t.Reason = CannotTell, "requests that did not complete have no value"
	case o.Keeps(i.High / 1e6):
		t.Result = Met
	default:
		t.Result, t.Reason = CannotTell, "the limit lies within the interval"
	}
	t.Bound, t.Low, t.High = reached(i.Mean), reached(i.Low), reached(i.High)
}
