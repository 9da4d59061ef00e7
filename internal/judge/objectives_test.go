package judge_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/objective"
	"tare/internal/record"
)

// asking is a run like twoStages whose spec has more keys.
func asking(spec string) *record.Manifest {
	m := twoStages()
	m.Spec = json.RawMessage(spec)
	return m
}

// someSlow makes requests slow by their index: a TTFT of 500 ms in place of 50.
func someSlow(slow func(i int64) bool) func(*record.Exchange) *record.Exchange {
	return func(x *record.Exchange) *record.Exchange {
		if slow(x.Index) {
			reply(x, 500*time.Millisecond)
		}
		return x
	}
}

func objectives(t *testing.T, spec string, change func(*record.Exchange) *record.Exchange) *judge.Objectives {
	t.Helper()
	s := summarize(t, asking(spec), requests(change))
	if s.Stages[0].Objectives != nil {
		t.Error("the warm-up has objectives")
	}
	if s.Total.Objectives == nil {
		t.Fatal("the total has no objectives")
	}
	return s.Total.Objectives
}

// Of the measured 1,000 requests every fourth is slow, and every tenth fails: 10, 20, … of which every other is a slow one too.
func TestAttainmentIsOfAllPlannedRequests(t *testing.T) {
	o := objectives(t, `{"slo":["ttft<100ms","e2e<10s"],"slo_target":0.9}`, func(x *record.Exchange) *record.Exchange {
		x = someSlow(func(i int64) bool { return i%4 == 0 })(x)
		if x.Index%10 == 0 {
			fail(x, record.HTTPError, "overloaded")
		}
		return x
	})
	if o.Planned != 1000 || o.Good != 700 || o.Unsure != 0 {
		t.Errorf("got %d planned, %d good, %d unsure, want 1000, 700, 0", o.Planned, o.Good, o.Unsure)
	}
	number(t, "attainment", o.Attainment.Value, 0.7)
	if o.Decision != "no go" {
		t.Errorf("decision: got %q (%s), want no go", o.Decision, o.Reason)
	}
	want := []judge.Each{{Objective: "ttft<100ms", Kept: 700, Missed: 200}, {Objective: "e2e<10s", Kept: 900}}
	if !slices.Equal(o.Each, want) {
		t.Errorf("each: got %+v, want %+v", o.Each, want)
	}
}

// A reply that was cut off had all its tokens in time.
func TestWhatDidNotCompleteIsNotGood(t *testing.T) {
	o := objectives(t, `{"slo":["ttft<100ms","tpot<20ms"]}`, func(x *record.Exchange) *record.Exchange {
		if x.Index%2 == 0 {
			x.Outcome = record.Truncated
		}
		return x
	})
	if o.Good != 500 {
		t.Errorf("got %d good of 1,000, want 500", o.Good)
	}
	number(t, "fluidity", o.Fluidity.Mean, 0.5)
	number(t, "smooth goodput, in which its tokens count", o.SmoothGoodput, 400)
}

// Five late requests of 1,000 are a go; as five neighbours they are one event, and the rest may be as worth.
func TestTheDecisionCountsWhatRequestsAreWorth(t *testing.T) {
	for name, tt := range map[string]struct {
		slow func(i int64) bool
		want string
	}{
		"scattered":  {func(i int64) bool { return i%200 == 50 }, "go"},
		"in a clump": {func(i int64) bool { return i >= 500 && i < 505 }, "undecided"},
	} {
		o := objectives(t, `{"slo":["ttft<100ms"]}`, someSlow(tt.slow))
		if o.Good != 995 || o.Decision != tt.want {
			t.Errorf("%s: got %d good, %s (%s), n_eff %v, want 995, %s", name, o.Good, o.Decision, o.Reason, o.Effective, tt.want)
		}
	}
}

