package drive

import (
	"math"
	"sync/atomic"
	"time"

	"tare/internal/plan"
)

// timeline says when each stage of a run starts. Each starts when the one before it is over: an open stage when its
// window has passed and its last request has fallen due, be it a session's later turn, a closed one when its time is over or its last request has ended.
type timeline struct {
	stages  []plan.Stage
	starts  []atomic.Int64 // offset of each stage's start, ns; notYet until it is known
	lengths []atomic.Int64 // how long each stage lasts, ns; notYet until it is known
	left    []atomic.Int64 // sessions that have not ended, of closed stages that end by count
	coming  []atomic.Int64 // later turns that have not fallen due, of open stages; and 1 more until all sessions have been made
	latest  []atomic.Int64 // when the last request of an open stage fell due so far, or its window passes, ns after its start
	planned []atomic.Int64 // requests of each stage, as far as they have been made
	over    atomic.Int64   // end of the last stage; notYet until it is known
	changed chan struct{}  // sent on, if somebody listens, when the start or end of a stage becomes known
}

const notYet = math.MaxInt64

func newTimeline(stages []plan.Stage) *timeline {
	n := len(stages)
	t := &timeline{
		stages: stages, starts: make([]atomic.Int64, n), lengths: make([]atomic.Int64, n), left: make([]atomic.Int64, n),
		coming: make([]atomic.Int64, n), latest: make([]atomic.Int64, n), planned: make([]atomic.Int64, n), changed: make(chan struct{}, 1),
	}
	for i, s := range stages {
		t.starts[i].Store(notYet)
		t.lengths[i].Store(notYet)
		if t.byTime(i) && s.Sessions == 0 {
			t.lengths[i].Store(int64(s.Duration))
		}
		t.left[i].Store(s.Sessions)
		t.coming[i].Store(1)
	}
	t.over.Store(notYet)
	return t
}

// open starts stage i, with its gap, after the offset at, and with it every later stage whose start follows from that.
func (t *timeline) open(i int, at time.Duration) {
	defer func() {
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}()
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

// came takes note of later turns that stage i will have.
func (t *timeline) came(i, turns int) {
	if !t.stages[i].Closed {
		t.coming[i].Add(int64(turns))
	}
}

// fallen takes note that later turns of stage i have fallen due at a moment, or never will.
func (t *timeline) fallen(i, turns int, due time.Duration) {
	if t.stages[i].Closed {
		return
	}
	at, _ := t.start(i)
	t.pass(i, turns, due-at)
}

// walked takes note that every session of stage i has been made, the last of them due at last after the stage's start.
func (t *timeline) walked(i int, last time.Duration) {
	if t.stages[i].Closed {
		return
	}
	t.pass(i, 1, max(t.stages[i].Duration, last))
}

// pass takes note of requests of stage i that fell due at an offset from its start. The last one ends the stage.
func (t *timeline) pass(i, n int, due time.Duration) {
	for latest := t.latest[i].Load(); latest < int64(due); latest = t.latest[i].Load() {
		if t.latest[i].CompareAndSwap(latest, int64(due)) {
			break
		}
	}
	if t.coming[i].Add(-int64(n)) > 0 {
		return
	}
	length := t.latest[i].Load()
	t.lengths[i].Store(length)
	if at, ok := t.start(i); ok {
		t.open(i+1, at+time.Duration(length))
	}
}

// ended takes note that a session of stage i has ended.
func (t *timeline) ended(i int, now time.Duration) {
	s := &t.stages[i]
	if !s.Closed || s.Sessions == 0 || t.left[i].Add(-1) > 0 {
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

// gapEnds is how long before a stage that follows a gap After has its start: what happens in the gap is over then, and what comes
// has not begun.
const gapEnds = 20 * time.Millisecond

// After is the next start or end of a stage after a moment; ok is false while it is unknown.
func (t *timeline) After(at time.Duration) (edge time.Duration, ok bool) {
	for i := range t.stages {
		if edge, ok = t.start(i); ok {
			if edge -= min(t.stages[i].Gap/2, gapEnds); edge > at {
				return edge, true
			}
		}
		if edge, ok = t.end(i); ok && edge > at {
			return edge, true
		}
	}
	return 0, false
}

// Changed is sent on when After may have another answer.
func (t *timeline) Changed() <-chan struct{} { return t.changed }
