package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"tare/internal/judge"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/report/export"
)

const requests = 320

// exchange is request i: 20 of the warm-up, 200 of the open stage, of which every tenth fails, 100 of the closed one.
func exchange(i int64, rng *rand.Rand) *record.Exchange {
	stage, due := 0, time.Duration(i)*50*time.Millisecond
	if i >= 220 {
		stage, due = 2, 11*time.Second+time.Duration(i-220)*45*time.Millisecond
	} else if i >= 20 {
		stage = 1
	}
	issued := due + time.Duration(rng.IntN(1000))*time.Microsecond
	sent := issued + time.Duration(rng.IntN(500))*time.Microsecond
	x := &record.Exchange{
		Index: i, Session: i, Stage: stage, Due: due, Issued: record.At(issued), ConnReady: record.At(sent), FirstWrite: record.At(sent),
		Outcome: record.Completed, Status: 200, FinishReason: "length", Reads: 8, Attempts: 1,
	}
	at := sent + time.Duration(20+rng.IntN(30))*time.Millisecond + time.Duration(rng.IntN(1000))*time.Nanosecond
	x.HeaderAt = record.At(at - time.Millisecond)
	event := func(kind record.Kind) {
		x.Events = append(x.Events, record.Event{KernelAt: at, UserAt: at + 20*time.Microsecond, Kind: kind, Flags: record.FlagStamped})
	}
	event(record.KindRole)
	tokens := 3 + rng.IntN(3)
	for range tokens {
		at += time.Duration(8_000_000 + rng.IntN(4_000_000))
		event(record.KindContent)
	}
	at += 100 * time.Microsecond
	event(record.KindFinish)
	event(record.KindUsage)
	event(record.KindTerminator)
	x.Usage = record.Usage{Known: true, Input: 8, Output: tokens, Cached: 4, CachedKnown: true}
	x.End = record.At(at + 50*time.Microsecond)
	if stage == 1 && i%10 == 0 {
		x.Outcome, x.Cause, x.Status, x.Error, x.Events, x.Usage, x.FinishReason = record.HTTPError, record.CauseHTTPStatus, 503, "overloaded", nil, record.Usage{}, ""
	}
	return x
}

