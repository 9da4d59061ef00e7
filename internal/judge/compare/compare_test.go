package compare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/compare"
	"tare/internal/judge/verdict"
)

// runs are replications with a TTFT p99 each; change may alter the manifest and the summary of each.
func runs(side string, ttft []float64, change func(i int, m map[string]any, s *judge.Summary)) (all []compare.Run) {
	for i, v := range ttft {
		s := &judge.Summary{Dir: fmt.Sprintf("%s/run-%d", side, i+1), Verdict: verdict.Verdict{Class: verdict.Valid}, Run: judge.Run{Complete: true}}
		s.Total = judge.Part{Name: "total", Planned: 1000, Outcomes: judge.Outcomes{Completed: 1000}, OutputRate: judge.Some(500 - v)}
		s.Total.Metrics = judge.Metrics{}
		for _, name := range []string{"ttft_from_due_ms", "tpot_ms", "e2e_from_due_ms"} {
			s.Total.Metrics[name] = judge.Figures{N: 1000, Mean: judge.Some(v), P50: judge.Some(v), P99: judge.Some(v)}
		}
		s.Total.Metrics["output_tokens"] = judge.Figures{N: 1000, Mean: judge.Some(128)}
		s.Stages = []judge.Part{s.Total}
		s.Stages[0].Name = "main"
		m := map[string]any{
			"schema": "tare.manifest/v1", "spec": map[string]any{"load": map[string]any{"seed": i + 1, "rate": 10.0}, "workload": map[string]any{"cache": "as-is"},
				"target": map[string]any{"url": "http://x", "model": "m"}},
			"plan":        map[string]any{"plan_id": fmt.Sprintf("plan-%d", i+1), "content_id": fmt.Sprintf("content-%d", i+1), "complete": true},
			"clock":       map[string]any{"start_wall": time.Date(2026, 1, 1, len(side), i, 0, 0, time.UTC)},
			"environment": map[string]any{"kernel": "6.1"}, "state": map[string]any{"end_ms": v},
		}
		if change != nil {
			change(i, m, s)
		}
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		all = append(all, compare.Run{Manifest: text, Summary: s})
	}
	return all
}

func at(m map[string]any, path string) map[string]any {
	for _, key := range strings.Split(path, ".") {
		m = m[key].(map[string]any)
	}
	return m
}

func compared(t *testing.T, a, b []compare.Run, o compare.Options) *compare.Comparison {
	t.Helper()
	c, err := compare.Compare(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	before = []float64{100, 101, 102, 103, 104}
	slower = []float64{110, 111, 112, 113, 114}
)

func TestFiveRunsApartAreARegression(t *testing.T) {
	c := compared(t, runs("a", before, nil), runs("bb", slower, nil), compare.Options{})
	if c.Result != compare.Regression || len(c.Rows) != 6 {
		t.Fatalf("got %s with %d rows, want a regression in 6: %+v", c.Result, len(c.Rows), c.Refused)
	}
	r := c.Rows[1]
	for _, n := range []struct {
		what string
		got  judge.Number
		want float64
	}{
		{"shift", r.Shift, 10}, {"relative", r.Relative, 10.0 / 102}, {"low", r.Low, 7}, {"high", r.High, 13}, {"p", r.P, 2.0 / 252},
		{"corrected", r.Corrected, 5 * 2.0 / 252}, {"least", c.Least, 5 * 2.0 / 252}, // completed_share is the same in all and not tested
		{"median of A", r.MedianA, 102}, {"U", r.U, 25},
	} {
		if v, ok := n.got.Get(); !ok || v < n.want-1e-12 || v > n.want+1e-12 {
			t.Errorf("%s: got %v (%v), want %v", n.what, v, ok, n.want)
		}
	}
	if r.Quantity != "ttft_from_due_ms.p99" || r.Finding != compare.Worse || c.Rows[4].Finding != compare.Worse || c.Rows[5].Finding != compare.Same {
		t.Errorf("findings: got %s %s, %s %s, %s %s", r.Quantity, r.Finding, c.Rows[4].Quantity, c.Rows[4].Finding, c.Rows[5].Quantity, c.Rows[5].Finding)
	}
	if len(c.Residue) > 0 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "one side ran before the other") {
		t.Errorf("got residue %v, warnings %q", c.Residue, c.Warnings)
	}
}

