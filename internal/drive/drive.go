// Package drive carries a plan out on this machine. It owns every goroutine and thread of a run.
//
// Three engines send and receive. Engine epoll is an event loop per core for plaintext HTTP/1.1 on Linux; engine goroutine has one
// for each connection, for TLS and other systems; engine http2 has one for each request. All feed the same parser and write the same
// records.
package drive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/drive/dialect"
	"tare/internal/drive/health"
	"tare/internal/drive/scrape"
	"tare/internal/drive/wire"
	"tare/internal/plan"
	"tare/internal/record"
)

// Config says how a plan is to be carried out.
type Config struct {
	Servers []Server // one at least; record.ServerOf says which a request goes to
	Secrets []string // masked wherever a server echoes them
	RunID   string   // start of every X-Request-Id

	Timeout        time.Duration // of a request, from its first write to the end of the reply
	ConnectTimeout time.Duration // of a connection, TLS included
	IdleTimeout    time.Duration // after which a connection is not used again
	NoReuse        bool          // a new connection for every request
	HTTP2          bool          // in place of HTTP/1.1: over TLS by ALPN, else with prior knowledge
	Drain          time.Duration // longest wait for replies after the last stage

	HeaderTimeout     time.Duration // from an attempt's first write to the end of the header block; 0 for none
	FirstTokenTimeout time.Duration // from an attempt's first write to the first token; 0 for none
	TokenTimeout      time.Duration // from one token event to the next, or to the end marker; 0 for none
	Retries           int           // further attempts of a request that got no token

	Engine      string        // EngineAuto, EngineEpoll or EngineGoroutine
	Loops       int           // event loops or pacers; 0 to choose
	Procs       int           // GOMAXPROCS during the run; 0 to choose
	Connections int           // dialled before the start; 0 to choose
	Spin        time.Duration // busy wait before each due time
	Burden      time.Duration // busy work added to each event on its loop's thread, to show what that does; engine epoll only
	Timers      bool          // for tests in virtual time, which the kernel's waits know nothing of: engines goroutine and http2 pace with Go's timers, up to 1 ms late

	Dial  func(ctx context.Context) (net.Conn, error) // of engine goroutine; nil to connect to the server's Address
	Cut   <-chan struct{}                             // closed to end what is in flight at once; may be nil
	Ready func(*record.Manifest) error                // called once, beside the first requests: disks are slow; may be nil
	Watch func(Progress)                              // called four times a second; may be nil

	// Blocks is given every block of records once it is written, and how many it holds. It must not keep the block, nor wait; may be nil.
	Blocks func(block []byte, n int)

	Health io.Writer // of one record.Health a second, one JSON document a line; may be nil

	Scrape *scrape.Config // of what servers tell of themselves; nil for nothing
}

// Server is one server that requests go to. All of a run have TLS, or none has, and all are of one network.
type Server struct {
	Network string      // "tcp", "unix", or empty for tcp
	Address string      // host:port, or the path of a Unix socket
	Host    string      // value of the Host header
	Path    string      // request target, with query
	Header  []string    // further header lines, "Name: value", secrets included
	TLS     *tls.Config // nil for plaintext
}

// The engines.
const (
	EngineAuto      = "auto"
	EngineEpoll     = "epoll"
	EngineGoroutine = "goroutine"
	EngineHTTP2     = "http2" // chosen by Config.HTTP2
)

// Run carries p out, writes one exchange per planned request to log and the facts of the run into m, and returns when
// all requests have ended. Cancelling ctx stops sending: what is in flight may still end within Config.Drain.
// An error means that the run could not start or that its records could not be written.
func Run(ctx context.Context, cfg Config, p *plan.Plan, d dialect.Dialect, log *record.Log, m *record.Manifest) error {
	r, err := prepare(cfg, p, d, log)
	if err != nil {
		return err
	}
	defer applySettings(r.procs).restore()
	if r.stamps {
		if kept, err := wire.KeepStamping(stampsWithin); err == nil { // else replies say whether they are stamped
			defer kept.Close()
		}
	}
	if cfg.Scrape != nil {
		r.watch = scrape.Begin(ctx, *cfg.Scrape, r.clock)
	}
	senders, err := r.senders(ctx)
	if err != nil {
		if r.watch != nil {
			r.watch.Abandon()
		}
		return err
	}
	r.clock.StartIn(startLead)
	r.describe(m)
	err = r.carry(ctx, senders, m)
	r.conclude(ctx, m, senders)
	return err
}

