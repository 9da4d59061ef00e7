package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/internal/plan"
)

// draft reads text as spec.yaml.
func draft(text string) *plan.Draft {
	d := new(plan.Draft)
	d.Read("spec.yaml", []byte(text))
	return d
}

// faultsOf returns what is wrong with a draft, one line each, without hints.
func faultsOf(t *testing.T, d *plan.Draft) []string {
	t.Helper()
	_, err := d.Spec()
	if err == nil {
		return nil
	}
	faults, ok := errors.AsType[plan.Faults](err)
	if !ok {
		t.Fatalf("error: got %T, want plan.Faults", err)
	}
	var lines []string
	for _, f := range faults {
		line, _, _ := strings.Cut(f.Error(), "\n")
		lines = append(lines, line)
	}
	return lines
}

func wantLines(t *testing.T, name string, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", name, g, w)
	}
}

const enough = "load:\n  rate: 10\n  duration: 30s\n"

func TestEveryFaultIsReportedAtOnceWithItsLine(t *testing.T) {
	d := draft(`target:
  url: localhost:8000
  timeout: 30
load:
  rate: -3
  arival: gamma
  duration: 30s
  rate: 4
workload:
  input_tokens: many
`)
	wantLines(t, "faults", faultsOf(t, d),
		`spec.yaml:2: target.url: must begin with http://, https:// or unix://, got "localhost:8000"`,
		`spec.yaml:3: target.timeout: must be a duration like 30s or 1m30s, got "30"`,
		`spec.yaml:5: load.rate: must be above 0 requests/s, got -3`,
		`spec.yaml:6: load.arival: is not a key`,
		`spec.yaml:8: load.rate: is given twice, first on line 5`,
		`spec.yaml:10: workload.input_tokens: must be a whole number or a distribution, got "many"`,
	)
	_, err := d.Spec()
	for _, hint := range []string{"\nhint: did you mean load.arrival?", "\nhint: for a closed loop leave rate out and set concurrency"} {
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("want %q in:\n%v", hint, err)
		}
	}
}

