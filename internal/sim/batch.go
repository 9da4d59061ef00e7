package sim

import (
	"math"
	"slices"
	"time"
)

// batch is the timing of continuous batching, as vLLM's V1 scheduler does it. The engine works in steps. In each, every
// sequence that runs computes a part of its prompt or one token, as long as the step's budget of tokens lasts: first those that
// run already, in their order, then those that wait, as far as there are seats and KV memory. What a step made is there when
// it ends, all at once, and the next one begins at that moment. If the memory does not suffice for a sequence that runs, the one
// that came last is preempted: it gives all of its memory back, and later computes everything anew.
type batch struct {
	cfg     Config
	to      audience
	memory  *blocks
	waiting []*sequence // in order of arrival; those that were preempted came before the others
	running []*sequence // in the order they were scheduled
	fresh   []*sequence // scheduled for the first time, by the newest step
	made    []*sequence // those that get a token, as the step ends

	stepping bool
	began    int64  // the newest step
	ends     int64  // it, or the one before
	steps    uint64 // so far
	preempts uint64
}

// batched is what a batch knows of one sequence.
type batched struct {
	computed   int     // tokens that the KV memory has
	now        int     // tokens that the step in progress computes
	held       []int32 // blocks
	named      int     // of them, from the first on: others find them
	preempted  int     // times
	running    bool
	prefilling bool // the step in progress computes a part of the prompt, or what was lost
}

func newBatch(cfg Config, to audience) *batch {
	return &batch{cfg: cfg, to: to, memory: newBlocks(cfg.KVTokens / cfg.KVBlock), began: math.MinInt64, ends: math.MinInt64}
}

func (b *batch) load() load {
	return load{
		running: len(b.running), waiting: len(b.waiting), preemptions: b.preempts,
		kv: float64(b.memory.held) / float64(b.memory.most),
	}
}

func (b *batch) next() (at int64, ok bool) {
	switch {
	case b.stepping || len(b.running) > 0:
		return b.ends, true
	case len(b.waiting) > 0:
		return max(b.ends, b.waiting[0].at), true
	}
	return 0, false
}

// stepsAtMost is how many steps one call of advance ends, so that reading is never put off for long.
const stepsAtMost = 8

func (b *batch) advance(now int64) {
	for range stepsAtMost {
		at, ok := b.next()
		if !ok || at > now {
			return
		}
		if b.stepping {
			b.end()
		}
		if at, ok = b.next(); ok && !b.stepping && at <= now {
			b.step(at)
		}
	}
}

// arrive lets a request wait. One that is told of only now, but arrived before the newest step began, has missed that step:
// its arrival is put behind the step's beginning, so that the same arrivals give the same steps at any time.
func (b *batch) arrive(q *sequence) refusal {
	q.at += q.hold
	if b.stepping && q.at <= b.began {
		q.at = b.began + 1
	}
	if b.blocksOf(q.prompt+q.max-1) > b.memory.most {
		return refusal{400, "the prompt and the answer have more tokens than the KV memory"}
	}
	if b.cfg.QueueLimit > 0 && len(b.waiting) >= b.cfg.QueueLimit {
		return refusedQueue
	}
	i := len(b.waiting)
	for i > 0 && b.waiting[i-1].at > q.at {
		i--
	}
	q.phase = phaseQueued
	b.waiting = slices.Insert(b.waiting, i, q)
	return refusal{}
}

func (b *batch) blocksOf(tokens int) int { return (tokens + b.cfg.KVBlock - 1) / b.cfg.KVBlock }

// total is how many tokens q has by now: its next one follows from all of them.
func (q *sequence) total() int { return q.prompt + q.tokens }

// step begins a step: it decides what is computed, and how long that takes.
func (b *batch) step(at int64) {
	b.began, b.stepping = at, true
	b.steps++
	budget := b.cfg.MaxStepTokens
	budget, preempted := b.goOn(budget)
	if !preempted {
		b.admit(at, budget)
	}
	b.ends = at + b.span()
	for _, q := range b.fresh {
		q.start, q.admitted, q.phase = at, true, phaseTokens
		b.to.began(q)
	}
	b.fresh = b.fresh[:0]
}

// goOn gives the sequences that run their part of the budget, and takes memory from the newest when it does not suffice.
func (b *batch) goOn(budget int) (left int, preempted bool) {
	for i := 0; i < len(b.running); i++ {
		q := b.running[i]
		n := min(q.total()-q.batched.computed, budget)
		for n > 0 && !b.extend(q, n) {
			preempted = true
			if b.preempt() == q {
				n = 0
			}
		}
		if q.batched.running {
			q.batched.schedule(n, q)
			budget -= n
		}
	}
	return budget, preempted
}

// schedule notes what the step computes of q.
func (s *batched) schedule(n int, q *sequence) {
	s.now = n
	s.prefilling = s.computed < q.prompt || n > 1
}

// extend gets q the blocks for n more tokens, all or none.
func (b *batch) extend(q *sequence, n int) bool {
	missing := b.blocksOf(q.batched.computed+n) - len(q.batched.held)
	if missing > b.memory.free() {
		return false
	}
	for range missing {
		block, _ := b.memory.take()
		q.batched.held = append(q.batched.held, block)
	}
	return true
}