// stampsWithin bounds the wait for the kernel to begin to stamp what arrives.
const stampsWithin = 500 * time.Millisecond

// startLead is the time between the end of the preparations and offset 0, for the first requests to be made ready in.
const startLead = 20 * time.Millisecond

// sender is one shard of any of the engines.
type sender interface {
	warm(ctx context.Context, connections []int, limit time.Duration) error // to each server
	carry()                                                                 // until its slice of the plan is done; closes its connections
	close()                                                                 // for a sender that is not carried
	account() record.Loop
	clockStep() time.Duration
}

// run is what the senders of one run share. On the way of a request nothing in it changes but counters of the timeline, by atomic
// additions.
type run struct {
	cfg     Config
	plan    *plan.Plan
	dialect dialect.Dialect
	clock   *clock.Clock
	time    *timeline
	places  []place // of the servers
	rings   []*ring
	windows []window
	feeder  *feeder
	writer  *writer

	epoll        bool
	loops        int
	procs        int
	connections  int
	stamps       bool
	linesPerLoop int

	stopAt atomic.Int64 // when sending was stopped; notYet while it goes on
	cut    atomic.Bool
	began  usage
	ended  usage
	over   time.Duration // when the last sender had finished
	watch  *scrape.Watch // nil for none
	limits limits

	turnsEvery time.Duration // between two looks for turns that are being made
}

func prepare(cfg Config, p *plan.Plan, d dialect.Dialect, log *record.Log) (*run, error) {
	r := &run{
		cfg: cfg, plan: p, dialect: d, clock: clock.New(), time: newTimeline(p.Stages), writer: newWriter(log, cfg.Blocks),
		limits: limitsOf(&cfg), turnsEvery: turnsEvery(p),
	}
	if err := r.fit(); err != nil {
		return nil, err
	}
	r.windows = make([]window, r.loops)
	for range r.loops {
		r.rings = append(r.rings, newRing())
	}
	r.stopAt.Store(notYet)
	r.feeder = &feeder{
		clock: r.clock, time: r.time, walk: p.Walk(), rings: r.rings, rec: recorder{to: r.writer},
		timers: cfg.Timers, bare: cfg.HTTP2, converses: p.Converses(), turnsEvery: r.turnsEvery,
	}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		header := s.Header
		if cfg.NoReuse {
			header = append(slices.Clone(header), "Connection: close")
		}
		r.feeder.posts = append(r.feeder.posts, wire.NewPost(s.Path, s.Host, cfg.RunID+"-", header))
	}
	return r, nil
}

// senders opens the engine's shards and their first connections.
func (r *run) senders(ctx context.Context) ([]sender, error) {
	var all []sender
	fail := func(err error) ([]sender, error) {
		for _, s := range all {
			s.close()
		}
		return nil, err
	}
	for i := range r.cfg.Servers {
		p, err := r.locate(ctx, &r.cfg.Servers[i])
		if err != nil {
			return fail(err)
		}
		r.places = append(r.places, p)
	}
	for i := range r.loops {
		var s sender
		var err error
		switch {
		case r.cfg.HTTP2:
			s, err = newMux(r, i)
		case r.epoll:
			s, err = newLoop(r, i)
		default:
			s = newCrew(r, i)
		}
		if err != nil {
			return fail(err)
		}
		all = append(all, s)
		if err := s.warm(ctx, r.dealt(i), r.cfg.ConnectTimeout); err != nil {
			return fail(err)
		}
	}
	return all, nil
}