func TestFaultsNameKeyValueAndReason(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "spec.yaml: load: needs a rate or a concurrency|spec.yaml: load: needs a duration or a number of requests"},
		{"load:\n  rate: 1\n", "spec.yaml:1: load: needs a duration or a number of requests"},
		{"load: {stages: [{rate: 1, start_rate: 4, requests: 9}]}", "spec.yaml:1: load.stages[0].start_rate: goes with concurrency only"},
		{"load: {rate: 1, concurrency: 4, requests: 9}", "spec.yaml:1: load.concurrency: does not go with rate"},
		{"load:\n  requests: 5\n  rate: 0\n", "spec.yaml:3: load.rate: must be above 0 requests/s, got 0"},
		{"load:\n  requests: 5\n  rate: 1e-9\n", "spec.yaml:3: load.rate: must be at least 0.000001 requests/s, got 1e-09"},
		{"load:\n  requests: 5\n  rate: .inf\n", `spec.yaml:3: load.rate: must be a number, got ".inf"`},
		{"load:\n  requests: 5\n  rate: [1]\n", "spec.yaml:3: load.rate: must be a single value, got a list"},
		{"load:\n  requests: 5\n  rate:\n", "spec.yaml:3: load.rate: has no value"},
		{"load:\n  requests: 1.5\n  rate: 1\n", `spec.yaml:2: load.requests: must be a whole number, got "1.5"`},
		{"load:\n  rate: 1e6\n  duration: 700h\n", "spec.yaml:3: load.duration: would make 2.52e+12 requests, at most 4294967295 are possible"},
		{"load:\n  rate: 0.001\n  requests: 1000000\n", "spec.yaml:3: load.requests: would take 11574 days, at most 30 are possible"},
		{"rate: 1\n" + enough, "spec.yaml:1: rate: is not a key"},
		{"loud:\n  rate: 1\n" + enough, "spec.yaml:1: loud: is not a key"},
		{"- 1\n", "spec.yaml:1: the file must have keys and values, got a list"},
		{"load: 3\n", "spec.yaml:1: load: the section must have keys and values, got the number 3"},
		{enough + "  burstiness: 2\n", "spec.yaml:4: load.burstiness: goes with load.arrival gamma or weibull only, which is poisson"},
		{enough + "  arrival: pareto\n", `spec.yaml:4: load.arrival: must be constant, poisson, gamma, weibull, mmpp, clients or trace, got "pareto"`},
		{enough + "  arrival: weibull\n  burstiness: 0.1\n", "spec.yaml:5: load.burstiness: must be at least 0.2 for weibull, got 0.1"},
		{enough + "  arrival: mmpp\n", "spec.yaml:1: load: needs states"},
		{enough + "  arrival: clients\n", "spec.yaml:1: load: needs clients"},
		{enough + "  states: 1:1s 2:1s\n  clients: 1:poisson\n", "spec.yaml:4: load.states: goes with load.arrival mmpp only, which is poisson|spec.yaml:5: load.clients: goes with load.arrival clients only, which is poisson"},
		{enough + "  arrival: mmpp\n  states: 1:1s\n", "spec.yaml:5: load.states: must have 2 to 64 states, got 1"},
		{enough + "  arrival: mmpp\n  states: 0:1s 0:2s\n", "spec.yaml:5: load.states: must have a state whose weight is above 0"},
		{enough + "  arrival: mmpp\n  states: 1:1s 2\n", `spec.yaml:5: load.states: has a state that cannot be read: "2"`},
		{enough + "  arrival: mmpp\n  states: 1:1s -2:1s\n", `spec.yaml:5: load.states: must have weights within 0 and 1000000, got "-2:1s"`},
		{enough + "  arrival: mmpp\n  states: 1:1s 2:0s\n", `spec.yaml:5: load.states: must have sojourns above 0s and of 720h0m0s at most, got "2:0s"`},
		{enough + "  arrival: mmpp\n  states: 1:1s 2:10us\n", "spec.yaml:5: load.states: must have sojourns in which 0.001 requests or more are expected, got 10µs at 10 requests/s"},
		{enough + "  arrival: clients\n  clients: 1:mmpp\n", `spec.yaml:5: load.clients: must have clients of constant, poisson, gamma or weibull arrivals, got "1:mmpp"`},
		{enough + "  arrival: clients\n  clients: 1:gamma\n", `spec.yaml:5: load.clients: must have a shape for gamma and weibull, and none for others, got "1:gamma"`},
		{enough + "  arrival: clients\n  clients: 1:weibull:0.1\n", `spec.yaml:5: load.clients: must have weibull shapes within 0.2 and 100, got "1:weibull:0.1"`},
		{enough + "  arrival: clients\n  clients: 1:poisson*0\n", `spec.yaml:5: load.clients: must have a whole number of 1 or more behind *, got "1:poisson*0"`},
		{enough + "  arrival: clients\n  clients: 1:poisson*9999 1:poisson*2\n", "spec.yaml:5: load.clients: must have 10000 clients at most"},
		{enough + "  arrival: clients\n  clients: 0:poisson\n", `spec.yaml:5: load.clients: must have shares within 0.000001 and 1000000, got "0:poisson"`},
		{enough + "  think_time: 1s\n", "spec.yaml:4: load.think_time: goes with concurrency only"},
		{"load: {concurrency: 2, requests: 5, think_process: constant}", "spec.yaml:1: load.think_process: needs a think_time"},
		{"load: {concurrency: 2, requests: 5, think_time: 1s, think_process: gamma}", `spec.yaml:1: load.think_process: must be constant or exponential, got "gamma"`},
		{
			"load:\n  stages:\n    - {rate: 1, duration: 1m, rate_to: 2, period: 1s, spike_at: 2m}\n    - {rate: 1, duration: 1m, phase: 0.1, burstiness: 2}\n" +
				"    - {rate: 1, duration: 1m, spike_rate: 9, spike_width: 1s, spike_at: 1m, amplitude: 0.5, period: 1s}\n" +
				"    - {concurrency: 1, duration: 1m, arrival: gamma, amplitude: 1}\n    - {rate: 1, duration: 1m, arrival: mmpp, states: 1:1s 2:2s, rate_to: 5, think_time: 1s}\n",
			"spec.yaml:3: load.stages[0]: needs both amplitude and period for a wave|spec.yaml:3: load.stages[0].period: does not go with rate_to|" +
				"spec.yaml:3: load.stages[0].spike_at: needs spike_rate and spike_width|" +
				"spec.yaml:4: load.stages[1].phase: needs amplitude and period|spec.yaml:4: load.stages[1].burstiness: goes with arrival gamma or weibull only, which is poisson|" +
				"spec.yaml:5: load.stages[2].spike_width: does not go with a wave|spec.yaml:5: load.stages[2].spike_at: must be before the stage ends, at 1m0s, got 1m0s|" +
				"spec.yaml:6: load.stages[3].arrival: goes with rate only|spec.yaml:6: load.stages[3].amplitude: goes with rate only|" +
				"spec.yaml:7: load.stages[4].rate_to: does not go with arrival mmpp|spec.yaml:7: load.stages[4].think_time: goes with concurrency only",
		},
		{enough + "  warmup: -1s\n", "spec.yaml:4: load.warmup: must be at least 0s, got -1s"},
		{enough + "target:\n  stream: yes\n", `spec.yaml:5: target.stream: must be true or false, got "yes"`},
		{enough + "target:\n  model: 7\n", "spec.yaml:5: target.model: must be text, got the number 7"},
		{enough + "target:\n  model: \"a\\nb\"\n", "spec.yaml:5: target.model: must not have control characters"},
		{enough + "target:\n  headers:\n    A B: c\n", `spec.yaml:6: target.headers.A B: "A B" is not a header name`},
		{enough + "target:\n  headers:\n    K: \"a\\r\\nb\"\n", "spec.yaml:6: target.headers.K: the value of K must not have line breaks or other control characters"},
		{enough + "target:\n  headers:\n    host: x\n", "spec.yaml:6: target.headers.host: host is set by the client itself"},
		{enough + "target:\n  session_header: x-request-id\n", "spec.yaml:5: target.session_header: x-request-id is set by the client itself"},
		{enough + "target:\n  session_header: X-A\n  headers:\n    x-a: x\n", "spec.yaml:5: target.session_header: X-A is one of target.headers already"},
		{enough + "target:\n  headers:\n    Authorization: '***'\n", "spec.yaml:6: target.headers.Authorization: the value of Authorization is masked"},
		{enough + "target:\n  url: ftp://x\n", `spec.yaml:5: target.url: must begin with http://, https:// or unix://, got "ftp://x"`},
		{enough + "target:\n  url: http://\n", `spec.yaml:5: target.url: names no host: "http://"`},
		{enough + "target:\n  url: http://x/v1/completions\n", "spec.yaml:5: target.url: is the path of endpoint openai-completions, but target.endpoint is openai-chat"},
		{enough + "  stages: []\n", "spec.yaml:2: load.rate: does not go with load.stages|spec.yaml:3: load.duration: does not go with load.stages|spec.yaml:4: load.stages: must have 1 to 1000 stages, got 0"},
		{
			"load:\n  stages:\n    - rate: 1\n      rate_to: -2\n      duration: 1s\n    - concurrency: 2\n      max_in_flight: 3\n      speed: 1\n",
			"spec.yaml:4: load.stages[0].rate_to: must be above 0 requests/s, got -2|spec.yaml:6: load.stages[1]: needs a duration or a number of requests|spec.yaml:7: load.stages[1].max_in_flight: goes with rate only|spec.yaml:8: load.stages[1].speed: is not a key",
		},
		{"load:\n  stages:\n    - {name: a, rate: 1, requests: 1}\n    - {name: a, rate: 1, requests: 1}\n", `spec.yaml:4: load.stages[1].name: is the name of another stage too: "a"`},
		{"load:\n  warmup: 1s\n  stages:\n    - {name: warmup, rate: 1, requests: 1}\n", `spec.yaml:4: load.stages[0].name: is the name of another stage too: "warmup"`},
		{enough + "target:\n  url: http://h:99999\n", `spec.yaml:5: target.url: must have a port of 1 to 65535, got "http://h:99999"`},
		{enough + "target:\n  headers:\n    X-A: b\n    x-a: c\n", "spec.yaml:7: target.headers.x-a: x-a is given twice, first as X-A on line 6"},
		{enough + "  arrival: gama\n  burstiness: 2\n", `spec.yaml:4: load.arrival: must be constant, poisson, gamma, weibull, mmpp, clients or trace, got "gama"`},
		{"load:\n  stages:\n    - {rte: 5, duration: 1s}\n", "spec.yaml:3: load.stages[0].rte: is not a key"},
		{"load:\n  rate: 1e300\n  duration: 1s\n", "spec.yaml:2: load.rate: must be at most 10000000 requests/s, got 1e+300"},
		{"load:\n  rate: 1" + strings.Repeat("0", 320) + "\n  duration: 1s\n", `spec.yaml:2: load.rate: must be a number, got "1` + strings.Repeat("0", 39) + `…"`},
		{enough + "client: 5\n", "spec.yaml:4: client: the section must have keys and values, got the number 5"},
		{enough + "client: {procs: 4, loops: 3}\n", "spec.yaml:4: client.procs: must be above client.loops + 1, which is 4, got 4"},
		{enough + "client: {procs: 1}\n", "spec.yaml:4: client.procs: must be above client.loops + 1, which is 2, got 1"},
		{enough + "---\n" + enough, "spec.yaml:5: has more than one document"},
	} {
		wantLines(t, tc.text, faultsOf(t, draft(tc.text)), strings.Split(tc.want, "|")...)
	}
}

