package judge

import "tare/internal/judge/stats"

// goods counts how requests stand to their objectives.
type goods struct {
	planned, good, unsure int64
	limits                [][]holding // by promise and objective; none of a promise of which nothing has completed
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
	limits := g.limitsOf(s.number, len(s.each))
	for i, as := range s.holds {
		limits[i][as]++
	}
}

// limitsOf are the counts of a promise that has so many objectives of each request.
func (g *goods) limitsOf(promise, objectives int) []holding {
	for len(g.limits) <= promise {
		g.limits = append(g.limits, nil)
	}
	if len(g.limits[promise]) < objectives {
		g.limits[promise] = make([]holding, objectives)
	}
	return g.limits[promise]
}

func (g *goods) merge(other *goods) {
	g.planned += other.planned
	g.good += other.good
	g.unsure += other.unsure
	for promise, of := range other.limits {
		limits := g.limitsOf(promise, len(of))
		for j := range of {
			for as := range of[j] {
				limits[j][as] += of[j][as]
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
