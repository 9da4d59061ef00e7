package drive

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/drive/wire"
	"tare/internal/record"
)

// crew is one shard of engine goroutine: a pacer, and a goroutine for each connection that reads its replies. Whoever finds a
// request due, the pacer or a reader whose connection has come free, writes it at once; a lock keeps them apart.
type crew struct {
	mu sync.Mutex // guards everything down to berths
	shard
	on       carrier
	idle     [][]*berth // by server; last used on top
	berths   map[*berth]struct{}
	dialling int
	mayDial  int           // still allowed until the pacer looks around again
	wake     time.Duration // when it does
	soon     time.Duration // when a goroutine looks before that; never while there is none

	offset  atomic.Pointer[clock.Offset]
	lead    clock.Lead      // of the pacer
	dialing context.Context // ends when the run is cut off
	abandon context.CancelFunc
	readers sync.WaitGroup
}

// carrier brings the requests of a crew to the servers: the crew itself, or a mux. The crew's lock is held during its calls.
type carrier interface {
	warmTo(ctx context.Context, server, n int) error
	begin()                                    // the run starts
	place(j *job, due, now time.Duration) bool // sends a job that is due, or sees to it; false when it must stay where it is
	resend(f *flight, now time.Duration) bool  // likewise, one that is to be sent again
	tidy(now time.Duration)                    // does what can wait
	hangUp()                                   // closes all connections
}

// berth is one connection of a crew.
type berth struct {
	conn    net.Conn
	server  int
	stamped *wire.Stamped // under conn; nil where the system has no stamps
	f       atomic.Pointer[flight]
	writing sync.Mutex // held while a request is written
	aside   bool       // by a goroutine of its own, which may have to wait for the server

	unwritten error // why it could not be, guarded by writing
	refused   error // why the server ended the connection before a request, guarded by the crew's lock
	reads     int   // of the socket, when bytes were last taken from it; the reader's own
	since     time.Duration
	served    int
	cut       atomic.Bool
}

const (
	readBytes  = 16 << 10 // of a connection's buffer
	writeAside = 16 << 10 // a larger request is written by a goroutine of its own: an idle socket may not take it at once
)

func newCrew(r *run, id int) *crew {
	c := &crew{shard: newShard(r, id), idle: make([][]*berth, len(r.places)), berths: map[*berth]struct{}{}, soon: never, lead: clock.Lead{Least: r.cfg.Spin}}
	c.on = c
	c.dialing, c.abandon = context.WithCancel(context.Background())
	return c
}

// warm opens the connections to each server, by which it is seen that all can be reached.
func (c *crew) warm(ctx context.Context, connections []int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.sampleClock()
	for server, n := range connections {
		if err := c.on.warmTo(ctx, server, n); err != nil {
			return unreached{c.run.places[server].text, err}
		}
	}
	return nil
}

