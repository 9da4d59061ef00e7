package trace_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/plan/input"
	"tare/internal/plan/trace"
)

func read(t *testing.T, name string, options trace.Options) *trace.Trace {
	t.Helper()
	got, err := trace.Read(filepath.Join("testdata", name), options)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return got
}

func times(tr *trace.Trace) (all []time.Duration) {
	for _, row := range tr.Rows {
		all = append(all, row.At)
	}
	return all
}

func TestAzureTimesAreExact(t *testing.T) {
	for _, c := range []struct {
		name string
		want []time.Duration
		rows []string
	}{
		{"azure2023.csv", []time.Duration{0, 52 * time.Millisecond, 52 * time.Millisecond, 98_199_100}, []string{"4808/10/0", "3180/8/0", "110/27/0", "7433/14/0"}},
		{"azure2024.csv", []time.Duration{0, 990_070_000, 1_490_070_000}, []string{"2162/5/0", "2399/6/0", "76/15/0"}},
		{"azure2025.csv", []time.Duration{0, 200 * time.Millisecond}, []string{"500/12/0", "2500/80/2"}},
	} {
		tr := read(t, c.name, trace.Options{})
		if got := times(tr); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: times: got %v, want %v", c.name, got, c.want)
		}
		var rows []string
		for _, r := range tr.Rows {
			rows = append(rows, fmt.Sprintf("%d/%d/%d", r.InputTokens, r.OutputTokens, r.Images))
		}
		if !reflect.DeepEqual(rows, c.rows) {
			t.Errorf("%s: input/output/images: got %v, want %v", c.name, rows, c.rows)
		}
		if tr.Format != trace.Azure || tr.Facts.Spread != "" || tr.Facts.Sessions != len(c.rows) {
			t.Errorf("%s: got format %s, spread %q, %d sessions, want azure, not spread, a session each", c.name, tr.Format, tr.Facts.Spread, tr.Facts.Sessions)
		}
	}
}

func TestBadTraceNamesAllItsMistakes(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
	}{
		{"azure-bad.csv", []string{
			`azure-bad.csv:3: ContextTokens: must be a whole number of tokens, got "abc"`,
			`azure-bad.csv:3: GeneratedTokens: must be a whole number of tokens, got "-1"`,
			`azure-bad.csv:5: TIMESTAMP: must be a time, got "yesterday"`,
			"azure-bad.csv:6: must have 3 fields as the header has",
			"azure-bad.csv:7: has a quote that is never closed",
		}},
		{"azure-columns.csv", []string{"azure-columns.csv:1: ContextTokens: is a column", "azure-columns.csv:1: GeneratedTokens: is a column"}},
		{"otel-bad.jsonl", []string{
			"otel-bad.jsonl:1: end_time: must not be before start_time", `start_time: must be a time, got "today"`, "end_time: must be a time",
			`gen_ai.usage.input_tokens: must be a whole number of tokens, got "-4"`, `gen_ai.input.messages: must be a list of messages, got "hello"`,
			"otel-bad.jsonl:2: trace_id: is of the wrong type",
		}},
		{"weka-bad.jsonl", []string{
			`weka-bad.jsonl:1: t: is before the time of the row above, got "9.0"`, "hash_ids: names more whole blocks than the input has",
			`type: must be s, n or subagent, got "q"`,
		}},
	} {
		tr, err := trace.Read(filepath.Join("testdata", c.name), trace.Options{})
		if err == nil {
			err = tr.Facts.Faults
		}
		var faults input.Faults
		if !errors.As(err, &faults) {
			t.Errorf("%s: got error %v, want faults", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got\n%v\nwant a fault with %q", c.name, err, want)
			}
		}
	}
}

