package export_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/record"
	"tare/internal/report/export"
)

// stream is one reply: a role at 5 ms, then "A" at 500, "BC" (two tokens in one event) at 520, "D" at 540, the finish reason at 545, usage at
// 546, the terminator at 550, the end at 551. The second of two sets out 10 ms late.
func stream(i int64) *record.Exchange {
	due := time.Duration(i) * time.Second
	begin := due + time.Duration(i)*10*time.Millisecond
	x := &record.Exchange{
		Index: i, Session: i, Due: due, Issued: record.At(begin), ConnReady: record.At(begin), FirstWrite: record.At(begin), HeaderAt: record.At(begin + 4*time.Millisecond),
		Outcome: record.Completed, Status: 200, FinishReason: "stop", Usage: record.Usage{Known: true, Input: 12, Output: 4}, Reads: 8, Attempts: 1,
		End: record.At(begin + 551*time.Millisecond),
	}
	for _, e := range []struct {
		ms   int
		kind record.Kind
	}{
		{5, record.KindRole}, {500, record.KindContent}, {520, record.KindContent}, {540, record.KindContent}, {545, record.KindFinish},
		{546, record.KindUsage}, {550, record.KindTerminator},
	} {
		at := begin + time.Duration(e.ms)*time.Millisecond
		x.Events = append(x.Events, record.Event{KernelAt: at, UserAt: at, Kind: e.kind, Flags: record.FlagStamped})
	}
	return x
}

// twoStreams is a run of both, in an open stage of two seconds.
func twoStreams(t *testing.T) *export.Run { return streams(t, stream(0), stream(1)) }

