//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// load is the outcome of a run.
type load struct {
	replies  []reply // of the requests sent
	planned  int
	from, to time.Duration // steady window, offsets from the start
	before   usage
	after    usage
	inFlight int64 // at the end of the window
}

// openLoop sends requests at their due times, each from a goroutine of its own.
func openLoop(ctx context.Context, c *client, o options) load {
	due := arrivals(o)
	l := load{replies: make([]reply, len(due)), planned: len(due), from: o.duration / 5, to: o.duration}
	var (
		inFlight atomic.Int64
		wg       sync.WaitGroup
		p        = newPacer()
		sent     int
	)
	measured := false
	for _, d := range due {
		if d >= l.from && !measured {
			l.before, measured = usageNow(), true
		}
		p.wait(d)
		if ctx.Err() != nil {
			break
		}
		if inFlight.Load() >= int64(o.inFlight) {
			continue
		}
		r := &l.replies[sent]
		sent++
		r.due = d
		inFlight.Add(1)
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer inFlight.Add(-1)
			c.send(ctx, p.start, r)
		}()
	}
	p.wait(l.to)
	l.after, l.inFlight = usageNow(), inFlight.Load()
	l.to = time.Since(p.start)
	wg.Wait()
	l.replies = l.replies[:sent]
	return l
}

// closedLoop keeps a number of requests in flight.
func closedLoop(ctx context.Context, c *client, o options) load {
	l := load{from: o.duration / 5, to: o.duration}
	var (
		wg   sync.WaitGroup
		p    = newPacer()
		each = make([][]reply, o.concurrency)
	)
	for i := range each {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Since(p.start) < o.duration && ctx.Err() == nil {
				r := reply{due: time.Since(p.start)}
				c.send(ctx, p.start, &r)
				each[i] = append(each[i], r)
			}
		}()
	}
	p.wait(l.from)
	l.before = usageNow()
	p.wait(l.to)
	l.after = usageNow()
	l.to = time.Since(p.start)
	wg.Wait()
	for _, rs := range each {
		l.replies = append(l.replies, rs...)
	}
	l.planned = len(l.replies)
	return l
}

// arrivals returns the due times of an open loop as offsets from its start.
func arrivals(o options) []time.Duration {
	draw := rand.New(rand.NewPCG(o.seed, 0))
	mean := float64(time.Second) / o.rate
	due := make([]time.Duration, 0, int(o.rate*o.duration.Seconds()*1.1)+16)
	for at := 0.0; at < float64(o.duration); {
		due = append(due, time.Duration(at))
		if o.poisson {
			at += draw.ExpFloat64() * mean
		} else {
			at = float64(len(due)) * mean
		}
	}
	return due
}

// pacer waits for moments on a thread of its own. The Go runtime's timers are half a millisecond late.
type pacer struct {
	start time.Time
	zero  int64 // start on CLOCK_MONOTONIC, ns
}

// newPacer locks the calling goroutine to its thread and starts the clock.
func newPacer() pacer {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return pacer{start: time.Now(), zero: now.Nano()}
}

// wait returns at offset d from the start, or at once when that has passed.
func (p pacer) wait(d time.Duration) {
	until := unix.NsecToTimespec(p.zero + int64(d))
	for time.Since(p.start) < d {
		unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil)
	}
}