func TestBadRowsAreCountedAndTheRestIsRead(t *testing.T) {
	tr := read(t, "azure-bad.csv", trace.Options{Sort: true})
	if got, want := len(tr.Rows), 3; got != want {
		t.Errorf("good rows: got %d, want %d", got, want)
	}
	if tr.Facts.Read != 7 || tr.Facts.Unsorted != 0 {
		t.Errorf("rows and unsorted: got %d and %d, want 7 and 0", tr.Facts.Read, tr.Facts.Unsorted)
	}
	bad := read(t, "mooncake-bad.jsonl", trace.Options{})
	want := []input.Count{
		{Key: "hash_ids", Reason: "must name one block for each 512 tokens begun, or for the block size asked for", Rows: 1},
		{Key: "input_length", Reason: "must be a whole number of tokens", Rows: 1},
		{Key: "", Reason: "is not valid JSON", Rows: 1},
		{Key: "input_length", Reason: "is missing", Rows: 1},
		{Key: "output_length", Reason: "must be a whole number of tokens", Rows: 1},
		{Key: "timestamp", Reason: "must be a time", Rows: 1},
		{Key: "delay", Reason: "is after a turn that is not there", Rows: 1},
		{Key: "", Reason: "is not an object of this format", Rows: 1},
	}
	if !reflect.DeepEqual(bad.Facts.Refused, want) {
		t.Errorf("refused: got %v, want %v", bad.Facts.Refused, want)
	}
}

