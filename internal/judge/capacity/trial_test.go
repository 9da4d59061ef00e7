package capacity_test

import (
	"testing"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
)

// A share whose interval is withheld is not known exactly, but unknown: unless it is no go whatever the interval.
func TestAShareWithoutAnIntervalIsNoSureOne(t *testing.T) {
	for _, tt := range []struct {
		decision string
		share    judge.Share
		want     float64
	}{
		{"go", judge.Share{Value: judge.Some(0.95), Low: judge.Some(0.951 - 0.0098), High: judge.Some(0.951 + 0.0098)}, 0.005},
		{"undecided", judge.Share{Value: judge.Some(0.95)}, 0.5},
		{"no go", judge.Share{Value: judge.Some(0.2)}, 0},
	} {
		o := &judge.Objectives{Planned: 1000, Good: 950, Attainment: tt.share, Decision: tt.decision}
		got := capacity.TrialOf(capacity.Load{}, &judge.Summary{Stages: []judge.Part{{Planned: 1000, Objectives: o}}}).GoodError
		if got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("%s, %+v: got a standard error of %g, want %g", tt.decision, tt.share, got, tt.want)
		}
	}
}
