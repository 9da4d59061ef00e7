package drive

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tare/internal/record"
)

// describe fills in what is known of the run before its first request.
func (r *run) describe(m *record.Manifest) {
	m.Client = r.client()
	m.Clock = record.Clock{StartWall: r.clock.Wall(), StartMonotonicNs: r.clock.MonotonicStart()}
	m.Stages = make([]record.Stage, len(r.plan.Stages))
	at := time.Duration(0)
	for i, s := range r.plan.Stages {
		kind, arrivals := "open", s.Course()+" "+s.Arrivals()
		if s.Closed {
			kind, arrivals = "closed", ""
		}
		at += s.Gap
		m.Stages[i] = record.Stage{
			Name: s.Name, Warmup: s.Warmup, Kind: kind, Arrivals: arrivals, StartMs: ms(at), EndMs: ms(at + s.Duration), Planned: s.Requests,
			RatePerS: s.Rate, RateToPerS: s.RateTo, Concurrency: s.Concurrency, MaxInFlight: s.MaxInFlight,
		}
		at += s.Duration
	}
}

// client says how the load is sent.
func (r *run) client() record.Client {
	engine := EngineGoroutine
	switch {
	case r.cfg.HTTP2:
		engine = EngineHTTP2
	case r.epoll:
		engine = EngineEpoll
	}
	return record.Client{
		Engine: engine, Loops: r.loops, GOMAXPROCS: r.procs, KernelStamps: r.stamps, SpinNs: int64(r.cfg.Spin),
		BurdenNs: int64(r.cfg.Burden), Connections: r.connections,
	}
}

// conclude fills in what the run itself has brought.
func (r *run) conclude(ctx context.Context, m *record.Manifest, senders []sender) {
	end := r.over
	stopped := time.Duration(r.stopAt.Load())
	for i := range m.Stages {
		s := &m.Stages[i]
		s.Planned = r.time.planned[i].Load()
		at, started := r.time.start(i)
		if !started {
			at = min(end, stopped)
		}
		over, known := r.time.end(i)
		if !known {
			over = end
		}
		s.StartMs, s.EndMs = ms(at), ms(max(at, min(over, stopped)))
	}
	var odd oddities
	var closed int64
	for _, s := range senders {
		l := s.account()
		m.Loops = append(m.Loops, l)
		odd.mistyped, odd.packed, odd.notStreamed = odd.mistyped+l.Mistyped, odd.packed+l.Packed, odd.notStreamed+l.NotStreamed
		closed += l.ClosedEarly
		m.Clock.MaxStepNs = max(m.Clock.MaxStepNs, int64(s.clockStep()))
	}
	m.Warnings = append(m.Warnings, odd.warnings()...)
	if text := early(closed); text != "" {
		m.Warnings = append(m.Warnings, text)
	}
	if r.cfg.Burden > 0 {
		m.Warnings = append(m.Warnings, fmt.Sprintf("the client was slowed on purpose: %v were added to each event", r.cfg.Burden))
	}
	if m.Workload != nil {
		r.tell(m.Workload)
	}
	if ids := r.feeder.ids; r.feeder.all || !m.Plan.Complete {
		m.Plan = record.PlanIDs{PlanID: ids.PlanID, ContentID: ids.ContentID, Requests: ids.Requests, Complete: r.feeder.all}
	}
	m.State = record.State{
		Complete: true, EndMs: ms(end), CPUMs: ms(r.ended.cpu - r.began.cpu), GCCycles: r.ended.collections - r.began.collections,
	}
	if ctx.Err() != nil {
		m.State.Cause = context.Cause(ctx).Error()
	}
}

// tell fills in what walking the plan has shown.
func (r *run) tell(w *record.Workload) {
	found, said := r.feeder.walk.Cache(), r.feeder.walk.Bodies()
	w.PromptTokens, w.SharedTokens = found.Prompt, found.Shared
	w.Bodies, w.Silent, w.Compared, w.Repeated = said.Made, said.Silent, said.Compared, said.Repeated
	if !r.dialect.Accepts().Sampling {
		w.Silent = w.Bodies
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// usage is what the process has used.
type usage struct {
	cpu         time.Duration
	collections int64
}

func readUsage() usage {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return usage{cpu: processCPU(), collections: int64(s.NumGC)}
}
