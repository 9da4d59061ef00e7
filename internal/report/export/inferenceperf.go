package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/internal/record"
)

// inferencePerfFiles are the reports of inference-perf, with its settings as if use_server_output_tokens were on and no tokenizer given: one
// for each stage, one for all, one of single requests.
func inferencePerfFiles(r *Run) (files []file, err error) {
	if !r.openAI() {
		return nil, fmt.Errorf("inference-perf reads tokens of %s otherwise than its documents say, and has no figures to compare with", r.Manifest.Target.Endpoint)
	}
	all, err := r.replies()
	if err != nil {
		return nil, err
	}
	for n, i := range r.measured() {
		files = append(files, file{fmt.Sprintf("stage_%d_lifecycle_metrics.json", n), indented(lifecycle(of(all, i), &r.Manifest.Stages[i]))})
	}
	return append(files,
		file{"summary_lifecycle_metrics.json", indented(lifecycle(all, nil))},
		file{"per_request_lifecycle_metrics.json", indented(perRequest(all))},
	), nil
}

// succeeded by the rule of inference-perf: a status of 200 and no exception of the HTTP library. An error in the stream, an end before its
// time, and an answer without a token are none.
func succeeded(r *reply) bool {
	switch r.Outcome {
	case record.Completed, record.Truncated, record.StreamError, record.Empty:
		return r.Status == 200
	}
	return false
}

// window is from the first start to the last end of requests, seconds.
type window struct {
	starts sample
	first  time.Duration
	last   time.Duration
}

func windowOf(all []reply) (w window) {
	for i := range all {
		at := all[i].begins()
		end := at
		if e, ok := all[i].ends(); ok {
			end = e
		}
		if i == 0 {
			w.first, w.last = at, end
		}
		w.first, w.last = min(w.first, at), max(w.last, end)
		w.starts = append(w.starts, inSeconds(at))
	}
	return w
}

func (w *window) seconds() float64 { return inSeconds(w.last - w.first) }

// lifecycle is the report of one stage, or of all where stage is nil.
func lifecycle(all []reply, stage *record.Stage) object {
	w := windowOf(all)
	load := object{{"count", len(all)}, {"schedule_delay", distribution(scheduleDelays(all))}}
	if stage != nil {
		load = append(load, sending(&w, len(all), stage)...)
	}
	var good, bad []reply
	for i := range all {
		if succeeded(&all[i]) {
			good = append(good, all[i])
		} else {
			bad = append(bad, all[i])
		}
	}
	return object{
		{"benchmark_time_seconds", orNull(w.seconds(), len(all) > 0)}, {"load_summary", load}, {"successes", successes(good, w.seconds())}, {"failures", failures(bad)},
	}
}

func scheduleDelays(all []reply) (s sample) {
	for i := range all {
		s = append(s, inSeconds(all[i].begins()-all[i].Due))
	}
	return s
}

func sending(w *window, count int, stage *record.Stage) (o object) {
	if len(w.starts) > 0 {
		span := slices.Max(w.starts) - slices.Min(w.starts)
		o.add("send_duration", span)
		o.add("requested_rate", orNull(stage.RatePerS, stage.Kind == "open" && stage.RatePerS > 0))
		o.add("achieved_rate", orNull(float64(count)/span, span > 0))
	}
	if stage.Concurrency > 0 {
		o.add("concurrency", stage.Concurrency)
	}
	return o
}

func successes(all []reply, span float64) object {
	var latency, ntpot, tpot, ttft, itl, input, output sample
	inputs, outputs, cached := true, true, 0.0
	for i := range all {
		r := &all[i]
		end, _ := r.ends()
		took := inSeconds(end - r.begins())
		latency = append(latency, took)
		tokens := r.chosen(isContent)
		if len(tokens) > 1 {
			ttft = append(ttft, inSeconds(tokens[0]-r.begins()))
		}
		itl = append(itl, gaps(tokens)...)
		if !r.Usage.Known {
			inputs, outputs = false, false
			continue
		}
		n := float64(r.Usage.Output)
		input, output = append(input, float64(r.Usage.Input)), append(output, n)
		cached += float64(r.Usage.Cached)
		if n == 0 {
			ntpot = append(ntpot, 0) // as that tool has it
		} else {
			ntpot = append(ntpot, took/n)
		}
		if n > 1 && len(tokens) > 1 {
			tpot = append(tpot, inSeconds(tokens[len(tokens)-1]-tokens[0])/(n-1))
		}
	}
	rate := func(v float64, known bool) any { return orNull(v/span, known && span > 0) }
	return object{
		{"count", len(all)},
		{"latency", object{
			{"request_latency", distribution(latency)}, {"normalized_time_per_output_token", distribution(ntpot)}, {"time_per_output_token", distribution(tpot)},
			{"time_to_first_token", distribution(ttft)}, {"inter_token_latency", distribution(itl)},
		}},
		{"throughput", object{
			{"input_tokens_per_sec", rate(input.sum(), inputs)}, {"output_tokens_per_sec", rate(output.sum(), outputs)},
			{"total_tokens_per_sec", rate(input.sum()+output.sum(), inputs && outputs)}, {"requests_per_sec", rate(float64(len(all)), true)},
			{"images_per_sec", nil}, {"videos_per_sec", nil}, {"audios_per_sec", nil},
		}},
		{"request_size_bytes", nil}, {"image", nil}, {"video", nil}, {"audio", nil},
		{"prompt_tokens", tokens(input, inputs, object{{"cached", orNull(cached, inputs)}, {"uncached", orNull(input.sum()-cached, inputs)}})},
		{"output_len", nil}, {"output_tokens", tokens(output, outputs, nil)}, {"token_count_mismatches", nil},
	}
}

