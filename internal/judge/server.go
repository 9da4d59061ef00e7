package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"tare/internal/record"
)

// ServerSide is what the servers counted themselves, next to what the records say.
type ServerSide struct {
	Sources   []Source         `json:"sources"`
	Changes   []string         `json:"changes,omitempty"`  // of what the servers say they are, from before to after
	Known     bool             `json:"identified"`         // they said it, before and after
	Trip      Number           `json:"round_trip_ms"`      // shortest time of a connection to them
	Run       BothSides        `json:"run"`                // from before the first request to rest behind the last, warm-up included
	Total     *BothSides       `json:"measured,omitempty"` // from the start of the first measured stage on; left out where that is the run
	Stages    []BothSides      `json:"stages,omitempty"`   // of several
	Beside    map[string]Gauge `json:"beside,omitempty"`   // of exporters, by our name
	Throttled Number           `json:"gpu_throttled_us"`   // time for which GPUs were held down by power or heat
}

// Source is one that was looked at.
type Source struct {
	URL     string `json:"url"`
	Kind    string `json:"kind"`
	Dialect string `json:"dialect,omitempty"`
	Looks   int    `json:"looks"`
	Failed  int    `json:"failed"`           // looks that brought nothing
	Reason  string `json:"reason,omitempty"` // of the last of them
	Resets  int    `json:"restarts"`         // its counters began anew

	lost bool // its last look brought nothing
}

// BothSides sets the servers' numbers of a span next to ours. What they do not tell is null.
type BothSides struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"` // why there are no numbers
	FromMs Number `json:"from_ms"`
	ToMs   Number `json:"to_ms"`

	InFlightAtEdges int64 `json:"in_flight_at_edges"` // requests of which the server may have counted a part: without any, ours is exact

	Requests Count `json:"requests"`
	Prompt   Count `json:"prompt_tokens"`
	Computed Count `json:"computed_prompt_tokens"`
	Output   Count `json:"output_tokens"`

	TTFT Means `json:"ttft"`
	E2E  Means `json:"e2e"`

	Queue   Number `json:"queue_ms"` // means of the servers' requests
	Prefill Number `json:"prefill_ms"`
	Decode  Number `json:"decode_ms"`
	ITL     Number `json:"itl_ms"`

	PerToken PerToken `json:"per_output_token"`
	InFlight InFlight `json:"in_flight"`
	KVUsage  Gauge    `json:"kv_usage"`

	CacheHits   Number             `json:"prefix_hit_share"`
	Preemptions Number             `json:"preemptions"`
	Failures    Number             `json:"failures"`
	Finished    map[string]float64 `json:"finished,omitempty"`
}

// Count is a number of the servers' and the bounds that the records set to it.
type Count struct {
	Server Number `json:"server"`
	Least  Number `json:"least"`
	Most   Number `json:"most"` // null where replies do not say
}

// Exact reports that the records leave no room.
func (c Count) Exact() bool { return c.Least.defined && c.Least == c.Most }

// Holds reports that the servers' number is within the bounds; ok is false without one.
func (c Count) Holds() (holds, ok bool) {
	v, told := c.Server.Get()
	least, bounded := c.Least.Get()
	if !told || !bounded {
		return false, false
	}
	most, closed := c.Most.Get()
	return v >= least && (!closed || v <= most), true
}

// Means are a latency's by both sides: over the replies that came in the span, and over those that the servers counted in it.
type Means struct {
	Client     Number `json:"client_ms"`
	Server     Number `json:"server_ms"`
	Difference Number `json:"difference_ms"`
	N          int64  `json:"client_n"`
	Counted    Number `json:"server_n"`
}

