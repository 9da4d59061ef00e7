package judge

import (
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
)

// Planned are the quantiles of a latency over all planned requests of a stage: those that failed never reach a value, those that
// were given up had not reached one by then.
type Planned struct {
	N        int64    `json:"n"`
	Failed   int64    `json:"failed"`
	Censored int64    `json:"censored"`
	P50      Estimate `json:"p50"`
	P90      Estimate `json:"p90"`
	P95      Estimate `json:"p95"`
	P99      Estimate `json:"p99"`
	P999     Estimate `json:"p99_9"`
}

// Estimate is a quantile with its 95 % interval, or why that must not be shown.
type Estimate struct {
	Bound
	Low       Bound  `json:"low"`
	High      Bound  `json:"high"`
	Upper     Bound  `json:"upper_99"` // the quantile is below with 99 % confidence, by MLPerf's early stopping; of enough requests
	Effective Number `json:"n_eff"`    // what the requests are worth as independent ones
	Withheld  string `json:"withheld,omitempty"`
	Needed    int64  `json:"needed,omitempty"` // requests, at this dependence
}

// Bound is where a share of the requests had completed, as far as that is known.
type Bound struct {
	Value Number `json:"value"`           // with reach "above" it is greater than this
	Reach string `json:"reach,omitempty"` // reached, above, unattainable; left out when undefined
}

// HalfWidth is half the length of the interval over the quantile; ok is false without an interval.
func (e *Estimate) HalfWidth() (share float64, ok bool) {
	low, okLow := e.Low.Value.Get()
	high, okHigh := e.High.Value.Get()
	at, okAt := e.Value.Get()
	if !okLow || !okHigh || !okAt || at <= 0 || e.Withheld != "" || e.High.Reach != string(stats.Reached) {
		return 0, false
	}
	return (high - low) / 2 / at, true
}

// estimates estimates each latency of a stage.
func (l *Ledger) estimates(stage int) map[string]Planned {
	all := map[string]Planned{}
	for _, m := range latencies() {
		if c, ok := l.rows.cohort(ofStage(stage), m); ok {
			all[m.name] = plannedOf(c)
		}
	}
	return all
}

func plannedOf(c *stats.Cohort) Planned {
	in := c.Incidence()
	p := Planned{N: in.N(), Failed: in.Failed.N(), Censored: in.Censored.N()}
	levels := []*Estimate{&p.P50, &p.P90, &p.P95, &p.P99, &p.P999}
	for i, e := range c.Estimates(stats.P50, stats.P90, stats.P95, stats.P99, stats.P999) {
		*levels[i] = estimate(in, e)
	}
	return p
}

func estimate(in *stats.Incidence, e stats.Estimate) Estimate {
	out := Estimate{Bound: bound(e.Point), Effective: Some(e.Effective), Withheld: string(e.Withheld), Needed: e.Needed}
	if e.Withheld != stats.Shown {
		return out
	}
	out.Low, out.High = bound(e.Low), bound(e.High)
	d := stats.Dependence{N: e.N, Time: float64(e.N) / max(e.Effective, 1)}
	if rank, ok := stats.UpperBound(d, e.PPM); ok {
		out.Upper = bound(in.At(rank))
	}
	return out
}

func bound(c stats.Crossing) Bound {
	b := Bound{Reach: string(c.Reach)}
	if c.Reach == stats.Reached || c.Reach == stats.Above {
		b.Value = scaled(measure.Milliseconds)(c.Value, true)
	}
	return b
}

// Correction says by how much more a latency is that counts from the due time, as a share of the one that counts from the
// send: 0 for a client that was never late.
type Correction struct {
	TTFTP50 Number `json:"ttft_p50"`
	TTFTP99 Number `json:"ttft_p99"`
	E2EP50  Number `json:"e2e_p50"`
	E2EP99  Number `json:"e2e_p99"`
}

func correction(m Metrics) Correction {
	ratio := func(due, sent Number) Number {
		a, okA := due.Get()
		b, okB := sent.Get()
		if !okA || !okB || b <= 0 {
			return Number{}
		}
		return Some((a - b) / b)
	}
	return Correction{
		TTFTP50: ratio(m[measure.TTFTFromDue].P50, m[measure.TTFT].P50), TTFTP99: ratio(m[measure.TTFTFromDue].P99, m[measure.TTFT].P99),
		E2EP50: ratio(m[measure.E2EFromDue].P50, m[measure.E2E].P50), E2EP99: ratio(m[measure.E2EFromDue].P99, m[measure.E2E].P99),
	}
}
