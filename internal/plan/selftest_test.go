package plan_test

import (
	"context"
	"testing"

	"tare/internal/plan"
)

// Named so that bench/samebits.sh runs it on every architecture.
func TestTheGeneratorMakesTheSameEverywhere(t *testing.T) {
	got, err := plan.SelfTest(context.Background())
	if err != nil || got != plan.GeneratorGolden {
		t.Errorf("got %s, %v, want %s", got, err, plan.GeneratorGolden)
	}
}

func BenchmarkSelfTest(b *testing.B) {
	for b.Loop() {
		if _, err := plan.SelfTest(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
