package judge

import (
	"cmp"
	"slices"

	"tare/internal/record"
)

// Cause is one class of ends that were no completion, and how many requests had it.
type Cause struct {
	Outcome    string `json:"outcome"`
	Cause      string `json:"cause"` // docs/outcomes.md; empty in records older than causes
	Status     int    `json:"status,omitempty"`
	Requests   int64  `json:"requests"`
	RetryAfter Number `json:"retry_after_max_ms"` // longest wait that these refusals asked for
	Example    string `json:"example"`            // the first evidence on record
}

// Resent counts what was sent again.
type Resent struct {
	Requests  int64 `json:"requests"`  // tried more than once
	Attempts  int64 `json:"attempts"`  // after the first ones
	Completed int64 `json:"completed"` // of the requests
}

func (r *Resent) add(x *record.Exchange) {
	if x.Attempts <= 1 {
		return
	}
	r.Requests++
	r.Attempts += int64(x.Attempts - 1)
	if x.Outcome == record.Completed {
		r.Completed++
	}
}

func (r *Resent) merge(other Resent) {
	r.Requests += other.Requests
	r.Attempts += other.Attempts
	r.Completed += other.Completed
}

// causes counts the ends that were no completion.
type causes map[causeKey]*Cause

type causeKey struct {
	outcome record.Outcome
	cause   record.Cause
	status  int
}

func (c causes) add(x *record.Exchange) {
	if x.Outcome == record.Completed {
		return
	}
	one := Cause{Outcome: x.Outcome.String(), Cause: x.Cause.String(), Status: x.Status, Requests: 1, Example: clip(x.Error)}
	if x.Cause == record.CauseRateLimited && x.RetryAfter > 0 {
		one.RetryAfter = Some(float64(x.RetryAfter) / 1e6)
	}
	c.count(causeKey{x.Outcome, x.Cause, x.Status}, one)
}

func (c causes) count(key causeKey, one Cause) {
	known, ok := c[key]
	if !ok {
		c[key] = &one
		return
	}
	known.Requests += one.Requests
	known.RetryAfter = larger(known.RetryAfter, one.RetryAfter)
	known.Example = cmp.Or(known.Example, one.Example)
}

func (c causes) merge(other causes) {
	for key, one := range other {
		c.count(key, *one)
	}
}

// list gives the causes in the order of outcomes, the most frequent of each first.
func (c causes) list() []Cause {
	keys := make([]causeKey, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b causeKey) int {
		return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(c[b].Requests, c[a].Requests), cmp.Compare(a.cause, b.cause), cmp.Compare(a.status, b.status))
	})
	all := make([]Cause, 0, len(keys))
	for _, key := range keys {
		all = append(all, *c[key])
	}
	return all
}
