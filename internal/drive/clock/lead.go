package clock

import "time"

// Lead is how much earlier than a deadline a thread must ask to be woken, to be awake by it: the mean lateness of its own
// wake-ups. The rest is waited for by looking at the clock, which costs no more than the late wake-up would have.
// The zero value has no lead; it is for one thread.
type Lead struct {
	Least time.Duration // never less than this
	mean  time.Duration
	spun  time.Duration
}

// Spun is how long the thread has spun in SleepExactly.
func (l *Lead) Spun() time.Duration { return l.spun }

const (
	mostLate = 100 * time.Microsecond // a later wake-up counts as no more: something else had the processor
	weight   = 16                     // of the past against one wake-up
)

// Early is the present lead.
func (l *Lead) Early() time.Duration { return max(l.Least, l.mean) }

// Woke takes note of a wake-up that came late after the moment asked for.
func (l *Lead) Woke(late time.Duration) {
	l.mean += (min(max(late, 0), mostLate) - l.mean) / weight
}
