package capacity

import (
	"encoding/json"
	"fmt"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// SweepSchema names the format of sweep.json and its version, SweepFile the file in the directory of a sweep.
const (
	SweepSchema = "tare.sweep/v1"
	SweepFile   = "sweep.json"
)

// Point is the phase of a load that the user asked for.
const Point Phase = "point"

// Sweep is a series of runs under different loads. Its JSON form is sweep.json, described in docs/rundir.md.
type Sweep struct {
	Dir     string          `json:"-"`
	Schema  string          `json:"schema"`
	Tool    record.Tool     `json:"tool"`
	Start   string          `json:"start"`            // wall time, RFC 3339
	Spec    json.RawMessage `json:"spec"`             // the effective spec, without secrets and without its load's rate
	Config  *Config         `json:"search,omitempty"` // of a search for the capacity; left out of plain sweeps
	Biased  bool            `json:"biased,omitempty"` // runs whose client gates failed count too, on request
	Price   float64         `json:"price_per_hour,omitempty"`
	Results []Result        `json:"trials"`
	Answer  *Answer         `json:"answer,omitempty"`
	Curve   *Diagnosis      `json:"diagnosis,omitempty"` // of the throughput over the requests in flight; left out with fewer than five numbers in flight
	Cause   string          `json:"cause,omitempty"`     // why it ended early
	WallMs  float64         `json:"wall_ms"`             // of the whole sweep so far
}

// Result is one run of a sweep.
type Result struct {
	Dir       string             `json:"dir"` // below that of the sweep
	Load      Load               `json:"load"`
	Class     verdict.Class      `json:"class"`
	Valid     bool               `json:"valid"` // the client's gates were passed
	Fault     string             `json:"fault,omitempty"`
	TookMs    float64            `json:"took_ms"`
	Planned   int64              `json:"planned"`
	Completed int64              `json:"completed"`
	State     stats.State        `json:"state,omitempty"` // of an open loop, at the load's tolerance
	Why       string             `json:"why,omitempty"`
	Shortfall judge.Number       `json:"shortfall"` // share of the load left standing
	Error     judge.Number       `json:"shortfall_error"`
	Failed    judge.Number       `json:"failed_share"`
	Rate      judge.Number       `json:"completed_per_s"`
	Low       judge.Number       `json:"completed_low_per_s"` // 95 % interval
	High      judge.Number       `json:"completed_high_per_s"`
	Input     judge.Number       `json:"input_tokens_per_s"`
	Output    judge.Number       `json:"output_tokens_per_s"`
	InFlight  judge.Number       `json:"in_flight"` // mean
	Metrics   map[string]Profile `json:"metrics"`
	Good      judge.Number       `json:"attainment"`            // good of planned; null without objectives of each request
	Goodput   judge.Number       `json:"request_goodput_per_s"` // likewise
	Recovery  judge.Number       `json:"recovery_s"`            // of an overload; null where the server did not recover

	trial   Trial
	summary *judge.Summary
}

// Profile is one latency of a run.
type Profile struct {
	Mean judge.Number `json:"mean"`
	P50  judge.Number `json:"p50"`
	P90  judge.Number `json:"p90"`
	P99  judge.Number `json:"p99"`
}

// Profiles are the metrics of a Result, in their order.
func Profiles() []string {
	return []string{measure.TTFT, measure.TTFTFromDue, measure.TPOT, measure.ITL, measure.NTPOT, measure.E2E, measure.E2EFromDue}
}

// ResultOf judges the run in dir, a directory below that of the sweep.
func (s *Sweep) ResultOf(dir string, path string, l Load) (Result, error) {
	t, sum, err := Read(path, l)
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Dir: dir, Load: l, Class: sum.Verdict.Class, Valid: t.Valid, Fault: t.Fault, TookMs: float64(t.Took) / 1e6, Planned: t.Planned, Completed: t.Completed,
		State: t.State, Why: t.Why, Metrics: map[string]Profile{}, trial: t, summary: sum,
	}
	if t.State != "" {
		r.Shortfall, r.Error = judge.Some(t.Shortfall), judge.Some(t.Error)
	}
	if t.Planned > 0 {
		r.Failed = judge.Some(t.Failed)
	}
	if t.Recovered {
		r.Recovery = judge.Some(t.Recovery)
	}
	p := measured(sum)
	if p == nil {
		return Result{}, fmt.Errorf("%s: no stage was measured", path)
	}
	r.Rate, r.Input, r.Output = p.CompletedRate, p.InputRate, p.OutputRate
	if st := p.Steadiness; st != nil {
		r.Low, r.High, r.InFlight = st.Completed.Low, st.Completed.High, st.Drift.Mean
	}
	if o := p.Objectives; o != nil {
		r.Good, r.Goodput = o.Attainment.Value, o.RequestGoodput
	}
	for _, name := range Profiles() {
		f := p.Metrics[name]
		r.Metrics[name] = Profile{f.Mean, f.P50, f.P90, f.P99}
	}
	return r, nil
}

