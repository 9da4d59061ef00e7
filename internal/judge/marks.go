package judge

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// settles is how much earlier than we saw a request end the server may not yet have counted it.
const settles = 100 * time.Millisecond

// mark is a moment at which servers were looked at, and what the records say of the requests up to it. A look takes time, and a
// server counts a request somewhere between its send and its end: what was in flight meanwhile may be counted or not.
type mark struct {
	low, at, high time.Duration
	reached
}

// reached is what our requests had come to.
type reached struct {
	begun, ended int64 // requests that had been sent, and that were over, at the middle of the look

	requests, input, computed, output counted

	// Requests that did not end well: nobody knows what the server counted of them. Replies without usage: of their tokens likewise.
	oddBegun, oddEnded         int64
	unsaidBegun, unsaidEnded   int64
	uncachedBegun, uncachedEnd int64 // replies that do not say what a cache had

	firsts  summed // TTFT of replies whose first token had come, from the send, ns
	wholes  summed // E2E of replies that had ended well, from the send, ns
	outputs int64  // output tokens of the latter
}

// counted are bounds of what a server has counted up to a mark: at least what had ended before, at most what had been sent.
type counted struct{ least, most int64 }

// summed is a sum of values and their number.
type summed struct{ n, sum int64 }

func (s *summed) add(v time.Duration) { s.n, s.sum = s.n+1, s.sum+int64(v) }

func (s summed) since(t summed) summed { return summed{s.n - t.n, s.sum - t.sum} }

func (s summed) meanMs() Number {
	if s.n == 0 {
		return Number{}
	}
	return Some(float64(s.sum) / float64(s.n) / 1e6)
}

// marks are in order of time. What is added counts for the mark from which on it counts; total sums that up.
type marks []mark

// newMarks makes marks of looks. A look that took longer than the next one's moment is taken to have reached no further back.
func newMarks(looks []mark) marks {
	slices.SortFunc(looks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	m := marks(slices.CompactFunc(looks, func(a, b mark) bool { return a.at == b.at && a.high == b.high }))
	for i := 1; i < len(m); i++ {
		m[i].high = max(m[i].high, m[i-1].high)
	}
	for i := len(m) - 2; i >= 0; i-- {
		m[i].low = min(m[i].low, m[i+1].low)
	}
	return m
}

// from is what is reached at the first mark for which a moment had passed, by one of its bounds; a place to be forgotten when none is.
func (m marks) from(moment time.Duration, bound func(*mark) time.Duration) *reached {
	i := sort.Search(len(m), func(i int) bool { return bound(&m[i]) >= moment })
	if i == len(m) {
		return new(reached)
	}
	return &m[i].reached
}

func low(k *mark) time.Duration    { return k.low }
func middle(k *mark) time.Duration { return k.at }
func high(k *mark) time.Duration   { return k.high }

// add takes a request that is on record.
func (m marks) add(r *measure.Reply) {
	if len(m) == 0 || !r.WasSent || refused(r) {
		return
	}
	end := time.Duration(math.MaxInt64)
	if r.Ended {
		end = r.Finish
	}
	begun, over := m.from(r.Sent, high), m.from(end, low)
	m.from(r.Sent, middle).begun++
	m.from(end, middle).ended++
	if r.FirstToken.Known {
		m.from(r.FirstToken.At, middle).firsts.add(r.FirstToken.At - r.Sent)
	}
	if r.Outcome != record.Completed && r.Outcome != record.Empty {
		begun.oddBegun += int64(max(r.Attempts, 1))
		over.oddEnded += int64(max(r.Attempts, 1))
		return
	}
	begun.requests.most++
	over.requests.least++
	begun.oddBegun += int64(max(r.Attempts-1, 0))
	over.oddEnded += int64(max(r.Attempts-1, 0))
	done := m.from(end, middle)
	done.wholes.add(end - r.Sent)
	m.addTokens(r, begun, over, done)
}

func (m marks) addTokens(r *measure.Reply, begun, over, done *reached) {
	if !r.Usage.Known {
		begun.unsaidBegun++
		over.unsaidEnded++
		return
	}
	u := &r.Usage
	done.outputs += int64(u.Output)
	begun.input.most += int64(u.Input)
	over.input.least += int64(u.Input)
	begun.output.most += int64(u.Output)
	over.output.least += int64(u.Output)
	if !u.CachedKnown {
		begun.uncachedBegun++
		over.uncachedEnd++
	}
	begun.computed.most += int64(u.Input - u.Cached)
	over.computed.least += int64(u.Input - u.Cached)
}

// refused reports that a request was turned away before any server took it into service.
func refused(r *measure.Reply) bool {
	return r.Outcome == record.ConnectFailed || r.Outcome == record.NotSent || r.Outcome == record.HTTPError && (r.Status/100 == 4 || r.Status == 503)
}

// total makes what is reached at each mark that of everything up to it.
func (m marks) total() {
	for i := 1; i < len(m); i++ {
		m[i].reached.plus(&m[i-1].reached)
	}
}

func (s *reached) plus(t *reached) {
	s.begun, s.ended = s.begun+t.begun, s.ended+t.ended
	s.requests.plus(t.requests)
	s.input.plus(t.input)
	s.computed.plus(t.computed)
	s.output.plus(t.output)
	s.oddBegun, s.oddEnded = s.oddBegun+t.oddBegun, s.oddEnded+t.oddEnded
	s.unsaidBegun, s.unsaidEnded = s.unsaidBegun+t.unsaidBegun, s.unsaidEnded+t.unsaidEnded
	s.uncachedBegun, s.uncachedEnd = s.uncachedBegun+t.uncachedBegun, s.uncachedEnd+t.uncachedEnd
	s.firsts = summed{s.firsts.n + t.firsts.n, s.firsts.sum + t.firsts.sum}
	s.wholes = summed{s.wholes.n + t.wholes.n, s.wholes.sum + t.wholes.sum}
	s.outputs += t.outputs
}

func (c *counted) plus(d counted) { c.least, c.most = c.least+d.least, c.most+d.most }

// since are the bounds of what was counted between two marks.
func (c counted) since(d counted) counted { return counted{max(c.least-d.most, 0), c.most - d.least} }

// odd is how many requests of unknown fate the server may have counted between two marks.
func (s *reached) odd(from *reached) int64 { return s.oddBegun - from.oddEnded }

// unsaid is how many requests between two marks the server may have counted tokens of that we do not know.
func (s *reached) unsaid(from *reached) int64 {
	return s.odd(from) + s.unsaidBegun - from.unsaidEnded
}

// reachedAt is what was reached at the mark of a moment; nil where there is none.
func (m marks) reachedAt(at time.Duration) *reached {
	i := sort.Search(len(m), func(i int) bool { return m[i].at >= at })
	if i == len(m) || m[i].at != at {
		return nil
	}
	return &m[i].reached
}
