package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
)

// llmdFiles are benchmark reports of llm-d, schema 0.2.1, one for each measured stage. That schema leaves the definitions to the tool that
// measured, which it names: the figures are our own, in seconds.
func llmdFiles(r *Run) (files []file, err error) {
	for n, i := range r.measured() {
		files = append(files, file{fmt.Sprintf("benchmark_report_stage_%d.json", n), indented(r.llmd(n, i))})
	}
	return files, nil
}

// id names a run: the hash of its plan and its start.
func (r *Run) id() string {
	sum := sha256.Sum256([]byte(r.Manifest.Plan.PlanID + r.Manifest.Clock.StartWall.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:16])
}

func (r *Run) llmd(n, stage int) object {
	m, p := r.Manifest, &r.Summary.Stages[stage]
	verdict := r.Summary.Verdict
	at := func(ms float64) string {
		return m.Clock.StartWall.Add(time.Duration(ms * 1e6)).UTC().Format(time.RFC3339Nano)
	}
	run := object{
		{"uid", fmt.Sprintf("%s-%d", r.id(), n)},
		{"time", object{{"start", at(p.StartMs)}, {"end", at(p.EndMs)}, {"duration", fmt.Sprintf("PT%sS", seconds(judge.Some(p.WindowMs)))}}},
		{"description", fmt.Sprintf("stage %s; verdict of the whole run: %s: %s", p.Name, verdict.Class, verdict.Reason)},
		{"keywords", []string{"tare", "verdict:" + string(verdict.Class)}},
	}
	if m.Plan.PlanID != "" {
		run.add("eid", m.Plan.PlanID)
	}
	o := object{{"version", "0.2.1"}, {"run", run}}
	if load := r.llmdLoad(n, stage); load != nil {
		o.add("scenario", object{{"load", load}})
	}
	o.add("results", object{{"request_performance", object{{"aggregate", aggregate(p)}, {"time_series", r.llmdSeries(p)}}}})
	return o
}

// llmdLoad is the load of a stage; nil where the mean length of its prompts, which the schema asks for, is not known.
func (r *Run) llmdLoad(n, stage int) object {
	m := r.Manifest
	var spec struct {
		Workload struct {
			InputTokens  any    `json:"input_tokens"`
			OutputTokens any    `json:"output_tokens"`
			IgnoreEOS    bool   `json:"ignore_eos"`
			Text         string `json:"text"`
			Dataset      struct {
				File string `json:"file"`
			} `json:"dataset"`
			Trace struct {
				File string `json:"file"`
			} `json:"trace"`
		} `json:"workload"`
	}
	_ = json.Unmarshal(m.Spec, &spec) // without a spec the lengths are not known
	w := &spec.Workload
	if m.Workload == nil || m.Workload.MeanInput == 0 {
		return nil
	}
	recorded := w.Dataset.File != "" || w.Trace.File != ""
	source := "random"
	if recorded || w.Text == "corpus" || w.Text == "markov" {
		source = "sampled"
	}
	std := object{
		{"tool", "tare"}, {"tool_version", m.Tool.Version}, {"source", source}, {"stage", n},
		{"input_seq_len", sequence(w.InputTokens, m.Workload.MeanInput, recorded)},
	}
	if w.IgnoreEOS && m.Workload.MeanOutput > 0 {
		std.add("output_seq_len", sequence(w.OutputTokens, m.Workload.MeanOutput, recorded))
	}
	s := &m.Stages[stage]
	if s.RatePerS > 0 {
		std.add("rate_qps", s.RatePerS)
	}
	if s.Concurrency > 0 {
		std.add("concurrency", s.Concurrency)
	}
	metadata := object{}
	if m.Plan.ContentID != "" {
		metadata.add("cfg_id", m.Plan.ContentID)
	}
	return object{{"metadata", metadata}, {"standardized", std}, {"native", object{{"config", m.Spec}}}}
}

// sequence is how long prompts or answers are: a number, a form that the schema has, or another with its mean.
func sequence(asked any, mean float64, recorded bool) object {
	if n, ok := asked.(float64); ok && !recorded {
		return object{{"distribution", "fixed"}, {"value", n}}
	}
	text, _ := asked.(string)
	name, rest, ok := strings.Cut(strings.ReplaceAll(text, " ", ""), "(")
	args := strings.Split(strings.TrimSuffix(rest, ")"), ",")
	if ok && !recorded && name == "uniform" && len(args) == 2 {
		low, err := strconv.Atoi(args[0])
		high, err2 := strconv.Atoi(args[1])
		if err == nil && err2 == nil {
			return object{{"distribution", "uniform"}, {"value", mean}, {"min", low}, {"max", high}}
		}
	}
	return object{{"distribution", "other"}, {"value", mean}}
}

