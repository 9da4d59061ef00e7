// Package measure defines every metric once, as one row of a table: docs/metrics.md in code.
//
// All moments are offsets from the start of the run on its monotonic clock. Arrivals are the kernel's receive stamps where
// the platform gives them.
package measure

import (
	"time"

	"tare/internal/record"
)

// Metric is one row of the table.
type Metric struct {
	Name   string
	Unit   Unit
	Better Better
	Over   Population

	// Of puts the reply's values into t and reports whether the metric is defined for the reply.
	Of func(r *Reply, t *Tally) bool

	// One is the value of a metric of which a reply has one, whatever became of the reply; nil for the others.
	One func(r *Reply) (Value, bool)
}

// Value is one value of a metric in its base unit. In truth it lies within [Low, High].
type Value struct{ At, Low, High int64 }

// Unit is what a metric is reported in.
type Unit uint8

const (
	Milliseconds Unit = iota // kept in nanoseconds
	Tokens
)

// Scale returns how many of the base unit, in which values are kept, make one of the reported unit.
func (u Unit) Scale() float64 {
	if u == Milliseconds {
		return 1e6
	}
	return 1
}

// Better says which direction is an improvement.
type Better uint8

const (
	Neither Better = iota
	Lower
	Higher
)

// Population says which requests a metric is taken over. Those of them it is not defined for are counted.
type Population uint8

const (
	OverCompleted Population = iota // outcome Completed
	OverSent                        // first byte written, whatever the outcome
)

// Holds reports whether r is one of p.
func (p Population) Holds(r *Reply) bool {
	return r.WasSent && (p == OverSent || r.Outcome == record.Completed)
}

// Names of metrics, as in summary.json.
const (
	Slip         = "slip_ms"
	Connect      = "connect_ms"
	ReceiveLag   = "receive_lag_ms"
	FirstEvent   = "first_event_ms"
	TTFT         = "ttft_ms"
	TTFTFromDue  = "ttft_from_due_ms"
	FirstAnswer  = "first_answer_ms"
	ICL          = "icl_ms"
	ITL          = "itl_ms"
	Stall        = "stall_ms"
	TPOT         = "tpot_ms"
	NTPOT        = "ntpot_ms"
	E2E          = "e2e_ms"
	E2EFromDue   = "e2e_from_due_ms"
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
	CachedTokens = "cached_tokens"
	TokenEvents  = "token_events"
)

// Table lists every metric in the order of reporting. Adding a metric is adding a row.
func Table() []Metric {
	return []Metric{
		{Name: Slip, Better: Lower, Over: OverSent, Of: slip},
		{Name: Connect, Better: Lower, Over: OverSent, Of: connect},
		{Name: ReceiveLag, Better: Lower, Over: OverSent, Of: receiveLag},
		latency(FirstEvent, func(r *Reply) (Value, bool) { return since(r.Sent, r.FirstEvent) }),
		latency(TTFT, func(r *Reply) (Value, bool) { return since(r.Sent, r.FirstToken) }),
		latency(TTFTFromDue, func(r *Reply) (Value, bool) { return since(r.Due, r.FirstToken) }),
		latency(FirstAnswer, func(r *Reply) (Value, bool) { return since(r.Sent, r.FirstAnswer) }),
		{Name: ICL, Better: Lower, Of: icl},
		{Name: ITL, Better: Lower, Of: itl},
		{Name: Stall, Better: Lower, Of: stall, One: longestGap},
		timePerToken(TPOT, tpot),
		timePerToken(NTPOT, ntpot),
		latency(E2E, func(r *Reply) (Value, bool) { return exactly(r.Finish - r.Sent), r.Ended }),
		latency(E2EFromDue, func(r *Reply) (Value, bool) { return exactly(r.Finish - r.Due), r.Ended }),
		{Name: InputTokens, Unit: Tokens, Of: inputTokens},
		{Name: OutputTokens, Unit: Tokens, Of: outputTokens},
		{Name: CachedTokens, Unit: Tokens, Of: cachedTokens},
		{Name: TokenEvents, Unit: Tokens, Of: tokenEvents},
	}
}

// latency is the row of a time of which each completed reply has one at most.
func latency(name string, one func(*Reply) (Value, bool)) Metric {
	of := func(r *Reply, t *Tally) bool {
		v, ok := one(r)
		if ok {
			t.keep(v.At, span{v.Low, v.High})
		}
		return ok
	}
	return Metric{Name: name, Better: Lower, Of: of, One: one}
}

// timePerToken is the row of a time over a number of tokens.
func timePerToken(name string, parts func(*Reply) (quotient, bool)) Metric {
	of := func(r *Reply, t *Tally) bool {
		q, ok := parts(r)
		if ok {
			t.ratio(q)
		}
		return ok
	}
	one := func(r *Reply) (Value, bool) {
		q, ok := parts(r)
		if !ok {
			return Value{}, false
		}
		return q.value(), true
	}
	return Metric{Name: name, Better: Lower, Of: of, One: one}
}

func exactly(d time.Duration) Value { return Value{int64(d), int64(d), int64(d)} }

func slip(r *Reply, t *Tally) bool {
	t.Add(int64(r.Sent - r.Due))
	return true
}

