package judge_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// twoStages is a complete run: a warm-up of 1 s, then 10 s at 100 requests per second.
func twoStages() *record.Manifest {
	return &record.Manifest{
		Schema: record.ManifestSchema,
		Stages: []record.Stage{
			{Name: "warmup", Warmup: true, Kind: "open", StartMs: 0, EndMs: 1000, Planned: 100, RatePerS: 100},
			{Name: "steady", Kind: "open", StartMs: 1000, EndMs: 11000, Planned: 1000, RatePerS: 100},
		},
		Target: record.Target{URL: "http://127.0.0.1:8000", Model: "m", Endpoint: "openai-chat", Stream: true},
		Client: record.Client{Engine: "epoll", Loops: 1, KernelStamps: true},
		Clock:  record.Clock{StartWall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), StartMonotonicNs: 1},
		Loops:  []record.Loop{{WallNs: 10e9, CPUNs: 1e9}},
		State:  record.State{Complete: true, EndMs: 11200, CPUMs: 900},
	}
}

// request is one of the run: due every 10 ms, sent at once, TTFT 50 ms, four tokens 10 ms apart, end 1 ms after the last.
func request(i int64) *record.Exchange {
	due := time.Duration(i) * 10 * time.Millisecond
	x := &record.Exchange{
		Index: i, Session: i, Stage: 1, Due: due, Issued: record.At(due), ConnReady: record.At(due), FirstWrite: record.At(due),
		Outcome: record.Completed, Status: 200, FinishReason: "length", Usage: record.Usage{Known: true, Input: 8, Output: 4}, Reads: 4,
	}
	if i < 100 {
		x.Stage = 0
	}
	reply(x, 50*time.Millisecond)
	return x
}

// reply gives x four tokens, the first at ttft after its send.
func reply(x *record.Exchange, ttft time.Duration) {
	sent, _ := x.FirstWrite.Get()
	x.Events = nil
	at := sent + ttft
	for range 4 {
		x.Events = append(x.Events, record.Event{KernelAt: at, UserAt: at + 20*time.Microsecond, Kind: record.KindContent, Flags: record.FlagStamped})
		at += 10 * time.Millisecond
	}
	x.End = record.At(at - 9*time.Millisecond)
}

// delay makes x late by slip, and its reply with it. As with real senders, the connection is taken at the moment of the send.
func delay(x *record.Exchange, slip time.Duration, why record.Delay) {
	x.FirstWrite, x.Delay = record.At(x.Due+slip), why
	x.Issued, x.ConnReady = x.FirstWrite, x.FirstWrite
	reply(x, 50*time.Millisecond)
}

// fail ends x without tokens.
func fail(x *record.Exchange, o record.Outcome, message string) {
	x.Outcome, x.Error, x.Events, x.Usage, x.FinishReason = o, message, nil, record.Usage{}, ""
	if o == record.NotSent {
		x.Issued, x.ConnReady, x.FirstWrite, x.End, x.Status = record.Instant{}, record.Instant{}, record.Instant{}, record.Instant{}, 0
	}
	if o == record.ConnectFailed {
		x.ConnReady, x.FirstWrite, x.Status = record.Instant{}, record.Instant{}, 0
	}
}

// requests are the run's 1,100; change may alter one, or drop it by returning nil.
func requests(change func(*record.Exchange) *record.Exchange) (all []*record.Exchange) {
	for i := range int64(1100) {
		x := request(i)
		if change != nil {
			x = change(x)
		}
		if x != nil {
			all = append(all, x)
		}
	}
	return all
}

