package sim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// portable is the transport for every system: a goroutine to read each connection and one to write it, and one that runs
// the engine. Receive stamps are taken when a read returns, and timers are the system's.
type portable struct {
	clock
	engine  engine
	events  chan event
	ended   chan struct{} // closed when no event is taken any more
	workers sync.WaitGroup
	conns   map[*conn]struct{}
}

// event is what a connection's reader tells the engine.
type event struct {
	c    *conn
	b    []byte // the engine's to keep
	at   int64
	kind eventKind
}

type eventKind uint8

const (
	eventOpened eventKind = iota
	eventBytes
	eventClosed
)

// peer is the sending side of one connection.
type peer struct {
	net  net.Conn
	wake chan struct{} // capacity 1

	mu      sync.Mutex
	out     []byte
	closing bool
	how     closing
}

func carryPortable(ctx context.Context, cfg Config, ready func(addr string), build func(w wire) engine) error {
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if cfg.TLS != nil {
		listener = tls.NewListener(listener, cfg.TLS)
	}
	p := &portable{
		clock:  portableClock(),
		events: make(chan event, 256),
		ended:  make(chan struct{}),
		conns:  map[*conn]struct{}{},
	}
	p.engine = build(p)
	ready(listener.Addr().String())
	var failed error
	p.workers.Go(func() { failed = p.accept(listener) })
	p.drive(ctx)
	close(p.ended)
	listener.Close()
	for c := range p.conns {
		c.peer.net.Close() // a writer may be stuck in it
	}
	p.workers.Wait()
	return failed
}

// accept takes connections until the listener is closed.
func (p *portable) accept(listener net.Listener) error {
	for {
		n, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			select {
			case <-p.ended:
				return nil
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		c := &conn{socket: socket{peer: &peer{net: n, wake: make(chan struct{}, 1)}}}
		if address, ok := n.RemoteAddr().(*net.TCPAddr); ok {
			c.port = address.Port
		}
		if !p.tell(event{c: c, kind: eventOpened}) {
			n.Close()
			continue
		}
		p.workers.Go(func() { p.read(c) })
		p.workers.Go(func() { c.peer.write(p.ended) })
	}
}

// tell hands an event over; false when the engine has ended.
func (p *portable) tell(e event) bool {
	select {
	case p.events <- e:
		return true
	case <-p.ended:
		return false
	}
}

func (p *portable) read(c *conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.peer.net.Read(buffer)
		at := p.now()
		if n > 0 && !p.tell(event{c: c, b: append([]byte(nil), buffer[:n]...), at: at, kind: eventBytes}) {
			return
		}
		if err != nil {
			p.tell(event{c: c, at: at, kind: eventClosed})
			return
		}
	}
}

// drive runs the engine until ctx ends.
func (p *portable) drive(ctx context.Context) {
	defer p.engine.stop()
	house := time.NewTicker(100 * time.Millisecond)
	defer house.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.engine.advance(p.now())
		wait := time.Hour
		if at, ok := p.engine.next(); ok {
			wait = time.Duration(max(at-p.now(), 0))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-house.C:
			p.engine.housekeep()
		case <-timer.C:
		case e := <-p.events:
			p.take(e)
		}
	}
}

func (p *portable) take(e event) {
	c := e.c
	switch {
	case e.kind == eventOpened:
		p.conns[c] = struct{}{}
	case e.kind == eventClosed:
		delete(p.conns, c)
		if !c.gone {
			p.engine.closed(c)
		}
		c.peer.end(closeWhole)
	case !c.gone:
		c.at = e.at
		feed(p.engine, c, e.b)
	}
}

func (p *portable) send(c *conn, b []byte) bool {
	c.peer.mu.Lock()
	whole := len(c.peer.out) == 0
	c.peer.out = append(c.peer.out, b...)
	c.peer.mu.Unlock()
	c.peer.signal()
	return whole
}

func (p *portable) close(c *conn, how closing) { c.peer.end(how) }

func (e *peer) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// end closes the connection after what is still to be written.
func (e *peer) end(how closing) {
	e.mu.Lock()
	if !e.closing {
		e.closing, e.how = true, how
	}
	e.mu.Unlock()
	e.signal()
}

// write sends what comes until the connection is to be closed, and closes it.
func (e *peer) write(ended <-chan struct{}) {
	var b []byte
	for {
		select {
		case <-e.wake:
		case <-ended:
			e.net.Close()
			return
		}
		e.mu.Lock()
		b, e.out = e.out, b[:0]
		closing, how := e.closing, e.how
		e.mu.Unlock()
		if len(b) > 0 {
			if _, err := e.net.Write(b); err != nil {
				closing, how = true, closeWhole
			}
		}
		if closing {
			e.shut(how)
			return
		}
	}
}

func (e *peer) shut(how closing) {
	tcp, ok := e.net.(*net.TCPConn)
	if ok && how == closeDrain {
		tcp.CloseWrite()
		return
	}
	if ok && how == closeReset {
		tcp.SetLinger(0)
	}
	e.net.Close()
}