// run writes a run directory: a warm-up, an open stage of 200 requests and a closed one of 100, of which some failed.
func run(t *testing.T) *export.Run {
	t.Helper()
	dir := t.TempDir()
	m := &record.Manifest{
		Schema: record.ManifestSchema, Tool: record.Tool{Version: "v1"}, Plan: record.PlanIDs{PlanID: "plan", ContentID: "content", Complete: true},
		Spec: json.RawMessage(`{"load":{"seed":7,"arrival":"poisson"},"target":{"model":"m"},"workload":{"input_tokens":8,"output_tokens":"uniform(3,5)"}}`),
		Stages: []record.Stage{
			{Name: "warmup", Warmup: true, Kind: "open", StartMs: 0, EndMs: 1000, Planned: 20, RatePerS: 20},
			{Name: "steady one", Kind: "open", StartMs: 1000, EndMs: 11000, Planned: 200, RatePerS: 20, Arrivals: "20/s poisson, CV 1"},
			{Name: "closed", Kind: "closed", StartMs: 11000, EndMs: 16000, Planned: 100, Concurrency: 4},
		},
		Workload: &record.Workload{MeanInput: 8, MeanOutput: 4},
		Target:   record.Target{URL: "http://127.0.0.1:8000", Model: "m", Endpoint: "openai-chat", Stream: true},
		Client:   record.Client{Engine: "epoll", Loops: 1, KernelStamps: true},
		Clock:    record.Clock{StartWall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), StartMonotonicNs: 1},
		Env:      record.Environment{OS: "linux", Arch: "amd64", CPU: "Some CPU"},
		Loops:    []record.Loop{{WallNs: 16e9, CPUNs: 1e9}},
		State:    record.State{Complete: true, EndMs: 16200, CPUMs: 900},
	}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var block []byte
	for i := range int64(requests) {
		block = record.AppendExchange(block, exchange(i, rng))
	}
	if err := log.WriteBlock(block, requests); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := judge.Summarize(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	r, err := export.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// written is what a form of one file holds.
func written(t *testing.T, r *export.Run, name string) []byte {
	t.Helper()
	f, err := export.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(r, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTablesOfRequestsAgreeToTheLastDigit(t *testing.T) {
	r := run(t)
	table, err := csv.NewReader(bytes.NewReader(written(t, r, "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	file := written(t, r, "parquet")
	rows := tableRows(t, file)
	objects := bytes.Split(bytes.TrimSpace(written(t, r, "jsonl")), []byte("\n"))
	if len(objects) != requests || len(table) != requests+1 || len(rows) != requests {
		t.Fatalf("got %d objects, %d lines, %d rows, want %d", len(objects), len(table)-1, len(rows), requests)
	}
	for i, text := range objects {
		var object map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			t.Fatal(err)
		}
		if len(object) != len(table[0]) || len(object) != len(rows[i]) {
			t.Fatalf("request %d: got %d keys, %d columns, %d columns of the Parquet file", i, len(object), len(table[0]), len(rows[i]))
		}
		for k, column := range table[0] {
			if want, got := shown(object[column]), table[i+1][k]; got != want {
				t.Errorf("request %d, %s: CSV %q, JSON %q", i, column, got, want)
			}
			if want, got := object[column], rows[i][column]; !same(got, want) {
				t.Errorf("request %d, %s: Parquet %v, JSON %v", i, column, got, want)
			}
		}
	}
}

// tableRows are the rows of a Parquet file by its columns.
func tableRows(t *testing.T, text []byte) (all []map[string]any) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	columns := f.Schema().Columns()
	reader := parquet.NewReader(f)
	rows := make([]parquet.Row, requests+1)
	n, err := reader.ReadRows(rows)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	for _, row := range rows[:n] {
		object := map[string]any{}
		for _, v := range row {
			object[columns[v.Column()][0]] = plainValue(v)
		}
		all = append(all, object)
	}
	return all
}

func plainValue(v parquet.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Double:
		return v.Double()
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case v.Kind() == parquet.Int32:
		return v.Int32()
	}
	return string(v.ByteArray())
}

func shown(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// same compares a value of a Parquet file with one of JSON. Numbers must be the same float64, not near it.
func same(got, want any) bool {
	n, number := want.(json.Number)
	if !number {
		return got == want
	}
	v, err := n.Float64()
	switch g := got.(type) {
	case float64:
		return err == nil && g == v
	case int64:
		return err == nil && float64(g) == v
	case int32:
		return err == nil && float64(g) == v
	}
	return false
}

func TestTimeseriesAddsUpToTheTotals(t *testing.T) {
	r := run(t)
	table, err := csv.NewReader(bytes.NewReader(written(t, r, "timeseries"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := "at_ms,width_ms,due_per_s,sent_per_s,completed_per_s"; !strings.HasPrefix(strings.Join(table[0], ","), want) {
		t.Errorf("head: got %s", strings.Join(table[0], ","))
	}
	var due, completed float64
	for _, line := range table[1:] {
		d, _ := strconv.ParseFloat(line[2], 64)
		c, _ := strconv.ParseFloat(line[4], 64)
		due, completed = due+d, completed+c
	}
	if due != requests || completed != requests-20 {
		t.Errorf("got %v due and %v completed over the run, want %d and %d", due, completed, requests, requests-20)
	}
}

func TestTextFormsHaveTheDigitsOfTheSummary(t *testing.T) {
	r := run(t)
	var summary struct {
		Stages []struct {
			Name    string
			Metrics map[string]map[string]json.Number
		}
		Total struct {
			Metrics map[string]map[string]json.Number
		}
	}
	file, err := os.ReadFile(filepath.Join(r.Dir, report.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &summary); err != nil {
		t.Fatal(err)
	}
	metrics, bench := string(written(t, r, "openmetrics")), string(written(t, r, "benchstat"))
	if !strings.HasSuffix(metrics, "\n# EOF\n") {
		t.Error("OpenMetrics text does not end as it must")
	}
	for _, s := range summary.Stages[1:] {
		for _, metric := range []string{"ttft_ms", "e2e_from_due_ms", "slip_ms", "icl_ms"} {
			p99 := s.Metrics[metric]["p99"].String()
			line := fmt.Sprintf("tare_%s_seconds{stage=%q,quantile=\"0.99\"} ", strings.TrimSuffix(metric, "_ms"), s.Name)
			_, rest, found := strings.Cut(metrics, line)
			got, _, _ := strings.Cut(rest, "\n")
			if !found || moved(got, 3) != moved(p99, 0) {
				t.Errorf("%s of %s: OpenMetrics %s s, summary %s ms", metric, s.Name, got, p99)
			}
		}
		_, rest, _ := strings.Cut(bench, fmt.Sprintf("BenchmarkTTFTFromDue/stage=%s ", strings.ReplaceAll(s.Name, " ", "_")))
		fields := strings.Fields(rest)
		if want := s.Metrics["ttft_from_due_ms"]["p50"].String(); len(fields) < 5 || fields[4] != "p50-ns" || moved(fields[3], 0) != moved(want, 6) {
			t.Errorf("TTFT from due of %s: benchstat %v, summary %s ms", s.Name, fields[:min(len(fields), 5)], want)
		}
	}
	if want := `tare_requests_total{stage="steady one",outcome="http_error"} 20`; !strings.Contains(metrics, want) {
		t.Errorf("no line %s", want)
	}
}

// moved gives the digits of a number with its point moved to the right, as a whole number of 10⁻⁹.
func moved(number string, places int) string {
	whole, part, _ := strings.Cut(number, ".")
	digits := whole + part + strings.Repeat("0", 9+places-len(part))
	return strings.TrimLeft(digits, "0")
}

func TestFormatsAreFoundByName(t *testing.T) {
	r := run(t)
	for _, f := range export.Formats() {
		got, err := export.Find(f.Name)
		if err != nil || got.Name != f.Name {
			t.Errorf("%s: got %s, %v", f.Name, got.Name, err)
		}
		files, err := f.Save([]*export.Run{r}, filepath.Join(t.TempDir(), "new", f.File))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: got %v, %v", f.Name, files, err)
		}
	}
	if _, err := export.Find("xml"); err == nil || !strings.Contains(err.Error(), `must be one of parquet, csv, `) {
		t.Errorf("xml: got %v", err)
	}
}
