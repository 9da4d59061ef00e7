package judge_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/record"
)

// examine writes a run and looks at it whole.
func examine(t *testing.T, m *record.Manifest, all []*record.Exchange, looks ...record.ServerSample) (*judge.Summary, *judge.Detail) {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for block := range slices.Chunk(all, 100) {
		var payload []byte
		for _, x := range block {
			payload = record.AppendExchange(payload, x)
		}
		if err := log.WriteBlock(payload, len(block)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if len(looks) > 0 {
		var lines bytes.Buffer
		for i := range looks {
			if err := looks[i].Write(&lines); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, record.ServerFile), lines.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, d, err := judge.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

func total(column []judge.Number, seconds float64) (sum float64) {
	for _, n := range column {
		v, _ := n.Get()
		sum += v * seconds
	}
	return sum
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6*math.Max(1, math.Abs(want))) { // no number is near nothing
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func valueOf(n judge.Number) float64 {
	v, ok := n.Get()
	if !ok {
		return math.NaN()
	}
	return v
}

// The run is 1,100 requests over 11 s, each in flight for 81 ms, with four tokens; the run ends 200 ms into its twelfth second.
func TestSeriesCountsWhatHappenedInEachSecond(t *testing.T) {
	_, d := examine(t, twoStages(), requests(nil))
	s := d.Series
	if s.WidthMs != 1000 || len(s.Due) != 12 {
		t.Fatalf("got %d spans of %v ms, want 12 of a second", len(s.Due), s.WidthMs)
	}
	for i := range 11 {
		near(t, "due", valueOf(s.Due[i]), 100)
		near(t, "sent", valueOf(s.Sent[i]), 100)
		near(t, "slip p99", valueOf(s.SlipP99[i]), 0)
		near(t, "TTFT median", valueOf(s.TTFTP50[i]), 50)
		near(t, "E2E p99", valueOf(s.E2EP99[i]), 81)
		near(t, "lag, longest", valueOf(s.LagMax[i]), 0.02)
	}
	near(t, "completed in the second second", valueOf(s.Completed[1]), 100)
	near(t, "completed in the first", valueOf(s.Completed[0]), 92) // the last eight due in it end in the next
	near(t, "in flight, from the second on", valueOf(s.InFlight[1]), 8.1)
	if v, ok := s.Due[11].Get(); ok {
		t.Errorf("the last span, of which the run had a fifth: got %v, want null", v)
	}
}

func TestSeriesAddsUpToTheSummary(t *testing.T) {
	m := twoStages()
	m.State.EndMs = 13_000
	all := requests(func(x *record.Exchange) *record.Exchange {
		switch x.Index % 10 {
		case 3:
			fail(x, record.HTTPError, "no")
		case 4:
			fail(x, record.NotSent, "")
		case 5:
			delay(x, 1700*time.Millisecond, record.DelayBusy)
		}
		return x
	})
	s, d := examine(t, m, all)
	warm := &s.Stages[0]
	near(t, "completed", total(d.Series.Completed, 1), float64(s.Total.Outcomes.Completed+warm.Outcomes.Completed))
	near(t, "failed", total(d.Series.Failed, 1), float64(s.Total.Planned+warm.Planned-s.Total.Outcomes.Completed-warm.Outcomes.Completed))
	near(t, "sent", total(d.Series.Sent, 1), float64(s.Total.Sent+warm.Sent))
	near(t, "output tokens", total(d.Series.OutputTokens, 1), 4*float64(s.Total.Outcomes.Completed+warm.Outcomes.Completed))
	held := 0.0
	for _, x := range all {
		sent, ok := x.FirstWrite.Get()
		if end, ended := x.End.Get(); ok && ended {
			held += (end - sent).Seconds()
		}
	}
	near(t, "request-seconds in flight", total(d.Series.InFlight, 1), held)
}

func TestSeriesEndsWithTheRun(t *testing.T) {
	m := twoStages()
	m.State.Cause, m.State.EndMs, m.Stages[1].EndMs = "interrupted", 6_800, 6_000
	_, d := examine(t, m, requests(func(x *record.Exchange) *record.Exchange {
		if x.Due >= 6*time.Second {
			fail(x, record.NotSent, "")
		}
		return x
	}))
	if n := len(d.Series.Due); n != 7 {
		t.Fatalf("got %d spans, want 7: the run ended after 6.8 s", n)
	}
	near(t, "failed before the end of the drain", total(d.Series.Failed[:6], 1), 0)
}

// A run of three hours has spans of four seconds: the same sums.
func TestSeriesOfALongRunHasWiderSpans(t *testing.T) {
	m := twoStages()
	m.State.EndMs = 3 * 3600e3
	all := requests(func(x *record.Exchange) *record.Exchange {
		switch x.Index {
		case 450:
			x.End = record.At(x.Due + 3700*time.Millisecond)
		case 1099:
			x.End = record.At(3*time.Hour - time.Second)
		}
		return x
	})
	_, d := examine(t, m, all)
	if d.Series.WidthMs != 4000 || len(d.Series.Due) != 2701 {
		t.Fatalf("got %d spans of %v ms, want 2701 of 4 s", len(d.Series.Due), d.Series.WidthMs)
	}
	near(t, "due", total(d.Series.Due, 4), 1100)
	near(t, "completed", total(d.Series.Completed, 4), 1100)
	near(t, "in flight from 4 to 8 s", valueOf(d.Series.InFlight[1]), 8.1+(3.5-0.081)/4) // request 450 is there from 4.5 s on
	near(t, "in flight in the middle", valueOf(d.Series.InFlight[1000]), 1)
	near(t, "TTFT median", valueOf(d.Series.TTFTP50[0]), 50)
}

func TestSeriesKnowsManyValuesOfASpan(t *testing.T) {
	m := twoStages()
	m.Stages = m.Stages[1:]
	m.Stages[0].StartMs, m.Stages[0].Planned = 0, 10_000
	var all []*record.Exchange
	for i := range int64(10_000) {
		x := request(i)
		x.Stage, x.Due, x.FirstWrite = 0, 500*time.Millisecond, record.At(500*time.Millisecond)
		reply(x, time.Duration(i+1)*time.Microsecond)
		all = append(all, x)
	}
	t.Run("in spans of a second", func(t *testing.T) { sameQuantiles(t, m, all) })
	m.State.EndMs = 3 * 3600e3
	t.Run("in wider ones", func(t *testing.T) { sameQuantiles(t, m, all) })
}

// sameQuantiles holds the first span, which has all requests, against the summary.
func sameQuantiles(t *testing.T, m *record.Manifest, all []*record.Exchange) {
	t.Helper()
	s, d := examine(t, m, all)
	for _, level := range []struct {
		name            string
		series, summary judge.Number
	}{{"p50", d.Series.TTFTP50[0], s.Total.Metrics["ttft_ms"].P50}, {"p99", d.Series.TTFTP99[0], s.Total.Metrics["ttft_ms"].P99}} {
		near(t, "TTFT "+level.name, valueOf(level.series), valueOf(level.summary))
	}
}

func TestShapesHaveTheQuantilesOfTheSummary(t *testing.T) {
	all := requests(func(x *record.Exchange) *record.Exchange {
		delay(x, time.Duration(x.Index%37)*time.Millisecond, record.DelayBusy)
		return x
	})
	s, d := examine(t, twoStages(), all)
	if len(d.Shapes) != 1 || d.Shapes[0].Name != "total" {
		t.Fatalf("got %d shapes, want that of the total of one measured stage", len(d.Shapes))
	}
	for name, shape := range d.Shapes[0].Metrics {
		f := s.Total.Metrics[name]
		for i, share := range shape.Share {
			want, ok := map[float64]judge.Number{0: f.Min, 0.5: f.P50, 0.99: f.P99, 1: f.Max}[valueOf(share)]
			if ok && shape.Value[i] != want {
				t.Errorf("%s at %v: got %v, want %v", name, valueOf(share), valueOf(shape.Value[i]), valueOf(want))
			}
		}
		n := int64(0)
		for _, count := range shape.Counts {
			n += count
		}
		if shape.N != f.N || len(shape.Counts) > 0 && n != f.N {
			t.Errorf("%s: got %d values and %d in bins, want %d", name, shape.N, n, f.N)
		}
	}
}

// A sample holds the same requests whatever their order in the log, and those of the log to the nanosecond.
func TestRequestsOfALargeRunAreASampleByIndex(t *testing.T) {
	m := twoStages()
	m.Stages = m.Stages[1:]
	m.Stages[0].StartMs, m.Stages[0].Planned = 0, 45_000
	var all []*record.Exchange
	for i := range int64(45_000) {
		x := request(i)
		x.Stage, x.Due, x.FirstWrite = 0, time.Duration(i)*200*time.Microsecond, record.At(time.Duration(i)*200*time.Microsecond+7)
		reply(x, 50*time.Millisecond+time.Duration(i))
		all = append(all, x)
	}
	_, first := examine(t, m, all)
	slices.Reverse(all)
	_, second := examine(t, m, all)
	r := first.Requests
	if !reflect.DeepEqual(r, second.Requests) {
		t.Error("the order of the log changes the sample")
	}
	if len(r.Index) != 20_000 || r.Of != 45_000 || !r.Sampled {
		t.Fatalf("got %d of %d requests (sampled %v), want 20000 of 45000", len(r.Index), r.Of, r.Sampled)
	}
	below := 0
	for i, index := range r.Index {
		if index < 22_500 {
			below++
		}
		near(t, "TTFT", valueOf(r.TTFT[i])*1e6, 50e6+float64(index))
		if r.Slip[i] != judge.Some(7e-6) || r.Outcomes[r.Outcome[i]] != "completed" || !slices.IsSorted(r.Index[:i]) {
			t.Fatalf("request %d: got slip %v, outcome %s", index, r.Slip[i], r.Outcomes[r.Outcome[i]])
		}
	}
	if below < 9_700 || below > 10_300 { // four standard deviations of a draw without replacement
		t.Errorf("got %d of 20000 from the first half, want about 10000", below)
	}
}

func TestRequestsOfASmallRunAreAll(t *testing.T) {
	_, d := examine(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange {
		if x.Index == 7 {
			fail(x, record.NotSent, "")
		}
		return x
	}))
	if d.Requests.Sampled || len(d.Requests.Index) != 1100 || d.Requests.Of != 1100 {
		t.Fatalf("got %d of %d, want all 1100", len(d.Requests.Index), d.Requests.Of)
	}
	_, sent := d.Requests.Slip[7].Get()
	_, ended := d.Requests.E2E[7].Get()
	if sent || ended || d.Requests.Outcomes[d.Requests.Outcome[7]] != "not_sent" {
		t.Error("a request that was not sent has a slip or an end")
	}
}

func TestExamineGivesTheSummaryOfSummarize(t *testing.T) {
	s, _ := examine(t, twoStages(), requests(nil))
	again, err := judge.Summarize(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(s)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Error("the two differ")
	}
}

func TestDetailHasNoNullInPlaceOfAList(t *testing.T) {
	_, d := examine(t, twoStages(), nil)
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var lists map[string]any
	if err := json.Unmarshal(b, &lists); err != nil {
		t.Fatal(err)
	}
	for part, v := range lists {
		object, ok := v.(map[string]any)
		if !ok && v == nil {
			t.Errorf("%s is null", part)
		}
		for key, column := range object {
			if column == nil {
				t.Errorf("%s.%s is null", part, key)
			}
		}
	}
}

func TestDetailHasWhatTheServerTold(t *testing.T) {
	m := twoStages()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, record.ServerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	told := func(waiting, tokens float64) *record.ServerValues {
		return &record.ServerValues{Dialect: "vllm", Values: map[record.Quantity]float64{record.Waiting: waiting, record.OutputTokens: tokens}}
	}
	for _, s := range []record.ServerSample{
		{AtMs: -10, TookMs: 4, Source: "a", Kind: record.SourceServer, Values: told(0, 100)},
		{AtMs: 0, TookMs: 4, Source: "b", Kind: record.SourceExporter, Reason: "refused"},
		{AtMs: 990, TookMs: 4, Source: "a", Kind: record.SourceServer, Values: told(3, 350)},
		{AtMs: 1990, TookMs: 4, Source: "a", Kind: record.SourceServer, Reason: "timed out"},
		{AtMs: 2990, TookMs: 4, Source: "a", Kind: record.SourceServer, Values: told(5, 400)},
		{AtMs: 3490, TookMs: 4, Source: "a", Kind: record.SourceServer, Values: told(5, 420)},
		{AtMs: 4490, TookMs: 4, Source: "a", Kind: record.SourceServer, Values: told(1, 20)}, // it began anew
	} {
		if err := s.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	_, d, err := judge.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	none := judge.Number{}
	want := []judge.Looks{
		{
			Source: "a", Kind: "server", AtMs: []float64{-8, 992, 1992, 2992, 3492, 4492}, Failed: 1,
			Gauges: map[record.Quantity][]judge.Number{record.Waiting: {judge.Some(0), judge.Some(3), none, judge.Some(5), judge.Some(5), judge.Some(1)}},
			Rates:  map[record.Quantity][]judge.Number{record.OutputTokens: {none, judge.Some(250), none, none, judge.Some(40), none}},
		},
		{Source: "b", Kind: "exporter", AtMs: []float64{2}, Failed: 1, Gauges: map[record.Quantity][]judge.Number{}, Rates: map[record.Quantity][]judge.Number{}},
	}
	if !reflect.DeepEqual(d.Server, want) {
		t.Errorf("got\n%+v\nwant\n%+v", d.Server, want)
	}
}

func TestDetailShowsTheClientsMachine(t *testing.T) {
	m := twoStages()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
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
	for _, h := range []record.Health{
		{AtMs: 1000, SpanMs: 1000, Cores: []record.Core{{Busy: 0.2}, {Busy: 0.5, Steal: 0.25}}, CPU: &record.Spent{Ms: 400}, Canary: []int64{10, 30, 20}},
		{AtMs: 1500, SpanMs: 500, RunQueue: &record.Spent{Ms: 50}},
	} {
		if err := h.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	_, d, err := judge.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	none := judge.Number{}
	want := judge.Machine{
		AtMs: []float64{1000, 1500}, Busiest: []judge.Number{judge.Some(0.75), none}, Client: []judge.Number{judge.Some(0.4), none}, Waiting: []judge.Number{none, judge.Some(0.1)},
		WakeupP99: []judge.Number{judge.Some(0.03), none}, WakeupMax: []judge.Number{judge.Some(0.03), none},
	}
	if !reflect.DeepEqual(d.Machine, want) {
		t.Errorf("got %+v, want %+v", d.Machine, want)
	}
}
