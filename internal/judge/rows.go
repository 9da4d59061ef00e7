package judge

import (
	"maps"
	"slices"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// rows keeps 27 bytes of each request by its index, in pages made when first needed: whether it was seen, and what quantiles
// over all planned requests ask for, in the order of the plan.
type rows map[int64]*page

const pageRows = 1 << 10

type page struct {
	as    [pageRows]ending
	stage [pageRows]uint16
	slip  [pageRows]int64 // ns from due to send
	ttft  [pageRows]int64 // ns from send to the first token; none when there was none
	end   [pageRows]int64 // ns from due to the end; 0 for one that was never sent
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
}

func latencies() []latency {
	return []latency{
		{measure.TTFT, true, false}, {measure.TTFTFromDue, true, true}, {measure.E2E, false, false}, {measure.E2EFromDue, false, true},
	}
}

// cohort puts the n requests of a stage in the order of the plan. ok is false when none has the metric: replies that were not
// streamed have no first token.
func (s rows) cohort(stage, n int, m latency) (c *stats.Cohort, ok bool) {
	c = new(stats.Cohort)
	c.Grow(n)
	for _, key := range slices.Sorted(maps.Keys(s)) {
		p := s[key]
		for i, as := range p.as {
			if as != unseen && as != unoffered && int(p.stage[i]) == stage {
				ok = p.add(c, i, m) || ok
			}
		}
	}
	return c, ok
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
