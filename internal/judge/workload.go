package judge

import (
	"maps"
	"slices"

	"tare/internal/judge/measure"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// lengths adds up asked and counted tokens.
type lengths struct {
	requests, input, output int64 // planned
	counted, prompt         int64 // replies with usage, and their prompt tokens
	told, cached            int64 // prompt tokens of replies that say how many came from a cache, and these
	whole                   int64 // of the told, those in whole blocks before the last token, which is never taken from a cache
}

// add takes a request to a server whose cache has blocks of so many tokens.
func (l *lengths) add(x *record.Exchange, block int) {
	l.requests++
	l.input += int64(x.PlannedIn)
	l.output += int64(x.PlannedOut)
	if x.Usage.Known {
		l.counted++
		l.prompt += int64(x.Usage.Input)
		if x.Usage.CachedKnown {
			l.told += int64(x.Usage.Input)
			l.cached += int64(x.Usage.Cached)
			l.whole += int64(max(x.Usage.Input-1, 0) / block * block)
		}
	}
}

// prompts is what the server said of the lengths of prompts, warm-up included.
type prompts struct {
	counted int64           // replies to first turns of a planned length
	differ  map[int64]int64 // replies by tokens counted less tokens planned
}

// mostDiffer bounds the memory that the differences take; others are counted, not told apart.
const mostDiffer = 1024

func (p *prompts) add(x *record.Exchange) {
	if !x.Usage.Known {
		return
	}
	if x.Turn > 0 || x.PlannedIn == 0 {
		return
	}
	p.counted++
	by := int64(x.Usage.Input) - int64(x.PlannedIn)
	if _, known := p.differ[by]; known || len(p.differ) < mostDiffer {
		p.differ[by]++
	}
}

// common is the most frequent difference, the least of several, and how many replies have it.
func (p *prompts) common() (by, replies int64) {
	for d, n := range p.differ {
		if n > replies || n == replies && d < by {
			by, replies = d, n
		}
	}
	return by, replies
}

// workloadEvidence is what the gates on the workload look at.
func (l *Ledger) workloadEvidence() verdict.Workload {
	a, p := &l.spec, &l.prompts
	w := verdict.Workload{Files: a.files(), Rows: a.rows(), Rerun: a.Workload.Dataset.File != "" || a.Workload.Trace.File != ""}
	by, replies := p.common()
	w.Prompts = verdict.Prompts{Counted: p.counted, Common: by, Others: p.counted - replies, Unsure: a.unsure(), Whole: a.whole()}
	if found, ok := ratio(l.lengths.cached, l.lengths.told).Get(); ok {
		w.Cache = verdict.Cache{Found: found, Told: true}
	}
	m := l.manifest.Workload
	if m == nil {
		return w
	}
	w.Bodies, w.Silent, w.Compared, w.Repeated = m.Bodies, m.Silent, m.Compared, m.Repeated
	w.Cache.Policy = m.Cache
	w.Cache.Expected, w.Cache.Known = l.expectedShare(m)
	return w
}

// expectedShare is the share of prompt tokens that a cache that forgets nothing finds, as the declared policy has it.
func (l *Ledger) expectedShare(m *record.Workload) (share float64, ok bool) {
	switch {
	case m.Cache == "cold" || m.Cache == "salted":
		return 0, true
	case m.Cache == "warm":
		return ratio(l.lengths.whole, l.lengths.told).Get()
	case m.PromptTokens > 0 && l.spec.Workload.Dataset.File == "":
		return ratio(m.SharedTokens, m.PromptTokens).Get()
	}
	return 0, m.PromptTokens == 0 && m.MeanInput > 0 // plain prompts, which begin with words of their own
}

// block is that of the server's cache, tokens.
func (l *Ledger) block() int { return int(max(l.spec.Workload.Prefix.Block, 1)) }

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
	if n.told > 0 {
		w.CachedTokens = Some(float64(n.cached))
	}
	if m := l.manifest.Workload; m != nil {
		w.Cache, w.Expected = m.Cache, ratio(m.SharedTokens, m.PromptTokens)
		if m.PromptTokens > 0 {
			w.ExpectedTokens = Some(float64(m.SharedTokens))
		}
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
	a := l.class(r.Class)
	*a.outcomes.Of(r.Outcome)++
	a.measure(r, l.table)
	if l.promises != nil && l.standing.counts {
		a.goods.add(&l.standing)
	}
}

// class is the account of a class.
func (l *Ledger) class(name string) *account {
	a := l.classes[name]
	if a == nil {
		a = newAccount(len(l.table))
		l.classes[name] = a
	}
	return a
}

// classMetrics are the metrics of a part of the requests.
func classMetrics() []string {
	return []string{measure.TTFT, measure.TPOT, measure.E2E, measure.E2EFromDue, measure.InputTokens, measure.OutputTokens}
}

// classed are the classes by name.
func (l *Ledger) classed(window spans) (classes []Class) {
	for _, name := range slices.Sorted(maps.Keys(l.classes)) {
		a := l.classes[name]
		p := a.figures(l.table, "", a.outcomes.Sum(), spans{})
		c := Class{Name: name, Outcomes: a.outcomes, Metrics: Metrics{}}
		for _, metric := range classMetrics() {
			c.Metrics[metric] = p.Metrics[metric]
		}
		if l.promises != nil {
			c.Objectives = l.objectives(&a.goods, ofClass(l.measured, l.promises.number(name)), name, window)
		}
		classes = append(classes, c)
	}
	return classes
}
