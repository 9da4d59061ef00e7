package report_test

import (
	"strings"
	"testing"

	"tare/internal/judge"
)

func TestServersStandNextToTheRecords(t *testing.T) {
	n := judge.Some
	s := summarize(t, manifest(), exchanges())
	s.Server = &judge.ServerSide{
		Sources: []judge.Source{{URL: "http://a/metrics", Dialect: "vllm", Looks: 9}, {URL: "http://b/metrics", Looks: 9, Failed: 9, Reason: "status 404"}},
		Run: judge.BothSides{
			Name: "run", Requests: judge.Count{Server: n(12), Least: n(10), Most: n(12)}, Output: judge.Count{Server: n(480), Least: n(400)},
			TTFT: judge.Means{Client: n(20), Server: n(18), Difference: n(2)}, Queue: n(3),
			InFlight: judge.InFlight{Client: n(4.5), Running: n(3), Waiting: n(1.5)}, KVUsage: judge.Gauge{Mean: n(0.25), Max: n(0.5)}, CacheHits: n(0.125), Preemptions: n(2),
			PerToken: judge.PerToken{Client: n(10), Queue: n(1), Prefill: n(2), Decode: n(6.5), Outside: n(0.5)},
		},
		Total: &judge.BothSides{Name: "measured", Reason: "no look at this edge"},
	}
	got := strings.Join(strings.Fields(string(text(t, s))), " ")
	for _, want := range []string{
		"server http://a/metrics (vllm); http://b/metrics: 9 of 9 looks brought nothing: status 404",
		"run: 12 requests there, 10 to 12 here · 480 output tokens there, 400 or more here",
		"mean TTFT 18.0ms there, 20.0ms here · queue 3.00ms",
		"measured: nothing to compare: no look at this edge",
		"run: per output token 10.0ms: queue 1.00ms + prefill 2.00ms + decode 6.50ms + outside of the server 500µs",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the report:\n%s", want, text(t, s))
		}
	}
	s.Server.Total = nil
	s.Server.Run.PerToken.Queue, s.Server.Run.PerToken.Outside = judge.Number{}, judge.Number{}
	got = strings.Join(strings.Fields(string(text(t, s))), " ")
	for _, want := range []string{
		"run: in flight 3.00 running and 1.50 waiting there, 4.50 here · KV use 25.0 %, at most 50.0 % · prefix hits 12.5 % · preemptions 2",
		"run: per output token 10.0ms: prefill 2.00ms + decode 6.50ms of it",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the report:\n%s", want, text(t, s))
		}
	}
}
