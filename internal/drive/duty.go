package drive

import (
	"time"

	"tare/internal/record"
)

// duty is a sender's account of its own work. It takes a clock reading for each read of a socket and some additions, and no
// memory that grows.
type duty struct {
	record.Work

	last  time.Duration // latest stamp
	begun bool
	step  int64         // reads in the step that is open
	free  time.Duration // when a loop that took one after another would have been done
	slept time.Duration // when the sleep began that has just ended; awake when it did not sleep
}

// awake says that the loop has not slept since its last read.
const awake = never

// woke takes note of a wait that began at a moment and found n sockets ready.
func (d *duty) woke(began time.Duration, n int) {
	d.Wakeups.Add(int64(n))
	d.slept = began
}

// read takes in a read of a socket that was taken up at from and done with at to. Its last byte arrived at kernel.
func (d *duty) read(kernel, from, to time.Duration, stamped bool) {
	d.Reading.Add(to - from)
	if !stamped {
		return
	}
	wait := max(from-kernel, 0)
	d.Waiting.Add(wait)
	if kernel >= d.slept {
		d.Waking.Add(wait)
	}
	d.slept = awake
	d.arrive(kernel)
	d.replay(kernel, to-from)
}

// arrive takes in when bytes came next to those before.
func (d *duty) arrive(at time.Duration) {
	if !d.begun {
		d.begun, d.last, d.step = true, at, 1
		return
	}
	gap := max(at-d.last, 0)
	d.last = max(at, d.last)
	d.Gaps.Add(gap)
	if gap <= record.StepGap {
		d.Within.Add(gap)
		d.step++
		return
	}
	d.Steps.Add(d.step)
	d.step = 1
}

// replay lets a loop that knows nothing but its own queue take the read up: Lindley's recursion.
func (d *duty) replay(arrival, service time.Duration) {
	start := d.free
	if arrival >= d.free {
		start = arrival + d.setup()
	}
	d.Replayed.Add(start - arrival)
	d.free = start + service
}

// setup is how long this loop needs to wake up, in the mean so far.
func (d *duty) setup() time.Duration {
	if d.Waking.N == 0 {
		return 0
	}
	return time.Duration(d.Waking.Sum / float64(d.Waking.N) * 1e9)
}

// sent takes in a request that was looked up and written between two moments.
func (d *duty) sent(from, to time.Duration) {
	d.Sending.Add(to - from)
	d.free = max(d.free, from) + to - from
}

// whole is the account with the step that is still open.
func (d *duty) whole() record.Work {
	w := d.Work
	if d.step > 0 {
		w.Steps.Add(d.step)
	}
	return w
}

// gauge counts the time that each stage's requests are in flight, as they come and go: the sum of their ends less the sum of
// their beginnings, whatever is written down of them elsewhere.
type gauge []time.Duration

func (g gauge) enter(stage int, at time.Duration) { g[stage] -= at }
func (g gauge) leave(stage int, at time.Duration) { g[stage] += at }

// total is the request-ns of each stage once all have left.
func (g gauge) total() (ns []int64) {
	for _, d := range g {
		ns = append(ns, int64(d))
	}
	return ns
}
