// Package scrape asks servers under test what they count themselves, next to a run and never in its way: with connections and
// goroutines of its own, and with limits on time and size, so that a server which hangs costs a sample and nothing else.
package scrape

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/record"
)

// Config says what is asked, and how often.
type Config struct {
	Sources []Source
	Every   time.Duration // between two samples of a source
	Timeout time.Duration // of one look
	Out     io.Writer     // of one record.ServerSample a line
}

// Source is something that is asked.
type Source struct {
	Kind   string       // of record: SourceServer, SourceExporter or SourcePrometheus
	URL    string       // of the page, or of the base of a Prometheus server's API; without user info
	Shown  string       // it without secrets
	Header []string     // further header lines, "Name: value", secrets included
	Google *GoogleToken // that is shown besides; nil for none
	TLS    *tls.Config
	Query  string                                      // of a Prometheus server: the selector of the series
	Maybe  bool                                        // nobody named it: one that does not answer at first is not asked again
	Dial   func(ctx context.Context) (net.Conn, error) // nil to connect to the URL's host

	Server *Server // that is asked what it is, before and after; nil for none
}

// Server is where a server under test says what it is.
type Server struct {
	Base   string   // URL that paths are added to
	Header []string // further header lines, secrets included
	TLS    *tls.Config
	Dial   func(ctx context.Context) (net.Conn, error) // nil to connect to the base's host
}

// Watch follows the sources of one run.
type Watch struct {
	cfg     Config
	clock   *clock.Clock
	lookers []*looker
	before  []look

	writing sync.Mutex // lookers write lines; they share nothing with the load
	err     error
}

// Begin takes the first sample of every source, all at the same time, and returns when they are there or their time is over.
// Until then the clock of the run may start anew: what was seen is put on its time by Follow.
func Begin(ctx context.Context, cfg Config, c *clock.Clock) *Watch {
	w := &Watch{cfg: cfg, clock: c, before: make([]look, len(cfg.Sources))}
	var asking sync.WaitGroup
	for i := range cfg.Sources {
		l := newLooker(&cfg.Sources[i], cfg.Timeout)
		w.lookers = append(w.lookers, l)
		asking.Go(func() {
			w.before[i] = l.look(ctx, true)
			w.before[i].identity = l.identify(ctx)
		})
	}
	asking.Wait()
	return w
}

// Edges tells when stages begin and end.
type Edges interface {
	// After is the next edge after a moment of the run; ok is false while it is unknown.
	After(at time.Duration) (edge time.Duration, ok bool)
	// Changed is sent on when an edge becomes known, which may be at that moment.
	Changed() <-chan struct{}
}

// Follow takes samples every now and then and at each edge until ended is closed, and a last one when the servers have come to
// rest. It returns when that is written, or soon after cut is closed as well. An error means that samples were lost.
func (w *Watch) Follow(edges Edges, ended, cut <-chan struct{}) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changed := newFan(len(w.lookers))
	var following, beside sync.WaitGroup
	done := make(chan struct{})
	beside.Go(func() { changed.relay(edges.Changed(), done) })
	beside.Go(func() {
		select {
		case <-cut:
			<-ended // what is in flight is being ended
			cancel()
		case <-done:
		}
	})
	for i, l := range w.lookers {
		w.write(l, w.before[i], record.EdgeBefore)
		if l.source.Maybe && w.before[i].values == nil {
			following.Go(func() { w.leave(ctx, l, w.before[i], ended) })
			continue
		}
		following.Go(func() {
			w.follow(ctx, l, edges, changed.out[i], ended)
			w.rest(ctx, l)
		})
	}
	following.Wait()
	close(done)
	beside.Wait()
	w.Abandon()
	return w.err
}

// Abandon closes the connections of a watch that Follow was not called on.
func (w *Watch) Abandon() {
	for _, l := range w.lookers {
		l.close()
	}
}

// follow samples one source until the load has ended.
func (w *Watch) follow(ctx context.Context, l *looker, edges Edges, changed <-chan struct{}, ended <-chan struct{}) {
	tick, last := w.cfg.Every, time.Duration(0) // the sample before the run stands for an edge at 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		edge, known := edges.After(last)
		next, kind := tick, ""
		if known && edge <= tick {
			next, kind = edge, record.EdgeStage
		}
		timer.Reset(next - w.clock.Now())
		select {
		case <-ended:
			return
		case <-changed: // an edge may have come nearer
			continue
		case <-timer.C:
		}
		if kind != "" {
			last = edge
		}
		w.write(l, l.look(ctx, kind != ""), kind)
		for now := w.clock.Now(); tick <= now; {
			tick += w.cfg.Every
		}
	}
}

// The longest wait for a server to come to rest behind the load, and the time between two looks meanwhile. A Prometheus server
// looks seldom: it is given the time of its usual intervals.
const (
	restWithin        = 5 * time.Second
	restWithinBehind  = time.Minute
	restEvery         = 100 * time.Millisecond
	restEveryOfBehind = time.Second
)

// rest takes the last sample: the first one that is like the one before it, of a server with nothing in service.
func (w *Watch) rest(ctx context.Context, l *looker) {
	within, every := restWithin, restEvery
	if l.source.Kind == record.SourcePrometheus {
		within, every = restWithinBehind, restEveryOfBehind
	}
	over := w.clock.Now()
	last := l.look(ctx, true)
	worth := l.source.Kind != record.SourceExporter && l.kind != "" // it told something once
	for worth && w.clock.Now() < over+within && ctx.Err() == nil {
		if !wait(ctx, every) {
			break
		}
		this := l.look(ctx, true)
		rested := this.restsAs(&last) && w.at(&this) > over
		last = this
		if rested {
			break
		}
	}
	last.identity = l.identify(ctx)
	w.write(l, last, record.EdgeAfter)
}

// leave asks a server that has no metrics what it is once more, when the load has ended.
func (w *Watch) leave(ctx context.Context, l *looker, seen look, ended <-chan struct{}) {
	<-ended
	seen.asked, seen.identity = time.Now(), l.identify(ctx)
	w.write(l, seen, record.EdgeAfter)
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// at is when a look was taken, on the run's clock.
func (w *Watch) at(l *look) time.Duration { return w.clock.Now() - time.Since(l.asked) }

func (w *Watch) write(l *looker, seen look, edge string) {
	s := record.ServerSample{
		AtMs: ms(w.at(&seen)), TookMs: ms(seen.took), Source: l.source.Shown, Kind: l.source.Kind, Edge: edge,
		Reason: seen.reason, Values: seen.values, Identity: seen.identity,
	}
	if l.source.Kind == record.SourcePrometheus && edge == record.EdgeStage {
		s.Edge = "" // it did not look at that moment
	}
	if seen.stale && s.Edge == "" {
		return
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.err == nil {
		w.err = s.Write(w.cfg.Out)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// fan passes one signal on to several receivers.
type fan struct{ out []chan struct{} }

func newFan(n int) *fan {
	f := &fan{out: make([]chan struct{}, n)}
	for i := range f.out {
		f.out[i] = make(chan struct{}, 1)
	}
	return f
}

func (f *fan) relay(in <-chan struct{}, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-in:
		}
		for _, c := range f.out {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
