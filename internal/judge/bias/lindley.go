package bias

// Lindley replays a first-come first-served loop over recorded stamps: W' = max(0, W + S − A) (Lindley 1952). It assumes
// nothing on arrivals, so that it tells a queue from other delays. The zero value is an idle loop that needs no waking.
type Lindley struct {
	Setup int64 // ns that an idle loop needs to wake up

	free   int64 // when the loop has done what came so far, ns
	begun  bool
	events int64
	total  float64 // of the waits, ns
}

// Next returns how long an event waits that arrived at a moment and takes that long to serve, in ns. Events are given in the
// order in which the loop handled them, whatever their arrivals. A negative service counts as none.
func (l *Lindley) Next(arrival, service int64) (wait int64) {
	start := max(l.free, arrival)
	if !l.begun || arrival >= l.free {
		start = arrival + l.Setup
	}
	l.begun = true
	l.free = start + max(service, 0)
	l.events++
	l.total += float64(start - arrival)
	return start - arrival
}

// Mean returns the mean wait so far, in seconds.
func (l *Lindley) Mean() (seconds float64, ok bool) {
	if l.events == 0 {
		return 0, false
	}
	return l.total / float64(l.events) / 1e9, true
}
