package live

import (
	"sync"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// board holds the counts of a run so far.
type board struct {
	mu     sync.Mutex
	start  time.Time // of the run
	model  string
	stages []stage
}

// stage is what became of the requests of one stage.
type stage struct {
	name          string
	outcomes      map[record.Outcome]int64
	input         int64 // tokens, as the server counts them
	output        int64
	ttft, e2e     histogram // of completed requests, from send
	tpot          histogram
	slip          histogram // of sent requests
	hasIn, hasOut bool
}

// bounds are the upper ends of a histogram's buckets, seconds.
var bounds = []float64{
	0.00001, 0.0001, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60, 120, 300,
}

// histogram counts values between bounds; the last bucket is what is above all of them.
type histogram struct {
	counts [29]int64
	n      int64
	sum    time.Duration
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(bounds) && seconds(d) > bounds[i] {
		i++
	}
	h.counts[i]++
	h.n++
	h.sum += d
}

// seconds is a span to the last digit, which Duration.Seconds is not.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

func (b *board) begin(m *record.Manifest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.start, b.model = m.Clock.StartWall, m.Target.Model
	for _, s := range m.Stages {
		b.stages = append(b.stages, stage{name: s.Name, outcomes: map[record.Outcome]int64{}})
	}
}

func (b *board) add(r *measure.Reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Stage < 0 || r.Stage >= len(b.stages) {
		return
	}
	s := &b.stages[r.Stage]
	s.outcomes[r.Outcome]++
	if r.WasSent {
		s.slip.add(r.Sent - r.Due)
	}
	if r.Usage.Known {
		s.input, s.hasIn = s.input+int64(r.Usage.Input), true
	}
	if r.OutputKnown {
		s.output, s.hasOut = s.output+r.Output, true
	}
	if r.Outcome != record.Completed || !r.WasSent {
		return
	}
	if r.FirstToken.Known {
		s.ttft.add(r.FirstToken.At - r.Sent)
	}
	if r.Ended {
		s.e2e.add(r.Finish - r.Sent)
	}
	if tpot, ok := r.TPOT(); ok {
		s.tpot.add(tpot)
	}
}

// look gives do the stages while nothing changes them.
func (b *board) look(do func(start time.Time, model string, stages []stage)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do(b.start, b.model, b.stages)
}

// timing is one histogram of a stage with its names.
type timing struct {
	prometheus, otlp, about string
	of                      func(*stage) *histogram
}

func timings() []timing {
	return []timing{
		{"tare_ttft_seconds", "tare.ttft", "First token from send, of completed requests.", func(s *stage) *histogram { return &s.ttft }},
		{"tare_tpot_seconds", "tare.tpot", "Time per output token after the first, of completed requests.", func(s *stage) *histogram { return &s.tpot }},
		{"tare_e2e_seconds", "gen_ai.client.operation.duration", "Whole reply from send, of completed requests.", func(s *stage) *histogram { return &s.e2e }},
		{"tare_slip_seconds", "tare.slip", "First write less due time, of sent requests.", func(s *stage) *histogram { return &s.slip }},
	}
}
