package main

import (
	"math"
	"math/rand/v2"
	"time"

	"tare/internal/record"
)

// server is what answers: it decides when each event of a reply reaches the client's kernel.
type server struct {
	name   string
	slow   bool
	ttft   func(*rand.Rand) time.Duration
	gap    func(*rand.Rand) time.Duration
	step   time.Duration // all streams emit on its ticks; 0 when each has times of its own
	slots  int           // requests in service at a time, the others queue; 0 for any number
	refuse float64       // share of requests that get a 503
	cut    float64       // share of replies that end before their end marker
	accept float64       // share of requests that find no idle connection, and a server slow to accept one
	free   []time.Duration
}

func constant(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func exponential(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// lognormal has σ 0.5.
func lognormal(median time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(math.Exp(0.5*r.NormFloat64()) * float64(median))
	}
}

// servers are new each time: they remember whom they serve.
func servers() []server {
	slow := server{slow: true, ttft: lognormal(2 * time.Second), gap: exponential(50 * time.Millisecond)}
	of := func(name string, change func(*server)) server {
		s := slow
		s.name = name
		change(&s)
		return s
	}
	return []server{
		of("slow: TTFT lognormal, median 2 s; gaps exponential, 50 ms", func(*server) {}),
		of("lock-step: TTFT 200 ms, all streams emit every 20 ms", func(s *server) {
			s.ttft, s.gap, s.step = constant(200*time.Millisecond), constant(0), 20*time.Millisecond
		}),
		of("overloaded: as slow, and serves 60 at a time", func(s *server) { s.slots = 60 }),
		of("failing: as slow, 20 % refused, 5 % cut off", func(s *server) { s.refuse, s.cut = 0.2, 0.05 }),
		of("slow to accept: as slow, a fifth waits 0.1–3 s for a connection", func(s *server) { s.accept = 0.2 }),
		of("quick: TTFT 20 ms, gaps 5 ms", func(s *server) {
			s.slow, s.ttft, s.gap = false, constant(20*time.Millisecond), constant(5*time.Millisecond)
		}),
	}
}

// begins is when a request that is sent at a moment comes into service.
func (s *server) begins(sent time.Duration) (slot int, at time.Duration) {
	if s.slots == 0 {
		return 0, sent
	}
	if s.free == nil {
		s.free = make([]time.Duration, s.slots)
	}
	for i := range s.free {
		if s.free[i] < s.free[slot] {
			slot = i
		}
	}
	return slot, max(sent, s.free[slot])
}

// answer gives the moments at which the events of the reply to a request arrive, and how it ends. A reply ends with its last event.
func (s *server) answer(r *rand.Rand, sent time.Duration, tokens int) (at []time.Duration, o record.Outcome) {
	if s.refuse > 0 && r.Float64() < s.refuse {
		return []time.Duration{sent + 2*time.Millisecond}, record.HTTPError
	}
	slot, now := s.begins(sent)
	o = record.Completed
	if s.cut > 0 && r.Float64() < s.cut {
		o, tokens = record.Truncated, max(tokens/2, 1)
	}
	now += s.ttft(r)
	for i := range tokens {
		if i > 0 {
			now += s.gap(r)
		}
		if s.step > 0 {
			now = (now/s.step+1)*s.step + time.Duration(r.Int64N(int64(30*time.Microsecond))) // sent one behind the other
		}
		at = append(at, now)
	}
	if s.slots > 0 {
		s.free[slot] = now
	}
	return at, o
}
