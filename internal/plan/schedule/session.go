package schedule

import (
	"math"
	"math/bits"
	"time"

	"tare/internal/plan/draw"
)

// Think is how long a user takes between a reply and the next request. The zero value takes no time.
type Think struct {
	Mean        time.Duration
	Exponential bool // otherwise always the mean
}

// Thinking draws think times. It is not safe for concurrent use.
type Thinking struct {
	think  Think
	source *draw.Source
}

// Times draws from the stream of think times of that seed.
func (t Think) Times(seed uint64) *Thinking {
	return &Thinking{think: t, source: draw.New(seed, "think")}
}

// After returns the think time that follows the reply to the request of that index.
func (t *Thinking) After(index int64) time.Duration {
	if !t.think.Exponential || t.think.Mean == 0 {
		return t.think.Mean
	}
	t.source.Seek(uint64(index))
	return scaled(t.source.Exponential(), t.think.Mean)
}

// Begin returns how long after the start of a closed stage one of its places sends first. The place is in the midst of a
// think time, so that the places do not begin all at once.
func (t *Thinking) Begin(first int64, place int) time.Duration {
	if t.think.Mean == 0 {
		return 0
	}
	t.source.Seek(^uint64(first + int64(place))) // apart from the indexes of requests
	if t.think.Exponential {
		return scaled(t.source.Exponential(), t.think.Mean)
	}
	return time.Duration(t.source.Below(uint64(t.think.Mean)))
}

// scaled returns x in units of 1/draw.One times d, rounded down.
func scaled(x uint64, d time.Duration) time.Duration {
	high, low := bits.Mul64(x, uint64(d))
	if high >= 1<<47 {
		return math.MaxInt64
	}
	return time.Duration(high<<excess | low>>48)
}

// Sessions have turns: turn k falls due when the reply to turn k−1 has ended and the think time after it is over. Where they start
// on a schedule, whatever the replies do, they are partly open.
type Sessions struct {
	Turns Lengths // how many turns a session has; less than 1 counts as 1
	Think Think
}

// Lengths draws whole numbers: draw.Range, draw.Normal, draw.Lognormal, draw.Histogram.
type Lengths interface {
	Draw(s *draw.Source) int64
}

// Visits draws what sessions are like. It is not safe for concurrent use.
type Visits struct {
	turns    Lengths
	source   *draw.Source
	thinking *Thinking
}

// Visits draws from the streams of that seed.
func (s Sessions) Visits(seed uint64) *Visits {
	return &Visits{
		turns: s.Turns, source: draw.New(seed, "turns"),
		thinking: &Thinking{think: s.Think, source: draw.New(seed, "turn think")},
	}
}

// Turns returns how many turns a session has, at least 1, by the index of its first request.
func (v *Visits) Turns(session int64) int64 {
	v.source.Seek(uint64(session))
	return max(1, v.turns.Draw(v.source))
}

// Think returns the think time between the reply to the request of that index and the next turn of its session.
func (v *Visits) Think(index int64) time.Duration { return v.thinking.After(index) }