func aggregate(p *judge.Part) object {
	tried := p.Outcomes.Sum() - p.Outcomes.NotSent
	o := object{{"requests", object{
		{"total", tried}, {"failures", tried - p.Outcomes.Completed - p.Outcomes.Cancelled}, {"incomplete", p.Outcomes.Cancelled + p.Outcomes.NotSent + p.Missing},
		{"input_length", statistics(p, measure.InputTokens, "count", judge.Number.Text)}, {"output_length", statistics(p, measure.OutputTokens, "count", judge.Number.Text)},
	}}}
	o.add("latency", object{
		{"time_to_first_token", statistics(p, measure.TTFT, "s", seconds)}, {"normalized_time_per_output_token", statistics(p, measure.NTPOT, "s/token", seconds)},
		{"time_per_output_token", statistics(p, measure.TPOT, "s/token", seconds)}, {"inter_token_latency", statistics(p, measure.ITL, "s/token", seconds)},
		{"request_latency", statistics(p, measure.E2E, "s", seconds)},
	})
	o.add("throughput", object{
		{"input_token_rate", rateOf(p.InputRate, "tokens/s")}, {"output_token_rate", rateOf(p.OutputRate, "tokens/s")},
		{"request_rate", rateOf(p.CompletedRate, "queries/s")},
	})
	return o
}

// statistics are a metric's figures in the words of the schema; null without a mean, which it asks for.
func statistics(p *judge.Part, metric, units string, value func(judge.Number) string) any {
	f, ok := p.Metrics[metric]
	if _, defined := f.Mean.Get(); !ok || !defined {
		return nil
	}
	o := object{{"units", units}}
	for _, v := range []pair{
		{"mean", f.Mean}, {"min", f.Min}, {"p1", f.P1}, {"p5", f.P5}, {"p10", f.P10}, {"p25", f.P25}, {"p50", f.P50}, {"p75", f.P75}, {"p90", f.P90},
		{"p95", f.P95}, {"p99", f.P99}, {"p99p9", f.P999}, {"max", f.Max},
	} {
		if digits := value(v.value); digits != "" {
			o.add(v.name, json.Number(digits))
		}
	}
	return o
}

func rateOf(n judge.Number, units string) any {
	if digits := n.Text(); digits != "" {
		return object{{"units", units}, {"mean", json.Number(digits)}}
	}
	return nil
}

// llmdSeries are the spans of the run's series that lie in the stage's window.
func (r *Run) llmdSeries(p *judge.Part) object {
	s := &r.Detail.Series
	series := func(units string, of func(i int) object) object {
		points := []object{}
		for i := range s.Due {
			at := float64(i) * s.WidthMs
			if at < p.StartMs || at+s.WidthMs > p.EndMs {
				continue
			}
			point := object{{"ts", r.Manifest.Clock.StartWall.Add(time.Duration(at * 1e6)).UTC().Format(time.RFC3339Nano)}}
			points = append(points, append(point, of(i)...))
		}
		return object{{"units", units}, {"series", points}}
	}
	one := func(key string, n judge.Number, value func(judge.Number) string) (o object) {
		if digits := value(n); digits != "" {
			o.add(key, json.Number(digits))
		}
		return o
	}
	latency := func(p50, p99 []judge.Number) func(i int) object {
		return func(i int) object { return append(one("p50", p50[i], seconds), one("p99", p99[i], seconds)...) }
	}
	rate := func(list []judge.Number) func(i int) object {
		return func(i int) object { return one("value", list[i], judge.Number.Text) }
	}
	return object{
		{"latency", object{{"time_to_first_token", series("s", latency(s.TTFTP50, s.TTFTP99))}, {"request_latency", series("s", latency(s.E2EP50, s.E2EP99))}}},
		{"throughput", object{
			{"input_token_rate", series("tokens/s", rate(s.InputTokens))}, {"output_token_rate", series("tokens/s", rate(s.OutputTokens))},
			{"request_rate", series("queries/s", rate(s.Completed))},
		}},
	}
}
