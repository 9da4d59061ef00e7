package judge

import (
	"maps"
	"slices"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// lengths adds up asked and counted tokens.
type lengths struct {
	requests, input, output int64 // planned
	counted, prompt         int64 // replies with usage, and their prompt tokens
	told, cached            int64 // prompt tokens of replies that say how many came from a cache, and these
}

func (l *lengths) add(x *record.Exchange) {
	l.requests++
	l.input += int64(x.PlannedIn)
	l.output += int64(x.PlannedOut)
	if x.Usage.Known {
		l.counted++
		l.prompt += int64(x.Usage.Input)
		if x.Usage.CachedKnown {
			l.told += int64(x.Usage.Input)
			l.cached += int64(x.Usage.Cached)
		}
	}
}

// ratio is a of b; none of nothing.
func ratio(a, b int64) Number {
	if b == 0 {
		return Number{}
	}
	return Some(float64(a) / float64(b))
}

func (l *Ledger) workload() Workload {
	n := &l.lengths
	w := Workload{
		PlannedInput: ratio(n.input, n.requests), PlannedOutput: ratio(n.output, n.requests),
		CountedInput: ratio(n.prompt, n.counted), Cached: ratio(n.cached, n.told),
	}
	if m := l.manifest.Workload; m != nil {
		w.Cache, w.Expected = m.Cache, ratio(m.SharedTokens, m.PromptTokens)
		if m.MeanInput > 0 {
			w.AskedInput = Some(m.MeanInput)
		}
		if m.MeanOutput > 0 {
			w.AskedOutput = Some(m.MeanOutput)
		}
	}
	return w
}

// addClass takes a request of a class. Classes have no window: they count whole stages.
func (l *Ledger) addClass(r *measure.Reply) {
	if r.Class == "" {
		return
	}
	a := l.classes[r.Class]
	if a == nil {
		a = newAccount(len(l.table))
		l.classes[r.Class] = a
	}
	*a.outcomes.Of(r.Outcome)++
	a.measure(r, l.table)
}

// classMetrics are the metrics of a part of the requests.
func classMetrics() []string {
	return []string{measure.TTFT, measure.TPOT, measure.E2E, measure.E2EFromDue, measure.InputTokens, measure.OutputTokens}
}

// classed are the classes by name.
func (l *Ledger) classed() (classes []Class) {
	for _, name := range slices.Sorted(maps.Keys(l.classes)) {
		a := l.classes[name]
		p := a.figures(l.table, "", a.outcomes.Sum(), spans{})
		c := Class{Name: name, Outcomes: a.outcomes, Metrics: Metrics{}}
		for _, metric := range classMetrics() {
			c.Metrics[metric] = p.Metrics[metric]
		}
		classes = append(classes, c)
	}
	return classes
}
