package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tare/internal/judge"
	"tare/internal/record"
	"tare/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

const ms = time.Millisecond

// manifest is that of a complete run: a warm-up, then 4 s at 100 and 4 s at 200 requests per second.
func manifest() *record.Manifest {
	return &record.Manifest{
		Schema: record.ManifestSchema,
		Plan:   record.PlanIDs{PlanID: strings.Repeat("ab", 32), ContentID: strings.Repeat("cd", 32), Requests: 1300, Complete: true},
		Stages: []record.Stage{
			{Name: "warmup", Warmup: true, Kind: "open", EndMs: 1000, Planned: 100, RatePerS: 100},
			{Name: "rate-100", Kind: "open", StartMs: 1000, EndMs: 5000, Planned: 400, RatePerS: 100},
			{Name: "rate-200", Kind: "open", StartMs: 5000, EndMs: 9000, Planned: 800, RatePerS: 200},
		},
		Target: record.Target{URL: "http://127.0.0.1:8000", Model: "tiny", Endpoint: "openai-chat", Stream: true},
		Client: record.Client{Engine: "epoll", Loops: 1, GOMAXPROCS: 2, KernelStamps: true, Connections: 64},
		Clock:  record.Clock{StartWall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), StartMonotonicNs: 1},
		Loops:  []record.Loop{{WallNs: 9e9, CPUNs: 1e9}},
		State:  record.State{Complete: true, EndMs: 9200, CPUMs: 900, GCCycles: 1},
	}
}

// exchanges are the run's 1,300 requests. TTFT grows from 50 ms; tokens come 10 ms apart.
func exchanges() (all []*record.Exchange) {
	for i := range int64(1300) {
		stage, due := 0, time.Duration(i)*10*ms
		switch {
		case i >= 500:
			stage, due = 2, 5000*ms+time.Duration(i-500)*5*ms
		case i >= 100:
			stage = 1
		}
		sent := due + time.Duration(i%50)*4*time.Microsecond
		x := &record.Exchange{
			Index: i, Session: i, Stage: stage, Due: due, Issued: record.At(due), ConnReady: record.At(due), FirstWrite: record.At(sent),
			Outcome: record.Completed, Status: 200, FinishReason: "stop", Usage: record.Usage{Known: true, Input: 128, Output: 8, CachedKnown: true}, Reads: 9,
		}
		at := sent + 50*ms + time.Duration(i)*10*time.Microsecond
		for range 8 {
			x.Events = append(x.Events, record.Event{KernelAt: at, UserAt: at + 15*time.Microsecond, Kind: record.KindContent, Flags: record.FlagStamped})
			at += 10 * ms
		}
		x.End = record.At(at - 9*ms)
		all = append(all, x)
	}
	return all
}

// runDir writes a run directory.
func runDir(t *testing.T, m *record.Manifest, all []*record.Exchange) string {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for block := range slices.Chunk(all, 100) {
		var payload []byte
		for _, x := range block {
			payload = record.AppendExchange(payload, x)
		}
		if err := log.WriteBlock(payload, len(block)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func summarize(t *testing.T, m *record.Manifest, all []*record.Exchange) *judge.Summary {
	t.Helper()
	s, err := judge.Summarize(runDir(t, m, all))
	if err != nil {
		t.Fatal(err)
	}
	s.Dir = "runs/example"
	return s
}

// overloaded is a run in which much goes wrong: an in-flight limit, errors, a busy client.
func overloaded() (*record.Manifest, []*record.Exchange) {
	m, all := manifest(), exchanges()
	m.Stages = m.Stages[:2]
	m.Client.KernelStamps = false
	m.Warnings = []string{"the open-file limit of 1024 allows 1000 connections"}
	all = all[:500]
	for _, x := range all[100:] {
		x.Events[0].Flags |= record.FlagMerged
		for i := range x.Events {
			x.Events[i].Flags &^= record.FlagStamped
		}
		switch {
		case x.Index%10 == 1:
			x.Cause, x.RetryAfter = record.CauseRateLimited, 2*time.Second
			x.Outcome, x.Status, x.Error, x.Events, x.Usage = record.HTTPError, 503, "the server is overloaded, try again later: queue length 4096", nil, record.Usage{}
		case x.Index%10 == 2:
			x.Outcome, x.Cause, x.Error = record.TimedOut, record.CauseTimeoutBetweenTokens, "no further token within 5s (token_timeout)"
		case x.Index%10 == 3:
			x.FirstWrite, x.Delay = record.At(x.Due+25*ms), record.DelayBusy
		case x.Index%10 == 4:
			x.FirstWrite, x.Delay = record.At(x.Due+40*ms), record.DelayInFlightCap
		}
	}
	return m, all[:450]
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}

func text(t *testing.T, s *judge.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, s); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
			t.Errorf("line of %d characters, want at most 120: %s", n, line)
		}
	}
	return b.Bytes()
}

func TestTextOfAGoodRun(t *testing.T) {
	golden(t, "good.txt", text(t, summarize(t, manifest(), exchanges())))
}

