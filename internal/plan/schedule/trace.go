package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"tare/internal/plan/draw"
)

// Trace replays recorded arrival times, at a rate of its own or at another one. There are two ways to another rate, which make
// different loads, and only one may be chosen. Stretching keeps the variation of the gaps and moves every correlation to
// another time scale. Thinning keeps the time scale and takes the edge off bursts.
type Trace struct {
	Offsets []time.Duration // from the start of the stage, in order
	Stretch float64         // offsets are multiplied by it: 0.5 is twice the rate; 0 for as they are
	Keep    float64         // fraction of requests kept, each at random; 0 for all
}

// The largest and the smallest factor by which a trace is stretched.
const (
	maxStretch = 1e6
	minStretch = 1e-6
)

// Fault says why the trace cannot be replayed.
func (t Trace) Fault() error {
	var faults []error
	if t.Stretch != 0 && t.Keep != 0 {
		faults = append(faults, errors.New("a trace is either stretched or thinned, not both"))
	}
	if t.Stretch != 0 && !(t.Stretch >= minStretch && t.Stretch <= maxStretch) {
		faults = append(faults, fmt.Errorf("stretch must be within %g and %g, got %v", minStretch, float64(maxStretch), t.Stretch))
	}
	if t.Keep != 0 && !(t.Keep > 0 && t.Keep <= 1) {
		faults = append(faults, fmt.Errorf("keep must be above 0 and at most 1, got %v", t.Keep))
	}
	for i, at := range t.Offsets {
		if at < 0 || i > 0 && at < t.Offsets[i-1] {
			faults = append(faults, fmt.Errorf("time %d must not be before the one before it, got %v", i+1, at))
			break
		}
	}
	return errors.Join(faults...)
}

// Rate returns the mean rate of the trace as it was recorded, requests per second; ok is false for fewer than two times.
func (t Trace) Rate() (perSecond float64, ok bool) {
	n := len(t.Offsets)
	if n < 2 || t.Offsets[n-1] == t.Offsets[0] {
		return 0, false
	}
	return float64(n-1) / (t.Offsets[n-1] - t.Offsets[0]).Seconds(), true
}

// Replay makes the due times of a trace, in order. It is not safe for concurrent use.
type Replay struct {
	trace   Trace
	source  *draw.Source
	first   int64
	keep    uint64 // kept where a draw is below; 0 for all
	stretch uint64 // in units of 10⁻⁹; 0 for none
	row     int    // of the next time
}

// Arrivals starts a stage whose first request has that index. The trace has no fault.
func (t Trace) Arrivals(seed uint64, first int64) *Replay {
	r := &Replay{trace: t, source: draw.New(seed, "thin"), first: first, stretch: uint64(math.Round(float64(t.Stretch * 1e9)))}
	if t.Keep < 1 {
		r.keep = uint64(math.Ceil(float64(t.Keep * (1 << 63))))
	}
	return r
}

// Next returns when the next request falls due, an offset from the start of the stage; ok is false after the last one.
func (r *Replay) Next() (due time.Duration, ok bool) {
	for r.row < len(r.trace.Offsets) {
		row := r.row
		r.row++
		if r.kept(row) {
			return r.stretched(r.trace.Offsets[row]), true
		}
	}
	return 0, false
}

// Row returns which time of the trace was the last one given out, from 0.
func (r *Replay) Row() int { return r.row - 1 }

// kept draws at the row's index, so that it does not depend on what became of the rows before it.
func (r *Replay) kept(row int) bool {
	if r.keep == 0 {
		return true
	}
	r.source.Seek(uint64(r.first + int64(row)))
	return r.source.Uint64()>>1 < r.keep
}

func (r *Replay) stretched(at time.Duration) time.Duration {
	if r.stretch == 0 {
		return at
	}
	high, low := bits.Mul64(uint64(at), r.stretch)
	low, carry := bits.Add64(low, 1e9/2, 0)
	if high += carry; high >= 1e9 {
		return math.MaxInt64
	}
	due, _ := bits.Div64(high, low, 1e9)
	return time.Duration(min(due, math.MaxInt64))
}
