//go:build linux && (amd64 || arm64)

package drive

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"tare/internal/drive/clock"
	"tare/internal/drive/wire"
	"tare/internal/record"

	"golang.org/x/sys/unix"
)

// loop is one event loop of engine epoll: a thread with its own epoll, connections, slice of the schedule and records.
// On the way of a request it shares nothing with other loops but counters of the timeline: atomic additions, for requests of sessions and
// of closed stages.
type loop struct {
	shard

	epoll  int
	events []unix.EpollEvent
	inbox  *wire.Inbox
	lead   clock.Lead
	spun   time.Duration // looking out for near due times
	offset clock.Offset

	lines    []*line // by slot
	free     []int   // slots without a connection
	serial   int32
	pools    []pool // by server
	held     int    // in all pools
	dialling int
	waiting  bool  // a job waits for a reply or a connection, not for its time
	dials    int   // still allowed in this turn
	oldest   *line // with a request in flight, in order of issue
	newest   *line
	lookout  time.Duration // no request is overdue before
	linger   []lingering

	arrived time.Duration // stamp of the bytes that the socket being handled gave
	got     bool          // it gave some
	stamped bool          // and the kernel had stamped them
}

// pool is what a loop has for one server.
type pool struct {
	idle []*line   // last used on top
	held []*flight // that wait for a connection, in order; never more than are being dialled
}

// line is one connection.
type line struct {
	sock   wire.Socket
	server int
	slot   int
	serial int32 // tells it from earlier users of its slot
	state  lineState
	f      *flight
	rest   []byte        // of the request, not yet taken by the kernel
	since  time.Duration // dialling or idle since
	served int           // requests carried before this one
	prev   *line         // neighbours in the order of issue
	next   *line
}

type lineState uint8

const (
	lineDialling lineState = iota
	lineIdle
	lineBusy
	lineGone
)

// lingering is an answer that has ended on a connection whose reply has not.
type lingering struct {
	c     *line
	index int64 // of the request
}

const (
	turnEvents   = 128 // handled before the loop looks around
	turnSends    = 64  // likewise
	inboxBytes   = 64 << 10
	checkDueEach = 4                    // events
	lookEvery    = 2 * time.Millisecond // at least, between two looks for overdue requests
)

func newLoop(r *run, id int) (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open epoll: %w", err)
	}
	l := &loop{
		shard: newShard(r, id), pools: make([]pool, len(r.places)), epoll: ep, events: make([]unix.EpollEvent, turnEvents),
		inbox: wire.NewInbox(inboxBytes), lead: clock.Lead{Least: r.cfg.Spin},
	}
	l.reader = r.dialect.NewReader()
	return l, nil
}

// warm dials connections and waits for them. One that the server closes again at once is done without.
func (l *loop) warm(ctx context.Context, connections []int, limit time.Duration) error {
	for server, n := range connections {
		if err := l.warmTo(ctx, server, n, l.clock.Now()+limit); err != nil {
			return unreached{l.run.places[server].text, err}
		}
	}
	return nil
}

