package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tare/internal/judge"
	"tare/internal/report"
)

func TestSeveralRunsHaveARowEach(t *testing.T) {
	a, b := summarize(t, manifest(), exchanges()), summarize(t, manifest(), exchanges())
	a.Dir, b.Dir = "runs/a", "runs/of/a/name/that/is/too/long/for/a/row"
	b.Run.Plan.PlanID = "another"
	var text bytes.Buffer
	if err := report.Several(&text, []*judge.Summary{a, b}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"runs/a  " + string(a.Verdict.Class), "\nruns/a  ", "\n…", "/too/long/for/a/row ", "plans     2 different ones in 2 runs: tare compare",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	var document bytes.Buffer
	if err := report.SeveralJSON(&document, []*judge.Summary{a, b}); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Runs []struct {
			Dir     string
			Summary judge.Summary
		}
	}
	if err := json.Unmarshal(document.Bytes(), &back); err != nil || len(back.Runs) != 2 || back.Runs[0].Dir != "runs/a" || back.Runs[1].Summary.Total.Planned != a.Total.Planned {
		t.Errorf("got %+v, %v", back.Runs, err)
	}
}
