package main

import (
	"strings"
	"testing"

	"tare/internal/judge"
)

func TestLessonTakesItsNumbersFromTheSummary(t *testing.T) {
	figures := func(p99 float64) judge.Figures { return judge.Figures{P99: judge.Some(p99)} }
	s := &judge.Summary{Stages: []judge.Part{
		{Metrics: judge.Metrics{"e2e_ms": figures(3088), "e2e_from_due_ms": figures(3089)}},
		{
			PlannedRate: judge.Some(60.2), AchievedRate: judge.Some(39.9),
			Metrics: judge.Metrics{"e2e_ms": figures(201.4), "e2e_from_due_ms": figures(2595)},
		},
	}}
	got := demoLesson(s)
	for _, want := range []string{
		"reports a p99 of 201 ms", "p99 is 2595 ms", "3089 ms, and 3088 ms even from send", "Of 60 requests/s that were due, 40 were sent",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%swant %q in it", got, want)
		}
	}
}

func TestDemoGoesPastTheCapacity(t *testing.T) {
	service := demoTTFT + (demoTokens-1)*demoGap
	if got := demoSlots / service.Seconds(); got != demoCapacity {
		t.Errorf("capacity: got %v requests/s, want %v", got, demoCapacity)
	}
	stages := demoSpec("http://127.0.0.1:1", "").Load.Stages
	last, before := stages[len(stages)-1], stages[len(stages)-2]
	if before.Rate <= demoCapacity || last.Rate != before.Rate || last.MaxInFlight != demoSlots || before.MaxInFlight != 0 {
		t.Errorf("got stages %+v, want the last two alike, past capacity, the last limited to the server's slots", stages)
	}
}
