package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// reported reads the quantiles of TTFT from a tool's own result file. A number that is not there is an error.
func reported(tool string, text []byte) (times, error) {
	if tool == "tare" {
		return listed(text)
	}
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

// listed are the quantiles of a list of requests by tare, one JSON object each. Those of its summary are good to a part in
// 500 only, which at 50 ms is more than it adds.
func listed(text []byte) (times, error) {
	var ms []float64
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var row struct {
			Sent  *float64 `json:"sent_ms"`
			First *float64 `json:"first_token_ms"`
		}
		err := d.Decode(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return times{}, fmt.Errorf("read requests of tare: %w", err)
		}
		if row.Sent != nil && row.First != nil {
			ms = append(ms, *row.First-*row.Sent)
		}
	}
	if len(ms) == 0 {
		return times{}, errors.New("no request of tare has a first token")
	}
	return quantiles(ms), nil
}
