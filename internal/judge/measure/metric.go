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
}

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
		{Slip, Milliseconds, Lower, OverSent, slip},
		{Connect, Milliseconds, Lower, OverSent, connect},
		{ReceiveLag, Milliseconds, Lower, OverSent, receiveLag},
		{FirstEvent, Milliseconds, Lower, OverCompleted, sinceSend(func(r *Reply) Arrival { return r.FirstEvent })},
		{TTFT, Milliseconds, Lower, OverCompleted, sinceSend(func(r *Reply) Arrival { return r.FirstToken })},
		{TTFTFromDue, Milliseconds, Lower, OverCompleted, ttftFromDue},
		{FirstAnswer, Milliseconds, Lower, OverCompleted, sinceSend(func(r *Reply) Arrival { return r.FirstAnswer })},
		{ICL, Milliseconds, Lower, OverCompleted, icl},
		{ITL, Milliseconds, Lower, OverCompleted, itl},
		{Stall, Milliseconds, Lower, OverCompleted, stall},
		{TPOT, Milliseconds, Lower, OverCompleted, tpot},
		{NTPOT, Milliseconds, Lower, OverCompleted, ntpot},
		{E2E, Milliseconds, Lower, OverCompleted, e2e},
		{E2EFromDue, Milliseconds, Lower, OverCompleted, e2eFromDue},
		{InputTokens, Tokens, Neither, OverCompleted, inputTokens},
		{OutputTokens, Tokens, Neither, OverCompleted, outputTokens},
		{CachedTokens, Tokens, Neither, OverCompleted, cachedTokens},
		{TokenEvents, Tokens, Neither, OverCompleted, tokenEvents},
	}
}

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

func sinceSend(of func(*Reply) Arrival) func(*Reply, *Tally) bool {
	return func(r *Reply, t *Tally) bool { return since(r.Sent, of(r), t) }
}

func ttftFromDue(r *Reply, t *Tally) bool { return since(r.Due, r.FirstToken, t) }

func since(from time.Duration, a Arrival, t *Tally) bool {
	if a.Known {
		t.keep(int64(a.At-from), span{int64(a.Low - from), int64(a.At - from)})
	}
	return a.Known
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

// stall is the longest gap between token events. It is exact when no bounded gap can be longer than the longest exact one.
func stall(r *Reply, t *Tally) bool {
	if len(r.Tokens) < 2 {
		return false
	}
	longest := between(r.Tokens[0].Arrival, r.Tokens[1].Arrival)
	for i := 2; i < len(r.Tokens); i++ {
		gap := between(r.Tokens[i-1].Arrival, r.Tokens[i].Arrival)
		longest = span{max(longest.low, gap.low), max(longest.high, gap.high)}
	}
	if longest.low == longest.high {
		t.Add(longest.low)
	} else {
		t.bound(longest, 1)
	}
	return true
}

// tpot needs two token events: the tokens of a single one came at once, and say nothing of the time between tokens.
func tpot(r *Reply, t *Tally) bool {
	tokens, ok := r.laterTokens()
	if ok {
		t.ratio(int64(r.LastToken.At-r.FirstToken.At), tokens, between(r.FirstToken, r.LastToken))
	}
	return ok
}

// laterTokens is how many tokens came after those of the first token event.
func (r *Reply) laterTokens() (n int64, ok bool) {
	if len(r.Tokens) < 2 || !r.OutputKnown {
		return 0, false
	}
	n = r.Output - r.firstTokens()
	return n, n > 0
}

// TPOT is one reply's value of the metric of that name; ok is false where that is not defined.
func (r *Reply) TPOT() (value time.Duration, ok bool) {
	n, ok := r.laterTokens()
	if !ok {
		return 0, false
	}
	return time.Duration(perToken(int64(r.LastToken.At-r.FirstToken.At), n)), true
}

func ntpot(r *Reply, t *Tally) bool {
	if !r.Ended || !r.OutputKnown || r.Output <= 0 {
		return false
	}
	e2e := int64(r.Finish - r.Sent)
	t.ratio(e2e, r.Output, span{e2e, e2e})
	return true
}

func e2e(r *Reply, t *Tally) bool {
	if r.Ended {
		t.Add(int64(r.Finish - r.Sent))
	}
	return r.Ended
}

func e2eFromDue(r *Reply, t *Tally) bool {
	if r.Ended {
		t.Add(int64(r.Finish - r.Due))
	}
	return r.Ended
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