func (l *loop) warmTo(ctx context.Context, server, n int, until time.Duration) error {
	for opened := 0; opened < n || l.dialling > 0; {
		for opened < n && l.dialling < warmDials {
			if err := l.dial(server); err != nil {
				return err
			}
			opened++
		}
		for _, e := range l.wait(longestWait) {
			c := l.lines[e.Fd]
			switch {
			case c == nil || c.serial != e.Pad:
			case c.state == lineIdle:
				l.hangUp(c)
			default:
				if err := l.connected(c); err != nil {
					return err
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case l.clock.Now() > until:
			return unanswered(l.run.cfg.ConnectTimeout)
		}
	}
	return nil
}

// carry sends this loop's slice of the plan and takes the replies in, until all is over.
func (l *loop) carry() {
	thread := clock.LockThread(l.clock)
	defer runtime.UnlockOSThread()
	defer l.close()
	for _, p := range l.pools {
		for _, c := range p.idle {
			c.since = 0
		}
	}
	began, used := l.clock.Now(), thread.Usage()
	l.warmed = l.tally.dials
	l.offset = l.clock.Sample()
	house := began
	for {
		now := l.clock.Now()
		if now >= house {
			l.keepHouse(now)
			house = now + houseEvery
		}
		l.dials = turnDials
		next := l.sendDue(now)
		l.expire(now)
		if l.finished() {
			break
		}
		l.turn(next)
	}
	after := thread.Usage()
	l.settleUp(record.Loop{
		WallNs: int64(l.clock.Now() - began), CPUNs: int64(after.CPU - used.CPU), SpunNs: int64(l.spun),
		RunQueueNs: int64(after.RunQueue - used.RunQueue), Preempted: after.Preempted - used.Preempted,
	})
}

// turn waits for replies, at most until the next request is nearly due, and handles them. The last stretch before a due
// time passes in turns that do not wait.
func (l *loop) turn(next time.Duration) {
	now := l.clock.Now()
	until := min(next-l.lead.Early(), now+longestWait)
	events := l.wait(until - now)
	if len(events) == 0 {
		l.idled(until, now)
		return
	}
	l.duty.woke(now, len(events))
	now = l.clock.Now()
	for i := range events {
		now = l.serve(&events[i], now)
		if i%checkDueEach == checkDueEach-1 && (l.waiting || now >= next) {
			next = l.sendDue(now)
			now = l.clock.Now()
		}
	}
}

// serve handles one socket, taken up at from, keeps account of it, and returns when that was done.
func (l *loop) serve(e *unix.EpollEvent, from time.Duration) (done time.Duration) {
	l.got = false
	l.handle(e)
	done = l.clock.Now()
	if l.got {
		l.duty.read(l.arrived, from, done, l.stamped)
	}
	return done
}

// idled takes note of a turn that began at now and found nothing: it slept until a moment, or looked out for one.
func (l *loop) idled(until, now time.Duration) {
	if until > now {
		l.lead.Woke(l.clock.Now() - until)
	} else {
		l.spun += l.clock.Now() - now
	}
}

// wait returns the sockets that have something, waiting at most d. It keeps Go's processor: a thread that gave it up
// would have to queue for one on its return.
func (l *loop) wait(d time.Duration) []unix.EpollEvent {
	ts := unix.NsecToTimespec(int64(max(d, 0)))
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])),
		uintptr(len(l.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if e != 0 { // EINTR: Go's runtime asks the thread for its attention
		return nil
	}
	return l.events[:n]
}

// sendDue writes the requests whose time has come and returns when to look again.
func (l *loop) sendDue(now time.Duration) (next time.Duration) {
	l.resendDue(now, l.resend)
	now = l.sendHeld(now)
	l.waiting = l.held > 0
	for range turnSends {
		j, due, known := l.next(now)
		if j == nil {
			return l.lookAgain(now)
		}
		if known && due > now {
			return min(due, l.lookAgain(now))
		}
		if !known || l.full(j, now, l.held) {
			l.waiting = true
			return l.lookAgain(now)
		}
		p := &l.pools[j.server]
		if c := l.takeIdle(j.server, now); c != nil {
			l.issue(c, j, due, now)
			from := now
			now = l.clock.Now()
			l.duty.sent(from, now)
			continue
		}
		l.waiting = true
		if !l.unconnected(now, len(l.lines)-len(l.free), len(p.idle)) || l.dials == 0 {
			return l.lookAgain(now)
		}
		l.dialFor(l.hold(j, due, now))
	}
	return now
}

// sendHeld writes the requests that have waited for a connection and now have one: the one that was dialled, or one that
// came free before.
func (l *loop) sendHeld(now time.Duration) time.Duration {
	for i := 0; l.held > 0 && i < len(l.pools); i++ {
		p := &l.pools[i]
		for len(p.held) > 0 {
			f := p.held[0]
			c := (*line)(nil)
			if !l.run.stopped(now) {
				if c = l.connectionFor(f, now); c == nil {
					break
				}
			}
			p.held = p.held[1:]
			l.held--
			switch {
			case c == nil:
				l.withdraw(f, now)
			case !l.launch(c, f, now):
				p.held = slices.Insert(p.held, 0, f)
				l.held++
			}
			now = l.clock.Now()
		}
	}
	return now
}

// connectionFor gives a connection for f, which has been held or is to be sent again, or nil. A new one need not rest.
func (l *loop) connectionFor(f *flight, now time.Duration) *line {
	if c := l.takeFresh(&l.pools[f.server], now); c != nil || f.fresh {
		return c
	}
	return l.takeIdle(f.server, now)
}

// resend writes a request again. It reports false when there is no connection for it and none may be dialled now.
func (l *loop) resend(f *flight, now time.Duration) bool {
	if c := l.connectionFor(f, now); c != nil {
		return l.launch(c, f, now)
	}
	if l.dials == 0 || len(l.lines)-len(l.free) >= l.run.linesPerLoop {
		return false
	}
	l.dialFor(f)
	return true
}

// issue writes the first job on connection c, unless that is dead.
func (l *loop) issue(c *line, j *job, due, now time.Duration) {
	first := l.clock.Now()
	n, err := l.write(c, j.bytes)
	if c.state == lineGone {
		return
	}
	f := l.board(j, due, now, l.cause(j, due, now))
	l.keep(f, j.bytes)
	l.occupy(j, due)
	turn := j.turn
	l.written(c, f, j.bytes, n, err, now, first)
	l.taken(turn)
}

// launch writes the request that f holds on connection c. It reports false when that is dead.
func (l *loop) launch(c *line, f *flight, now time.Duration) bool {
	first := l.clock.Now()
	n, err := l.write(c, f.request)
	if c.state == lineGone {
		return false
	}
	l.lookout = 0 // its time may run since an earlier attempt
	l.written(c, f, f.request, n, err, now, first)
	l.duty.sent(first, l.clock.Now())
	return true
}

// write writes what the kernel takes of a request. A connection, kept from an earlier request, that turns out to be dead
// before it took a byte is discarded: nothing was sent.
func (l *loop) write(c *line, request []byte) (n int, err error) {
	n, err = c.sock.Send(request)
	if err == unix.EAGAIN {
		return n, nil
	}
	if err != nil && c.served > 0 {
		l.left(c)
		l.discard(c)
	}
	return n, err
}

// written takes note that n bytes of f's request were written on c, which was there at ready, from first on.
func (l *loop) written(c *line, f *flight, request []byte, n int, err error, ready, first time.Duration) {
	f.depart(first)
	f.x.Reused = c.served > 0
	l.wrote(f, ready, first)
	l.enlist(c, f)
	switch {
	case err != nil:
		l.finish(c, f.snapped(l.clock.Now(), "write request", err), false)
	case n == len(request):
		f.x.LastWrite = record.At(l.clock.Now())
	default:
		c.rest = append(c.rest[:0], request[n:]...)
		l.interest(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN|unix.EPOLLOUT)
	}
}

// handle deals with one socket that has something.
func (l *loop) handle(e *unix.EpollEvent) {
	c := l.lines[e.Fd]
	if c == nil || c.serial != e.Pad {
		return // closed by an event before this one
	}
	switch c.state {
	case lineDialling:
		if err := l.connected(c); err != nil {
			l.refuseFirst(&l.pools[c.server], err)
		}
	case lineIdle:
		l.left(c)
		l.hangUp(c)
	case lineBusy:
		if e.Events&unix.EPOLLOUT != 0 && len(c.rest) > 0 {
			l.push(c)
		}
		if e.Events&^unix.EPOLLOUT != 0 && c.f != nil {
			l.receive(c)
		}
	}
}

// push goes on writing a request that the kernel did not take at once.
func (l *loop) push(c *line) {
	n, err := c.sock.Send(c.rest)
	if err != nil && err != unix.EAGAIN {
		l.finish(c, c.f.snapped(l.clock.Now(), "write request", err), false)
		return
	}
	c.rest = append(c.rest[:0], c.rest[n:]...)
	if len(c.rest) == 0 {
		c.f.x.LastWrite = record.At(l.clock.Now())
		l.interest(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN)
	}
}

// receive takes what has come for the exchange on c.
func (l *loop) receive(c *line) {
	b, wall, err := l.inbox.Receive(c.sock)
	user := l.clock.Now()
	f := c.f
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		l.finish(c, f.snapped(user, "read reply", err), false)
		return
	case len(b) == 0:
		l.finish(c, f.peerClosed(user), false)
		return
	}
	kernel := user
	if wall != 0 {
		kernel = min(l.offset.On(wall), user)
	}
	l.got, l.arrived, l.stamped = true, kernel, wall != 0
	if l.stamped {
		l.duty.Lag.Add(user - kernel)
	}
	before := len(f.x.Events)
	done, err := f.take(b, kernel, user, wall != 0)
	l.labour(len(f.x.Events) - before)
	switch {
	case err != nil:
		l.finish(c, f.broken(err), false)
	case done:
		l.finish(c, verdict{whole: true, at: kernel}, f.resp.KeepAlive() && len(c.rest) == 0 && !l.run.cfg.NoReuse)
	case f.answer.Terminated:
		l.linger = append(l.linger, lingering{c, f.x.Index})
	}
}

