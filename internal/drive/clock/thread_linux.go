package clock

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Thread is an OS thread that wakes within some tens of µs of a deadline, where Go's timers take up to 1 ms.
// Each waiting goroutine needs its own, from LockThread.
type Thread struct{ clock *Clock }

// LockThread ties the calling goroutine to its thread and sets the thread's timer slack to 1 ns.
// Unlock it with runtime.UnlockOSThread, or let the goroutine end, which ends the thread.
func LockThread(c *Clock) Thread {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // only precision is lost without it
	return Thread{c}
}

// SleepExactly waits until the run's time is until, or for a millisecond. It spins for the last stretch, as long as lead
// says, and keeps lead.
func (t Thread) SleepExactly(until time.Duration, lead *Lead) {
	wake := until - lead.Early()
	if now := t.clock.Now(); wake > now {
		wake = min(wake, now+longestSleep)
		t.Sleep(wake)
		lead.Woke(t.clock.Now() - wake)
		if wake < until-lead.Early() {
			return
		}
	}
	from := t.clock.Now()
	now := from
	for now < until {
		now = t.clock.Now()
	}
	lead.spun += now - from
}

// longestSleep bounds one sleep: a garbage collection has to wait for it.
const longestSleep = time.Millisecond

// Sleep waits until the run's time is until, or for a millisecond: callers look at the clock again. It keeps Go's
// processor, of which there must be one more than sleepers: having given it up, the thread would queue for one on its
// return, and would have Go's monitor thread wake every 20 µs to take processors away.
func (t Thread) Sleep(until time.Duration) {
	d := min(until-t.clock.Now(), longestSleep)
	if d <= 0 {
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// LockBackground ties the calling goroutine to its thread and asks the kernel not to let that thread interrupt others:
// work that is ahead of time must not delay work that is due. Let the goroutine end without unlocking: the thread ends
// with it.
func LockBackground(c *Clock) Thread {
	t := LockThread(c)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0) // only quiet is lost
	return t
}

// Usage is what the calling thread has used so far.
type Usage struct {
	CPU       time.Duration
	RunQueue  time.Duration // runnable but not running; 0 where the kernel does not tell
	Preempted int64         // involuntary context switches
}

// Usage reads the calling thread's own use of the processor.
func (t Thread) Usage() Usage {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &r) != nil {
		return Usage{}
	}
	return Usage{
		CPU:       time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		RunQueue:  runQueue(),
		Preempted: int64(r.Nivcsw),
	}
}

// MonotonicStart is CLOCK_MONOTONIC in ns at offset 0 of the run; other processes of this machine can tie their own
// stamps to the run with it.
func (c *Clock) MonotonicStart() int64 {
	var ts unix.Timespec
	before := c.Now()
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano() - int64(before+(c.Now()-before)/2)
}
