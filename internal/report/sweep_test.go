package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/report"
)

func point(phase capacity.Phase, rate float64, state stats.State) capacity.Result {
	latency := capacity.Profile{Mean: judge.Some(200), P50: judge.Some(190), P90: judge.Some(300), P99: judge.Some(400)}
	return capacity.Result{
		Dir: "trial-001", Load: capacity.Load{Phase: phase, Rate: rate, Dwell: 30 * time.Second, Even: phase == capacity.Refine}, Valid: true, Planned: int64(30 * rate), Completed: int64(30 * rate),
		State: state, Shortfall: judge.Some(0.002), Error: judge.Some(0.011), Failed: judge.Some(0), Rate: judge.Some(rate), Output: judge.Some(1000), Input: judge.Some(3000), InFlight: judge.Some(4),
		Metrics: map[string]capacity.Profile{measure.TTFT: latency, measure.TTFTFromDue: latency, measure.E2E: latency, measure.E2EFromDue: latency},
	}
}

func closed(n int, rate float64) capacity.Result {
	r := point(capacity.Point, 0, "")
	r.Load.InFlight, r.Rate, r.Completed = n, judge.Some(rate), 100
	return r
}

func swept(s *capacity.Sweep) string {
	s.Dir, s.WallMs = "sweeps/x", 61_500
	var b bytes.Buffer
	if err := report.Sweep(&b, s); err != nil {
		panic(err)
	}
	return b.String()
}

