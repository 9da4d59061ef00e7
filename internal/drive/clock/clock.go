// Package clock is the one clock of a run: monotonic, in nanoseconds, 0 at the start of the run.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock tells the run's time. It is safe for concurrent use.
type Clock struct {
	made time.Time
	lead atomic.Int64 // from made to offset 0, ns
}

// New makes a clock whose run starts now.
func New() *Clock { return &Clock{made: time.Now()} }

// StartIn moves the start of the run to lead from now; until then Now is negative.
func (c *Clock) StartIn(lead time.Duration) { c.lead.Store(int64(time.Since(c.made) + lead)) }

// Now is the time since the start of the run.
func (c *Clock) Now() time.Duration { return time.Since(c.made) - time.Duration(c.lead.Load()) }

// Sleep waits until the run's time is until, with a Go timer: up to a millisecond late.
func (c *Clock) Sleep(until time.Duration) { <-time.After(until - c.Now()) }

// Wall is the calendar time at offset 0.
func (c *Clock) Wall() time.Time { return c.made.Add(time.Duration(c.lead.Load())).Round(0) }

// Offset ties calendar time, in which the kernel stamps packets, to the run's clock.
type Offset struct {
	wall int64 // ns since 1970 at offset 0 of the run
}

// On brings a calendar time in ns since 1970 onto the run's clock.
func (o Offset) On(wallNs int64) time.Duration { return time.Duration(wallNs - o.wall) }

// Step is how far the calendar clock moved against the run's clock between two samples.
func (o Offset) Step(earlier Offset) time.Duration {
	d := time.Duration(o.wall - earlier.wall)
	if d < 0 {
		return -d
	}
	return d
}

// Sample reads both clocks and keeps the tightest of five readings; the result is good to some tens of ns.
// NTP slews the calendar clock by up to 0.5 ms per second, so that a sample should not be older than 200 ms.
func (c *Clock) Sample() Offset {
	var best Offset
	tightest := time.Duration(1<<63 - 1)
	for range 5 {
		before := c.Now()
		wall := time.Now().UnixNano()
		after := c.Now()
		if after-before < tightest {
			tightest = after - before
			best.wall = wall - int64(before+(after-before)/2)
		}
	}
	return best
}
