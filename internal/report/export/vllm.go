package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"tare/internal/record"
)

// vllmFiles are a result and a printed table of vllm bench serve for each measured stage: that tool knows one load a run.
func vllmFiles(r *Run) (files []file, err error) {
	if !r.openAI() || !r.Manifest.Target.Stream {
		return nil, fmt.Errorf("vllm bench serve has no back end like %s, streamed %v", r.Manifest.Target.Endpoint, r.Manifest.Target.Stream)
	}
	all, err := r.replies()
	if err != nil {
		return nil, err
	}
	for n, i := range r.measured() {
		v := r.vllm(i, of(all, i))
		files = append(files,
			file{fmt.Sprintf("stage_%d_vllm.json", n), indented(v.document())},
			file{fmt.Sprintf("stage_%d_vllm.txt", n), v.table},
		)
	}
	return files, nil
}

// vllm is a stage by the definitions of vllm bench serve. Times are in seconds.
type vllm struct {
	run   *Run
	stage *record.Stage

	duration                float64
	completed, failed       int
	input, output           int64
	inputKnown, outputKnown bool

	inputLens, outputLens                []any
	ttfts, latencies, starts, queueTimes []float64
	itls                                 [][]float64
	errors                               []string
	ttft, tpot, itl, e2el                sample // of those that succeeded
}

func (r *Run) vllm(stage int, all []reply) *vllm {
	v := &vllm{run: r, stage: &r.Manifest.Stages[stage], inputKnown: true, outputKnown: true}
	last := time.Duration(v.stage.StartMs * 1e6)
	for i := range all {
		if at, ok := all[i].ends(); ok {
			last = max(last, at)
		}
		v.add(&all[i])
	}
	v.duration = inSeconds(last - time.Duration(v.stage.StartMs*1e6))
	return v
}

// add takes a request. One that brought an event with choices and ended without an exception of the HTTP library succeeded: an error in the
// stream, or an end before its time, is none.
func (v *vllm) add(r *reply) {
	chosen := r.chosen(hasChoices)
	success := len(chosen) > 0 && r.Status == 200 && (r.Outcome == record.Completed || r.Outcome == record.Truncated || r.Outcome == record.StreamError || r.Outcome == record.Empty)
	v.starts = append(v.starts, inSeconds(r.begins()))
	queued := 0.0
	if r.Delay == record.DelayInFlightCap {
		queued = inSeconds(r.begins() - r.Due)
	}
	v.queueTimes = append(v.queueTimes, queued)
	if !success {
		v.failed++
		v.inputLens, v.outputLens = append(v.inputLens, nil), append(v.outputLens, 0)
		v.ttfts, v.latencies, v.itls, v.errors = append(v.ttfts, 0), append(v.latencies, 0), append(v.itls, []float64{}), append(v.errors, failure(r))
		return
	}
	v.completed++
	ttft, latency := inSeconds(chosen[0]-r.begins()), inSeconds(chosen[len(chosen)-1]-r.begins())
	v.ttfts, v.latencies, v.itls, v.errors = append(v.ttfts, ttft), append(v.latencies, latency), append(v.itls, gaps(chosen)), append(v.errors, "")
	v.ttft, v.e2el, v.itl = append(v.ttft, ttft), append(v.e2el, latency), append(v.itl, gaps(chosen)...)
	if !r.Usage.Known {
		v.inputKnown, v.outputKnown = false, false
		v.inputLens, v.outputLens = append(v.inputLens, nil), append(v.outputLens, nil)
		return
	}
	v.inputLens, v.outputLens = append(v.inputLens, r.Usage.Input), append(v.outputLens, r.Usage.Output)
	v.input += int64(r.Usage.Input)
	v.output += int64(r.Usage.Output)
	if n := r.Usage.Output; n > 1 {
		v.tpot = append(v.tpot, (latency-ttft)/float64(n-1))
	}
}

