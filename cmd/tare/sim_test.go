package main

import (
	"testing"
	"time"

	"tare/internal/sim"
)

func TestTheSimulatorSaysItsCapacityWhereItHasOne(t *testing.T) {
	ttft, gap := sim.Constant(130*time.Millisecond), sim.Constant(10*time.Millisecond)
	for _, c := range []struct {
		name string
		cfg  sim.Config
		want string
	}{
		{"slots", sim.Config{TTFT: ttft, Gap: gap, Slots: 8}, "capacity: 18.2 requests/s of 128 input and 32 output tokens\n"},
		{"no slots", sim.Config{TTFT: ttft, Gap: gap}, ""},
		{"null", sim.Config{Null: true}, ""},
	} {
		if got := capacityLine(c.cfg); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
