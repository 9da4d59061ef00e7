package main

import (
	"math"
	"strings"
	"testing"
)

// The truth by formula is what the simulated server does.
func TestTruthIsThatOfTheServer(t *testing.T) {
	simulated := law{name: exponential.name, draw: exponential.draw}
	for _, rho := range []float64{0.3, 0.8} {
		got, want := simulated.truth(rho, 3_000_000), exponential.truth(rho, 0)
		for i, ppm := range levels {
			if math.Abs(got[i]-want[i]) > 0.04*want[i] {
				t.Errorf("ρ = %g, quantile %d: got %.4g, want %.4g", rho, ppm, got[i], want[i])
			}
		}
	}
}

func TestStudyIsTheSameEveryTime(t *testing.T) {
	exact := exponential.truth(0.5, 0)
	first, second := study(exponential, 0.5, 2000, 10, exact), study(exponential, 0.5, 2000, 10, exact)
	if len(first) != len(levels) || strings.Join(first, "\n") != strings.Join(second, "\n") {
		t.Errorf("got\n%s\nand then\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
	columns := strings.Count(heading[:strings.Index(heading, "\n")], "|")
	for _, row := range first {
		if strings.Count(row, "|") != columns {
			t.Errorf("got row %q, want %d columns", row, columns-1)
		}
	}
}

func TestScoreCountsWhatCovers(t *testing.T) {
	rows := study(exponential, 0.5, 20_000, 20, exponential.truth(0.5, 0))
	wrong := study(exponential, 0.5, 20_000, 20, []float64{1, 1, 1})
	covered := func(row string) string { return strings.TrimSpace(strings.Split(row, "|")[7]) }
	for i := range rows {
		if got := covered(rows[i]); got != "100 %" && got != "95 %" && got != "90 %" {
			t.Errorf("covered: got %s in %q, want nearly all", got, rows[i])
		}
		if got := covered(wrong[i]); got != "0 %" {
			t.Errorf("covered: got %s of a wrong truth in %q, want none", got, wrong[i])
		}
	}
}
