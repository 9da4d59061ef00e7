//go:build linux && (amd64 || arm64)

package drive

import (
	"fmt"
	"slices"
	"time"

	"tare/internal/drive/wire"

	"golang.org/x/sys/unix"
)

// dial starts a connection.
func (l *loop) dial() error {
	s, err := wire.Connect(l.addr)
	if err != nil {
		return err
	}
	l.serial++
	c := &line{sock: s, serial: l.serial, state: lineDialling, since: l.clock.Now()}
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
	l.idle = append(l.idle, c)
	return nil
}

// refuseFirst charges a failed connection to the request that waits for one.
func (l *loop) refuseFirst(cause error) {
	now := l.clock.Now()
	j, due, known := l.next(now)
	if j == nil || !known || due > now {
		return
	}
	l.occupy(j)
	l.refuse(j, due, cause)
	l.ring.taken()
}

// expireDials gives up connections that do not come about.
func (l *loop) expireDials(now time.Duration) {
	for _, c := range l.lines {
		if c != nil && c.state == lineDialling && now-c.since >= l.run.cfg.ConnectTimeout {
			l.dialling--
			l.discard(c)
			l.refuseFirst(fmt.Errorf("no answer within %v", l.run.cfg.ConnectTimeout))
		}
	}
}

// takeIdle gives the connection used last, or nil. Those that have been idle too long are closed: the server may be about
// to close them.
func (l *loop) takeIdle(now time.Duration) *line {
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	if l.cool > 0 {
		return l.takeRested(now)
	}
	c := l.idle[n-1]
	if now-c.since < l.run.cfg.IdleTimeout {
		l.idle = l.idle[:n-1]
		return c
	}
	for _, c := range l.idle {
		l.discard(c)
	}
	l.idle = l.idle[:0]
	return nil
}

// takeRested gives the connection that has been idle longest, if that is long enough, or nil.
func (l *loop) takeRested(now time.Duration) *line {
	for len(l.idle) > 0 && now-l.idle[0].since >= l.cool {
		c := l.idle[0]
		l.idle = slices.Delete(l.idle, 0, 1)
		if now-c.since < l.run.cfg.IdleTimeout {
			return c
		}
		l.discard(c)
	}
	return nil
}

// hangUp closes an idle connection.
func (l *loop) hangUp(c *line) {
	i := slices.Index(l.idle, c)
	l.idle = slices.Delete(l.idle, i, i+1)
	l.discard(c)
}

// discard closes a connection and forgets it.
func (l *loop) discard(c *line) {
	c.sock.Close()
	l.lines[c.slot] = nil
	l.free = append(l.free, c.slot)
}

// interest tells epoll what to report of c.
func (l *loop) interest(c *line, op int, events uint32) {
	e := unix.EpollEvent{Events: events, Fd: int32(c.slot), Pad: c.serial}
	_ = unix.EpollCtl(l.epoll, op, int(c.sock), &e)
}