// labour does the work that Config.Burden adds to some events.
func (l *loop) labour(events int) {
	if l.run.cfg.Burden == 0 {
		return
	}
	for until := l.clock.Now() + time.Duration(events)*l.run.cfg.Burden; l.clock.Now() < until; {
	}
}

// finish ends the exchange on c and keeps the connection if it can be used again.
func (l *loop) finish(c *line, v verdict, keep bool) {
	f, now := c.f, l.clock.Now()
	l.alight(c)
	c.served++
	if keep {
		c.state, c.since = lineIdle, now
		l.rest(c)
	} else {
		l.discard(c)
	}
	if v.cause == record.CauseStale {
		l.keeps[c.server].lost()
	}
	f.close(v)
	l.conclude(f, v, now)
}

// enlist puts c, which now carries f, at the end of those in flight.
func (l *loop) enlist(c *line, f *flight) {
	c.state, c.f = lineBusy, f
	c.prev, c.next = l.newest, nil
	if l.newest != nil {
		l.newest.next = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

// alight takes c from those in flight.
func (l *loop) alight(c *line) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.oldest = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.newest = c.prev
	}
	c.prev, c.next, c.f = nil, nil, nil
}

// expire ends what has taken too long: requests past their time, and everything once the run is cut.
//
// A look at all that is in flight says when the next one is needed: replies only put the moments off, but for those that
// begin a phase, and none of those is over sooner than the shortest time-out from now. So a token costs a store.
func (l *loop) expire(now time.Duration) {
	for l.oldest != nil && l.run.cutOff(now) {
		l.finish(l.oldest, l.run.severed(now), false)
	}
	if now < l.lookout {
		return
	}
	l.lookout = now + l.run.limits.least()
	for c := l.oldest; c != nil; {
		next := c.next
		if until, _ := c.f.patience(&l.run.limits); until > now {
			l.lookout = min(l.lookout, until)
		} else {
			l.overdue(c)
		}
		c = next
	}
	l.lookout = max(l.lookout, now+lookEvery)
}

