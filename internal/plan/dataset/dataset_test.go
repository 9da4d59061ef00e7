package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tare/internal/plan/dataset"
	"tare/internal/plan/input"
)

// words counts words as tokens.
type words struct{}

func (words) Count(text []byte) int { return len(bytes.Fields(text)) }

func open(t *testing.T, name string, options dataset.Options) *dataset.File {
	t.Helper()
	f, err := dataset.Open(filepath.Join("testdata", name), options)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func all(t *testing.T, f *dataset.File) (rows []dataset.Row) {
	t.Helper()
	for i := range f.Len() {
		row, err := f.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func checkFaults(t *testing.T, name string, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got\n%v\nwant a fault with %q", name, err, w)
		}
	}
}

func TestShareGPTNamesItsBadRowsAndReadsTheRest(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	facts := f.Facts()
	if facts.Format != dataset.ShareGPT || facts.Rows != 16 || facts.Good != 12 {
		t.Errorf("got %s with %d good of %d rows, want sharegpt, 12 of 16", facts.Format, facts.Good, facts.Rows)
	}
	checkFaults(t, "sharegpt.json", facts.Faults,
		"sharegpt.json:9: conversations: has no turns", "sharegpt.json:14: is not valid JSON",
		"sharegpt.json:15: conversations: has a turn whose text is no text", `sharegpt.json:27: conversations: must be a list of turns, got "\"none\""`)
	if want := map[string]int{"critic": 1}; !reflect.DeepEqual(facts.Roles, want) {
		t.Errorf("roles: got %v, want %v", facts.Roles, want)
	}
	last := all(t, f)[11]
	if last.ID != "r14" || last.Line != 31 || last.Number != 15 || !strings.HasPrefix(last.Turns[0].Text, "ééééééééé") {
		t.Errorf("last row: got %+v, want r14 at line 31", last)
	}
}

// ids are the rows that a preset picks.
func ids(t *testing.T, f *dataset.File, rules dataset.Rules, count int) (got []string) {
	t.Helper()
	s, err := dataset.Select(f, rules, count, words{})
	if err != nil {
		t.Fatalf("%s: %v", rules.Name, err)
	}
	for i := range s.Picks {
		row, err := s.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.ID)
	}
	return got
}

// The wanted rows were chosen by the peers' own steps, run under CPython on the rows that are good, with a word as a token.
func TestPresetsPickThePeersRows(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	for _, c := range []struct {
		preset string
		seed   uint64
		count  int
		want   []string
	}{
		{"vllm", 0, 4, []string{"r10", "r11", "r1", "r0"}},
		{"vllm", 9, 4, []string{"r14", "r10", "r0", "r8"}},
		{"vllm", 0, 12, []string{"r10", "r11", "r1", "r0", "r14", "r8", "r0", "r0", "r10", "r1", "r14", "r0"}},
		{"sglang", 1, 0, []string{"r8", "r10", "r14", "r9", "r5", "r3", "r0", "r4", "r1", "r11"}},
		{"sglang", 5, 3, []string{"r14", "r10", "r9"}},
		{"inference-perf", 0, 4, []string{"r1", "r2", "r3", "r4"}},
		{"inference-perf-chat", 0, 3, []string{"r1", "r2", "r3"}},
		{"guidellm", 0, 5, []string{"r0", "r1", "r5", "r6", "r9"}},
	} {
		rules, ok := dataset.Preset(c.preset)
		if !ok {
			t.Fatalf("no preset %s", c.preset)
		}
		if rules.Order == dataset.Python {
			rules.Seed = c.seed
		}
		if got := ids(t, f, rules, c.count); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, seed %d, %d requests:\ngot  %v\nwant %v", c.preset, c.seed, c.count, got, c.want)
		}
	}
}

