//go:build linux && (amd64 || arm64)

package drive

import (
	"slices"
	"time"

	"tare/internal/drive/wire"

	"golang.org/x/sys/unix"
)

// dial starts a connection to a server.
func (l *loop) dial(server int) error {
	s, err := l.connect(&l.run.places[server])
	if err != nil {
		return err
	}
	l.serial++
	c := &line{sock: s, server: server, serial: l.serial, state: lineDialling, since: l.clock.Now()}
	if n := len(l.free); n > 0 {
		c.slot = l.free[n-1]
		l.free = l.free[:n-1]
		l.lines[c.slot] = c
	} else {
		c.slot = len(l.lines)
		l.lines = append(l.lines, c)
	}
	l.dialling++
	l.tally.dials++
	l.interest(c, unix.EPOLL_CTL_ADD, unix.EPOLLOUT)
	return nil
}

func (l *loop) connect(p *place) (wire.Socket, error) {
	if p.network == "unix" {
		return wire.ConnectUnix(p.text)
	}
	return wire.Connect(p.addr)
}

// connected takes a connection into use whose dialling has come to an end.
func (l *loop) connected(c *line) error {
	l.dialling--
	err := c.sock.Err()
	if err == nil && l.run.stamps {
		err = c.sock.StampReceives()
	}
	if err != nil {
		l.discard(c)
		return err
	}
	l.interest(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN)
	c.state, c.since = lineIdle, l.clock.Now()
	l.rest(c)
	return nil
}

// rest puts a connection with those that wait for a request.
func (l *loop) rest(c *line) { l.pools[c.server].idle = append(l.pools[c.server].idle, c) }

// refuseFirst charges a failed connection to the request that has waited longest for one, if any still does.
func (l *loop) refuseFirst(p *pool, cause error) {
	if len(p.held) == 0 {
		return
	}
	f := p.held[0]
	p.held = p.held[1:]
	l.held--
	l.refused(f, cause)
}

// expireDials gives up connections that do not come about.
func (l *loop) expireDials(now time.Duration) {
	for _, c := range l.lines {
		if c != nil && c.state == lineDialling && now-c.since >= l.run.cfg.ConnectTimeout {
			l.dialling--
			l.discard(c)
			l.refuseFirst(&l.pools[c.server], unanswered(l.run.cfg.ConnectTimeout))
		}
	}
}

// takeIdle gives the connection used last, or nil. Those that have been idle too long are closed: the server may be about
// to close them.
func (l *loop) takeIdle(server int, now time.Duration) *line {
	p := &l.pools[server]
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	if rest := l.keeps[server].rest(); rest > 0 {
		return l.takeRested(p, rest, now)
	}
	c := p.idle[n-1]
	if now-c.since < l.run.cfg.IdleTimeout {
		p.idle = p.idle[:n-1]
		return c
	}
	for _, c := range p.idle {
		l.discard(c)
	}
	p.idle = p.idle[:0]
	return nil
}

// takeRested gives the connection that has been idle longest, if it has rested or carried no request yet, or nil.
func (l *loop) takeRested(p *pool, rest, now time.Duration) *line {
	for len(p.idle) > 0 && now-p.idle[0].since >= rest {
		c := p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
		switch {
		case now-c.since >= l.run.cfg.IdleTimeout:
			l.discard(c)
		case c.sock.Quiet():
			l.keeps[c.server].outlived(c.served)
			return c
		default: // this loop did not come to look for so long
			l.left(c)
			l.discard(c)
		}
	}
	return l.takeFresh(p, now)
}

// left takes note that a server has closed an idle connection.
func (l *loop) left(c *line) {
	if c.served > 0 {
		l.keeps[c.server].left(l.clock.Now() - c.since)
	}
}

// takeFresh gives a connection that has carried no request yet, or nil.
func (l *loop) takeFresh(p *pool, now time.Duration) *line {
	i := slices.IndexFunc(p.idle, func(c *line) bool { return c.served == 0 && now-c.since < l.run.cfg.IdleTimeout })
	if i < 0 {
		return nil
	}
	c := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return c
}

// hangUp closes an idle connection. One that its server closed before anything was sent on it was no answer to who waits
// for one.
func (l *loop) hangUp(c *line) {
	p := &l.pools[c.server]
	i := slices.Index(p.idle, c)
	p.idle = slices.Delete(p.idle, i, i+1)
	l.discard(c)
	if c.served == 0 {
		l.refuseFirst(p, errClosedAtOnce)
	}
}

// dialFor dials a connection for f, which is held until there is one.
func (l *loop) dialFor(f *flight) {
	l.dials--
	if err := l.dial(f.server); err != nil {
		l.refused(f, err)
		return
	}
	p := &l.pools[f.server]
	p.held = append(p.held, f)
	l.held++
}

// discard closes a connection and forgets it.
func (l *loop) discard(c *line) {
	c.sock.Close()
	c.state = lineGone
	l.lines[c.slot] = nil
	l.free = append(l.free, c.slot)
}

// interest tells epoll what to report of c.
func (l *loop) interest(c *line, op int, events uint32) {
	e := unix.EpollEvent{Events: events, Fd: int32(c.slot), Pad: c.serial}
	_ = unix.EpollCtl(l.epoll, op, int(c.sock), &e)
}
