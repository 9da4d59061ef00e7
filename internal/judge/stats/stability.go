package stats

import "math"

// Course is how an open stage went, in equal bins of its window.
type Course struct {
	Width   float64     // of a bin, seconds
	Due     []float64   // requests that fell due in each bin, whether they were sent or not
	Ended   []float64   // requests that ended in it, however they ended and whenever they were due
	Waits   []Wait      // from due to the first token (or to the end, where replies come whole), in the order of due times; none if unknown
	Waiting [][]float64 // of each server, how many requests it says are waiting, at looks an equal time apart; none if it says nothing
	Planned int64       // requests of the stage that were due and could be sent
	Failed  int64       // of them, how many ended otherwise than completed
}

// Wait is the mean wait of the requests that fell due in one bin.
type Wait struct {
	Bin     float64
	Seconds float64
}

// State says whether a server keeps up with a load.
type State string

const (
	Stable     State = "stable"     // an overload of the tolerance or more is excluded
	Overloaded State = "overloaded" // more comes than goes, or more fails than may
	Unclear    State = "unclear"    // the stage is too short, or too uneven, to tell
)

// The errors of the test on a stage that is told apart at its resolution: a server at its capacity is called overloaded in some 1 %, one
// that is overloaded by the tolerance is called stable in some 10 %. docs/capacity.md has what simulation makes of both.
const (
	alarmQuantile = 2.33 // standard errors, one-sided: 1 %
	powerQuantile = 1.28 // 10 %
	MostFailed    = 0.01 // share of requests that may fail on a server that keeps up
	leastOffered  = 50   // requests: of fewer, none failing says little
)

// Excess is what was left standing, as a share of the offered load, with its standard error. The zero value is unknown.
type Excess struct {
	Value float64
	Error float64
	Known bool
}

func (s Excess) low() float64  { return s.Value - alarmQuantile*s.Error }
func (s Excess) high() float64 { return s.Value + powerQuantile*s.Error }

// Stability is how much of an open stage's load was left standing, in three ways that agree where requests are served in order: by the
// backlog, by the wait that grows with it, and by the server's own count of those that wait. Each is a share of the load: 0 for a server
// that keeps up, 1 for one that does nothing.
type Stability struct {
	Growth    Growth  // of the backlog, due less ended, over the window, in requests
	Offered   float64 // requests that fell due in the window
	Completed float64 // ended in the window over due in it, less what failed
	Backlog   Excess
	Wait      Excess // growth of the wait, seconds a second
	Waiting   Excess // growth of the server's queue over the offered load
	Failed    float64
	failedLow float64 // bound of the share that fails
}

// Assess looks at a stage. ok is false for fewer than 50 bins, and for one in which nothing fell due.
func Assess(c *Course) (s Stability, ok bool) {
	if s.Growth, ok = c.Growth(); !ok {
		return Stability{}, false
	}
	ended := 0.0
	for i := range min(len(c.Due), len(c.Ended)) {
		s.Offered += c.Due[i]
		ended += c.Ended[i]
	}
	if s.Offered <= 0 {
		return Stability{}, false
	}
	if c.Planned > 0 {
		p := float64(c.Planned)
		s.Failed = float64(c.Failed) / p
		s.failedLow = s.Failed - alarmQuantile*math.Sqrt(s.Failed*(1-s.Failed)/p)
	}
	s.Completed = ended / s.Offered * (1 - s.Failed)
	s.Backlog = Excess{s.Growth.Total / s.Offered, s.Growth.Error / s.Offered, true}
	s.Wait = growingWait(c)
	s.Waiting = growingQueue(c.Waiting, s.Offered)
	return s, true
}

// Growth is by how much the backlog, due less ended, grows over the window. ok is false for fewer than 50 bins.
func (c *Course) Growth() (g Growth, ok bool) {
	net := make([]float64, min(len(c.Due), len(c.Ended)))
	for i := range net {
		net[i] = c.Due[i] - c.Ended[i]
	}
	return Grow(net)
}

// Growth is how much a level rises over a series.
type Growth struct {
	Total float64 // by the slope of the line through the level
	Error float64 // its standard error
}

