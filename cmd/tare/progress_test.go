package main

import (
	"strings"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
)

func TestProgressWritesALineEachFiveSeconds(t *testing.T) {
	var b strings.Builder
	d := newDisplay(&b, &plan.Plan{Stages: []plan.Stage{{Name: "20/s", Rate: 20, RateTo: 20}}})
	for at := time.Duration(0); at <= 10*time.Second; at += 250 * time.Millisecond {
		d.show(drive.Progress{
			At: at, End: 30 * time.Second, Stage: "20/s", InFlight: 3, Done: 90, Failed: 1, RatePerS: 19.87, TokensPerS: 640,
			SlipP99: 40 * time.Microsecond, LagP99: 120 * time.Microsecond,
		})
	}
	want := "0:05 (0:25 left)  20/s: 19.9 of 20.0/s  3 in flight  90 done  1 failed  640 tokens/s  p99 slip 0.04 ms, lag 0.12 ms\n" +
		"0:10 (0:20 left)  20/s: 19.9 of 20.0/s  3 in flight  90 done  1 failed  640 tokens/s  p99 slip 0.04 ms, lag 0.12 ms\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNoDisplayShowsNothing(t *testing.T) {
	var d *display
	d.show(drive.Progress{At: time.Minute})
	d.clear()
}

func TestBarFollowsTheRun(t *testing.T) {
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{-time.Second, "[          ] 0:11 left"},
		{5 * time.Second, "[=====     ] 0:05 left"},
		{15 * time.Second, "[==========] 0:00 left"},
	} {
		if got := progressOf(drive.Progress{At: c.at, End: 10 * time.Second}); got != c.want {
			t.Errorf("at %v: got %q, want %q", c.at, got, c.want)
		}
	}
	if got := progressOf(drive.Progress{At: time.Second}); got != "0:01" {
		t.Errorf("without a known end: got %q, want the time gone", got)
	}
}

func TestANarrowTerminalGetsWholePartsOnly(t *testing.T) {
	parts := []string{"[=] 0:05 left", "a: 20", "3 in flight"}
	for width, want := range map[int]string{
		0: "[=] 0:05 left  a: 20  3 in flight", 34: "[=] 0:05 left  a: 20  3 in flight", 33: "[=] 0:05 left  a: 20", 5: "[=] 0:05 left",
	} {
		if got := fitting(parts, width); got != want {
			t.Errorf("width %d: got %q, want %q", width, got, want)
		}
	}
}