func streams(t *testing.T, all ...*record.Exchange) *export.Run {
	t.Helper()
	dir := t.TempDir()
	m := &record.Manifest{
		Schema: record.ManifestSchema,
		Spec:   json.RawMessage(`{"load":{"arrival":"poisson"}}`),
		Stages: []record.Stage{{Name: "main", Kind: "open", EndMs: 2000, Planned: 2, RatePerS: 1, Arrivals: "1/s poisson, CV 1"}},
		Target: record.Target{URL: "http://127.0.0.1:8000", Model: "m", Endpoint: "openai-chat", Stream: true},
		Client: record.Client{Engine: "epoll", Loops: 1, KernelStamps: true},
		Clock:  record.Clock{StartWall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		State:  record.State{Complete: true, EndMs: 2000},
	}
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
	r, err := export.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// saved are the files of a form, by name.
func saved(t *testing.T, r *export.Run, name string) map[string]string {
	t.Helper()
	f, err := export.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := f.Save([]*export.Run{r}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(text)
	}
	return files
}

// at finds a value in a document: "successes.latency.request_latency.mean".
func at(t *testing.T, document, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Split(path, ".") {
		o, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%s: no object at %s", path, key)
		}
		if v, ok = o[key]; !ok {
			t.Fatalf("%s: no key %s", path, key)
		}
	}
	return v
}

func figure(v any, factor float64) string {
	n, ok := v.(float64)
	if !ok {
		return "–"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", n*factor), "0"), ".")
}

func own(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "–"
	}
	return figure(v, 1)
}

// TestOneRunUnderEveryDefinition holds the table of docs/exports.md. What each tool must come to was worked out by hand from the events above.
func TestOneRunUnderEveryDefinition(t *testing.T) {
	r := twoStreams(t)
	vllm := saved(t, r, "vllm")["stage_0_vllm.json"]
	perf := saved(t, r, "inference-perf")["stage_0_lifecycle_metrics.json"]
	aiperf := saved(t, r, "aiperf")["profile_export_aiperf.json"]
	mlperf := saved(t, r, "mlperf")["stage_0_mlperf_log_summary.txt"]
	line := func(label string) string {
		_, rest, found := strings.Cut(mlperf, label)
		if !found {
			t.Fatalf("no line %q in\n%s", label, mlperf)
		}
		value, _, _ := strings.Cut(strings.TrimLeft(rest, " :"), "\n")
		return value
	}
	millis := func(label string) string {
		var ns float64
		fmt.Sscan(line(label), &ns)
		return figure(ns, 1e-6)
	}
	p := &r.Summary.Stages[0]
	rows := [][]string{
		{"tare, from send", own(p.Metrics["ttft_ms"].Mean), own(p.Metrics["tpot_ms"].Mean), own(p.Metrics["icl_ms"].Mean), own(p.Metrics["e2e_ms"].Mean), own(p.CompletedRate), own(p.OutputRate)},
		{"tare, from due", own(p.Metrics["ttft_from_due_ms"].Mean), "", "", own(p.Metrics["e2e_from_due_ms"].Mean), "", ""},
		{"`inference-perf`", figure(at(t, perf, "successes.latency.time_to_first_token.mean"), 1e3), figure(at(t, perf, "successes.latency.time_per_output_token.mean"), 1e3),
			figure(at(t, perf, "successes.latency.inter_token_latency.mean"), 1e3), figure(at(t, perf, "successes.latency.request_latency.mean"), 1e3),
			figure(at(t, perf, "successes.throughput.requests_per_sec"), 1), figure(at(t, perf, "successes.throughput.output_tokens_per_sec"), 1)},
		{"`vllm`", figure(at(t, vllm, "mean_ttft_ms"), 1), figure(at(t, vllm, "mean_tpot_ms"), 1), figure(at(t, vllm, "mean_itl_ms"), 1), figure(at(t, vllm, "mean_e2el_ms"), 1),
			figure(at(t, vllm, "request_throughput"), 1), figure(at(t, vllm, "output_throughput"), 1)},
		{"`aiperf`", figure(at(t, aiperf, "time_to_first_token.avg"), 1), figure(at(t, aiperf, "inter_token_latency.avg"), 1), figure(at(t, aiperf, "inter_chunk_latency.avg"), 1),
			figure(at(t, aiperf, "request_latency.avg"), 1), figure(at(t, aiperf, "request_throughput.avg"), 1), figure(at(t, aiperf, "output_token_throughput.avg"), 1)},
		{"`mlperf`", millis("Mean First Token latency (ns)"), millis("Mean Time to Output Token (ns)"), "", millis("Mean latency (ns)"), line("Completed samples per second"), line("Completed tokens per second")},
	}
	want := [][]string{
		{"500", "13.333", "20", "551", "1", "4"},
		{"505", "", "", "556", "", ""},
		{"500", "13.333", "20", "551", "1.281", "5.125"},
		{"5", "180", "135", "545", "1.281", "5.125"},
		{"500", "13.333", "20", "540", "1.29", "5.161"},
		{"505", "17", "", "556", "0.64", "5.12"},
	}
	text, err := os.ReadFile("../../../docs/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		if got := strings.Join(row[1:], " "); got != strings.Join(want[i], " ") {
			t.Errorf("%s: got %s, worked out by hand %s", row[0], got, strings.Join(want[i], " "))
		}
		if line := "| " + strings.Join(row, " | ") + " |"; !strings.Contains(string(text), line) {
			t.Errorf("docs/exports.md has not the row\n%s", line)
		}
	}
	if got := fmt.Sprint(at(t, vllm, "itls").([]any)[0]); got != "[0.495 0.02 0.02 0.005]" {
		t.Errorf("gaps of vllm: got %s", got)
	}
	if got := figure(at(t, perf, "successes.latency.normalized_time_per_output_token.mean"), 1e3); got != "137.75" {
		t.Errorf("NTPOT of inference-perf: got %s, want 137.75", got)
	}
	if got := figure(at(t, perf, "load_summary.achieved_rate"), 1) + " " + figure(at(t, perf, "load_summary.schedule_delay.mean"), 1e3); got != "1.98 5" {
		t.Errorf("achieved rate and schedule delay of inference-perf: got %s, want 2 requests over 1.01 s, and 5 ms", got)
	}
	if got := line("Scheduled samples per second"); got != "1.00" {
		t.Errorf("scheduled rate of LoadGen: got %s", got)
	}
}

