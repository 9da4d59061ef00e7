package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tare/internal/record"
)

// aiperfFiles are the summary and the records of AIPerf's profile export, as with --use-server-token-count.
func aiperfFiles(r *Run) ([]file, error) {
	all, err := r.replies()
	if err != nil {
		return nil, err
	}
	a := aiperf{run: r}
	for i := range all {
		a.add(&all[i])
	}
	return []file{
		{"profile_export_aiperf.json", indented(a.document())},
		{"profile_export.jsonl", a.records},
	}, nil
}

// aiperf is a run by the definitions of AIPerf. Times are in milliseconds, as that tool shows them.
type aiperf struct {
	run    *Run
	valid  []aiperfRecord
	failed []*reply

	order []aiperfRecord // all, as they were added; those of failed requests without metrics
}

type aiperfRecord struct {
	reply   *reply
	metrics []aiperfValue
}

type aiperfValue struct {
	tag, unit string
	values    []float64
	list      bool // one value for each gap
}

// add takes a request. One with content is valid unless an exception ended it or the server sent an error; an end before its time is none.
func (a *aiperf) add(r *reply) {
	m, ok := a.measure(r)
	rec := aiperfRecord{r, m}
	a.order = append(a.order, rec)
	if ok {
		a.valid = append(a.valid, rec)
	} else {
		a.failed = append(a.failed, r)
	}
}

func (a *aiperf) measure(r *reply) (m []aiperfValue, valid bool) {
	if r.Status != 200 || r.Outcome != record.Completed && r.Outcome != record.Truncated {
		return nil, false
	}
	add := func(tag, unit string, v float64) { m = append(m, aiperfValue{tag, unit, []float64{v}, false}) }
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	content, start := r.chosen(isToken), r.begins()
	if !a.run.Manifest.Target.Stream {
		end, _ := r.ends()
		content = nil
		add("request_latency", "ms", ms(end-start))
		a.counts(r, ms(end-start), 0, false, add)
		return m, true
	}
	if len(content) == 0 {
		return nil, false
	}
	latency, ttft := ms(content[len(content)-1]-start), ms(content[0]-start)
	add("request_latency", "ms", latency)
	add("time_to_first_token", "ms", ttft)
	if answer := r.chosen(record.Kind.Answer); len(answer) > 0 {
		add("time_to_first_output_token", "ms", ms(answer[0]-start))
	}
	if len(content) > 1 {
		add("time_to_second_token", "ms", ms(content[1]-content[0]))
		m = append(m, aiperfValue{"inter_chunk_latency", "ms", sample(gaps(content)).times(1e3), true})
	}
	if head, ok := r.HeaderAt.Get(); ok {
		add("stream_setup_latency", "ms", ms(head-start))
		add("stream_prefill_latency", "ms", ms(content[0]-head))
	}
	a.counts(r, latency, ttft, true, add)
	return m, true
}

// counts adds what follows from the tokens that the server counted.
func (a *aiperf) counts(r *reply, latency, ttft float64, streamed bool, add func(tag, unit string, v float64)) {
	if !r.Usage.Known {
		return
	}
	isl, osl := float64(r.Usage.Input), float64(r.Usage.Output)
	add("input_sequence_length", "tokens", isl)
	add("output_sequence_length", "tokens", osl)
	if latency > 0 {
		add("e2e_output_token_throughput", "tokens/sec/user", osl/(latency/1e3))
	}
	if !streamed {
		return
	}
	if ttft > 0 {
		add("prefill_throughput_per_user", "tokens/sec/user", isl/(ttft/1e3))
	}
	if osl >= 2 {
		itl := (latency - ttft) / (osl - 1)
		add("inter_token_latency", "ms", itl)
		if itl > 0 {
			add("output_token_throughput_per_user", "tokens/sec/user", 1e3/itl)
		}
	}
}