// A window has 100 requests a second, each of four tokens, that end within it but for those of its last moments. Half of them are slow.
func TestGoodputIsWhatGoodRequestsDidInTheWindow(t *testing.T) {
	spec := `{"slo":["ttft<100ms","tpot<20ms"]}`
	all := summarize(t, asking(spec), requests(nil))
	number(t, "request goodput when all are good", all.Total.Objectives.RequestGoodput, rate(t, all.Total.CompletedRate))
	number(t, "token goodput when all are good", all.Total.Objectives.TokenGoodput, rate(t, all.Total.OutputRate))
	number(t, "smooth goodput when none waits", all.Total.Objectives.SmoothGoodput, 4*rate(t, all.Total.CompletedRate))
	number(t, "fluidity when none waits", all.Total.Objectives.Fluidity.Mean, 1)
	if got := all.Total.Objectives.Decision; got != "go" {
		t.Errorf("decision when all are good: got %q, want go", got)
	}

	half := summarize(t, asking(spec), requests(someSlow(func(i int64) bool { return i%2 == 1 })))
	o := half.Total.Objectives
	number(t, "attainment", o.Attainment.Value, 0.5)
	number(t, "request goodput", o.RequestGoodput, 50)
	number(t, "token goodput", o.TokenGoodput, 200)
	// A slow reply is 400 ms late: all of its four tokens of 20 ms could have been read. It misses 1 + 400/20 deadlines, and then meets three.
	number(t, "smooth goodput", o.SmoothGoodput, 200)
	number(t, "fluidity", o.Fluidity.Mean, 0.5*(1+float64(125_000)/1e6))
	number(t, "fluidity p1", o.Fluidity.P1, 0.125)
}

func rate(t *testing.T, n judge.Number) float64 {
	t.Helper()
	v, ok := n.Get()
	if !ok {
		t.Fatal("the rate is undefined")
	}
	return v
}

func TestObjectivesOfAllTogetherAreMetMissedOrOpen(t *testing.T) {
	scattered := func(share int64) func(i int64) bool {
		return func(i int64) bool { return i*7919%1000 < share }
	}
	for _, tt := range []struct {
		objective string
		slow      int64 // of 1,000
		want      judge.Result
	}{
		{"ttft.p90<100ms", 50, judge.Met},
		{"ttft.p90<100ms", 200, judge.Missed},
		{"ttft.p90<100ms", 100, judge.CannotTell},
		{"ttft.p99<100ms", 0, judge.Met},
		{"ttft.p99<500ms", 100, judge.Missed}, // the limit itself
		{"ttft.p99<=500ms", 100, judge.Met},
		{"tpot.p99<=10ms", 0, judge.Met},
		{"tpot.p50<10ms", 0, judge.Missed},
		{"stall.p95<11ms", 500, judge.Met},
		{"e2e.mean<100ms", 10, judge.Met},
		{"e2e.mean<100ms", 200, judge.Missed},
		{"error_rate<1%", 0, judge.Met},
	} {
		o := objectives(t, fmt.Sprintf(`{"slo":[%q]}`, tt.objective), someSlow(scattered(tt.slow)))
		if got := o.Together; len(got) != 1 || got[0].Result != tt.want {
			t.Errorf("%s with %d of 1,000 slow: got %+v, want %s", tt.objective, tt.slow, got, tt.want)
		}
		if _, ok := o.Attainment.Value.Get(); ok || o.Decision != "" {
			t.Errorf("%s: got an attainment, though nothing is asked of each request", tt.objective)
		}
	}
}

func TestFailuresCountAgainstObjectivesOfAll(t *testing.T) {
	failing := func(every int64) func(*record.Exchange) *record.Exchange {
		return func(x *record.Exchange) *record.Exchange {
			if x.Index*7919%1000 < every {
				fail(x, record.Reset, "reset")
			}
			return x
		}
	}
	for _, tt := range []struct {
		objective string
		failed    int64 // of 1,000
		want      judge.Result
	}{
		{"ttft.p90<1s", 50, judge.Met},
		{"ttft.p90<1s", 200, judge.Missed},
		{"tpot.p90<1s", 200, judge.Missed},
		{"stall.p90<1s", 200, judge.Missed},
		{"e2e.mean<1s", 1, judge.CannotTell},
		{"e2e.mean<10ms", 1, judge.Missed},
		{"error_rate<1%", 100, judge.Missed},
		{"error_rate<10%", 100, judge.CannotTell},
		{"error_rate<20%", 100, judge.Met},
		{"error_rate<=0", 0, judge.CannotTell},
		{"error_rate<=0", 1, judge.Missed},
	} {
		o := objectives(t, fmt.Sprintf(`{"slo":[%q]}`, tt.objective), failing(tt.failed))
		if got := o.Together; len(got) != 1 || got[0].Result != tt.want {
			t.Errorf("%s with %d of 1,000 failed: got %+v, want %s", tt.objective, tt.failed, got, tt.want)
		}
	}
}