func TestFailuresAreCountedByEachToolsRule(t *testing.T) {
	r := run(t)
	perf := saved(t, r, "inference-perf")
	stage := perf["stage_0_lifecycle_metrics.json"]
	if got := fmt.Sprint(at(t, stage, "successes.count"), at(t, stage, "failures.count")); got != "180 20" {
		t.Errorf("inference-perf: got %s, want 180 and 20", got)
	}
	if got := at(t, stage, "failures.by_label").(map[string]any)["503 - Service Unavailable"].(map[string]any)["count"]; got != 20.0 {
		t.Errorf("label of inference-perf: got %v", got)
	}
	if got := fmt.Sprint(at(t, perf["summary_lifecycle_metrics.json"], "load_summary.count")); got != "300" {
		t.Errorf("summary of inference-perf: got %s requests, want 300: the warm-up is none of its stages", got)
	}
	vllm := saved(t, r, "vllm")
	if got := fmt.Sprint(at(t, vllm["stage_0_vllm.json"], "completed"), at(t, vllm["stage_0_vllm.json"], "failed"), at(t, vllm["stage_1_vllm.json"], "max_concurrency"), at(t, vllm["stage_1_vllm.json"], "request_rate")); got != "180 20 4inf" {
		t.Errorf("vllm: got %s", got)
	}
	for _, label := range []string{
		"============ Serving Benchmark Result ============\nSuccessful requests:                     180       \nFailed requests:                         20        \n",
		"\n---------------Time to First Token----------------\nMean TTFT (ms):                          ",
		"\n-----Time per Output Token (excl. 1st token)------\n", "\n----------------End-to-end Latency----------------\n",
	} {
		if !strings.Contains(vllm["stage_0_vllm.txt"], label) {
			t.Errorf("table of vllm has not %q:\n%s", label, vllm["stage_0_vllm.txt"])
		}
	}
	aiperf := saved(t, r, "aiperf")
	if got := fmt.Sprint(at(t, aiperf["profile_export_aiperf.json"], "request_count.avg"), at(t, aiperf["profile_export_aiperf.json"], "error_request_count.avg")); got != "280 20" {
		t.Errorf("aiperf: got %s", got)
	}
	if got := strings.Count(aiperf["profile_export.jsonl"], `"error":{"code":503,"type":"http_error","message":"overloaded"}`); got != 20 {
		t.Errorf("aiperf: got %d records with the error, want 20", got)
	}
	if got := saved(t, r, "mlperf")["stage_0_mlperf_log_summary.txt"]; !strings.Contains(got, ": INVALID (20 of 200 requests failed") || strings.Count(got, ": -\n") < 2 {
		t.Errorf("LoadGen knows no failed request:\n%s", got)
	}
}

