package judge

import (
	"path/filepath"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
)

// ReplicationsSchema names the format of replications.json and its version.
const ReplicationsSchema = "tare.replications/v1"

// Replications is what several runs of one load say together. What differs from run to run is in its intervals, and in those of
// no single run.
type Replications struct {
	Dir     string                       `json:"-"`
	Schema  string                       `json:"schema"`
	Verdict verdict.Verdict              `json:"verdict"` // its gates are those on the runs together; those on each are in its own
	Runs    []Replicate                  `json:"runs"`
	Rates   map[string]Across            `json:"rates"`   // completed_rate_per_s, output_tokens_per_s
	Metrics map[string]map[string]Across `json:"metrics"` // by name; mean, p50, p90, p99 of each run

	Objectives map[string]Across `json:"objectives,omitempty"` // attainment, goodput, fluidity_index; left out where nothing is asked
}

// Replicate is one of the runs.
type Replicate struct {
	Dir     string        `json:"dir"` // below that of the replications
	Class   verdict.Class `json:"class"`
	Reason  string        `json:"reason"`
	PlanID  string        `json:"plan_id"`
	Planned int64         `json:"planned"`
}

// Across is one value of each run: their mean with its 95 % interval by Student's t, and their coefficient of variation.
type Across struct {
	Runs      int    `json:"runs"` // that have the value
	Mean      Number `json:"mean"`
	Low       Number `json:"low"`
	High      Number `json:"high"`
	Variation Number `json:"cv"`
}

// Replicated puts runs together.
func Replicated(dir string, runs []*Summary) *Replications {
	r := &Replications{Dir: dir, Schema: ReplicationsSchema, Rates: map[string]Across{}, Metrics: map[string]map[string]Across{}}
	var all []verdict.Run
	for _, s := range runs {
		all = append(all, verdict.Run{Verdict: s.Verdict, Differs: s.spec.differs(runs[0].spec)})
		r.Runs = append(r.Runs, Replicate{
			Dir: filepath.Base(s.Dir), Class: s.Verdict.Class, Reason: s.Verdict.Reason, PlanID: s.Run.Plan.PlanID, Planned: s.Total.Planned,
		})
	}
	r.Verdict = verdict.Certify(all)
	r.Rates["completed_rate_per_s"] = across(runs, func(p *Part) Number { return p.CompletedRate })
	r.Rates["output_tokens_per_s"] = across(runs, func(p *Part) Number { return p.OutputRate })
	r.Objectives = acrossObjectives(runs)
	for _, m := range measure.Table() {
		of := func(pick func(Figures) Number) Across {
			return across(runs, func(p *Part) Number { return pick(p.Metrics[m.Name]) })
		}
		r.Metrics[m.Name] = map[string]Across{
			"mean": of(func(f Figures) Number { return f.Mean }), "p50": of(func(f Figures) Number { return f.P50 }),
			"p90": of(func(f Figures) Number { return f.P90 }), "p99": of(func(f Figures) Number { return f.P99 }),
		}
	}
	return r
}

// acrossObjectives gathers how the runs stand to their objectives; nil where nothing is asked.
func acrossObjectives(runs []*Summary) map[string]Across {
	if runs[0].SLO == nil {
		return nil
	}
	of := func(pick func(*Objectives) Number) Across {
		return across(runs, func(p *Part) Number {
			if p.Objectives == nil {
				return Number{}
			}
			return pick(p.Objectives)
		})
	}
	return map[string]Across{
		"attainment":            ofShare(of(func(o *Objectives) Number { return o.Attainment.Value })),
		"request_goodput_per_s": of(func(o *Objectives) Number { return o.RequestGoodput }),
		"token_goodput_per_s":   of(func(o *Objectives) Number { return o.TokenGoodput }),
		"smooth_goodput_per_s":  of(func(o *Objectives) Number { return o.SmoothGoodput }),
		"fluidity_index":        ofShare(of(func(o *Objectives) Number { return o.Fluidity.Mean })),
	}
}

// ofShare keeps the interval of a share within what a share can be, which Student's t knows nothing of.
func ofShare(a Across) Across {
	if a.Low.defined {
		a.Low, a.High = Some(max(a.Low.value, 0)), Some(min(a.High.value, 1))
	}
	return a
}

// across gathers one value of each run's total.
func across(runs []*Summary, of func(*Part) Number) Across {
	var values []float64
	for _, s := range runs {
		if v, ok := of(&s.Total).Get(); ok {
			values = append(values, v)
		}
	}
	a := Across{Runs: len(values)}
	if r, ok := stats.Replicate(values); ok {
		a.Mean, a.Low, a.High, a.Variation = Some(r.Mean), Some(r.Low), Some(r.High), Some(r.Variation)
	}
	return a
}
