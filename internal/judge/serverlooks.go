package judge

import (
	"cmp"
	"slices"
	"time"

	"tare/internal/record"
)

// serverSide gathers what it takes to set both sides next to each other.
type serverSide struct {
	sources []*sourceLooks
	marks   marks
}

// sourceLooks are the looks at one source, in order.
type sourceLooks struct {
	Source
	all []*record.ServerSample // those with values
	ids []*record.Identity
}

// newServerSide takes the looks of a run; nil for none.
func newServerSide(looks []record.ServerSample) *serverSide {
	if len(looks) == 0 {
		return nil
	}
	s := &serverSide{}
	bySource := map[string]*sourceLooks{}
	var all []mark
	for i := range looks {
		look := &looks[i]
		from := bySource[look.Source]
		if from == nil {
			from = &sourceLooks{Source: Source{URL: look.Source, Kind: look.Kind}}
			bySource[look.Source] = from
			s.sources = append(s.sources, from)
		}
		from.take(look)
		if look.Values != nil && look.Kind != record.SourceExporter {
			all = append(all, markOf(look))
		}
	}
	for _, from := range s.sources {
		slices.SortStableFunc(from.all, func(a, b *record.ServerSample) int { return cmp.Compare(a.AtMs, b.AtMs) })
		from.Resets = from.resets()
	}
	s.marks = newMarks(all)
	return s
}

func (from *sourceLooks) take(look *record.ServerSample) {
	from.Looks++
	if look.Identity != nil {
		from.ids = append(from.ids, look.Identity)
	}
	from.lost = look.Values == nil
	if look.Values == nil {
		from.Failed, from.Reason = from.Failed+1, look.Reason
		return
	}
	from.Dialect = cmp.Or(look.Values.Dialect, from.Dialect)
	from.all = append(from.all, look)
}

func markOf(look *record.ServerSample) mark {
	at, took := moment(look.AtMs), moment(look.TookMs)
	return mark{low: at - settles, at: at + took/2, high: at + took}
}

func middleOf(look *record.ServerSample) time.Duration { return markOf(look).at }

// resets counts how often the source's process began anew: what only grows was less than before, or the start is another.
func (from *sourceLooks) resets() (n int) {
	for i := 1; i < len(from.all); i++ {
		if begun(from.all[i-1], from.all[i]) {
			n++
		}
	}
	return n
}

// begun reports that a process began between two looks.
func begun(a, b *record.ServerSample) bool {
	for q, v := range b.Values.Values {
		before, had := a.Values.Values[q]
		if had && (q.Counter() && v < before || q == record.ServerStart && v != before) {
			return true
		}
	}
	return false
}

// edgeEarly and edgeLate are how far from a stage's start a look may begin to be that of its edge. Behind a gap it begins earlier.
const (
	edgeEarly = 25 * time.Millisecond
	edgeLate  = 100 * time.Millisecond
)

// edge is the look of a source at a moment.
func (from *sourceLooks) edge(at time.Duration) *record.ServerSample {
	for _, look := range from.all {
		late := moment(look.AtMs) - at
		if late >= -edgeEarly && late <= edgeLate && look.Edge != "" {
			return look
		}
	}
	return nil
}

// ends are the looks before everything and after it.
func (from *sourceLooks) ends() (before, after *record.ServerSample) {
	for _, look := range from.all {
		switch look.Edge {
		case record.EdgeBefore:
			before = look
		case record.EdgeAfter:
			after = look
		}
	}
	return before, after
}

// pair are the looks at both ends of a span, of one source.
type pair struct {
	from     *sourceLooks
	old, new *record.ServerSample
}

// delta is by how much what a server counts has grown; ok is false where it does not tell. What appears in between had counted
// nothing before: series with labels are made with their first value.
func (p pair) delta(q record.Quantity) (v float64, ok bool) {
	now, told := p.new.Values.Values[q]
	return now - p.old.Values.Values[q], told
}

// sumOf adds up over the servers what each has counted. One that has not counted yet is taken to tell what others of its kind tell; one
// of another kind that does not tell leaves the sum unknown.
func sumOf(pairs []pair, q record.Quantity) Number {
	total, told, mute := 0.0, map[string]bool{}, map[string]bool{}
	for _, p := range pairs {
		if v, ok := p.delta(q); ok {
			total += v
			told[p.new.Values.Dialect] = true
		} else {
			mute[p.new.Values.Dialect] = true
		}
	}
	for dialect := range mute {
		if dialect != "" && !told[dialect] {
			return Number{}
		}
	}
	if len(told) == 0 {
		return Number{}
	}
	return Some(total)
}

func (from *sourceLooks) anew(p pair) bool {
	within := false
	for i, look := range from.all {
		if within && begun(from.all[i-1], look) {
			return true
		}
		within = within || look == p.old
		if look == p.new {
			return false
		}
	}
	return false
}

// outermost are the first of the old looks and the last of the new ones.
func outermost(pairs []pair) (first, last *record.ServerSample) {
	first, last = pairs[0].old, pairs[0].new
	for _, p := range pairs[1:] {
		if middleOf(p.old) < middleOf(first) {
			first = p.old
		}
		if middleOf(p.new) > middleOf(last) {
			last = p.new
		}
	}
	return first, last
}

// sums adds up values of a gauge.
type sums struct {
	n, sum, most float64
}

func (s *sums) take(v float64) {
	if s.n == 0 || v > s.most {
		s.most = v
	}
	s.n, s.sum = s.n+1, s.sum+v
}

func (s *sums) add(values map[record.Quantity]float64, q record.Quantity) {
	if v, told := values[q]; told {
		s.take(v)
	}
}

// join adds the mean of another server's to this one.
func (s *sums) join(of sums) {
	if of.n > 0 {
		s.n, s.sum = 1, s.sum+of.sum/of.n
	}
}

func (s *sums) mean() Number {
	if s.n == 0 {
		return Number{}
	}
	return Some(s.sum / s.n)
}

func (s *sums) gauge() Gauge {
	if s.n == 0 {
		return Gauge{}
	}
	return Gauge{s.mean(), Some(s.most)}
}

// beside are the gauges of exporters over the run.
func (s *serverSide) beside() map[string]Gauge {
	found := map[record.Quantity]*sums{}
	all := map[string]Gauge{}
	for _, from := range s.sources {
		for _, look := range from.all {
			for q, v := range look.Values.Values {
				if q != record.GPUUsage && q != record.GPUMemory && q != record.GPUPower && q != record.GPUHeat {
					continue
				}
				if found[q] == nil {
					found[q] = new(sums)
				}
				found[q].take(v)
			}
		}
	}
	for q, v := range found {
		all[string(q)] = v.gauge()
	}
	return all
}

// throttled is the growth of what exporters count of it.
func (s *serverSide) throttled() Number {
	total, told := 0.0, false
	for _, from := range s.sources {
		if before, after := from.ends(); before != nil && after != nil {
			if v, ok := (pair{from, before, after}).delta(record.GPUThrottled); ok {
				total, told = total+v, true
			}
		}
	}
	if !told {
		return Number{}
	}
	return Some(total)
}
