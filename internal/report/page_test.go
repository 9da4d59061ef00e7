package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"tare/internal/judge"
	"tare/internal/record"
	"tare/internal/report"
)

// pageOf writes a run and its page, and gives its summary too.
func pageOf(t *testing.T, m *record.Manifest, all []*record.Exchange) (page []byte, s *judge.Summary) {
	t.Helper()
	return pageOfDir(t, runDir(t, m, all))
}

func pageOfDir(t *testing.T, dir string) (page []byte, s *judge.Summary) {
	t.Helper()
	s, d, err := judge.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.Page(&b, s, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), s
}

// exact reads JSON with every number as it is spelled.
func exact(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.200s", err, b)
	}
	return v
}

var pageData = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// dataOf is what the page holds for its scripts.
func dataOf(t *testing.T, page []byte) map[string]any {
	t.Helper()
	found := pageData.FindAllSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("got %d blocks of data, want 1", len(found))
	}
	return exact(t, found[0][1]).(map[string]any)
}

func summaryFile(t *testing.T, s *judge.Summary) any {
	t.Helper()
	var b bytes.Buffer
	if err := report.JSON(&b, s); err != nil {
		t.Fatal(err)
	}
	return exact(t, b.Bytes())
}

func TestPageHoldsTheSummaryToTheLastDigit(t *testing.T) {
	page, s := pageOf(t, manifest(), exchanges())
	if got, want := dataOf(t, page)["summary"], summaryFile(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("the page's summary differs from summary.json: got\n%v\nwant\n%v", got, want)
	}
}

func TestPageDrawsTheQuantilesOfTheSummary(t *testing.T) {
	page, s := pageOf(t, manifest(), exchanges())
	want := summaryFile(t, s).(map[string]any)["total"].(map[string]any)["metrics"].(map[string]any)
	shapes := dataOf(t, page)["detail"].(map[string]any)["shapes"].([]any)
	if len(shapes) != 3 {
		t.Fatalf("got %d shapes, want those of the total and of two stages", len(shapes))
	}
	names := map[string]string{"0": "min", "0.01": "p1", "0.05": "p5", "0.1": "p10", "0.25": "p25", "0.5": "p50", "0.75": "p75", "0.9": "p90", "0.95": "p95", "0.99": "p99", "0.999": "p99_9", "1": "max"}
	for metric, shape := range shapes[0].(map[string]any)["metrics"].(map[string]any) {
		share, value := shape.(map[string]any)["share"].([]any), shape.(map[string]any)["value"].([]any)
		seen := 0
		for i, at := range share {
			if name, ok := names[string(at.(json.Number))]; ok {
				seen++
				if value[i] != want[metric].(map[string]any)[name] {
					t.Errorf("%s %s: got %v, want %v", metric, name, value[i], want[metric].(map[string]any)[name])
				}
			}
		}
		if seen != len(names) {
			t.Errorf("%s: got %d of the %d named quantiles", metric, seen, len(names))
		}
	}
}

// hostile is what a server, a plan and a manifest may hold.
const hostile = "</script><script>window.hacked=1;throw new Error('hacked')</script><img src=x onerror=\"document.title='hacked'\">&lt;\u2028<!--"

func hostileRun() (*record.Manifest, []*record.Exchange) {
	m, all := manifest(), exchanges()
	m.Target.Model, m.Target.URL = hostile, "http://example/"+hostile
	m.Stages[1].Name = hostile
	m.Warnings = []string{hostile}
	m.Tool.Version = hostile
	for _, x := range all[200:240] {
		x.Outcome, x.Status, x.Error, x.Class = record.HTTPError, 500, hostile, hostile
	}
	return m, all
}

func TestPageTakesNothingForMarkup(t *testing.T) {
	m, all := hostileRun()
	page, s := pageOf(t, m, all)
	plain, _ := pageOf(t, manifest(), exchanges())
	if got, want := bytes.Count(page, []byte("<script")), bytes.Count(plain, []byte("<script")); got != want {
		t.Errorf("got %d openings of scripts, want %d", got, want)
	}
	if got, want := bytes.Count(page, []byte("<img")), bytes.Count(plain, []byte("<img")); got != want {
		t.Errorf("got %d images, want %d", got, want)
	}
	if got := dataOf(t, page)["summary"]; !reflect.DeepEqual(got, summaryFile(t, s)) {
		t.Error("the summary did not come through as it was")
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	one, _ := pageOf(t, manifest(), exchanges())
	several, _ := sweepPageOf(t, sweepOf(t))
	for _, page := range [][]byte{one, several} {
		needsNothingElse(t, page)
	}
}

func needsNothingElse(t *testing.T, page []byte) {
	t.Helper()
	for _, way := range []string{`src=`, `<link`, `@import`, `url(`, `fetch(`, `XMLHttpRequest`, `import(`} {
		text := pageData.ReplaceAll(page, nil)
		if i := bytes.Index(text, []byte(way)); i >= 0 {
			t.Errorf("the page holds %s: …%s…", way, text[max(i-40, 0):min(i+60, len(text))])
		}
	}
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindSubmatch(page)
	if policy == nil || !strings.HasPrefix(string(policy[1]), "default-src 'none';") || strings.Contains(string(policy[1]), "unsafe") {
		t.Errorf("got the policy %s, want one that allows nothing but what it names by hash", policy)
	}
	if !bytes.Contains(page, []byte("Leon Sorokin")) {
		t.Error("the licence of the charts is not in the page")
	}
}

func TestChartsAreThePublishedOnes(t *testing.T) {
	named, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"uPlot.iife.min.js", "uPlot.min.css"} {
		b, err := os.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(b)); !bytes.Contains(named, []byte(sum)) {
			t.Errorf("%s: has SHA-256 %s, which docs/dependencies.md does not name", name, sum)
		}
	}
}

func TestPageIsTheSameBytesEachTime(t *testing.T) {
	dir := runDir(t, manifest(), exchanges())
	var files [2][]byte
	for i := range files {
		s, d, err := judge.Examine(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.WritePage(dir, s, d); err != nil {
			t.Fatal(err)
		}
		if files[i], err = os.ReadFile(filepath.Join(dir, report.PageFile)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two pages of one directory differ")
	}
}
