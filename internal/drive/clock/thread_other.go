//go:build !linux

package clock

import (
	"runtime"
	"time"
)

// Thread waits with Go's timers, which may be a millisecond late.
type Thread struct{ clock *Clock }

// LockThread ties the calling goroutine to its thread.
func LockThread(c *Clock) Thread {
	runtime.LockOSThread()
	return Thread{c}
}

// SleepExactly waits until the run's time is until. It spins the last stretch, which timers would miss, and books that in
// lead.
func (t Thread) SleepExactly(until time.Duration, lead *Lead) {
	if d := until - t.clock.Now() - spinFrom; d > 0 {
		<-time.After(d)
	}
	from := t.clock.Now()
	now := from
	for now < until {
		runtime.Gosched()
		now = t.clock.Now()
	}
	lead.spun += now - from
}

// LockBackground is LockThread on this system.
func LockBackground(c *Clock) Thread { return LockThread(c) }

const spinFrom = 1500 * time.Microsecond

// Sleep waits until the run's time is until.
func (t Thread) Sleep(until time.Duration) { t.clock.Sleep(until) }

// Usage is what the calling thread has used so far.
type Usage struct {
	CPU       time.Duration
	RunQueue  time.Duration
	Preempted int64
}

// Usage is not to be had on this system: all zero.
func (t Thread) Usage() Usage { return Usage{} }

// MonotonicStart is 0: this system's monotonic clock is not shared between processes.
func (c *Clock) MonotonicStart() int64 { return 0 }
