package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
)

// accuses says that a gate is one on the client that was not passed.
func accuses(g verdict.Gate) bool {
	return g.Level == verdict.Failed && (strings.HasPrefix(g.ID, "C") || g.ID == "W4")
}

// alarms is the table of how often a healthy client is accused.
func alarms(late lateness, runs int) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| server | runs | accused | share, 95 % | gates |\n|---|---|---|---|---|")
	all, n := 0, 0
	for i := range servers() {
		accused, gates := 0, map[string]int{}
		for seed := range runs {
			s := simulate(uint64(seed), servers()[i], late, trouble{})
			failed := 0
			for _, g := range s.Verdict.Gates {
				if accuses(g) {
					gates[g.ID]++
					failed++
				}
			}
			if failed > 0 {
				accused++
			}
		}
		if slow := servers()[i].slow; slow {
			all, n = all+accused, n+runs
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", servers()[i].name, runs, accused, share(accused, runs), list(gates))
	}
	fmt.Fprintf(&b, "| the slow ones together | %d | %d | %s | |\n", n, all, share(all, n))
	return b.String()
}

// steady is the table of what stands between a healthy client before a steady server and CERTIFIED, of the gates that the simulation brings
// something for.
func steady(late lateness, runs int) string {
	short := map[string]int{}
	for seed := range runs {
		s := simulate(uint64(seed), server{ttft: lognormal(500 * time.Millisecond), gap: constant(50 * time.Millisecond)}, late, trouble{})
		for _, g := range s.Verdict.Gates {
			observed := g.Level != verdict.Unobservable || g.ID == "T3" || g.ID == "T6" // which are so when they see too little
			if observed && g.Level != verdict.CertifiedLevel && g.Level != verdict.NotApplicable {
				short[g.ID+" "+g.Name]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, "| gate | runs | short of the certified level | share, 95 % |\n|---|---|---|---|")
	for _, gate := range slices.Sorted(maps.Keys(short)) {
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", gate, runs, short[gate], share(short[gate], runs))
	}
	return b.String()
}

// disturbance is a client that is late by twice what a gate allows.
type disturbance struct {
	name  string
	gate  string
	worse func(healthy *judge.Summary) trouble
}

func disturbances() []disturbance {
	at := func(s *judge.Summary, metric string, pick func(judge.Figures) judge.Number) float64 {
		ms, _ := pick(s.Total.Metrics[metric]).Get()
		return ms * 1e6
	}
	p50 := func(f judge.Figures) judge.Number { return f.P50 }
	p99 := func(f judge.Figures) judge.Number { return f.P99 }
	p999 := func(f judge.Figures) judge.Number { return f.P999 }
	twice := func(ns float64) time.Duration { return time.Duration(2 * ns) }
	return []disturbance{
		{"60 % of the sends late by twice the limit at p50", "C2", func(s *judge.Summary) trouble {
			return trouble{send: 0.6, late: twice(verdict.SlipLimit(at(s, measure.TTFT, p50)))}
		}},
		{"2 % of the sends late by twice the limit at p99", "C2", func(s *judge.Summary) trouble {
			return trouble{send: 0.02, late: twice(verdict.SlipLimit(at(s, measure.TTFT, p99)))}
		}},
		{"0.4 % of the sends late by twice the limit at p99.9", "C2", func(s *judge.Summary) trouble {
			return trouble{send: 0.004, late: twice(verdict.SlipLimit(at(s, measure.TTFT, p999)))}
		}},
		{"one send late by twice the limit on the longest", "C3", func(s *judge.Summary) trouble {
			return trouble{once: true, late: twice(verdict.LongestSlipLimit(at(s, measure.TTFT, p50)))}
		}},
		{"2 % of the reads late by twice the limit at p99", "C6", func(s *judge.Summary) trouble {
			limit := min(verdict.LagLimit(at(s, measure.ICL, p50)), verdict.LagLimit(at(s, measure.TTFT, p99)))
			return trouble{read: 0.02, late: twice(limit)}
		}},
		{"offsets stretched by 2 %: as much sets out behind the window", "C4", func(*judge.Summary) trouble { return trouble{slow: 0.02} }},
		{"1 % of the requests never sent", "C5", func(*judge.Summary) trouble { return trouble{leave: 0.01} }},
	}
}

// power is the table of how often a client that is late is seen, before the slow server.
func power(late lateness, runs int) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| client | gate | runs | seen by it | share, 95 % | invalid |\n|---|---|---|---|---|---|")
	all := disturbances()
	seen, invalid := make([]int, len(all)), make([]int, len(all))
	for seed := range runs {
		healthy := simulate(uint64(seed), servers()[0], late, trouble{})
		for i, d := range all {
			s := simulate(uint64(seed), servers()[0], late, d.worse(healthy))
			if slices.ContainsFunc(s.Verdict.Gates, func(g verdict.Gate) bool { return g.ID == d.gate && g.Level == verdict.Failed }) {
				seen[i]++
			}
			if s.Verdict.Class == verdict.InvalidClient {
				invalid[i]++
			}
		}
	}
	for i, d := range all {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %s | %d |\n", d.name, d.gate, runs, seen[i], share(seen[i], runs), invalid[i])
	}
	return b.String()
}

// share spells a share of runs with its exact 95 % interval.
func share(yes, runs int) string {
	i, _ := stats.Share(int64(yes), stats.Dependence{N: int64(runs), Time: 1})
	return fmt.Sprintf("%.3g %% (%.2g–%.3g)", 100*i.Mean, 100*i.Low, 100*i.High)
}

func list(gates map[string]int) string {
	var all []string
	for id, n := range gates {
		all = append(all, fmt.Sprintf("%s %d", id, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
