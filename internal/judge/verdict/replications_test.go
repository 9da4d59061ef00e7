package verdict_test

import (
	"strings"
	"testing"

	"tare/internal/judge/verdict"
)

func TestFiveSoundRunsAreCertifiedAndOneBadOneIsNamed(t *testing.T) {
	run := func(class verdict.Class, gates ...verdict.Gate) verdict.Run {
		return verdict.Run{Verdict: verdict.Verdict{Class: class, Reason: "why", Gates: gates}}
	}
	passed := []verdict.Gate{{ID: "C2", Level: verdict.CertifiedLevel}, {ID: "C4", Level: verdict.NotApplicable}}
	sound, bad, server := run(verdict.Valid, passed...), run(verdict.InvalidClient), run(verdict.InvalidServer)
	short := run(verdict.Valid, verdict.Gate{ID: "C8b", Name: "stolen time", Level: verdict.Unobservable, Advisory: true})
	mute := run(verdict.Valid, append(passed, verdict.Gate{ID: "W7", Name: "cache", Level: verdict.Unobservable, Advisory: true, Untold: true})...)
	other := sound
	other.Differs = []string{"load.rate"}
	for _, c := range []struct {
		name   string
		runs   []verdict.Run
		want   verdict.Class
		reason string
		t9     verdict.Level
	}{
		{"five", []verdict.Run{sound, sound, sound, sound, sound}, verdict.Certified, "in each of 5 runs", verdict.CertifiedLevel},
		{"four", []verdict.Run{sound, sound, sound, sound}, verdict.Valid, "asks for 5", verdict.ValidLevel},
		{"one of five short of the level", []verdict.Run{sound, sound, short, sound, sound}, verdict.Valid, "run 3: C8b stolen time", verdict.CertifiedLevel},
		{"one of five bad", []verdict.Run{sound, server, bad, sound, sound}, verdict.InvalidClient, "why", verdict.CertifiedLevel},
		{"a server that does not tell", []verdict.Run{sound, mute, sound, mute, sound}, verdict.Certified, "does not tell: W7 cache", verdict.CertifiedLevel},
		{"another load among them", []verdict.Run{sound, other, sound, sound, sound}, verdict.InvalidStats, "run 2 differs from the first in load.rate", verdict.CertifiedLevel},
		{"another load among too few", []verdict.Run{sound, other}, verdict.InvalidStats, "load.rate", verdict.ValidLevel},
	} {
		got := verdict.Certify(c.runs)
		if got.Class != c.want || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: got %s (%s), want %s with %q", c.name, got.Class, got.Reason, c.want, c.reason)
		}
		if len(got.Gates) != 2 || got.Gates[0].ID != "T9" || got.Gates[0].Level != c.t9 {
			t.Errorf("%s: got gates %+v, want T9 %s, and T10", c.name, got.Gates, c.t9)
		}
	}
}
