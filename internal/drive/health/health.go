// Package health samples how the client and its machine fare while a run goes on, off the way of any request.
package health

import (
	"io"
	"math"
	"runtime/metrics"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/record"
)

// Every is the time between two samples.
const Every = time.Second

// least is the shortest span worth a sample of its own, at the end of a run.
const least = 50 * time.Millisecond

// Watch writes a sample to w every second, and a last one when done is closed, and returns then. After an error of w it
// writes no more. The canary, which somebody else has sing, may be nil.
func Watch(c *clock.Clock, w io.Writer, canary *Canary, done <-chan struct{}) error {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	s := newSampler(c)
	for {
		ended := false
		select {
		case <-tick.C:
		case <-done:
			ended = true
		}
		if ended && c.Now()-s.at < least {
			return nil
		}
		h := s.sample()
		h.Canary = canary.heard()
		if err := h.Write(w); err != nil || ended {
			return err
		}
	}
}

// sampler turns counters into what happened between two looks at them.
type sampler struct {
	clock  *clock.Clock
	at     time.Duration
	offset clock.Offset
	system system
	delays []metrics.Sample
	before [][]uint64 // buckets of delays
}

func newSampler(c *clock.Clock) *sampler {
	s := &sampler{
		clock: c, at: c.Now(), offset: c.Sample(), system: readSystem(),
		delays: []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/latencies:seconds"}},
	}
	s.before = make([][]uint64, len(s.delays))
	s.readDelays()
	return s
}

func (s *sampler) sample() record.Health {
	now, offset, system := s.clock.Now(), s.clock.Sample(), readSystem()
	h := record.Health{AtMs: ms(now), SpanMs: ms(now - s.at), ClockStep: ms(offset.Step(s.offset))}
	system.since(&s.system, &h)
	delays := s.readDelays()
	h.Pauses, h.Scheduler = delays[0], delays[1]
	s.at, s.offset, s.system = now, offset, system
	return h
}

// readDelays gives the delays since it was last called.
func (s *sampler) readDelays() []record.Delays {
	metrics.Read(s.delays)
	all := make([]record.Delays, len(s.delays))
	for i := range s.delays {
		if s.delays[i].Value.Kind() != metrics.KindFloat64Histogram {
			continue
		}
		h := s.delays[i].Value.Float64Histogram()
		if s.before[i] == nil {
			s.before[i] = make([]uint64, len(h.Counts))
		}
		all[i] = between(s.before[i], h.Counts, h.Buckets)
		copy(s.before[i], h.Counts)
	}
	return all
}

// between describes what a histogram of seconds took in from one reading to the next.
func between(before, after []uint64, edges []float64) (d record.Delays) {
	for i := range after {
		d.N += int64(after[i] - before[i])
	}
	seen, wanted := int64(0), int64(math.Ceil(0.99*float64(d.N)))
	for i := range after {
		n := int64(after[i] - before[i])
		if n == 0 {
			continue
		}
		top := edges[i+1]
		if math.IsInf(top, 0) {
			top = edges[i]
		}
		if seen < wanted {
			d.P99Ms = top * 1e3
		}
		d.MaxMs = top * 1e3
		seen += n
	}
	return d
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
