package judge_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// worked gives a run's only loop a wait that p-k explains, and a gauge that agrees with the records.
func worked(m *record.Manifest) {
	l := &m.Loops[0]
	spans := func(n int64, each float64) record.Spans {
		return record.Spans{N: n, Sum: float64(n) * each, Squares: 2 * float64(n) * each * each, Cubes: 6 * float64(n) * each * each * each}
	}
	l.Work = record.Work{Reading: spans(100_000, 50e-6), Waiting: spans(100_000, 52e-6), Gaps: spans(100_000, 100e-6), Lag: spans(100_000, 55e-6), Steps: record.Counts{N: 100_000, Sum: 100_000, Squares: 100_000}}
	l.InFlightNs = []int64{100 * 81e6, 1000 * 81e6}
	m.Plan = record.PlanIDs{PlanID: "a", ContentID: "b", Requests: 1100, Complete: true}
}

// second is a healthy second of a machine.
func second(at float64) record.Health {
	return record.Health{
		AtMs: at, SpanMs: 1000, Cores: []record.Core{{Busy: 0.5}, {Busy: 0.1}}, CPU: &record.Spent{Ms: 100}, RunQueue: &record.Spent{Ms: 1},
		Canary: slices.Repeat([]int64{90}, 27), Throttling: &record.Throttling{Periods: 10}, TCP: &record.TCP{Sent: 1000}, Ports: &record.Room{Used: 10, Limit: 28_000}, Files: &record.Room{Used: 10, Limit: 1024},
	}
}

