package record

// Quantity names one of the numbers that servers tell of themselves, whatever they call it. Its unit is in its name; without one it
// is a count.
type Quantity string

// What a server tells of the present moment.
const (
	Running     Quantity = "running"           // requests in service
	Waiting     Quantity = "waiting"           // requests that wait for service
	KVUsage     Quantity = "kv_usage"          // fraction of the cache for keys and values in use, in [0,1]
	ServerStart Quantity = "process_start_s"   // Unix time at which its process began
	GPUUsage    Quantity = "gpu_utilization"   // fraction of the time that the processors were busy, in [0,1], mean of all
	GPUMemory   Quantity = "gpu_memory_bytes"  // in use, all together
	GPUPower    Quantity = "gpu_power_w"       // all together
	GPUHeat     Quantity = "gpu_temperature_c" // of the hottest
)

// What a server counts from its start on.
const (
	Requests      Quantity = "requests"               // that it finished well
	Failures      Quantity = "failures"               // that it ended otherwise
	PromptTokens  Quantity = "prompt_tokens"          // cached ones included
	ComputedInput Quantity = "computed_prompt_tokens" // without those that a cache had
	OutputTokens  Quantity = "output_tokens"          // generated
	CacheQueries  Quantity = "prefix_queries"         // prompt tokens that were looked for in the prefix cache
	CacheHits     Quantity = "prefix_hits"            // of them, those found
	Preemptions   Quantity = "preemptions"            // requests that lost their place and were computed anew
	GPUEnergy     Quantity = "gpu_energy_j"           // all together
	GPUThrottled  Quantity = "gpu_throttled_us"       // time for which power or heat held the clocks down
)

// Spans of time that a server sums up over its requests. Sum and Count of each are Quantities of their own: a server may tell the
// one and not the other.
const (
	ServerTTFT    Quantity = "ttft"      // from the request's arrival to its first token
	ServerITL     Quantity = "itl"       // from token to token, or from step to step
	ServerTPOT    Quantity = "tpot"      // mean from token to token of a request
	ServerE2E     Quantity = "e2e"       // from arrival to the last token
	QueueTime     Quantity = "queue"     // from arrival to service
	PrefillTime   Quantity = "prefill"   // from service to the first token
	DecodeTime    Quantity = "decode"    // from the first token to the last
	InferenceTime Quantity = "inference" // from service to the last token
)

// ServerSpans lists the spans of time.
var ServerSpans = [...]Quantity{ServerTTFT, ServerITL, ServerTPOT, ServerE2E, QueueTime, PrefillTime, DecodeTime, InferenceTime}

// Sum is the sum of a span over all requests, in milliseconds.
func (q Quantity) Sum() Quantity { return q + "_sum_ms" }

// Count is the number of values in the sum of a span.
func (q Quantity) Count() Quantity { return q + "_count" }

// Counter reports whether q only grows while the server's process lives.
func (q Quantity) Counter() bool {
	switch q {
	case Requests, Failures, PromptTokens, ComputedInput, OutputTokens, CacheQueries, CacheHits, Preemptions, GPUEnergy, GPUThrottled:
		return true
	}
	for _, span := range ServerSpans {
		if q == span.Sum() || q == span.Count() {
			return true
		}
	}
	return false
}

// Series is one number of a metrics page, as the server names it. A histogram is several: NAME_sum, NAME_count, and NAME_bucket
// with the label le.
type Series struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// ServerValues is what one page told, in our words. What it does not tell is not there.
type ServerValues struct {
	Dialect  string                `json:"dialect"`            // whose names they were: vllm, sglang, …
	Values   map[Quantity]float64  `json:"values"`             // over all engines, replicas and models of the page
	Finished map[string]float64    `json:"finished,omitempty"` // requests by the reason for which they ended, in the server's words
	Buckets  map[Quantity][]Bucket `json:"buckets,omitempty"`  // of spans, by rising bound; at the edges of stages only
}

// Bucket is how many values of a span were no longer than a bound. Those beyond the last bound are in the span's count alone.
type Bucket struct {
	MostMs float64 `json:"most_ms"`
	N      float64 `json:"n"`
}
