package compare

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
)

// Quantity is a figure of which each run has one.
type Quantity struct {
	Name   string // as written: "ttft_ms.p99", "output_tokens_per_s"
	Better measure.Better
	Needs  int64 // values a run must have for the figure to be backed; 0 for a mean or a rate

	asks  bool // it follows from objectives, which must be the same in every run
	of    func(*judge.Part) judge.Number
	count func(*judge.Part) int64 // values a run has
}

// Headline is what is compared unless something else is asked for: as many as five runs a side can still tell apart.
func Headline() (all []Quantity) {
	for _, name := range []string{"ttft_from_due_ms.p50", "ttft_from_due_ms.p99", "tpot_ms.p50", "e2e_from_due_ms.p99", "output_tokens_per_s", "completed_share"} {
		q, err := ParseQuantity(name)
		if err != nil {
			panic(err) // one of the table
		}
		all = append(all, q)
	}
	return all
}

// rates are the quantities of a part that are no metric's.
var rates = []Quantity{
	{Name: "completed_share", Better: measure.Higher, of: completedShare},
	{Name: "completed_rate_per_s", Better: measure.Higher, of: func(p *judge.Part) judge.Number { return p.CompletedRate }},
	{Name: "output_tokens_per_s", Better: measure.Higher, of: func(p *judge.Part) judge.Number { return p.OutputRate }},
	{Name: "input_tokens_per_s", Better: measure.Higher, of: func(p *judge.Part) judge.Number { return p.InputRate }},
	asking("attainment", func(o *judge.Objectives) judge.Number { return o.Attainment.Value }),
	asking("request_goodput_per_s", func(o *judge.Objectives) judge.Number { return o.RequestGoodput }),
	asking("token_goodput_per_s", func(o *judge.Objectives) judge.Number { return o.TokenGoodput }),
	asking("smooth_goodput_per_s", func(o *judge.Objectives) judge.Number { return o.SmoothGoodput }),
	asking("fluidity_index", func(o *judge.Objectives) judge.Number { return o.Fluidity.Mean }),
}

// asking is a quantity of how requests stand to their objectives; a run that was asked nothing has none.
func asking(name string, of func(*judge.Objectives) judge.Number) Quantity {
	return Quantity{Name: name, Better: measure.Higher, asks: true, of: func(p *judge.Part) judge.Number {
		if p.Objectives == nil {
			return judge.Number{}
		}
		return of(p.Objectives)
	}}
}

// figure is one figure of a metric.
type figure struct {
	name string
	ppm  int64 // 0 for none
	of   func(*judge.Figures) judge.Number
}

var figures = []figure{
	{"mean", 0, func(f *judge.Figures) judge.Number { return f.Mean }},
	{"p50", 500_000, func(f *judge.Figures) judge.Number { return f.P50 }},
	{"p75", 750_000, func(f *judge.Figures) judge.Number { return f.P75 }},
	{"p90", 900_000, func(f *judge.Figures) judge.Number { return f.P90 }},
	{"p95", 950_000, func(f *judge.Figures) judge.Number { return f.P95 }},
	{"p99", 990_000, func(f *judge.Figures) judge.Number { return f.P99 }},
	{"p99_9", 999_000, func(f *judge.Figures) judge.Number { return f.P999 }},
}

// ParseQuantity reads "ttft_ms.p99", or the name of a rate.
func ParseQuantity(text string) (Quantity, error) {
	if i := slices.IndexFunc(rates, func(q Quantity) bool { return q.Name == text }); i >= 0 {
		return rates[i], nil
	}
	name, level, _ := strings.Cut(text, ".")
	table := measure.Table()
	i := slices.IndexFunc(table, func(m measure.Metric) bool { return m.Name == name })
	if i < 0 {
		return Quantity{}, fmt.Errorf("must be METRIC.FIGURE or one of %s, got %q", names(rates, func(q Quantity) string { return q.Name }), text)
	}
	k := slices.IndexFunc(figures, func(f figure) bool { return f.name == level })
	if k < 0 {
		return Quantity{}, fmt.Errorf("the figure of %s must be one of %s, got %q", name, names(figures, func(f figure) string { return f.name }), level)
	}
	return quantity(&table[i], &figures[k]), nil
}

func quantity(m *measure.Metric, f *figure) Quantity {
	name := m.Name
	q := Quantity{Name: name + "." + f.name, Better: m.Better}
	q.of = func(p *judge.Part) judge.Number {
		figures := p.Metrics[name]
		return f.of(&figures)
	}
	if f.ppm > 0 {
		q.Needs = stats.Least(f.ppm)
		q.count = func(p *judge.Part) int64 { return p.Metrics[name].N }
	}
	return q
}

func names[T any](list []T, of func(T) string) string {
	var all []string
	for _, v := range list {
		all = append(all, of(v))
	}
	return strings.Join(all, ", ")
}

// completedShare is the share of the planned requests that completed.
func completedShare(p *judge.Part) judge.Number {
	if p.Planned == 0 {
		return judge.Number{}
	}
	return judge.Some(float64(p.Outcomes.Completed) / float64(p.Planned))
}

// backed reports whether a run has values enough for the quantity.
func (q *Quantity) backed(p *judge.Part) bool { return q.count == nil || q.count(p) >= q.Needs }