// document is profile_export_aiperf.json.
func (a *aiperf) document() object {
	run := a.run
	o := object{{"schema_version", "1.3"}, {"benchmark_id", run.id()}}
	byTag, units, order := map[string]sample{}, map[string]string{}, []string{}
	first, last, isl, osl, counted := time.Duration(0), time.Duration(0), 0.0, 0.0, len(a.valid) > 0
	for i, rec := range a.valid {
		for _, m := range rec.metrics {
			if units[m.tag] == "" {
				units[m.tag] = m.unit
				order = append(order, m.tag)
			}
			byTag[m.tag] = append(byTag[m.tag], m.values...)
		}
		start := rec.reply.begins()
		end := start + time.Duration(rec.metrics[0].values[0]*1e6) // request_latency is the first
		if i == 0 {
			first, last = start, end
		}
		first, last = min(first, start), max(last, end)
		counted = counted && rec.reply.Usage.Known
		isl, osl = isl+float64(rec.reply.Usage.Input), osl+float64(rec.reply.Usage.Output)
	}
	for _, tag := range order {
		o.add(tag, describe(units[tag], byTag[tag]))
	}
	span := inSeconds(last - first)
	scalar := func(tag, unit string, v float64, known bool) {
		if known {
			o.add(tag, object{{"unit", unit}, {"avg", v}})
		}
	}
	scalar("request_count", "requests", float64(len(a.valid)), true)
	scalar("error_request_count", "requests", float64(len(a.failed)), len(a.failed) > 0)
	scalar("benchmark_duration", "sec", span, len(a.valid) > 0)
	scalar("request_throughput", "requests/sec", float64(len(a.valid))/span, span > 0)
	scalar("output_token_throughput", "tokens/sec", osl/span, counted && span > 0)
	scalar("total_token_throughput", "tokens/sec", (isl+osl)/span, counted && span > 0)
	wall := run.Manifest.Clock.StartWall
	o.add("start_time", wall.Add(first).UTC().Format(time.RFC3339Nano))
	o.add("end_time", wall.Add(last).UTC().Format(time.RFC3339Nano))
	o.add("was_cancelled", run.Manifest.State.Cause != "")
	o.add("error_summary", a.errors())
	return o
}

// describe are AIPerf's statistics: NumPy's percentiles, the standard deviation of the population.
func describe(unit string, values sample) object {
	s := values.sorted()
	o := object{{"unit", unit}, {"avg", values.mean()}, {"min", s[0]}, {"max", s[len(s)-1]}}
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99} {
		o.add(fmt.Sprintf("p%g", p), s.percentile(p))
	}
	return append(o, object{{"std", values.std()}, {"count", len(s)}, {"sum", values.sum()}}...)
}

func (a *aiperf) errors() []object {
	type kind struct {
		code    int
		name    string
		message string
	}
	counts := map[kind]int{}
	var order []kind
	for _, r := range a.failed {
		k := kind{r.Status, r.Outcome.String(), failure(r)}
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
		}
	}
	list := []object{}
	for _, k := range order {
		list = append(list, object{{"error_details", errorDetails(k.code, k.name, k.message)}, {"count", counts[k]}})
	}
	return list
}

// errorDetails leaves the code out where no reply came.
func errorDetails(code int, name, message string) object {
	o := object{}
	if code != 0 {
		o.add("code", code)
	}
	return append(o, object{{"type", name}, {"message", message}}...)
}

// records writes profile_export.jsonl.
func (a *aiperf) records(to io.Writer) error {
	w := bufio.NewWriter(to)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, rec := range a.order {
		metrics, fault := object{}, any(nil)
		for _, m := range rec.metrics {
			var value any = m.values[0]
			if m.list {
				value = m.values
			}
			metrics.add(m.tag, object{{"value", value}, {"unit", m.unit}})
		}
		if r := rec.reply; len(rec.metrics) == 0 {
			fault = errorDetails(r.Status, r.Outcome.String(), failure(r))
		}
		if err := e.Encode(object{{"metadata", a.metadata(rec.reply)}, {"metrics", metrics}, {"error", fault}}); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (a *aiperf) metadata(r *reply) object {
	wall := a.run.Manifest.Clock.StartWall.UnixNano()
	moment := func(at record.Instant) any {
		if d, ok := at.Get(); ok {
			return wall + int64(d)
		}
		return nil
	}
	return object{
		{"session_num", r.Index}, {"conversation_id", fmt.Sprint(r.Session)}, {"turn_index", r.Turn}, {"request_start_ns", wall + int64(r.begins())},
		{"request_ack_ns", moment(r.HeaderAt)}, {"request_end_ns", moment(r.End)}, {"benchmark_phase", "profiling"},
		{"was_cancelled", r.Outcome == record.Cancelled}, {"cancellation_time_ns", nil},
	}
}