// A fifth of the requests are given up after 2 s, in which they got one token and stalled, or none.
func TestWhatWasGivenUpCountsUntilThen(t *testing.T) {
	givenUp := func(tokens int) func(*record.Exchange) *record.Exchange {
		return func(x *record.Exchange) *record.Exchange {
			if x.Index*7919%1000 < 200 {
				x.Outcome, x.Usage, x.Events = record.TimedOut, record.Usage{}, x.Events[:tokens]
				if tokens > 1 {
					x.Events[1].KernelAt += 1500 * time.Millisecond
				}
				x.End = record.At(x.Due + 2*time.Second)
			}
			return x
		}
	}
	for _, tt := range []struct {
		objective string
		tokens    int
		want      judge.Result
	}{
		{"stall.p90<1s", 2, judge.Missed},
		{"stall.p90<1s", 0, judge.Missed}, // nobody's, and not as the others'
		{"stall.p70<1s", 2, judge.Met},
		{"first_event.p90<1s", 2, judge.Met}, // it had come
		{"first_event.p90<1s", 0, judge.Missed},
		{"first_answer.p90<3s", 0, judge.CannotTell},
		{"tpot.p90<1s", 2, judge.Missed}, // nobody's
	} {
		o := objectives(t, fmt.Sprintf(`{"slo":[%q]}`, tt.objective), givenUp(tt.tokens))
		if got := o.Together; len(got) != 1 || got[0].Result != tt.want {
			t.Errorf("%s, given up after %d tokens: got %+v, want %s", tt.objective, tt.tokens, got, tt.want)
		}
	}
}

// A quantile that an objective looks at is the one of all_planned.
func TestObjectivesAreOnTheQuantilesOfAllPlanned(t *testing.T) {
	s := summarize(t, asking(`{"slo":["ttft.p99<1s","e2e_from_due.p95<1s"]}`), requests(someSlow(func(i int64) bool { return i%13 == 0 })))
	p := s.Stages[1]
	if got, want := p.Objectives.Together[0].Estimate, p.AllPlanned[measure.TTFT].P99; got != want {
		t.Errorf("ttft.p99: got %+v, want %+v", got, want)
	}
	if got, want := p.Objectives.Together[1].Estimate, p.AllPlanned[measure.E2EFromDue].P95; got != want {
		t.Errorf("e2e_from_due.p95: got %+v, want %+v", got, want)
	}
}

func TestFewRequestsCanMissAQuantileButNotMeetIt(t *testing.T) {
	few := func(slow int64) *judge.Objectives {
		m := asking(`{"slo":["ttft.p99<100ms"]}`)
		m.Stages[1].Planned = 60
		s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
			if x.Index >= 160 {
				return nil
			}
			return someSlow(func(i int64) bool { return i*7919%60 < slow })(x)
		}))
		return s.Stages[1].Objectives
	}
	if got := few(0).Together[0]; got.Result != judge.CannotTell || got.Reason == "" {
		t.Errorf("60 in time: got %+v, want that nobody can tell, and why", got)
	}
	if got := few(20).Together[0]; got.Result != judge.Missed {
		t.Errorf("20 of 60 late: got %+v, want missed", got)
	}
}