func TestTurnedRoundItIsAnImprovement(t *testing.T) {
	if c := compared(t, runs("a", slower, nil), runs("bb", before, nil), compare.Options{}); c.Result != compare.Improvement {
		t.Errorf("got %s", c.Result)
	}
}

func TestLessThanTheMinimumEffectDoesNotCount(t *testing.T) {
	if c := compared(t, runs("a", before, nil), runs("bb", slower, nil), compare.Options{MinEffect: 0.1}); c.Result != compare.NoneShown || c.Rows[0].Finding != compare.Small {
		t.Errorf("9.8 %% with a minimum of 10 %%: got %s, %s", c.Result, c.Rows[0].Finding)
	}
	if c := compared(t, runs("a", before, nil), runs("bb", slower, nil), compare.Options{MinEffect: 0.09}); c.Result != compare.Regression {
		t.Errorf("9.8 %% with a minimum of 9 %%: got %s", c.Result)
	}
}

func TestOverlappingSidesShowNothing(t *testing.T) {
	c := compared(t, runs("a", before, nil), runs("bb", []float64{100.5, 101.5, 102.5, 103.5, 104.5}, nil), compare.Options{})
	if c.Result != compare.NoneShown || c.Rows[0].Finding != compare.NotShown {
		t.Errorf("got %s, %s", c.Result, c.Rows[0].Finding)
	}
}

func TestTooFewRunsAreNotTested(t *testing.T) {
	for n := 1; n <= 4; n++ { // four against four come to 0.029, and with five quantities to 0.14
		c := compared(t, runs("a", before[:n], nil), runs("bb", slower[:n], nil), compare.Options{})
		if c.Result != compare.Untested || c.Rows[0].Finding != compare.NoTest {
			t.Errorf("%d against %d: got %s, %s", n, n, c.Result, c.Rows[0].Finding)
		}
		if _, ok := c.Rows[0].Relative.Get(); !ok {
			t.Errorf("%d against %d: the difference is not shown", n, n)
		}
		if _, ok := c.Least.Get(); ok != (n > 1) {
			t.Errorf("%d against %d: least p is there: %v", n, n, ok)
		}
	}
	q, err := compare.ParseQuantity("tpot_ms.p50")
	if err != nil {
		t.Fatal(err)
	}
	if c := compared(t, runs("a", before[:4], nil), runs("bb", slower[:4], nil), compare.Options{Quantities: []compare.Quantity{q}}); c.Result != compare.Regression {
		t.Errorf("four against four and one quantity: got %s, want a regression", c.Result)
	}
}

