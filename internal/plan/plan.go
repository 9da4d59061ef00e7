// Package plan decides, before a run, what will be sent and when.
//
// A Spec is what the user wrote; New freezes it into a Plan. Every attribute of request n is a function of the seed, the
// attribute's name and n alone, so that any worker, in any order, makes the same request.
package plan

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"time"

	"tare/internal/plan/schedule"
)

// Plan is a frozen workload: the stages and, by walking it, every request.
type Plan struct {
	Spec   Spec // effective: defaults filled, validated
	Stages []Stage

	encode    Encoder
	material  *material
	mostTurns int64                         // of a session
	recorded  *recorded                     // the sessions of a recording, where they are sent whole; else nil
	stored    func() (io.ReadCloser, error) // opens the requests of a stored plan; nil for one that makes them
}

// Stage is one resolved part of the load.
type Stage struct {
	Name   string
	Warmup bool // left out of the totals
	Closed bool // requests follow replies instead of a schedule

	// Gap is the idle time before the stage, after the stage before it has ended.
	Gap time.Duration
	// Duration is the window in which requests fall due. It is 0 for a closed stage that ends by count alone. Random
	// arrivals that end by count have the window in which so many are expected, and may end before it or after it: such a
	// stage lasts until its window has passed and its last request has fallen due, be it a session's later turn.
	Duration time.Duration
	// First is the index of the stage's first request.
	First int64
	// Requests is how many requests the stage has; a closed stage that has a Duration too may end before. It is 0 where
	// the number is not known before the stage ends: random arrivals that end by duration, of which the walker finds the
	// last, and a closed stage that ends by duration. These reserve 2³² indexes for each turn that a session may have. Nor is
	// it known where the number of turns is drawn.
	Requests int64
	// Sessions is how many sessions the stage has, in the same way: Requests, unless sessions have turns.
	Sessions int64
	// Expected is how many requests an open stage has in the mean, or exactly where Requests is known. It is 0 for a
	// closed stage that ends by duration.
	Expected float64

	Rate, RateTo float64 // requests per second at the start and the end of an open stage; equal without a ramp
	Concurrency  int     // requests in flight of a closed stage
	StartRate    float64 // its places that begin per second; 0 for all at once
	MaxInFlight  int     // declared admission limit of an open stage; 0 for none

	open    schedule.Open   // the schedule of an open stage
	trace   *schedule.Trace // of one that is replayed, in place of open
	peak    float64         // requests per second in the busiest second, of that
	arrival string          // its process of arrivals
	think   schedule.Think  // of a closed stage
}

// counted says that the stage's requests are the same in every run, and so have a part in the plan's ids.
func (s *Stage) counted() bool { return !s.Closed || s.Duration == 0 }

// reserved is how many indexes a stage takes whose number of requests is not known.
const reserved = 1 << 32

// WarmupName names the stage that load.warmup adds.
const WarmupName = "warmup"

