package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// browser is the command of a Chromium. The test is left out where there is none.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium in the path: the page was not opened in a browser (Debian: apt-get install chromium)")
	return ""
}

// opened is what a browser made of a page: the document after its scripts have run, what they wrote to the console, and what the page
// asked the network for.
type opened struct {
	document string
	console  []string
	asked    []string
}

func open(t *testing.T, page []byte, fragment string) opened {
	t.Helper()
	command := browser(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	if err := os.WriteFile(path, page, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	netlog := filepath.Join(dir, "net.json")
	c := exec.CommandContext(ctx, command, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--enable-logging=stderr", "--log-level=0", "--log-net-log="+netlog, "--virtual-time-budget=5000", "--dump-dom", "file://"+path+fragment)
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, log.Bytes())
	}
	return opened{document: out.String(), console: consoleLine.FindAllString(log.String(), -1), asked: askedBy(t, netlog)}
}

// askedBy reads from a log of the browser's network what a page asked for. What the browser asks on its own account has no origin.
func askedBy(t *testing.T, netlog string) (urls []string) {
	t.Helper()
	b, err := os.ReadFile(netlog)
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Events []struct {
			Params struct{ URL, Initiator string }
		}
	}
	if err := json.Unmarshal(b, &log); err != nil {
		t.Fatal(err)
	}
	for _, e := range log.Events {
		if e.Params.URL != "" && e.Params.Initiator != "" && e.Params.Initiator != "not an origin" {
			urls = append(urls, e.Params.URL)
		}
	}
	return urls
}

var (
	consoleLine = regexp.MustCompile(`(?m)^.*CONSOLE.*$`)
	shown       = regexp.MustCompile(`data-path="([^"]*)" data-value="([^"]*)"[^>]*>([^<]*)<`)
	latencies   = regexp.MustCompile(`metrics\.[a-z0-9_]*_ms\..*(mean|low|high|min|max|p[0-9_]+)$`)
)

// What check looks for must be there to be found.
func TestBrowserTellsOfRequestsAndTheConsole(t *testing.T) {
	o := open(t, []byte(`<body><img src="https://example.invalid/a.png"><script>console.error("oh"); fetch("http://127.0.0.1:9/b").catch(() => {})</script>`), "")
	if !slices.Contains(o.asked, "https://example.invalid/a.png") || !slices.Contains(o.asked, "http://127.0.0.1:9/b") || !strings.Contains(strings.Join(o.console, ""), "oh") {
		t.Errorf("got the requests %q and the console %q, want two and an error", o.asked, o.console)
	}
}

// check holds a page in a browser to its summary: no error, nothing asked of any network, every value shown the one of the file.
func check(t *testing.T, m *record.Manifest, all []*record.Exchange) opened {
	t.Helper()
	return checkDir(t, runDir(t, m, all))
}

func checkDir(t *testing.T, dir string) opened {
	t.Helper()
	page, s := pageOfDir(t, dir)
	return checkPage(t, page, summaryFile(t, s))
}

// checkPage holds a page to the file in which the paths of its values begin.
func checkPage(t *testing.T, page []byte, file any) opened {
	t.Helper()
	o := open(t, page, "")
	if !strings.Contains(o.document, `data-drawn="true"`) || !strings.Contains(o.document, `id="fault" class="fault" hidden=""`) {
		i := strings.Index(o.document, `id="fault"`)
		t.Errorf("the page was not drawn to its end: …%s", o.document[max(i, 0):min(max(i, 0)+400, len(o.document))])
	}
	if len(o.console) > 0 {
		t.Errorf("the console holds:\n%s", strings.Join(o.console, "\n"))
	}
	if len(o.asked) > 0 {
		t.Errorf("the page asked the network for %s", o.asked)
	}
	values := shown.FindAllStringSubmatch(o.document, -1)
	if len(values) < 60 {
		t.Errorf("got %d values in the page, want those of the summary's head and stages at least", len(values))
	}
	for _, v := range values {
		if got, want := html.UnescapeString(v[2]), spelled(file, strings.Split(v[1], ".")); got != want {
			t.Errorf("%s: the page shows %s, the file has %s", v[1], got, want)
		}
		if ms, err := strconv.ParseFloat(v[2], 64); err == nil && latencies.MatchString(v[1]) {
			if got, want := strings.ReplaceAll(v[3], " ", ""), measure.Milliseconds.Format(ms*1e6); got != want {
				t.Errorf("%s: the page writes %s, the terminal %s", v[1], got, want)
			}
		}
	}
	return o
}

