package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Model is the server's model of time without a network: Run answers in virtual time, at once, what a server with the same
// Config would have done. It is the timing that Serve runs; failures, and clients that leave, are not in it. Methods may be called
// from several goroutines.
type Model struct{ cfg Config }

// NewModel returns the model of a server. The error reports every fault of cfg; Addr may be empty.
func NewModel(cfg Config) (*Model, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Null {
		return nil, fmt.Errorf("null: has no model of time\nhint: leave it out")
	}
	return &Model{cfg.withDefaults()}, nil
}

// Arrival is one request.
type Arrival struct {
	At     time.Duration // when it arrives, since the start of the run
	Prompt int           // tokens, 1 or more
	Output int           // tokens it will be answered with, 1 or more
	Group  uint64        // requests of one group begin alike
	Shared int           // so many tokens of the prompt; the others are like nobody's
}

// Served is what became of one request. Times are offsets from the start of the run.
type Served struct {
	Status      int             // 0, or the HTTP status it was refused with
	Start       time.Duration   // its service began
	Tokens      []time.Duration // when each chunk with tokens was due; none when it was refused
	Cached      int             // tokens of the prompt that a prefix cache had
	Preemptions int             // times that it lost its KV memory
}

// First is when the first token was due. It is 0 for a request that was refused.
func (s *Served) First() time.Duration {
	if len(s.Tokens) == 0 {
		return 0
	}
	return s.Tokens[0]
}

// End is when the last token was due. It is 0 for a request that was refused.
func (s *Served) End() time.Duration {
	if len(s.Tokens) == 0 {
		return 0
	}
	return s.Tokens[len(s.Tokens)-1]
}

// Run serves the arrivals and returns what became of each, in their order. They are taken in the order of their times, and
// numbered by it: that, the seed and the Config decide everything.
func (m *Model) Run(arrivals []Arrival) []Served {
	r := &virtual{cfg: m.cfg, served: make([]Served, len(arrivals)), keep: true}
	r.timing = newTiming(m.cfg, r)
	order := make([]int, len(arrivals))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(arrivals[i].At, arrivals[j].At) })
	for _, i := range order {
		r.until(int64(arrivals[i].At) - 1)
		r.arrive(i, arrivals[i])
	}
	r.until(math.MaxInt64)
	return r.served
}

// Capacity returns the requests per second that the server completes at most, when each has so many prompt and output tokens
// and nothing is in a prefix cache, by arithmetic. ok is false when nothing limits it, or when that does not follow from the
// lengths alone; LongRun tells then.
func (m *Model) Capacity(prompt, output int) (perSecond float64, ok bool) {
	return newTiming(m.cfg, nil).capacity(prompt, max(output, 1))
}

// Peak returns the highest Capacity of a batch in which at most so many sequences run, and how many that are. It is above Capacity
// where more load is less throughput. ok is false where no batch is known to have one.
func (m *Model) Peak(prompt, output int) (perSecond float64, running int, ok bool) {
	if !m.cfg.Batching {
		return 0, 0, false
	}
	b := newBatch(m.cfg, nil)
	for n := 1; n <= m.cfg.MaxSeqs; n++ {
		if at, known := b.throughput(n, prompt, max(output, 1)); known && at > perSecond {
			perSecond, running = at, n
		}
	}
	return perSecond, running, running > 0
}

// LongRun returns the requests per second that the server completes while there always are some that wait, counted over the given
// number of completions behind a first quarter as many. next says what the request with a number is like; its At does not
// matter, and a queue limit is lifted. ok is false when nothing limits the server.
func (m *Model) LongRun(next func(n int) Arrival, completions int) (perSecond float64, ok bool) {
	cfg := m.cfg
	cfg.QueueLimit = 0
	r := &virtual{cfg: cfg, next: next, goal: completions + completions/4, from: completions / 4}
	r.timing = newTiming(cfg, r)
	first := next(0)
	population := r.timing.population(first.Prompt, first.Output)
	if population == 0 {
		return 0, false
	}
	for range population {
		r.arrive(r.issued, next(r.issued))
	}
	r.until(math.MaxInt64)
	return float64(completions) / (time.Duration(r.last - r.first).Seconds()), r.last > r.first
}

// virtual is the audience of a timing that nobody watches.
type virtual struct {
	cfg    Config
	timing timing
	issued int

	keep   bool
	index  []int    // by arrival number: the place in served
	served []Served // if keep

	next        func(n int) Arrival // the request that takes the place of one that ended; nil when none does
	goal, from  int                 // completions at which the run ends, and from which on it counts
	done        int
	first, last int64 // when completion from and completion goal came
}

// until runs what is due up to and at a time.
func (v *virtual) until(at int64) {
	for v.goal == 0 || v.done < v.goal {
		due, ok := v.timing.next()
		if !ok || due > at {
			return
		}
		v.timing.advance(due)
	}
}

func (v *virtual) arrive(index int, a Arrival) {
	n := uint64(v.issued)
	v.issued++
	q := &sequence{n: n, draws: drawsOf(v.cfg.Seed, n), at: int64(a.At), prompt: a.Prompt, max: a.Output}
	v.index = append(v.index, index)
	if v.cfg.PrefixCache {
		q.text.reset(v.cfg.KVBlock)
		for i := range a.Prompt {
			from := n + 1<<63
			if i < a.Shared {
				from = a.Group
			}
			q.text.add(mix(mix(from) + uint64(i)))
		}
	}
	if r := v.timing.arrive(q); r.status != 0 && v.keep {
		v.served[index].Status = r.status
	}
}

func (v *virtual) began(*sequence)   {}
func (v *virtual) resumed(*sequence) {}

func (v *virtual) token(q *sequence, _ int) {
	if v.keep {
		s := &v.served[v.index[q.n]]
		s.Tokens = append(s.Tokens, time.Duration(q.due))
	}
	if q.tokens < q.max {
		return
	}
	if v.keep {
		s := &v.served[v.index[q.n]]
		s.Start, s.Cached, s.Preemptions = time.Duration(q.start), q.cached, q.batched.preempted
	}
	v.timing.leave(q, q.due)
	v.complete(q)
}

// complete counts a completion, and lets the next request take its place.
func (v *virtual) complete(q *sequence) {
	if v.next == nil {
		return
	}
	switch v.done++; v.done {
	case v.from:
		v.first = q.due
	case v.goal:
		v.last = q.due
	}
	a := v.next(v.issued)
	a.At = time.Duration(q.due)
	v.arrive(v.issued, a)
}
