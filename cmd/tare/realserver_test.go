package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/record"
)

// TestRealServersOwnCountsAgree needs a server of other people's making: TARE_REAL_SERVER is its base URL, and
// TARE_REAL_MODEL the model, "tiny" if unset. docs/real-server.md says how to build one. Nobody else may use it meanwhile.
func TestRealServersOwnCountsAgree(t *testing.T) {
	url := os.Getenv("TARE_REAL_SERVER")
	if url == "" {
		t.Skip("TARE_REAL_SERVER is not set")
	}
	model := os.Getenv("TARE_REAL_MODEL")
	if model == "" {
		model = "tiny"
	}
	ids := []string{"--text", "ids", "--tokenizer", keep(t, letters())}
	template := []string{"-f", keep(t, completionTemplate)}
	open := []string{"--rate", "20", "--requests", "60"}
	closed := []string{"--concurrency", "8", "--requests", "200"}
	for _, c := range []struct {
		endpoint string
		args     []string
		exact    bool // the server is to count as many prompt tokens as were planned
	}{
		{"openai-chat", open, false},
		{"openai-chat", slices.Concat(open, []string{"--stream=false"}), false},
		{"openai-completions", open, false},
		{"openai-completions", slices.Concat(open, []string{"--stream=false"}), false},
		{"openai-completions", slices.Concat(open, ids), true},
		{"openai-responses", open, false},
		{"anthropic-messages", open, false},
		{"llamacpp", slices.Concat(open, ids), true},
		{"llamacpp", slices.Concat(open, ids, []string{"--stream=false"}), true},
		{"template", slices.Concat(open, ids, template), true},
		{"openai-chat", slices.Concat(closed, []string{"--engine", "epoll"}), false},
		{"openai-chat", slices.Concat(closed, []string{"--engine", "goroutine"}), false},
	} {
		t.Run(c.endpoint+" "+strings.Join(c.args, " "), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			before := serverTokens(t, url)
			code := execute(t.Context(), slices.Concat([]string{"run", url, "--model", model, "--endpoint", c.endpoint, "--input-tokens", "32",
				"--output-tokens", "16", "--ignore-eos", "--out", dir, "--quiet"}, c.args), io.Discard, t.Output())
			if code != exitDone {
				t.Fatalf("exit code %d, want %d", code, exitDone)
			}
			ours := recordedTokens(t, dir, c.exact)
			if served := serverTokens(t, url) - before; ours != served || ours == 0 {
				t.Errorf("output tokens: %d by the records, %d by the server's metrics, want the same and more than 0", ours, served)
			}
		})
	}
}

// letters is a tokenizer of one token for each letter: ids that any model has.
func letters() string {
	var entries []string
	for c := 'a'; c <= 'z'; c++ {
		entries = append(entries, fmt.Sprintf("%q: %d", string(c), c-'a'+1))
	}
	return `{"version": "1.0", "model": {"type": "BPE", "vocab": {` + strings.Join(entries, ", ") + `}, "merges": []}}`
}

// completionTemplate describes llama.cpp's own endpoint.
const completionTemplate = `
target:
  template:
    path: /completion
    body: '{"prompt": {{prompt_ids}}, "n_predict": {{max_tokens}}, "stream": {{stream}}, "ignore_eos": {{ignore_eos}}}'
    text: /content
    finish: /stop_type
    usage_input: /tokens_evaluated
    usage_output: /tokens_predicted
`

// recordedTokens sums the output tokens of a run up, of which no request may be lost. With exact the server is to have
// counted the prompt tokens that were planned.
func recordedTokens(t *testing.T, dir string, exact bool) (sum int) {
	t.Helper()
	_, err := record.ReadLog(dir, func(x *record.Exchange) error {
		sum += x.Usage.Output
		if x.Outcome != record.Completed && x.Outcome != record.Empty {
			t.Errorf("request %d: %v: %s", x.Index, x.Outcome, x.Error)
		}
		if exact && x.Usage.Input != x.PlannedIn {
			t.Errorf("request %d: the server counted %d prompt tokens, %d were planned", x.Index, x.Usage.Input, x.PlannedIn)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// serverTokens reads the server's own count of generated tokens from its Prometheus metrics.
func serverTokens(t *testing.T, url string) int {
	t.Helper()
	r, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	total, found := 0.0, false
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if name != "llamacpp:tokens_predicted_total" && name != "vllm:generation_tokens_total" {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			t.Fatal(err)
		}
		total, found = total+n, true
	}
	if !found {
		t.Fatalf("%s/metrics has no count of generated tokens that is known here", url)
	}
	return int(total)
}
