//go:build linux

package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestResultsOfEveryToolAreUnderstood(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	k6 := write("k6.json", `{"metrics":{"http_reqs":{"rate":500.0,"count":1000},"http_req_failed":{"passes":2,"fails":998,"value":0.002},
		"dropped_iterations":{"count":3,"rate":1}}}`)
	write("summary.json", `{"schema":"tare.summary/v1","total":{"planned":1000,"sent":1000,"outcomes":{"completed":998,"reset":2},
		"completed_rate_per_s":99.5,"metrics":{"slip_ms":{"n":1000,"p50":0.01,"p99":0.05,"max":0.5}}}}`)
	write("manifest.json", `{"state":{"cpu_ms":40},"loops":[{"sent":600},{"sent":400}]}`)

	tests := []struct {
		format, output, artefact string
		want                     map[string]float64
	}{
		{"tare", "", dir, map[string]float64{achieved: 99.5, failed: 2, ownCPU: 40, slipP50: 0.01, slipP99: 0.05, slipMax: 0.5}},
		{"nethttp", `{"tool":"net/http","planned":1000,"sent":990,"failed":1,"achieved_per_s":98,"cpu_us_per_request":80.5,
			"slip_ms":{"n":790,"p50":0.1,"p99":0.9,"max":2}}`, "",
			map[string]float64{achieved: 98, failed: 11, ownCPU: 80.5, slipP50: 0.1, slipP99: 0.9, slipMax: 2}},
		{"k6", "", k6, map[string]float64{achieved: 499, failed: 5}},
		{"wrk", "  102654 requests in 2.10s, 101.42MB read\n  Socket errors: connect 1, read 2, write 0, timeout 4\n" +
			"  Non-2xx or 3xx responses: 10\nRequests/sec:  48881.65\n", "",
			map[string]float64{achieved: 48881.65, failed: 17}},
		{"wrk", "Requests/sec:  48881.65\n", "", map[string]float64{achieved: 48881.65, failed: 0}},
		{"hey", "  Requests/sec:\t27262.1782\nStatus code distribution:\n  [200]\t54566 responses\n  [503]\t6 responses\n" +
			"Error distribution:\n  [4]\tPost \"http://127.0.0.1:1/\": connection refused\n", "",
			map[string]float64{achieved: 27262.1782, failed: 10}},
	}
	for _, test := range tests {
		l := Line{Values: map[string]float64{}}
		if err := l.read(test.format, []byte(test.output), test.artefact); err != nil {
			t.Errorf("%s: %v", test.format, err)
		}
		if !maps.Equal(l.Values, test.want) {
			t.Errorf("%s: got %v, want %v", test.format, l.Values, test.want)
		}
	}
}

func TestOutputWithoutARateIsAFault(t *testing.T) {
	for _, format := range []string{"wrk", "hey", "nethttp", "loadtool"} {
		l := Line{Values: map[string]float64{}}
		if err := l.read(format, []byte("unable to connect"), ""); err == nil {
			t.Errorf("%s: no error, want one", format)
		}
	}
}

func TestVegetaSlipIsTheDistanceFromAnEvenSchedule(t *testing.T) {
	late := []time.Duration{0, 0, 0, 0, 0, 0, 3 * time.Millisecond, 0, 0, 0}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var hits strings.Builder
	for i, d := range late {
		at := start.Add(time.Duration(i)*10*time.Millisecond + d)
		hits.WriteString(`{"seq":1,"code":200,"timestamp":"` + at.Format(time.RFC3339Nano) + "\"}\n")
	}
	l := Line{Asked: 100, Values: map[string]float64{}}
	if err := l.readHits(strings.NewReader(hits.String())); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{achieved: 100, failed: 0, slipP50: 0, slipP99: 3, slipMax: 3}
	if !maps.Equal(l.Values, want) {
		t.Errorf("got %v, want %v", l.Values, want)
	}
}