func TestSelectionSaysWhatItLeftOut(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	rules, _ := dataset.Preset("vllm")
	s, err := dataset.Select(f, rules, 8, words{})
	if err != nil {
		t.Fatal(err)
	}
	want := []dataset.Dropped{
		{Rule: "too few turns", Rows: 1}, {Rule: "prompt too short", Rows: 2}, {Rule: "output too short", Rows: 1},
		{Rule: "prompt too long", Rows: 1}, {Rule: "prompt and output too long", Rows: 1},
	}
	if !reflect.DeepEqual(s.Dropped, want) || s.Again != 2 || s.Tried != 11 {
		t.Errorf("got %v, %d again, %d tried\nwant %v, 2 again, 11 tried", s.Dropped, s.Again, s.Tried, want)
	}
	for i, pick := range s.Picks {
		row, err := s.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(strings.Fields(row.Output)); got != pick.OutputTokens || row.OutputTokens != got || len(row.Turns) != 1 || row.Turns[0].Role != dataset.User {
			t.Errorf("pick %d: got %d of %d output tokens and turns %v, want the recorded ones and one user turn", i, pick.OutputTokens, got, len(row.Turns))
		}
	}
	if _, err := dataset.Select(f, rules, 8, nil); err == nil {
		t.Error("selecting by tokens without a tokenizer: got no error, want one")
	}
	rules.MinPrompt, rules.MaxPrompt = 2000, 0
	_, err = dataset.Select(f, rules, 8, words{})
	checkFaults(t, "nothing left", err, "has no row that the rules leave over", "prompt too short")
	rules.MinPrompt, rules.MaxPrompt, rules.Turns = 9, 3, "some"
	_, err = dataset.Select(f, rules, 8, words{})
	checkFaults(t, "bad rules", err, "prompt tokens: must have a least that is not above the most, 3, got \"9\"", "turns: must be one of")
}

