package judge

import (
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// course is what happened in a stage's window, in bins of a tenth of a second.
type course struct {
	due, writes, ends, completions, tokens []float64

	waits, waited []float64 // sum of the waits for the first token, s, by when the requests were due, and how many have one
}

// add counts what follows from a request's due time.
func (c *course) add(r *measure.Reply, begins time.Duration) {
	count(&c.due, r.Due-begins, 1)
	if wait, ok := waitOf(r); ok {
		count(&c.waited, r.Due-begins, 1)
		addTo(&c.waits, r.Due-begins, wait.Seconds())
	}
}

// waitOf is the time from due to the first token, or to the end of a reply that came whole.
func waitOf(r *measure.Reply) (wait time.Duration, ok bool) {
	switch {
	case r.FirstToken.Known:
		return r.FirstToken.At - r.Due, true
	case r.Outcome == record.Completed && r.Ended:
		return r.Finish - r.Due, true
	}
	return 0, false
}

const (
	binWidth = 100 * time.Millisecond
	mostBins = 1 << 20 // 29 hours; what comes later is in no series
)

func count(bins *[]float64, at time.Duration, n int64) { addTo(bins, at, float64(n)) }

func addTo(bins *[]float64, at time.Duration, v float64) {
	i := int(at / binWidth)
	if at < 0 || i >= mostBins {
		return
	}
	for len(*bins) <= i {
		*bins = append(*bins, 0)
	}
	(*bins)[i] += v
}

// whole gives a series the length of the window, without the bin that the window ends in.
func whole(bins []float64, window time.Duration) []float64 {
	n := min(int(window/binWidth), mostBins)
	all := make([]float64, n)
	copy(all, bins)
	return all
}

// coarse joins neighbouring bins until there are no more than most; what does not fill a bin at the end is left out.
func coarse(bins []float64, most int) (joined []float64, width time.Duration) {
	size := (len(bins) + most - 1) / most
	if size <= 1 {
		return bins, binWidth
	}
	for ; len(bins) >= size; bins = bins[size:] {
		sum := 0.0
		for _, v := range bins[:size] {
			sum += v
		}
		joined = append(joined, sum)
	}
	return joined, time.Duration(size) * binWidth
}

// Steadiness says how a stage went over time.
type Steadiness struct {
	Completed RateInterval `json:"completed_per_s"`
	Tokens    RateInterval `json:"output_tokens_per_s"`
	Warmup    Warmup       `json:"warmup"`
	Drift     Drift        `json:"drift"`
	Stability *Stability   `json:"stability,omitempty"` // of an open stage of one rate, long enough to look at
	Little    Little       `json:"little"`
}

// RateInterval is the 95 % interval of a rate, by the means of equal batches of time.
type RateInterval struct {
	Mean        Number `json:"mean"`
	Low         Number `json:"low"`
	High        Number `json:"high"`
	Independent bool   `json:"independent"` // the batches may pass for it: else the interval is too narrow
}

// Warmup sets the warm-up that MSER-5 finds in the stage and the warm-up before it next to the declared one.
type Warmup struct {
	DeclaredMs  float64 `json:"declared_ms"`
	SuggestedMs Number  `json:"suggested_ms"` // null where no steady state was seen, or the stage is too short to look for one
	Steady      bool    `json:"steady"`
}

// Drift is the trend of the backlog: of what fell due and has not ended, or, in a closed loop, of what is in flight.
type Drift struct {
	Growth Number `json:"growth"`    // over the window, in requests
	Error  Number `json:"error"`     // its standard error
	Mean   Number `json:"in_flight"` // mean number in flight in the window
}

// Little holds the time in flight by the sender's gauge against that of the records.
type Little struct {
	Gauge Number `json:"gauge"` // mean number in flight
	Stays Number `json:"records"`
	Gap   Number `json:"gap"` // share of the former
}

const seriesBins = 500 // of the series that trends and intervals are taken from

// steadiness looks at a stage that lasted so long, after a warm-up of the same load, if there was one. A steady one is to have one rate.
func (a *account) steadiness(lasted time.Duration, open, steady bool, waiting [][]float64, warm *account, warmed time.Duration) Steadiness {
	s := Steadiness{
		Completed: rateInterval(whole(a.course.completions, lasted)), Tokens: rateInterval(whole(a.course.tokens, lasted)),
		Warmup: Warmup{DeclaredMs: float64(warmed) / 1e6},
	}
	series := func(of *account) []float64 {
		if a.outputKnown {
			return of.course.tokens
		}
		return of.course.completions
	}
	bins := whole(series(a), lasted)
	if warm != nil {
		bins = append(whole(series(warm), warmed), bins...)
	}
	joined, width := coarse(bins, seriesBins)
	if from, steady := stats.SteadyFrom(joined, 0); steady {
		s.Warmup.SuggestedMs, s.Warmup.Steady = Some(float64(time.Duration(from)*width)/1e6), true
	}
	c := a.courseOf(lasted, open)
	c.Waiting = waiting
	stability, ok := stats.Assess(&c)
	s.Drift = a.drift(&c, lasted)
	if ok && open && steady {
		s.Stability = newStability(stability)
	}
	return s
}

func rateInterval(bins []float64) RateInterval {
	joined, width := coarse(bins, seriesBins)
	b, ok := stats.BatchMeans(joined)
	if !ok {
		return RateInterval{}
	}
	per := width.Seconds()
	return RateInterval{Mean: Some(b.Mean / per), Low: Some(b.Low / per), High: Some(b.High / per), Independent: b.Independent()}
}

// courseOf puts the series of a stage into no more bins than trends are taken from. What comes is what falls due, and in a closed loop
// what is written.
func (a *account) courseOf(lasted time.Duration, open bool) (c stats.Course) {
	come := a.course.writes
	if open {
		come = a.course.due
	}
	series := func(bins []float64) []float64 {
		joined, width := coarse(whole(bins, lasted), seriesBins)
		c.Width = width.Seconds()
		return joined
	}
	c.Due, c.Ended, c.Planned, c.Failed = series(come), series(a.course.ends), a.attempted, a.failed
	waits, waited := series(a.course.waits), series(a.course.waited)
	for i := range waits {
		if waited[i] > 0 {
			c.Waits = append(c.Waits, stats.Wait{Bin: float64(i), Seconds: waits[i] / waited[i]})
		}
	}
	return c
}

func (a *account) drift(c *stats.Course, lasted time.Duration) (d Drift) {
	if g, ok := c.Growth(); ok {
		d.Growth, d.Error = Some(g.Total), Some(g.Error)
	}
	if lasted > 0 {
		d.Mean = Some(float64(a.inFlight) / float64(lasted))
	}
	return d
}

// balance compares the gauge of the senders with the records; it knows nothing when the run's end was not written.
func (a *account) balance(gauge int64, known bool) (l Little) {
	if !known || gauge <= 0 {
		return Little{}
	}
	a.little.To = max(a.lastEnd, a.little.From+1)
	a.little.Held(gauge)
	if b, ok := a.little.Balance(); ok {
		l = Little{Gauge: Some(b.Gauge), Stays: Some(b.Stays), Gap: Some(b.Gap)}
	}
	return l
}