func TestOtherLoadsAreRefused(t *testing.T) {
	tests := []struct {
		name, want, expect string
		change             func(i int, m map[string]any, s *judge.Summary)
	}{
		{"rate", "spec.load.rate decides the load, and is 10 on side A, 11 on side B", "spec.load", func(_ int, m map[string]any, _ *judge.Summary) { at(m, "spec.load")["rate"] = 11 }},
		{"cache", `spec.workload.cache decides the load, and is "as-is" on side A, "cold" on side B`, "spec.workload.cache", func(_ int, m map[string]any, _ *judge.Summary) { at(m, "spec.workload")["cache"] = "cold" }},
		{"sampling", "spec.workload.temperature decides the load, and is not there on side A, 1 on side B", "spec.workload.temperature", func(_ int, m map[string]any, _ *judge.Summary) { at(m, "spec.workload")["temperature"] = 1 }},
		{"model", `spec.target.model decides the load, and is "m" on side A, "n" on side B`, "spec.target.model", func(_ int, m map[string]any, _ *judge.Summary) {
			at(m, "spec.target")["model"] = "n"
			at(m, "plan")["content_id"] = "other"
		}},
		{"one run of a side", "spec.load.rate decides the load, and is 10 on side A, 10 and 11 on side B", "spec.load.rate", func(i int, m map[string]any, _ *judge.Summary) {
			if i == 2 {
				at(m, "spec.load")["rate"] = 11
			}
		}},
		{"content of the same seed", "plan: seed 1 has made the contents content-1 and other", "plan", func(i int, m map[string]any, _ *judge.Summary) { at(m, "plan")["content_id"] = "other" }},
		{"plan of the same seed", "plan: seed 1 has made the plans plan-1 and other", "plan", func(i int, m map[string]any, _ *judge.Summary) { at(m, "plan")["plan_id"] = "other" }},
		{"verdict", "verdict: bb/run-1 is INVALID-CLIENT: slow", "verdict", func(_ int, _ map[string]any, s *judge.Summary) {
			s.Verdict = verdict.Verdict{Class: verdict.InvalidClient, Reason: "slow"}
		}},
		{"incomplete", "state: bb/run-1 did not carry its plan out", "state", func(_ int, _ map[string]any, s *judge.Summary) { s.Run.Complete = false }},
	}
	for _, tt := range tests {
		c := compared(t, runs("a", before, nil), runs("bb", slower, tt.change), compare.Options{})
		if c.Result != compare.Refused || len(c.Refused) == 0 || !strings.HasPrefix(c.Refused[0], tt.want) || len(c.Rows) > 0 {
			t.Errorf("%s: got %s, %q, want it refused: %s", tt.name, c.Result, c.Refused, tt.want)
		}
		if c := compared(t, runs("a", before, nil), runs("bb", slower, tt.change), compare.Options{Expected: []string{tt.expect}}); c.Result != compare.Regression {
			t.Errorf("%s, expected: got %s, %q, want it compared", tt.name, c.Result, c.Refused)
		}
	}
}

func TestAServerThatDoesNotAnswerIsCompared(t *testing.T) {
	c := compared(t, runs("a", before, nil), runs("bb", before, func(_ int, _ map[string]any, s *judge.Summary) {
		s.Verdict = verdict.Verdict{Class: verdict.InvalidServer, Reason: "half failed"}
		s.Total.Outcomes.Completed = 500
	}), compare.Options{})
	if c.Result != compare.Regression || c.Rows[5].Finding != compare.Worse || !strings.Contains(strings.Join(c.Warnings, "\n"), "INVALID-SERVER: half failed") {
		t.Errorf("got %s, %+v, %q", c.Result, c.Rows[5], c.Warnings)
	}
}

func TestTheSameRunTwiceIsRefused(t *testing.T) {
	a := runs("a", before, nil)
	c := compared(t, a, a, compare.Options{})
	if c.Result != compare.Refused || !strings.Contains(c.Refused[0], "are the same run") {
		t.Errorf("got %s %q", c.Result, c.Refused)
	}
}

func TestResidueIsWhatDiffersBetweenTheSides(t *testing.T) {
	change := func(i int, m map[string]any, _ *judge.Summary) {
		at(m, "environment")["kernel"] = "6.2"
		at(m, "environment")["cpus"] = 2
		at(m, "spec.load")["seed"] = 7 + i
		at(m, "plan")["plan_id"] = fmt.Sprint("new", i)
	}
	c := compared(t, runs("a", before, nil), runs("bb", slower, change), compare.Options{Expected: []string{"environment.cpus"}})
	if got := fmt.Sprint(c.Residue); got != `[{environment.kernel ["6.1"] ["6.2"]}]` {
		t.Errorf("residue: got %s", got)
	}
	if got := fmt.Sprint(c.Expected); got != `[{environment.cpus [] [2]}]` {
		t.Errorf("expected: got %s", got)
	}
	if len(c.Refused) > 0 || !strings.Contains(strings.Join(c.Warnings, "\n"), "other seeds (load.seed 1, 2, 3, 4, 5 and 10, 11, 7, 8, 9)") {
		t.Errorf("got refused %q, warnings %q", c.Refused, c.Warnings)
	}
}