func TestGuideLLMCutsEveryTurnOfAUser(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	rules, _ := dataset.Preset("guidellm")
	s, err := dataset.Select(f, rules, 0, words{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range s.Picks {
		row, err := s.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		if row.ID == "r9" {
			got = append(got, row.Turns[0].Text)
		}
		if row.ID == "r8" {
			t.Errorf("got %q, want markup, numbers and links left out", row.Turns[0].Text)
		}
	}
	if want := []string{"Tell me of the sea, please.", "And of the wind over it?"}; !reflect.DeepEqual(got, want) {
		t.Errorf("turns of r9: got %q, want %q", got, want)
	}
}

func TestWholeConversationsEndBeforeTheReply(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	s, err := dataset.Select(f, dataset.Rules{Turns: dataset.WholeRow, Order: dataset.Shuffled, Seed: 1, MinTurns: 4}, 0, words{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Picks {
		row, err := s.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		if last := row.Turns[len(row.Turns)-1]; last.Role != dataset.User || !row.HasOutput || s.Picks[i].PromptTokens == 0 {
			t.Errorf("%s: got a last turn of %s, output %v, want a user's and the recorded reply", row.ID, last.Role, row.HasOutput)
		}
	}
	if len(s.Picks) != 2 {
		t.Errorf("conversations of four turns: got %d, want 2", len(s.Picks))
	}
}

func TestOurShuffleIsAFunctionOfTheSeed(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	rules := dataset.Rules{Turns: dataset.FirstTwo, Order: dataset.Shuffled, Seed: 7}
	if got, want := fmt.Sprint(ids(t, f, rules, 6)), "[r9 r8 r10 r3 r11 r2]"; got != want {
		t.Errorf("seed 7: got %s, want %s", got, want)
	}
}

func TestJSONRowsAreMappedByTheirColumns(t *testing.T) {
	f := open(t, "chat.jsonl", dataset.Options{})
	facts := f.Facts()
	want := dataset.Columns{ID: "id", Messages: "messages", Output: "response", OutputTokens: "output_tokens", Tools: "tools"}
	if facts.Columns != want || facts.Good != 2 || facts.Rows != 6 {
		t.Errorf("got columns %+v, %d of %d rows, want %+v, 2 of 6", facts.Columns, facts.Good, facts.Rows, want)
	}
	checkFaults(t, "chat.jsonl", facts.Faults, "chat.jsonl:4: is not valid JSON", "chat.jsonl:5: must be a JSON object",
		"chat.jsonl:6: messages: has a turn of no role", `chat.jsonl:7: output_tokens: must be a whole number of tokens, got "a few"`)
	rows := all(t, f)
	first := dataset.Row{
		Line: 1, ID: "7", Turns: []dataset.Turn{{Role: dataset.System, Text: "s"}, {Role: dataset.User, Text: "look here"}}, Output: "fine", HasOutput: true, OutputTokens: 12,
		Tools: []byte(`[{"type": "function", "function": {"name": "f"}}]`),
	}
	if !reflect.DeepEqual(rows[0], first) {
		t.Errorf("first row:\ngot  %+v\nwant %+v", rows[0], first)
	}
	if rows[1].HasOutput || rows[1].Line != 3 {
		t.Errorf("second row: got %+v, want no output, line 3", rows[1])
	}
	_, err := dataset.Open("testdata/chat.jsonl", dataset.Options{Columns: dataset.Columns{Prompt: "ask", Output: "tell"}, Template: "{{a}} {{id}}"})
	checkFaults(t, "missing columns", err, "chat.jsonl:1: ask: is a column that the file does not have", "chat.jsonl:1: tell: is a column", "chat.jsonl:1: a: is a column")
}

func TestCSVRowsFillATemplate(t *testing.T) {
	f := open(t, "qa.csv", dataset.Options{Template: "Q: {{question}}\n{ {{context}} }"})
	facts := f.Facts()
	if facts.Rows != 5 || facts.Good != 3 || facts.Columns.Output != "answer" {
		t.Errorf("got %d of %d rows, columns %+v, want 3 of 5 and the answer as the output", facts.Good, facts.Rows, facts.Columns)
	}
	checkFaults(t, "qa.csv", facts.Faults, `qa.csv:5: must have 4 fields as the header has, got "2"`, "qa.csv:6: has a quote that is never closed")
	rows := all(t, f)
	if got, want := rows[0].Turns[0].Text, "Q: What, \"really\"?\n{ line one\nline two }"; got != want {
		t.Errorf("prompt: got %q, want %q", got, want)
	}
	if rows[1].HasOutput || !rows[2].HasOutput || rows[2].Output != "You" || rows[2].Line != 7 || rows[2].ID != "5" {
		t.Errorf("rows 2 and 5: got %+v and %+v, want an output of 5 only, at line 7", rows[1], rows[2])
	}
	_, err := dataset.Open("testdata/qa.csv", dataset.Options{Template: "{{question"})
	checkFaults(t, "template", err, "has no column name and }}")
}

func TestParquetRowsAreNested(t *testing.T) {
	f := open(t, "chat.parquet", dataset.Options{Columns: dataset.Columns{ID: "meta.lang"}})
	facts := f.Facts()
	if facts.Format != dataset.Parquet || facts.Rows != 3 || facts.Good != 2 {
		t.Errorf("got %s, %d of %d rows, want parquet, 2 of 3", facts.Format, facts.Good, facts.Rows)
	}
	checkFaults(t, "chat.parquet", facts.Faults, "chat.parquet: row 2: conversation: has no turns")
	rows := all(t, f)
	want := []dataset.Turn{{Role: dataset.User, Text: "hi <there>"}, {Role: dataset.Assistant, Text: "yo"}}
	if !reflect.DeepEqual(rows[0].Turns, want) || rows[0].ID != "en" || rows[1].Number != 2 {
		t.Errorf("got %+v, want turns %v of en", rows[0], want)
	}
	for _, c := range []struct{ name, want string }{
		{"cut.parquet", "cut.parquet: is not a whole Parquet file"},
		{"cut.txt.gz", "cut.txt.gz: cannot be unpacked"},
	} {
		_, err := dataset.Open("testdata/"+c.name, dataset.Options{})
		checkFaults(t, c.name, err, c.want)
	}
}

func TestBatchRowsKeepTheirBodies(t *testing.T) {
	f := open(t, "batch.jsonl", dataset.Options{})
	facts := f.Facts()
	if facts.Format != dataset.OpenAIBatch || facts.Good != 3 {
		t.Errorf("got %s with %d good rows, want openai-batch, 3", facts.Format, facts.Good)
	}
	checkFaults(t, "batch.jsonl", facts.Faults, `batch.jsonl:3: custom_id: must not occur twice, got "a"`, `batch.jsonl:4: method: must be POST, got "GET"`,
		"batch.jsonl:5: url: must be a path", "batch.jsonl:6: body: is missing", "batch.jsonl:7: body: has none of messages, prompt and input", "batch.jsonl:8: custom_id: is missing")
	rows := all(t, f)
	if got, want := string(rows[0].Body), `{"model": "m", "messages": [{"role": "user", "content": "hello <b>"}], "max_tokens": 9, "tools": [{"type": "function"}]}`; got != want {
		t.Errorf("body: got %s, want it as it was written: %s", got, want)
	}
	if rows[0].OutputTokens != 9 || rows[2].OutputTokens != 3 || rows[2].Turns[0].Text != "say it" || rows[1].URL != "/v1/completions" || string(rows[0].Tools) != `[{"type": "function"}]` {
		t.Errorf("got %+v", rows)
	}
}

func TestPlainTextIsCutIntoPrompts(t *testing.T) {
	for _, name := range []string{"lines.txt", "lines.txt.gz"} {
		var got []string
		for _, row := range all(t, open(t, name, dataset.Options{})) {
			got = append(got, row.Turns[0].Text)
		}
		if want := []string{"First prompt of all", "  second prompt, with spaces  ", "third ümläut"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	var got []string
	f := open(t, "lines.txt", dataset.Options{Cut: dataset.Cut{Tokens: 3, Counter: words{}}})
	for _, row := range all(t, f) {
		got = append(got, fmt.Sprintf("%d:%s", row.Line, row.Turns[0].Text))
	}
	if want := []string{"1:First prompt of", "1:all\n\n  second prompt,", "3:with spaces  \nthird", "4:ümläut"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pieces of three tokens: got %q, want %q", got, want)
	}
}

func TestAFileWithoutGoodRowsIsAnError(t *testing.T) {
	_, err := dataset.Open("testdata/bad.jsonl", dataset.Options{Format: dataset.JSON})
	checkFaults(t, "bad.jsonl", err, "bad.jsonl:1: must be a JSON object", "bad.jsonl: has no row that can be used as json", "hint: formats: sharegpt, json")
	_, err = dataset.Open("testdata/sharegpt.json", dataset.Options{Format: "xml"})
	checkFaults(t, "format", err, `has a format that is unknown, got "xml"`)
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = dataset.Open(empty, dataset.Options{})
	checkFaults(t, "empty", err, "has no rows")
	_, err = dataset.Open("testdata/nowhere.txt", dataset.Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: got %v, want os.ErrNotExist", err)
	}
	_, err = dataset.Open("testdata", dataset.Options{})
	if fault := (input.Fault{}); !errors.As(err, &fault) {
		t.Errorf("a directory: got %v, want a fault", err)
	}
}

// write makes a file of its own for a test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openText(t *testing.T, name, text string, options dataset.Options) *dataset.File {
	t.Helper()
	f, err := dataset.Open(write(t, name, text), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestTheHeadOfAFileIsCountedInAllItsRows(t *testing.T) {
	turns := `"conversations": [{"from": "human", "value": "a b c"}, {"from": "gpt", "value": "d"}]}`
	f := openText(t, "a.jsonl", `{"conversations": 1}`+"\n"+`{"id": "one", `+turns+"\n"+`{"id": "two", `+turns, dataset.Options{Format: dataset.ShareGPT})
	rules, _ := dataset.Preset("inference-perf")
	if got, want := ids(t, f, rules, 0), []string{"one", "two"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows behind a bad first one: got %v, want %v", got, want)
	}
}

func TestAnAskedLengthLiftsTheLimitsOfTheRecord(t *testing.T) {
	f := open(t, "sharegpt.json", dataset.Options{})
	rules, _ := dataset.Preset("vllm")
	rules.OutputTokens, rules.Order, rules.Oversample = 2, dataset.InFile, false
	if got, want := ids(t, f, rules, 0), []string{"r0", "r1", "r4", "r5", "r8", "r10", "r11", "r14"}; !reflect.DeepEqual(got, want) {
		t.Errorf("2 tokens asked for: got %v, want %v", got, want)
	}
	rules.OutputTokens = 1025
	if got, want := ids(t, f, rules, 0), []string{"r0", "r1", "r4", "r5", "r8", "r11", "r14"}; !reflect.DeepEqual(got, want) {
		t.Errorf("1025 tokens asked for, r10 has 1024 before them: got %v, want %v", got, want)
	}
}

func TestARowIsTheCallers(t *testing.T) {
	f := openText(t, "a.jsonl", `{"prompt": "one"}`+"\n"+`{"prompt": "two"}`, dataset.Options{Format: dataset.OpenAI})
	rows := all(t, f)
	if got, want := string(rows[0].Body), `{"prompt": "one"}`; got != want {
		t.Errorf("body of row 0 after row 1 was read: got %s, want %s", got, want)
	}
}

func TestTheLastPieceOfATextIsWhole(t *testing.T) {
	f := openText(t, "a.txt", "one two three four", dataset.Options{Cut: dataset.Cut{Tokens: 3, Counter: words{}}})
	rows := all(t, f)
	if len(rows) != 2 || rows[1].Turns[0].Text != "four" {
		t.Errorf("got %+v, want the second piece to be four", rows)
	}
	f = openText(t, "b.txt", "\ufeffone two three", dataset.Options{Cut: dataset.Cut{Tokens: 3, Counter: words{}}})
	if rows := all(t, f); len(rows) != 1 || rows[0].Turns[0].Text != "one two three" {
		t.Errorf("got %+v, want one piece", rows)
	}
}