// New freezes a spec and reads the files that it names. It returns Faults if the spec or a file is not valid; the target's URL and
// model may be missing. With a nil encoder the plan has times but no bodies. Close closes what stays open.
func New(spec Spec, encode Encoder) (*Plan, error) {
	if faults := spec.check(spec.present); len(faults) > 0 {
		return nil, faults
	}
	m, faults := spec.load()
	p := &Plan{Spec: spec, encode: encode, material: m, mostTurns: spec.Workload.Conversation.most()}
	if m.trace != nil && len(faults) == 0 {
		faults = append(p.gather(), p.replayFaults()...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	p.resolve()
	l := loader{m: m, seed: spec.Load.Seed}
	if l.data(p); len(l.faults) > 0 {
		return nil, errors.Join(l.faults, p.Close())
	}
	p.Spec.Workload.SHA256 = m.sums()
	return p, nil
}

// resolve makes the stages.
func (p *Plan) resolve() {
	if p.Spec.Load.replayed() {
		p.Stages = []Stage{p.replayed()}
		return
	}
	first, before := int64(0), int64(0)
	for i, load := range p.Spec.Load.resolve() {
		if p.recorded != nil && load.Requests == 0 && load.Duration == 0 {
			load.Requests = p.recorded.rest(&p.Spec.Workload.Trace, max(before, 0))
		}
		s := p.stage(load, first, before)
		if before += s.Sessions; before < s.Sessions || s.Sessions == 0 && s.counted() {
			before = -1 // not known short of walking, nor is it behind that
		}
		s.Warmup = i == 0 && p.Spec.Load.Warmup > 0
		p.Stages = append(p.Stages, s)
		first += s.Requests
		if s.Requests == 0 {
			first += reserved * p.mostTurns
		}
	}
}

// Close closes the data set, if there is one.
func (p *Plan) Close() error { return p.material.close() }

// Files returns the files that the spec names and that were read.
func (p *Plan) Files() []File {
	if p.material == nil {
		return nil
	}
	return p.material.files
}

// Notes say what a reader of a report must know of them.
func (p *Plan) Notes() []string {
	if p.material == nil {
		return nil
	}
	return p.material.notes
}

// plain says that all prompts are common words of one length, and nothing else.
func (p *Plan) plain() bool {
	w := p.Spec.Workload
	w.Temperature, w.TopP, w.Sampling, w.SamplingSeed, w.IgnoreEOS = 0, 0, "", 0, false
	d := Defaults().Workload
	_, input := w.InputTokens.Fixed()
	_, output := w.OutputTokens.Fixed()
	d.InputTokens, d.OutputTokens, d.TopP, d.Sampling = w.InputTokens, w.OutputTokens, 0, ""
	return input && output && reflect.DeepEqual(w, d)
}

// resolve returns all stages, the warm-up first, each with a name.
func (l *Load) resolve() []LoadStage {
	stages := l.measured()
	if l.Warmup > 0 {
		warmup := stages[0]
		warmup.Name, warmup.Duration, warmup.Requests, warmup.RateTo, warmup.Gap = WarmupName, l.Warmup, 0, 0, 0
		warmup.Amplitude, warmup.Period, warmup.Phase = 0, 0, 0
		warmup.SpikeRate, warmup.SpikeAt, warmup.SpikeWidth = 0, 0, 0
		stages = append([]LoadStage{warmup}, stages...)
	}
	return stages
}

// measured returns the stages without a warm-up, the short form as one stage called "main".
func (l *Load) measured() []LoadStage {
	if len(l.Stages) == 0 {
		return []LoadStage{{
			Name: "main", Rate: l.Rate, Concurrency: l.Concurrency, MaxInFlight: l.MaxInFlight, Duration: l.Duration,
			Requests: l.Requests,
		}}
	}
	stages := make([]LoadStage, len(l.Stages))
	for i, s := range l.Stages {
		if s.Name == "" {
			s.Name = fmt.Sprintf("stage %d", i+1)
		}
		stages[i] = s
	}
	return stages
}

func (p *Plan) stage(load LoadStage, first, before int64) Stage {
	load = p.Spec.Load.inherit(load)
	s := Stage{
		Name: load.Name, Closed: load.Concurrency > 0, Gap: load.Gap,
		Duration: load.Duration, First: first, Requests: load.Requests, Expected: float64(load.Requests),
		Rate: load.Rate, RateTo: load.RateTo, Concurrency: load.Concurrency, StartRate: load.StartRate, MaxInFlight: load.MaxInFlight,
	}
	if s.Closed {
		s.think = load.think()
		p.converse(&s, before)
		return s
	}
	s.open, s.arrival = load.open(), load.Arrival
	s.RateTo = s.open.RateTo
	s.Duration = s.open.Span()
	s.Expected = s.open.Mean()
	n, known := s.open.Count()
	s.Requests = n
	if known {
		s.Expected = float64(n)
	}
	p.converse(&s, before)
	return s
}

// Empty says that no request is measured: with random arrivals none may fall due in a short stage.
func (p *Plan) Empty() bool {
	w := p.Walk()
	defer w.Close()
	w.SkipBodies(true)
	if p.Stages[0].Warmup {
		w.EndStage()
	}
	return !w.Next(new(Request))
}

// Requests returns how many requests the plan has in the mean, and whether that is their exact number.
func (p *Plan) Requests() (n int64, exact bool) {
	mean := 0.0
	exact = true
	for _, s := range p.Stages {
		mean += s.Expected
		exact = exact && s.Requests > 0 && s.counted()
	}
	return int64(math.Round(mean)), exact
}

// MeanLengths returns the mean lengths that the workload asks for, tokens: of a normal or lognormal distribution before min and max cut
// it. ok is false where nobody counted, and of a stored plan.
func (p *Plan) MeanLengths() (input, output float64, ok bool) {
	m := p.material
	switch {
	case m == nil:
		return 0, 0, false
	case m.trace != nil:
		return m.trace.Facts.MeanInput, m.trace.Facts.MeanOutput, true
	case m.sample != nil:
		for i := range m.sample.Picks {
			input += float64(m.sample.Picks[i].PromptTokens)
			if n, ok := m.recorded(&m.sample.Picks[i]); ok {
				output += float64(n)
			} else {
				output += m.shapes[0].out.Mean // a data set has no classes
			}
		}
		n := float64(len(m.sample.Picks))
		return input / n, output / n, m.tokenizer != nil
	}
	for i := range m.shapes {
		s := &m.shapes[i]
		share := 1.0
		if len(m.shapes) > 1 {
			share = m.class.Share(i)
		}
		input += share * (s.in.Mean + float64(s.PrefixTokens+m.work.SystemTokens) + m.private.Mean)
		output += share * s.out.Mean
	}
	if turns, fixed := m.work.Conversation.Turns.Fixed(); !fixed {
		return 0, output, true // a long session has the longer prompts
	} else if turns > 1 {
		shared := 0.0
		for i := range m.shapes {
			share := 1.0
			if len(m.shapes) > 1 {
				share = m.class.Share(i)
			}
			shared += share * (float64(m.shapes[i].PrefixTokens+m.work.SystemTokens) + m.private.Mean)
		}
		input += float64(turns-1) / 2 * (input - shared + output)
	}
	return input, output, true
}
