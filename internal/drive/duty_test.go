package drive

import (
	"testing"
	"time"
)

// at the moments below, in µs, a loop with a service of 10 handles what came meanwhile.
func TestDutyReplaysTheQueueItSaw(t *testing.T) {
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	d := duty{slept: awake}
	d.woke(us(50), 3)
	d.read(us(100), us(105), us(115), true) // woke up within 5
	d.read(us(102), us(115), us(125), true)
	d.read(us(103), us(125), us(135), true)
	d.sent(us(135), us(140))
	d.woke(us(140), 1)
	d.read(us(200), us(208), us(218), true) // within 8
	d.read(0, us(218), us(220), false)      // no stamp
	w := d.whole()
	for _, c := range []struct {
		what      string
		got, want time.Duration
	}{
		{"reading", span(w.Reading.Sum), us(42)},
		{"sending", span(w.Sending.Sum), us(5)},
		{"waiting", span(w.Waiting.Sum), us(5 + 13 + 22 + 8)},
		{"waking", span(w.Waking.Sum), us(13)},
		{"gaps", span(w.Gaps.Sum), us(100)},
		{"gaps within steps", span(w.Within.Sum), us(3)},
		{"replayed: 5 of the first wake-up, 13 and 22 behind it, then the mean of the wake-ups, 6.5", span(w.Replayed.Sum), us(5+13+22) + 6500},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if w.Steps.N != 2 || w.Steps.Sum != 4 || w.Steps.Squares != 10 {
		t.Errorf("steps: got %d of %d reads, squares %v, want 2 of 4, 10", w.Steps.N, w.Steps.Sum, w.Steps.Squares)
	}
	if w.Wakeups.N != 2 || w.Wakeups.Sum != 4 {
		t.Errorf("wake-ups: got %d of %d sockets, want 2 of 4", w.Wakeups.N, w.Wakeups.Sum)
	}
	if w.Waking.N != 2 || w.Waiting.N != 4 || w.Reading.N != 5 {
		t.Errorf("got %d wakings, %d waits, %d reads, want 2, 4, 5", w.Waking.N, w.Waiting.N, w.Reading.N)
	}
}

func span(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(100)
}
