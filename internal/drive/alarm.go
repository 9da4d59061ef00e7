package drive

import (
	"sync"
	"time"

	"tare/internal/drive/clock"
)

// alarm ends something when its time is over. Putting that off costs a store: the timer looks again when it fires.
type alarm struct {
	clock *clock.Clock
	end   func()

	mu    sync.Mutex
	until time.Duration // the time is over then
	armed time.Duration // and the timer fires then, or before
	timer *time.Timer
}

func newAlarm(c *clock.Clock, until time.Duration, end func()) *alarm {
	a := &alarm{clock: c, end: end, until: until, armed: until}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(until-c.Now(), a.fire)
	return a
}

// set gives another moment.
func (a *alarm) set(until time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until = until; until < a.armed {
		a.arm()
	}
}

func (a *alarm) arm() {
	a.armed = a.until
	a.timer.Reset(a.until - a.clock.Now())
}

func (a *alarm) fire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until > a.clock.Now() {
		a.arm()
		return
	}
	a.end()
}

// stop lets the time pass: nothing ends any more, but for what ends at this moment.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = 0 // lest it be armed again
	a.timer.Stop()
}
