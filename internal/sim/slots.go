package sim

import (
	"math"
	"slices"
	"time"
)

// slots is the timing of a server with a fixed number of places, or with any number. A request in service has its delays to
// itself, whatever the others do. Its model runs on due times: each follows from the arrival and the draws alone.
type slots struct {
	cfg     Config
	to      audience
	timers  timers
	running int         // requests in service
	booked  int         // requests that wait for a known start
	free    []int64     // when each free slot became free, earliest first
	queue   []*sequence // requests that wait for a slot, in order of arrival
	turn    *sequence   // its audience is being told; nil once it has left
	full    int64       // token bucket: when it will be full again
	cache   *blocks     // nil without a prefix cache
	holding []int32     // scratch of remember
}

func newSlots(cfg Config, to audience) *slots {
	t := &slots{cfg: cfg, to: to, free: make([]int64, cfg.Slots), full: math.MinInt64 / 2}
	if cfg.PrefixCache {
		t.cache = newBlocks(cfg.KVTokens / cfg.KVBlock)
	}
	return t
}

func (t *slots) next() (int64, bool) { return t.timers.next() }

func (t *slots) load() load { return load{running: t.running, waiting: len(t.queue) + t.booked} }

func (t *slots) advance(now int64) {
	for range advanceAtMost {
		q, ok := t.timers.pop(now)
		if !ok {
			return
		}
		switch q.phase {
		case phaseBooked:
			t.booked--
			t.begin(q, q.due)
		case phaseHolding:
			t.to.resumed(q)
			t.compute(q)
		default:
			t.emit(q)
		}
	}
}

func (t *slots) arrive(q *sequence) refusal {
	waiting := len(t.queue) + t.booked
	switch {
	case t.cfg.Slots == 0 && t.cfg.BucketRate == 0:
		t.begin(q, q.at)
	case t.cfg.QueueLimit > 0 && waiting >= t.cfg.QueueLimit && !t.ready(q.at):
		return refusedQueue
	case t.cfg.Slots == 0:
		t.book(q, q.at)
	case len(t.free) > 0:
		at := t.free[0]
		t.free = t.free[1:]
		t.book(q, max(q.at, at))
	default:
		q.phase = phaseQueued
		t.queue = append(t.queue, q)
	}
	return refusal{}
}

// refusedQueue is what those get that find as many waiting as may.
var refusedQueue = refusal{429, "the queue is full"}

// ready says that a request that arrives at a time need not wait.
func (t *slots) ready(at int64) bool {
	return (t.cfg.Slots == 0 || len(t.free) > 0) && t.grant(at) <= at
}

// interval is the time in which a token comes into the bucket.
func (t *slots) interval() int64 { return int64(math.Round(float64(time.Second) / t.cfg.BucketRate)) }

// grant is when the bucket has a token for a request that may begin at a time.
func (t *slots) grant(at int64) int64 {
	if t.cfg.BucketRate == 0 {
		return at
	}
	return max(at, t.full-int64(t.cfg.BucketBurst-1)*t.interval())
}

// book begins the service of a request that has a slot, when the bucket lets it.
func (t *slots) book(q *sequence, at int64) {
	start := t.grant(at)
	if t.cfg.BucketRate > 0 {
		t.full = max(t.full, start) + t.interval()
	}
	if start <= at {
		t.begin(q, at)
		return
	}
	q.due, q.phase = start, phaseBooked
	t.booked++
	t.timers.add(q)
}

// begin starts the service of q at a time that may have passed already.
func (t *slots) begin(q *sequence, at int64) {
	q.start, q.admitted = at, true
	t.running++
	if t.cache != nil {
		q.cached = t.cache.find(q.text.shareable(q.prompt)) * t.cfg.KVBlock
	}
	q.due = at + q.hold
	t.to.began(q)
	if q.hold > 0 {
		q.phase = phaseHolding
		t.timers.add(q)
		return
	}
	t.compute(q)
}

