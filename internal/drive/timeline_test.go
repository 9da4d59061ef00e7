package drive

import (
	"testing"
	"time"

	"tare/internal/plan"
)

func TestEdgesAreKnownAsStagesOpen(t *testing.T) {
	const ms = time.Millisecond
	line := newTimeline([]plan.Stage{
		{Name: "warm", Duration: 500 * ms}, {Name: "behind a gap", Gap: 300 * ms, Duration: 700 * ms, Closed: true, Sessions: 5}, {Name: "last", Duration: 400 * ms, Gap: 10 * ms},
	})
	line.open(0, 0)
	next := func(at, want time.Duration, known bool) {
		t.Helper()
		if edge, ok := line.After(at); ok != known || known && edge != want {
			t.Errorf("after %v: got %v, %v, want %v, %v", at, edge, ok, want, known)
		}
	}
	next(0, 0, false) // the warm-up ends when its last session has been made
	line.walked(0, 400*ms)
	next(0, 500*ms, true)
	next(500*ms, 780*ms, true) // 20 ms before the start behind the gap
	next(780*ms, 0, false)     // its end follows from its replies
	select {
	case <-line.Changed():
	default:
		t.Error("nobody was told of new edges")
	}
	for range 5 {
		line.ended(1, 1200*ms)
	}
	select {
	case <-line.Changed():
	default:
		t.Error("nobody was told of the end of the closed stage")
	}
	next(780*ms, 1200*ms, true)
	next(1200*ms, 1205*ms, true) // half of a short gap
}
