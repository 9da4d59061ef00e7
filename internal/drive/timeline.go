package drive

import (
	"math"
	"sync/atomic"
	"time"

	"tare/internal/plan"
)

// timeline says when each stage of a run starts. Each starts when the one before it is over: an open stage when its
// window has passed and its last request has fallen due, a closed one when its time is over or its last request has ended.
type timeline struct {
	stages  []plan.Stage
	starts  []atomic.Int64 // offset of each stage's start, ns; notYet until it is known
	lengths []atomic.Int64 // how long each stage lasts, ns; notYet until it is known
	left    []atomic.Int64 // requests that have not ended, of closed stages that end by count
	planned []atomic.Int64 // requests of each stage, as far as they have been made
	over    atomic.Int64   // end of the last stage; notYet until it is known
}

const notYet = math.MaxInt64

func newTimeline(stages []plan.Stage) *timeline {
	n := len(stages)
	t := &timeline{
		stages: stages, starts: make([]atomic.Int64, n), lengths: make([]atomic.Int64, n), left: make([]atomic.Int64, n),
		planned: make([]atomic.Int64, n),
	}
	for i, s := range stages {
		t.starts[i].Store(notYet)
		t.lengths[i].Store(notYet)
		if t.byTime(i) && s.Requests == 0 {
			t.lengths[i].Store(int64(s.Duration))
		}
		t.left[i].Store(s.Requests)
	}
	t.over.Store(notYet)
	return t
}

// open starts stage i, with its gap, after the offset at, and with it every later stage whose start follows from that.
func (t *timeline) open(i int, at time.Duration) {
	for ; i < len(t.stages); i++ {
		at += t.stages[i].Gap
		t.starts[i].Store(int64(at))
		length := t.lengths[i].Load()
		if length == notYet {
			return
		}
		at += time.Duration(length)
	}
	t.over.Store(int64(at))
}

// walked takes note that every request of stage i has been made, the last of them due at last after the stage's start.
func (t *timeline) walked(i int, last time.Duration) {
	if t.stages[i].Closed {
		return
	}
	length := max(t.stages[i].Duration, last)
	t.lengths[i].Store(int64(length))
	if at, ok := t.start(i); ok {
		t.open(i+1, at+length)
	}
}

// ended takes note that a request of stage i has ended.
func (t *timeline) ended(i int, now time.Duration) {
	s := &t.stages[i]
	if !s.Closed || s.Requests == 0 || t.left[i].Add(-1) > 0 {
		return
	}
	at, _ := t.start(i)
	length := now - at
	if s.Duration > 0 {
		length = min(length, s.Duration)
	}
	t.finish(i, length)
}

// advance ends the closed stage whose time is over before its last request has ended, if it may have that many.
func (t *timeline) advance(now time.Duration) {
	for i := range t.stages {
		if t.lengths[i].Load() == notYet && t.expired(i, now) {
			t.finish(i, t.stages[i].Duration)
		}
	}
}

// finish gives stage i its length and starts what follows. Only the first call counts.
func (t *timeline) finish(i int, length time.Duration) {
	if t.lengths[i].CompareAndSwap(notYet, int64(length)) {
		at, _ := t.start(i)
		t.open(i+1, at+length)
	}
}

// start is the offset of stage i's start; ok is false while it is unknown.
func (t *timeline) start(i int) (at time.Duration, ok bool) {
	ns := t.starts[i].Load()
	return time.Duration(ns), ns != notYet
}

// expired reports that stage i is a closed one that ends by time, and that its time is over.
func (t *timeline) expired(i int, now time.Duration) bool {
	s := &t.stages[i]
	if !s.Closed || s.Duration == 0 {
		return false
	}
	at, ok := t.start(i)
	return ok && now >= at+s.Duration
}

// end is the end of stage i; ok is false while it is unknown.
func (t *timeline) end(i int) (at time.Duration, ok bool) {
	at, ok = t.start(i)
	length := t.lengths[i].Load()
	return at + time.Duration(length), ok && length != notYet
}

// byTime reports that the number of requests of stage i follows from its replies.
func (t *timeline) byTime(i int) bool {
	s := &t.stages[i]
	return s.Closed && s.Duration > 0
}
