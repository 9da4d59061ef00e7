package bias

import "math"

// StepGap is the gap, in ns, up to which events count as one step: an engine writes the tokens of a step some µs apart.
const StepGap = 20_000

// Arrivals learns from the stamps of one loop's events what the models ask of a load. The zero value is ready.
type Arrivals struct {
	n       int64
	first   int64
	last    int64
	squares float64 // of the gaps, ns²

	size       int64 // of the step that is open
	steps      int64
	within     float64 // sum of the gaps inside of steps, ns
	pairs      float64 // sum of size·(size−1) over the steps that are closed
	stepEvents int64   // events in them
}

// Add takes the arrival of the next event, in ns. Arrivals must not descend; one that does counts as no gap.
func (a *Arrivals) Add(at int64) {
	a.n++
	if a.n == 1 {
		a.first, a.last, a.size = at, at, 1
		return
	}
	gap := max(at-a.last, 0)
	a.last = max(at, a.last)
	a.squares += float64(gap) * float64(gap)
	if gap <= StepGap {
		a.size++
		a.within += float64(gap)
		return
	}
	a.close()
	a.size = 1
}

func (a *Arrivals) close() {
	a.steps++
	a.stepEvents += a.size
	a.pairs += float64(a.size) * float64(a.size-1)
}

// Load fills in the rate, c_a², the step and τ as the loop's own; the service is the caller's to add. ok is false with fewer
// than two moments.
func (a *Arrivals) Load() (l Load, ok bool) {
	span := float64(a.last - a.first)
	if a.n < 2 || span <= 0 {
		return Load{}, false
	}
	whole := *a
	whole.close()
	gaps := float64(a.n - 1)
	mean := span / gaps
	l = Load{
		Rate:      1e9 / mean,
		Loops:     1,
		Variation: math.Max(a.squares/gaps/(mean*mean)-1, 0),
		Step: Step{
			Mean:  float64(whole.stepEvents) / float64(whole.steps),
			Pairs: whole.pairs / float64(whole.steps),
		},
	}
	if inner := whole.stepEvents - whole.steps; inner > 0 {
		l.Spacing = a.within / float64(inner) / 1e9
	}
	return l, true
}