// carry runs every goroutine of the run and returns when all have ended.
func (r *run) carry(ctx context.Context, senders []sender, m *record.Manifest) error {
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var writing, feeding, carrying sync.WaitGroup
	var unready error
	writing.Go(func() {
		if r.cfg.Ready == nil {
			return
		}
		if unready = r.cfg.Ready(m); unready != nil {
			stop(unready)
		}
	})
	writing.Go(func() { r.writer.run(func(err error) { stop(fmt.Errorf("write records: %w", err)) }) })
	r.time.open(0, 0)
	feeding.Go(func() { r.feeder.fill(sending) })
	for _, s := range senders {
		carrying.Go(s.carry)
	}
	r.began = readUsage()
	finished := make(chan struct{})
	var unhealthy, unscraped error
	if r.watch != nil {
		writing.Go(func() { unscraped = r.watch.Follow(r.time, finished, r.cfg.Cut) })
	}
	if r.cfg.Health != nil {
		writing.Go(func() { unhealthy = r.sampleHealth(finished) })
	}
	go func() { // ends with the senders, whom it only waits for
		carrying.Wait()
		close(finished)
	}()
	r.attend(sending, stop, finished)
	r.ended, r.over = readUsage(), r.clock.Now()
	stop(nil)
	feeding.Wait()
	close(r.writer.blocks)
	writing.Wait()
	for _, err := range []error{unhealthy, unscraped} { // of the run's own figures none needs them
		if err != nil {
			m.Warnings = append(m.Warnings, err.Error())
		}
	}
	return errors.Join(unready, r.writer.err, r.feeder.err)
}

// sampleHealth watches the client and its machine until the senders have finished, with a canary where the system has a timer for it.
func (r *run) sampleHealth(finished <-chan struct{}) error {
	canary, err := health.NewCanary(r.clock)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // its gate says that nothing was heard
	}
	var singing sync.WaitGroup
	var mute error
	if canary != nil {
		singing.Go(func() { mute = canary.Sing(finished) })
	}
	unhealthy := health.Watch(r.clock, r.cfg.Health, canary, finished)
	singing.Wait()
	return errors.Join(err, mute, unhealthy)
}

// attend reports progress and passes interruptions on until the senders have finished.
func (r *run) attend(ctx context.Context, stop context.CancelCauseFunc, finished <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	stopped, cut := ctx.Done(), r.cfg.Cut
	var last tally
	for {
		select {
		case <-finished:
			return
		case <-stopped:
			r.stopAt.Store(int64(r.clock.Now()))
			stopped = nil
		case <-cut:
			r.cut.Store(true)
			stop(errors.New("cut"))
			cut = nil
		case <-tick.C:
			r.time.advance(r.clock.Now())
			if r.cfg.Watch != nil {
				r.cfg.Watch(r.progress(&last))
			}
		}
	}
}

// stopped reports that nothing more is to be sent.
func (r *run) stopped(now time.Duration) bool {
	return r.stopAt.Load() != notYet || r.cutOff(now)
}

// cutOff reports that what is in flight is to be ended.
func (r *run) cutOff(now time.Duration) bool {
	over := min(r.time.over.Load(), r.stopAt.Load())
	return r.cut.Load() || over != notYet && now >= time.Duration(over)+r.cfg.Drain
}

// severed says how a flight ends that was cut off.
func (r *run) severed(at time.Duration) verdict {
	if r.cut.Load() {
		return verdict{cause: record.CauseInterrupted, at: at, err: "interrupted"}
	}
	return verdict{
		cause: record.CauseDrainLimit, at: at, err: fmt.Sprintf("still unanswered %v after the end of the load (drain limit)", r.cfg.Drain),
	}
}

// settings are the Go runtime's, changed for the time of a run.
type settings struct {
	procs  int
	gc     int
	memory int64
}

// applySettings collects garbage once and then holds the collector still while memory lasts.
func applySettings(procs int) settings {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return settings{
		procs: runtime.GOMAXPROCS(procs), gc: debug.SetGCPercent(-1),
		memory: debug.SetMemoryLimit(quietLimit(allMemory(), int64(m.HeapAlloc))),
	}
}

func (s settings) restore() {
	runtime.GOMAXPROCS(s.procs)
	debug.SetGCPercent(s.gc)
	debug.SetMemoryLimit(s.memory)
}
