package judge

import (
	"cmp"
	"time"

	"tare/internal/record"
)

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
