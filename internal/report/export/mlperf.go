package export

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/judge/stats"
	"tare/internal/record"
)

// mlperfFiles are summaries as MLPerf's LoadGen writes them, one for each stage that is one of its scenarios. They are no results of MLPerf.
func mlperfFiles(r *Run) (files []file, err error) {
	all, err := r.replies()
	if err != nil {
		return nil, err
	}
	for n, i := range r.measured() {
		if s := r.scenario(i); s != "" {
			some := of(all, i)
			files = append(files, file{fmt.Sprintf("stage_%d_mlperf_log_summary.txt", n), func(to io.Writer) error { return r.loadgen(to, i, s, some) }})
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no stage is a scenario of LoadGen: Server is an open loop of Poisson arrivals without a limit, SingleStream a closed one of a single request in flight")
	}
	return files, nil
}

// scenario names the one that a stage is; empty for none.
func (r *Run) scenario(stage int) string {
	s := &r.Manifest.Stages[stage]
	switch {
	case s.Kind == "closed" && s.Concurrency == 1:
		return "SingleStream"
	case s.Kind == "open" && strings.Contains(s.Arrivals, "poisson") && s.MaxInFlight == 0 && (s.RateToPerS == 0 || s.RateToPerS == s.RatePerS):
		return "Server"
	}
	return ""
}

// loadgen writes the summary of a stage. LoadGen knows no failed request: with one there is no result.
func (r *Run) loadgen(to io.Writer, stage int, scenario string, all []reply) error {
	s := &r.Manifest.Stages[stage]
	g := gatherLoadgen(all, scenario, time.Duration(s.StartMs*1e6))
	var b bytes.Buffer
	bar := strings.Repeat("=", 48)
	section := func(title string) { fmt.Fprintf(&b, "%s\n%s\n%s\n", bar, title, bar) }
	row := func(label, value string) { fmt.Fprintf(&b, "%-32s: %s\n", label, value) }
	section("MLPerf Results Summary")
	row("SUT name", r.Manifest.Target.Model)
	row("Scenario", scenario)
	row("Mode", "PerformanceOnly")
	if scenario == "Server" {
		row("Completed samples per second", figureOf(g.completedRate()))
	} else {
		at, ok := g.estimate(900_000)
		row("90.0th percentile latency (ns)", nanosecondsOf(at, ok))
	}
	row("Completed tokens per second", figureOf(g.tokenRate()))
	row("Result is", g.result())
	section("Additional Stats")
	if scenario == "Server" {
		row("Scheduled samples per second", figureOf(g.scheduledRate()))
	}
	writeLatencies(&b, "latency", g.latency)
	writeLatencies(&b, "First Token latency", g.first)
	writeLatencies(&b, "Time to Output Token", g.output)
	section("Test Parameters Used")
	row("samples_per_query", "1")
	if scenario == "Server" {
		row("target_qps", fmt.Sprint(s.RatePerS))
	}
	row("min_duration (ms)", fmt.Sprint(math.Round(s.EndMs-s.StartMs)))
	_, err := to.Write(b.Bytes())
	return err
}

// loadgen is a stage by the definitions of LoadGen, in nanoseconds.
type loadgen struct {
	n, failed              int
	lastDue, lastEnd       time.Duration // since the start of the stage
	tokens                 int64
	counted                bool
	latency, first, output []int64
}

func gatherLoadgen(all []reply, scenario string, start time.Duration) (g loadgen) {
	g.counted = true
	for i := range all {
		r := &all[i]
		g.n++
		end, ended := r.ends()
		if r.Outcome != record.Completed || !ended {
			g.failed++
			continue
		}
		from := r.begins()
		if scenario == "Server" {
			from = r.Due // lateness is charged to the latency
		}
		g.lastDue, g.lastEnd = max(g.lastDue, r.Due-start), max(g.lastEnd, end-start)
		g.latency = append(g.latency, int64(end-from))
		tokens := r.chosen(isToken)
		if len(tokens) > 0 {
			g.first = append(g.first, int64(tokens[0]-from))
		}
		if !r.Usage.Known {
			g.counted = false
			continue
		}
		g.tokens += int64(r.Usage.Output)
		if n := int64(r.Usage.Output); n > 1 && len(tokens) > 0 {
			g.output = append(g.output, int64(end-tokens[0])/(n-1))
		}
	}
	for _, list := range [][]int64{g.latency, g.first, g.output} {
		slices.Sort(list)
	}
	return g
}

// completedRate and scheduledRate count intervals: n − 1 over the last moment.
func (g *loadgen) completedRate() (float64, bool) {
	return float64(g.n-1) / inSeconds(g.lastEnd), g.failed == 0 && g.n > 1 && g.lastEnd > 0
}

func (g *loadgen) scheduledRate() (float64, bool) {
	return float64(g.n-1) / inSeconds(g.lastDue), g.failed == 0 && g.n > 1 && g.lastDue > 0
}

func (g *loadgen) tokenRate() (float64, bool) {
	return float64(g.tokens) / inSeconds(g.lastEnd), g.failed == 0 && g.counted && g.lastEnd > 0
}

func (g *loadgen) result() string {
	if g.failed > 0 {
		return fmt.Sprintf("INVALID (%d of %d requests failed, of which LoadGen knows none)", g.failed, g.n)
	}
	return "- (no bound on latency was set, and this is no submission)"
}

// estimate is the value that bounds the percentile with 99 % confidence (early stopping): the t-th greatest for the greatest t ≥ 1 allowed.
func (g *loadgen) estimate(ppm int64) (v int64, ok bool) {
	n := int64(len(g.latency))
	t := int64(0)
	for stats.LeastTrials(t+1, ppm) <= n {
		t++
	}
	if t == 0 || g.failed > 0 {
		return 0, false
	}
	return g.latency[n-t], true
}

func writeLatencies(b *bytes.Buffer, what string, sorted []int64) {
	row := func(label string, v int64, ok bool) { fmt.Fprintf(b, "%-32s: %s\n", label, nanosecondsOf(v, ok)) }
	n := len(sorted)
	if n == 0 {
		row("Mean "+what+" (ns)", 0, false)
		return
	}
	sum := int64(0)
	for _, v := range sorted {
		sum += v
	}
	row("Min "+what+" (ns)", sorted[0], true)
	row("Max "+what+" (ns)", sorted[n-1], true)
	row("Mean "+what+" (ns)", sum/int64(n), true)
	for _, p := range []struct {
		label string
		level float64
	}{{"50.00", 0.5}, {"90.00", 0.9}, {"95.00", 0.95}, {"97.00", 0.97}, {"99.00", 0.99}, {"99.90", 0.999}} {
		row(p.label+" percentile "+what+" (ns)", sorted[min(int(float64(n)*p.level), n-1)], true)
	}
}

func nanosecondsOf(v int64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprint(v)
}

func figureOf(v float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}