func TestBurstGPTIsSpreadOverItsSeconds(t *testing.T) {
	tr := read(t, "burstgpt.csv", trace.Options{Seed: 3})
	if tr.Facts.Grid != time.Second || tr.Facts.Spread != "trace/spread" {
		t.Errorf("grid: got %v by %q, want 1s by trace/spread", tr.Facts.Grid, tr.Facts.Spread)
	}
	if got, want := tr.Facts.Refused, []input.Count{{Key: "Response tokens", Reason: "is 0: the request failed when it was recorded", Rows: 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("refused: got %v, want %v", got, want)
	}
	if got, want := tr.Facts.Notes, []input.Count{{Key: "Total tokens", Reason: "is not the sum of request and response tokens", Rows: 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("notes: got %v, want %v", got, want)
	}
	last := tr.Rows[len(tr.Rows)-1]
	if last.Session != tr.Rows[0].Session || last.Turn != 1 || !reflect.DeepEqual(last.After, []int{0}) || last.Gap != 37*time.Second || last.Took != 12*time.Second {
		t.Errorf("second turn of s-a: got %+v, want turn 1 after row 0, 37 s behind its end", last)
	}
	for i := 1; i < len(tr.Rows); i++ {
		if tr.Rows[i].At < tr.Rows[i-1].At {
			t.Errorf("row %d: got %v after %v, want times in order", i, tr.Rows[i].At, tr.Rows[i-1].At)
		}
	}
	kept := times(read(t, "burstgpt.csv", trace.Options{KeepGrid: true}))
	if want := []time.Duration{0, 0, 2 * time.Second, 2 * time.Second, 80 * time.Second}; !reflect.DeepEqual(kept, want) {
		t.Errorf("times on the grid: got %v, want %v", kept, want)
	}
	first := read(t, "burstgpt-first.csv", trace.Options{})
	if len(first.Rows) != 3 || first.Facts.Spread != "" {
		t.Errorf("first release: got %d rows spread by %q, want 3, not spread: no two at one time", len(first.Rows), first.Facts.Spread)
	}
}

func TestMooncakeBlocksAreSharedPrefixes(t *testing.T) {
	tr := read(t, "mooncake.jsonl", trace.Options{})
	if tr.BlockSize != 512 || tr.FullBlocks || tr.Facts.Grid != 3*time.Second || tr.Facts.Spread == "" {
		t.Errorf("got blocks of %d, full %v, grid %v spread by %q, want 512, false, 3s and a stream", tr.BlockSize, tr.FullBlocks, tr.Facts.Grid, tr.Facts.Spread)
	}
	if got, want := [2]int64{tr.Facts.Reused, tr.Facts.Blocks}, [2]int64{1 + 3 + 1 + 1, 13}; got != want {
		t.Errorf("reused of all blocks: got %v, want %v", got, want)
	}
	want := [][]uint64{{0, 1, 2}, {0, 3}, {0, 1, 2, 4}, {0}, {0, 5}, {6}}
	for i, row := range tr.Rows {
		if !reflect.DeepEqual(row.Blocks, want[i]) {
			t.Errorf("row %d: blocks: got %v, want %v", i, row.Blocks, want[i])
		}
	}
	for i, cell := range []time.Duration{0, 0, 1, 1, 3, 4} { // the times count from the first row, which is somewhere in cell 0
		if got, least, most := tr.Rows[i].At, (cell-1)*3*time.Second, (cell+1)*3*time.Second; got < least || got >= most {
			t.Errorf("row %d: got %v, want within %v and %v", i, got, least, most)
		}
	}
}

// It pins the spread times on every architecture.
func TestSpreadIsAFunctionOfTheSeed(t *testing.T) {
	got := fmt.Sprint(times(read(t, "mooncake.jsonl", trace.Options{Seed: 7})))
	if want := goldenSpread; got != want {
		t.Errorf("times of seed 7: got %s, want %s", got, want)
	}
	if other := fmt.Sprint(times(read(t, "mooncake.jsonl", trace.Options{Seed: 8}))); other == got {
		t.Errorf("times of seed 8: got those of seed 7, want others")
	}
}

const goldenSpread = "[0s 2.379827441s 4.282196843s 5.152283961s 10.459975493s 14.471655341s]"

func TestMooncakeSessionsFollowTheirTurns(t *testing.T) {
	tr := read(t, "mooncake-sessions.jsonl", trace.Options{})
	last := tr.Rows[2]
	if last.At != 2500500*time.Microsecond || last.Session != tr.Rows[0].Session || last.Turn != 1 || last.Gap != 2500500*time.Microsecond || !reflect.DeepEqual(last.After, []int{0}) {
		t.Errorf("second turn of a: got %+v, want 2.5005 s after row 0", last)
	}
	if call := tr.Rows[1].Call; call == nil || call.Messages[0].Text != "Say hello." {
		t.Errorf("text of row 1: got %+v, want the recorded one", call)
	}
}

func TestBailianChainsAreSessions(t *testing.T) {
	tr := read(t, "bailian.jsonl", trace.Options{})
	var got []string
	for _, r := range tr.Rows {
		got = append(got, fmt.Sprintf("%v session %d turn %d after %v %s", r.At, r.Session, r.Turn, r.After, r.Class))
	}
	want := []string{
		"0s session 0 turn 0 after [] text", "136ms session 1 turn 0 after [] search", "8.886s session 1 turn 1 after [1] search",
		"34.386s session 1 turn 2 after [2] search",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got, want := tr.Facts.Notes, []input.Count{
		{Key: "parent_chat_id", Reason: "names a turn that is not there: the row begins a session", Rows: 1},
		{Key: "hash_ids", Reason: "names more or fewer blocks than the input has", Rows: 1},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("notes: got %v, want %v", got, want)
	}
	if tr.BlockSize != 16 || tr.Facts.Spread != "" {
		t.Errorf("got blocks of %d spread by %q, want 16 and times as they are", tr.BlockSize, tr.Facts.Spread)
	}
}

func TestWekaAgentsKeepTheirCachesApart(t *testing.T) {
	tr := read(t, "weka", trace.Options{})
	if !tr.Relative || !tr.FullBlocks || tr.BlockSize != 64 || tr.Facts.Sessions != 2 || len(tr.Rows) != 8 {
		t.Fatalf("got %+v, want two sessions of four calls, times of their own", tr)
	}
	var got []string
	for _, r := range tr.Rows[:4] {
		got = append(got, fmt.Sprintf("%v turn %d after %v gap %v think %v %q %v", r.At, r.Turn, r.After, r.Gap, r.Think, r.Class, r.Blocks))
	}
	want := []string{
		`0s turn 0 after [] gap 0s think 0s "" [1 2 3]`,
		`4.5s turn 1 after [0] gap 2s think 0s "explore" [4 5]`,
		`6.5s turn 2 after [1] gap 1s think 0s "explore" [4 5 6]`,
		`15s turn 3 after [0 2] gap 7s think 1.25s "" [1 2 3 7]`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if second := tr.Rows[4]; second.Session != 1 || second.Blocks[0] == tr.Rows[0].Blocks[0] || second.File != 1 {
		t.Errorf("second conversation: got %+v, want blocks of its own", second)
	}
	cut := read(t, "weka", trace.Options{MaxGap: 5 * time.Second})
	if cut.Rows[3].Gap != 5*time.Second || cut.Facts.CutGaps != 2 {
		t.Errorf("gap cut to 5 s: got %v, %d cut, want 5s and 2", cut.Rows[3].Gap, cut.Facts.CutGaps)
	}
}

func TestOTelDependenciesAreFrozen(t *testing.T) {
	tr := read(t, "otel.json", trace.Options{})
	var got []string
	for _, r := range tr.Rows {
		got = append(got, fmt.Sprintf("%v turn %d after %v gap %v %d/%d failed %v", r.At, r.Turn, r.After, r.Gap, r.InputTokens, r.OutputTokens, r.Failed))
	}
	want := []string{
		"0s turn 0 after [] gap 0s 12/9 failed false",
		"2.999999999s turn 1 after [0] gap 1s 20/7 failed false",
		"9.249999999s turn 2 after [0] gap 7.25s 40/4 failed false",
		"11.999999999s turn 3 after [1] gap 5.5s 22/1 failed true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if m := tr.Rows[2].Call.Messages[1]; !m.HasFrom || m.From != 0 {
		t.Errorf("message that repeats the first reply: got %+v, want it from row 0", m)
	}
	if calls := tr.Rows[1].Call.ToolCalls; !reflect.DeepEqual(calls, []string{"lookup"}) {
		t.Errorf("tool calls: got %v, want [lookup]", calls)
	}
	if tr.Facts.Read != 5 || len(tr.Facts.Notes) != 1 {
		t.Errorf("spans and notes: got %d and %v, want 5 and the tool's span", tr.Facts.Read, tr.Facts.Notes)
	}
}

func TestUnsortedRowsAreSortedOnRequestOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:05,1,1\n2023-11-16 18:17:04,2,1\n2023-11-16 18:17:06,3,1\n2023-11-16 18:17:05.5,4,1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := trace.Read(path, trace.Options{})
	for _, want := range []string{`a.csv:3: TIMESTAMP: is before the time of the row above, got "2023-11-16 18:17:04"`, "a.csv:5: TIMESTAMP", "hint:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q in it", err, want)
		}
	}
	tr, err := trace.Read(path, trace.Options{Sort: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := times(tr), []time.Duration{0, time.Second, 1500 * time.Millisecond, 2 * time.Second}; !reflect.DeepEqual(got, want) || tr.Facts.Unsorted != 2 {
		t.Errorf("sorted: got %v, %d unsorted, want %v, 2", got, tr.Facts.Unsorted, want)
	}
}

func TestPartOfATraceIsItsWindow(t *testing.T) {
	tr := read(t, "azure2023.csv", trace.Options{From: 50 * time.Millisecond, Until: 98 * time.Millisecond})
	if got, want := times(tr), []time.Duration{0, 0}; !reflect.DeepEqual(got, want) || tr.Facts.Outside != 2 {
		t.Errorf("window: got %v, %d outside, want %v, 2", got, tr.Facts.Outside, want)
	}
	if _, err := trace.Read("testdata/azure2023.csv", trace.Options{MaxRows: 3}); err == nil || !strings.Contains(err.Error(), "azure2023.csv:5: has more than 3 requests") {
		t.Errorf("limit of rows: got %v, want a fault at line 5", err)
	}
	if _, err := trace.Read("testdata/azure2023.csv", trace.Options{From: time.Hour}); err == nil || !strings.Contains(err.Error(), "has no request in the part") {
		t.Errorf("empty window: got %v, want a fault", err)
	}
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// What is drawn from client models has the rates, the variation and the lengths of each client's windows, is the same for the same seed, and
// a part of it is what the whole has there.
func TestClientModelsAreDrawnFrom(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"chunk-2-trace.csv":    "0,5,2,Gamma,0.25,0.8\n2000,0,0,,0,0\n4000,20,0.5,Weibull,2.1,0.0564\n",
		"chunk-2-dataset.json": `{"0": {"input_tokens": "{10: 1, 30: 3}", "output_tokens": "{2: 1, 4: 1}"}, "4000": {"input_tokens": "{}", "output_tokens": "{7: 1}"}}`,
		"chunk-9-trace.csv":    "0,0,0,,0,0\n",
		"chunk-9-dataset.json": `{"0": {"input_tokens": "{}"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := trace.Read(dir, trace.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	counts, long, both := [3]int{}, 0, 0
	for i, r := range got.Rows {
		if i > 0 && r.At < got.Rows[i-1].At {
			t.Fatalf("row %d comes at %v, before the one above", i, r.At)
		}
		window := int(r.At / (2000 * time.Second))
		counts[window]++
		if window == 0 && r.InputTokens == 30 {
			long++
			if r.OutputTokens == 4 {
				both++
			}
		}
		if r.Class != "client 2" || window == 2 && r.OutputTokens != 7 {
			t.Fatalf("row %d: got %+v", i, r)
		}
	}
	// 10,000 with a CV of 2 in 2000 s, none, and 12,000 in the 600 s of a last window
	if counts[1] != 0 || counts[0] < 9200 || counts[0] > 10800 || counts[2] < 11700 || counts[2] > 12300 {
		t.Errorf("got %v requests in the windows, want about 10000, 0 and 12000", counts)
	}
	if share := float64(long) / float64(counts[0]); share < 0.72 || share > 0.78 {
		t.Errorf("%.3f of the inputs are long, want 0.75", share)
	}
	if share := float64(both) / float64(long); share < 0.46 || share > 0.54 {
		t.Errorf("%.3f of the long inputs have long outputs, want half: they are drawn apart", share)
	}
	part, err := trace.Read(dir, trace.Options{Seed: 3, From: 100 * time.Second, Until: 200 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	from := func(first int) bool { // whether the part is the whole from a row on
		for i, r := range part.Rows {
			whole := got.Rows[first+i]
			if r.InputTokens != whole.InputTokens || r.At != whole.At-100*time.Second {
				return false
			}
		}
		return true
	}
	if !slices.ContainsFunc(indexes(counts[0]-len(part.Rows)), from) {
		t.Error("the part is no part of the whole")
	}
	if n := len(part.Rows); n < 300 || n > 700 || part.Facts.Grid != 0 {
		t.Errorf("part: got %d rows, grid %v, want about 500 and none", n, part.Facts.Grid)
	}
	if other, err := trace.Read(dir, trace.Options{Seed: 4}); err != nil || other.Rows[0].At+other.Rows[1].At == got.Rows[0].At+got.Rows[1].At {
		t.Errorf("another seed: error %v, or the same times", err)
	}
	if _, err := trace.Read("testdata/servegen-bad", trace.Options{}); err == nil || !strings.Contains(err.Error(), "pattern: must be Gamma") {
		t.Errorf("broken models: got %v", err)
	}
}

func TestAClientWithoutLengthsIsRefusedInTheSameWordsEachTime(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"chunk-3-trace.csv": "0,1,1,Gamma,1,1\n", "chunk-3-dataset.json": `{"0": {"input_tokens": "{}", "output_tokens": "{}"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		_, err := trace.Read(dir, trace.Options{})
		if err == nil {
			t.Fatal("read without an error")
		}
		in, out := strings.Index(err.Error(), "input_tokens: client 3 has no lengths"), strings.Index(err.Error(), "output_tokens: client 3 has no lengths")
		if in < 0 || out < in {
			t.Fatalf("got %v, want both faults, that of the input first", err)
		}
	}
}

// Calls of tools and their answers are read in both spellings, into one.
func TestCallsOfToolsAreInTheHistory(t *testing.T) {
	for _, messages := range []string{
		`[{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "3"}]`,
		`[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a":1}}]}, {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "3"}]}]`,
	} {
		quoted, _ := json.Marshal(messages)
		path := filepath.Join(t.TempDir(), "spans.json")
		text := fmt.Sprintf(`{"trace_id": "t", "spans": [{"name": "chat", "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "attributes": {"gen_ai.input.messages": %s}}]}`, quoted)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := trace.Read(path, trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := []trace.Message{
			{Role: "assistant", Calls: json.RawMessage(`[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]`)},
			{Role: "tool", Text: "3", Answers: "c1"},
		}
		if !reflect.DeepEqual(got.Rows[0].Call.Messages, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", messages, got.Rows[0].Call.Messages, want)
		}
	}
}

func TestClientModelsAreReadStrictly(t *testing.T) {
	got, err := trace.ReadClients("testdata/servegen")
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Client{
		{
			Number: 0,
			Windows: []trace.Window{
				{Start: 0, Rate: 1.3316666666666668, CV: 8.598383725990791, Family: "Weibull", Shape: 0.3753486140101707, Scale: 0.3967677807107179},
				{Start: 600 * time.Second},
				{Start: 1200 * time.Second, Rate: 2.5, CV: 1.2, Family: "Gamma", Shape: 0.69, Scale: 0.58},
			},
			Datasets: []trace.Dataset{
				{Start: 0, Fields: []trace.Histogram{
					{Field: "input_tokens", Values: []float64{12, 40}, Weights: []float64{0.25, 0.75}},
					{Field: "output_tokens", Values: []float64{1}, Weights: []float64{1}},
				}},
				{Start: 21600 * time.Second, Fields: []trace.Histogram{{Field: "input_tokens"}, {Field: "output_tokens"}}},
			},
		},
		{
			Number:  11,
			Windows: []trace.Window{{Rate: 0.5, CV: 1, Family: "Gamma", Shape: 1, Scale: 2}},
			Datasets: []trace.Dataset{{Fields: []trace.Histogram{
				{Field: "input_tokens", Values: []float64{7}, Weights: []float64{3}},
				{Field: "output_tokens", Values: []float64{3, 5}, Weights: []float64{1, 1}},
			}}},
		},
	}
	if !reflect.DeepEqual(got.Clients, want) {
		t.Errorf("got  %+v\nwant %+v", got.Clients, want)
	}
	_, err = trace.ReadClients("testdata/servegen-bad")
	for _, want := range []string{
		`chunk-1-trace.csv:1: pattern: must be Gamma, Weibull, or empty for an idle client, got "Pareto"`, `trace.csv:2: rate: must be a number from 0, got "nan"`,
		"trace.csv:3: pattern: must come with a shape", "trace.csv:4: must have the six fields", `input_tokens: must be a dictionary of numbers`,
		"output_tokens: must not have a value twice", `window: must be a time, got "soon"`, "chunk-2-dataset.json: is missing",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant %q in it", err, want)
		}
	}
}

// readText reads a recording of a test's own.
func readText(t *testing.T, text string, options trace.Options) *trace.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := trace.Read(path, options)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSpreadingKeepsTheOrderOfTheFile(t *testing.T) {
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": 1}`+"\n", i/100*3000, i+1)
	}
	tr := readText(t, text.String(), trace.Options{Seed: 1})
	var sum time.Duration
	for i, row := range tr.Rows {
		if row.InputTokens != i+1 || i > 0 && row.At < tr.Rows[i-1].At {
			t.Fatalf("row %d: got row %d of the file at %v after %v", i, row.InputTokens-1, row.At, tr.Rows[max(i-1, 0)].At)
		}
		sum += row.At - time.Duration(i/100)*3*time.Second
	}
	if mean := sum / 300; mean < 1200*time.Millisecond || mean > 1800*time.Millisecond {
		t.Errorf("mean place in the cell of 3 s: got %v, want about its middle", mean)
	}
}

func TestABlockIsReusedOnlyBehindReusedOnes(t *testing.T) {
	tr := readText(t, `{"timestamp": 0, "input_length": 900, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 1, "input_length": 900, "output_length": 1, "hash_ids": [3, 2]}
{"timestamp": 2, "input_length": 1500, "output_length": 1, "hash_ids": [1, 7, 2]}
`, trace.Options{})
	if tr.Facts.Reused != 1 || tr.Facts.Blocks != 7 {
		t.Errorf("got %d of %d blocks reused, want 1 of 7", tr.Facts.Reused, tr.Facts.Blocks)
	}
}

func TestAgentsWaitForWhatHadEndedOnly(t *testing.T) {
	tr := readText(t, `{"id": "c", "block_size": 64, "requests": [
		{"t": 0, "type": "s", "in": 10, "out": 1, "api_time": 1},
		{"t": 1, "type": "subagent", "requests": [{"t": 1, "type": "n", "in": 10, "out": 1, "api_time": 1}]},
		{"t": 3, "type": "s", "in": 10, "out": 1, "api_time": 2},
		{"t": 5, "type": "s", "in": 10, "out": 1, "api_time": 4},
		{"t": 6, "type": "s", "in": 10, "out": 1}]}`, trace.Options{})
	var got []string
	for _, r := range tr.Rows {
		got = append(got, fmt.Sprint(r.After))
	}
	if want := []string{"[]", "[0]", "[0 1]", "[2]", "[2]"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows waited for: got %v, want %v", got, want)
	}
}

func TestSpansOfLaterFilesMayComeEarlier(t *testing.T) {
	span := func(start, end, in, out string) string {
		return fmt.Sprintf(`{"start_time": "2026-01-02T10:00:%sZ", "end_time": "2026-01-02T10:00:%sZ", "attributes": {"gen_ai.usage.input_tokens": 1,
			"gen_ai.input.messages": %q, "gen_ai.output.text": %q}}`, start, end, in, out)
	}
	one := `{"trace_id": "a", "spans": [` + span("10", "11", `[{"role":"user","content":"q"}]`, "yes") + "," +
		span("11", "12", `[{"role":"assistant","content":"yes"},{"role":"user","content":"r"}]`, "no") + "," +
		span("13", "14", `[{"role":"user","content":"say yes or no"}]`, "maybe") + `]}`
	two := `{"trace_id": "b", "spans": [` + span("05", "06", `[{"role":"user","content":"q"}]`, "yes") + `]}`
	one, two = strings.ReplaceAll(one, "\n", ""), strings.ReplaceAll(two, "\n", "")
	tr := readText(t, one+"\n"+two+"\n", trace.Options{})
	var got []string
	for _, r := range tr.Rows {
		got = append(got, fmt.Sprintf("%v session %d turn %d after %v", r.At, r.Session, r.Turn, r.After))
	}
	want := []string{"0s session 1 turn 0 after []", "5s session 0 turn 0 after []", "6s session 0 turn 1 after [1]", "8s session 0 turn 2 after [2]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if m := tr.Rows[2].Call.Messages[0]; !m.HasFrom || m.From != 1 {
		t.Errorf("message that repeats a reply: got %+v, want it from row 1", m)
	}
	part := readText(t, one+"\n"+two+"\n", trace.Options{From: 6 * time.Second})
	if len(part.Rows) != 2 || part.Rows[0].After != nil || part.Rows[0].Call.Messages[0].HasFrom || part.Facts.Outside != 2 {
		t.Errorf("from 6 s on: got %+v, want two rows, the first after none", part.Rows)
	}
}

func TestTimesFarApartAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n1950-01-01 00:00:00,1,1\n2100-01-01 00:00:00,1,1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Read(path, trace.Options{}); err == nil || !strings.Contains(err.Error(), "a.csv:3: is more than 100 years after the first request") {
		t.Errorf("150 years: got %v, want a fault at line 3", err)
	}
}

func TestClientWindowsAreInOrder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"chunk-0-trace.csv": "600,1,1,Gamma,1,1\n600,1,1,Gamma,1,1\n", "chunk-0-dataset.json": `{"0": {"a": "{1: 1}"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := trace.ReadClients(dir); err == nil || !strings.Contains(err.Error(), "chunk-0-trace.csv:2: window_start_s: must be after the window above") {
		t.Errorf("got %v, want a fault at line 2", err)
	}
}