func summarize(t *testing.T, m *record.Manifest, all []*record.Exchange) *judge.Summary {
	t.Helper()
	l, err := judge.Begin(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if err := l.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	return l.Finish(record.Tail{})
}

func number(t *testing.T, what string, n judge.Number, want float64) {
	t.Helper()
	if got, ok := n.Get(); !ok || got != want {
		t.Errorf("%s: got %v (defined %v), want %v", what, got, ok, want)
	}
}

func gate(t *testing.T, s *judge.Summary, id string) verdict.Gate {
	t.Helper()
	for _, g := range s.Verdict.Gates {
		if g.ID == id {
			return g
		}
	}
	t.Fatalf("no gate %s", id)
	return verdict.Gate{}
}

func TestFiguresOfAConstantRunAreExact(t *testing.T) {
	s := summarize(t, twoStages(), requests(nil))
	if s.Verdict.Class != verdict.Valid {
		t.Errorf("class: got %s (%s), want VALID", s.Verdict.Class, s.Verdict.Reason)
	}
	p := s.Total
	if p.Planned != 1000 || p.Sent != 1000 || p.Outcomes.Completed != 1000 {
		t.Errorf("total: got %d planned, %d sent, %d completed, want 1000 each: the warm-up stays out", p.Planned, p.Sent, p.Outcomes.Completed)
	}
	number(t, "planned rate", p.PlannedRate, 100)
	number(t, "achieved rate", p.AchievedRate, 100)
	want := map[string]float64{measure.Slip: 0, measure.TTFT: 50, measure.ICL: 10, measure.ITL: 10, measure.Stall: 10, measure.TPOT: 10,
		measure.NTPOT: 81.0 / 4, measure.E2E: 81, measure.E2EFromDue: 81, measure.OutputTokens: 4, measure.InputTokens: 8, measure.ReceiveLag: 0.02}
	for name, v := range want {
		f := p.Metrics[name]
		number(t, name+" mean", f.Mean, v)
		number(t, name+" p50", f.P50, v)
		number(t, name+" p99.9", f.P999, v)
		if f.Undefined != 0 {
			t.Errorf("%s: got %d undefined, want 0", name, f.Undefined)
		}
	}
	if s.Stages[0].Planned != 100 || s.Stages[0].Outcomes.Completed != 100 {
		t.Errorf("the warm-up is not listed with its 100 requests: %+v", s.Stages[0].Outcomes)
	}
}

func TestTokensCountInTheWindowTheyArriveIn(t *testing.T) {
	s := summarize(t, twoStages(), requests(nil))
	// First tokens arrive every 10 ms from 50 ms on, the fourth 30 ms later. In [1 s, 11 s) arrive those of the requests sent
	// in [0.95 s, 10.95 s), and so on: 1,000 of each.
	number(t, "output tokens per second", s.Total.OutputRate, 400)
	number(t, "input tokens per second", s.Total.InputRate, 800)
	// The warm-up's window holds only those that came before its end: 95, 94, 93 and 92 tokens.
	number(t, "output tokens per second in the warm-up", s.Stages[0].OutputRate, 374)
}

func TestOutcomesAddUpToPlanned(t *testing.T) {
	outcomes := record.Outcomes
	s := summarize(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange {
		if o := outcomes[x.Index%10]; o != record.Completed {
			fail(x, o, "")
		}
		if x.Index%50 == 49 {
			return nil
		}
		return x
	}))
	for _, p := range append(s.Stages, s.Total) {
		if got := p.Outcomes.Sum() + p.Missing; got != p.Planned {
			t.Errorf("%s: got %d outcomes and unrecorded, want %d planned", p.Name, got, p.Planned)
		}
	}
	if s.Total.Missing != 20 || s.Total.Outcomes.NotSent != 80 {
		t.Errorf("got %d unrecorded and %d not sent, want 20 and 80", s.Total.Missing, s.Total.Outcomes.NotSent)
	}
	if g := gate(t, s, "T1"); g.Level != verdict.Failed {
		t.Errorf("T1: got %s, want failed", g.Level)
	}
}

func TestLatenciesLeaveFailedRequestsOutAndSlipKeepsThem(t *testing.T) {
	s := summarize(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange {
		if x.Index%4 == 0 {
			x.End = record.At(x.Due)
			fail(x, record.HTTPError, "overloaded")
		}
		return x
	}))
	if got := s.Total.Metrics[measure.E2E]; got.N != 750 || got.Undefined != 0 {
		t.Errorf("e2e: got n %d, undefined %d, want 750 and 0", got.N, got.Undefined)
	}
	if got := s.Total.Metrics[measure.Slip].N; got != 1000 {
		t.Errorf("slip: got n %d, want 1000", got)
	}
	if s.Verdict.Class != verdict.InvalidServer {
		t.Errorf("class: got %s, want INVALID-SERVER", s.Verdict.Class)
	}
}

