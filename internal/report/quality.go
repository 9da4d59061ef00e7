package report

import (
	"bytes"
	"fmt"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
)

// writePlanned writes the quantiles over all planned requests of each measured stage, with their intervals. Stages of which
// none can be given, for the same reason, share a line.
func writePlanned(b *bytes.Buffer, s *judge.Summary) {
	head := "planned   "
	write := func(text string) {
		wrap(b, head, text)
		head = "          "
	}
	withheld := map[string][]string{} // stages and metrics by reason
	var reasons []string
	for i := range s.Stages {
		p := &s.Stages[i]
		for _, m := range []struct{ name, text string }{{measure.TTFTFromDue, "TTFT from due"}, {measure.E2EFromDue, "E2E from due"}} {
			q, ok := p.AllPlanned[m.name]
			if !ok || q.N == 0 {
				continue
			}
			parts := alike([]string{"p50", "p90", "p99"}, []string{estimate(&q.P50), estimate(&q.P90), estimate(&q.P99)})
			what := label(p, longestName) + ", " + m.text
			if len(parts) > 1 || q.P50.Withheld == "" {
				write(fmt.Sprintf("%s over all %d: %s", what, q.N, strings.Join(parts, " · ")))
				continue
			}
			if withheld[parts[0]] == nil {
				reasons = append(reasons, parts[0])
			}
			withheld[parts[0]] = append(withheld[parts[0]], what)
		}
	}
	for _, reason := range reasons {
		write(strings.Join(withheld[reason], "; ") + ": " + reason)
	}
}

// alike puts names before texts, those in a row with the same text together: "p50, p90 the text".
func alike(names, texts []string) (parts []string) {
	for i := 0; i < len(texts); {
		name := names[i]
		end := i + 1
		for ; end < len(texts) && texts[end] == texts[i]; end++ {
			name += ", " + names[end]
		}
		parts = append(parts, name+" "+texts[i])
		i = end
	}
	return parts
}

// estimate spells a quantile: "1.20s (95 % 1.10s to 1.40s)", "> 30.0s", or why it is withheld.
func estimate(e *judge.Estimate) string {
	switch {
	case e.Withheld == string(stats.TooFew):
		n, _ := e.Effective.Get()
		return fmt.Sprintf("withheld: worth %s independent requests, needs %d in all", measure.Digits(n), e.Needed)
	case e.Withheld != "":
		return "withheld: " + e.Withheld
	}
	if low, ok := e.Low.Value.Get(); ok && e.Reach == string(stats.Reached) {
		return fmt.Sprintf("%s (95 %% %s to %s)", reached(&e.Bound), span(low), reached(&e.High))
	}
	return reached(&e.Bound)
}

func reached(at *judge.Bound) string {
	v, ok := at.Value.Get()
	switch {
	case !ok:
		return "none: too many requests failed"
	case at.Reach == string(stats.Above):
		return "> " + span(v)
	}
	return span(v)
}

// writeSteadiness says how each measured stage went over time.
func writeSteadiness(b *bytes.Buffer, s *judge.Summary) {
	head := "steady    "
	for i := range s.Stages {
		p := &s.Stages[i]
		if p.Steadiness == nil {
			continue
		}
		parts := []string{}
		if r := p.Steadiness.Completed; !absent(r.Mean) && p.Outcomes.Completed > 0 {
			note := ""
			if !r.Independent {
				note = " at least"
			}
			parts = append(parts, fmt.Sprintf("ok/s %s (95 %%%s %s to %s)", plain(r.Mean), note, plain(r.Low), plain(r.High)))
		}
		if st := p.Steadiness.Stability; st != nil {
			parts = append(parts, keepsUp(st))
		}
		if w := p.Steadiness.Warmup; w.Steady && p.Outcomes.Completed > 0 {
			parts = append(parts, fmt.Sprintf("warm-up declared %s, MSER-5 suggests %s", span(w.DeclaredMs), spanOf(w.SuggestedMs)))
		}
		if l := p.Steadiness.Little; !absent(l.Gap) {
			gap, _ := l.Gap.Get()
			parts = append(parts, fmt.Sprintf("in flight %s by the gauge, %s by the records (%s %% apart)", plain(l.Gauge), plain(l.Stays), measure.Digits(100*gap)))
		}
		if len(parts) > 0 {
			wrap(b, head, label(p, longestName)+": "+strings.Join(parts, " · "))
			head = "          "
		}
	}
}

// keepsUp says whether the server keeps up with a stage.
func keepsUp(s *judge.Stability) string {
	share := func(n judge.Number) string {
		v, _ := n.Get()
		return fmt.Sprintf("%.1f", 100*v)
	}
	switch s.State {
	case stats.Stable:
		return fmt.Sprintf("the server keeps up: %s ± %s %% of the load are left standing", share(s.Shortfall), share(s.Error))
	case stats.Overloaded:
		if failed, _ := s.Failed.Get(); failed > stats.MostFailed {
			return fmt.Sprintf("overloaded: %s: %s %% of them", s.Why, share(s.Failed))
		}
		return fmt.Sprintf("overloaded: %s: %s ± %s %% of the load are left standing", s.Why, share(s.Shortfall), share(s.Error))
	}
	return fmt.Sprintf("unclear whether the server keeps up: %s (overloads from %s %% on would show)", s.Why, share(s.Resolution))
}

func absent(n judge.Number) bool { _, ok := n.Get(); return !ok }

// writeLoops shows each event loop as a queue: its load, the wait that was measured, and the model that comes nearest.
func writeLoops(b *bytes.Buffer, s *judge.Summary) {
	head := "loops     "
	for i := range s.Run.Loops {
		l := &s.Run.Loops[i]
		if absent(l.Utilisation) {
			continue
		}
		text := fmt.Sprintf("%d: ρ %s, read %s, send %s · wait %s", i, plain(l.Utilisation), spanOf(l.ReadMs), spanOf(l.SendMs), spanOf(l.WaitMs))
		if l.Fits != "" {
			for _, m := range l.Models {
				if m.Model == l.Fits {
					text += fmt.Sprintf(", %s expects %s (× %s)", l.Fits, spanOf(m.WaitMs), plain(m.Ratio))
				}
			}
			if !l.Close {
				text += ": no model is within a factor of two"
			}
		}
		wrap(b, head, text)
		head = "          "
	}
}
