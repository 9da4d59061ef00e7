package judge

import (
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// Detail is what a Summary leaves out and a chart needs: the run over time, distributions whole, single requests. Its values are
// of the same facts by the same definitions; where both have a value, the two are equal.
type Detail struct {
	Series   Series   `json:"series"`
	Machine  Machine  `json:"machine"`
	Server   []Looks  `json:"server"`   // by source; none where no server was looked at
	Shapes   []Shapes `json:"shapes"`   // the total's first, then those of the measured stages, where there are several
	Points   []Point  `json:"points"`   // of the measured stages
	Limits   []Limit  `json:"limits"`   // that the spec sets to each request; classes may have their own
	Requests Requests `json:"requests"` // a sample where there are many
}

// Shapes are the distributions of a part.
type Shapes struct {
	Name    string           `json:"name"`
	Metrics map[string]Shape `json:"metrics"`
}

// Shape is a metric's distribution: how many values lie below each share, and between edges.
type Shape struct {
	N      int64    `json:"n"`
	Share  []Number `json:"share"` // of the values, at or below Value
	Value  []Number `json:"value"`
	Edges  []Number `json:"edges"` // one more than there are counts; none where all values are equal
	Counts []int64  `json:"counts"`
}

// Point is what one stage gave to everybody, and to each.
type Point struct {
	Stage         string `json:"stage"`
	OutputRate    Number `json:"output_tokens_per_s"`
	Interactivity Number `json:"interactivity_tokens_per_s"` // 1/TPOT at its median: tokens that one user sees in a second
	InFlight      Number `json:"in_flight"`                  // mean
}

// Limit is an objective of each request.
type Limit struct {
	Metric string `json:"metric"`
	Most   Number `json:"most"` // in the metric's unit
}

// Machine is how the client's machine fared, from its health samples: one value for each.
type Machine struct {
	AtMs      []float64 `json:"at_ms"`         // ends of the spans
	Busiest   []Number  `json:"busiest_core"`  // fraction of the span in use by anybody, or stolen
	Client    []Number  `json:"client_cores"`  // processor time of the client over the span
	WakeupP99 []Number  `json:"wakeup_p99_ms"` // how late the canary woke up
	WakeupMax []Number  `json:"wakeup_max_ms"`
	Waiting   []Number  `json:"waiting_cores"` // time that threads of the client were runnable and not running, over the span
}

// Requests are single requests, one value of each in every column, by index.
type Requests struct {
	Of       int64    `json:"of"`       // requests on record
	Sampled  bool     `json:"sampled"`  // these are drawn from them, each with the same chance
	Outcomes []string `json:"outcomes"` // their names
	Index    []int64  `json:"index"`
	Stage    []int    `json:"stage"`   // its place among the stages of the Summary
	Outcome  []int    `json:"outcome"` // its place in Outcomes
	Due      []Number `json:"due_ms"`  // since the start of the run
	Slip     []Number `json:"slip_ms"`
	TTFT     []Number `json:"ttft_ms"` // of whatever outcome
	TPOT     []Number `json:"tpot_ms"`
	E2E      []Number `json:"e2e_ms"`
	Input    []Number `json:"input_tokens"`
	Output   []Number `json:"output_tokens"`
	Events   []int    `json:"token_events"`
}

// details gathers what Detail needs of each request.
type details struct {
	timeline *timeline
	sample   *sample
	looks    []record.ServerSample
}

func newDetails() *details { return &details{timeline: newTimeline(), sample: newSample(mostRequests)} }

// add takes a request, which was planned for after a stop if it is unoffered.
func (d *details) add(r *measure.Reply, as ending) {
	if as != unoffered {
		d.timeline.add(r)
	}
	d.sample.add(r)
}

// detail closes what was gathered, of a run of that summary.
func (l *Ledger) detail(s *Summary) *Detail {
	end := l.last
	if ms, ok := s.Run.EndMs.Get(); ok {
		end = max(end, moment(ms))
	}
	return &Detail{
		Series: l.details.timeline.series(end), Machine: machineOf(l.health), Shapes: l.shapes(s), Points: Points(s),
		Server: looksOf(l.details.looks), Limits: l.limits(), Requests: l.details.sample.requests(),
	}
}

func (l *Ledger) limits() []Limit {
	all := []Limit{}
	if l.promises == nil {
		return all
	}
	for _, asked := range l.promises.list[0].each {
		all = append(all, Limit{Metric: asked.Metric, Most: Some(asked.Limit)})
	}
	return all
}

// shaped are the metrics whose distributions are drawn.
func shaped() []string {
	return []string{
		measure.TTFT, measure.TTFTFromDue, measure.ICL, measure.TPOT, measure.NTPOT, measure.E2E, measure.E2EFromDue,
		measure.Slip, measure.ReceiveLag, measure.InputTokens, measure.OutputTokens,
	}
}

func (l *Ledger) shapes(s *Summary) (all []Shapes) {
	total := newAccount(len(l.table))
	for i := range l.stages {
		if l.manifest.Stages[i].Warmup {
			continue
		}
		total.merge(l.stages[i])
		all = append(all, l.shapesOf(s.Stages[i].Name, l.stages[i]))
	}
	if len(all) == 1 {
		all = nil
	}
	return append([]Shapes{l.shapesOf(s.Total.Name, total)}, all...)
}

func (l *Ledger) shapesOf(name string, a *account) Shapes {
	s := Shapes{Name: name, Metrics: map[string]Shape{}}
	for _, metric := range shaped() {
		i := l.index[metric]
		if d := a.tallies[i].Values(); d.N() > 0 {
			s.Metrics[metric] = shapeOf(l.table[i].Unit, d)
		}
	}
	return s
}

const histogramBins = 60

func shapeOf(unit measure.Unit, d *stats.Distribution) Shape {
	s := Shape{N: d.N(), Edges: []Number{}, Counts: []int64{}}
	for _, level := range d.Curve() {
		s.Share = append(s.Share, Some(float64(level.PPM)/1e6))
		s.Value = append(s.Value, scaled(unit)(level.Value, true))
	}
	h := d.Histogram(histogramBins)
	for _, edge := range h.Edges {
		s.Edges = append(s.Edges, scaled(unit)(edge, true))
	}
	s.Counts = append(s.Counts, h.Counts...)
	return s
}

// Points are what the measured stages of a run gave, in their order.
func Points(s *Summary) []Point {
	all := []Point{}
	for i := range s.Stages {
		p := &s.Stages[i]
		if p.Warmup {
			continue
		}
		point := Point{Stage: p.Name, OutputRate: p.OutputRate}
		if ms, ok := p.Metrics[measure.TPOT].P50.Get(); ok && ms > 0 {
			point.Interactivity = Some(1e3 / ms)
		}
		if p.Steadiness != nil {
			point.InFlight = p.Steadiness.Drift.Mean
		}
		all = append(all, point)
	}
	return all
}

func machineOf(health []record.Health) Machine {
	m := Machine{AtMs: []float64{}, Busiest: []Number{}, Client: []Number{}, Waiting: []Number{}, WakeupP99: []Number{}, WakeupMax: []Number{}}
	for i := range health {
		h := &health[i]
		m.AtMs = append(m.AtMs, h.AtMs)
		busiest := Number{}
		for _, core := range h.Cores {
			busiest = larger(busiest, Some(core.Busy+core.Steal))
		}
		m.Busiest = append(m.Busiest, busiest)
		m.Client, m.Waiting = append(m.Client, cores(h.CPU, h.SpanMs)), append(m.Waiting, cores(h.RunQueue, h.SpanMs))
		late := new(stats.Distribution)
		for _, us := range h.Canary {
			late.Add(1e3 * us)
		}
		at := scaled(measure.Milliseconds)
		m.WakeupP99, m.WakeupMax = append(m.WakeupP99, at(late.Quantile(stats.P99))), append(m.WakeupMax, at(late.Quantile(1_000_000)))
	}
	return m
}

func cores(spent *record.Spent, spanMs float64) Number {
	if spent == nil {
		return Number{}
	}
	return over(spent.Ms, spanMs)
}