// The least values that the growth of a level is told from: bins of our own, and looks at a server, which are a second apart.
const (
	leastBins  = 50
	leastLooks = 20
)

// Grow takes the net change of a level in each of equal bins. The error is that of Newey and West, and never below that of a line through
// a random walk with the same steps, √(6/5·n·V): near its capacity a queue wanders, and the residuals of a line through it hide that.
// ok is false for fewer than 50 bins.
func Grow(net []float64) (g Growth, ok bool) {
	if len(net) < leastBins {
		return Growth{}, false
	}
	return grow(net)
}

func grow(net []float64) (g Growth, ok bool) {
	n := len(net)
	at, level := make([]float64, n), make([]float64, n)
	sum := 0.0
	for i, step := range net {
		at[i], level[i] = float64(i), sum+step/2
		sum += step
	}
	line, ok := Trend(at, level, NeweyWestLags(n))
	if !ok {
		return Growth{}, false
	}
	g = Growth{Total: line.Slope * float64(n), Error: line.Error * float64(n)}
	g.Error = max(g.Error, math.Sqrt(6.0/5*wander(net)))
	return g, true
}

// wander is the variance of the sum of the steps, by their long-run variance.
func wander(steps []float64) float64 {
	mean := meanOf(steps)
	off := make([]float64, len(steps))
	for i, step := range steps {
		off[i] = step - mean
	}
	return max(longRun(off, NeweyWestLags(len(steps))), 0)
}

// growingWait is the slope of the wait. In a queue served in order the wait is the backlog over the throughput μ, so that its slope
// is (λ−μ)/μ.
func growingWait(c *Course) Excess {
	x, y := make([]float64, 0, len(c.Waits)), make([]float64, 0, len(c.Waits))
	for _, w := range c.Waits {
		x, y = append(x, w.Bin*c.Width), append(y, w.Seconds)
	}
	if len(x) < leastBins/2 {
		return Excess{}
	}
	line, ok := Trend(x, y, 2*NeweyWestLags(len(x)))
	return Excess{line.Slope, line.Error, ok}
}

// growingQueue adds up what the queues of all servers grow by.
func growingQueue(servers [][]float64, offered float64) (all Excess) {
	for _, waiting := range servers {
		if len(waiting) < leastLooks {
			return Excess{}
		}
		steps := make([]float64, len(waiting)-1)
		for i := range steps {
			steps[i] = waiting[i+1] - waiting[i]
		}
		g, ok := grow(steps)
		if !ok {
			return Excess{}
		}
		all = Excess{all.Value + g.Total/offered, math.Hypot(all.Error, g.Error/offered), true}
	}
	return all
}

// Resolution is the least overload that this stage tells from none, as a share of the load, with 1 % false alarms and 90 % power:
// ε(T) = (2.33+1.28)·(standard error of the growth)/(requests due), which is √(13·(c_a²+c_s²)/n) for a queue.
func (s *Stability) Resolution() float64 { return (alarmQuantile + powerQuantile) * s.Backlog.Error }

// State holds the stage against a tolerance: the share of the load that may be left standing. A growing backlog, or too many failures, call
// it overloaded. Calling it stable takes an upper bound below the tolerance, and neither the waits nor the server's queue against it.
func (s *Stability) State(tolerance float64) (state State, why string) {
	switch {
	case s.Backlog.low() > 0 && s.Backlog.Value >= tolerance/2:
		return Overloaded, "the backlog grows"
	case s.failedLow > MostFailed:
		return Overloaded, "requests fail"
	case s.Offered < leastOffered:
		return Unclear, "too few requests"
	case s.Failed > MostFailed:
		return Unclear, "some requests fail"
	case s.Backlog.high() >= tolerance:
		return Unclear, "too short, or too uneven, for the tolerance"
	case s.Wait.Known && s.Wait.low() > tolerance:
		return Unclear, "the backlog stands, but waits grow"
	case s.Waiting.Known && s.Waiting.low() > tolerance/2:
		return Unclear, "the backlog stands, but the server's queue grows"
	}
	return Stable, ""
}