// tokens are a total, what is between, and a distribution; null where a reply was not counted by the server.
func tokens(counts sample, known bool, between object) any {
	if !known {
		return nil
	}
	o := append(object{{"total", counts.sum()}}, between...)
	return append(o, spread(counts)...)
}

// percentiles are those that inference-perf reports unless it is told others.
var percentiles = []float64{0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}

// distribution is null for no values.
func distribution(s sample) any {
	if len(s) == 0 {
		return nil
	}
	return spread(s)
}

func spread(values sample) (o object) {
	if len(values) == 0 {
		return nil
	}
	s := values.sorted()
	o.add("mean", values.mean())
	o.add("min", s[0])
	for _, p := range percentiles {
		key := fmt.Sprintf("p%g", p)
		if p == 50 {
			key = "median"
		}
		o.add(key, s.percentile(p))
	}
	o.add("max", s[len(s)-1])
	return o
}

func failures(all []reply) object {
	var latency sample
	labels, texts := map[string]int{}, map[string][]string{}
	for i := range all {
		r := &all[i]
		if end, ok := r.ends(); ok {
			latency = append(latency, inSeconds(end-r.begins()))
		}
		label := labelOf(r)
		labels[label]++
		if text := failure(r); !slices.Contains(texts[label], text) && len(texts[label]) < 10 {
			texts[label] = append(texts[label], text)
		}
	}
	by := object{}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		messages := []object{}
		for _, text := range texts[label] {
			messages = append(messages, object{{"message", text}})
		}
		by.add(label, object{{"count", labels[label]}, {"messages", messages}})
	}
	return object{{"count", len(all)}, {"request_latency", distribution(latency)}, {"prompt_tokens", nil}, {"by_label", by}}
}

// labelOf names a failure as inference-perf does.
func labelOf(r *reply) string {
	known := map[int]string{429: "Rate Limit", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
	switch {
	case known[r.Status] != "":
		return fmt.Sprintf("%d - %s", r.Status, known[r.Status])
	case r.Status != 0 && r.Status != 200:
		return fmt.Sprintf("%d - other", r.Status)
	case r.Outcome == record.TimedOut:
		return "Timeout"
	case r.Outcome == record.ConnectFailed || r.Outcome == record.Reset:
		return "Connection Error"
	}
	return strings.ReplaceAll(r.Outcome.String(), "_", "")
}

// perRequest is the list of single requests. Bodies are not on record.
func perRequest(all []reply) []object {
	list := []object{}
	for i := range all {
		r := &all[i]
		end, ended := r.ends()
		var times []float64
		for _, at := range r.chosen(isContent) {
			times = append(times, inSeconds(at))
		}
		var input, output, usage any
		if r.Usage.Known {
			input, output = r.Usage.Input, r.Usage.Output
			usage = object{{"prompt_tokens", r.Usage.Input}, {"completion_tokens", r.Usage.Output}}
		}
		var fault any
		if !succeeded(r) {
			fault = object{{"error_type", labelOf(r)}, {"error_msg", failure(r)}}
		}
		list = append(list, object{
			{"start_time", inSeconds(r.begins())}, {"end_time", orNull(inSeconds(end), ended)}, {"request", nil}, {"response", nil},
			{"info", object{
				{"request_metrics", object{{"text", object{{"input_tokens", input}}}, {"image", nil}, {"video", nil}, {"audio", nil}}},
				{"response_metrics", object{
					{"output_tokens", output}, {"server_usage", usage}, {"response_chunks", nil}, {"chunk_times", times}, {"output_token_times", times},
				}},
				{"extra_info", object{}}, {"lora_adapter", nil}, {"labels", object{}}, {"input_tokens", input},
			}},
			{"error", fault},
		})
	}
	return list
}
