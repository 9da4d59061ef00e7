package judge

import "tare/internal/judge/stats"

// goods counts how requests stand to their objectives.
type goods struct {
	planned, good, unsure int64
	limits                [][]holding // by promise and objective
	fluid                 stats.Distribution
	notFluid              int64 // completed requests whose tokens are not known

	// counted by the clock, whichever stage the request belongs to
	ended, tokens, benefit int64 // good requests, their tokens, thousandths of tokens of any request
	counted, useful        bool  // some tokens, some benefit was known
}

// holding counts completed requests by how they stand to one objective.
type holding [undefined + 1]int64

func (g *goods) add(s *standing) {
	g.planned++
	if s.good {
		g.good++
	}
	if s.unsure {
		g.unsure++
	}
	switch {
	case s.hasFluid:
		g.fluid.Add(s.fluid)
	case s.paced:
		g.notFluid++
	}
	if s.completed {
		g.hold(s)
	}
}

// hold takes how a completed request stands to each objective.
func (g *goods) hold(s *standing) {
	for len(g.limits) <= s.number {
		g.limits = append(g.limits, nil)
	}
	if g.limits[s.number] == nil {
		g.limits[s.number] = make([]holding, len(s.each))
	}
	for i, as := range s.holds {
		g.limits[s.number][i][as]++
	}
}

func (g *goods) merge(other *goods) {
	g.planned += other.planned
	g.good += other.good
	g.unsure += other.unsure
	for len(g.limits) < len(other.limits) {
		g.limits = append(g.limits, nil)
	}
	for i, of := range other.limits {
		if g.limits[i] == nil {
			g.limits[i] = make([]holding, len(of))
		}
		for j := range of {
			for as := range of[j] {
				g.limits[i][j][as] += of[j][as]
			}
		}
	}
	g.fluid.Merge(&other.fluid)
	g.notFluid += other.notFluid
	g.ended += other.ended
	g.tokens += other.tokens
	g.benefit += other.benefit
	g.counted = g.counted || other.counted
	g.useful = g.useful || other.useful
}
