package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/judge/verdict"
	"tare/internal/record"
)

func TestAHealthyClientBeforeASlowServerIsNotAccused(t *testing.T) {
	for i, s := range servers()[:5] {
		for seed := range uint64(3) {
			for _, g := range simulate(seed, servers()[i], published, trouble{}).Verdict.Gates {
				if accuses(g) {
					t.Errorf("%s, seed %d: got %s failed: %s", s.name, seed, g.ID, g.Measured)
				}
			}
		}
	}
}

// What cannot be observed accuses nobody, and shows nothing: the simulation has to bring what the gates look at.
func TestTheGatesSeeTheSimulatedClient(t *testing.T) {
	for _, g := range simulate(1, servers()[0], published, trouble{}).Verdict.Gates {
		if observed := []string{"C2", "C3", "C4", "C5", "C6", "C8", "C12", "C13", "C14", "W4", "T1", "T2"}; slices.Contains(observed, g.ID) && g.Level == verdict.Unobservable {
			t.Errorf("%s: got unobservable (%s), want it judged", g.ID, g.Measured)
		}
	}
}

func TestAClientLateByTwiceTheLimitIsSeen(t *testing.T) {
	healthy := simulate(1, servers()[0], published, trouble{})
	for _, d := range disturbances() {
		s := simulate(1, servers()[0], published, d.worse(healthy))
		if !slices.ContainsFunc(s.Verdict.Gates, func(g verdict.Gate) bool { return g.ID == d.gate && g.Level == verdict.Failed }) {
			t.Errorf("%s: %s did not fail", d.name, d.gate)
		}
	}
}

func TestLatenessHasItsQuantiles(t *testing.T) {
	for _, p := range published {
		if got := published.at(p.beyond); got < p.late-time.Nanosecond || got > p.late+time.Nanosecond {
			t.Errorf("1−q = %g: got %v, want %v", p.beyond, got, p.late)
		}
	}
	r, longer := rand.New(rand.NewPCG(1, 1)), 0
	for range 100_000 {
		if published.draw(r) > 203*time.Microsecond {
			longer++
		}
	}
	if longer < 900 || longer > 1100 {
		t.Errorf("got %d of 100,000 later than the p99, want 1,000", longer)
	}
}

func TestLatenessIsReadFromARun(t *testing.T) {
	dir := t.TempDir()
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	var block []byte
	for i := range int64(1000) {
		x := &record.Exchange{Index: i, Due: time.Second, FirstWrite: record.At(time.Second + time.Duration(i+1)*time.Microsecond), Outcome: record.Completed}
		block = record.AppendExchange(block, x)
	}
	if err := log.WriteBlock(block, 1000); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := measuredIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.at(0.5); got < 490*time.Microsecond || got > 510*time.Microsecond {
		t.Errorf("median: got %v, want 500 µs", got)
	}
	if got := l.at(1e-9); got != time.Millisecond {
		t.Errorf("longest: got %v, want 1 ms", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := measuredIn(dir); err == nil {
		t.Error("no run: got no error")
	}
}

func TestTablesHaveTheirColumns(t *testing.T) {
	for _, table := range []string{alarms(published, 1), power(published, 1), steady(published, 1)} {
		lines := strings.Split(strings.TrimSpace(table), "\n")
		for _, line := range lines {
			if strings.Count(line, "|") != strings.Count(lines[0], "|") {
				t.Errorf("got %q, want as many columns as %q", line, lines[0])
			}
		}
	}
}
