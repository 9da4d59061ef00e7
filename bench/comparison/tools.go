package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// reported reads the quantiles of TTFT from a tool's own result file. A number that is not there is an error.
func reported(tool string, text []byte) (times, error) {
	r, ok := results[tool]
	if !ok {
		return times{}, fmt.Errorf("no way is known to read a result of %q", tool)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return times{}, fmt.Errorf("read result of %s: %w", tool, err)
	}
	p50, err := number(tree, r.path, r.p50)
	if err != nil {
		return times{}, err
	}
	p99, err := number(tree, r.path, r.p99)
	return times{P50: p50 * r.milliseconds, P99: p99 * r.milliseconds}, err
}

// result is where a tool's file has its quantiles of TTFT.
type result struct {
	path         []any // keys and indexes
	p50, p99     string
	milliseconds float64 // in its unit
}

// Of k6 this is the time to the first byte of the reply, since it knows no tokens.
var results = map[string]result{
	"tare":           {[]any{"total", "metrics", "ttft_ms"}, "p50", "p99", 1},
	"vllm":           {nil, "median_ttft_ms", "p99_ttft_ms", 1},
	"guidellm":       {[]any{"benchmarks", 0, "metrics", "time_to_first_token_ms", "successful", "percentiles"}, "p50", "p99", 1},
	"inference-perf": {[]any{"successes", "latency", "time_to_first_token"}, "median", "p99", 1000},
	"aiperf":         {[]any{"time_to_first_token"}, "p50", "p99", 1},
	"k6":             {[]any{"metrics", "http_req_waiting"}, "med", "p(99)", 1},
}

func number(tree any, path []any, last string) (float64, error) {
	for _, step := range append(slices.Clone(path), last) {
		switch at := step.(type) {
		case string:
			m, _ := tree.(map[string]any)
			tree = m[at]
		case int:
			list, _ := tree.([]any)
			if at >= len(list) {
				return 0, fmt.Errorf("no %v, %s in the result", path, last)
			}
			tree = list[at]
		}
	}
	n, ok := tree.(float64)
	if !ok {
		return 0, fmt.Errorf("no %v, %s in the result", path, last)
	}
	return n, nil
}

// ttft is what the server took to the first token, by the nearest rank.
func (s *served) ttft() times {
	if len(s.waits) == 0 {
		return times{}
	}
	slices.Sort(s.waits)
	at := func(q float64) float64 {
		return float64(s.waits[int(math.Ceil(q*float64(len(s.waits))))-1]) / float64(time.Millisecond)
	}
	return times{P50: at(0.5), P99: at(0.99)}
}
