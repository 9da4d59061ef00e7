package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func model(t *testing.T, cfg Config) *Model {
	t.Helper()
	m, err := NewModel(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func delay(t *testing.T, s string) Delay {
	t.Helper()
	d, err := ParseDelay(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// alike is a load of requests that are all of one shape.
func alike(prompt, output int) func(int) Arrival {
	return func(int) Arrival { return Arrival{Prompt: prompt, Output: output} }
}

// poisson are n arrivals at a rate, of shapes drawn by next.
func poisson(n int, perSecond float64, seed uint64, next func(int) Arrival) (arrivals []Arrival) {
	r := rand.New(rand.NewPCG(seed, 0))
	at := 0.0
	for i := range n {
		at += r.ExpFloat64() / perSecond
		a := next(i)
		a.At = time.Duration(at * float64(time.Second))
		arrivals = append(arrivals, a)
	}
	return arrivals
}

func TestABatchGoesStepByStep(t *testing.T) {
	m := model(t, Config{Batching: true, Step: 10 * ms, StepPerSeq: 2 * ms, Prefill: ms, MaxSeqs: 2, MaxStepTokens: 8})
	got := m.Run([]Arrival{
		{At: 0, Prompt: 10, Output: 3},     // 8 tokens of its prompt in a step of 18 ms, 2 in one of 16 ms, then steps of 14 ms and 13 ms
		{At: ms, Prompt: 4, Output: 2},     // joins the second step
		{At: 2 * ms, Prompt: 1, Output: 1}, // finds no seat until the second request has ended
	})
	for i, want := range []Served{
		{Start: 0, Tokens: []time.Duration{34 * ms, 48 * ms, 61 * ms}},
		{Start: 18 * ms, Tokens: []time.Duration{34 * ms, 48 * ms}},
		{Start: 48 * ms, Tokens: []time.Duration{61 * ms}},
	} {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("request %d: got %+v, want %+v", i, got[i], want)
		}
	}
}

func TestContextAndCrowdMakeStepsLonger(t *testing.T) {
	m := model(t, Config{Batching: true, Step: 10 * ms, StepPerKV: ms, StepCrowd: 100 * ms})
	got := m.Run([]Arrival{{Prompt: 5, Output: 3}, {Prompt: 7, Output: 3}})
	want := []time.Duration{410 * ms, 832 * ms, 1256 * ms} // 10 + 4 × 100, and 5 + 7 tokens of context more, and 6 + 8
	for i := range got {
		if !slices.Equal(got[i].Tokens, want) {
			t.Errorf("request %d: got %v, want %v", i, got[i].Tokens, want)
		}
	}
}

func TestTheNewestIsPreemptedAndComputesAnew(t *testing.T) {
	m := model(t, Config{Batching: true, Step: 10 * ms, Prefill: ms, KVTokens: 16, KVBlock: 4})
	got := m.Run([]Arrival{{Prompt: 7, Output: 8}, {Prompt: 4, Output: 6}})
	// Blocks of 4, 4 in all. Step 1: 7 and 4 tokens, 2 + 1 blocks. Step 2: the second needs a second block. Step 3: the first has
	// 9 tokens and needs a third block; the second is preempted with 2 tokens made. It needs 2 blocks for its 6 tokens, and the
	// first goes up to 14 tokens, in 4 blocks: it has them to itself until it has ended.
	first := []time.Duration{21 * ms, 31 * ms, 41 * ms, 51 * ms, 61 * ms, 71 * ms, 81 * ms, 91 * ms}
	second := []time.Duration{21 * ms, 31 * ms, 107 * ms, 117 * ms, 127 * ms, 137 * ms}
	if !slices.Equal(got[0].Tokens, first) || got[0].Preemptions != 0 {
		t.Errorf("first: got %v, want %v, not preempted", got[0], first)
	}
	if !slices.Equal(got[1].Tokens, second) || got[1].Preemptions != 1 {
		t.Errorf("second: got %v, want %v, preempted once", got[1], second)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	m := model(t, Config{Batching: true, Step: 10 * ms, KVTokens: 64, MaxSeqs: 1, QueueLimit: 1})
	got := m.Run([]Arrival{{Prompt: 64, Output: 1}, {At: ms, Prompt: 64, Output: 2}, {At: ms, Prompt: 1, Output: 1}, {At: ms, Prompt: 1, Output: 1}})
	for i, want := range []int{0, 400, 0, 429} {
		if got[i].Status != want || want == 0 && len(got[i].Tokens) != 1 {
			t.Errorf("request %d: got %+v, want status %d", i, got[i], want)
		}
	}
}

func TestABatchSharesPrefixes(t *testing.T) {
	m := model(t, Config{Batching: true, Prefill: ms, PrefixCache: true})
	a := Arrival{Prompt: 40, Output: 1, Group: 7, Shared: 33}
	late, other := a, a
	late.At, other.At, other.Group = time.Second, 2*time.Second, 8
	got := m.Run([]Arrival{a, a, late, other})
	for i, want := range []int{0, 0, 32, 0} {
		if got[i].Cached != want {
			t.Errorf("request %d: got %d cached, want %d", i, got[i].Cached, want)
		}
	}
	if took := got[2].First() - late.At; took != 8*ms {
		t.Errorf("8 tokens that are not cached: got %v, want 8ms", took)
	}
}

func TestLongRunsReachTheCapacity(t *testing.T) {
	for _, c := range []struct {
		name           string
		cfg            Config
		prompt, output int
	}{
		{"constant", Config{Slots: 8, TTFT: Constant(130 * ms), Gap: Constant(10 * ms)}, 128, 32},
		{"exponential", Config{Slots: 4, TTFT: delay(t, "exponential(200ms)")}, 1, 1},
		{"lognormal", Config{Slots: 16, TTFT: delay(t, "lognormal(200ms,1)"), Gap: delay(t, "exponential(5ms)"), Prefill: ms}, 10, 9},
		{"a thousand slots", Config{Slots: 1000, TTFT: delay(t, "lognormal(20ms,0.5)"), Gap: Constant(ms)}, 1, 5},
		{"bucket", Config{BucketRate: 40, BucketBurst: 5, TTFT: Constant(50 * ms)}, 1, 1},
		{"bucket before slots", Config{BucketRate: 10, Slots: 4, TTFT: Constant(50 * ms)}, 1, 1},
		{"slots behind a bucket", Config{BucketRate: 1000, Slots: 4, TTFT: Constant(50 * ms)}, 1, 1},
		{"batch", Config{Batching: true, Step: 10 * ms, StepPerSeq: 100 * time.Microsecond, Prefill: 20 * time.Microsecond, MaxSeqs: 16, MaxStepTokens: 2048}, 128, 50},
		{"batch with context", Config{Batching: true, Step: 10 * ms, StepPerKV: 200, Prefill: 20 * time.Microsecond, MaxSeqs: 16}, 100, 50},
		{"crowded", Config{Batching: true, Step: 10 * ms, StepCrowd: 100 * time.Microsecond, MaxSeqs: 64, MaxStepTokens: 4096}, 32, 20},
		{"flat", Config{Batching: true, StepPerSeq: ms, Prefill: 50 * time.Microsecond, MaxSeqs: 64, MaxStepTokens: 100}, 64, 20},
		{"noise", Config{Batching: true, Step: 10 * ms, StepNoise: 0.3, MaxSeqs: 16}, 64, 20},
	} {
		m := model(t, c.cfg)
		completions := 20_000
		if !c.cfg.Batching {
			completions = 200_000 // draws that do not depend on each other: their mean is off by 0.2 % of their deviation
		}
		want, ok := m.Capacity(c.prompt, c.output)
		got, ran := m.LongRun(alike(c.prompt, c.output), completions)
		if !ok || !ran || math.Abs(got/want-1) > 0.01 {
			t.Errorf("%s: a long run completes %.4f/s (%v), the capacity is %.4f/s (%v)", c.name, got, ran, want, ok)
		}
	}
}

func TestABucketLetsABurstInAndThenItsRate(t *testing.T) {
	m := model(t, Config{BucketRate: 10, BucketBurst: 3, TTFT: Constant(5 * ms)})
	var arrivals []Arrival
	for _, at := range []time.Duration{0, 0, 0, 0, 0, time.Second, time.Second, time.Second, time.Second} {
		arrivals = append(arrivals, Arrival{At: at, Prompt: 1, Output: 1})
	}
	want := []time.Duration{0, 0, 0, 100 * ms, 200 * ms, time.Second, time.Second, time.Second, 1100 * ms}
	for i, s := range m.Run(arrivals) {
		if s.Start != want[i] || s.End() != want[i]+5*ms {
			t.Errorf("request %d: got service from %v to %v, want from %v, for 5ms", i, s.Start, s.End(), want[i])
		}
	}
}

func TestCapacityIsLeftToALongRunWhereLengthsDoNotDecideIt(t *testing.T) {
	fits := Config{Batching: true, Step: 10 * ms, MaxSeqs: 4, MaxStepTokens: 64, KVTokens: 128} // 4 × 16 tokens in a step, 4 × 2 blocks
	for name, c := range map[string]struct {
		cfg            Config
		prompt, output int
		ok             bool
	}{
		"all fits":         {fits, 16, 17, true},
		"memory too small": {fits, 16, 18, false},
		"budget too small": {fits, 17, 2, false},
		"lock-step":        {Config{Slots: 2, TTFT: Constant(ms), Step: ms}, 1, 1, false},
	} {
		if _, ok := model(t, c.cfg).Capacity(c.prompt, c.output); ok != c.ok {
			t.Errorf("%s: capacity by arithmetic: got %v, want %v", name, ok, c.ok)
		}
		if got, ok := model(t, c.cfg).LongRun(alike(c.prompt, c.output), 100); !ok || got <= 0 {
			t.Errorf("%s: long run: got %v, %v", name, got, ok)
		}
	}
}

func TestNoLimitHasNoCapacity(t *testing.T) {
	m := model(t, Config{TTFT: Constant(ms)})
	if got, ok := m.Capacity(1, 1); ok {
		t.Errorf("capacity: got %v, want none", got)
	}
	if got, ok := m.LongRun(alike(1, 1), 100); ok {
		t.Errorf("long run: got %v, want none", got)
	}
}

// TestWaitsAreErlangs holds the queue of the slots to the formula for M/M/c: the mean wait is C(c, a) / (c/s − λ), with Erlang's C.
func TestWaitsAreErlangs(t *testing.T) {
	const slots, rate = 3, 12.0 // 0.2 s each: 15/s at most
	m := model(t, Config{Slots: slots, TTFT: delay(t, "exponential(200ms)")})
	arrivals := poisson(400_000, rate, 5, alike(1, 1))
	sum := 0.0
	for i, s := range m.Run(arrivals) {
		sum += (s.Start - arrivals[i].At).Seconds()
	}
	a := rate * 0.2
	terms, term := 0.0, 1.0
	for k := range slots {
		terms += term
		term *= a / float64(k+1)
	}
	last := term / (1 - a/slots)
	want := last / (terms + last) / (slots/0.2 - rate)
	if got := sum / float64(len(arrivals)); math.Abs(got/want-1) > 0.03 {
		t.Errorf("mean wait: got %.4f s, want %.4f s", got, want)
	}
}

// TestAFlatServerSharesItself holds a batch whose steps are as long as its sequences are many to processor sharing: the mean time in
// it is the mean service over 1 − ρ, however services are distributed.
func TestAFlatServerSharesItself(t *testing.T) {
	const rate = 14.0
	m := model(t, Config{Batching: true, StepPerSeq: 200 * time.Microsecond, Prefill: 200 * time.Microsecond, MaxSeqs: 4096})
	shapes := rand.New(rand.NewPCG(1, 1))
	arrivals := poisson(100_000, rate, 3, func(int) Arrival {
		return Arrival{Prompt: 1, Output: []int{20, 400}[shapes.IntN(2)]}
	})
	sum := 0.0
	for i, s := range m.Run(arrivals) {
		sum += (s.End() - arrivals[i].At).Seconds()
	}
	const service = 210 * 0.0002
	const want = service / (1 - rate*service)
	if got := sum / float64(len(arrivals)); math.Abs(got/want-1) > 0.03 {
		t.Errorf("mean time in the server: got %.4f s, want %.4f s", got, want)
	}
}

// keeper watches a batch from inside.
type keeper struct {
	b      *batch
	ended  int
	tokens int
}

func (k *keeper) began(*sequence)   {}
func (k *keeper) resumed(*sequence) {}
func (k *keeper) token(q *sequence, n int) {
	k.tokens += n
	if q.tokens == q.max {
		k.ended++
		k.b.leave(q, q.due)
	}
}

func TestABatchKeepsItsBounds(t *testing.T) {
	for _, prefixes := range []bool{false, true} {
		cfg := Config{Batching: true, Step: 10 * ms, Prefill: 50 * time.Microsecond, MaxSeqs: 12, MaxStepTokens: 96, KVTokens: 640, PrefixCache: prefixes}.withDefaults()
		k := &keeper{}
		k.b = newBatch(cfg, k)
		b := k.b
		r := rand.New(rand.NewPCG(9, 9))
		const requests = 2000
		asked, sent, at := 0, 0, int64(0)
		for b.load().waiting+b.load().running > 0 || sent < requests {
			if sent < requests && r.IntN(3) == 0 {
				q := &sequence{n: uint64(sent), draws: drawsOf(1, uint64(sent)), at: at, prompt: 1 + r.IntN(150), max: 1 + r.IntN(80)}
				q.text.reset(cfg.KVBlock)
				for i := range q.prompt {
					q.text.add(uint64(i) + uint64(sent%3)<<32)
				}
				if refused := b.arrive(q); refused.status != 0 {
					t.Fatal(refused.message)
				}
				sent++
				asked += q.max
			}
			next, ok := b.next()
			if !ok {
				at += int64(time.Second)
				continue
			}
			at = max(at, next)
			if b.stepping {
				b.end()
				continue
			}
			b.step(at)
			expectBounds(t, b, cfg)
			if t.Failed() {
				return
			}
		}
		if k.ended != requests || k.tokens != asked {
			t.Errorf("prefixes %v: got %d requests and %d tokens, want %d and %d", prefixes, k.ended, k.tokens, requests, asked)
		}
		if b.memory.held != 0 || b.preempts == 0 {
			t.Errorf("prefixes %v: %d blocks are held at the end, after %d preemptions; want none, after some", prefixes, b.memory.held, b.preempts)
		}
	}
}

// expectBounds holds a step that was just put together to its limits, and to this: nothing waits that could be computed.
func expectBounds(t *testing.T, b *batch, cfg Config) {
	t.Helper()
	held, tokens, holders := map[int32]bool{}, 0, 0
	for _, q := range b.running {
		tokens += q.batched.now
		holders += len(q.batched.held)
		for _, n := range q.batched.held {
			held[n] = true
		}
		if have := len(q.batched.held) * cfg.KVBlock; q.batched.computed+q.batched.now > have {
			t.Errorf("a sequence of %d tokens has room for %d", q.batched.computed+q.batched.now, have)
		}
	}
	if len(held) != b.memory.held || b.memory.held > cfg.KVTokens/cfg.KVBlock || !cfg.PrefixCache && holders != len(held) {
		t.Errorf("%d blocks are held by %d, and %d counted, of %d", len(held), holders, b.memory.held, b.memory.most)
	}
	if tokens == 0 || tokens > cfg.MaxStepTokens || len(b.running) > cfg.MaxSeqs {
		t.Errorf("a step of %d tokens for %d sequences", tokens, len(b.running))
	}
	if len(b.waiting) == 0 || tokens == cfg.MaxStepTokens || len(b.running) == cfg.MaxSeqs {
		return
	}
	q := b.waiting[0]
	need := b.blocksOf(min(q.total(), cfg.MaxStepTokens-tokens))
	if q.batched.preempted == 0 && !cfg.PrefixCache && need <= b.memory.free() {
		t.Errorf("a sequence waits that needs %d blocks, and %d are free", need, b.memory.free())
	}
}

func TestTheSameArrivalsAreServedAlike(t *testing.T) {
	cfg := Config{Batching: true, Seed: 4, Step: 10 * ms, StepNoise: 0.2, Prefill: 50 * time.Microsecond, MaxSeqs: 8, KVTokens: 2048, PrefixCache: true}
	arrivals := poisson(300, 30, 2, func(i int) Arrival {
		return Arrival{Prompt: 20 + i%200, Output: 1 + i%30, Group: uint64(i % 3), Shared: 64}
	})
	one, two := model(t, cfg).Run(arrivals), model(t, cfg).Run(arrivals)
	if !reflect.DeepEqual(one, two) {
		t.Error("two runs of the same arrivals differ")
	}
	mixed := slices.Clone(arrivals)
	slices.Reverse(mixed)
	other := model(t, cfg).Run(mixed)
	slices.Reverse(other)
	if !reflect.DeepEqual(one, other) {
		t.Error("arrivals in another order, with the same times, differ")
	}
	cfg.Seed++
	if reflect.DeepEqual(one, model(t, cfg).Run(arrivals)) {
		t.Error("another seed changes nothing")
	}
}

// TestTheServerIsItsModel sends requests to a server whose loop is late now and then, and holds what it did to the Model's
// answer to the arrivals that it took up.
func TestTheServerIsItsModel(t *testing.T) {
	configs := map[string]Config{
		"batch":  {Batching: true, Seed: 2, Step: 8 * ms, StepNoise: 0.1, Prefill: 100 * time.Microsecond, MaxSeqs: 4, MaxStepTokens: 64, KVTokens: 480, QueueLimit: 12},
		"slots":  {Seed: 2, Slots: 3, TTFT: delay(t, "exponential(40ms)"), Gap: delay(t, "lognormal(4ms,0.5)")},
		"bucket": {BucketRate: 25, BucketBurst: 3, TTFT: Constant(20 * ms), Gap: Constant(ms)},
	}
	for name, cfg := range configs {
		b := newBench(t, cfg)
		r := rand.New(rand.NewPCG(6, 6))
		var arrivals []Arrival
		var conns []*conn
		at, served := time.Duration(0), map[uint64]*stream{}
		for i := range batchSize - 6 { // a stream is used again after so many
			at += time.Duration(r.ExpFloat64() * float64(25*ms))
			prompt, output := 1+r.IntN(150), 1+r.IntN(20)
			late := at + time.Duration(r.IntN(2))*time.Duration(r.IntN(3000))*time.Microsecond
			b.until(max(late, time.Duration(b.w.at)))
			c := &conn{at: int64(at)}
			feed(b.k, c, []byte(httpRequest("/v1/completions", fmt.Sprintf(`{"prompt":%q,"stream":true,"max_tokens":%d}`, numbered(prompt), output))))
			s := b.k.ended
			if c.s != nil {
				served[uint64(i)] = c.s
			} else {
				served[uint64(i)] = s[len(s)-1]
			}
			arrivals = append(arrivals, Arrival{At: time.Duration(served[uint64(i)].at), Prompt: prompt, Output: output})
			conns = append(conns, c)
		}
		b.until(time.Hour)
		for i, want := range model(t, cfg).Run(arrivals) {
			s := served[uint64(i)]
			if want.Status != 0 {
				if s.status != want.Status {
					t.Errorf("%s: request %d: got status %d, want %d", name, i, s.status, want.Status)
				}
				continue
			}
			if s.status != 200 || time.Duration(s.start) != want.Start || time.Duration(s.due) != want.End() || s.batched.preempted != want.Preemptions {
				t.Errorf("%s: request %d: got status %d from %v to %v, %d preemptions, want %+v", name, i, s.status, time.Duration(s.start), time.Duration(s.due), s.batched.preempted, want)
			}
			for j, sent := range b.times(conns[i]) {
				if sent < want.Tokens[j] || sent > want.Tokens[j]+time.Duration(s.late) {
					t.Errorf("%s: request %d: chunk %d was sent at %v, want %v and at most %v later", name, i, j, sent, want.Tokens[j], time.Duration(s.late))
				}
			}
		}
	}
}
