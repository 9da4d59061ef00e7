package sim

import (
	"fmt"
	"strconv"
	"time"
)

// metrics are the server's own numbers, in vLLM's names. They are plain fields of the one goroutine that runs the core,
// so that a scrape sees them all at one moment.
type metrics struct {
	model           string
	promptTokens    uint64
	generatedTokens uint64
	cached          bool // there is a prefix cache
	batching        bool
	blockSize       int
	blocks          int
	startedAt       float64 // Unix seconds
	cacheQueries    uint64  // prompt tokens looked up in it
	cacheHits       uint64  // of them, found
	finished        [len(finishReasons)]uint64
	ttft            histogram
	itl             histogram
	e2e             histogram
	queued          histogram
	prefill         histogram
	decode          histogram
	inference       histogram
}

// finishReasons are the values of request_success_total's label; ended relies on their order.
var finishReasons = [...]string{"length", "stop", "abort", "error"}

// Bucket bounds in nanoseconds, as vLLM has them in seconds.
var (
	ttftBounds = bounds(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
	itlBounds  = bounds(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
	e2eBounds  = bounds(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
)

func bounds(seconds ...float64) (ns []int64) {
	for _, s := range seconds {
		ns = append(ns, int64(s*float64(time.Second)))
	}
	return ns
}

// ended counts a request that has left the server. One that was refused before service is none of vLLM's.
func (m *metrics) ended(s *stream) {
	reason := 3
	switch s.outcome {
	case "completed":
		reason = 0
	case "empty":
		reason = 1
	case "disconnected", "stalled", "shutdown", "refused":
		reason = 2
	case "http_error":
		return
	}
	m.finished[reason]++
	if reason < 2 {
		m.e2e.observe(s.end - s.recv)
	}
	if reason == 0 {
		m.prefill.observe(s.first - s.start)
		m.decode.observe(s.last - s.first)
		m.inference.observe(s.last - s.start)
	}
}

// histogram counts spans of time. Its sum is exact.
type histogram struct {
	counts [24]uint64 // by first bound that is not exceeded; those past the last bound follow it
	sum    int64      // nanoseconds
	bounds []int64
}

func (h *histogram) observe(ns int64) {
	h.sum += ns
	for i, bound := range h.bounds {
		if ns <= bound {
			h.counts[i]++
			return
		}
	}
	h.counts[len(h.bounds)]++
}

func newMetrics(cfg Config, startedAt float64) metrics {
	return metrics{
		model:  cfg.Model,
		cached: cfg.PrefixCache, batching: cfg.Batching,
		blockSize: cfg.KVBlock, blocks: cfg.KVTokens / max(cfg.KVBlock, 1), startedAt: startedAt,
		ttft:      histogram{bounds: ttftBounds},
		itl:       histogram{bounds: itlBounds},
		e2e:       histogram{bounds: e2eBounds},
		queued:    histogram{bounds: e2eBounds},
		prefill:   histogram{bounds: e2eBounds},
		decode:    histogram{bounds: e2eBounds},
		inference: histogram{bounds: e2eBounds},
	}
}

// append writes the numbers in Prometheus' text format 0.0.4.
func (m *metrics) append(b []byte, now load) []byte {
	b = m.single(b, "num_requests_running", "gauge", "Requests in service.", uint64(now.running))
	b = m.single(b, "num_requests_waiting", "gauge", "Requests that wait for service.", uint64(now.waiting))
	if m.batching {
		b = appendFamily(b, "kv_cache_usage_perc", "gauge", "Fraction of the KV memory that requests hold, 1 is all of it.")
		b = m.fraction(b, "kv_cache_usage_perc", now.kv)
		b = m.single(b, "num_preemptions_total", "counter", "Times that a request lost its KV memory.", now.preemptions)
	}
	b = m.single(b, "prompt_tokens_total", "counter", "Prompt tokens of requests that have reached their first token.", m.promptTokens)
	b = m.single(b, "generation_tokens_total", "counter", "Tokens generated.", m.generatedTokens)
	if m.cached {
		b = m.single(b, "prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.", m.cacheQueries)
		b = m.single(b, "prefix_cache_hits_total", "counter", "Prompt tokens that the prefix cache had.", m.cacheHits)
	}
	b = appendFamily(b, "request_success_total", "counter", "Requests that were in service and ended, by reason.")
	for i, reason := range finishReasons {
		b = m.sample(b, "request_success_total", "finished_reason", reason, m.finished[i])
	}
	b = m.histogram(b, "time_to_first_token_seconds", "From receipt of the request to its first token.", &m.ttft)
	b = m.histogram(b, "inter_token_latency_seconds", "Between two chunks of one reply.", &m.itl)
	b = m.histogram(b, "e2e_request_latency_seconds", "From receipt of the request to the end of its reply.", &m.e2e)
	b = m.histogram(b, "request_queue_time_seconds", "From receipt of the request to the start of its service.", &m.queued)
	b = m.histogram(b, "request_prefill_time_seconds", "From the start of service to the first token.", &m.prefill)
	b = m.histogram(b, "request_decode_time_seconds", "From the first token to the last.", &m.decode)
	b = m.histogram(b, "request_inference_time_seconds", "From the start of service to the last token.", &m.inference)
	return m.process(m.settings(b))
}

// settings tells what the KV memory is, as vLLM does: in the labels.
func (m *metrics) settings(b []byte) []byte {
	if !m.cached && !m.batching {
		return b
	}
	caching := "False"
	if m.cached {
		caching = "True"
	}
	b = appendFamily(b, "cache_config_info", "gauge", "Settings of the KV memory.")
	return fmt.Appendf(b, "vllm:cache_config_info{block_size=\"%d\",enable_prefix_caching=%q,engine=\"0\",num_gpu_blocks=\"%d\"} 1\n", m.blockSize, caching, m.blocks)
}

// process tells when the server began.
func (m *metrics) process(b []byte) []byte {
	b = append(b, "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds "...)
	b = strconv.AppendFloat(b, m.startedAt, 'f', 2, 64)
	return append(b, '\n')
}

func appendFamily(b []byte, name, kind, help string) []byte {
	b = append(b, "# HELP vllm:"...)
	b = append(b, name...)
	b = append(b, ' ')
	b = append(b, help...)
	b = append(b, "\n# TYPE vllm:"...)
	b = append(b, name...)
	b = append(b, ' ')
	b = append(b, kind...)
	return append(b, '\n')
}

func (m *metrics) single(b []byte, name, kind, help string, value uint64) []byte {
	return m.sample(appendFamily(b, name, kind, help), name, "", "", value)
}

// labels writes the name and the label set of one sample; label may be empty.
func (m *metrics) labels(b []byte, name, label, value string) []byte {
	b = append(b, "vllm:"...)
	b = append(b, name...)
	b = append(b, `{engine="0",model_name=`...)
	b = appendString(b, m.model)
	if label != "" {
		b = append(b, ',')
		b = append(b, label...)
		b = append(b, `="`...)
		b = append(b, value...)
		b = append(b, '"')
	}
	return append(b, "} "...)
}

func (m *metrics) sample(b []byte, name, label, value string, n uint64) []byte {
	b = m.labels(b, name, label, value)
	b = strconv.AppendUint(b, n, 10)
	return append(b, '\n')
}

func (m *metrics) fraction(b []byte, name string, v float64) []byte {
	b = m.labels(b, name, "", "")
	b = strconv.AppendFloat(b, v, 'g', -1, 64)
	return append(b, '\n')
}

func (m *metrics) histogram(b []byte, name, help string, h *histogram) []byte {
	b = appendFamily(b, name, "histogram", help)
	total := uint64(0)
	for i, bound := range h.bounds {
		total += h.counts[i]
		b = m.sample(b, name+"_bucket", "le", strconv.FormatFloat(float64(bound)/float64(time.Second), 'g', -1, 64), total)
	}
	total += h.counts[len(h.bounds)]
	b = m.sample(b, name+"_bucket", "le", "+Inf", total)
	b = m.fraction(b, name+"_sum", float64(h.sum)/float64(time.Second))
	return m.sample(b, name+"_count", "", "", total)
}
