package health

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive/clock"
)

// late is a timer that is heard late, and once three times together.
type late struct {
	clock  *clock.Clock
	n      int64
	closed chan struct{}
	broken error
}

func (l *late) wait() (int64, error) {
	if l.broken != nil {
		return 0, l.broken
	}
	times := int64(1)
	if l.n == 4 {
		times = 3
	}
	l.n += times
	select {
	case <-l.closed:
		return 0, os.ErrClosed
	case <-time.After(time.Duration(l.n)*canaryEvery + 300*time.Microsecond - l.clock.Now()):
		return times, nil
	}
}

func (l *late) close() error { close(l.closed); return nil }

func TestACanaryTellsHowLateItIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		canary := &Canary{clock: c, timer: &late{clock: c, closed: make(chan struct{})}, next: canaryEvery}
		done := make(chan struct{})
		time.AfterFunc(8*canaryEvery+time.Millisecond, func() { close(done) })
		if err := canary.Sing(done); err != nil {
			t.Fatal(err)
		}
		step := canaryEvery.Microseconds()
		want := []int64{300, 300, 300, 300, 300 + 2*step, 300 + step, 300, 300}
		if got := canary.heard(); !slices.Equal(got, want) {
			t.Errorf("got %v µs, want %v: calls that were missed are the later", got, want)
		}
		if got := canary.heard(); len(got) != 0 {
			t.Errorf("taken twice: got %v, want none", got)
		}
	})
}

func TestACanaryWithABrokenTimerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Canary{clock: clock.New(), timer: &late{broken: errors.New("no such timer"), closed: make(chan struct{})}}
		if err := c.Sing(make(chan struct{})); err == nil || !strings.Contains(err.Error(), "no such timer") {
			t.Errorf("got %v, want no such timer", err)
		}
	})
}

// heard ends the singing when its timer has gone off so often, however long that takes.
type heard struct {
	timer
	left int
	done chan struct{}
}

func (h *heard) wait() (int64, error) {
	if h.left--; h.left == -1 {
		close(h.done)
	}
	return h.timer.wait()
}

func TestACanaryListensToTheKernel(t *testing.T) {
	c, err := NewCanary(clock.New())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	c.timer = &heard{timer: c.timer, left: 2, done: done}
	if err := c.Sing(done); err != nil {
		t.Fatal(err)
	}
	if got := c.heard(); len(got) == 0 {
		t.Error("got no call of a timer that went off twice")
	}
	var none *Canary
	if got := none.heard(); got != nil {
		t.Errorf("no canary: got %v", got)
	}
}