func TestOrderOfTheLogDoesNotMatter(t *testing.T) {
	all := requests(func(x *record.Exchange) *record.Exchange {
		delay(x, time.Duration(x.Index*x.Index%977)*time.Microsecond, record.DelayBusy)
		if x.Index%7 == 0 {
			fail(x, record.StreamError, "engine died")
		}
		return x
	})
	first := encode(t, summarize(t, twoStages(), all))
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if second := encode(t, summarize(t, twoStages(), all)); !bytes.Equal(first, second) {
		t.Error("another order of the same records gives another summary")
	}
}

func encode(t *testing.T, s *judge.Summary) []byte {
	t.Helper()
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSummaryComesBackFromItsJSON(t *testing.T) {
	first := encode(t, summarize(t, twoStages(), requests(nil)))
	var back judge.Summary
	if err := json.Unmarshal(first, &back); err != nil {
		t.Fatal(err)
	}
	if second := encode(t, &back); !bytes.Equal(first, second) {
		t.Error("decoding and encoding a summary changes it")
	}
}

func TestUndefinedFiguresAreNull(t *testing.T) {
	s := summarize(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange {
		x.Events, x.Usage = nil, record.Usage{}
		return x
	}))
	b := string(encode(t, s))
	if strings.Contains(b, "NaN") {
		t.Error("summary holds NaN")
	}
	f := s.Total.Metrics[measure.TTFT]
	if _, ok := f.P50.Get(); ok || f.N != 0 || f.Undefined != 1000 {
		t.Errorf("ttft of replies that were not streamed: got %+v, want n 0, 1000 undefined", f)
	}
	if _, ok := s.Total.OutputRate.Get(); ok {
		t.Error("the token rate is defined although no reply had a count")
	}
}

func TestARepeatedIndexIsNotMeasuredTwice(t *testing.T) {
	all := requests(nil)
	s := summarize(t, twoStages(), append(all, request(500)))
	if s.Total.Outcomes.Completed != 1000 {
		t.Errorf("completed: got %d, want 1000", s.Total.Outcomes.Completed)
	}
	if g := gate(t, s, "T1"); g.Level != verdict.Failed || s.Verdict.Class != verdict.InvalidStats {
		t.Errorf("got T1 %s and class %s, want failed and INVALID-STATS", g.Level, s.Verdict.Class)
	}
}

func TestAddRefusesWhatTheManifestDoesNotKnow(t *testing.T) {
	l, err := judge.Begin(twoStages())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*record.Exchange{{Stage: 2, Outcome: record.Completed}, {Stage: -1, Outcome: record.Completed}, {Stage: 0}} {
		if err := l.Add(x); err == nil {
			t.Errorf("stage %d, outcome %d: got no error", x.Stage, x.Outcome)
		}
	}
}

func TestMessagesGroupByTheirText(t *testing.T) {
	s := summarize(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange {
		switch {
		case x.Index%100 == 3:
			fail(x, record.Reset, "read tcp 127.0.0.1:"+x.Due.String()+": reset")
		case x.Index%100 == 5:
			fail(x, record.HTTPError, "overloaded")
			x.Status = 503
		}
		return x
	}))
	if len(s.Total.Failures) != 2 {
		t.Fatalf("got %d messages, want 2: %+v", len(s.Total.Failures), s.Total.Failures)
	}
	if f := s.Total.Failures[0]; f.Outcome != "http_error" || f.Status != 503 || f.Requests != 10 || f.Message != "overloaded" {
		t.Errorf("got %+v, want 10 http_error 503 overloaded", f)
	}
}

func TestACutRunIsMeasuredOverTheTimeItRan(t *testing.T) {
	m := twoStages()
	m.Stages[1].EndMs = 6000 // the moment of the stop; the drain came after
	m.State = record.State{Complete: true, Cause: "interrupted", EndMs: 8000}
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		if x.Due >= 6*time.Second {
			fail(x, record.NotSent, "")
		}
		return x
	}))
	number(t, "achieved rate", s.Total.AchievedRate, 100)
	number(t, "planned rate", s.Total.PlannedRate, 100)
	if s.Run.Complete || s.Verdict.Class != verdict.InvalidWorkload {
		t.Errorf("got complete %v and class %s, want an incomplete run of class INVALID-WORKLOAD", s.Run.Complete, s.Verdict.Class)
	}
	if !strings.Contains(s.Verdict.Reason, "interrupted") {
		t.Errorf("reason: got %q, want the cause in it", s.Verdict.Reason)
	}
}

