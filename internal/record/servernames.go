package record

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// dialect is how one kind of server names its numbers.
type dialect struct {
	name   string
	prefix []string // a page with a name that begins so is of this dialect
	rows   []naming
}

// naming says where a Quantity is found. Of several names the first that the page has counts: the others are of older versions.
type naming struct {
	quantity Quantity
	names    []string
	scale    float64                      // of the server's unit in ours; 0 for 1
	fold     fold                         // of the values of several engines
	only     [2]string                    // label and value that a series must have; none if empty
	by       string                       // label with the reason, of Requests and Failures: they share its values
	bad      []string                     // reasons that make a request one of Failures
	span     bool                         // a histogram or summary: its sum and count
	part     func(s, c Quantity) Quantity // of a span, where the page has one of both as a counter of its own
}

// fold makes one value of several.
type fold uint8

const (
	sum fold = iota
	mean
	most
)

const (
	seconds      = 1e3  // in ms
	microseconds = 1e-3 // in ms
	percent      = 0.01
	mebibyte     = 1 << 20
)

// aborted are reasons of servers for which a request did not end well.
var aborted = []string{"abort", "error", "cancelled", "cancel", "timeout"}

func onlySum(s, _ Quantity) Quantity   { return s }
func onlyCount(_, c Quantity) Quantity { return c }

