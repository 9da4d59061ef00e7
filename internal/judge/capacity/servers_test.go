package capacity_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
)

// machine is a simulated server over virtual time, in seconds.
type machine interface {
	arrive(at float64, id int)
	// next is when something happens next; ok is false when nothing does by itself.
	next() (at float64, ok bool)
	// happen lets it happen and tells of the requests that it ended.
	happen(end func(id int, first, at float64, ok bool))
}

// timed is a moment of a request.
type timed struct {
	at, first float64
	id        int
	ok        bool
}

type agenda []timed

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(timed)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func (a agenda) next() (float64, bool) {
	if len(a) == 0 {
		return 0, false
	}
	return a[0].at, true
}

// slots serve in order, so many at a time.
type slots struct {
	count   int
	mean    float64
	draw    func() float64 // of mean 1
	limit   int            // of the queue, beyond which requests are refused; 0 for none
	slower  int            // of the queue, beyond which service takes longer the longer it is; 0 for never
	queue   []timed
	running int
	ends    agenda
}

func (s *slots) arrive(at float64, id int) {
	switch {
	case s.running < s.count:
		s.begin(at, id)
	case s.limit > 0 && len(s.queue) >= s.limit:
		heap.Push(&s.ends, timed{at: at + 0.001, first: at, id: -1 - id})
	default:
		s.queue = append(s.queue, timed{at: at, id: id})
	}
}

func (s *slots) begin(at float64, id int) {
	s.running++
	service := s.mean * s.draw()
	if over := len(s.queue) - s.slower; s.slower > 0 && over > 0 {
		service *= 1 + min(float64(over)/float64(s.slower), 1)
	}
	heap.Push(&s.ends, timed{at + service, at, id, true})
}

func (s *slots) next() (float64, bool) { return s.ends.next() }

func (s *slots) happen(end func(int, float64, float64, bool)) {
	t := heap.Pop(&s.ends).(timed)
	if t.id < 0 {
		end(-1-t.id, 0, t.at, false)
		return
	}
	s.running--
	if len(s.queue) > 0 {
		id := s.queue[0].id
		s.queue = s.queue[1:]
		s.begin(t.at, id)
	}
	end(t.id, t.first, t.at, true)
}

// shared works on all requests at once, each as fast as alone until there are too many, then all at a flat rate together.
type shared struct {
	alone float64 // time of a request by itself
	most  float64 // requests that are worked on at full speed
	draw  func() float64
	done  float64 // work that each request in it since the beginning has got
	at    float64
	ends  agenda // by the work at which they end
}

func (s *shared) speed() float64 { return min(1, s.most/max(float64(len(s.ends)), 1)) }

func (s *shared) move(at float64) {
	s.done += (at - s.at) * s.speed()
	s.at = at
}

func (s *shared) arrive(at float64, id int) {
	s.move(at)
	heap.Push(&s.ends, timed{s.done + s.alone*s.draw(), at, id, true})
}

func (s *shared) next() (float64, bool) {
	work, ok := s.ends.next()
	return s.at + (work-s.done)/s.speed(), ok
}

func (s *shared) happen(end func(int, float64, float64, bool)) {
	at, _ := s.next()
	s.move(at)
	t := heap.Pop(&s.ends).(timed)
	end(t.id, t.first+s.alone/10, at, true)
}

// bucket answers at once, a rate of them, and refuses what is beyond.
type bucket struct {
	rate, burst, service float64
	tokens, at           float64
	ends                 agenda
}

func (b *bucket) arrive(at float64, id int) {
	b.tokens = min(b.tokens+(at-b.at)*b.rate, b.burst)
	b.at = at
	if b.tokens < 1 {
		heap.Push(&b.ends, timed{at: at + 0.001, id: id})
		return
	}
	b.tokens--
	heap.Push(&b.ends, timed{at + b.service, at + b.service/10, id, true})
}

func (b *bucket) next() (float64, bool) { return b.ends.next() }

func (b *bucket) happen(end func(int, float64, float64, bool)) {
	t := heap.Pop(&b.ends).(timed)
	end(t.id, t.first, t.at, t.ok)
}

// batching decodes a token of each of its sequences a step; the step takes longer the more there are.
type batching struct {
	most           int
	base, each     float64        // of a step, and of each sequence in it
	tokens         func() float64 // of a reply
	queue, running []timed        // at: tokens left
	step           float64        // when the step under way ends
}

func (b *batching) arrive(at float64, id int) {
	b.queue = append(b.queue, timed{at: math.Max(1, math.Round(b.tokens())), id: id, first: -1})
	if len(b.running) == 0 {
		b.begin(at)
	}
}

func (b *batching) begin(at float64) {
	for len(b.running) < b.most && len(b.queue) > 0 {
		b.running, b.queue = append(b.running, b.queue[0]), b.queue[1:]
	}
	b.step = at + b.base + b.each*float64(len(b.running))
}

func (b *batching) next() (float64, bool) { return b.step, len(b.running) > 0 }

func (b *batching) happen(end func(int, float64, float64, bool)) {
	at, kept := b.step, b.running[:0]
	var ended []timed
	for _, t := range b.running {
		t.at--
		if t.first < 0 {
			t.first = at
		}
		if t.at <= 0 {
			ended = append(ended, t)
		} else {
			kept = append(kept, t)
		}
	}
	b.running = kept
	b.begin(at)
	for _, t := range ended {
		end(t.id, t.first, at, true)
	}
}

// faulty lets another server do the work and spoils part of it.
type faulty struct {
	machine
	share float64 // of the replies that fail
	after int     // requests after which nothing is answered; 0 for never, below 0 for always
	storm int     // requests after which all are refused; 0 for never
	seen  *int
	rand  *rand.Rand
	fails agenda
}

func (f *faulty) arrive(at float64, id int) {
	*f.seen++
	switch {
	case f.after < 0, f.after > 0 && *f.seen > f.after:
	case f.storm > 0 && *f.seen > f.storm, f.rand.Float64() < f.share:
		heap.Push(&f.fails, timed{at: at + 0.001, id: id})
	default:
		f.machine.arrive(at, id)
	}
}

func (f *faulty) next() (float64, bool) {
	a, okA := f.fails.next()
	b, okB := f.machine.next()
	if okA && (!okB || a <= b) {
		return a, true
	}
	return b, okB
}

func (f *faulty) happen(end func(int, float64, float64, bool)) {
	a, okA := f.fails.next()
	b, okB := f.machine.next()
	if okA && (!okB || a <= b) {
		t := heap.Pop(&f.fails).(timed)
		end(t.id, 0, t.at, false)
		return
	}
	f.machine.happen(end)
}
