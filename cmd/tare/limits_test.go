package main

import (
	"strings"
	"testing"

	"tare/internal/record"
)

func TestLimitsRefuseWhatSurelyDoesNotFit(t *testing.T) {
	env := record.Environment{OpenFiles: 1024, PortRange: "32768-33767"}
	for _, c := range []struct {
		name    string
		demand  demand
		refused string // part of the error
		warned  string // part of the warnings
	}{
		{name: "fits", demand: demand{sure: 960, possible: 960}},
		{name: "too many files", demand: demand{sure: 961}, refused: "961 connections are asked for, and open files (RLIMIT_NOFILE) allow 960"},
		{name: "perhaps too many files", demand: demand{possible: 961}, warned: "open files (RLIMIT_NOFILE) allow 960"},
		{name: "perhaps too many ports", demand: demand{possible: 1001}, warned: "local ports to one address (32768-33767) allow 1000"},
	} {
		warnings, err := checkLimits(c.demand, limitsOf(env))
		if got := strings.Join(warnings, "\n"); !strings.Contains(got, c.warned) || c.warned == "" && got != "" {
			t.Errorf("%s: warnings: got %q, want %q", c.name, got, c.warned)
		}
		if got := text(err); !strings.Contains(got, c.refused) || c.refused == "" && got != "" {
			t.Errorf("%s: error: got %q, want %q", c.name, got, c.refused)
		}
	}
}

func TestALimitThatLeavesNoConnectionIsRefused(t *testing.T) {
	for _, files := range []uint64{1, 20, spareFiles} {
		_, err := checkLimits(demand{sure: 1}, limitsOf(record.Environment{OpenFiles: files}))
		if e := asExit(err); err == nil || e.code != exitUsage || !strings.Contains(e.text(), "leave none for connections, 64 are for other uses\nhint: ulimit -n 1024") {
			t.Errorf("%d open files: got %v, want a refusal with a hint", files, err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestUnknownLimitsRefuseNothing(t *testing.T) {
	warnings, err := checkLimits(demand{sure: 1e6, possible: 1e6}, limitsOf(record.Environment{}))
	if err != nil || warnings != nil {
		t.Errorf("got warnings %q and error %v, want none", warnings, err)
	}
}

func TestARemedyComesWithTheRefusal(t *testing.T) {
	_, err := checkLimits(demand{sure: 2000}, limitsOf(record.Environment{PortRange: "32768-33767"}))
	if e := asExit(err); e.code != exitUsage || !strings.Contains(e.text(), "\nhint: widen the range") {
		t.Errorf("got code %d and %q, want 2 and a hint to widen the range", e.code, e.text())
	}
}
