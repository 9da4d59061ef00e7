package report_test

import (
	"bytes"
	"html"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/record"
	"tare/internal/report"
)

// oddDir is a name that must not become an address of another kind.
const oddDir = `javascript:alert(1)#"<b>`

// sweepOf is a sweep with an answer and three trials: one that counts, one of a client that was too slow, a closed loop with words of a hostile server.
// The first has a page of its own.
func sweepOf(t *testing.T) *capacity.Sweep {
	t.Helper()
	s := &capacity.Sweep{Dir: t.TempDir(), Schema: capacity.SweepSchema, Spec: []byte(`{"target": {"model": "</script>"}}`), WallMs: 12_345.678}
	slow, slowReplies := overloaded()
	odd, oddReplies := hostileRun()
	for _, trial := range []struct {
		name string
		m    *record.Manifest
		all  []*record.Exchange
		load capacity.Load
	}{
		{"trial-001", manifest(), exchanges(), capacity.Load{Phase: capacity.Refine, Rate: 100, Dwell: 4 * time.Second, Tolerance: 0.5, Even: true}},
		{"trial-002", slow, slowReplies, capacity.Load{Phase: capacity.Curve, Rate: 200, Dwell: 4 * time.Second, Tolerance: 0.5}},
		{oddDir, odd, oddReplies, capacity.Load{Phase: capacity.Plateau, InFlight: 8, Dwell: 4 * time.Second}},
	} {
		dir := filepath.Join(s.Dir, trial.name)
		if err := os.Rename(runDir(t, trial.m, trial.all), dir); err != nil {
			t.Skipf("no such name on this system: %v", err)
		}
		r, err := s.ResultOf(trial.name, dir, trial.load)
		if err != nil {
			t.Fatal(err)
		}
		s.Results = append(s.Results, r)
	}
	for _, name := range []string{"trial-001", oddDir} {
		if err := os.WriteFile(filepath.Join(s.Dir, name, report.PageFile), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Answer = &capacity.Answer{
		Stable: capacity.Limit{Known: true, Rate: 123.4567891, Low: 110.5, High: 140.25, Resolution: 0.0812}, Objective: capacity.Limit{Why: hostile},
		Plateau: capacity.Limit{Known: true, Rate: 150, Above: true}, Reason: hostile, Checks: []capacity.Check{{ID: "K1", Name: "bracket", Outcome: capacity.Passed, Measured: hostile}},
	}
	return s
}

func sweepPageOf(t *testing.T, s *capacity.Sweep) (page []byte, runs []*judge.Summary) {
	t.Helper()
	var b bytes.Buffer
	if err := report.SweepPage(&b, s.Dir, s); err != nil {
		t.Fatal(err)
	}
	for i := range s.Results {
		runs = append(runs, s.Results[i].Summary())
	}
	return b.Bytes(), runs
}

func replicationsPageOf(t *testing.T, r *judge.Replications, runs []*judge.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.ReplicationsPage(&b, r.Dir, r, runs); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPageOfASweepHoldsItsFilesToTheLastDigit(t *testing.T) {
	s := sweepOf(t)
	page, runs := sweepPageOf(t, s)
	var file bytes.Buffer
	if err := report.SweepJSON(&file, s); err != nil {
		t.Fatal(err)
	}
	if got, want := dataOf(t, page)["sweep"], exact(t, file.Bytes()); !reflect.DeepEqual(got, want) {
		t.Errorf("the page's sweep differs from sweep.json: got\n%v\nwant\n%v", got, want)
	}
	holdsRuns(t, page, runs)
}

func TestPageOfReplicationsHoldsTheirFilesToTheLastDigit(t *testing.T) {
	_, runs := sweepPageOf(t, sweepOf(t))
	r := judge.Replicated(t.TempDir(), runs)
	page := replicationsPageOf(t, r, runs)
	var file bytes.Buffer
	if err := report.ReplicationsJSON(&file, r); err != nil {
		t.Fatal(err)
	}
	if got, want := dataOf(t, page)["replications"], exact(t, file.Bytes()); !reflect.DeepEqual(got, want) {
		t.Errorf("the page's replications differ from replications.json: got\n%v\nwant\n%v", got, want)
	}
	holdsRuns(t, page, runs)
}

func holdsRuns(t *testing.T, page []byte, runs []*judge.Summary) {
	t.Helper()
	held := dataOf(t, page)["runs"].([]any)
	if len(held) != len(runs) {
		t.Fatalf("got %d runs, want %d", len(held), len(runs))
	}
	for i, one := range held {
		if got, want := one.(map[string]any)["summary"], summaryFile(t, runs[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("run %d: the page's summary differs from summary.json: got\n%v\nwant\n%v", i, got, want)
		}
	}
}

func TestPageOfSeveralRunsLinksThePagesThatThereAre(t *testing.T) {
	s := sweepOf(t)
	_, runs := sweepPageOf(t, s)
	for from, want := range map[string][]any{
		s.Dir:                     {"trial-001/report.html", nil, oddDir + "/report.html"},
		filepath.Join(s.Dir, "x"): {"../trial-001/report.html", nil, "../" + oddDir + "/report.html"},
	} {
		var b bytes.Buffer
		if err := report.SeveralPage(&b, from, runs); err != nil {
			t.Fatal(err)
		}
		for i, one := range dataOf(t, b.Bytes())["runs"].([]any) {
			if run := one.(map[string]any); run["link"] != want[i] || run["name"] != runs[i].Dir {
				t.Errorf("from %s, run %d: got the link %v to %v, want %v to %s", from, i, run["link"], run["name"], want[i], runs[i].Dir)
			}
		}
	}
}

func TestPageOfSeveralRunsNamesTheWorst(t *testing.T) {
	_, runs := sweepPageOf(t, sweepOf(t))
	var b bytes.Buffer
	if err := report.SeveralPage(&b, t.TempDir(), runs); err != nil {
		t.Fatal(err)
	}
	if got := dataOf(t, b.Bytes())["worst"]; got.(interface{ String() string }).String() != "1" {
		t.Errorf("got run %v as the worst, want that of the slow client: 1", got)
	}
}

func TestPageOfASweepTakesNothingForMarkup(t *testing.T) {
	page, _ := sweepPageOf(t, sweepOf(t))
	if got, want := bytes.Count(page, []byte("<script")), bytes.Count(page, []byte("</script>")); got != want {
		t.Errorf("got %d openings of scripts, and %d ends", got, want)
	}
	for _, word := range []string{"<script>window.hacked", "<img"} {
		if bytes.Contains(page, []byte(word)) {
			t.Errorf("words of the server became markup: %s", word)
		}
	}
}

func TestPageOfAPlainSweepSaysWhatTheTerminalSays(t *testing.T) {
	s := sweepOf(t)
	s.Answer = nil
	page, _ := sweepPageOf(t, s)
	var text bytes.Buffer
	if err := report.Sweep(&text, s); err != nil {
		t.Fatal(err)
	}
	said := dataOf(t, page)["saturation"].(string)
	if first := strings.Join(strings.Fields(text.String()), " "); said == "" || !strings.HasPrefix(first, said) {
		t.Errorf("got %q, the terminal says %s", said, first)
	}
}

// The page of a sweep and that of repeated runs in one, since a browser takes long to open.
func TestPageInABrowserShowsSeveralRuns(t *testing.T) {
	s := sweepOf(t)
	page, runs := sweepPageOf(t, s)
	joint := pageData.FindSubmatch(replicationsPageOf(t, judge.Replicated(s.Dir, runs), runs))[1]
	joint = joint[bytes.Index(joint, []byte(`"replications":`)):]
	page = bytes.Replace(page, []byte(`"sweep":`), append(joint[:len(joint)-1:len(joint)-1], `,"sweep":`...), 1)
	o := checkPage(t, page, any(dataOf(t, page)))
	if strings.Contains(o.document, "<img") || strings.Contains(o.document, "<title>hacked") || !strings.Contains(o.document, "&lt;img src=x onerror=") {
		t.Error("words of the server became markup, or are not shown")
	}
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(o.document, "")
	for _, want := range []string{
		"The server carries 123 requests/s (111 to 140), known to 8.12 %.", "150 requests/s or more", "NOT VALID", "1 of 3 trials do not count", "Between the runs", "K1 bracket", "8 in flight", "100/s even",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, want := range []string{`href="trial-001/report.html"`, `href="` + html.EscapeString(`javascript%3Aalert(1)%23%22%3Cb%3E/report.html`) + `"`, `id="frontier"`, `id="throughput"`, `id="load"`} {
		if !strings.Contains(o.document, want) {
			t.Errorf("the page does not hold %s", want)
		}
	}
	if strings.Contains(o.document, `href="trial-002`) {
		t.Error("the page links a page that does not exist")
	}
}
