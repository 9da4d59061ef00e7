package main

import (
	"fmt"

	"tare/internal/judge/stats"
)

var levels = []int64{stats.P50, stats.P90, stats.P99}

const heading = `| service | ρ | requests | quantile | n_eff / n | shown | covered | width | held | i.i.d. covered | i.i.d. width | five runs covered |
|---|---|---|---|---|---|---|---|---|---|---|---|`

// score counts how an interval method did.
type score struct {
	runs, shown, covered int
	width                float64 // sum of widths over the truth
}

func (s *score) add(e stats.Estimate, truth float64) {
	s.runs++
	if e.Withheld != stats.Shown {
		return
	}
	s.shown++
	s.width += (e.High.Value - e.Low.Value) / truth
	if e.Low.Value <= truth && truth <= e.High.Value {
		s.covered++
	}
}

func (s *score) show() string {
	if s.shown == 0 {
		return "– | –"
	}
	return fmt.Sprintf("%.0f %% | %.0f %%", 100*float64(s.covered)/float64(s.shown), 100*s.width/float64(s.shown))
}

// row is the outcome of one quantile.
type row struct {
	ours, independent score
	bounded           int     // runs whose upper bound by early stopping held
	bounds            int     // runs that had one
	share             float64 // sum of n_eff/n
	five              []float64
	fives, fivesHeld  int
}

// study simulates runs of n requests and says how each quantile's intervals did.
func study(l law, rho float64, n, runs int, exact []float64) (table []string) {
	rows := make([]row, len(levels))
	for run := range runs {
		s := start(l, rho, uint64(run))
		var requests stats.Cohort
		for range n {
			requests.Complete(s.next())
		}
		for i, e := range requests.Estimates(levels...) {
			rows[i].add(requests.Incidence(), e, exact[i])
		}
	}
	for i, ppm := range levels {
		r := &rows[i]
		table = append(table, fmt.Sprintf("| %s | %g | %d | p%g | %.3f | %.0f %% | %s | %s | %s | %s |",
			l.name, rho, n, float64(ppm)/1e4, r.share/float64(runs), 100*float64(r.ours.shown)/float64(runs),
			r.ours.show(), percent(r.bounded, r.bounds), r.independent.show(), percent(r.fivesHeld, r.fives)))
	}
	return table
}

func (r *row) add(all *stats.Incidence, e stats.Estimate, truth float64) {
	n := float64(e.N)
	r.share += e.Effective / n
	r.ours.add(e, truth)
	r.independent.add(all.Estimate(e.PPM, stats.Dependence{N: e.N, Time: 1}), truth)
	if rank, ok := stats.UpperBound(stats.Dependence{N: e.N, Time: n / e.Effective}, e.PPM); ok {
		r.bounds++
		if all.At(rank).Value >= truth {
			r.bounded++
		}
	}
	if r.five = append(r.five, e.Point.Value); len(r.five) == 5 {
		r.fives++
		if between, _ := stats.Replicate(r.five); between.Low <= truth && truth <= between.High {
			r.fivesHeld++
		}
		r.five = r.five[:0]
	}
}

func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}