func TestAKilledRunIsMeasuredToItsLastRecord(t *testing.T) {
	m := twoStages()
	m.State = record.State{}
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		if end, _ := x.End.Get(); end > 6*time.Second {
			return nil
		}
		return x
	}))
	number(t, "planned rate", s.Total.PlannedRate, 100)
	if got, _ := s.Total.AchievedRate.Get(); got < 98 || got > 100 {
		t.Errorf("achieved rate: got %v, want the 100 of the part that was written, less the requests in flight", got)
	}
	if s.Run.Complete || s.Verdict.Class != verdict.InvalidStats || s.Total.Outcomes.Sum()+s.Total.Missing != 1000 {
		t.Errorf("got complete %v, class %s, %d outcomes and %d unrecorded, want INVALID-STATS and 1000 in all", s.Run.Complete, s.Verdict.Class, s.Total.Outcomes.Sum(), s.Total.Missing)
	}
}

func TestAKilledClosedStageCountsWhatWasIssued(t *testing.T) {
	m := twoStages()
	m.Stages = []record.Stage{{Name: "closed", Kind: "closed", StartMs: 0, EndMs: 20000, Concurrency: 4}}
	m.State = record.State{}
	all := requests(func(x *record.Exchange) *record.Exchange { x.Stage = 0; return x })
	s := summarize(t, m, all)
	if s.Total.Planned != 1100 || s.Run.Complete {
		t.Errorf("got %d planned, complete %v, want 1100 of an incomplete run", s.Total.Planned, s.Run.Complete)
	}
	if _, ok := s.Total.PlannedRate.Get(); ok {
		t.Error("a closed loop has a planned rate")
	}
}

func TestAKilledRandomStageIsNotHeldToACount(t *testing.T) {
	m := twoStages()
	m.Stages = []record.Stage{{Name: "random", Kind: "open", StartMs: 0, EndMs: 60000, RatePerS: 100}}
	m.State = record.State{}
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange { x.Stage = 0; return x }))
	if s.Total.Planned != 1100 || s.Total.Missing != 0 {
		t.Errorf("got %d planned, %d unrecorded, want the 1100 on record and no claim beyond", s.Total.Planned, s.Total.Missing)
	}
	if rate, ok := s.Total.PlannedRate.Get(); !ok || rate < 95 || rate > 105 {
		t.Errorf("planned rate %v, %v, want about 100/s: over the time on record, not over the planned minute", rate, ok)
	}
}

func TestAQuietStageKeepsItsWholeWindow(t *testing.T) {
	m := twoStages()
	m.Stages = []record.Stage{{Name: "steady", Kind: "open", EndMs: 3000, Planned: 1, RatePerS: 0.1}}
	x := request(0)
	s := summarize(t, m, []*record.Exchange{x})
	number(t, "achieved rate", s.Total.AchievedRate, 1.0/3)
	number(t, "window", judge.Some(s.Total.WindowMs), 3000)
}

func TestACutStageKeepsTheWindowToItsStop(t *testing.T) {
	m := twoStages()
	m.Stages = []record.Stage{{Name: "steady", Kind: "open", EndMs: 3000, Planned: 2, RatePerS: 0.5}}
	m.State = record.State{Complete: true, Cause: "interrupted", EndMs: 3001}
	late := request(1)
	late.Due, late.Stage = 4*time.Second, 0
	fail(late, record.NotSent, "")
	s := summarize(t, m, []*record.Exchange{request(0), late})
	number(t, "achieved rate", s.Total.AchievedRate, 1.0/3)
	number(t, "planned rate", s.Total.PlannedRate, 1.0/3)
}

func TestAnInterruptedClosedLoopHasARate(t *testing.T) {
	m := twoStages()
	m.Stages = []record.Stage{{Name: "closed", Kind: "closed", EndMs: 5000, Planned: 1100, Concurrency: 4}}
	m.State = record.State{Complete: true, Cause: "interrupted", EndMs: 5100}
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		x.Stage = 0
		if x.Due >= 5*time.Second {
			fail(x, record.NotSent, "")
			x.Due = 0
		}
		return x
	}))
	number(t, "achieved rate", s.Total.AchievedRate, 100)
}

