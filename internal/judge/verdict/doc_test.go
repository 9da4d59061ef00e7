package verdict

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The limits stand in docs/verdict.md as people read them. This holds them to those that the gates judge by.
func TestDocumentationHasEveryLimit(t *testing.T) {
	text, err := os.ReadFile("../../../docs/verdict.md")
	if err != nil {
		t.Fatal(err)
	}
	both := func(l limits, spell func(float64) string) string {
		return fmt.Sprintf("≤ %s (%s)", spell(l.valid), spell(l.certified))
	}
	budgeted := func(b budgets, spell func(float64) string) string {
		return fmt.Sprintf("≤ %s (%s)", b.valid.spell(spell), b.certified.spell(spell))
	}
	longest, within, drifted := longestLimits, rateLimits, driftLimits
	said := map[string]string{
		"C1": fmt.Sprintf("≤ %g (%g)", CapacityValid, CapacityCertified),
		"C2": budgeted(slipLimits, ms),
		"C3": fmt.Sprintf("≤ max(%s, %s of TTFT p50) (max(%s, %s))",
			ms(longest.valid.floor), percent(longest.valid.share), ms(longest.certified.floor), percent(longest.certified.share)),
		"C4":  fmt.Sprintf("± %s (± %s)", within.valid.spell(requests), within.certified.spell(plain)),
		"C6":  budgeted(lagLimits, ms),
		"C7":  budgeted(lagLimits, ms),
		"C8":  both(loopLimits, plain),
		"C8a": both(coreLimits, plain),
		"C8b": both(stealLimits, percent),
		"C8c": "≤ " + percent(throttleLimits.valid) + " of any second (never)",
		"C8d": both(queueLimits, percent),
		"C9a": both(pauseLimits, ms),
		"C9b": both(schedulerLimits, ms),
		"C10": both(roomLimits, percent),
		"C11": both(resendLimits, percent),
		"C12": "≤ " + ms(stepLimits.valid),
		"C13": "≤ " + ms(mattersNs),
		"W4":  fmt.Sprintf("± %s (± %s)", arrivalLimits.valid.spell(plain), arrivalLimits.certified.spell(plain)),
		"W5":  "≤ " + percent(promptLimits.valid),
		"W6":  "≤ " + percent(lengthLimits.valid),
		"W7":  "± " + percent(cacheLimits.valid),
		"W9":  "≤ " + percent(duplicateLimits.valid),
		"T2":  "± " + percent(balanceLimits.valid),
		"T4": fmt.Sprintf("less %g standard errors, ≤ max(%s of the mean, %g) (%s)",
			driftQuantile, percent(drifted.valid.share), drifted.valid.floor, drifted.certified.spell(plain)),
		"T6": both(widthLimits, percent),
		"T9": fmt.Sprintf("(≥ %d runs)", CertifiedRuns),
		"S3": "≤ " + explainLimits.spell(ms),
		"S5": both(errorLimits, percent),
	}
	if throttleLimits.certified != 0 {
		t.Errorf("C8c: got a certified limit of %g, want 0: the documentation says never", throttleLimits.certified)
	}
	for _, r := range append(rules(), joint()...) {
		row := rowOf(string(text), r.id, r.name)
		if row == "" {
			t.Errorf("docs/verdict.md has no row that begins %q", "| "+r.id+" "+r.name)
		} else if want, limited := said[r.id]; limited && !strings.Contains(row, want) {
			t.Errorf("docs/verdict.md, %s: got %q, want %q in it", r.id, row, want)
		}
		delete(said, r.id)
		if advisory := strings.Contains(row, " (advisory) |"); advisory != (r.blames == "") {
			t.Errorf("docs/verdict.md, %s: got advisory %v, want %v", r.id, advisory, r.blames == "")
		}
	}
	for id := range said {
		t.Errorf("%s has limits and no rule", id)
	}
}

func TestDocumentationOfCalibrationHasTheSameLimits(t *testing.T) {
	text, err := os.ReadFile("../../../docs/calibration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| to %g | a line on stderr |", CapacityCertified), fmt.Sprintf("| above %g | the line is a warning", CapacityCertified),
		fmt.Sprintf("| above %g | refused", CapacityValid),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/calibration.md: got no row with %q", want)
		}
	}
}

func rowOf(text, id, name string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| "+id+" "+name+" ") {
			return line
		}
	}
	return ""
}
