package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/judge"
	"tare/internal/record"
	"tare/internal/report"
)

func TestAVerificationIsAsBadAsItsWorstCheck(t *testing.T) {
	of := func(results ...report.Held) (v report.Verification) {
		for _, r := range results {
			v.Add(report.Check{What: "x", Result: r})
		}
		return v
	}
	for _, tt := range []struct {
		in   []report.Held
		want report.Held
	}{
		{[]report.Held{report.Agrees, report.Unchecked}, report.Agrees},
		{[]report.Held{report.Unchecked}, report.Unchecked},
		{[]report.Held{report.Agrees, report.Incomplete, report.Agrees}, report.Incomplete},
		{[]report.Held{report.Differs, report.Incomplete, report.Agrees}, report.Differs},
	} {
		if got := of(tt.in...).Result; got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.in, got, tt.want)
		}
	}
	all := of(report.Agrees)
	all.AddRun(of(report.Agrees))
	all.AddRun(of(report.Differs))
	if all.Result != report.Differs {
		t.Errorf("of several runs one differs: got %s", all.Result)
	}
}

func TestDifferencesAreShownUpToTen(t *testing.T) {
	c := report.Check{What: "summary.json", Result: report.Differs, Detail: "12 values"}
	for range 12 {
		c.Differences = append(c.Differences, record.Difference{Path: "a.b", A: "1", B: strings.Repeat("9", 100)})
	}
	v := report.Verification{}
	v.Add(c)
	var b bytes.Buffer
	if err := report.VerificationText(&b, &v); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "a.b: 1 in the file, 9"); got != 10 || !strings.Contains(b.String(), "and 2 more") {
		t.Errorf("got %d differences, want 10 and a word of the others:\n%s", got, b.String())
	}
	if strings.Contains(b.String(), strings.Repeat("9", 61)) {
		t.Errorf("a long value is not clipped:\n%s", b.String())
	}
}

func TestEveryByteOfAFileIsHeldToTheRecords(t *testing.T) {
	dir := runDir(t, manifest(), exchanges())
	s, err := judge.Summarize(dir)
	if err != nil {
		t.Fatal(err)
	}
	held := func() report.Check {
		t.Helper()
		checks, err := report.VerifySummary(dir, s)
		if err != nil {
			t.Fatal(err)
		}
		return checks[0]
	}
	if c := held(); c.Result != report.Unchecked {
		t.Errorf("no file: got %s", c.Result)
	}
	if err := report.WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	if c := held(); c.Result != report.Agrees {
		t.Errorf("as it was written: got %s: %s", c.Result, c.Detail)
	}
	path := filepath.Join(dir, report.SummaryFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(text, []byte(`"completed": 1200`), []byte(`"completed": 1201`), 1)
	if bytes.Equal(changed, text) {
		t.Fatal("there is nothing to change")
	}
	if err := os.WriteFile(path, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	if c := held(); c.Result != report.Differs || len(c.Differences) != 1 || c.Differences[0] != (record.Difference{Path: "total.outcomes.completed", A: "1201", B: "1200"}) {
		t.Errorf("a number changed: got %s, %v", c.Result, c.Differences)
	}
}
