package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/judge"
	"tare/internal/record"
)

// One loop is offered four times what it can serve, and several loops each a part of what they can.
func TestALaboratoryShowsAFullLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	if !drive.HasEpoll() {
		t.Skip("engine epoll does not run here")
	}
	tare, err := exec.LookPath("tare")
	if err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	out, err := exec.Command(tare, "bias", "--service", "1ms", "--window", "300ms", "--load", "0.2,4", "--loops", "1", "--traffic", "mixed", "--json", "--out", kept).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema string
		Steps  []biasStep
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("got %q: %v", out, err)
	}
	if got.Schema != "tare.bias/v1" || len(got.Steps) != 2 {
		t.Fatalf("got %s", out)
	}
	full := got.Steps[1]
	if m, err := record.ReadManifest(filepath.Join(kept, "mixed-loops-1-load-4")); err != nil || !m.State.Complete {
		t.Errorf("run directory kept of the step at 4: got %+v, %v, want one of a complete run", m, err)
	}
	if !slices.Contains(full.Failed, "C1") {
		t.Errorf("at ρ = 4: got failed gates %q, want C1 among them", full.Failed)
	}
	if full.Load != 4 || full.Done >= full.Asked/2 {
		t.Errorf("at ρ = 4: got %v of %v requests/s done, want less than half", full.Done, full.Asked)
	}
	kernel, _ := full.KernelTTFT.P50.Get()
	user, _ := full.UserTTFT.P50.Get()
	if user <= kernel {
		t.Errorf("at ρ = 4: got %v ms by the clock of a full loop, %v ms by the kernel's, want the former to hold the queue", user, kernel)
	}
	for _, s := range got.Steps {
		if !slices.ContainsFunc(s.Models, func(p judge.Prediction) bool { return p.Model == "p-k" }) || s.Traffic != "mixed" || s.Loops != 1 {
			t.Errorf("got step %+v, want one of mixed traffic on one loop, with predictions", s)
		}
	}
}

func TestTheClosestFormulaIsNamed(t *testing.T) {
	some := judge.Some
	for _, c := range []struct {
		models []judge.Prediction
		want   string
	}{
		{[]judge.Prediction{{Model: "p-k", Ratio: some(0.4)}, {Model: "kingman", Ratio: some(1.9)}, {Model: "batch drain", Ratio: some(0.7)}}, "batch drain"},
		{[]judge.Prediction{{Model: "p-k", Ratio: some(0.4)}, {Model: "kingman", Ratio: some(2.1)}, {Model: "lindley", Ratio: some(1)}}, ""},
		{[]judge.Prediction{{Model: "p-k"}, {Model: "kingman", Ratio: some(0)}}, ""},
	} {
		if got := closest(c.models); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.models, got, c.want)
		}
	}
}

// The stamps of a read that took the first token together with later ones are later than it.
func TestFirstTokensAreReadByBothClocks(t *testing.T) {
	dir := t.TempDir()
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	exchange := func(index int64, stage, tokens int, flags record.Flags) []byte {
		return record.AppendExchange(nil, &record.Exchange{
			Index: index, Stage: stage, FirstWrite: record.At(10 * ms), PlannedOut: tokens, Outcome: record.Completed, Attempts: 1,
			Events: []record.Event{
				{KernelAt: 11 * ms, UserAt: 11 * ms, Kind: record.KindRole},
				{KernelAt: 15 * ms, UserAt: 40 * ms, Kind: record.KindContent, Flags: flags | record.FlagStamped},
				{KernelAt: 90 * ms, UserAt: 90 * ms, Kind: record.KindContent},
			},
		})
	}
	for i, x := range [][]byte{exchange(0, 0, 2, 0), exchange(1, 1, 2, 0), exchange(2, 1, 2, record.FlagMerged), exchange(3, 1, 1, record.FlagMerged), exchange(4, 1, 2, 0)} {
		if err := log.WriteBlock(x, 1); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var s biasStep
	m := record.Manifest{Schema: record.ManifestSchema, Stages: []record.Stage{{Warmup: true}, {}}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.readFirstTokens(dir); err != nil {
		t.Fatal(err)
	}
	kernel, _ := s.KernelTTFT.P50.Get()
	user, _ := s.UserTTFT.P99.Get()
	if kernel < 4.9 || kernel > 5.1 || user < 29.5 || user > 30.5 || s.Merged != 0.25 {
		t.Errorf("got %v ms by the kernel's stamps, %v ms by our clock, %v merged, want 5, 30 and a quarter", kernel, user, s.Merged)
	}
}