// spelled is the value at a path of keys and indexes, as the file spells it.
func spelled(v any, path []string) string {
	for _, key := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				return "nothing"
			}
			v = at[i]
		default:
			v = nil
		}
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case interface{ String() string }: // a json.Number
		return v.String()
	}
	return "no value"
}

func TestPageInABrowserShowsTheSummary(t *testing.T) {
	check(t, manifest(), exchanges())
}

func TestPageInABrowserShowsABadRun(t *testing.T) {
	m, all := overloaded()
	if o := check(t, m, all); !strings.Contains(o.document, "the client was too slow") {
		t.Error("the page does not say that the client was too slow")
	}
}

func TestPageInABrowserShowsARunWithoutRecords(t *testing.T) {
	check(t, manifest(), nil)
}

func TestPageInABrowserMarksARunThatWasKilled(t *testing.T) {
	m := manifest()
	m.State, m.Loops = record.State{}, nil
	if o := check(t, m, exchanges()[:700]); !strings.Contains(o.document, "· INCOMPLETE") || !strings.Contains(o.document, "did not come to its end") {
		t.Error("the page does not say that the run is incomplete")
	}
}

func TestPageInABrowserShowsRepliesThatWereNotStreamed(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Target.Stream = false
	for _, x := range all {
		x.Events = nil
	}
	check(t, m, all)
}

func TestPageInABrowserTakesNothingForMarkup(t *testing.T) {
	m, all := hostileRun()
	o := check(t, m, all)
	if strings.Contains(o.document, "<img") || strings.Contains(o.document, "<title>hacked") {
		t.Error("words of the server became markup")
	}
	if !strings.Contains(o.document, html.EscapeString("<img src=x onerror=")) && !strings.Contains(o.document, "&lt;img src=x onerror=") {
		t.Error("words of the server are not shown")
	}
}

// Request i has a TTFT of 50 ms and 10 µs × i, a TPOT of 10 ms and an E2E of 71 ms more than its TTFT; measured are those from 100 on.
func TestPageInABrowserCountsWhatMeetsALimit(t *testing.T) {
	m, all := manifest(), exchanges()
	for _, x := range all[150:160] {
		x.Outcome, x.Status = record.HTTPError, 500
	}
	page, _ := pageOf(t, m, all)
	for _, c := range []struct{ fragment, want string }{
		{"", "1190"}, {"#slo=ttft_ms:55", "391"}, {"#slo=ttft_ms:55.004,tpot_ms:10", "391"}, {"#slo=tpot_ms:9.9", "0"}, {"#slo=ttft_ms:55,e2e_ms:124.5", "241"},
	} {
		o := open(t, page, c.fragment)
		if got := regexp.MustCompile(`id="goodput-total" data-good="(\d+)" data-of="1200"`).FindStringSubmatch(o.document); got == nil || got[1] != c.want {
			t.Errorf("%s: got %v, want %s of 1200 within the limits", c.fragment, got, c.want)
		}
	}
}

// The limits of the page begin as the run's objectives, and lead to the numbers that judge has for these.
func TestPageInABrowserCountsGoodRequestsAsTheSummaryDoes(t *testing.T) {
	m, all := manifest(), exchanges()
	m.Spec = []byte(`{"slo": ["ttft<=57ms", "tpot<=10ms", "e2e.p50<1s"]}`)
	for _, x := range all[150:160] {
		x.Outcome, x.Status = record.HTTPError, 500
	}
	m.Stages[2].EndMs, m.State.Cause = 8000, "interrupted" // what was planned for after it is not counted
	for _, x := range all[1100:] {
		*x = record.Exchange{Index: x.Index, Session: x.Index, Stage: 2, Due: x.Due, Outcome: record.NotSent}
	}
	for _, x := range all[90:110] { // of the warm-up some, whose ends lie in the first measured window
		x.Events = x.Events[:1]
	}
	_, s := pageOf(t, m, all)
	o := check(t, m, all)
	got := regexp.MustCompile(`id="goodput-total" data-good="(\d+)" data-of="(\d+)" data-ended="(\d+)"`).FindStringSubmatch(o.document)
	want := s.Total.Objectives
	rate, _ := want.RequestGoodput.Get()
	ended := strconv.Itoa(int(math.Round(rate * s.Total.WindowMs / 1e3)))
	if got == nil || got[1] != strconv.FormatInt(want.Good, 10) || got[2] != strconv.FormatInt(want.Planned, 10) || got[3] != ended {
		t.Errorf("got %q, want %d of %d good, of which %s ended in a window", got, want.Good, want.Planned, ended)
	}
	if want.Good == 0 || want.Good == want.Planned || !strings.Contains(o.document, `id="objectives"`) {
		t.Errorf("got %d of %d good: the test needs some of both, and the page its part on objectives", want.Good, want.Planned)
	}
}