// preempt takes everything from the sequence that was scheduled last, and lets it wait before all others.
func (b *batch) preempt() *sequence {
	last := len(b.running) - 1
	q := b.running[last]
	b.running = b.running[:last]
	b.drop(q)
	q.batched.preempted++
	b.preempts++
	b.waiting = slices.Insert(b.waiting, 0, q)
	return q
}

// drop gives back what q holds.
func (b *batch) drop(q *sequence) {
	b.memory.release(q.batched.held)
	q.batched.held = q.batched.held[:0]
	q.batched.computed, q.batched.named, q.batched.now, q.batched.running = 0, 0, 0, false
}

// admit schedules those that wait, in order, as far as they have arrived and there are seats, budget and memory.
func (b *batch) admit(at int64, budget int) {
	admitted := 0
	for _, q := range b.waiting {
		if q.at > at || budget == 0 || len(b.running) >= b.cfg.MaxSeqs {
			break
		}
		found := b.recall(q)
		n := min(q.total()-found, budget)
		if !b.extend(q, n) {
			b.drop(q)
			break
		}
		q.batched.schedule(n, q)
		q.batched.running = true
		budget -= n
		admitted++
		b.running = append(b.running, q)
		if !q.admitted {
			q.cached = found
			b.fresh = append(b.fresh, q)
		}
	}
	b.waiting = slices.Delete(b.waiting, 0, admitted)
}

// recall holds for q what the prefix cache has of it, and returns how many tokens that are.
func (b *batch) recall(q *sequence) int {
	if !b.cfg.PrefixCache {
		return 0
	}
	names := q.text.shareable(q.total())
	names = names[:b.memory.find(names)]
	for _, name := range names {
		q.batched.held = append(q.batched.held, b.memory.hold(name))
	}
	q.batched.named = len(names)
	q.batched.computed = len(names) * b.cfg.KVBlock
	return q.batched.computed
}

// span is how long the step takes that has been put together.
func (b *batch) span() int64 {
	var computing, prefill, decoding, context int
	for _, q := range b.running {
		switch s := &q.batched; {
		case s.now == 0:
			continue
		case s.prefilling:
			prefill += s.now
		default:
			decoding++
			context += s.computed
		}
		computing++
	}
	c := &b.cfg
	span := float64(c.Step) + float64(c.StepPerSeq)*float64(decoding) + float64(c.Prefill)*float64(prefill) +
		float64(c.StepPerKV)*float64(context) + float64(c.StepCrowd)*float64(computing)*float64(computing)
	if c.StepNoise > 0 {
		noise := Delay{shape: lognormal, a: span, b: c.StepNoise}
		span = float64(noise.at(drawsOf(c.Seed, b.steps).unit(forStep, 0)))
	}
	return max(int64(math.Round(span)), 1)
}

// end ends the step in progress: what it computed is in the memory, and who has everything computed gets a token.
func (b *batch) end() {
	b.stepping = false
	b.made = b.made[:0]
	for _, q := range b.running {
		if q.batched.now == 0 {
			continue
		}
		q.batched.computed += q.batched.now
		q.batched.now = 0
		b.remember(q)
		if q.batched.computed == q.total() {
			b.made = append(b.made, q)
		}
	}
	for _, q := range b.made {
		q.due = b.ends
		if b.cfg.PrefixCache {
			q.text.add(spoken[q.draws.word(q.tokens)])
		}
		q.tokens++
		q.chunks++
		b.to.token(q, 1)
		if q.phase == phaseStalled {
			b.leave(q, b.ends)
		}
	}
}

// remember names the whole blocks that q has computed, so that others find them.
func (b *batch) remember(q *sequence) {
	if !b.cfg.PrefixCache {
		return
	}
	for whole := q.batched.computed / b.cfg.KVBlock; q.batched.named < whole; q.batched.named++ {
		b.memory.name(q.batched.held[q.batched.named], q.text.names[q.batched.named])
	}
}

func (b *batch) leave(q *sequence, _ int64) {
	if q.phase == phaseOut {
		return
	}
	from := &b.waiting
	if q.batched.running {
		from = &b.running
	}
	if i := slices.Index(*from, q); i >= 0 {
		*from = slices.Delete(*from, i, i+1)
	}
	b.drop(q)
	q.phase = phaseOut
}

// population is one more than there are seats: who leaves is followed at once.
func (b *batch) population(int, int) int { return b.cfg.MaxSeqs + 1 }

// capacity is what a full batch completes, where that follows from the lengths alone: each request costs the engine its own
// part of the steps, and of what all share, in each of its steps, a part for each seat. ok is false where the budget of a step
// or the memory could hold requests up, and when nothing costs anything.
func (b *batch) capacity(prompt, output int) (perSecond float64, ok bool) {
	return b.throughput(b.cfg.MaxSeqs, prompt, output)
}

// throughput is capacity with so many sequences at any time.
func (b *batch) throughput(running, prompt, output int) (perSecond float64, ok bool) {
	c := &b.cfg
	seats, out := float64(running), float64(output)
	shared := float64(c.Step)/seats + float64(c.StepCrowd)*seats
	own := float64(c.Prefill)*float64(prompt) + float64(c.StepPerSeq)*(out-1) +
		float64(c.StepPerKV)*((out-1)*float64(prompt)+(out-1)*(out-2)/2)
	if shared > 0 && running*prompt > c.MaxStepTokens {
		return 0, false
	}
	if running*b.blocksOf(prompt+output-1) > b.memory.most {
		return 0, false
	}
	cost := own + shared*out
	return float64(time.Second) / cost, cost > 0
}