// connect is defined for requests that found no idle connection.
func connect(r *Reply, t *Tally) bool {
	wait, ok := ConnectWait(r)
	if ok {
		t.Add(int64(wait))
	}
	return ok
}

// ConnectWait returns how long r, once it was taken up, waited for a connection to be dialled, when that made it late; else
// ok is false and the wait 0.
func ConnectWait(r *Reply) (wait time.Duration, ok bool) {
	issued, taken := r.Issued.Get()
	ready, known := r.ConnReady.Get()
	if !taken || !known || r.Delay != record.DelayNoConnection {
		return 0, false
	}
	return ready - issued, true
}

func receiveLag(r *Reply, t *Tally) bool {
	for i := range r.Events {
		if e := &r.Events[i]; e.Flags&record.FlagStamped != 0 {
			t.Add(int64(e.UserAt - e.KernelAt))
		}
	}
	return r.Stamped > 0
}

func since(from time.Duration, a Arrival) (Value, bool) {
	return Value{At: int64(a.At - from), Low: int64(a.Low - from), High: int64(a.At - from)}, a.Known
}

// icl takes the gaps whose two ends are exact. The others are bounded and kept out of the figures: the zero between two
// events of one read, and the long gap before it, are nobody's gaps.
func icl(r *Reply, t *Tally) bool {
	for i := 1; i < len(r.Tokens); i++ {
		gap := between(r.Tokens[i-1].Arrival, r.Tokens[i].Arrival)
		if gap.low == gap.high {
			t.Add(gap.low)
		} else {
			t.bound(gap, 1)
		}
	}
	return len(r.Tokens) > 1
}

// itl shares each gap between the tokens of the event that ends it. An event without a new token leaves its gap to the next.
func itl(r *Reply, t *Tally) bool {
	if !r.PerEvent {
		return false
	}
	from, defined := 0, false
	for i := 1; i < len(r.Tokens); i++ {
		n := r.Tokens[i].Count
		if n == 0 {
			continue
		}
		gap := between(r.Tokens[from].Arrival, r.Tokens[i].Arrival)
		from, defined = i, true
		switch {
		case gap.low != gap.high:
			t.bound(span{gap.low / n, gap.high / n}, n)
		case n == 1:
			t.Add(gap.low)
		default:
			whole, rest := gap.low/n, gap.low%n
			t.exact.AddN(whole, n-rest) // the nanoseconds that do not divide go to rest of them, so that the sum stays exact
			t.exact.AddN(whole+1, rest)
		}
	}
	return defined
}

func stall(r *Reply, t *Tally) bool {
	v, ok := longestGap(r)
	switch {
	case ok && v.Low == v.High:
		t.Add(v.Low)
	case ok:
		t.bound(span{v.Low, v.High}, 1)
	}
	return ok
}

// longestGap is that between token events. It is exact when no bounded gap can be longer than the longest exact one, and else At is the
// most that it can be.
func longestGap(r *Reply) (Value, bool) {
	if len(r.Tokens) < 2 {
		return Value{}, false
	}
	longest := between(r.Tokens[0].Arrival, r.Tokens[1].Arrival)
	for i := 2; i < len(r.Tokens); i++ {
		gap := between(r.Tokens[i-1].Arrival, r.Tokens[i].Arrival)
		longest = span{max(longest.low, gap.low), max(longest.high, gap.high)}
	}
	return Value{At: longest.high, Low: longest.low, High: longest.high}, true
}

// tpot needs two token events: the tokens of a single one came at once, and say nothing of the time between tokens.
func tpot(r *Reply) (quotient, bool) {
	if len(r.Tokens) < 2 || !r.OutputKnown {
		return quotient{}, false
	}
	tokens := r.Output - r.firstTokens()
	return quotient{int64(r.LastToken.At - r.FirstToken.At), tokens, between(r.FirstToken, r.LastToken)}, tokens > 0
}

// TPOT is one reply's value of the metric of that name; ok is false where that is not defined.
func (r *Reply) TPOT() (value time.Duration, ok bool) {
	q, ok := tpot(r)
	if !ok {
		return 0, false
	}
	return time.Duration(q.value().At), true
}

func ntpot(r *Reply) (quotient, bool) {
	e2e := int64(r.Finish - r.Sent)
	return quotient{e2e, r.Output, span{e2e, e2e}}, r.Ended && r.OutputKnown && r.Output > 0
}

func inputTokens(r *Reply, t *Tally) bool {
	if r.Usage.Known {
		t.Add(int64(r.Usage.Input))
	}
	return r.Usage.Known
}

func outputTokens(r *Reply, t *Tally) bool {
	if r.OutputKnown {
		t.Add(r.Output)
	}
	return r.OutputKnown
}

func cachedTokens(r *Reply, t *Tally) bool {
	if r.Usage.CachedKnown {
		t.Add(int64(r.Usage.Cached))
	}
	return r.Usage.CachedKnown
}

func tokenEvents(r *Reply, t *Tally) bool {
	if len(r.Tokens) > 0 {
		t.Add(int64(len(r.Tokens)))
	}
	return len(r.Tokens) > 0
}
