package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRunStartsAtZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		<-time.After(time.Second)
		c.StartIn(50 * time.Millisecond)
		if got := c.Now(); got != -50*time.Millisecond {
			t.Errorf("now %v, want 50 ms before the start", got)
		}
		<-time.After(70 * time.Millisecond)
		if got := c.Now(); got != 20*time.Millisecond {
			t.Errorf("now %v, want 20 ms", got)
		}
	})
}

func TestCalendarTimesComeOntoTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		o := c.Sample()
		stamp := time.Now().Add(3 * time.Millisecond).UnixNano()
		if got := o.On(stamp); got != 3*time.Millisecond {
			t.Errorf("stamp came to %v, want 3 ms", got)
		}
		if got := (Offset{wall: o.wall - 5}).Step(o); got != 5 {
			t.Errorf("step %v, want 5 ns", got)
		}
		if got := c.Wall().UnixNano(); got != o.wall {
			t.Errorf("wall time at offset 0 is %d, the sample says %d", got, o.wall)
		}
	})
}