// A request that got no connection is one that failed, by the rule of every tool; one that was never sent is none of theirs.
func TestRefusedConnectionsAreFailures(t *testing.T) {
	refused := &record.Exchange{Index: 1, Session: 1, Due: time.Second, Issued: record.At(time.Second), Outcome: record.ConnectFailed, Error: "refused", End: record.At(time.Second + time.Millisecond)}
	unsent := &record.Exchange{Index: 2, Session: 2, Due: 1500 * time.Millisecond, Outcome: record.NotSent}
	r := streams(t, stream(0), refused, unsent)
	perf, vllm := saved(t, r, "inference-perf"), saved(t, r, "vllm")["stage_0_vllm.json"]
	for what, got := range map[string]string{
		"inference-perf": fmt.Sprint(at(t, perf["stage_0_lifecycle_metrics.json"], "successes.count"), at(t, perf["stage_0_lifecycle_metrics.json"], "failures.by_label.Connection Error.count")),
		"vllm":           fmt.Sprint(at(t, vllm, "completed"), at(t, vllm, "failed")),
		"aiperf":         fmt.Sprint(at(t, saved(t, r, "aiperf")["profile_export_aiperf.json"], "request_count.avg"), at(t, saved(t, r, "aiperf")["profile_export_aiperf.json"], "error_request_count.avg")),
		"llm-d":          fmt.Sprint(at(t, saved(t, r, "llm-d")["benchmark_report_stage_0.json"], "results.request_performance.aggregate.requests.total"), at(t, saved(t, r, "llm-d")["benchmark_report_stage_0.json"], "results.request_performance.aggregate.requests.failures")),
	} {
		if want := map[bool]string{true: "2 1", false: "1 1"}[what == "llm-d"]; got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	if got := saved(t, r, "mlperf")["stage_0_mlperf_log_summary.txt"]; !strings.Contains(got, "INVALID (1 of 2 requests failed") {
		t.Errorf("LoadGen: got\n%s", got)
	}
	if got := fmt.Sprint(at(t, vllm, "start_times")); got != "[0 1]" {
		t.Errorf("starts: got %s, want 0 and 1", got)
	}
}

// The keys of schema 0.2.1, which allows no others, as far as they are written.
var llmdKeys = map[string]string{
	"": "version run scenario results", "run": "uid eid time description keywords", "run.time": "start end duration", "scenario": "load",
	"scenario.load": "metadata standardized native", "scenario.load.metadata": "cfg_id", "scenario.load.native": "config",
	"scenario.load.standardized":               "tool tool_version source stage input_seq_len output_seq_len rate_qps concurrency",
	"scenario.load.standardized.input_seq_len": "distribution value min max", "results": "request_performance",
	"results.request_performance":                                       "aggregate time_series",
	"results.request_performance.aggregate":                             "requests latency throughput",
	"results.request_performance.aggregate.requests":                    "total failures incomplete input_length output_length",
	"results.request_performance.aggregate.latency":                     "time_to_first_token normalized_time_per_output_token time_per_output_token inter_token_latency request_latency",
	"results.request_performance.aggregate.throughput":                  "input_token_rate output_token_rate request_rate",
	"results.request_performance.aggregate.latency.time_to_first_token": "units mean min p1 p5 p10 p25 p50 p75 p90 p95 p99 p99p9 max",
	"results.request_performance.time_series":                           "latency throughput",
	"results.request_performance.time_series.latency":                   "time_to_first_token request_latency",
	"results.request_performance.time_series.throughput":                "input_token_rate output_token_rate request_rate",
}

func TestReportsOfLLMDHaveTheKeysOfTheirSchemaAndOurDigits(t *testing.T) {
	r := run(t)
	files := saved(t, r, "llm-d")
	if len(files) != 2 {
		t.Fatalf("got %d files, want one for each measured stage", len(files))
	}
	text := files["benchmark_report_stage_0.json"]
	for path, keys := range llmdKeys {
		v := at(t, "{\"x\":"+text+"}", strings.TrimSuffix("x."+path, "."))
		for key := range v.(map[string]any) {
			if !strings.Contains(" "+keys+" ", " "+key+" ") {
				t.Errorf("%s: the schema has no key %s", path, key)
			}
		}
	}
	want, _ := r.Summary.Stages[1].Metrics["ttft_ms"].P99.Get()
	if got := figure(at(t, text, "results.request_performance.aggregate.latency.time_to_first_token.p99"), 1e3); got != figure(want, 1) {
		t.Errorf("TTFT p99: got %s ms, summary %v", got, want)
	}
	if got := fmt.Sprint(at(t, text, "scenario.load.standardized.input_seq_len")); got != "map[distribution:fixed value:8]" {
		t.Errorf("length of prompts: got %s", got)
	}
	if got := len(at(t, text, "results.request_performance.time_series.throughput.request_rate.series").([]any)); got != 10 {
		t.Errorf("series: got %d seconds, want the stage's 10", got)
	}
}

func TestEndpointsThatAToolDoesNotReadAreRefused(t *testing.T) {
	r := twoStreams(t)
	r.Manifest.Target.Endpoint = "gemini"
	for _, name := range []string{"vllm", "inference-perf"} {
		f, _ := export.Find(name)
		if _, err := f.Save([]*export.Run{r}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "gemini") {
			t.Errorf("%s: got %v, want a refusal that names the endpoint", name, err)
		}
	}
}