func TestBrokenYAMLNamesItsLine(t *testing.T) {
	for _, text := range []string{"load:\n  rate: 'x\n", "load:\n  rate: [1\n", "a: b: c\n"} {
		got := faultsOf(t, draft(text))
		if len(got) == 0 || !strings.HasPrefix(got[0], "spec.yaml:") || !strings.Contains(got[0], "is not YAML") {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestFlagsOverrideKeysAndAreNamedInFaults(t *testing.T) {
	d := draft("target:\n  model: a\n  headers:\n    X-One: file\n    X-Two: file\n" + enough)
	d.Set("target.model", "b", "--model")
	d.Set("load.rate", "100", "--rate")
	d.Set("target.headers", "x-one: flag", "--header")
	s, err := d.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if s.Target.Model != "b" || s.Load.Rate != 100 || s.Load.Duration != 30*time.Second {
		t.Errorf("got model %q, rate %v, duration %v, want b, 100, 30s", s.Target.Model, s.Load.Rate, s.Load.Duration)
	}
	if want := map[string]string{"x-one": "flag", "X-Two": "file"}; !reflect.DeepEqual(s.Target.Headers, want) {
		t.Errorf("headers: got %v, want %v", s.Target.Headers, want)
	}
	d = draft("load:\n  arrival: x\n  duration: 1s\n")
	d.Set("load.rate", "-1", "--rate")
	d.Set("out", "a\nb", "--out")
	d.Set("target.headers", "secret", "--header")
	d.Set("load.duration", "10", "--duration")
	wantLines(t, "faults", faultsOf(t, d),
		`spec.yaml:2: load.arrival: must be constant, poisson, gamma, weibull, mmpp, clients or trace, got "x"`,
		"--header: has no colon",
		`--duration: must be a duration like 30s or 1m30s, got "10"`,
		"--rate: must be above 0 requests/s, got -1",
		"--out: must not have control characters",
	)
}

func TestFlagsForTheLoadTakeThePlaceOfTheFiles(t *testing.T) {
	stages := "load:\n  seed: 9\n  stages:\n    - {rate: 1, duration: 1s}\n    - {rate: 2, duration: 1s}\n"
	for _, tc := range []struct {
		file string
		set  [][2]string
		want plan.Load
	}{
		{stages, [][2]string{{"load.rate", "5"}, {"load.requests", "7"}}, plan.Load{Rate: 5, Requests: 7}},
		{stages, [][2]string{{"load.concurrency", "5"}, {"load.requests", "7"}}, plan.Load{Concurrency: 5, Requests: 7}},
		{enough, [][2]string{{"load.concurrency", "5"}}, plan.Load{Concurrency: 5, Duration: 30 * time.Second}},
		{enough, [][2]string{{"load.stages", "rate=3,requests=4"}}, plan.Load{Stages: []plan.LoadStage{{Rate: 3, Requests: 4}}}},
		{stages, [][2]string{{"load.stages", "rate=3,requests=4"}}, plan.Load{Stages: []plan.LoadStage{{Rate: 3, Requests: 4}}}},
	} {
		d := draft(tc.file)
		for _, s := range tc.set {
			d.Set(s[0], s[1], "--flag")
		}
		got, err := d.Spec()
		if err != nil {
			t.Errorf("%v: %v", tc.set, err)
			continue
		}
		got.Load.Seed, got.Load.Arrival, got.Load.Burstiness, got.Load.Drain = 0, "", 0, 0
		if !reflect.DeepEqual(got.Load, tc.want) {
			t.Errorf("%v: load: got %+v, want %+v", tc.set, got.Load, tc.want)
		}
	}
	d := new(plan.Draft)
	d.Set("load.rate", "1", "--rate")
	d.Set("load.concurrency", "1", "--concurrency")
	d.Set("load.requests", "1", "--requests")
	wantLines(t, "both", faultsOf(t, d), "--concurrency: does not go with rate")
	d = new(plan.Draft)
	d.Set("load.stages", "rate=0,duration=1s", "--stage")
	d.Set("load.stages", "rate=1,rate=2,requests=3,speed=4,x", "--stage")
	wantLines(t, "stage flags", faultsOf(t, d),
		"--stage 2: rate: is given twice", "--stage 2: speed: is not a key",
		`--stage 2: must be pairs like rate=10,duration=30s, got "x"`, "--stage 1: rate: must be above 0 requests/s, got 0")
}

func TestRequiredKeysAreAskedForByTheCaller(t *testing.T) {
	d := draft(enough)
	d.Require("target.url", "target.model")
	wantLines(t, "faults", faultsOf(t, d), "spec.yaml: target.url: is missing", "spec.yaml: target.model: is missing")
	if _, err := draft(enough).Spec(); err != nil {
		t.Errorf("without Require: got %v", err)
	}
	d = draft(enough)
	d.Require("target.url", "target.model")
	d.Set("target.url", "", "URL")
	d.Set("target.model", "", "--model")
	wantLines(t, "empty", faultsOf(t, d), "URL: must not be empty", "--model: must not be empty")
}

func TestDrainIsTheTimeoutUnlessGiven(t *testing.T) {
	s, _ := draft(enough + "target:\n  timeout: 7s\n").Spec()
	if s.Load.Drain != 7*time.Second {
		t.Errorf("drain: got %v, want 7s", s.Load.Drain)
	}
	s, _ = draft(enough + "  drain: 0s\n").Spec()
	if s.Load.Drain != 0 {
		t.Errorf("drain: got %v, want 0s", s.Load.Drain)
	}
}

const everything = `
target:
  url: https://127.0.0.1:8000/prefix https://[::1]:8000
  model: "org/model: 7B"
  endpoint: template
  stream: false
  continuous_usage: true
  return_token_ids: true
  session_header: X-Session
  response_format: '{"type": "json_object"}'
  headers: {X-Route: "a # b", X-Yes: yes, X-Token: "env:T"}
  api_key_env: KEY
  api_key_file: /run/key
  api_key_header: api-key
  timeout: 1h
  connect_timeout: 1m30s
  idle_timeout: 3.5s
  http: "1.1"
  reuse: true
  header_timeout: 20s
  first_token_timeout: 40s
  token_timeout: 5s
  retries: 3
  insecure: true
  ca_file: /etc/ca.pem
  template:
    path: /v1/x?y=1
    body: |
      {
      	"q": {{prompt}}
      }
    text: /a/0
    reasoning: /b
    usage_input: /u/in
    usage_cached: /u/cached
    usage_output: /u/out
    finish: /f
    error: /e~1~0
    done: "[END]"
    framing: document
    cumulative: true
  client_cert_file: /etc/me.pem
  client_key_file: /etc/me.key
  server_name: llm.example
load:
  seed: 18446744073709551615
  arrival: gamma
  burstiness: 0.25
  states: 10:2s 0:1m30s
  clients: 50:gamma:0.2 1:poisson*30
  think_time: 3s
  think_process: constant
  warmup: 5s
  drain: 10s
  stages:
    - name: slow
      rate: 0.5
      rate_to: 1e3
      duration: 20s
      max_in_flight: 64
    - {concurrency: 8, requests: 100, duration: 1m, gap: 2s}
    - {arrival: weibull, burstiness: 0.5, rate: 5, duration: 1h, amplitude: 0.5, period: 20m, phase: 0.25}
    - {arrival: mmpp, rate: 5, duration: 1h}
    - {arrival: clients, rate: 5, duration: 1h, spike_rate: 50, spike_at: 10m, spike_width: 5s}
    - {concurrency: 8, requests: 100, think_time: 1s, think_process: exponential}
    - {rate: 5, requests: 10, arrival: mmpp, states: 1:1s 2:2s}
    - {rate: 5, requests: 10, arrival: clients, clients: 1:constant}
workload:
  input_tokens: normal(1000,10,min=5)
  output_tokens: 1
  ignore_eos: true
  sampling: product
  temperature: 0.3
  sampling_seed: 18446744073709551615
  text: corpus
  text_file: own.txt
  tokenizer: /m/tokenizer.json
  chat_template: /m/tokenizer_config.json
  system_tokens: 40
  prefix: {groups: 10, tokens: 64, zipf: 1.1, block: 32}
  tools: tools.json
  images: {count: 2, width: 64, height: 48, format: jpeg, place: before, sizes: "8x8*2 9x9"}
  videos: {count: 1, sizes: 16x16, frames: 3, place: before}
  audio: {count: "uniform(1,2)", lengths: "1s*2 3s", place: before}
  classes:
    - {name: gold, weight: 0.5, model: lora-1, input_tokens: "uniform(1,9)", prefix_groups: 2, prefix_tokens: 96}
    - {name: rest, output_tokens: 7}
  sha256: {tokenizer: "00ff"}
client: {engine: epoll, loops: 2, procs: 4, connections: 100, spin: 50us}
out: runs/a
`

const replayed = `
load: {max_in_flight: 8, requests: 100, duration: 1h}
workload:
  cache: cold
  trace: {file: t.csv, format: azure, scale: 0.5, from: 1m, until: 2h, sort: true, block: 64, grid: 3s, keep_grid: true, sessions: true,
    pauses: think, max_gap: 1m, min_calls: 2, max_calls: 9, min_sessions: 50, models: "a=b c=d", class: kind, headers: "tenant.id=X-Tenant"}
`

const sampled = enough + `
workload:
  dataset:
    file: d.csv
    format: csv
    preset: vllm
    columns: prompt=question output=answer
    template: "Q: {{question}}\n"
    turns: first-two
    order: shuffled
    output: asked
`

func TestPrintedSpecReadsAsTheSame(t *testing.T) {
	for _, text := range []string{everything, replayed, sampled, enough, enough + "target: {api_key_env: ''}\n"} {
		want, err := draft(text).Spec()
		if err != nil {
			t.Fatal(err)
		}
		got, err := draft(string(want.YAML())).Spec()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("YAML:\n%s\nreads as %+v, %v\nwant %+v", want.YAML(), got, err, want)
		}
		encoded, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err = draft(string(encoded)).Spec()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("JSON %s\nreads as %+v, %v", encoded, got, err)
		}
	}
}

func TestEveryFieldOfTheSpecHasAKey(t *testing.T) {
	s, err := draft(everything).Spec()
	if err != nil {
		t.Fatal(err)
	}
	trace, err := draft(replayed).Spec()
	if err != nil || trace.Load.Arrival != plan.ArrivalTrace {
		t.Fatalf("trace: got arrivals %s, %v", trace.Load.Arrival, err)
	}
	data, err := draft(sampled).Spec()
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Trace, s.Workload.Dataset, trace.Workload.Trace.Thin = trace.Workload.Trace, data.Workload.Dataset, 1
	short := map[string]bool{"Rate": true, "Concurrency": true, "MaxInFlight": true, "Requests": true, "Duration": true}
	for _, section := range []any{
		s.Target, s.Load, s.Workload, s.Client, s.Load.Stages[0], s.Target.Template, s.Workload.Prefix, s.Workload.Images,
		s.Workload.Videos, s.Workload.Audio,
		trace.Workload.Trace, data.Workload.Dataset, s.Workload.Classes[0],
	} {
		v := reflect.ValueOf(section)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			load := v.Type() == reflect.TypeFor[plan.Load]() && short[name]
			stage := (v.Type() == reflect.TypeFor[plan.LoadStage]() || v.Type() == reflect.TypeFor[plan.Class]()) && v.Field(i).IsZero()
			if v.Field(i).IsZero() && !load && !stage && name != "Stream" {
				t.Errorf("%v.%s was not read", v.Type(), name)
			}
		}
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	d := draft(enough + `
target:
  url: http://me:hunter2@127.0.0.1:8000/v1?api_key=hunter2&x=1
  headers: {Authorization: Bearer hunter2, X-API-Key: hunter2, x-auth-token: hunter2, Cookie: hunter2, X-Route: blue}
`)
	s, err := d.Spec()
	if err != nil {
		t.Fatal(err)
	}
	encoded, _ := json.Marshal(s)
	p, err := plan.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"YAML": string(s.YAML()), "JSON": string(encoded), "%v": fmt.Sprintf("%v", s), "%+v": fmt.Sprintf("%+v", &s),
		"%#v": fmt.Sprintf("%#v", s), "target": fmt.Sprintf("%+v %#v", s.Target, s.Target), "plan": fmt.Sprintf("%+v", *p),
	} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "***@127.0.0.1") || !strings.Contains(text, "blue") {
			t.Errorf("%s: got %s", name, text)
		}
	}
	if s.Target.Headers["Authorization"] != "Bearer hunter2" {
		t.Error("masking changed the spec itself")
	}
	for _, url := range []string{"http://me:hunter2@ho st", "http://me:hun/hunter2@host", "me:hunter2@host", "http://h/%zz?key=hunter2", "http://me:hunter2@h/#f", "://me:hunter2@h"} {
		d := new(plan.Draft)
		d.Set("target.url", url, "--url")
		if _, err := d.Spec(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: fault: got %v", url, err)
		}
	}
	if _, err := draft(string(s.YAML())).Spec(); err == nil {
		t.Error("masked values were taken for real ones")
	}
}

