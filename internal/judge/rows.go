package judge

import (
	"maps"
	"slices"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// rows keeps 27 bytes of each request by its index, in pages made when first needed: whether it was seen, and what quantiles
// over all planned requests ask for, in the order of the plan. Where objectives are asked for there are five bytes more, and eight for each
// metric that only they look at.
type rows map[int64]*page

const pageRows = 1 << 10

type page struct {
	as    [pageRows]ending
	stage [pageRows]uint16
	slip  [pageRows]int64 // ns from due to send
	ttft  [pageRows]int64 // ns from send to the first token; none when there was none
	end   [pageRows]int64 // ns from due to the end; 0 for one that was never sent

	stands *stands // nil where nothing is asked
}

// stands is how a page's requests stand to their objectives.
type stands struct {
	good    [pageRows]bool
	class   [pageRows]uint16
	promise [pageRows]uint16
	values  [][pageRows]int64 // of the metrics that are columns; none where undefined
}

// stand fills in how r stands.
func (p *page) stand(i int, r *measure.Reply, a *promises, s *standing) {
	if p.stands == nil {
		p.stands = &stands{values: make([][pageRows]int64, len(a.columns))}
	}
	p.stands.good[i], p.stands.class[i], p.stands.promise[i] = s.good, a.number(r.Class), uint16(s.number)
	for c, m := range a.columns {
		p.stands.values[c][i] = none
		if v, ok := m.One(r); ok {
			p.stands.values[c][i] = v.At
		}
	}
}

// selection says which of the requests on record are meant.
type selection func(p *page, i int) bool

// ofStage selects the requests of a stage.
func ofStage(stage int) selection {
	return func(p *page, i int) bool { return int(p.stage[i]) == stage }
}

// promised selects those of which the objectives of a promise are asked.
func promised(which selection, promise int) selection {
	return func(p *page, i int) bool { return which(p, i) && int(p.stands.promise[i]) == promise }
}

// ofClass selects those of a class.
func ofClass(which selection, class uint16) selection {
	return func(p *page, i int) bool { return which(p, i) && p.stands.class[i] == class }
}

// each gives yield the selected requests in the order of the plan, without those that were planned for after a stop.
func (s rows) each(which selection, yield func(p *page, i int)) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		p := s[key]
		for i, as := range p.as {
			if as != unseen && as != unoffered && which(p, i) {
				yield(p, i)
			}
		}
	}
}

// series says something of each of them.
func (s rows) series(which selection, says selection) *stats.Indicator {
	series := new(stats.Indicator)
	s.each(which, func(p *page, i int) { series.Append(says(p, i)) })
	return series
}

// ending is how a request counts in a quantile over all planned ones. The zero value is a request that was not seen.
type ending uint8

const (
	unseen    ending = iota
	completed        // with its value
	failed           // it will never complete
	censored         // given up: it would have taken longer
	unoffered        // planned for after the stop of a run that was cut short: counted nowhere
)

const none = int64(-1)

// claim takes the place of an index and reports whether it was free.
func (s rows) claim(index int64) (p *page, i int, fresh bool) {
	key, i := index/pageRows, int(index%pageRows)
	p = s[key]
	if p == nil {
		p = new(page)
		s[key] = p
	}
	return p, i, p.as[i] == unseen
}

// put fills in the place of r.
func (p *page) put(i int, r *measure.Reply, w window) {
	p.stage[i] = uint16(r.Stage)
	p.as[i], p.ttft[i] = endingOf(r, w), none
	if r.WasSent {
		p.slip[i] = int64(r.Sent - r.Due)
	}
	if r.Ended && r.Outcome != record.NotSent {
		p.end[i] = int64(r.Finish - r.Due)
	}
	if r.FirstToken.Known {
		p.ttft[i] = int64(r.FirstToken.At - r.Sent)
	}
}

func endingOf(r *measure.Reply, w window) ending {
	switch r.Outcome {
	case record.Completed:
		return completed
	case record.TimedOut, record.Cancelled:
		return censored
	case record.NotSent:
		if r.Due >= w.end {
			return unoffered
		}
	}
	return failed
}

// latency is a metric that is estimated over all planned requests.
type latency struct {
	name    string
	first   bool // to the first token: one that came counts, though the reply was given up later
	fromDue bool
	column  int // of stands.values plus one; 0 for those that are kept of every run
}

func latencies() []latency {
	return []latency{
		{name: measure.TTFT, first: true}, {name: measure.TTFTFromDue, first: true, fromDue: true}, {name: measure.E2E}, {name: measure.E2EFromDue, fromDue: true},
	}
}

// cohort puts the selected requests in the order of the plan. ok is false when none has the metric: replies that were not
// streamed have no first token.
func (s rows) cohort(which selection, m latency) (c *stats.Cohort, ok bool) {
	n := 0
	s.each(which, func(*page, int) { n++ })
	c = new(stats.Cohort)
	c.Grow(n)
	s.each(which, func(p *page, i int) {
		if m.column > 0 {
			ok = p.addColumn(c, i, m) || ok
		} else {
			ok = p.add(c, i, m) || ok
		}
	})
	return c, ok
}

// addColumn puts request i into c by a metric that is a column, and reports whether it has a value. One that was given up had waited for its
// first event until then. Of what lies between its tokens nobody knows how it would have gone on: it counts as one without a value, since to
// leave it out would take the others' for its.
func (p *page) addColumn(c *stats.Cohort, i int, m latency) bool {
	v := p.stands.values[m.column-1][i]
	switch {
	case p.as[i] == completed && v == none:
		return false
	case p.as[i] == completed, m.first && v != none && p.as[i] != failed:
		c.Complete(v)
		return true
	case p.as[i] == censored && m.first:
		c.Censor(max(p.end[i]-p.slip[i], 0))
	default:
		c.Fail(0)
	}
	return false
}

// add puts request i into c and reports whether it has a value.
func (p *page) add(c *stats.Cohort, i int, m latency) bool {
	shift := int64(0) // from due to what the metric counts from
	if !m.fromDue {
		shift = p.slip[i]
	}
	end := max(p.end[i]-shift, 0)
	switch {
	case m.first && p.ttft[i] != none && p.as[i] != failed:
		c.Complete(p.ttft[i] + p.slip[i] - shift)
		return true
	case p.as[i] == completed && m.first:
		return false // it had no first token to wait for
	case p.as[i] == completed:
		c.Complete(end)
		return true
	case p.as[i] == censored:
		c.Censor(end)
	default:
		c.Fail(end)
	}
	return false
}