// An overloaded stage is good at its start and bad at its end: nothing can be inferred from that, and it is no go.
func TestAStageThatTurnsBadIsNoGo(t *testing.T) {
	o := objectives(t, `{"slo":["ttft<100ms"]}`, someSlow(func(i int64) bool { return i > 700 }))
	if o.Decision != "no go" || !strings.Contains(o.Reason, "by the share seen") {
		t.Errorf("got %q (%s), want no go by the share seen", o.Decision, o.Reason)
	}
	if _, ok := o.Attainment.Low.Get(); ok {
		t.Error("got an interval, want none")
	}
}

func TestOneTokenHasNoTimeBetweenTokensToMiss(t *testing.T) {
	spec := `{"slo":["tpot<20ms","stall<20ms"]}`
	for name, tt := range map[string]struct {
		change    func(x *record.Exchange)
		good      int64
		undefined int64
	}{
		"one token":                       {func(x *record.Exchange) { x.Events, x.Usage.Output = x.Events[:1], 1 }, 1000, 0},
		"tokens that nobody counted":      {func(x *record.Exchange) { x.Usage = record.Usage{} }, 0, 1000},
		"a document in place of a stream": {func(x *record.Exchange) { x.Events = nil }, 0, 1000},
	} {
		o := objectives(t, spec, func(x *record.Exchange) *record.Exchange { tt.change(x); return x })
		if o.Good != tt.good || o.Each[0].Undefined != tt.undefined {
			t.Errorf("%s: got %d good, tpot undefined %d, want %d, %d", name, o.Good, o.Each[0].Undefined, tt.good, tt.undefined)
		}
	}
}

// Two tokens come in one read 120 ms after the send; the first may have come any time before.
func TestWhatHingesOnMergedReadsIsUnsure(t *testing.T) {
	merge := func(x *record.Exchange) *record.Exchange {
		reply(x, 120*time.Millisecond)
		x.Events[0].Flags |= record.FlagMerged
		x.Events[1].KernelAt, x.Events[1].UserAt = x.Events[0].KernelAt, x.Events[0].UserAt
		return x
	}
	for spec, want := range map[string][2]int64{ // good, unsure
		`{"slo":["ttft<100ms"]}`: {0, 1000},
		`{"slo":["ttft<130ms"]}`: {1000, 0},
	} {
		if o := objectives(t, spec, merge); o.Good != want[0] || o.Unsure != want[1] {
			t.Errorf("%s: got %d good, %d unsure, want %v", spec, o.Good, o.Unsure, want)
		}
	}
}

func TestClassesAreHeldToTheirOwnObjectives(t *testing.T) {
	spec := `{"slo":["ttft<1s","ttft.p90<200ms"],"workload":{"classes":[{"name":"gold","slo":["ttft<100ms","ttft.p90<100ms"]},{"name":"free"}]}}`
	s := summarize(t, asking(spec), requests(func(x *record.Exchange) *record.Exchange {
		x.Class = "free"
		if x.Index%4 == 0 {
			x.Class = "gold"
		}
		return someSlow(func(i int64) bool { return i%8 == 0 })(x)
	}))
	if o := s.Total.Objectives; o.Good != 875 || len(o.Each) != 2 || o.Each[1] != (judge.Each{Objective: "ttft<100ms", Class: "gold", Kept: 125, Missed: 125}) {
		t.Errorf("total: got %d good, %+v, want 875, and gold kept and missed by 125", o.Good, o.Each)
	}
	free, gold := s.Classes[0].Objectives, s.Classes[1].Objectives
	if free.Good != 750 || free.Planned != 750 || free.Decision != "go" || free.Together[0].Result != judge.Met {
		t.Errorf("free: got %+v, want 750 of 750 good, go, and met", free)
	}
	if gold.Good != 125 || gold.Planned != 250 || gold.Decision != "no go" || gold.Together[0].Result != judge.Missed || len(gold.Each) != 1 {
		t.Errorf("gold: got %+v, want 125 of 250 good, no go, and missed", gold)
	}
	sum := rate(t, free.RequestGoodput) + rate(t, gold.RequestGoodput)
	number(t, "goodput of the total", s.Total.Objectives.RequestGoodput, sum)
	missed, open := s.Misses()
	if len(missed) != 4 || len(open) != 0 || !slices.Contains(missed, "stage steady: ttft.p90<100ms of class gold") {
		t.Errorf("got %q missed, %q open, want the stage and gold, each with both", missed, open)
	}
}