// requestURL is where the requests of a target with one server go.
func requestURL(t plan.Target, path string) (string, error) {
	all, err := t.Servers(path)
	if err != nil {
		return "", err
	}
	return map[bool]string{true: "https://", false: "http://"}[all[0].Secure] + all[0].Host + all[0].Path, nil
}

func TestRequestURLTakesABaseOrAFullPath(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"http://h:1", "http://h:1/v1/chat/completions"},
		{"http://h:1/", "http://h:1/v1/chat/completions"},
		{"http://h:1/prefix/", "http://h:1/prefix/v1/chat/completions"},
		{"http://h:1/prefix/v1", "http://h:1/prefix/v1/chat/completions"},
		{"https://h/openai/v1/chat/completions", "https://h/openai/v1/chat/completions"},
		{"https://h/d/m/chat/completions?api-version=1", "https://h/d/m/chat/completions?api-version=1"},
		{"http://h:1/v1/chat/completions/", "http://h:1/v1/chat/completions"},
		{"http://[::1]:80", "http://[::1]:80/v1/chat/completions"},
	} {
		got, err := requestURL(plan.Target{URL: tc.url, Endpoint: plan.EndpointChat}, "/v1/chat/completions")
		if got != tc.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", tc.url, got, err, tc.want)
		}
	}
	for _, url := range []string{"", "h:80", "ftp://h", "http://h/v1/completions", "http://h/#x"} {
		if got, err := requestURL(plan.Target{URL: url, Endpoint: plan.EndpointChat}, "/v1/chat/completions"); err == nil {
			t.Errorf("%q: got %q, want an error", url, got)
		}
	}
}

