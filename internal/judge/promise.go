package judge

import (
	"fmt"
	"math"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/objective"
	"tare/internal/record"
)

// promises is what the run's spec asks of the server.
type promises struct {
	test    stats.SPRT
	list    []*promise          // the general one first, then those of classes in the order of the spec
	own     map[string]*promise // by class
	ofEach  bool                // something is asked of single requests
	columns []measure.Metric    // beside the latencies, whose values are kept for quantiles
	classes map[string]uint16   // numbers of the classes seen, from 1
}

// promise is the objectives of the requests of one class, or of all whose classes have none of their own.
type promise struct {
	number   int
	class    string // empty for the general one
	each     []limit
	together []objective.Objective
	pace     measure.Pace
	paced    bool
}

// limit is an objective of each request.
type limit struct {
	objective.Objective
	metric measure.Metric
}

// promisesOf reads the objectives of a run's spec; nil where there are none.
func promisesOf(spec *asked, table []measure.Metric) (*promises, error) {
	target := spec.SLOTarget
	if target <= 0.5 || target >= 1 {
		target = 0.99 // a spec without one
	}
	a := &promises{test: stats.StepTest(target), own: map[string]*promise{}, classes: map[string]uint16{}}
	any := len(spec.SLO) > 0
	if err := a.promise("", spec.SLO, table); err != nil {
		return nil, err
	}
	for _, c := range spec.Workload.Classes {
		if len(c.SLO) == 0 {
			continue
		}
		any = true
		if err := a.promise(c.Name, c.SLO, table); err != nil {
			return nil, err
		}
	}
	if !any {
		return nil, nil
	}
	return a, nil
}

// promise takes the objectives of a class.
func (a *promises) promise(class string, texts []string, table []measure.Metric) error {
	p := &promise{number: len(a.list), class: class}
	for _, text := range texts {
		o, fault := objective.Parse(text)
		if fault != nil {
			return fmt.Errorf("spec: slo: %q: %w", text, fault)
		}
		a.take(p, o, table)
	}
	p.setPace()
	a.list = append(a.list, p)
	if class != "" {
		a.own[class] = p
	}
	return nil
}

func (a *promises) take(p *promise, o objective.Objective, table []measure.Metric) {
	if !o.PerRequest() {
		p.together = append(p.together, o)
	}
	for _, m := range table {
		if m.Name != o.Metric {
			continue
		}
		if o.PerRequest() {
			p.each, a.ofEach = append(p.each, limit{o, m}), true
		} else if _, kept := a.latency(o.Metric); !kept {
			a.columns = append(a.columns, m)
		}
	}
}

// latency is how quantiles of a metric are made; ok is false when its values are not kept.
func (a *promises) latency(name string) (m latency, ok bool) {
	for _, m := range latencies() {
		if m.name == name {
			return m, true
		}
	}
	for i, c := range a.columns {
		if c.Name == name {
			return latency{name: name, first: name == measure.FirstEvent || name == measure.FirstAnswer, column: i + 1}, true
		}
	}
	return latency{}, false
}

// setPace takes the times between tokens from the objectives: those of each request, or where there is none those of all.
func (p *promise) setPace() {
	first, ok := p.limitOf(measure.TTFT)
	if !ok {
		first, ok = p.limitOf(measure.TTFTFromDue)
		p.pace.FromDue = true
	}
	each, paced := p.limitOf(measure.TPOT)
	p.pace.First, p.pace.Each, p.paced = first, each, ok && paced
}

// limitOf is the lowest limit on a metric.
func (p *promise) limitOf(metric string) (lowest time.Duration, ok bool) {
	take := func(o objective.Objective) {
		if d := time.Duration(math.Round(o.Limit * 1e6)); o.Metric == metric && (!ok || d < lowest) {
			lowest, ok = d, true
		}
	}
	for _, l := range p.each {
		take(l.Objective)
	}
	if ok {
		return lowest, ok
	}
	for _, o := range p.together {
		take(o)
	}
	return lowest, ok
}

// of is what is asked of a request.
func (a *promises) of(class string) *promise {
	if p, ok := a.own[class]; ok {
		return p
	}
	return a.list[0]
}

// number is that of a class.
func (a *promises) number(class string) uint16 {
	n, ok := a.classes[class]
	if !ok {
		n = uint16(len(a.classes) + 1)
		a.classes[class] = n
	}
	return n
}

// standing is what became of one request with regard to its objectives.
type standing struct {
	*promise
	good    bool
	unsure  bool      // by bounds of merged reads it could be otherwise
	holds   []keeping // of each objective
	fluid   int64     // fluidity-index, ppm; meaningful with hasFluid
	benefit int64     // thousandths of tokens; meaningful with hasBenefit

	hasFluid, hasBenefit bool
	completed            bool
	counts               bool // it was not planned for after a stop
}

// keeping is how a completed request stands to one objective.
type keeping uint8

const (
	kept keeping = iota
	missed
	undefined // its metric is, so that nobody knows
)

// judge says how a request stands. s is filled anew.
func (a *promises) judge(r *measure.Reply, s *standing) {
	*s = standing{promise: a.of(r.Class), holds: s.holds[:0]}
	least, most := true, true
	s.good = true
	for i := range s.each {
		low, at, high, known := s.each[i].holds(r)
		s.good, least, most = s.good && at, least && low, most && high
		switch {
		case at:
			s.holds = append(s.holds, kept)
		case known:
			s.holds = append(s.holds, missed)
		default:
			s.holds = append(s.holds, undefined)
		}
	}
	s.completed = r.Outcome == record.Completed
	s.good, s.unsure = s.good && s.completed, s.completed && least != most
	if s.paced {
		s.setPaced(r)
	}
}

// holds reports whether the objective is kept, by the stamps and with the value at the least and at the most that it can be. known is
// false where the metric is not defined. A reply all of whose tokens came at once has no time between tokens that could be too long.
func (l *limit) holds(r *measure.Reply) (low, at, high, known bool) {
	v, ok := l.metric.One(r)
	if !ok {
		once := len(r.Tokens) == 1 && (l.Metric == measure.TPOT || l.Metric == measure.Stall)
		return once, once, once, once
	}
	keeps := func(v int64) bool { return l.Keeps(float64(v) / l.metric.Unit.Scale()) }
	return keeps(v.Low), keeps(v.At), keeps(v.High), true
}

// setPaced holds the tokens against the pace. A request that did not complete has the fluidity 0; the benefit of what came of it counts.
func (s *standing) setPaced(r *measure.Reply) {
	met, missed, ok := s.pace.Deadlines(r)
	switch {
	case !s.completed:
		s.hasFluid = true
	case ok:
		s.fluid, s.hasFluid = met*1_000_000/(met+missed), true
	}
	benefit, ok := s.pace.Benefit(r)
	s.benefit, s.hasBenefit = int64(math.Round(1000*benefit)), ok
}
