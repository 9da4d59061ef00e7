// Package calibrate finds out how much load of a kind this machine can make without delays of its own, keeps what was found,
// and holds plans against it. How a trial is carried out is the caller's.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Trial is one level of load, and what became of it.
type Trial struct {
	Level float64 // what was offered: requests per second, or streams in lock-step
	Held  bool    // no delay of the client's own was above its limit
	Why   string  // it was not held; empty when it was

	RequestsPerS float64 // carried, completed
	EventsPerS   float64
	Streams      int64   // open at the same time, the most
	LoopLoad     float64 // CPU time over wall time of the busiest loop, waits for due times left out; 0 when unknown
	BodyBytes    float64 // of the request, mean
	LagP99       time.Duration
	SlipP99      time.Duration
}

// Search says where to look for the highest level that holds.
type Search struct {
	First    float64       // level of the first trial
	Least    float64       // below which no trial goes
	Most     float64       // beyond which no trial goes
	Tries    int           // of a level, before it counts as not held: a shared machine disturbs now and then
	Accuracy float64       // relative distance of the last level held and the first not held at which the search ends
	Time     time.Duration // after which no further trial begins
	Clock    func() time.Time
}

// Found is what a search came to.
type Found struct {
	Best     Trial   // highest level that held
	Broke    Trial   // lowest level above it that did not; of no level when all held
	Accuracy float64 // relative distance of the two; 0 when all held
	Trials   int
}

// ErrBusy says that no level held.
var ErrBusy = errors.New("this machine is too busy to be calibrated")

// Run tries levels: twice the one before until one does not hold, then between. When the first does not hold it looks below.
// It is an error when none holds.
func (s Search) Run(ctx context.Context, try func(ctx context.Context, level float64) (Trial, error)) (Found, error) {
	var f Found
	end := s.Clock().Add(s.Time)
	for level := min(s.First, s.Most); ; level = s.next(&f) {
		t, err := s.attempt(ctx, level, try, &f.Trials)
		if err != nil {
			return Found{}, err
		}
		if t.Held {
			f.Best = t
		} else {
			f.Broke = t
		}
		if f.Best.Level > 0 && f.Broke.Level > 0 {
			f.Accuracy = f.Broke.Level/f.Best.Level - 1
		}
		late := !s.Clock().Before(end)
		switch {
		case f.Best.Level == 0 && (late || f.Broke.Level <= s.Least):
			return Found{}, fmt.Errorf("%w: at %.4g already %s", ErrBusy, f.Broke.Level, f.Broke.Why)
		case f.Best.Level == 0:
		case late, f.Best.Level >= s.Most, f.Broke.Level > 0 && f.Accuracy <= s.Accuracy:
			return f, nil
		}
	}
}

// next is the level to try after what was found so far.
func (s Search) next(f *Found) float64 {
	switch {
	case f.Best.Level == 0:
		return max(f.Broke.Level/4, s.Least)
	case f.Broke.Level == 0:
		return min(2*f.Best.Level, s.Most)
	}
	return math.Sqrt(f.Best.Level * f.Broke.Level)
}

// attempt tries a level until it holds, some times at most.
func (s Search) attempt(ctx context.Context, level float64, try func(context.Context, float64) (Trial, error), trials *int) (t Trial, err error) {
	for range max(s.Tries, 1) {
		*trials++
		t, err = try(ctx, level)
		if err != nil {
			return Trial{}, err
		}
		if t.Level = level; t.Held {
			break
		}
	}
	return t, nil
}