// compute sets the due time of the first token.
func (t *slots) compute(q *sequence) {
	q.phase = phaseTokens
	q.due += int64(t.cfg.Prefill)*int64(q.prompt-q.cached) + t.cfg.TTFT.at(q.draws.unit(forTTFT, 0))
	if step := int64(t.cfg.Step); step > 0 {
		q.due = (q.due + step - 1) / step * step
	}
	t.timers.add(q)
}

// emit makes the next chunk.
func (t *slots) emit(q *sequence) {
	if q.chunks == 0 && t.cache != nil {
		t.remember(q.text.names)
	}
	n := min(t.cfg.TokensPerChunk, q.max-q.tokens)
	q.tokens += n
	q.chunks++
	t.turn = q
	t.to.token(q, n)
	if t.turn == q && q.phase == phaseTokens {
		q.due += t.gap(q)
		t.timers.add(q)
	}
	t.turn = nil
}

func (t *slots) gap(q *sequence) int64 {
	if t.cfg.Step > 0 {
		return int64(t.cfg.Step)
	}
	return t.cfg.Gap.at(q.draws.unit(forGap, uint64(q.chunks)))
}

func (t *slots) leave(q *sequence, at int64) {
	if t.turn == q {
		t.turn = nil
	}
	t.timers.remove(q)
	was := q.phase
	q.phase = phaseOut
	switch was {
	case phaseOut:
	case phaseQueued:
		if i := slices.Index(t.queue, q); i >= 0 {
			t.queue = slices.Delete(t.queue, i, i+1)
		}
	case phaseBooked:
		t.booked--
		t.vacate(at)
	default:
		t.running--
		t.rememberReply(q)
		t.vacate(at)
	}
}

// vacate gives a slot to the request that has waited longest.
func (t *slots) vacate(at int64) {
	if t.cfg.Slots == 0 {
		return
	}
	if len(t.queue) == 0 {
		t.free = append(t.free, at)
		return
	}
	next := t.queue[0]
	t.queue[0] = nil
	t.queue = t.queue[1:]
	t.book(next, max(at, next.at))
}

// remember puts blocks into the cache, as those used last. Of what is larger than the cache it keeps the beginning.
func (t *slots) remember(names []uint64) {
	t.holding = t.holding[:0]
	for _, name := range names {
		n, ok := t.cache.keep(name)
		if !ok {
			break
		}
		t.holding = append(t.holding, n)
	}
	t.cache.release(t.holding)
}

// rememberReply puts the reply, as far as it was made, into the cache behind its prompt. The last token is not in it: it was
// sampled, and nothing computed from it.
func (t *slots) rememberReply(q *sequence) {
	if t.cache == nil || q.tokens == 0 {
		return
	}
	for i := range q.tokens - 1 {
		q.text.add(spoken[q.draws.word(i)])
	}
	t.remember(q.text.names)
}

// service is the mean time in service, nanoseconds, with nothing in a prefix cache.
func (t *slots) service(prompt, max int) float64 {
	chunks := (max + t.cfg.TokensPerChunk - 1) / t.cfg.TokensPerChunk
	return t.cfg.TTFT.mean() + float64(t.cfg.Prefill)*float64(prompt) + t.cfg.Gap.mean()*float64(chunks-1)
}

// capacity is slots / mean service time, and no more than the bucket lets in. In lock-step it depends on the moments of arrival.
func (t *slots) capacity(prompt, max int) (perSecond float64, ok bool) {
	limit := math.Inf(1)
	if service := t.service(prompt, max); t.cfg.Slots > 0 && service > 0 {
		if t.cfg.Step > 0 {
			return 0, false
		}
		limit = float64(t.cfg.Slots) / service * float64(time.Second)
	}
	if t.cfg.BucketRate > 0 {
		limit = min(limit, float64(time.Second)/float64(t.interval()))
	}
	return limit, !math.IsInf(limit, 1)
}

func (t *slots) population(prompt, max int) int {
	switch {
	case t.cfg.Slots > 0:
		return t.cfg.Slots + 1
	case t.cfg.BucketRate > 0:
		return int(2*t.cfg.BucketRate*t.service(prompt, max)/float64(time.Second)) + t.cfg.BucketBurst + 2
	}
	return 0
}
