package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
	for _, endpoint := range []string{"openai-chat", "openai-completions"} {
		for _, stream := range []string{"true", "false"} {
			t.Run(endpoint+" stream="+stream, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				before := serverTokens(t, url)
				code := execute(t.Context(), []string{"run", url, "--model", model, "--endpoint", endpoint, "--stream=" + stream,
					"--rate", "20", "--requests", "60", "--input-tokens", "32", "--output-tokens", "16", "--ignore-eos",
					"--out", dir, "--quiet"}, io.Discard, t.Output())
				if code != exitDone {
					t.Fatalf("exit code %d, want %d", code, exitDone)
				}
				ours := recordedTokens(t, dir)
				if served := serverTokens(t, url) - before; ours != served || ours == 0 {
					t.Errorf("output tokens: %d by the records, %d by the server's metrics, want the same and more than 0", ours, served)
				}
			})
		}
	}
}

// recordedTokens sums the output tokens of a run up. A few requests may be lost to connections that the server does not keep.
func recordedTokens(t *testing.T, dir string) (sum int) {
	t.Helper()
	lost := 0
	_, err := record.ReadLog(dir, func(x *record.Exchange) error {
		sum += x.Usage.Output
		if x.Outcome != record.Completed && x.Outcome != record.Empty {
			lost++
			t.Logf("request %d: %v: %s", x.Index, x.Outcome, x.Error)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lost > 6 {
		t.Errorf("%d of 60 requests did not complete", lost)
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
