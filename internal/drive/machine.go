package drive

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"

	"tare/internal/drive/wire"
	"tare/internal/plan"
	"tare/internal/record"
)

// fit chooses what the configuration leaves to the machine and refuses what it cannot do.
func (r *run) fit() error {
	if err := r.chooseEngine(); err != nil {
		return err
	}
	if r.cfg.Burden > 0 && !r.epoll {
		return errors.New("a burden on each event needs engine epoll: plaintext HTTP/1.1 on Linux")
	}
	cpus := runtime.GOMAXPROCS(0) // Go heeds affinity and the cgroup's quota
	r.loops = cmp.Or(r.cfg.Loops, max(1, cpus-1))
	r.loops = min(r.loops, r.fewest())
	r.procs = r.cfg.Procs
	if r.procs == 0 {
		r.procs = r.loops + ahead + 1
		if !r.epoll {
			r.procs = r.loops + ahead + cpus
		}
	}
	if r.procs <= r.loops+ahead {
		return fmt.Errorf("client.procs: must be above %d, for %d event loops or pacers and the feeder, got %d",
			r.loops+ahead, r.loops, r.procs)
	}
	open := openFiles()
	r.linesPerLoop = (open - spareFiles) / r.loops
	if r.linesPerLoop < 1 {
		return fmt.Errorf("open files: the limit of %d leaves none for connections, %d are for other uses\nhint: ulimit -n 1024",
			open, spareFiles)
	}
	r.connections = min(cmp.Or(r.cfg.Connections, r.likelyInFlight()), r.linesPerLoop*r.loops)
	if r.cfg.NoReuse {
		r.connections = 0
	}
	r.stamps = wire.HasStamps && !r.cfg.HTTP2 && r.cfg.Dial == nil && r.cfg.Servers[0].Network != "unix"
	return nil
}

const (
	ahead          = 1   // threads that make requests ready: the feeder
	spareFiles     = 64  // descriptors for other than connections
	mostDialled    = 512 // before the start of an open load, unless more are asked for
	likelyResponse = 0.1 // seconds a request is in flight, when nothing is known of the server
)

func (r *run) chooseEngine() error {
	odd := r.cfg.Servers[0].TLS != nil || r.cfg.Dial != nil
	works := epollWorks()
	if r.cfg.HTTP2 {
		if r.cfg.Engine != EngineAuto && r.cfg.Engine != "" || r.cfg.NoReuse {
			return fmt.Errorf("HTTP/2 goes with engine auto and with reuse only, got engine %q, reuse %v", r.cfg.Engine, !r.cfg.NoReuse)
		}
		return nil
	}
	switch r.cfg.Engine {
	case EngineAuto, "":
		r.epoll = works == nil && !odd
	case EngineGoroutine:
	case EngineEpoll:
		if odd {
			return errors.New("engine epoll speaks plaintext HTTP/1.1 only: use engine goroutine")
		}
		if works != nil {
			return works
		}
		r.epoll = true
	default:
		return fmt.Errorf("client.engine: must be auto, epoll or goroutine, got %q", r.cfg.Engine)
	}
	return nil
}

// fewest is the smallest number of requests that any stage may have in flight: more shards could not share them out.
func (r *run) fewest() int {
	n := math.MaxInt
	for _, s := range r.plan.Stages {
		if s.Closed {
			n = min(n, max(1, s.Concurrency))
		}
		if s.MaxInFlight > 0 {
			n = min(n, s.MaxInFlight)
		}
	}
	return n
}

// likelyInFlight is how many connections the load will probably need at once.
func (r *run) likelyInFlight() int {
	if r.cfg.HTTP2 {
		return r.loops * len(r.cfg.Servers)
	}
	n := max(r.loops, len(r.cfg.Servers))
	for _, s := range r.plan.Stages {
		need := min(int(math.Ceil(s.Peak()*likelyResponse)), mostDialled)
		if s.MaxInFlight > 0 {
			need = min(need, s.MaxInFlight)
		}
		n = max(n, need, s.Concurrency)
	}
	return n
}

// Choose returns how Run would carry p out on this machine, without a connection made.
func Choose(cfg Config, p *plan.Plan) (record.Client, error) {
	r := &run{cfg: cfg, plan: p}
	err := r.fit()
	return r.client(), err
}

// HasEpoll reports whether engine epoll runs on this system.
func HasEpoll() bool { return epollWorks() == nil }