// Trial is the result as the search sees it.
func (r *Result) Trial() Trial { return r.trial }

// Summary is all that the run came to; nil of a result that ResultOf did not make.
func (r *Result) Summary() *judge.Summary { return r.summary }

// Trials are all results as the search sees them.
func (s *Sweep) Trials() (all []Trial) {
	for i := range s.Results {
		all = append(all, s.Results[i].trial)
	}
	return all
}

// Next is what to measure next in a search for the capacity; the answer of the trials so far is kept.
func (s *Sweep) Next() Step {
	step := Next(*s.Config, s.Trials())
	if step.Done {
		s.Answer = &step.Answer
	}
	return step
}

// Conclude makes the answer of the trials so far, whether the search has ended or not, and the diagnosis of the curve.
func (s *Sweep) Conclude() {
	s.Curve = diagnose(s.Results, s.Biased)
	if s.Config == nil {
		return
	}
	if step := Next(*s.Config, s.Trials()); step.Done && s.Cause == "" {
		s.Answer = &step.Answer
		return
	}
	search := newSearch(*s.Config, s.Trials())
	if search.cut = s.Cause; search.cut == "" {
		search.cut = "the search has not ended"
	}
	a := search.answer()
	s.Answer = &a
}

// Diagnosis describes the curve of throughput over requests in flight (docs/capacity.md). It is no answer.
type Diagnosis struct {
	Runs  int          `json:"runs"`
	Gamma Estimate     `json:"usl_gamma_per_s"`
	Sigma Estimate     `json:"usl_sigma"`
	Kappa Estimate     `json:"usl_kappa"`
	Peak  Estimate     `json:"usl_peak_in_flight"` // null where the law has no peak within 1.5 times what was measured
	Most  Estimate     `json:"usl_most_per_s"`
	Miss  judge.Number `json:"usl_misfit"` // root mean square of the relative residuals
	Knee  Estimate     `json:"kneedle_in_flight"`
}

// Estimate is a figure with its 95 % interval.
type Estimate struct {
	Value judge.Number `json:"value"`
	Low   judge.Number `json:"low"`
	High  judge.Number `json:"high"`
}

// diagnose fits the curve to the runs that count and whose number in flight does not grow.
func diagnose(results []Result, biased bool) *Diagnosis {
	var points []stats.Scaled
	for i := range results {
		r := &results[i]
		n, ok := r.InFlight.Get()
		if r.Load.InFlight > 0 {
			n, ok = float64(r.Load.InFlight), true
		}
		x, known := r.Rate.Get()
		if !ok || !known || !r.Valid && !biased || r.State == stats.Overloaded || r.State == stats.Unclear || r.Load.Then > 0 || r.trial.Failed > stats.MostFailed {
			continue
		}
		p := stats.Scaled{InFlight: n, Rate: x}
		if low, ok := r.Low.Get(); ok {
			p.Error = (value(r.High) - low) / 2 / 1.96
		}
		points = append(points, p)
	}
	s, ok := stats.Scale(points)
	if !ok {
		return nil
	}
	of := func(b stats.Bounded) Estimate {
		return Estimate{judge.Some(b.Value), judge.Some(b.Low), judge.Some(b.High)}
	}
	d := &Diagnosis{Runs: len(points), Gamma: of(s.Gamma), Sigma: of(s.Sigma), Kappa: of(s.Kappa), Most: of(s.Most), Miss: judge.Some(s.Miss), Knee: of(s.Knee)}
	if s.Peaks {
		d.Peak = of(s.Peak)
	}
	return d
}

// Cost is what a million output tokens cost, and a million of all tokens, at a price per hour and the rates of this run. It is undefined where the
// rate is.
func (r *Result) Cost(perHour float64) (output, all judge.Number) {
	million := func(perSecond float64, ok bool) judge.Number {
		if !ok || perSecond <= 0 {
			return judge.Number{}
		}
		return judge.Some(perHour / 3600 / perSecond * 1e6)
	}
	out, okOut := r.Output.Get()
	in, okIn := r.Input.Get()
	return million(out, okOut), million(in+out, okIn && okOut)
}
