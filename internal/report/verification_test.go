package report_test

import (
	"bytes"
	"strings"
	"testing"

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