func TestWhatIsDoubtfulIsWarnedOf(t *testing.T) {
	c := compared(t, runs("a", before, nil), runs("bb", slower, func(i int, m map[string]any, s *judge.Summary) {
		f := s.Total.Metrics["e2e_from_due_ms"]
		f.N, f.P99 = 300, judge.Number{}
		if i > 0 {
			f.P99 = judge.Some(9)
		}
		s.Total.Metrics["e2e_from_due_ms"] = f
		s.Total.Metrics["output_tokens"] = judge.Figures{N: 1000, Mean: judge.Some(100)}
	}), compare.Options{})
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{
		"e2e_from_due_ms.p99: 4 of 10 runs have fewer than the 368 values", "e2e_from_due_ms.p99: 1 of 10 runs have none",
		"output_tokens.mean: 128.0 on side A, 100.0 on side B",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %q in\n%s", want, all)
		}
	}
}

func TestStagesAreComparedByName(t *testing.T) {
	if c := compared(t, runs("a", before, nil), runs("bb", slower, nil), compare.Options{Stage: "main"}); c.Stage != "main" || c.Result != compare.Regression {
		t.Errorf("got %s %s", c.Stage, c.Result)
	}
	if _, err := compare.Compare(runs("a", before, nil), runs("bb", slower, nil), compare.Options{Stage: "none"}); err == nil || !strings.Contains(err.Error(), `no measured stage is called "none"`) {
		t.Errorf("got %v", err)
	}
}

// Half as many requests are good on side B.
func TestGoodputIsComparedOfTheSameObjectives(t *testing.T) {
	asked := func(slo string, share float64) func(i int, m map[string]any, s *judge.Summary) {
		return func(i int, m map[string]any, s *judge.Summary) {
			at(m, "spec")["slo"] = []any{slo}
			s.Total.Objectives = &judge.Objectives{Attainment: judge.Share{Value: judge.Some(share + float64(i)/1000)}}
		}
	}
	q, err := compare.ParseQuantity("attainment")
	if err != nil {
		t.Fatal(err)
	}
	o := compare.Options{Quantities: []compare.Quantity{q}}
	if c := compared(t, runs("a", before, asked("ttft<1s", 0.9)), runs("bb", before, asked("ttft<1s", 0.45)), o); c.Result != compare.Regression {
		t.Errorf("half of it: got %s, %q, want a regression", c.Result, c.Refused)
	}
	c := compared(t, runs("a", before, asked("ttft<1s", 0.9)), runs("bb", before, asked("ttft<2s", 0.9)), o)
	if c.Result != compare.Refused || !strings.Contains(strings.Join(c.Refused, "\n"), "spec.slo[0] decides what is good") {
		t.Errorf("other objectives: got %s, %q, want them refused", c.Result, c.Refused)
	}
	classes := func(slo string) func(i int, m map[string]any, s *judge.Summary) {
		return func(i int, m map[string]any, s *judge.Summary) {
			at(m, "spec.workload")["classes"] = []any{map[string]any{"name": "gold", "slo": []any{slo}}}
		}
	}
	if c := compared(t, runs("a", before, classes("ttft<1s")), runs("bb", before, classes("ttft<2s")), o); c.Result != compare.Refused {
		t.Errorf("other objectives of a class: got %s, want them refused", c.Result)
	}
	if c := compared(t, runs("a", before, classes("ttft<1s")), runs("bb", before, classes("ttft<2s")), compare.Options{}); c.Result == compare.Refused {
		t.Errorf("latencies under other objectives of a class: got refused for %q, want them compared", c.Refused)
	}
	if c := compared(t, runs("a", before, asked("ttft<1s", 0.9)), runs("bb", before, asked("ttft<2s", 0.9)), compare.Options{}); c.Result == compare.Refused {
		t.Errorf("latencies under other objectives: got refused for %q, want them compared", c.Refused)
	}
}

func TestQuantitiesHaveNames(t *testing.T) {
	for _, name := range []string{"ttft_ms.p99_9", "slip_ms.mean", "output_tokens.p50", "completed_rate_per_s"} {
		if q, err := compare.ParseQuantity(name); err != nil || q.Name != name {
			t.Errorf("%s: got %q, %v", name, q.Name, err)
		}
	}
	for _, name := range []string{"", "ttft", "ttft_ms", "ttft_ms.p98"} {
		if _, err := compare.ParseQuantity(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}