// dialects are told apart in this order. Names are written with _ in place of the : that some have and others on the way replace.
var dialects = []dialect{
	{"vllm", []string{"vllm_"}, []naming{
		{quantity: Running, names: []string{"vllm_num_requests_running"}},
		{quantity: Waiting, names: []string{"vllm_num_requests_waiting"}},
		{quantity: KVUsage, names: []string{"vllm_kv_cache_usage_perc", "vllm_gpu_cache_usage_perc"}, fold: mean},
		{quantity: Requests, names: []string{"vllm_request_success_total"}, by: "finished_reason", bad: aborted},
		{quantity: PromptTokens, names: []string{"vllm_prompt_tokens_total"}},
		{quantity: OutputTokens, names: []string{"vllm_generation_tokens_total"}},
		{quantity: ComputedInput, names: []string{"vllm_request_prefill_kv_computed_tokens_sum"}},
		{quantity: CacheQueries, names: []string{"vllm_prefix_cache_queries_total", "vllm_gpu_prefix_cache_queries_total"}},
		{quantity: CacheHits, names: []string{"vllm_prefix_cache_hits_total", "vllm_gpu_prefix_cache_hits_total"}},
		{quantity: Preemptions, names: []string{"vllm_num_preemptions_total"}},
		{quantity: ServerTTFT, names: []string{"vllm_time_to_first_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerITL, names: []string{"vllm_inter_token_latency_seconds", "vllm_time_per_output_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerTPOT, names: []string{"vllm_request_time_per_output_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerE2E, names: []string{"vllm_e2e_request_latency_seconds"}, scale: seconds, span: true},
		{quantity: QueueTime, names: []string{"vllm_request_queue_time_seconds"}, scale: seconds, span: true},
		{quantity: PrefillTime, names: []string{"vllm_request_prefill_time_seconds"}, scale: seconds, span: true},
		{quantity: DecodeTime, names: []string{"vllm_request_decode_time_seconds"}, scale: seconds, span: true},
		{quantity: InferenceTime, names: []string{"vllm_request_inference_time_seconds"}, scale: seconds, span: true},
	}},
	{"sglang", []string{"sglang_"}, []naming{
		{quantity: Running, names: []string{"sglang_num_running_reqs"}},
		{quantity: Waiting, names: []string{"sglang_num_queue_reqs"}},
		{quantity: KVUsage, names: []string{"sglang_token_usage"}, fold: mean},
		{quantity: Requests, names: []string{"sglang_num_requests_total"}},
		{quantity: Failures, names: []string{"sglang_num_aborted_requests_total"}},
		{quantity: PromptTokens, names: []string{"sglang_prompt_tokens_total"}},
		{quantity: OutputTokens, names: []string{"sglang_generation_tokens_total"}},
		{quantity: CacheQueries, names: []string{"sglang_prompt_tokens_total"}},
		{quantity: CacheHits, names: []string{"sglang_cached_tokens_total"}},
		{quantity: Preemptions, names: []string{"sglang_num_retracted_requests_total", "sglang_num_retracted_reqs_total"}},
		{quantity: ServerTTFT, names: []string{"sglang_time_to_first_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerITL, names: []string{"sglang_inter_token_latency_seconds", "sglang_time_per_output_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerE2E, names: []string{"sglang_e2e_request_latency_seconds"}, scale: seconds, span: true},
		{quantity: QueueTime, names: []string{"sglang_queue_time_seconds"}, scale: seconds, span: true},
		{quantity: PrefillTime, names: []string{"sglang_per_stage_req_latency_seconds"}, scale: seconds, span: true, only: [2]string{"stage", "prefill_forward"}},
		{quantity: DecodeTime, names: []string{"sglang_per_stage_req_latency_seconds"}, scale: seconds, span: true, only: [2]string{"stage", "decode_forward"}},
		{quantity: DecodeTime, names: []string{"sglang_per_stage_req_latency_seconds"}, scale: seconds, span: true, only: [2]string{"stage", "decode_loop"}},
	}},
	{"tgi", []string{"tgi_"}, []naming{
		{quantity: Running, names: []string{"tgi_batch_current_size"}},
		{quantity: Waiting, names: []string{"tgi_queue_size"}},
		{quantity: Requests, names: []string{"tgi_request_success"}},
		{quantity: Failures, names: []string{"tgi_request_failure"}},
		{quantity: PromptTokens, names: []string{"tgi_request_input_length_sum"}},
		{quantity: OutputTokens, names: []string{"tgi_request_generated_tokens_sum"}},
		{quantity: ServerE2E, names: []string{"tgi_request_duration"}, scale: seconds, span: true},
		{quantity: QueueTime, names: []string{"tgi_request_queue_duration"}, scale: seconds, span: true},
		{quantity: InferenceTime, names: []string{"tgi_request_inference_duration"}, scale: seconds, span: true},
	}},
	{"llamacpp", []string{"llamacpp_"}, []naming{
		{quantity: Running, names: []string{"llamacpp_requests_processing"}},
		{quantity: Waiting, names: []string{"llamacpp_requests_deferred"}},
		{quantity: KVUsage, names: []string{"llamacpp_kv_cache_usage_ratio"}, fold: mean},
		{quantity: ComputedInput, names: []string{"llamacpp_prompt_tokens_total"}},
		{quantity: CacheHits, names: []string{"llamacpp_prompt_tokens_cached_total"}},
		{quantity: OutputTokens, names: []string{"llamacpp_tokens_predicted_total"}},
		{quantity: PrefillTime, names: []string{"llamacpp_prompt_seconds_total"}, scale: seconds, part: onlySum},
		{quantity: DecodeTime, names: []string{"llamacpp_tokens_predicted_seconds_total"}, scale: seconds, part: onlySum},
	}},
	{"trtllm", []string{"trtllm_"}, []naming{
		{quantity: Requests, names: []string{"trtllm_request_success_total"}, by: "finished_reason", bad: aborted},
		{quantity: ServerTTFT, names: []string{"trtllm_time_to_first_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerTPOT, names: []string{"trtllm_time_per_output_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerE2E, names: []string{"trtllm_e2e_request_latency_seconds"}, scale: seconds, span: true},
		{quantity: QueueTime, names: []string{"trtllm_request_queue_time_seconds"}, scale: seconds, span: true},
	}},
	{"triton", []string{"nv_inference_", "nv_trt_llm_"}, []naming{
		{quantity: Running, names: []string{"nv_trt_llm_request_metrics"}, only: [2]string{"request_type", "active"}},
		{quantity: Waiting, names: []string{"nv_trt_llm_request_metrics"}, only: [2]string{"request_type", "waiting"}},
		{quantity: Waiting, names: []string{"nv_inference_pending_request_count"}},
		{quantity: KVUsage, names: []string{"nv_trt_llm_kv_cache_block_metrics"}, only: [2]string{"kv_cache_block_type", "fraction"}, fold: mean},
		{quantity: Requests, names: []string{"nv_inference_request_success"}},
		{quantity: Failures, names: []string{"nv_inference_request_failure"}},
		{quantity: ServerE2E, names: []string{"nv_inference_request_duration_us"}, scale: microseconds, part: onlySum},
		{quantity: ServerE2E, names: []string{"nv_inference_request_success"}, part: onlyCount},
		{quantity: QueueTime, names: []string{"nv_inference_queue_duration_us"}, scale: microseconds, part: onlySum},
		{quantity: QueueTime, names: []string{"nv_inference_request_success"}, part: onlyCount},
		{quantity: InferenceTime, names: []string{"nv_inference_compute_infer_duration_us"}, scale: microseconds, part: onlySum},
		{quantity: InferenceTime, names: []string{"nv_inference_request_success"}, part: onlyCount},
		{quantity: ServerTTFT, names: []string{"nv_inference_first_response_histogram_ms"}, span: true},
		{quantity: GPUUsage, names: []string{"nv_gpu_utilization"}, fold: mean},
		{quantity: GPUMemory, names: []string{"nv_gpu_memory_used_bytes"}},
		{quantity: GPUPower, names: []string{"nv_gpu_power_usage"}},
		{quantity: GPUEnergy, names: []string{"nv_energy_consumption"}},
	}},
	{"dcgm", []string{"DCGM_FI_"}, []naming{
		{quantity: GPUUsage, names: []string{"DCGM_FI_DEV_GPU_UTIL"}, scale: percent, fold: mean},
		{quantity: GPUMemory, names: []string{"DCGM_FI_DEV_FB_USED"}, scale: mebibyte},
		{quantity: GPUPower, names: []string{"DCGM_FI_DEV_POWER_USAGE"}},
		{quantity: GPUHeat, names: []string{"DCGM_FI_DEV_GPU_TEMP"}, fold: most},
		{quantity: GPUEnergy, names: []string{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}, scale: 1e-3},
		{quantity: GPUThrottled, names: []string{"DCGM_FI_DEV_POWER_VIOLATION"}},
		{quantity: GPUThrottled, names: []string{"DCGM_FI_DEV_THERMAL_VIOLATION"}},
	}},
	{"amd", []string{"gpu_gfx_activity", "amd_gpu_"}, []naming{
		{quantity: GPUUsage, names: []string{"gpu_gfx_activity", "amd_gpu_gfx_activity"}, scale: percent, fold: mean},
		{quantity: GPUMemory, names: []string{"gpu_used_vram", "amd_gpu_used_vram"}, scale: mebibyte},
		{quantity: GPUPower, names: []string{"gpu_package_power", "gpu_average_package_power", "amd_gpu_package_power", "gpu_power_usage", "amd_gpu_power_usage"}},
		{quantity: GPUHeat, names: []string{"gpu_junction_temperature", "amd_gpu_junction_temperature"}, fold: most},
	}},
	// NIM has vLLM's numbers without a prefix, so that it comes last.
	{"nim", []string{"num_requests_running", "request_finish_total"}, []naming{
		{quantity: Running, names: []string{"num_requests_running"}},
		{quantity: Waiting, names: []string{"num_requests_waiting"}},
		{quantity: KVUsage, names: []string{"gpu_cache_usage_perc"}, fold: mean},
		{quantity: Requests, names: []string{"request_finish_total"}, by: "finished_reason", bad: aborted},
		{quantity: PromptTokens, names: []string{"prompt_tokens_total"}},
		{quantity: OutputTokens, names: []string{"generation_tokens_total"}},
		{quantity: ServerTTFT, names: []string{"time_to_first_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerITL, names: []string{"time_per_output_token_seconds"}, scale: seconds, span: true},
		{quantity: ServerE2E, names: []string{"e2e_request_latency_seconds"}, scale: seconds, span: true},
	}},
}

// processStart is what the usual libraries for metrics call the start of the process, in every dialect.
var processStart = naming{quantity: ServerStart, names: []string{"process_start_time_seconds"}, fold: most}

// spelled is a name as the tables of dialects spell it.
func spelled(name string) string { return strings.ReplaceAll(name, ":", "_") }

// wanted are the names of all dialects, of spans without what sum, count and buckets add.
var wanted = func() map[string]bool {
	all := map[string]bool{}
	for _, d := range dialects {
		for _, row := range append(d.rows, processStart) {
			for _, name := range row.names {
				all[name] = true
				all[strings.TrimSuffix(name, "_total")] = true // OpenMetrics' name for the family of a counter
				all[strings.TrimSuffix(name, "_sum")] = true
			}
		}
	}
	return all
}()

// WantsMetric reports whether a number of this name, or a part of a family of this name, can be one that Translate takes. Pages
// have many that it does not.
func WantsMetric(name string) bool {
	name = spelled(name)
	if wanted[name] {
		return true
	}
	for _, suffix := range []string{"_sum", "_count", "_bucket"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return wanted[base]
		}
	}
	return strings.HasSuffix(name, configInfo)
}

// configInfo ends the names of metrics whose labels are settings of the server.
const configInfo = "_config_info"

// SettingsOn are the settings that a page tells as labels, by "NAME.LABEL" with the server's name left out of NAME.
func SettingsOn(page []Series) map[string]string {
	all := map[string]string{}
	for _, s := range page {
		name := spelled(s.Name)
		if !strings.HasSuffix(name, configInfo) {
			continue
		}
		_, name, _ = strings.Cut(name, "_")
		for label, value := range s.Labels {
			all[name+"."+label] = value
		}
	}
	return all
}

// MetricNames lists every name that Translate takes, as servers spell them through a system that has no colons, for those that
// ask by name.
func MetricNames() []string { return slices.Sorted(maps.Keys(wanted)) }

// Translate puts the numbers of one page into our words. ok is false when it has none that we know.
func Translate(page []Series, buckets bool) (v ServerValues, ok bool) {
	p := newMetricsPage(page)
	for _, d := range dialects {
		if p.has(d.prefix) {
			v = p.translate(d, buckets)
			return v, len(v.Values) > 0
		}
	}
	return ServerValues{}, false
}

// metricsPage is the series of a page by their name.
type metricsPage map[string][]Series

func newMetricsPage(all []Series) metricsPage {
	p := metricsPage{}
	for _, s := range all {
		name := spelled(s.Name)
		p[name] = append(p[name], s)
	}
	return p
}

func (p metricsPage) has(prefixes []string) bool {
	for name := range p {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) && WantsMetric(name) {
				return true
			}
		}
	}
	return false
}

func (p metricsPage) translate(d dialect, buckets bool) ServerValues {
	v := ServerValues{Dialect: d.name, Values: map[Quantity]float64{}}
	for _, row := range append(slices.Clone(d.rows), processStart) {
		switch {
		case row.span:
			p.span(&v, row, buckets)
		case row.by != "":
			p.reasons(&v, row)
		default:
			p.single(&v, row)
		}
	}
	return v
}

// single takes a number that is complete in itself. Rows of the same Quantity add up where they count.
func (p metricsPage) single(v *ServerValues, row naming) {
	for _, name := range row.names {
		total, ok := row.folded(p[name])
		if !ok {
			continue
		}
		q := row.quantity
		if row.part != nil {
			q = row.part(q.Sum(), q.Count())
		}
		had, twice := v.Values[q]
		if twice && !q.Counter() {
			return
		}
		v.Values[q] = had + total
		return
	}
}

// span takes the sum, the count and the buckets of a histogram; a summary has no buckets.
func (p metricsPage) span(v *ServerValues, row naming, buckets bool) {
	for _, name := range row.names {
		total, told := row.folded(p[name+"_sum"])
		plain := row
		plain.scale = 1
		n, counted := plain.folded(p[name+"_count"])
		if !told || !counted {
			continue
		}
		v.Values[row.quantity.Sum()], v.Values[row.quantity.Count()] = total, n
		if found := p.buckets(name, row); buckets && len(found) > 0 {
			if v.Buckets == nil {
				v.Buckets = map[Quantity][]Bucket{}
			}
			v.Buckets[row.quantity] = found
		}
		return
	}
}

// buckets adds the buckets of all engines up.
func (p metricsPage) buckets(name string, row naming) []Bucket {
	sums := map[float64]float64{}
	for _, s := range p[name+"_bucket"] {
		bound, err := strconv.ParseFloat(s.Labels["le"], 64)
		if err != nil || math.IsInf(bound, 0) || !row.takes(s) {
			continue
		}
		sums[bound*row.factor()] += s.Value
	}
	var all []Bucket
	for bound, n := range sums {
		all = append(all, Bucket{bound, n})
	}
	slices.SortFunc(all, func(a, b Bucket) int { return cmp.Compare(a.MostMs, b.MostMs) })
	return all
}

// reasons counts requests by the reason for which they ended.
func (p metricsPage) reasons(v *ServerValues, row naming) {
	for _, name := range row.names {
		if len(p[name]) == 0 {
			continue
		}
		v.Finished = map[string]float64{}
		good, bad := 0.0, 0.0
		for _, s := range p[name] {
			reason := s.Labels[row.by]
			v.Finished[reason] += s.Value
			if slices.Contains(row.bad, reason) {
				bad += s.Value
			} else {
				good += s.Value
			}
		}
		v.Values[Requests], v.Values[Failures] = good, bad
		return
	}
}

// takes reports whether a series is one that the row means.
func (n naming) takes(s Series) bool {
	return n.only[0] == "" || s.Labels[n.only[0]] == n.only[1]
}

func (n naming) factor() float64 {
	if n.scale == 0 {
		return 1
	}
	return n.scale
}

// folded makes one value of those of all engines. A value that is no number is none.
func (n naming) folded(all []Series) (v float64, ok bool) {
	k := 0.0
	for _, s := range all {
		if !n.takes(s) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		if k++; n.fold == most {
			v = max(v, s.Value)
		} else {
			v += s.Value
		}
	}
	if n.fold == mean {
		v /= max(k, 1)
	}
	return v * n.factor(), k > 0
}