func TestRequestURLTakesEveryEndpointsPath(t *testing.T) {
	const gemini = "/v1beta/models/a%2Fb:streamGenerateContent?alt=sse"
	for _, tc := range []struct{ endpoint, path, url, want string }{
		{"openai-responses", "/v1/responses", "http://h/v1", "http://h/v1/responses"},
		{"anthropic-messages", "/v1/messages", "http://h/p%2Fq/", "http://h/p%2Fq/v1/messages"},
		{"gemini", gemini, "http://h", "http://h" + gemini},
		{"gemini", gemini, "http://h/v1beta", "http://h" + gemini},
		{"gemini", gemini, "http://h/v1?x=1", "http://h/v1/models/a%2Fb:streamGenerateContent?x=1&alt=sse"},
		{"gemini", gemini, "https://h/v1/projects/p/models/m:streamGenerateContent", "https://h/v1/projects/p/models/m:streamGenerateContent?alt=sse"},
		{"gemini", gemini, "https://h/models/m:streamGenerateContent?alt=json", "https://h/models/m:streamGenerateContent?alt=json"},
		{"tgi", "/generate_stream", "http://h/", "http://h/generate_stream"},
		{"sglang", "/generate", "http://h/generate", "http://h/generate"},
		{"ollama", "/api/chat", "http://h/api", "http://h/api/chat"},
		{"triton", "/v2/models/m/generate_stream", "http://h/v2", "http://h/v2/models/m/generate_stream"},
	} {
		got, err := requestURL(plan.Target{URL: tc.url, Endpoint: tc.endpoint, Stream: true}, tc.path)
		if got != tc.want || err != nil {
			t.Errorf("%s, %s: got %q, %v, want %q", tc.endpoint, tc.url, got, err, tc.want)
		}
	}
}