// overdue ends the exchange on c unless what has come, and was not read yet, puts that off.
func (l *loop) overdue(c *line) {
	f := c.f
	l.receive(c)
	if c.f != f {
		return
	}
	now := l.clock.Now()
	if until, _ := f.patience(&l.run.limits); until <= now {
		l.finish(c, f.overdue(&l.run.limits, now), false)
	}
}

// finished reports that nothing of this loop's slice is left to do.
func (l *loop) finished() bool {
	return l.idleHands() && l.oldest == nil && l.held == 0 && l.again.empty()
}

// keepHouse does what can wait: clocks, stale connections, counts for those who watch.
func (l *loop) keepHouse(now time.Duration) {
	o := l.clock.Sample()
	l.step = max(l.step, o.Step(l.offset))
	l.offset = o
	l.rec.age(now)
	l.window.publish(&l.tally)
	for i := range l.pools {
		for p := &l.pools[i]; len(p.idle) > 0 && now-p.idle[0].since >= l.run.cfg.IdleTimeout; {
			l.hangUp(p.idle[0])
		}
	}
	keep := l.linger[:0]
	for _, g := range l.linger {
		switch {
		case g.c.f == nil || g.c.f.x.Index != g.index:
		case now-g.c.f.user >= lingerFor:
			l.finish(g.c, verdict{whole: true, at: g.c.f.kernel, late: true}, false)
		default:
			keep = append(keep, g)
		}
	}
	l.linger = keep
	if l.dialling > 0 {
		l.expireDials(now)
	}
}

// epollWorks reports why this kernel cannot run engine epoll, or nil.
func epollWorks() error {
	ts := unix.Timespec{}
	_, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, ^uintptr(0), 0, 0, uintptr(unsafe.Pointer(&ts)), 0, 0)
	if e == unix.ENOSYS {
		return errors.New("engine epoll needs Linux 5.11 or later (epoll_pwait2)")
	}
	return nil
}

// close gives every descriptor back.
func (l *loop) close() {
	for _, c := range l.lines {
		if c != nil {
			c.sock.Close()
		}
	}
	unix.Close(l.epoll)
}
