package judge

import (
	"time"

	"tare/internal/judge/stats"
)

// course is what happened in a stage's window, in bins of a tenth of a second.
type course struct{ writes, ends, completions, tokens []float64 }

const (
	binWidth = 100 * time.Millisecond
	mostBins = 1 << 20 // 29 hours; what comes later is in no series
)

func count(bins *[]float64, at time.Duration, n int64) {
	i := int(at / binWidth)
	if at < 0 || i >= mostBins {
		return
	}
	for len(*bins) <= i {
		*bins = append(*bins, 0)
	}
	(*bins)[i] += float64(n)
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

// Drift is the trend of the requests in flight.
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

// steadiness looks at a stage that lasted so long, after a warm-up of the same load, if there was one.
func (a *account) steadiness(lasted time.Duration, warm *account, warmed time.Duration) Steadiness {
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
	s.Drift = a.drift(lasted)
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

// drift fits a line to the number in flight, which is what was written less what ended, from some level that does not matter.
func (a *account) drift(lasted time.Duration) (d Drift) {
	writes, ends := whole(a.course.writes, lasted), whole(a.course.ends, lasted)
	var level float64
	backlog := make([]float64, len(writes))
	for i := range writes {
		level += writes[i] - ends[i]
		backlog[i] = level
	}
	joined, width := coarse(backlog, seriesBins)
	size := float64(width / binWidth)
	x := make([]float64, len(joined))
	for i := range joined {
		x[i], joined[i] = float64(i), joined[i]/size
	}
	const least = 50
	if line, ok := stats.Trend(x, joined, stats.NeweyWestLags(len(x))); ok && len(x) >= least {
		n := float64(len(x))
		d.Growth, d.Error = Some(line.Slope*n), Some(line.Error*n)
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
