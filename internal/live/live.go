// Package live tells others of a run while it goes on: Prometheus, who asks, and an OpenTelemetry collector, who is told. It reads the
// records once they are written, off the way of any request, and drops what it has no time for rather than hold anything up.
package live

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// Options say who is told, and how.
type Options struct {
	Listener  net.Listener      // where /metrics is served; nil for nowhere. Tell closes it
	Collector string            // base URL of an OTLP/HTTP collector; empty for none
	Headers   map[string]string // of requests to the collector; they may be secret
	Transport http.RoundTripper // to the collector; nil for http.DefaultTransport
	Every     time.Duration     // between two reports to the collector; 0 for five seconds
}

// Teller tells of one run. New makes it; Begin, Block and Progress may be called from any goroutine and never wait.
type Teller struct {
	options Options
	begun   chan *record.Manifest
	start   sync.Once
	blocks  chan []byte
	over    chan struct{}
	lost    atomic.Int64 // records in blocks that were dropped

	gauges gauges
	board  board
	spans  spans
}

// gauges are how the run stands.
type gauges struct{ planned, sent, inFlight atomic.Int64 }

// waiting is how many blocks, of some 64 KiB each, may wait to be read.
const waiting = 64

// New makes a Teller.
func New(o Options) *Teller {
	if o.Every <= 0 {
		o.Every = 5 * time.Second
	}
	if o.Transport == nil {
		direct := http.DefaultTransport.(*http.Transport).Clone()
		direct.Proxy = nil // no proxy from the environment, as everywhere
		o.Transport = direct
	}
	return &Teller{options: o, begun: make(chan *record.Manifest, 1), blocks: make(chan []byte, waiting), over: make(chan struct{})}
}

// Begin says that the run has started. Records wait until then. It keeps nothing of m that changes.
func (t *Teller) Begin(m *record.Manifest) {
	t.start.Do(func() {
		copied := *m
		copied.Stages = slices.Clone(m.Stages) // whose ends the run fills in later
		t.begun <- &copied
	})
}

// Block takes n records as they were written; payload is the caller's again afterwards. When too many blocks wait already, the records are
// dropped and counted.
func (t *Teller) Block(payload []byte, n int) {
	select {
	case t.blocks <- append([]byte(nil), payload...):
	default:
		t.lost.Add(int64(n))
	}
}

// Progress says how the run stands: requests made ready, sent, and in flight.
func (t *Teller) Progress(planned, sent, inFlight int64) {
	t.gauges.planned.Store(planned)
	t.gauges.sent.Store(sent)
	t.gauges.inFlight.Store(inFlight)
}

// End says that there will be no more records. It must be called once, after the last Block.
func (t *Teller) End() { close(t.over) }

// Lost is what others were not told of, after Tell has returned: records that were not read, and spans that the collector did not take.
func (t *Teller) Lost() (records, spans int64) { return t.lost.Load(), t.spans.lost.Load() }

// Tell serves and reports until End has been called and all is told, or ctx is done. It owns every goroutine it starts.
func (t *Teller) Tell(ctx context.Context) {
	var all sync.WaitGroup
	if l := t.options.Listener; l != nil {
		server := &http.Server{Handler: t.handler(), ReadHeaderTimeout: 5 * time.Second}
		all.Go(func() { _ = server.Serve(l) }) // it ends by Close
		defer server.Close()
	}
	read := make(chan struct{})
	all.Go(func() { t.read(ctx); close(read) })
	if t.options.Collector != "" {
		t.report(ctx, read)
	}
	<-read
	if l := t.options.Listener; l != nil {
		l.Close()
	}
	all.Wait()
}

// read takes blocks in until the run is over and none waits.
func (t *Teller) read(ctx context.Context) {
	m, ok := t.await(ctx)
	if !ok {
		return
	}
	t.board.begin(m)
	t.spans.begin(m)
	var x record.Exchange
	var r measure.Reply
	for {
		select {
		case b := <-t.blocks:
			t.take(b, &x, &r)
		case <-ctx.Done():
			return
		case <-t.over:
			for {
				select {
				case b := <-t.blocks:
					t.take(b, &x, &r)
				default:
					return
				}
			}
		}
	}
}

// await waits for the start of the run; ok is false for one that ends without.
func (t *Teller) await(ctx context.Context) (m *record.Manifest, ok bool) {
	select {
	case m = <-t.begun:
		return m, true
	case <-ctx.Done():
		return nil, false
	case <-t.over:
	}
	select {
	case m = <-t.begun: // a short run has ended already
		return m, true
	default:
		return nil, false
	}
}

func (t *Teller) take(block []byte, x *record.Exchange, r *measure.Reply) {
	for len(block) > 0 {
		rest, err := record.DecodeExchange(block, x)
		if err != nil {
			return // it cannot be: the block was encoded a moment ago
		}
		block = rest
		r.Read(x)
		t.board.add(r)
		if t.options.Collector != "" {
			t.spans.add(r)
		}
	}
}