// failure is what went wrong in a line.
func failure(r *reply) string {
	if r.Error != "" {
		return r.Error
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", r.Outcome, r.Cause))
}

// perSecond is a rate over the duration of the stage.
func (v *vllm) perSecond(n float64, known bool) any { return orNull(n/v.duration, known) }

func (v *vllm) document() object {
	t := &v.run.Manifest.Target
	o := object{
		{"date", v.run.Manifest.Clock.StartWall.UTC().Format("20060102-150405")}, {"endpoint_type", t.Endpoint}, {"backend", t.Endpoint}, {"label", nil},
		{"model_id", t.Model}, {"tokenizer_id", nil}, {"num_prompts", v.completed + v.failed}, {"request_rate", v.rate()}, {"burstiness", v.run.burstiness()},
		{"max_concurrency", v.concurrency()},
	}
	if v.stage.RateToPerS > 0 && v.stage.RateToPerS != v.stage.RatePerS {
		o.add("ramp_up_strategy", "linear")
		o.add("ramp_up_start_rps", v.stage.RatePerS)
		o.add("ramp_up_end_rps", v.stage.RateToPerS)
	}
	o = append(o, object{
		{"duration", v.duration}, {"completed", v.completed}, {"failed", v.failed}, {"total_input_tokens", known(v.input, v.inputKnown)},
		{"total_output_tokens", known(v.output, v.outputKnown)}, {"request_throughput", v.perSecond(float64(v.completed), true)}, {"request_goodput", nil},
		{"output_throughput", v.perSecond(float64(v.output), v.outputKnown)},
		{"total_token_throughput", v.perSecond(float64(v.input+v.output), v.inputKnown && v.outputKnown)},
		{"input_lens", v.inputLens}, {"output_lens", v.outputLens}, {"ttfts", v.ttfts}, {"itls", v.itls}, {"latencies", v.latencies},
		{"start_times", v.starts}, {"queue_times", v.queueTimes}, {"generated_texts", nil}, {"errors", v.errors},
		{"max_output_tokens_per_s", nil}, {"max_concurrent_requests", nil}, {"rtfx", nil},
	}...)
	for _, m := range v.metrics() {
		o.statistics(m.name, m.values.times(1e3))
	}
	return o
}

// statistics adds what vllm says of a metric, in milliseconds. It writes 0 for a metric without values; here that is null.
func (o *object) statistics(name string, values sample) {
	s := values.sorted()
	n := len(s) > 0
	at := func(of func() float64) any {
		if !n {
			return nil
		}
		return of()
	}
	o.add("mean_"+name+"_ms", at(values.mean))
	o.add("median_"+name+"_ms", at(func() float64 { return s.percentile(50) }))
	o.add("std_"+name+"_ms", at(values.std))
	for _, p := range []float64{90, 95, 99, 99.9} {
		o.add(fmt.Sprintf("p%g_%s_ms", p, name), at(func() float64 { return s.percentile(p) }))
	}
}

type vllmMetric struct {
	name, short, title string
	values             sample
}

func (v *vllm) metrics() []vllmMetric {
	return []vllmMetric{
		{"ttft", "TTFT", "Time to First Token", v.ttft}, {"tpot", "TPOT", "Time per Output Token (excl. 1st token)", v.tpot},
		{"itl", "ITL", "Inter-token Latency", v.itl}, {"e2el", "E2EL", "End-to-end Latency", v.e2el},
	}
}

func known(n int64, ok bool) any {
	if !ok {
		return nil
	}
	return n
}

// rate is the request rate as that tool writes it: "inf" sends all at once, under a limit of concurrency.
func (v *vllm) rate() any {
	if v.stage.Kind == "closed" {
		return "inf"
	}
	return orNull(v.stage.RatePerS, v.stage.RatePerS > 0)
}

func (v *vllm) concurrency() any {
	if n := max(v.stage.Concurrency, v.stage.MaxInFlight); n > 0 {
		return n
	}
	return nil
}

// burstiness is the shape of gamma arrivals, 1 for Poisson, null for others.
func (r *Run) burstiness() any {
	var spec struct {
		Load struct {
			Arrival    string  `json:"arrival"`
			Burstiness float64 `json:"burstiness"`
		} `json:"load"`
	}
	_ = json.Unmarshal(r.Manifest.Spec, &spec) // without a spec nothing is known of it
	switch {
	case spec.Load.Arrival == "poisson":
		return 1.0
	case spec.Load.Arrival == "gamma" && spec.Load.Burstiness > 0:
		return spec.Load.Burstiness
	}
	return nil
}

// table writes the lines that vllm bench serve prints.
func (v *vllm) table(to io.Writer) error {
	var b bytes.Buffer
	title := func(s, fill string) {
		left := (50 - len(s)) / 2
		fmt.Fprintf(&b, "%s%s%s\n", strings.Repeat(fill, left), s, strings.Repeat(fill, 50-len(s)-left))
	}
	row := func(label string, value any) {
		switch n := value.(type) {
		case float64:
			value = fmt.Sprintf("%.2f", n)
		case nil:
			value = "-"
		}
		fmt.Fprintf(&b, "%-40s %-10v\n", label, value)
	}
	title(" Serving Benchmark Result ", "=")
	row("Successful requests:", v.completed)
	row("Failed requests:", v.failed)
	if n := v.concurrency(); n != nil {
		row("Maximum request concurrency:", n)
	}
	if rate, ok := v.rate().(float64); ok {
		row("Request rate configured (RPS):", rate)
	}
	row("Benchmark duration (s):", v.duration)
	row("Total input tokens:", known(v.input, v.inputKnown))
	row("Total generated tokens:", known(v.output, v.outputKnown))
	row("Request throughput (req/s):", v.perSecond(float64(v.completed), true))
	row("Output token throughput (tok/s):", v.perSecond(float64(v.output), v.outputKnown))
	row("Total token throughput (tok/s):", v.perSecond(float64(v.input+v.output), v.inputKnown && v.outputKnown))
	for _, m := range v.metrics() {
		title(m.title, "-")
		s := m.values.times(1e3).sorted()
		at := func(of func() float64) any { // null where there are no values
			if len(s) == 0 {
				return nil
			}
			return of()
		}
		row("Mean "+m.short+" (ms):", at(s.mean))
		row("Median "+m.short+" (ms):", at(func() float64 { return s.percentile(50) }))
		row("P99 "+m.short+" (ms):", at(func() float64 { return s.percentile(99) }))
	}
	title("", "=")
	_, err := to.Write(b.Bytes())
	return err
}