func TestAFullPathMustGoWithTheRest(t *testing.T) {
	for _, tc := range []struct {
		target plan.Target
		want   string // empty for none
	}{
		{plan.Target{URL: "http://h/v1/messages", Endpoint: "openai-chat"}, "is the path of endpoint anthropic-messages, but target.endpoint is openai-chat"},
		{plan.Target{URL: "http://h/generate_stream", Endpoint: "sglang", Stream: true}, "is the path of endpoint tgi or triton, but target.endpoint is sglang"},
		{plan.Target{URL: "http://h/models/m:generateContent", Endpoint: "gemini", Stream: true}, "is the path of replies that are not streamed, but target.stream is true"},
		{plan.Target{URL: "http://h/models/m:streamGenerateContent", Endpoint: "gemini"}, "is the path of streamed replies, but target.stream is false"},
		{plan.Target{URL: "http://h/models/m:generateContent", Endpoint: "gemini", Model: "other"}, "asks for model m, but target.model is other"},
		{plan.Target{URL: "http://h/models/m:generateContent", Endpoint: "gemini", Model: "models/m"}, ""},
		{plan.Target{URL: "http://h/generate", Endpoint: "sglang", Stream: true}, ""},
	} {
		_, err := tc.target.Servers("/x")
		if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: got %v, want %q", tc.target, err, tc.want)
		}
	}
}