// warmTo dials n connections to a server, some at a time. Of their errors, which mostly are the same, it returns the first.
func (c *crew) warmTo(ctx context.Context, server, n int) error {
	var dialling sync.WaitGroup
	places := make(chan struct{}, warmDials)
	failed := make([]error, n)
	for i := range n {
		places <- struct{}{}
		dialling.Go(func() {
			defer func() { <-places }()
			b, err := c.dial(ctx, server)
			if err != nil {
				failed[i] = err
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.open(b) {
				c.rest(b)
			}
		})
	}
	dialling.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// dial opens a connection and starts its reader.
func (c *crew) dial(ctx context.Context, server int) (*berth, error) {
	conn, err := c.connect(ctx, server)
	if err != nil {
		return nil, err
	}
	b := &berth{conn: conn, server: server}
	if c.run.stamps {
		if s, ok := wire.Stamp(conn); ok {
			b.stamped, b.conn = s, s
		}
	}
	if cfg := c.run.cfg.Servers[server].TLS; cfg != nil {
		secure := tls.Client(b.conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, handshakeError{err}
		}
		b.conn = secure
	}
	c.mu.Lock()
	c.tally.dials++
	c.berths[b] = struct{}{}
	c.mu.Unlock()
	c.readers.Go(func() { c.read(b) })
	return b, nil
}

// open reports whether b has not been closed yet; then its reader will see what is written on it to its end. The lock is held.
func (c *crew) open(b *berth) bool {
	_, ok := c.berths[b]
	return ok
}

func (c *crew) connect(ctx context.Context, server int) (net.Conn, error) {
	if c.run.cfg.Dial != nil {
		return c.run.cfg.Dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, c.run.places[server].network, c.run.places[server].text)
}

// carry paces this crew's slice of the plan until all of it has ended.
func (c *crew) carry() {
	sleep := c.sleeper()
	began := c.clock.Now()
	house := began
	first := c.clock.Sample()
	c.offset.Store(&first) // the one of the warm-up was on a clock that has been moved since
	c.mu.Lock()
	c.on.begin()
	c.warmed = c.tally.dials
	c.mu.Unlock()
	for {
		now := c.clock.Now()
		if now >= house {
			c.keepHouse(now)
			house = now + houseEvery
		}
		c.mu.Lock()
		c.mayDial = turnDials
		next := c.sendDue(now)
		over := c.idleHands() && c.tally.inFlight == 0 && c.dialling == 0
		c.wake = min(next, now+longestNap)
		wake := c.wake
		c.mu.Unlock()
		if over {
			c.end(began)
			return
		}
		sleep(wake)
	}
}

// longestNap bounds a pacer's sleep, so that it notices the end of the run.
const longestNap = 5 * time.Millisecond

// sleeper gives the way this crew waits for a due time.
func (c *crew) sleeper() func(until time.Duration) {
	if c.run.cfg.Timers {
		return c.clock.Sleep
	}
	thread := clock.LockThread(c.clock)
	return func(until time.Duration) { thread.SleepExactly(until, &c.lead) }
}

// end waits for the readers and closes the account.
func (c *crew) end(began time.Duration) {
	c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleUp(record.Loop{WallNs: int64(c.clock.Now() - began), SpunNs: int64(c.lead.Spun())})
}

// close closes every connection and waits for their readers.
func (c *crew) close() {
	c.abandon()
	c.mu.Lock()
	c.on.hangUp()
	c.mu.Unlock()
	c.readers.Wait()
}

func (c *crew) hangUp() {
	for b := range c.berths {
		b.cut.Store(true)
		b.conn.Close()
	}
}

// begin counts the idle time of the connections from the start of the run.
func (c *crew) begin() {
	for _, idle := range c.idle {
		for _, b := range idle {
			b.since = 0
		}
	}
}

// sendDue writes the requests whose time has come and returns when to look again. Replies that come before that look for
// themselves. The lock is held.
func (c *crew) sendDue(now time.Duration) (next time.Duration) {
	c.resendDue(now, c.on.resend)
	next = c.sendJobs(now)
	again, _ := c.again.first()
	return min(next, max(again, now+longestWait), c.lookAgain(now))
}

func (c *crew) sendJobs(now time.Duration) (next time.Duration) {
	for {
		j, due, known := c.next(now)
		switch {
		case j == nil:
			return never
		case known && due > now:
			return due
		case !known || c.full(j, now, c.dialling):
			return never
		}
		if !c.on.place(j, due, now) {
			return never
		}
		now = c.clock.Now()
	}
}

// place writes a job that is due on an idle connection, or dials one for it. It reports false when it must stay where it is.
func (c *crew) place(j *job, due, now time.Duration) bool {
	if b := c.takeIdle(j.server, now); b != nil {
		c.issue(b, c.board(j, due, now, c.cause(j, due, now)), j.bytes)
		c.occupy(j, due)
		c.taken(j.turn)
		return true
	}
	if !c.unconnected(now, len(c.berths)+c.dialling, len(c.idle[j.server])) || c.mayDial == 0 {
		return false
	}
	c.issueOnNew(c.hold(j, due, now))
	return true
}

// resend writes a request again. It reports false when there is no connection for it and none may be dialled now.
func (c *crew) resend(f *flight, now time.Duration) bool {
	if !f.fresh {
		if b := c.takeIdle(f.server, now); b != nil {
			c.issue(b, f, f.request)
			return true
		}
	}
	if c.mayDial == 0 || len(c.berths)+c.dialling >= c.run.linesPerLoop {
		return false
	}
	c.issueOnNew(f)
	return true
}

// issueOnNew dials a connection for a flight and writes its request there. The lock is held.
func (c *crew) issueOnNew(f *flight) {
	c.dialling++
	c.mayDial--
	c.readers.Go(func() {
		ctx, cancel := context.WithTimeout(c.dialing, c.run.cfg.ConnectTimeout)
		defer cancel()
		b, err := c.dial(ctx, f.server)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dialling--
		if err == nil && !c.open(b) {
			err = cmp.Or(b.refused, errClosedAtOnce)
		}
		now := c.clock.Now()
		switch {
		case err == nil && c.run.stopped(now):
			b.conn.Close()
			c.withdraw(f, now)
		case err == nil:
			c.issue(b, f, f.request)
		case c.dialing.Err() != nil:
			c.withdraw(f, now)
		default:
			c.refused(f, err)
		}
	})
}

// issue writes a request on b. The lock is held.
//
// Before the write comes only what a reader must find: whose bytes are coming, and until when it is to wait for them, which
// also bounds the write. The rest is behind it, where the reader waits for it at the end of the reply.
func (c *crew) issue(b *berth, f *flight, request []byte) {
	ready := c.clock.Now()
	f.depart(ready)
	f.x.Reused = b.served > 0
	f.armed, _ = f.patience(&c.run.limits)
	b.aside = len(request) > writeAside
	b.writing.Lock() // until the last facts of the write are down
	b.f.Store(f)     // before the deadline is set: a reader that it wakes must find whom to end
	c.arm(b, f.armed)
	first := c.clock.Now()
	if b.aside {
		c.wrote(f, ready, first)
		f.retain(request)
		c.readers.Go(func() {
			defer b.writing.Unlock()
			c.write(b, f, f.request)
		})
		return
	}
	c.write(b, f, request)
	c.wrote(f, ready, first)
	c.keep(f, request)
	b.writing.Unlock()
}

// write writes a request, and closes b if it cannot.
func (c *crew) write(b *berth, f *flight, request []byte) {
	if _, err := b.conn.Write(request); err != nil {
		b.unwritten = err
		b.conn.Close()
		return
	}
	f.x.LastWrite = record.At(c.clock.Now())
}

// arm has b's reader woken at a moment. It then closes the connection, which ends the write, too.
func (c *crew) arm(b *berth, at time.Duration) {
	_ = b.conn.SetReadDeadline(time.Now().Add(at - c.clock.Now()))
}

// watch has the reader woken when f would be overdue. A token that puts that off leaves the deadline as it is: the reader
// then looks again.
func (c *crew) watch(b *berth, f *flight) {
	if until := c.until(f); until < f.armed {
		f.armed = until
		c.arm(b, until)
	}
}

// until is when f is overdue, or its reply has taken too long to end behind the end marker.
func (c *crew) until(f *flight) time.Duration {
	until, _ := f.patience(&c.run.limits)
	if f.lingers {
		until = min(until, f.giveUp)
	}
	return until
}

// putOff sets a read deadline that has passed anew where f has time left.
func (c *crew) putOff(b *berth, f *flight, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || b.cut.Load() {
		return false
	}
	until := c.until(f)
	if until <= c.clock.Now() {
		return false
	}
	f.armed = until
	c.arm(b, until)
	return true
}

// read takes the replies on one connection in, until it is closed.
func (c *crew) read(b *berth) {
	defer c.forget(b)
	buf := make([]byte, readBytes)
	for {
		n, err := b.conn.Read(buf)
		user := c.clock.Now()
		f := b.f.Load()
		if f == nil {
			c.mu.Lock()
			b.refused = refusal(err)
			c.mu.Unlock()
			return // closed, or a server that speaks unasked
		}
		if n > 0 {
			kernel, stamped := c.arrival(b, user)
			if stamped && b.stamped.Reads() == b.reads {
				f.continueRead()
			}
			if stamped {
				b.reads = b.stamped.Reads()
			}
			done, bad := f.take(buf[:n], kernel, user, stamped)
			f.worked(c.clock.Now())
			switch {
			case bad != nil:
				c.finish(b, f, f.broken(bad), false)
				return
			case done && (c.run.cfg.NoReuse || !f.resp.KeepAlive()):
				c.finish(b, f, verdict{whole: true, at: kernel}, false)
				return
			case done:
				c.finish(b, f, verdict{whole: true, at: kernel}, true)
				continue
			}
			f.linger(c.clock.Now())
			c.watch(b, f)
		}
		if err != nil && !c.putOff(b, f, err) {
			b.conn.Close()
			c.finish(b, f, c.lost(b, f, user, err), false)
			return
		}
	}
}

// arrival is when the bytes just read from b arrived.
func (c *crew) arrival(b *berth, user time.Duration) (at time.Duration, stamped bool) {
	if b.stamped == nil || b.stamped.Last() == 0 {
		return user, false
	}
	return min(c.offset.Load().On(b.stamped.Last()), user), true
}

// lost says how a flight ends whose connection, now closed, could not be read further.
func (c *crew) lost(b *berth, f *flight, at time.Duration, err error) verdict {
	unsent := b.awaitWrite()
	switch {
	case b.cut.Load():
		return c.run.severed(at)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return f.overdue(&c.run.limits, at)
	case unsent != nil && !errors.Is(unsent, net.ErrClosed):
		return f.snapped(at, "write request", unsent)
	case refusal(err) != nil && !f.resp.Started():
		return shutOut(at, err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return f.peerClosed(at)
	}
	return f.snapped(at, "read reply", err)
}

// finish ends the exchange on b and, when the connection can go on, writes what is due by now.
func (c *crew) finish(b *berth, f *flight, v verdict, keep bool) {
	if keep = keep && b.wroteAll(); !keep {
		b.conn.Close() // or its writer might wait on
	}
	b.awaitWrite()
	f.close(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	b.served++
	b.f.Store(nil)
	if v.cause == record.CauseStale {
		c.keeps[b.server].lost()
	}
	c.conclude(f, v, now)
	if keep {
		_ = b.conn.SetReadDeadline(time.Time{})
		b.since = now
		c.rest(b)
	}
	c.sendOn(now)
}

// sendOn writes the requests that a reply has made due, and sees to those whose time comes before the pacer wakes. The lock is held.
func (c *crew) sendOn(now time.Duration) {
	if next := c.sendDue(now); next < min(c.wake, c.soon) {
		c.soon = next
		c.readers.Go(func() { c.sendAt(next) })
	}
}

// sendAt does the pacer's work for a request that a reply has made due before the pacer wakes: a short think time.
func (c *crew) sendAt(due time.Duration) {
	c.clock.Sleep(due)
	c.mu.Lock()
	defer c.mu.Unlock()
	if due <= c.soon {
		c.soon = never
	}
	c.sendOn(c.clock.Now())
}

// wroteAll reports that the request has been written. A reply may come before that: a refusal of a large request.
func (b *berth) wroteAll() bool {
	if !b.aside {
		b.writing.Lock() // it is written, or nothing would have come; only the time of that may not be down yet
	} else if !b.writing.TryLock() {
		return false
	}
	defer b.writing.Unlock()
	return b.unwritten == nil
}

// awaitWrite waits until whoever wrote the request has written down its last facts, and returns why it could not be
// written, if so.
func (b *berth) awaitWrite() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	return b.unwritten
}

// forget closes b and strikes it off. A request that was written on it just as the server closed it ends here.
func (c *crew) forget(b *berth) {
	b.conn.Close()
	c.mu.Lock()
	delete(c.berths, b)
	if idle := c.idle[b.server]; slices.Contains(idle, b) {
		i := slices.Index(idle, b)
		c.idle[b.server] = slices.Delete(idle, i, i+1)
		c.left(b)
	}
	f := b.f.Load()
	c.mu.Unlock()
	if f != nil {
		c.finish(b, f, f.peerClosed(c.clock.Now()), false)
	}
}

// left takes note that a server has closed an idle connection.
func (c *crew) left(b *berth) {
	if b.served > 0 && !b.cut.Load() {
		c.keeps[b.server].left(c.clock.Now() - b.since)
	}
}

// rest puts a connection with those that wait for a request.
func (c *crew) rest(b *berth) { c.idle[b.server] = append(c.idle[b.server], b) }

// takeIdle gives the connection to a server used last, or nil.
func (c *crew) takeIdle(server int, now time.Duration) *berth {
	idle := c.idle[server]
	n := len(idle)
	if n == 0 || now-idle[n-1].since >= c.run.cfg.IdleTimeout {
		return nil
	}
	if rest := c.keeps[server].rest(); rest > 0 {
		return c.takeRested(server, rest, now)
	}
	c.idle[server] = idle[:n-1]
	return idle[n-1]
}

// takeRested gives the connection that has been idle longest, if it has rested or carried no request yet, or nil.
func (c *crew) takeRested(server int, rest, now time.Duration) *berth {
	idle := &c.idle[server]
	for len(*idle) > 0 && now-(*idle)[0].since >= rest {
		b := (*idle)[0]
		*idle = slices.Delete(*idle, 0, 1)
		switch {
		case now-b.since >= c.run.cfg.IdleTimeout:
		case b.stamped == nil || b.stamped.Quiet():
			c.keeps[server].outlived(b.served)
			return b
		default: // its reader has not come to look for so long
			c.left(b)
		}
		b.conn.Close()
	}
	i := slices.IndexFunc(*idle, func(b *berth) bool { return b.served == 0 && now-b.since < c.run.cfg.IdleTimeout })
	if i < 0 {
		return nil
	}
	b := (*idle)[i]
	*idle = slices.Delete(*idle, i, i+1)
	return b
}

// keepHouse does what can wait.
func (c *crew) keepHouse(now time.Duration) {
	c.sampleClock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec.age(now)
	c.window.publish(&c.tally)
	c.on.tidy(now)
	if c.run.cutOff(now) {
		c.abandon()
		c.on.hangUp()
	}
}

// tidy closes the connections that have been idle too long.
func (c *crew) tidy(now time.Duration) {
	for i := range c.idle {
		for idle := &c.idle[i]; len(*idle) > 0 && now-(*idle)[0].since >= c.run.cfg.IdleTimeout; {
			(*idle)[0].conn.Close()
			*idle = (*idle)[1:]
		}
	}
}

func (c *crew) sampleClock() {
	o := c.clock.Sample()
	if last := c.offset.Load(); last != nil {
		c.step = max(c.step, o.Step(*last))
	}
	c.offset.Store(&o)
}