func TestTextOfABadRun(t *testing.T) {
	m, all := overloaded()
	golden(t, "bad.txt", text(t, summarize(t, m, all)))
}

// TTFT grows from 50 to 63 ms; requests of every third index are of a class that wants it below 53 ms.
func TestTextOfARunWithObjectives(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Spec = json.RawMessage(`{"slo":["ttft<62ms","tpot.p99<10ms","e2e_from_due.p95<1s","error_rate<1%"],"workload":{"classes":[{"name":"gold","slo":["ttft<53ms","tpot<20ms"]},{"name":"free"}]}}`)
	for i, x := range all {
		x.Class = [...]string{"gold", "free", "free"}[i%3]
	}
	golden(t, "objectives.txt", text(t, summarize(t, m, all)))
}

func TestTextSaysHowManyRequestsAreUnsure(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Spec = json.RawMessage(`{"slo":["ttft<40ms"]}`)
	for _, x := range all[100:107] {
		x.Events[0].Flags |= record.FlagMerged
	}
	if got := text(t, summarize(t, m, all)); !bytes.Contains(got, []byte("\n  unsure 7 of 1200: ")) {
		t.Errorf("want 7 unsure in\n%s", got)
	}
}

func TestTextOfARunWithoutRecords(t *testing.T) {
	golden(t, "empty.txt", text(t, summarize(t, manifest(), nil)))
}

func TestTextKeepsWithinItsWidthForLargeNumbers(t *testing.T) {
	m, all := manifest(), exchanges()
	for i := range m.Stages {
		m.Stages[i].Name = strings.Repeat("a very long name ", 4)
	}
	for _, x := range all {
		end, _ := x.End.Get()
		x.End = record.At(end + 5*time.Hour)
		x.Usage.Input, x.Usage.Output = 30_000_000, 9_000_000
	}
	text(t, summarize(t, m, all))
}

func TestTextObeysNoServer(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Stages[1].Name = "rate\x1b[2J\u202e"
	m.Warnings = []string{"a \x07 bell"}
	all[200].Outcome, all[200].Status, all[200].Error = record.HTTPError, 500, "\x1b]0;title\x07 caf\u00e9 \u009b31m \xff \"quoted\""
	got := string(text(t, summarize(t, m, all)))
	for _, r := range got {
		if r != '\n' && !strconv.IsPrint(r) {
			t.Errorf("the text holds %q", r)
		}
	}
	for _, want := range []string{`\x1b]0;title\a café \u009b31m \xff "quoted"`, `rate\x1b[2J\u202e`, `a \a bell`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
}

func TestTextNamesTheFilesThatAreThere(t *testing.T) {
	dir := runDir(t, manifest(), exchanges())
	s, err := judge.Summarize(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text(t, s)); !strings.HasSuffix(got, dir+":\n          manifest.json, exchanges.tare\n") {
		t.Errorf("before the summary is written, got:\n%s", got)
	}
	if err := report.WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	if got := string(text(t, s)); !strings.HasSuffix(got, dir+":\n          summary.json, verdict.json, manifest.json, exchanges.tare\n") {
		t.Errorf("after the summary is written, got:\n%s", got)
	}
}

func TestTextLeavesAnUnknownContentOut(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Plan.ContentID = ""
	if got := string(text(t, summarize(t, m, all))); !strings.Contains(got, "· plan abababababab\n") {
		t.Errorf("the line of the run does not end with the plan:\n%s", got)
	}
}

func TestTextHasNoColonWithoutAMessage(t *testing.T) {
	m, all := manifest(), exchanges()
	all[200].Outcome, all[200].Status, all[200].Error = record.HTTPError, 302, ""
	if got := string(text(t, summarize(t, m, all))); !strings.Contains(got, "× http_error (302)\n") {
		t.Errorf("no line that ends with http_error (302) in:\n%s", got)
	}
}

func TestTextSetsArrivalsNextToWhatWasAsked(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Stages[1].Arrivals = "100/s constant, CV 0"
	got := string(text(t, summarize(t, m, all)))
	if want := "arrivals  rate-100: asked 100/s constant, CV 0 · planned 100/s, CV 0 · sent 100/s, CV 0.00263\n"; !strings.Contains(got, want) {
		t.Errorf("want the line %q, got:\n%s", want, got)
	}
}

func TestTextShowsNamesOf24Characters(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Stages[1].Name, m.Stages[2].Name = "60/s, 8 connections more", "60/s, 8 connections more."
	got, _, _ := strings.Cut(string(text(t, summarize(t, m, all))), "\nplanned ")
	if strings.Count(got, "60/s, 8 connections more  ") != 2 || strings.Count(got, "60/s, 8 connections mor…") != 2 {
		t.Errorf("want a name of 24 characters whole and one of 25 cut, got:\n%s", got)
	}
}

func TestTextShowsWhatHappenedAtEachServer(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Target.Servers, m.Target.Insecure, m.Target.HTTP = []string{"https://a", "https://b"}, true, "2"
	all[201].Outcome, all[201].Error = record.Reset, "gone"
	got := string(text(t, summarize(t, m, all)))
	for _, want := range []string{
		"servers   https://a: completed 600\n          https://b: completed 599 · reset 1\n", "streamed, HTTP/2, certificate not checked\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want\n%s\nin:\n%s", want, got)
		}
	}
}

