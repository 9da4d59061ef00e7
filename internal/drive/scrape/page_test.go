package scrape

import (
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"tare/internal/record"
)

func page(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEveryDialectIsPutIntoOurWords(t *testing.T) {
	for name, want := range map[string]map[record.Quantity]float64{
		"vllm": {"running": 7, "waiting": 2, "kv_usage": 0.5, "prefix_queries": 1500, "prefix_hits": 160, "preemptions": 2, "prompt_tokens": 1280, "output_tokens": 320,
			"requests": 10, "failures": 1, "ttft_sum_ms": 1500, "ttft_count": 10, "queue_sum_ms": 125, "queue_count": 10, "process_start_s": 1.78803e9},
		"sglang": {"running": 5, "waiting": 1, "kv_usage": 0.28, "prompt_tokens": 4096, "prefix_queries": 4096, "prefix_hits": 1024, "output_tokens": 512, "requests": 16,
			"preemptions": 3, "ttft_sum_ms": 2500, "ttft_count": 16, "prefill_sum_ms": 750, "prefill_count": 16},
		"tgi":      {"running": 2, "waiting": 0, "requests": 20, "failures": 1, "prompt_tokens": 1280, "output_tokens": 640, "queue_sum_ms": 40, "queue_count": 20},
		"llamacpp": {"running": 1, "waiting": 0, "computed_prompt_tokens": 5513, "output_tokens": 1504, "prefill_sum_ms": 145.5, "decode_sum_ms": 1930},
		"triton": {"running": 7, "waiting": 1, "kv_usage": 0.4, "requests": 8, "failures": 3, "e2e_sum_ms": 4000, "e2e_count": 8, "queue_sum_ms": 16, "queue_count": 8,
			"inference_count": 8, "ttft_sum_ms": 640, "ttft_count": 8, "gpu_utilization": 0.5},
		"trtllm":      {"requests": 9, "failures": 1, "tpot_sum_ms": 90, "tpot_count": 9},
		"nim":         {"running": 2, "kv_usage": 0.1, "requests": 7, "failures": 0},
		"dcgm":        {"gpu_utilization": 0.7, "gpu_memory_bytes": 2 << 30, "gpu_temperature_c": 72, "gpu_energy_j": 5, "gpu_throttled_us": 320},
		"amd":         {"gpu_utilization": 0.8, "gpu_memory_bytes": 2 << 30, "gpu_power_w": 450},
		"openmetrics": {"prompt_tokens": 1280, "e2e_sum_ms": 2500, "e2e_count": 10},
	} {
		series, err := new(reader).parse(http.Header{}, page(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		dialect := name
		if name == "openmetrics" {
			dialect = "vllm"
		}
		got, ok := record.Translate(series, false)
		if !ok || got.Dialect != dialect || !maps.EqualFunc(got.Values, want, near) {
			t.Errorf("%s: got %s %v, want %v", name, got.Dialect, got.Values, want)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestReasonsBucketsAndSettingsAreKept(t *testing.T) {
	series, err := new(reader).parse(http.Header{}, page(t, "vllm"))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := record.Translate(series, true)
	if want := map[string]float64{"stop": 6, "length": 4, "abort": 1}; !maps.Equal(got.Finished, want) {
		t.Errorf("reasons: got %v, want %v", got.Finished, want)
	}
	if got := record.SettingsOn(series); got["cache_config_info.block_size"] != "16" || len(got) != 4 {
		t.Errorf("settings: got %v, want the four labels", got)
	}
	b := got.Buckets[record.ServerTTFT]
	if len(b) != 2 || b[0] != (record.Bucket{MostMs: 1}) || b[1] != (record.Bucket{MostMs: 250, N: 7}) {
		t.Errorf("buckets: got %v, want 0 within 1 ms and 7 within 250 ms", b)
	}
}

func TestPagesThatAreNotWholeAreRefused(t *testing.T) {
	whole := string(page(t, "openmetrics"))
	om := http.Header{"Content-Type": {"application/openmetrics-text; version=1.0.0; charset=utf-8"}}
	for name, c := range map[string]struct {
		header http.Header
		text   string
		want   string
	}{
		"OpenMetrics cut off": {om, whole[:strings.Index(whole, "# EOF")], "EOF"},
		"and within a line":   {om, whole[:strings.Index(whole, "_count")], "EOF"},
		"no number":           {nil, "vllm:num_requests_running{engine=\"0\"} many\n", "expected float"},
		"line cut off":        {nil, "vllm:num_requests_running{engine=\"0\n", "not readable as metrics"},
		"twice":               {nil, "# TYPE vllm:num_requests_running gauge\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n", "TYPE"},
	} {
		if _, err := new(reader).parse(c.header, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a fault with %q", name, err, c.want)
		}
	}
}

// A server's page has faults of others in it: an exporter of an application's own, a line that is broken.
func TestLinesOfOtherNamesAreNotEvenRead(t *testing.T) {
	text := "# TYPE mine gauge\nmine{x=\"\n<html>\n" + string(page(t, "llamacpp"))
	series, err := new(reader).parse(http.Header{}, []byte(text))
	if got, ok := record.Translate(series, false); err != nil || !ok || got.Values[record.OutputTokens] != 1504 {
		t.Errorf("got %v, %v, want the numbers of the server", got, err)
	}
	for _, text := range []string{"", "<!DOCTYPE html><title>Sign in</title>", "# TYPE up gauge\nup 1\n"} {
		series, err := new(reader).parse(http.Header{}, []byte(text))
		if got, ok := record.Translate(series, false); ok || err != nil {
			t.Errorf("%q: got %v, %v, want nothing known", text, got, err)
		}
	}
}

func TestLinesOfOpenMetricsAreMadePlain(t *testing.T) {
	for line, want := range map[string]string{
		`a_total{b="1"} 2.5 1788030012.5`:                           `a_total{b="1"} 2.5`,
		`a_bucket{le="1",b="} # \" x"} 8 # {trace_id="0a"} 0.2 1.5`: `a_bucket{le="1",b="} # \" x"} 8`,
		`a 7`: `a 7`, `a 7 1.5`: `a 7`, `a{b="open`: `a{b="open`, `a`: `a`, ``: ``, `{`: `{`,
		`# TYPE a histogram`: `# TYPE a histogram`, `# TYPE a unknown`: ``, `# TYPE a counter`: ``, `# TYPE a`: ``,
	} {
		if got := string(plain([]byte(line))); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte("# TYPE vllm:e2e_request_latency_seconds histogram\nvllm:e2e_request_latency_seconds_bucket{le=\"1\"} 8\nvllm:e2e_request_latency_seconds_count 8\n"), false)
	f.Add([]byte("tgi_queue_size 2 1788030012000\ntgi_request_queue_duration{quantile=\"0.5\"} 0.1\n"), false)
	f.Add([]byte("vllm:prompt_tokens_total{a=\"b\"} 8.0 1.5 # {t=\"0a\"} 1 2\n# EOF\n"), true)
	f.Fuzz(func(t *testing.T, body []byte, open bool) {
		header := http.Header{}
		if open {
			header.Set("Content-Type", "application/openmetrics-text")
		}
		series, err := new(reader).parse(header, body)
		if err == nil {
			record.Translate(series, true)
		}
	})
}
