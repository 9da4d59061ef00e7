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

// Sessions are partly open: they start on a schedule, whatever the replies do, and have turns that follow each other. Turn k
// falls due when the reply to turn k−1 has ended and the think time after it is over.
type Sessions struct {
	Starts Open
	Turns  Lengths // how many turns a session has; less than 1 counts as 1
	Think  Think
}

// Lengths draws whole numbers: draw.Range, draw.Normal, draw.Lognormal, draw.Histogram.
type Lengths interface {
	Draw(s *draw.Source) int64
}

// Session is one of them.
type Session struct {
	Index int64         // of the session, from the first one's on
	Due   time.Duration // of its first turn, an offset from the start of the stage
	Turns int64         // at least 1
}

// Visits makes the sessions of one stage, in order of their starts. It is not safe for concurrent use.
type Visits struct {
	starts   *Arrivals
	turns    Lengths
	source   *draw.Source
	thinking *Thinking
	first    int64
	made     int64
}

// Arrivals starts a stage whose first session has that index.
func (s Sessions) Arrivals(seed uint64, first int64) *Visits {
	return &Visits{
		starts: s.Starts.Arrivals(seed, first), turns: s.Turns, source: draw.New(seed, "turns"),
		thinking: &Thinking{think: s.Think, source: draw.New(seed, "turn think")}, first: first,
	}
}

// Next returns the next session; ok is false after the last one.
func (v *Visits) Next() (s Session, ok bool) {
	due, ok := v.starts.Next()
	if !ok {
		return Session{}, false
	}
	index := v.first + v.made
	v.made++
	v.source.Seek(uint64(index))
	return Session{Index: index, Due: due, Turns: max(1, v.turns.Draw(v.source))}, true
}

// maxTurns keeps the think times of a session apart from those of the next one.
const maxTurns = 1 << 20

// Think returns the think time between the reply to a turn, from 0, and the next turn.
func (v *Visits) Think(session int64, turn int64) time.Duration {
	return v.thinking.After(session*maxTurns + turn)
}
