package drive

import (
	"math"
	"sync/atomic"
	"time"

	"tare/internal/plan"
)

// timeline says when each stage of a run starts. Most starts are known when the run begins; a stage behind a closed one
// that ends by count starts when the last of those requests has ended.
type timeline struct {
	stages  []plan.Stage
	starts  []atomic.Int64 // offset of each stage's start, ns; notYet until it is known
	left    []atomic.Int64 // requests that have not ended, of closed stages that end by count
	planned []atomic.Int64 // requests of each stage, as far as they have been made
	over    atomic.Int64   // end of the last stage's window; notYet until it is known
}

const notYet = math.MaxInt64

func newTimeline(stages []plan.Stage) *timeline {
	t := &timeline{
		stages:  stages,
		starts:  make([]atomic.Int64, len(stages)),
		left:    make([]atomic.Int64, len(stages)),
		planned: make([]atomic.Int64, len(stages)),
	}
	for i, s := range stages {
		t.starts[i].Store(notYet)
		t.left[i].Store(s.Requests)
	}
	t.over.Store(notYet)
	return t
}

// open starts stage i at the offset at, and with it every later stage whose start follows from that.
func (t *timeline) open(i int, at time.Duration) {
	for ; i < len(t.stages); i++ {
		s := t.stages[i]
		at += s.Gap
		t.starts[i].Store(int64(at))
		if s.Duration == 0 {
			return
		}
		at += s.Duration
	}
	t.over.Store(int64(at))
}

// ended takes note that a request of stage i has ended.
func (t *timeline) ended(i int, now time.Duration) {
	s := &t.stages[i]
	if s.Closed && s.Duration == 0 && t.left[i].Add(-1) == 0 {
		t.open(i+1, now)
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

// byTime reports that the number of requests of stage i follows from its replies.
func (t *timeline) byTime(i int) bool {
	s := &t.stages[i]
	return s.Closed && s.Duration > 0
}