// PerToken is normalized time per output token, in ms: the client's, from send to end, and the parts of the servers'.
type PerToken struct {
	Client  Number `json:"client_ms"`
	Queue   Number `json:"queue_ms"`
	Prefill Number `json:"prefill_ms"`
	Decode  Number `json:"decode_ms"`
	Outside Number `json:"outside_ms"`        // the client's less the three: network, front end, client
	Derived bool   `json:"derived,omitempty"` // prefill and decode are differences of the servers' TTFT, E2E and queue time
}

// InFlight is how many requests were in flight in the mean, at the moments of the looks.
type InFlight struct {
	Client  Number `json:"client"`
	Running Number `json:"running"`
	Waiting Number `json:"waiting"`
}

// Gauge is what a value was at the looks.
type Gauge struct {
	Mean Number `json:"mean"`
	Max  Number `json:"max"`
}

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

// stretch says when a BothSides begins and ends; a nil end is that of the run.
type stretch struct {
	name     string
	from, to *time.Duration
}

// together sets both sides next to each other for a stretch of the run.
func (s *serverSide) sideBySide(w stretch) BothSides {
	t := BothSides{Name: w.name}
	var pairs []pair
	for _, from := range s.sources {
		if from.Kind == record.SourceExporter {
			continue
		}
		p := pair{from: from}
		p.old, p.new = from.ends()
		if w.from != nil {
			p.old = from.edge(*w.from)
		}
		if w.to != nil {
			p.new = from.edge(*w.to)
		}
		if p.old == nil || p.new == nil {
			t.Reason = cmp.Or(from.Reason, "no look at this edge")
			return t
		}
		if from.anew(p) {
			t.Reason = "the server began anew in between: its counts begin at 0"
			return t
		}
		pairs = append(pairs, p)
	}
	if len(pairs) == 0 {
		t.Reason = "no server was looked at"
		return t
	}
	s.fill(&t, pairs)
	return t
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

func (s *serverSide) fill(t *BothSides, pairs []pair) {
	first, last := outermost(pairs)
	t.FromMs, t.ToMs = Some(first.AtMs), Some(last.AtMs)
	old, now := s.marks.reachedAt(middleOf(first)), s.marks.reachedAt(middleOf(last))
	t.count(pairs, old, now)
	t.TTFT = meansOf(pairs, record.ServerTTFT, now.firsts.since(old.firsts))
	t.E2E = meansOf(pairs, record.ServerE2E, now.wholes.since(old.wholes))
	t.Queue, t.ITL = spanMean(pairs, record.QueueTime), spanMean(pairs, record.ServerITL)
	t.Prefill, t.Decode = spanMean(pairs, record.PrefillTime), spanMean(pairs, record.DecodeTime)
	if t.InFlightAtEdges == 0 { // else the servers' sums are of other requests than their tokens
		t.PerToken = perToken(pairs, now.wholes.sum-old.wholes.sum, now.outputs-old.outputs)
	}
	s.gauges(t, pairs)
	t.Preemptions, t.Failures = sumOf(pairs, record.Preemptions), sumOf(pairs, record.Failures)
	if t.CacheHits = quotient(sumOf(pairs, record.CacheHits), sumOf(pairs, record.CacheQueries)); !t.CacheHits.defined {
		t.CacheHits = quotient(sumOf(pairs, record.CacheHits), plus(sumOf(pairs, record.ComputedInput), sumOf(pairs, record.CacheHits)))
	}
	t.finish(pairs)
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

// count compares numbers of requests and tokens.
func (t *BothSides) count(pairs []pair, old, now *reached) {
	odd, unsaid := now.odd(old), now.unsaid(old)
	done := now.requests.since(old.requests)
	t.InFlightAtEdges = done.most - done.least
	t.Requests = between(sumOf(pairs, record.Requests), counted{done.least, done.most + odd}, true)
	bounds := func(q record.Quantity, c counted, unsaid int64) Count {
		return between(sumOf(pairs, q), c, unsaid == 0)
	}
	t.Prompt = bounds(record.PromptTokens, now.input.since(old.input), unsaid)
	if !t.Prompt.Server.defined { // what was computed and what was found are the whole
		t.Prompt = between(plus(sumOf(pairs, record.ComputedInput), sumOf(pairs, record.CacheHits)), now.input.since(old.input), unsaid == 0)
	}
	t.Output = bounds(record.OutputTokens, now.output.since(old.output), unsaid)
	if now.uncachedBegun == old.uncachedEnd { // else nobody knows what of the prompts was computed
		t.Computed = bounds(record.ComputedInput, now.computed.since(old.computed), unsaid)
	}
}

// between is a number of the servers' with the bounds of the records, of which the upper one may be open. Without the former there
// is nothing to bound.
func between(server Number, c counted, closed bool) Count {
	if !server.defined {
		return Count{}
	}
	b := Count{Server: server, Least: exactly(c.least)}
	if closed {
		b.Most = exactly(c.most)
	}
	return b
}

func plus(a, b Number) Number {
	if !a.defined || !b.defined {
		return Number{}
	}
	return Some(a.value + b.value)
}

func exactly(n int64) Number { return Some(float64(n)) }

func quotient(a, b Number) Number {
	x, known := a.Get()
	y, by := b.Get()
	if !known || !by || y == 0 {
		return Number{}
	}
	return Some(x / y)
}

func spanMean(pairs []pair, span record.Quantity) Number {
	return quotient(sumOf(pairs, span.Sum()), sumOf(pairs, span.Count()))
}

func meansOf(pairs []pair, span record.Quantity, ours summed) Means {
	m := Means{Client: ours.meanMs(), N: ours.n, Server: spanMean(pairs, span), Counted: sumOf(pairs, span.Count())}
	m.Difference = less(m.Client, m.Server)
	return m
}

func less(a Number, of ...Number) Number {
	v, ok := a.Get()
	for _, b := range of {
		w, known := b.Get()
		v, ok = v-w, ok && known
	}
	if !ok {
		return Number{}
	}
	return Some(v)
}

// perToken divides the servers' time by their output tokens, and ours by ours.
func perToken(pairs []pair, sumNs, tokens int64) PerToken {
	by := sumOf(pairs, record.OutputTokens)
	per := func(n Number) Number { return quotient(n, by) }
	queue, prefill, decode := sumOf(pairs, record.QueueTime.Sum()), sumOf(pairs, record.PrefillTime.Sum()), sumOf(pairs, record.DecodeTime.Sum())
	p := PerToken{Client: quotient(Some(float64(sumNs)/1e6), exactly(tokens))}
	ttft, e2e := sumOf(pairs, record.ServerTTFT.Sum()), sumOf(pairs, record.ServerE2E.Sum())
	if !prefill.defined {
		prefill, p.Derived = less(ttft, queue), ttft.defined && queue.defined
	}
	if !decode.defined {
		decode = less(e2e, ttft)
		p.Derived = p.Derived || decode.defined
	}
	p.Queue, p.Prefill, p.Decode = per(queue), per(prefill), per(decode)
	p.Outside = less(p.Client, p.Queue, p.Prefill, p.Decode)
	return p
}

// gauges takes means over the looks in the stretch: of each server over its own, summed over the servers.
func (s *serverSide) gauges(t *BothSides, pairs []pair) {
	var running, waiting, kv sums
	var ours sums
	for _, p := range pairs {
		var r, w sums
		for _, look := range p.from.all {
			if look.AtMs < p.old.AtMs || look.AtMs > p.new.AtMs || look == p.old || look == p.new {
				continue // nothing is in service at most ends
			}
			r.add(look.Values.Values, record.Running)
			w.add(look.Values.Values, record.Waiting)
			kv.add(look.Values.Values, record.KVUsage)
			if at := s.marks.reachedAt(middleOf(look)); at != nil {
				ours.take(float64(at.begun - at.ended))
			}
		}
		running.join(r)
		waiting.join(w)
	}
	t.InFlight = InFlight{Client: ours.mean(), Running: running.mean(), Waiting: waiting.mean()}
	t.KVUsage = kv.gauge()
}

// waiting is how many requests each server that tells said were waiting, at the looks in a window.
func (s *serverSide) waiting(start, lasted time.Duration) (all [][]float64) {
	if s == nil {
		return nil
	}
	for _, from := range s.sources {
		var values []float64
		for _, look := range from.all {
			at := moment(look.AtMs)
			if v, told := look.Values.Values[record.Waiting]; told && at >= start && at < start+lasted {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			all = append(all, values)
		}
	}
	return all
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

func (t *BothSides) finish(pairs []pair) {
	for _, p := range pairs {
		for reason, n := range p.new.Values.Finished {
			if n -= p.old.Values.Finished[reason]; n != 0 {
				if t.Finished == nil {
					t.Finished = map[string]float64{}
				}
				t.Finished[reason] += n
			}
		}
	}
}

// figures makes the section of the Summary.
func (s *serverSide) figures(l *Ledger) *ServerSide {
	if s == nil {
		return nil
	}
	s.marks.total()
	f := &ServerSide{}
	for _, from := range s.sources {
		f.Sources = append(f.Sources, from.Source)
	}
	f.identify(s.sources)
	f.Run = s.sideBySide(stretch{name: "run"})
	starts := l.measuredStarts()
	if len(starts) > 0 && l.manifest.Stages[0].Warmup {
		total := s.sideBySide(stretch{name: "measured", from: &starts[0].at})
		f.Total = &total
	}
	for i := range starts {
		if len(starts) == 1 {
			break
		}
		w := stretch{name: starts[i].name, from: &starts[i].at}
		if i == 0 && !l.manifest.Stages[0].Warmup {
			w.from = nil
		}
		if i+1 < len(starts) {
			w.to = &starts[i+1].at
		}
		f.Stages = append(f.Stages, s.sideBySide(w))
	}
	f.Beside, f.Throttled = s.beside(), s.throttled()
	return f
}

// begins is a stage and its start.
type begins struct {
	name string
	at   time.Duration
}

func (l *Ledger) measuredStarts() (all []begins) {
	for i, stage := range l.manifest.Stages {
		if !stage.Warmup {
			all = append(all, begins{stage.Name, l.windows[i].start})
		}
	}
	return all
}

// identify compares what the servers said of themselves before and after.
func (f *ServerSide) identify(sources []*sourceLooks) {
	trip := math.Inf(1)
	asked, told := 0, 0
	for _, from := range sources {
		for _, id := range from.ids {
			if id.RoundTrip != nil {
				trip = min(trip, id.RoundTrip.MinMs)
			}
		}
		if from.Kind == record.SourceExporter {
			continue
		}
		asked++
		if len(from.ids) < 2 {
			continue
		}
		before, after := from.ids[0], from.ids[len(from.ids)-1]
		if says(before) || says(after) {
			told++
		}
		f.Changes = append(f.Changes, changes(before, after)...)
	}
	f.Known, f.Trip = asked > 0 && told == asked, Some(trip)
}

func says(id *record.Identity) bool {
	return len(id.Models) > 0 || id.Version != "" || len(id.Settings) > 0
}

func changes(a, b *record.Identity) (all []string) {
	if !slices.Equal(a.Models, b.Models) {
		all = append(all, fmt.Sprintf("models %v, then %v", a.Models, b.Models))
	}
	if a.Version != b.Version {
		all = append(all, fmt.Sprintf("version %q, then %q", a.Version, b.Version))
	}
	names := maps.Clone(a.Settings)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, b.Settings)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a.Settings[name] != b.Settings[name] {
			all = append(all, fmt.Sprintf("%s %q, then %q", name, a.Settings[name], b.Settings[name]))
		}
	}
	return all
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