func TestPageInABrowserShowsWhatTheServerTold(t *testing.T) {
	dir := runDir(t, manifest(), exchanges())
	f, err := os.Create(filepath.Join(dir, record.ServerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 9 {
		look := record.ServerSample{AtMs: float64(i) * 1000, TookMs: 2, Source: "http://127.0.0.1:8000/metrics" + hostile, Kind: record.SourceServer}
		if look.Reason = "timed out"; i != 4 {
			look.Reason, look.Values = "", &record.ServerValues{Values: map[record.Quantity]float64{record.Waiting: float64(i), record.Running: 8, record.KVUsage: 0.5, record.OutputTokens: float64(100 * i)}}
		}
		if err := look.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	o := checkDir(t, dir)
	for _, want := range []string{"Requests, by the server http://127.0.0.1:8000/metrics", "Share in use, by the server", "1 of 9 looks brought nothing", "Both sides of the wire"} {
		if !strings.Contains(o.document, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// drag drags over the first chart over time, from 300 to 500 pixels, and tells before and behind and after a double click which times
// the charts show.
const drag = `<script>
const pause = () => new Promise((done) => setTimeout(done, 50));
const times = () => [...charts].filter(({ u }) => u.cursor.sync && u.cursor.sync.key === "time").map(({ u }) => u.scales.x.min.toFixed(2) + "-" + u.scales.x.max.toFixed(2)).join(" ");
(async () => {
  await pause();
  const over = [...charts].find(({ u }) => u.cursor.sync && u.cursor.sync.key === "time").u.over;
  over.scrollIntoView();
  await pause();
  const { left, top } = over.getBoundingClientRect();
  const tell = (what) => document.body.append(element("p", {}, what + ": " + times()));
  const mouse = async (type, x) => {
    over.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: left + x, clientY: top + 50, movementX: 1, movementY: 1, view: window }));
    await pause();
  };
  tell("before");
  for (const [type, x] of [["mouseenter", 300], ["mousemove", 300], ["mousedown", 300], ["mousemove", 400], ["mousemove", 500], ["mouseup", 500]]) await mouse(type, x);
  tell("zoomed");
  await mouse("dblclick", 400);
  tell("after");
})();
</script></body>`

func TestPageInABrowserZoomsAllChartsOverTimeAtOnce(t *testing.T) {
	page, _ := pageOf(t, manifest(), exchanges())
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAll(page, nil) // it would not let the mouse be played
	o := open(t, bytes.Replace(page, []byte("</body>"), []byte(drag), 1), "")
	told := map[string][]string{}
	for _, line := range regexp.MustCompile(`<p>(before|zoomed|after): ([^<]*)</p>`).FindAllStringSubmatch(o.document, -1) {
		told[line[1]] = strings.Fields(line[2])
	}
	before, zoomed := told["before"], told["zoomed"]
	if len(before) < 5 || len(zoomed) != len(before) || !slices.Equal(before, told["after"]) {
		t.Fatalf("got %v, want some charts, and after a double click the times of before", told)
	}
	for i := range before {
		if before[i] != "0.00-10.00" || zoomed[i] != zoomed[0] || zoomed[i] == before[i] {
			t.Errorf("chart %d: got %s, zoomed %s, want the whole run, and what the first shows: %s", i, before[i], zoomed[i], zoomed[0])
		}
	}
}