func TestTextNamesTheOpenFileLimit(t *testing.T) {
	m, all := manifest(), exchanges()
	all[200].FirstWrite, all[200].Delay = record.At(all[200].Due+25*ms), record.DelayFileLimit
	s := summarize(t, m, all)
	if got := string(text(t, s)); !strings.Contains(got, "open-file limit 1 (slip max 25.0ms)") || s.Total.Delays.FileLimit.Requests != 1 {
		t.Errorf("no request that waited for the open-file limit in:\n%s", got)
	}
}

func TestSummaryFileIsTheSameBytesEachTime(t *testing.T) {
	dir := runDir(t, manifest(), exchanges())
	var files [2][]byte
	for i := range files {
		s, err := judge.Summarize(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.WriteSummary(dir, s); err != nil {
			t.Fatal(err)
		}
		if files[i], err = os.ReadFile(filepath.Join(dir, report.SummaryFile)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two summaries of one directory differ")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, report.SummaryFile+".*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestSummaryHasTheNamesThatStay(t *testing.T) {
	var b bytes.Buffer
	if err := report.JSON(&b, summarize(t, manifest(), exchanges())); err != nil {
		t.Fatal(err)
	}
	var s struct {
		Schema  string
		Verdict struct {
			Class string
			Gates []map[string]any
		}
		Stages []map[string]any
		Total  map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if s.Schema != "tare.summary/v1" || s.Verdict.Class != "VALID" || len(s.Verdict.Gates) == 0 || len(s.Stages) != 3 {
		t.Errorf("got schema %q, class %q, %d gates, %d stages", s.Schema, s.Verdict.Class, len(s.Verdict.Gates), len(s.Stages))
	}
	for _, part := range append(s.Stages, s.Total) {
		want(t, part, "name", "planned", "sent", "outcomes", "planned_rate_per_s", "achieved_rate_per_s", "output_tokens_per_s", "metrics")
		want(t, part["outcomes"], "completed", "empty", "truncated", "stream_error", "http_error", "timeout", "connect_failed", "reset", "cancelled", "not_sent")
		want(t, part["metrics"], "slip_ms", "receive_lag_ms", "first_event_ms", "ttft_ms", "ttft_from_due_ms", "first_answer_ms", "icl_ms", "itl_ms",
			"tpot_ms", "ntpot_ms", "e2e_ms", "e2e_from_due_ms", "input_tokens", "output_tokens", "cached_tokens")
		for _, figures := range part["metrics"].(map[string]any) {
			want(t, figures, "n", "undefined", "mean", "min", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9", "max")
		}
	}
}

func want(t *testing.T, object any, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, ok := object.(map[string]any)[key]; !ok {
			t.Errorf("no key %s in %v", key, object)
		}
	}
}

// three is a run of a completed, a failed and an unsent request.
func three() (*record.Manifest, []*record.Exchange) {
	m, all := manifest(), exchanges()[:3]
	all[0].Events[0].Flags |= record.FlagMerged
	all[0].Events[1].Kind = record.KindReasoning
	*all[1] = record.Exchange{Index: 1, Session: 1, Due: 10 * ms, FirstWrite: record.At(11 * ms), End: record.At(12 * ms), Outcome: record.HTTPError, Status: 503, Class: "batch", Error: "over, \"loaded\""}
	*all[2] = record.Exchange{Index: 2, Session: 2, Turn: 1, Due: 20 * ms, Outcome: record.NotSent}
	return m, all
}

func TestRequestsAsLines(t *testing.T) {
	m, all := three()
	dir := runDir(t, m, all)
	var b bytes.Buffer
	if err := report.Requests(&b, dir, "jsonl"); err != nil {
		t.Fatal(err)
	}
	golden(t, "requests.jsonl", b.Bytes())
}

func TestRequestsAsCSVHaveTheColumnsOfTheLines(t *testing.T) {
	m, all := three()
	dir := runDir(t, m, all)
	var b, lines bytes.Buffer
	if err := report.Requests(&b, dir, "csv"); err != nil {
		t.Fatal(err)
	}
	golden(t, "requests.csv", b.Bytes())
	if err := report.Requests(&lines, dir, "jsonl"); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("got %d rows (%v), want a head and 3", len(rows), err)
	}
	for i, head := range rows[0] {
		if !bytes.Contains(lines.Bytes(), []byte(`"`+head+`":`)) {
			t.Errorf("column %d: the lines have no key %s", i, head)
		}
	}
}

func TestRequestsRefusesAnotherFormat(t *testing.T) {
	if err := report.Requests(&bytes.Buffer{}, runDir(t, manifest(), nil), "xml"); err == nil {
		t.Error("got no error for the format xml")
	}
}