func TestSweepBeginsWithTheAnswer(t *testing.T) {
	a := &capacity.Answer{
		Stable: capacity.Limit{Known: true, Rate: 40, Low: 38.1, High: 41.8, Resolution: 0.05}, Plateau: capacity.Limit{Known: true, Rate: 40.3, Low: 39.9, High: 40.6, Resolution: 0.01},
		Objective: capacity.Limit{Why: "no objectives were given"}, Valid: true, Reason: "every check was passed",
		Checks: []capacity.Check{{ID: "K1", Name: "bracket", Outcome: capacity.Passed, Measured: "carried at 40/s"}},
	}
	bad := point(capacity.Curve, 30, stats.Stable)
	bad.Valid, bad.Fault = false, "C2 slip: p99 9ms"
	text := swept(&capacity.Sweep{Answer: a, Price: 3.6, Results: []capacity.Result{point(capacity.Refine, 40, stats.Stable), point(capacity.Curve, 20, stats.Stable), bad}})
	for _, want := range []string{
		"capacity  λ_stab 40.0 requests/s (38.1 to 41.8), known to 5.00 %\n", "valid: every check was passed", "λ_SLO not known: no objectives were given", "X_max 40.3 requests/s (39.9 to 40.6)",
		"K1  bracket", "40.0/s even", "0.2 ± 1.1 %", "failed C2 slip\n", "$/M out", "wall time 1m1.5s, 3 runs",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if !strings.HasPrefix(text, "capacity  λ_stab") {
		t.Errorf("the first line is not the answer:\n%s", text)
	}
	profiles := text[strings.Index(text, "NTPOT"):]
	if !strings.Contains(profiles, "20.0/s") || strings.Contains(profiles, "40.0/s even") || strings.Contains(profiles, "30.0/s") {
		t.Errorf("want the latencies of the load that stands for itself and counts, and of no other:\n%s", profiles)
	}
	if !strings.Contains(profiles, " 1.00 ") || !strings.Contains(profiles, " 0.25") { // 3.6 an hour is a millionth of 1,000 tokens a second
		t.Errorf("want 1.00 and 0.25 for a million tokens:\n%s", profiles)
	}
}

func TestSweepSaysWhatIsNotKnown(t *testing.T) {
	none := swept(&capacity.Sweep{Answer: &capacity.Answer{Stable: capacity.Limit{Why: "no request completed"}}})
	if !strings.HasPrefix(none, "no capacity: no request completed\n") {
		t.Errorf("got:\n%s", none)
	}
	more := swept(&capacity.Sweep{Answer: &capacity.Answer{Stable: capacity.Limit{Known: true, Rate: 40, Above: true}, Reason: "K2"}})
	if !strings.HasPrefix(more, "capacity  λ_stab 40.0 requests/s or more: no higher rate was refuted\n          NOT VALID: K2") {
		t.Errorf("got:\n%s", more)
	}
}

func TestPlainSweepSaysBetweenWhichLoadsItSaturates(t *testing.T) {
	stable, over := func(r float64) capacity.Result { return point(capacity.Point, r, stats.Stable) }, func(r float64) capacity.Result { return point(capacity.Point, r, stats.Overloaded) }
	invalid := over(5)
	invalid.Valid = false
	for want, results := range map[string][]capacity.Result{
		"saturation: between 20.0 requests/s, which the server keeps up with, and 40.0, which it does not (to within 5 %)": {stable(10), stable(20), over(40), over(80), invalid},
		"saturation: above 20.0 requests/s":                                                 {stable(10), stable(20)},
		"saturation: below 10.0 requests/s":                                                 {over(10)},
		"saturation: not clear: the server keeps up with 20.0 requests/s and not with 10.0": {over(10), stable(20)},
		"saturation: not known":                                                             {point(capacity.Point, 10, stats.Unclear)},
		"most: 20.2 requests/s complete with 4 in flight; more in flight gains nothing":     {closed(1, 10), closed(2, 20), closed(4, 20.2), closed(8, 20.1)},
		"most: 20.0 requests/s complete with 2 in flight; more may gain more":               {closed(1, 10), closed(2, 20)},
	} {
		if text := swept(&capacity.Sweep{Results: results}); !strings.HasPrefix(text, want) {
			t.Errorf("got %s, want %s", strings.SplitN(text, "\n", 2)[0], want)
		}
	}
}

func TestSaturationEndsASweep(t *testing.T) {
	stable, over := point(capacity.Point, 10, stats.Stable), point(capacity.Point, 20, stats.Overloaded)
	dead := point(capacity.Point, 20, stats.Unclear)
	dead.Completed = 0
	for name, test := range map[string]struct {
		results []capacity.Result
		want    bool
	}{
		"nothing measured":       {nil, false},
		"kept up":                {[]capacity.Result{stable, stable}, false},
		"overloaded":             {[]capacity.Result{stable, over}, true},
		"nothing completed":      {[]capacity.Result{stable, dead}, true},
		"once no faster":         {[]capacity.Result{closed(1, 10), closed(2, 10.1)}, false},
		"twice no faster":        {[]capacity.Result{closed(1, 10), closed(2, 10.1), closed(4, 10.2)}, true},
		"slower and then faster": {[]capacity.Result{closed(1, 10), closed(2, 9), closed(4, 20)}, false},
	} {
		if got := report.Saturated(test.results); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestReportSaysWhetherTheServerKeepsUp(t *testing.T) {
	some := judge.Some
	for want, st := range map[string]judge.Stability{
		"the server keeps up: 0.2 ± 1.1 % of the load are left standing":                              {State: stats.Stable, Shortfall: some(0.002), Error: some(0.011)},
		"overloaded: the backlog grows: 33.0 ± 1.0 % of the load are left standing":                   {State: stats.Overloaded, Why: "the backlog grows", Shortfall: some(0.33), Error: some(0.01)},
		"overloaded: requests fail: 12.0 % of them":                                                   {State: stats.Overloaded, Why: "requests fail", Shortfall: some(0), Error: some(0.01), Failed: some(0.12)},
		"unclear whether the server keeps up: too few requests (overloads from 36.1 % on would show)": {State: stats.Unclear, Why: "too few requests", Resolution: some(0.361)},
	} {
		s := summarize(t, manifest(), exchanges())
		s.Stages[1].Steadiness.Stability = &st
		if got := strings.Join(strings.Fields(string(text(t, s))), " "); !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}
