package judge

import (
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// account gathers the figures of one stage, or of several merged.
type account struct {
	outcomes Outcomes
	sent     int64
	missing  int64
	causes   causes
	failures messages
	resent   Resent
	goods    goods
	delays   Delays
	events   Events
	tallies  []measure.Tally // one for each row of the table

	// counted by the clock, whichever stage the request belongs to
	writes      int64 // first writes in the window
	completions int64
	outTokens   int64
	inTokens    int64

	bundled     bundled
	uncounted   int64                                  // completed replies whose output tokens the server did not count
	arrivals    struct{ planned, sent stats.Arrivals } // since the start of the window
	converses   bool                                   // sessions have turns, and these are the starts of sessions
	starts      []start
	course      course
	little      stats.Little
	lastEnd     int64         // of the stage's requests, since the start of the run
	inFlight    time.Duration // request-time in the window
	inputKnown  bool
	outputKnown bool

	slip                   stats.Distribution // slip the client answers for, ns
	due, inWindow, capped  int64
	notSent, notSentCapped int64
	notSentFiles           int64 // of notSent, those that waited for a connection the open-file limit did not allow
	beyond                 int64 // unsent requests that fall due after the window: the run was stopped before
	attempted, failed      int64
	lengths, otherLengths  int64 // completed replies of a known and planned length; those of another
}

// bundled counts what came in completed replies of which the tokens are known and those of each event are not.
type bundled struct{ tokens, events int64 }

// begins is the start of the stage's window.
func (a *account) begins() time.Duration { return time.Duration(a.little.From) }

func newAccount(metrics int) *account {
	return &account{causes: causes{}, failures: messages{}, tallies: make([]measure.Tally, metrics)}
}

// add takes a request that belongs to the stage.
func (a *account) add(r *measure.Reply, table []measure.Metric, w window) {
	*a.outcomes.Of(r.Outcome)++
	a.causes.add(r.Exchange)
	a.failures.add(r.Exchange)
	a.resent.add(r.Exchange)
	a.measure(r, table)
	switch {
	case !a.converses:
		a.arrivals.planned.Add(r.Index, r.Due-w.start)
		if r.WasSent {
			a.arrivals.sent.Add(r.Index, r.Sent-w.start)
		}
	case r.Turn == 0: // later turns follow replies
		a.starts = append(a.starts, start{r.Index, r.Due - w.start, r.Sent - w.start, r.WasSent})
	}
	if r.WasSent {
		a.sent++
		a.addDelay(r)
		a.events.add(r)
	}
	if r.Outcome == record.Completed {
		a.addCounts(r)
	}
	a.addEvidence(r, w)
}

func (a *account) addCounts(r *measure.Reply) {
	if r.Usage.Known && r.PlannedOut > 0 {
		a.lengths++
		if r.Usage.Output != r.PlannedOut {
			a.otherLengths++
		}
	}
	switch {
	case !r.OutputKnown:
		a.uncounted++
	case !r.PerEvent && len(r.Tokens) > 0:
		a.bundled.tokens += r.Output
		a.bundled.events += int64(len(r.Tokens))
	}
}

func (a *account) measure(r *measure.Reply, table []measure.Metric) {
	for i := range table {
		m := &table[i]
		if m.Over.Holds(r) && !m.Of(r, &a.tallies[i]) {
			a.tallies[i].Undefined++
		}
	}
}

func (a *account) addDelay(r *measure.Reply) {
	if d := a.delays.Of(r.Delay); d != nil {
		d.Requests++
		d.Longest = larger(d.Longest, Some(float64(r.Sent-r.Due)/1e6))
	}
}

func larger(a, b Number) Number {
	if !a.defined || b.defined && b.value > a.value {
		return b
	}
	return a
}

func (e *Events) add(r *measure.Reply) {
	e.All += int64(len(r.Events))
	e.Token += int64(len(r.Tokens))
	e.Stamped += r.Stamped
	e.Merged += r.Merged
	e.MergedReads += r.MergedReads
	e.Reads += int64(r.Reads)
}

// addEvidence keeps what the gates need. A request held back by the declared in-flight limit is late by the user's choice,
// and one that waited for a connection to be dialled by the network's and the server's doing: neither may accuse the client.
// A connection that the client's own limits did not allow may, whether it was waited for or given up.
func (a *account) addEvidence(r *measure.Reply, w window) {
	held := r.Delay == record.DelayInFlightCap
	if held {
		a.capped++
	}
	if r.Outcome == record.NotSent && r.Due >= w.end {
		a.beyond++
	}
	switch {
	case r.Outcome == record.NotSent && held:
		a.notSentCapped++
	case r.Outcome == record.NotSent || r.Outcome == record.ConnectFailed && r.Delay == record.DelayFileLimit:
		a.notSent++
		if r.Delay == record.DelayFileLimit {
			a.notSentFiles++
		}
	default:
		a.attempted++
		if r.Outcome != record.Completed {
			a.failed++
		}
		if r.WasSent && !held {
			wait, _ := measure.ConnectWait(r)
			a.slip.Add(int64(r.Sent - wait - r.Due))
			a.due++
			if w.holds(r.Sent - wait) {
				a.inWindow++
			}
		}
	}
}

func (a *account) merge(b *account) {
	for _, o := range record.Outcomes {
		*a.outcomes.Of(o) += *b.outcomes.Of(o)
	}
	a.sent += b.sent
	a.missing += b.missing
	a.causes.merge(b.causes)
	a.failures.merge(b.failures)
	a.resent.merge(b.resent)
	a.goods.merge(&b.goods)
	a.delays.merge(&b.delays)
	a.events.merge(&b.events)
	for i := range a.tallies {
		a.tallies[i].Merge(&b.tallies[i])
	}
	a.writes += b.writes
	a.completions += b.completions
	a.outTokens += b.outTokens
	a.inTokens += b.inTokens
	a.bundled.tokens += b.bundled.tokens
	a.bundled.events += b.bundled.events
	a.uncounted += b.uncounted
	a.inputKnown = a.inputKnown || b.inputKnown
	a.outputKnown = a.outputKnown || b.outputKnown
}

func (d *Delays) merge(other *Delays) {
	for cause := record.DelayNone; d.Of(cause) != nil; cause++ {
		to, from := d.Of(cause), other.Of(cause)
		to.Requests += from.Requests
		to.Longest = larger(to.Longest, from.Longest)
	}
}

func (e *Events) merge(other *Events) {
	e.All += other.All
	e.Token += other.Token
	e.Stamped += other.Stamped
	e.Merged += other.Merged
	e.MergedReads += other.MergedReads
	e.Reads += other.Reads
}

// evidence hands over what the gates look at. Cancelled requests count as failed ones, except where the run was ended on
// purpose. In a stage with an in-flight limit, what was not sent is taken to have been held by it: requests that were never
// taken up carry no cause of their own.
func (a *account) evidence(s record.Stage, interrupted bool, index map[string]int) verdict.Stage {
	values := func(name string) *stats.Distribution { return a.tallies[index[name]].Values() }
	failed, attempted := a.failed, a.attempted
	if interrupted {
		failed -= a.outcomes.Cancelled
		attempted -= a.outcomes.Cancelled
	}
	notSent, notSentCapped := a.notSent, a.notSentCapped
	if s.MaxInFlight > 0 {
		notSent, notSentCapped = a.notSentFiles, notSent-a.notSentFiles+notSentCapped
	}
	return verdict.Stage{
		Name: s.Name, Open: s.Kind == "open", Ramp: s.RateToPerS != 0 && s.RateToPerS != s.RatePerS, Slip: &a.slip,
		TTFT: values(measure.TTFT), E2E: values(measure.E2E), ICL: values(measure.ICL), Lag: values(measure.ReceiveLag),
		Due: a.due + notSent, InWindow: a.inWindow, Capped: a.capped, Barred: a.delays.FileLimit.Requests + a.notSentFiles,
		NotSent: notSent, NotSentCapped: notSentCapped,
		Attempted: attempted, Failed: failed, Lengths: a.lengths, OtherLengths: a.otherLengths,
	}
}

// window is the span in which a stage's requests fall due, [start, end) since the start of the run.
type window struct{ start, end time.Duration }

func (w window) holds(at time.Duration) bool { return w.start <= at && at < w.end }

func (w window) length() time.Duration { return max(w.end-w.start, 0) }

// spans are the lengths of a part's window.
type spans struct {
	asked  time.Duration // in which due requests fall due
	due    int64
	lasted time.Duration // to the end of the window, or to where the records of a killed run end
}

// figures turns an account into the part of a Summary. A closed loop has no planned rate.
func (a *account) figures(table []measure.Metric, kind string, planned int64, w spans) Part {
	p := Part{
		Kind: kind, WindowMs: float64(w.lasted) / 1e6,
		Planned: planned, Sent: a.sent, Missing: a.missing, Outcomes: a.outcomes,
		Causes: a.causes.list(), Resent: a.resent, Failures: a.failures.most(), Delays: a.delays, Events: a.events, Metrics: Metrics{},
		AchievedRate:  perSecond(a.writes, w.lasted),
		CompletedRate: perSecond(a.completions, w.lasted),
	}
	if kind == "open" {
		p.PlannedRate = perSecond(w.due, w.asked)
	}
	if a.inputKnown {
		p.InputRate = perSecond(a.inTokens, w.lasted)
	}
	if a.outputKnown {
		p.OutputRate = perSecond(a.outTokens, w.lasted)
	}
	a.seat()
	p.Arrivals.Sent = arrivals(&a.arrivals.sent, w.lasted)
	if kind == "open" {
		p.Arrivals.Planned = arrivals(&a.arrivals.planned, w.asked)
	}
	for i, m := range table {
		p.Metrics[m.Name] = figures(m.Unit, &a.tallies[i])
	}
	p.Correction = correction(p.Metrics)
	return p
}

// arrivals says how requests came in a stage that lasted so long.
func arrivals(a *stats.Arrivals, window time.Duration) Flow {
	return Flow{
		Variation: numberOf(a.Variation()), Second: numberOf(a.Dispersion(time.Second, window)),
		TenSeconds: numberOf(a.Dispersion(10*time.Second, window)), Minute: numberOf(a.Dispersion(time.Minute, window)),
	}
}

// numberOf is v, undefined unless ok.
func numberOf(v float64, ok bool) Number {
	if !ok {
		return Number{}
	}
	return Some(v)
}

func perSecond(n int64, span time.Duration) Number { return perSecondOf(float64(n), span) }

func perSecondOf(n float64, span time.Duration) Number {
	if span <= 0 {
		return Number{}
	}
	return Some(n / span.Seconds())
}

func figures(unit measure.Unit, t *measure.Tally) Figures {
	d := t.Values()
	at := func(ppm int64) Number { return scaled(unit)(d.Quantile(ppm)) }
	f := Figures{
		N: d.N(), Undefined: t.Undefined,
		Mean: scaled(unit)(d.Mean()), Min: at(0),
		P1: at(stats.P1), P5: at(stats.P5), P10: at(stats.P10), P25: at(stats.P25), P50: at(stats.P50), P75: at(stats.P75),
		P90: at(stats.P90), P95: at(stats.P95), P99: at(stats.P99), P999: at(stats.P999), Max: at(1_000_000),
		RatioOfMeans: scaled(unit)(t.RatioOfMeans()),
	}
	if t.Bounded > 0 {
		f.Bounds = Bounds{Bounded: t.Bounded, Low: ends(unit, t.Lows()), High: ends(unit, t.Highs())}
	}
	return f
}

func ends(unit measure.Unit, d *stats.Distribution) Range {
	at := func(ppm int64) Number { return scaled(unit)(d.Quantile(ppm)) }
	return Range{Mean: scaled(unit)(d.Mean()), P50: at(stats.P50), P90: at(stats.P90), P99: at(stats.P99), Max: at(1_000_000)}
}

// scaled makes Numbers in the reported unit of values in the base unit.
func scaled(unit measure.Unit) func(v float64, ok bool) Number {
	return func(v float64, ok bool) Number {
		if !ok {
			return Number{}
		}
		return Some(v / unit.Scale())
	}
}