// judged writes a run directory and reads it.
func judged(t *testing.T, m *record.Manifest, all []*record.Exchange, health []record.Health) *judge.Summary {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	var payload []byte
	for _, x := range all {
		payload = record.AppendExchange(payload, x)
	}
	if err := log.WriteBlock(payload, len(all)); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, record.HealthFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range health {
		if err := health[i].Write(f); err != nil {
			t.Fatal(err)
		}
	}
	s, err := judge.Summarize(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// healthy is the health of a run of 11 s, one second of it changed.
func healthy(change func(*record.Health)) (all []record.Health) {
	for i := range 11 {
		h := second(float64(1000 * (i + 1)))
		if i == 6 && change != nil {
			change(&h)
		}
		all = append(all, h)
	}
	return all
}

func TestTheMachineIsDoubtedAndNotCondemned(t *testing.T) {
	for _, c := range []struct {
		gate   string
		level  verdict.Level
		change func(*record.Health)
	}{
		{"C8a", verdict.CertifiedLevel, nil},
		{"C8a", verdict.ValidLevel, func(h *record.Health) { h.Cores[1].Busy = 0.8 }},
		{"C8a", verdict.Failed, func(h *record.Health) { h.Cores[1].Busy = 0.95 }},
		{"C8b", verdict.CertifiedLevel, nil},
		{"C8b", verdict.Failed, func(h *record.Health) { h.Cores[0].Steal = 0.3 }},
		{"C8c", verdict.CertifiedLevel, nil},
		{"C8c", verdict.Failed, func(h *record.Health) { h.Throttling.StoodMs = 11 }},
		{"C7", verdict.CertifiedLevel, nil},
		{"C7", verdict.ValidLevel, func(h *record.Health) { h.Canary[0], h.Canary[1], h.Canary[2] = 4900, 4900, 4900 }},
		{"C7", verdict.Failed, func(h *record.Health) { h.Canary[0], h.Canary[1], h.Canary[2] = 5100, 5100, 5100 }},
		{"C9a", verdict.CertifiedLevel, nil},
		{"C9a", verdict.Failed, func(h *record.Health) { h.Pauses = record.Delays{N: 1, P99Ms: 1.1, MaxMs: 1.1} }},
		{"C9b", verdict.NotApplicable, func(h *record.Health) { h.Scheduler.P99Ms = 100 }},
		{"C10", verdict.CertifiedLevel, nil},
		{"C10", verdict.ValidLevel, func(h *record.Health) { h.Files.Used = 900 }},
		{"C10", verdict.Failed, func(h *record.Health) { h.Ports.Used = 27_000 }},
		{"C11", verdict.CertifiedLevel, nil},
		{"C11", verdict.Failed, func(h *record.Health) { h.TCP.Resents = 200 }},
	} {
		m := twoStages()
		worked(m)
		s := judged(t, m, requests(nil), healthy(c.change))
		if g := gate(t, s, c.gate); g.Level != c.level || !g.Advisory {
			t.Errorf("%s: got %s (%s), advisory %v, want %s, advisory", c.gate, g.Level, g.Measured, g.Advisory, c.level)
		}
		if s.Verdict.Class != verdict.Valid {
			t.Errorf("%s: got class %s, want VALID", c.gate, s.Verdict.Class)
		}
	}
	m := twoStages()
	worked(m)
	if g := gate(t, judged(t, m, requests(nil), nil), "C8b"); g.Level != verdict.Unobservable {
		t.Errorf("without samples: got %s, want unobservable", g.Level)
	}
}

func TestFiguresThatTheRecordsDoNotCarryCondemnTheRun(t *testing.T) {
	for _, c := range []struct {
		name, gate string
		level      verdict.Level
		class      verdict.Class
		edit       func(*record.Manifest)
		change     func(*record.Exchange) *record.Exchange
	}{
		{name: "a sound run", gate: "T2", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a gauge 1 % away", gate: "T2", level: verdict.Failed, class: verdict.InvalidStats, edit: func(m *record.Manifest) { m.Loops[0].InFlightNs[1] += 81e7 }},
		{name: "a gauge 0.05 % away", gate: "T2", level: verdict.CertifiedLevel, class: verdict.Valid, edit: func(m *record.Manifest) { m.Loops[0].InFlightNs[1] += 4e7 }},
		{name: "no gauge", gate: "T2", level: verdict.Unobservable, class: verdict.Valid, edit: func(m *record.Manifest) { m.Loops[0].InFlightNs = nil }},
		{name: "a plan without ids", gate: "W1", level: verdict.Unobservable, class: verdict.Valid, edit: func(m *record.Manifest) { m.Plan.Complete = false }},
		{name: "requests sent in bursts that were planned evenly", gate: "W4", level: verdict.Failed, class: verdict.InvalidClient, change: func(x *record.Exchange) *record.Exchange {
			delay(x, x.Due/(2*time.Second)*2*time.Second+2*time.Second-x.Due, record.DelayBusy)
			return x
		}},
		{name: "a reply of another length that was to be fixed", gate: "W6", level: verdict.Failed, class: verdict.InvalidWorkload, edit: func(m *record.Manifest) { m.Spec = []byte(`{"workload":{"ignore_eos":true}}`) }, change: func(x *record.Exchange) *record.Exchange {
			x.PlannedOut = 4
			if x.Index%100 == 0 {
				x.Usage.Output = 3
			}
			return x
		}},
		{name: "lengths left to the model", gate: "W6", level: verdict.NotApplicable, class: verdict.Valid, change: func(x *record.Exchange) *record.Exchange { x.PlannedOut = 9; return x }},
		{name: "an overloaded server", gate: "T4", level: verdict.Failed, class: verdict.Valid, change: func(x *record.Exchange) *record.Exchange {
			reply(x, 50*time.Millisecond+x.Due/2)
			return x
		}},
		{name: "a ramp", gate: "T4", level: verdict.NotApplicable, class: verdict.Valid, edit: func(m *record.Manifest) { m.Stages[1].RateToPerS = 200 }},
		{name: "a wait that no queue explains", gate: "C13", level: verdict.Failed, class: verdict.Valid, edit: func(m *record.Manifest) {
			m.Loops[0].Work.Waiting = record.Spans{N: 100, Sum: 10, Squares: 1, Cubes: 0.1}
		}},
		{name: "a short wait that no queue explains", gate: "C13", level: verdict.ValidLevel, class: verdict.Valid, edit: func(m *record.Manifest) {
			m.Loops[0].Work.Waiting = record.Spans{N: 100, Sum: 1e-5, Squares: 1e-9, Cubes: 1e-13}
		}},
		{name: "a loop kept from running", gate: "C8d", level: verdict.Failed, class: verdict.Valid, edit: func(m *record.Manifest) { m.Loops[0].RunQueueNs = 1e9 }},
		{name: "1000 equal requests", gate: "T5", level: verdict.CertifiedLevel, class: verdict.Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := twoStages()
			worked(m)
			if c.edit != nil {
				c.edit(m)
			}
			all := requests(c.change)
			if c.change != nil && c.gate != "T2" {
				gauge(m, all)
			}
			s := judged(t, m, all, healthy(nil))
			if g := gate(t, s, c.gate); g.Level != c.level {
				t.Errorf("%s: got %s (%s), want %s", c.gate, g.Level, g.Measured, c.level)
			}
			if s.Verdict.Class != c.class {
				t.Errorf("class: got %s (%s), want %s", s.Verdict.Class, s.Verdict.Reason, c.class)
			}
		})
	}
}

// gauge makes the loop's gauge agree with the records.
func gauge(m *record.Manifest, all []*record.Exchange) {
	m.Loops[0].InFlightNs = []int64{0, 0}
	for _, x := range all {
		from, _ := x.FirstWrite.Get()
		to, _ := x.End.Get()
		m.Loops[0].InFlightNs[x.Stage] += int64(to - from)
	}
}