func TestRequestsPlannedForAfterAStopAreAskedNothing(t *testing.T) {
	m := asking(`{"slo":["ttft<100ms"]}`)
	m.State.Cause, m.Stages[1].EndMs = "interrupted", 6000
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		if x.Due >= 6*time.Second {
			fail(x, record.NotSent, "")
		}
		return x
	}))
	o := s.Total.Objectives
	if o.Planned != 500 || o.Good != 500 {
		t.Errorf("got %d good of %d, want 500 of 500", o.Good, o.Planned)
	}
	number(t, "attainment", o.Attainment.Value, 1)
}

func TestARunWithoutObjectivesHasNone(t *testing.T) {
	for _, spec := range []string{``, `{}`, `{"slo_target":0.9}`} {
		m := asking(spec)
		s := summarize(t, m, requests(nil))
		text, err := json.Marshal(s)
		if err != nil || s.SLO != nil || strings.Contains(string(text), "objectives") {
			t.Errorf("%q: got %v, %v, want no word of objectives", spec, s.SLO, err)
		}
	}
}

func TestAnObjectiveThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := judge.Begin(asking(`{"slo":["latency<1s"]}`)); err == nil || !strings.Contains(err.Error(), "latency") {
		t.Errorf("got %v, want it named", err)
	}
}

// Every metric that can be asked for is a row of the table, with one value for each reply.
func TestEveryObjectiveHasItsMetric(t *testing.T) {
	rows := map[string]measure.Metric{}
	for _, m := range measure.Table() {
		rows[m.Name] = m
	}
	for _, name := range objective.Metrics() {
		o, fault := objective.Parse(name + "<1")
		if name != objective.ErrorRate {
			o, fault = objective.Parse(name + "<1s")
		}
		if fault != nil {
			t.Fatal(fault)
		}
		if m, ok := rows[o.Metric]; o.Metric != objective.ErrorRate && (!ok || m.One == nil || m.Unit != measure.Milliseconds) {
			t.Errorf("%s: got the row %+v, want one in ms with one value", name, m)
		}
	}
}

// In the first stage only gold completes, in the second only free does: neither has counts of the other's objectives.
func TestStagesOfDifferentClassesAddUp(t *testing.T) {
	m := asking(`{"slo":["ttft<1s"],"workload":{"classes":[{"name":"free"},{"name":"gold","slo":["ttft<100ms"]}]}}`)
	m.Stages[0].Warmup = false
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		x.Class = "free"
		if x.Index < 100 {
			x.Class = "gold"
		}
		return x
	}))
	want := []judge.Each{{Objective: "ttft<1s", Kept: 1000}, {Objective: "ttft<100ms", Class: "gold", Kept: 100}}
	if got := s.Total.Objectives.Each; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Student's interval of 1, 0.9 and 1 reaches beyond 1.
func TestRunsTogetherHaveTheirAttainment(t *testing.T) {
	var runs []*judge.Summary
	for _, slow := range []int64{0, 100, 0} {
		runs = append(runs, summarize(t, asking(`{"slo":["ttft<100ms"]}`), requests(someSlow(func(i int64) bool { return i*7919%1000 < slow }))))
	}
	r := judge.Replicated("", runs)
	a := r.Objectives["attainment"]
	near(t, "mean attainment", valueOf(a.Mean), 2.9/3)
	number(t, "upper end", a.High, 1)
	near(t, "lower end", valueOf(a.Low), 2.9/3-4.302653*math.Sqrt(0.01/9))
	if g := r.Objectives["request_goodput_per_s"]; g.Runs != 3 || valueOf(g.High) <= valueOf(g.Mean) {
		t.Errorf("goodput: got %+v, want three runs and their interval", g)
	}
	if a := judge.Replicated("", []*judge.Summary{summarize(t, twoStages(), requests(nil))}); a.Objectives != nil {
		t.Errorf("got %v of runs that were asked nothing, want none", a.Objectives)
	}
}
