//go:build linux

package main

import (
	"strings"
	"testing"
)

func line(profile, tool string, asked float64, round int, values map[string]float64) Line {
	return Line{Profile: profile, Tool: tool, Asked: asked, Tokens: 16, Round: round, Values: values}
}

func TestRatiosAreTakenWithinARepetition(t *testing.T) {
	got := table([]Line{
		line("coal", "tare-epoll", 1000, 1, map[string]float64{achieved: 1000, cpu: 20}),
		line("coal", "net/http", 1000, 1, map[string]float64{achieved: 1000, cpu: 100}),
		line("coal", "tare-epoll", 1000, 2, map[string]float64{achieved: 1000, cpu: 40}),
		line("coal", "net/http", 1000, 2, map[string]float64{achieved: 1000, cpu: 400}),
	})
	want := "| tare-epoll | 2 | 1000 / 1000 / 1000 | 20.0 / 30.0 / 40.0 | 1.25 / 1.88 / 2.50 | 0.10 / 0.15 / 0.20 | – |"
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant a row\n%s", got, want)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	got := table([]Line{{Profile: "closed", Tool: "wrk", Round: 2, Fault: "killed"}})
	if want := "wrk, round 2: no result: killed"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q in it", got, want)
	}
}

func TestLimitIsTheHighestRateKept(t *testing.T) {
	step := func(tool string, asked, p99, reached, bad float64) Line {
		return line(limitProfile, tool, asked, 1, map[string]float64{achieved: reached, slipP99: p99, failed: bad})
	}
	got := table([]Line{
		step("tare-epoll", 20000, 0.2, 20000, 0),
		step("tare-epoll", 40000, 0.9, 40000, 0),
		step("tare-epoll", 50000, 1.1, 50000, 0),
		step("net/http", 4000, 0.4, 4000, 0),
		step("net/http", 5000, 0.4, 4800, 0),
		step("net/http", 6000, 0.4, 6000, 1),
	})
	for _, want := range []string{"| tare-epoll | 1 | 40000 | 10.00 |", "| net/http | 1 | 4000 | 1.00 |"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant a row %s", got, want)
		}
	}
}

func TestLeastRatioTakesTheQuietestRepetition(t *testing.T) {
	line := func(tool string, round int, us float64) Line {
		return Line{Tool: tool, Round: round, Values: map[string]float64{cpu: us}}
	}
	lines := []Line{line("a", 1, 9), line("b", 1, 10), line("a", 2, 4), line("b", 2, 10), line("a", 3, 1)}
	if got, ok := leastRatio(lines, "a", "b"); !ok || got != 0.4 {
		t.Errorf("got %v, %v, want 0.4: of repetitions with both tools the lowest", got, ok)
	}
	if _, ok := leastRatio(lines, "a", "c"); ok {
		t.Error("a ratio to a tool without a result")
	}
}