func TestKeysOfTheTransportMustGoTogether(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"url: http://h, insecure: true", "target.insecure: goes with https:// only, which target.url http://h is not"},
		{"url: 'http://h https://i'", "target.url: must begin with the same scheme for all servers, got http:// and https://"},
		{"url: 'http://h http://i/v1/chat/completions'", "target.url: must be bases for all servers, or full paths for all"},
		{"url: 'unix://run/x.sock'", "target.url: must name a socket by its absolute path: \"unix://run/x.sock\""},
		{"url: 'unix:///run/x.sock:v1'", "target.url: must have a path that begins with / behind the socket's: \"unix:///run/x.sock:v1\""},
		{"url: 'unix:///" + strings.Repeat("x", 107) + "'", "target.url: must name a socket by a path of at most 107 bytes: \"unix:///" + strings.Repeat("x", 107) + "\""},
		{"url: 'http://u:p w@h'", "target.url: is not a URL: \"http://***@h\""},
		{"url: 'http://a:p@h ftp://b:q@i'", "target.url: must begin with http://, https:// or unix://, got \"ftp://***@i\""},
		{"url: https://h, client_cert_file: a", "target.client_cert_file: needs target.client_key_file"},
		{"url: https://h, client_key_file: a", "target.client_key_file: needs target.client_cert_file"},
		{"http: '2', reuse: false", "target.reuse: must be true with target.http 2"},
		{"http: '3'", "target.http: must be 1.1 or 2, got \"3\""},
		{"api_key_header: 'a b'", "target.api_key_header: \"a b\" is not a header name"},
		{"headers: {X-A: 'env:'}", "target.headers.X-A: the value of X-A names nothing to read it from"},
	} {
		got := faultsOf(t, draft(enough+"target: {"+tc.text+"}\n"))
		if len(got) != 1 || !strings.HasSuffix(got[0], ": "+tc.want) {
			t.Errorf("%s: got %q, want %q", tc.text, got, tc.want)
		}
	}
	for _, tc := range []struct{ text, want string }{
		{"target: {http: '2'}\nclient: {engine: epoll}\n", "client.engine: goes with target.http 1.1 only, got epoll"},
		{"target: {reuse: false}\nclient: {connections: 3}\n", "client.connections: goes with target.reuse only"},
	} {
		got := faultsOf(t, draft(enough+tc.text))
		if len(got) != 1 || !strings.HasSuffix(got[0], ": "+tc.want) {
			t.Errorf("%s: got %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestEachServiceHasItsOwnKey(t *testing.T) {
	for endpoint, want := range map[string]string{"openai-chat": "OPENAI_API_KEY", "anthropic-messages": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"} {
		d := draft(enough)
		d.Set("target.endpoint", endpoint, "--endpoint")
		if s, err := d.Spec(); err != nil || s.Target.APIKeyEnv != want {
			t.Errorf("%s: got %q, %v, want %q", endpoint, s.Target.APIKeyEnv, err, want)
		}
	}
	d := draft(enough)
	d.Set("target.endpoint", "anthropic-messages", "--endpoint")
	d.Set("target.api_key_env", "MINE", "--key")
	if s, err := d.Spec(); err != nil || s.Target.APIKeyEnv != "MINE" {
		t.Errorf("got %q, %v, want the variable that was named", s.Target.APIKeyEnv, err)
	}
}

func TestTemplatesAreCheckedBeforeARun(t *testing.T) {
	whole := func(template string) string {
		return "target:\n  url: http://h\n  model: m\n  endpoint: template\n  template:\n" + template + "load: {rate: 1, requests: 1}\n"
	}
	const good = "    body: '{\"p\": {{prompt}}, \"n\": {{ max_tokens }}}'\n    text: /t\n"
	for _, c := range []struct{ name, text, want string }{
		{"good", whole(good), ""},
		{"nothing", whole("    path: /x\n"), `
f.yaml:5: target.template.body: is missing, and target.endpoint is template
hint: write {"prompt": {{prompt}}, "max_tokens": {{max_tokens}}}
f.yaml:5: target.template.text: is missing, and target.endpoint is template
hint: write /text for {"text": …}`},
		{"five mistakes", whole("    path: v1\n    body: '{\"p\": \"{{prompt}}\", \"m\": {{modl}}, \"s\": {{stream}'\n    text: choices\n    finish: /a~2\n    framing: document\n"), `
f.yaml:6: target.template.path: must begin with / and have neither spaces nor #, got "v1"
hint: write /v1/generate
f.yaml:7: target.template.body: has {{prompt}} inside a string
hint: leave the quotes out: values are written as JSON, with quotes where they need them
f.yaml:7: target.template.body: has {{modl}}, which is no value
hint: did you mean {{model}}?
f.yaml:7: target.template.body: has a {{ without its }}
hint: write \u007b for a brace that is meant literally
f.yaml:8: target.template.text: must be a JSON Pointer that begins with /, got "choices"
hint: write /choices/0/delta/content for {"choices":[{"delta":{"content":…}}]}
f.yaml:9: target.template.finish: must be a JSON Pointer, in which ~ is written ~0 and / within a name ~1, got "/a~2"
hint: write /choices/0/delta/content for {"choices":[{"delta":{"content":…}}]}
f.yaml:10: target.template.framing: is document, but target.stream is true
hint: set target.stream: false, or leave framing out`},
		{"no JSON", whole("    body: |\n      {\"p\": {{prompt}},\n       \"n\": }\n    text: /t\n"), `
f.yaml:6: target.template.body: is not JSON with its values filled in: line 2, column 7: invalid character '}' looking for beginning of value`},
		{"cut short", whole("    body: '{\"p\": {{prompt}}'\n    text: /t\n"), `
f.yaml:6: target.template.body: is not JSON with its values filled in: line 1, column 16: unexpected end of JSON input`},
		{"no prompt", whole("    body: '{\"n\": {{max_tokens}}}'\n    text: /t\n"), `
f.yaml:6: target.template.body: has no prompt: all requests would be alike
hint: put {{prompt}}, {{messages}} or {{prompt_ids}} where the prompt goes`},
		{"overlapping places", whole(good + "    reasoning: /t/0\n    finish: /t\n"), `
f.yaml:8: target.template.reasoning: is /t/0, which overlaps target.template.text, /t
hint: each place can mean one thing
f.yaml:9: target.template.finish: is /t, which overlaps target.template.text, /t
hint: each place can mean one thing
f.yaml:9: target.template.finish: is /t, which overlaps target.template.reasoning, /t/0
hint: each place can mean one thing`},
		{"stream: false", strings.Replace(whole(good+"    framing: sse\n"), "  template:", "  stream: false\n  template:", 1), `
f.yaml:9: target.template.framing: is sse, but target.stream is false
hint: set target.stream: true, or leave framing out`},
		{"another endpoint", strings.Replace(whole("    text: /t\n"), "endpoint: template", "endpoint: tgi", 1), `
f.yaml:6: target.template.text: goes with target.endpoint template only, which is tgi
hint: set target.endpoint: template`},
		{"an unknown key", whole(good + "    txt: /t\n"), `
f.yaml:8: target.template.txt: is not a key
hint: did you mean target.template.text?`},
	} {
		d := new(plan.Draft)
		d.Read("f.yaml", []byte(c.text))
		_, err := d.Spec()
		got := ""
		if err != nil {
			got = "\n" + err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got%s\nwant%s", c.name, got, c.want)
		}
	}
}

func TestATemplateIsCutAtItsPlaceholders(t *testing.T) {
	tpl := plan.Template{Body: `{"a":{{prompt}},"b":[{{ stream }}]}`}
	want := []plan.Segment{{Text: `{"a":`, Place: "prompt"}, {Text: `,"b":[`, Place: "stream"}, {Text: `]}`}}
	if got := tpl.Segments(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if names, err := plan.Pointer("/a~1b/0//~01"); err != nil || !reflect.DeepEqual(names, []string{"a/b", "0", "", "~1"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestAnEndpointThatIsNoneIsMetWithTheOneMeant(t *testing.T) {
	for text, want := range map[string]string{
		"chat": "openai-chat", "completions": "openai-completions", "responses": "openai-responses", "anthropic": "anthropic-messages",
		"opena-chat": "openai-chat", "olama": "ollama", "grpc": "",
	} {
		d := draft("target: {url: http://h, model: m, endpoint: " + text + "}\nload: {rate: 1, requests: 1}\n")
		_, err := d.Spec()
		faults, _ := err.(plan.Faults)
		if len(faults) != 1 || faults[0].Key != "target.endpoint" || want != "" && faults[0].Hint != "did you mean "+want+"?" || want == "" && faults[0].Hint != "" {
			t.Errorf("endpoint %s: got %v, want one fault of target.endpoint that hints at %q", text, err, want)
		}
	}
}

func TestAURLFaultSaysWhatToDo(t *testing.T) {
	for url, want := range map[string]string{
		"h:80":                    "write http://HOST:PORT, https:// or unix:///PATH.sock",
		"http://h/v1/completions": "set --endpoint openai-completions (target.endpoint), or leave the path out",
		"http://h/#x":             "leave out # and what follows: no server gets to see it",
		"http://***@h/":           "secrets are not stored: write the URL anew, with them",
	} {
		d := draft(enough)
		d.Set("target.url", url, "URL")
		if _, err := d.Spec(); err == nil || !strings.HasSuffix(err.Error(), "\nhint: "+want) {
			t.Errorf("%s: got %v, want the hint %q", url, err, want)
		}
	}
}

func TestHeadersThatDifferInCaseOnlyAreRefused(t *testing.T) {
	d := draft(enough)
	d.Set("target.headers", "X-One: a", "--header")
	d.Set("target.headers", "x-one: b", "--header")
	wantLines(t, "faults", faultsOf(t, d), "--header: x-one is given twice, first as X-One by an earlier --header")
}

// parseStage reads a stage as the flag --stage does. The keys of its faults are those of the stage.
func parseStage(text string) (plan.LoadStage, error) {
	var d plan.Draft
	d.Set("load.stages", text, "")
	spec, err := d.Spec()
	if faults, ok := err.(plan.Faults); ok {
		for i := range faults {
			faults[i].Key = strings.TrimPrefix(strings.TrimPrefix(faults[i].Key, "load.stages[0]"), ".")
		}
		return plan.LoadStage{}, faults
	}
	return spec.Load.Stages[0], nil
}

func TestStagesAreReadFromTheirFlag(t *testing.T) {
	got, err := parseStage("rate=10, duration=30s,rate_to=20,name=x,gap=2s,max_in_flight=8,requests=5")
	want := plan.LoadStage{
		Name: "x", Rate: 10, RateTo: 20, MaxInFlight: 8, Duration: 30 * time.Second, Requests: 5, Gap: 2 * time.Second,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		"":                            `must be pairs like rate=10,duration=30s, got ""`,
		"rate=10":                     "needs a duration or a number of requests",
		"rate-to=1,rate=1,requests=1": "rate-to: is not a key\nhint: did you mean rate_to?",
		"rate=x,requests=1":           `rate: must be a number, got "x"`,
	} {
		if _, err := parseStage(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestSchemaDescribesEveryKeyAndAllowsNoOther(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(plan.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := 0
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		if s["description"] == "" || s["description"] == nil {
			t.Errorf("%s has no description", path)
		}
		properties, _ := s["properties"].(map[string]any)
		if properties != nil && s["additionalProperties"] != false {
			t.Errorf("%s allows other keys", path)
		}
		for name, p := range properties {
			keys++
			walk(path+"."+name, p.(map[string]any))
		}
		if items, ok := s["items"].(map[string]any); ok {
			walk(path+"[]", items)
		}
	}
	walk("", schema)
	if keys < 40 {
		t.Errorf("keys: got %d, want all", keys)
	}
}

func FuzzDraftNeverPanicsAndPrintsWhatItRead(f *testing.F) {
	for _, text := range []string{everything, enough, "", "a: &x b\nc: *x\n", "<<: {a: 1}\n", "load: !!map {rate: 1}\n", "? [a]\n: b\n", "load:\n  stages:\n  - rate: 1\n   x: 2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := draft(text).Spec()
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without text")
			}
			return
		}
		if !reflect.DeepEqual(s, s.Masked()) {
			return
		}
		got, err := draft(string(s.YAML())).Spec()
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%q prints as\n%s\nwhich reads as %+v, %v", text, s.YAML(), got, err)
		}
	})
}

func FuzzStagesOfTheirFlag(f *testing.F) {
	for _, text := range []string{"rate=10,duration=30s", "concurrency=4,requests=5,name=x", "rate=1,rate_to=1e300,requests=1", "=,=", ","} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStage(text)
		if err != nil {
			return
		}
		spec := plan.Defaults()
		spec.Load.Stages = []plan.LoadStage{s}
		if _, err := plan.New(spec, nil); err != nil {
			t.Errorf("%q gives %+v, of which no plan can be made: %v", text, s, err)
		}
	})
}