func TestAStageThatNeverBeganTakesNothing(t *testing.T) {
	m := twoStages()
	m.Stages = []record.Stage{
		{Name: "first", Kind: "open", EndMs: 5000, Planned: 500},
		{Name: "second", Kind: "open", StartMs: 5000, EndMs: 5000, Planned: 600},
	}
	m.State = record.State{Complete: true, Cause: "interrupted", EndMs: 5100}
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		x.Stage = 0
		if x.Due >= 5*time.Second {
			x.Stage = 1
			fail(x, record.NotSent, "")
		}
		return x
	}))
	if _, ok := s.Stages[1].OutputRate.Get(); ok {
		t.Error("a stage without a window has a token rate")
	}
	number(t, "achieved rate", s.Total.AchievedRate, 100)
}

func TestSeveralTokensInAnEventAreWarnedOf(t *testing.T) {
	warned := func(output int) bool {
		s := summarize(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange { x.Usage.Output = output; return x }))
		for _, w := range s.Warnings {
			if strings.Contains(w, "tpot_ms") && strings.Contains(w, "2.50 tokens on average") {
				return true
			}
		}
		return false
	}
	if !warned(10) || warned(4) {
		t.Errorf("four events: got a warning %v for 10 tokens and %v for 4, want true and false", warned(10), warned(4))
	}
}

func TestAPlanOfNothingIsCalledSo(t *testing.T) {
	m := twoStages()
	for i := range m.Stages {
		m.Stages[i].Planned = 0
	}
	s := summarize(t, m, nil)
	if s.Verdict.Class != verdict.InvalidStats || !strings.Contains(s.Verdict.Reason, "the plan held no request") {
		t.Errorf("got %s: %q, want INVALID-STATS: the plan held no request", s.Verdict.Class, s.Verdict.Reason)
	}
	if g := gate(t, s, "T1"); !strings.Contains(g.Hint, "plan at least one request") {
		t.Errorf("hint: got %q, want what to plan", g.Hint)
	}
}

func TestArrivalsAreOfDueTimesAndOfFirstWrites(t *testing.T) {
	m := twoStages()
	m.Stages[1].Arrivals = "100/s constant, CV 0"
	all := requests(func(x *record.Exchange) *record.Exchange {
		if x.Index%2 == 0 { // every other one late: gaps of 5 and 15 ms
			delay(x, 5*time.Millisecond, record.DelayBusy)
		}
		return x
	})
	s := summarize(t, m, all)
	got := s.Stages[1].Arrivals
	planned, _ := got.Planned.Variation.Get()
	sent, _ := got.Sent.Variation.Get()
	index, ok := got.Planned.Second.Get()
	if _, tens := got.Planned.TenSeconds.Get(); got.Asked != m.Stages[1].Arrivals || planned != 0 || math.Abs(sent-0.5) > 0.001 || !ok || index != 0 || tens {
		t.Errorf("got %+v, want CV 0 planned, 0.5 sent, no dispersion in 1 s and none known in 10 s", got)
	}
	if s.Total.Arrivals != (judge.Arrivals{}) {
		t.Errorf("total: got %+v, want none", s.Total.Arrivals)
	}
}

func TestServersHaveTheirOwnOutcomes(t *testing.T) {
	m := twoStages()
	if s := summarize(t, m, requests(nil)); s.Servers != nil {
		t.Errorf("one server: got %+v, want none listed", s.Servers)
	}
	m.Target.Servers = []string{"http://a", "http://b", "http://c"}
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		if x.Index%3 == 1 {
			fail(x, record.Reset, "gone")
		}
		return x
	}))
	want := []judge.Server{
		{URL: "http://a", Outcomes: judge.Outcomes{Completed: 333}}, // 102, 105 … 1098
		{URL: "http://b", Outcomes: judge.Outcomes{Reset: 334}},     // 100, 103 … 1099
		{URL: "http://c", Outcomes: judge.Outcomes{Completed: 333}},
	}
	if !slices.Equal(s.Servers, want) {
		t.Errorf("got %+v, want %+v: warm-up left out", s.Servers, want)
	}
}
