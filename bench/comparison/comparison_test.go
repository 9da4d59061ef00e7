package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryToolsOwnQuantilesAreReadInMilliseconds(t *testing.T) {
	for tool, text := range map[string]string{
		"tare":           `{"sent_ms":1,"first_token_ms":51.5}` + "\n" + `{"sent_ms":null,"first_token_ms":null}` + "\n" + `{"sent_ms":100,"first_token_ms":160.25}`,
		"vllm":           `{"median_ttft_ms":50.5,"p99_ttft_ms":60.25}`,
		"guidellm":       `{"benchmarks":[{"metrics":{"time_to_first_token_ms":{"successful":{"percentiles":{"p50":50.5,"p99":60.25}}}}}]}`,
		"inference-perf": `{"successes":{"latency":{"time_to_first_token":{"median":0.0505,"p99":0.06025}}}}`,
		"aiperf":         `{"time_to_first_token":{"p50":50.5,"p99":60.25}}`,
		"k6":             `{"metrics":{"http_req_waiting":{"med":50.5,"p(99)":60.25}}}`,
	} {
		got, err := reported(tool, []byte(text))
		if want := (times{P50: 50.5, P99: 60.25}); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", tool, got, err, want)
		}
	}
}

func TestAResultWithoutTheNumberIsAnError(t *testing.T) {
	for tool, text := range map[string]string{"vllm": `{}`, "guidellm": `{"benchmarks":[]}`, "k6": `[1]`, "ab": `{}`, "tare": `{`} {
		if got, err := reported(tool, []byte(text)); err == nil {
			t.Errorf("%s: got %v and no error, want one", tool, got)
		}
	}
}

func TestTruthIsCountedAsTheServerSawIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "truth.jsonl")
	text := `{"stream":true,"recv_ns":1000000000,"first_send_ns":1050000000}
{"stream":false,"recv_ns":1,"first_send_ns":2}
{"stream":true,"recv_ns":2000000000,"first_send_ns":2070000000}
{"stream":true,"recv_ns":1500000000,"first_send_ns":1560000000}
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readServed(name)
	if got, want := s.ttft(), (times{P50: 60, P99: 70}); err != nil || s.count != 3 || s.rate() != 2 || got != want {
		t.Errorf("got %d requests at %v/s with %v, %v; want 3 at 2/s with %v", s.count, s.rate(), got, err, want)
	}
}

func TestTableHasLeastMedianAndMost(t *testing.T) {
	lines := `{"tool":"vllm","asked_per_s":100,"achieved_per_s":90,"requests":1000,"cpu_s":2,"ttft_ms":{"p50":51,"p99":60},"truth_ms":{"p50":50,"p99":50}}
{"tool":"vllm","asked_per_s":100,"achieved_per_s":99,"requests":1000,"cpu_s":1,"ttft_ms":{"p50":52,"p99":70},"truth_ms":{"p50":50,"p99":50}}
{"tool":"vllm","asked_per_s":100,"achieved_per_s":95,"requests":1000,"cpu_s":3,"ttft_ms":{"p50":54,"p99":90},"truth_ms":{"p50":50,"p99":50}}
{"tool":"aiperf","asked_per_s":100,"fault":"exit status 1"}
`
	var out strings.Builder
	if err := printTable(strings.NewReader(lines), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 100 | vllm | 3 | 90 / 95 / 99 | 1 / 2 / 4 | 10 / 20 / 40 | 1 / 2 / 3 |",
		"| 100 | aiperf | 0 | failed: exit status 1 | | | |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant a row %s", out.String(), want)
		}
	}
}
