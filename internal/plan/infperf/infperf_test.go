package infperf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
	"tare/internal/plan/infperf"
)

// nothing is there: no file can be found.
var nothing = infperf.Around{Exists: func(string) bool { return false }}

// convert reads a config through to the spec.
func convert(name string, text []byte, around infperf.Around) (plan.Spec, infperf.Config, error) {
	c := infperf.Read(name, text, around)
	var d plan.Draft
	d.Take(name, c.Settings, c.Faults)
	spec, err := d.Spec()
	return spec, c, err
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Every example either makes a spec or says all that is refused in it, and no more.
func TestExamplesLoadOrNameWhatIsRefused(t *testing.T) {
	for _, test := range []struct {
		file   string
		faults []string // line and key
	}{
		{"whole.yml", nil},
		{"sweep.yml", nil},
		{"conversations.yml", nil},
		{"trace.yml", nil},
		{"otel.yml", nil},
		{"weka.yml", nil},
		{"multimodal.yml", nil},
		{"visionarena.yml", nil},
		{"prefix.yml", nil},
		{"turns.yml", nil},
		{"dumped.yml", nil},
	} {
		t.Run(test.file, func(t *testing.T) {
			text := fixture(t, test.file)
			if !infperf.Detect(text) {
				t.Error("is not detected")
			}
			_, _, err := convert(test.file, text, nothing)
			var got []string
			faults, _ := errors.AsType[plan.Faults](err)
			for _, f := range faults {
				got = append(got, fmt.Sprintf("%d %s", f.Line, f.Key))
				if f.File != test.file || f.Reason == "" {
					t.Errorf("fault without its file or reason: %+v", f)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(test.faults) {
				t.Errorf("faults:\ngot  %q\nwant %q", got, test.faults)
			}
		})
	}
}

// standIn writes small files of our own in place of those that an example names, and returns the example with their names.
func standIn(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"words.txt": strings.Repeat("A few words of text. ", 200),
		"spans/a.json": `{"trace_id": "t", "spans": [` + strings.TrimSuffix(strings.Repeat(`{"name": "chat", "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z",
			"attributes": {"gen_ai.request.model": "model-a", "gen_ai.usage.input_tokens": 9}},`, 4), ",") + `]}`,
		"agents/a.json": `{"id": "a", "requests": [{"t": 0, "type": "s", "in": 99, "out": 9, "hash_ids": [1], "api_time": 1}, {"t": 3, "type": "s", "in": 150, "out": 9, "hash_ids": [1, 2]}]}`,
		"client.crt":    "", "client.key": "",
	} {
		path := dir + "/" + name
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer("./"+name, path, "/etc/tls/"+name, path).Replace(text)
	}
	return strings.NewReplacer("spans/*.json", dir+"/spans/*.json", "./agents", dir+"/agents").Replace(text)
}

// Each of the eight examples is a plan: with files of our own in place of those that it names, its requests are made.
func TestTheEightExamplesAreLoads(t *testing.T) {
	for name, want := range map[string]struct{ sessions, requests int64 }{
		"whole.yml": {90 + 337, 90 + 337}, "sweep.yml": {0, 0}, "conversations.yml": {40 + 80, 0}, "trace.yml": {3, 3}, "otel.yml": {20 + 30, 80 + 120}, "weka.yml": {40, 80},
		"multimodal.yml": {40, 40}, "visionarena.yml": {40, 40},
	} {
		t.Run(name, func(t *testing.T) {
			spec, _, err := convert(name, []byte(standIn(t, string(fixture(t, name)))), nothing)
			if err != nil {
				t.Fatal(err)
			}
			d, err := dialect.For(spec.Target.Endpoint, dialect.Options{Model: spec.Target.Model, TopP: 1})
			if err != nil {
				t.Fatal(err)
			}
			if faults := spec.Needs(d.Accepts()); len(faults) > 0 {
				t.Fatal(faults)
			}
			p, err := plan.New(spec, d)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			sessions, requests := int64(0), int64(0)
			for _, s := range p.Stages {
				sessions, requests = sessions+s.Sessions, requests+s.Requests
			}
			if sessions != want.sessions || requests != want.requests {
				t.Errorf("got %d sessions, %d requests, want %d and %d", sessions, requests, want.sessions, want.requests)
			}
			w := p.Walk()
			var r, later plan.Request
			for n := 0; n < 8 && w.Next(&r); n++ {
				if !json.Valid(r.Body) || len(r.Body) < 50 {
					t.Fatalf("the body is no request: %.200s", r.Body)
				}
				for turn := 1; turn < r.Turns; turn++ {
					if !w.Follow(&later, r.Origin(), turn, make([][]byte, r.Turns)) || !json.Valid(later.Body) {
						t.Fatalf("turn %d: error %v, %.200s", turn, w.Err(), later.Body)
					}
				}
			}
			if w.Err() != nil {
				t.Error(w.Err())
			}
		})
	}
}

// What is accepted is the load that the config describes.
func TestSpecSaysWhatTheConfigAsksFor(t *testing.T) {
	files := []string{"/m", "/m/tokenizer.json", "/t", "/t/tokenizer.json", "/t/chat_template.jinja"}
	here := infperf.Around{Exists: func(path string) bool { return slices.Contains(files, path) }, Time: "T"}
	for _, test := range []struct {
		name, config string
		want         []string // lines of the printed spec
	}{
		{"prefix", string(fixture(t, "prefix.yml")), []string{
			"endpoint: \"openai-chat\"", "stream: true", "timeout: 5m", "seed: 9", "arrival: \"poisson\"", "- rate: 10\n      requests: 60\n",
			"- rate: 20\n      requests: 60\n      gap: 2s", "groups: 4", "tokens: 100", "block: 4", "input_tokens: 20", "output_tokens: \"uniform(4,9)\"",
			"ignore_eos: true", "\"Authorization\": \"***\"",
		}},
		{"turns", string(fixture(t, "turns.yml")), []string{
			"system_tokens: 32", "turns: 3", "think_time: 2s", "think_process: \"constant\"", "concurrency: 2\n      requests: 4\n",
			"output_tokens: \"normal(40,10,min=10,max=1024)\"", "seed: 42",
		}},
		{"dumped", string(fixture(t, "dumped.yml")), []string{
			"endpoint: \"openai-completions\"", "concurrency: 3\n      requests: 12\n", "ignore_eos: false", "output_tokens: 30", "seed: 1700000000000",
			"out: \"reports-20260101-000000\"",
		}},
		{"trace", string(fixture(t, "trace.yml")), []string{
			"stream: false", "file: \"testdata/azure.csv\"", "format: \"azure\"",
		}},
		{"whole", string(fixture(t, "whole.yml")), []string{
			"endpoint: \"openai-chat\"", "session_header: \"x-session\"", "input_tokens: \"lognormal(600,300,min=32,max=2048)\"", "rate: 7.5", "name: \"red\"",
			`slo: ["ttft<=500ms", "tpot<=50ms"]`, "prometheus: \"http://prometheus.example:9090\"", `matchers: "pod=~\"llm-.*\""`,
		}},
		{"sweep", string(fixture(t, "sweep.yml")), []string{
			"- concurrency: 1\n      duration: 1m\n", "- concurrency: 43\n      duration: 1m\n      gap: 1s", "- concurrency: 86\n", "- concurrency: 128\n",
			"input_tokens: \"skewnormal(64,30,3,min=16,max=256)\"", "groups: 16",
		}},
		{"conversations", string(fixture(t, "conversations.yml")), []string{
			"turns: \"poisson(3,min=1,max=9)\"", "system_tokens: 640", "system_tokens: \"lognormal(900,500,min=100,max=4000)\"", "concurrency: 12\n      requests: 80\n",
			"think_time: 1s",
		}},
		{"visionarena", string(fixture(t, "visionarena.yml")), []string{
			"endpoint: \"openai-chat\"", "count: 1", "place: \"before\"", "output_tokens: 30", "requests: 40",
		}},
		{"answers of a form", `
api: {type: chat, response_format: {type: json_schema, name: city, json_schema: {type: object, minProperties: 1, properties: {a: {type: string, const: "1"}}, required: [a], nullable: true}}}
data: {type: random, use_chat_template: true, input_distribution: {mean: 20, std_dev: 0}, output_distribution: {mean: 20, std_dev: 0}}
load: {sweep: {type: geometric, num_stages: 3, stage_duration: 5}, num_workers: 5, worker_max_concurrency: 5}
server: {base_url: "http://127.0.0.1:1"}
tokenizer: {pretrained_model_name_or_path: /t}`, []string{
			`response_format: "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"city\",\"schema\":{\"type\":\"object\",\"minProperties\":1,\"properties\":{\"a\":{\"type\":\"string\",\"const\":\"1\"}},\"required\":[\"a\"],\"nullable\":true}}}"`,
			"chat_template: \"/t/chat_template.jinja\"", "concurrency: 5\n      duration: 5s\n", "concurrency: 25\n",
		}},
		{"otel", string(fixture(t, "otel.yml")), []string{
			"- concurrency: 4\n      start_rate: 1.5\n      duration: 10m\n      requests: 20\n", "- rate: 1000000\n      gap: 1s\n      arrival: \"constant\"\n", "file: \"spans/*.json\"",
			"sessions: true", "max_gap: 5s", "min_calls: 4", "min_sessions: 50", "models: \"model-a=m\"", "history: \"live\"", "output_tokens: 500",
			"session_header: \"x-session\"",
		}},
		{"spans of all kinds", `
data: {type: otel_trace_replay, otel_trace_replay: {trace_directory: d, filter: "lambda s: len(s[\"spans\"]) <= 7", disable_output_substitution: true,
  attribute_to_header_map: {tenant.id: x-tenant, a.b: x-b}, attribute_to_label_map: {kind: kind}, inject_random_session_id: true, use_static_model: true, static_model_name: z}}
load: {type: trace_session_replay, stages: [{concurrent_sessions: 1}]}
server: {base_url: "http://127.0.0.1:1", model_name: m}`, []string{
			"headers: \"tenant.id=x-tenant a.b=x-b\"", "class: \"kind\"", "cache: \"cold\"", "model: \"z\"", "max_calls: 7", "history: \"recorded\"", "max_gap: 15s",
			"output_tokens: 1000",
		}},
		{"multimodal", string(fixture(t, "multimodal.yml")), []string{
			"images:\n    count: \"uniform(1,2)\"", "format: \"png\"\n    place: \"behind\"\n    sizes: \"1280x720*1 320x320*2\"", "videos:\n    count: 1\n    sizes: \"640x360\"\n    frames: 8",
			"audio:\n    count: 1\n    lengths: \"2s*1\"", "input_tokens: 48",
		}},
		{"weka", string(fixture(t, "weka.yml")), []string{
			"endpoint: \"anthropic-messages\"", "- concurrency: 8\n      requests: 40\n", "file: \"./agents\"", "format: \"weka\"", "max_gap: 8s",
		}},
		{"weka by think times", `
data: {type: weka_trace_replay, weka_trace_replay: {trace_files: [a.json], use_think_time_only: true, max_wait_ms: 1500}}
load: {type: trace_session_replay, stages: [{concurrent_sessions: 1}]}
server: {base_url: "http://127.0.0.1:1", model_name: m}`, []string{"pauses: \"think\"", "max_gap: 1.5s", "file: \"a.json\""}},
		{"random with a tokenizer, adapters and a limit", `
data: {type: random, input_distribution: {mean: 20, std_dev: 0}, output_distribution: {type: lognormal, min: 2, max: 9, mean: 5, std_dev: 2}}
load: {type: poisson, stages: [{rate: 0.7, duration: 10}], num_workers: 3, worker_max_concurrency: 5, request_timeout: 1.5, base_seed: 3,
  lora_traffic_split: [{name: a, split: 0.7}, {name: b, split: 0.2}, {name: c, split: 0.1}]}
server: {base_url: "https://127.0.0.1:1", model_name: m, ignore_eos: false, cert_path: c.pem, key_path: k.pem}
tokenizer: {pretrained_model_name_or_path: /m}
storage: {local_storage: {path: "r-{timestamp}"}}`, []string{
			"tokenizer: \"/m/tokenizer.json\"", "text: \"random\"", "input_tokens: 20", "output_tokens: \"lognormal(5,2,min=2,max=9)\"",
			"rate: 0.7", "requests: 7", "max_in_flight: 15", "timeout: 1.5s", "seed: 3", "model: \"b\"", "weight: 0.2", "client_cert_file: \"c.pem\"",
			"client_key_file: \"k.pem\"", "out: \"r-T\"",
		}},
		{"synthetic with a corpus", `
data: {type: synthetic, corpus_file_path: t.txt, input_distribution: {type: uniform, min: 3, max: 7}, output_distribution: {type: fixed, mean: 4}}
load: {stages: [{rate: 1, duration: 1}]}
server: {base_url: "http://127.0.0.1:1"}
tokenizer: {pretrained_model_name_or_path: /m}`, []string{
			"text: \"corpus\"", "text_file: \"t.txt\"", "input_tokens: \"uniform(3,7)\"", "output_tokens: 4",
		}},
		{"shareGPT by chat", `
api: {type: chat}
data: {type: shareGPT, path: s.json}
load: {stages: [{rate: 1, duration: 1}]}
server: {base_url: "http://127.0.0.1:1"}`, []string{"file: \"s.json\"", "preset: \"inference-perf-chat\"", "format: \"sharegpt\""}},
		{"shareGPT by completion", `
data: {type: shareGPT, path: s.json}
load: {stages: [{rate: 1, duration: 1}]}
server: {base_url: "http://127.0.0.1:1"}`, []string{"preset: \"inference-perf\"\n"}},
		{"anthropic with a key", `
api: {type: anthropic_messages}
load: {stages: [{rate: 1, duration: 1}]}
server: {base_url: "http://127.0.0.1:1", api_key: k}`, []string{"endpoint: \"anthropic-messages\"", "\"x-api-key\": \"***\"", "ignore_eos: false"}},
		{"goodput", `
api: {streaming: true}
load: {stages: [{rate: 2, duration: 3}]}
server: {base_url: "http://127.0.0.1:1"}
report: {goodput: {constraints: {request_latency: 3, itl: 0.0505, tpot: 0.0505, ntpot: 0.1}}}`, []string{`slo: ["tpot<=50.5ms", "ntpot<=100ms", "e2e<=3s"]`}},
		{"an anchor", `
load: {stages: [&s {rate: 2, duration: 3}, *s]}
server: {base_url: "http://127.0.0.1:1"}`, []string{"- rate: 2\n      requests: 6\n    - rate: 2\n      requests: 6\n      gap: 1s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, _, err := convert("c.yml", []byte(test.config), here)
			if err != nil {
				t.Fatal(err)
			}
			text := string(spec.YAML())
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the spec has no %q:\n%s", want, text)
				}
			}
		})
	}
}

func TestPrintedSpecIsTheSame(t *testing.T) {
	for _, name := range []string{"trace.yml", "turns.yml", "dumped.yml"} {
		spec, _, err := convert(name, fixture(t, name), nothing)
		if err != nil {
			t.Fatal(err)
		}
		var d plan.Draft
		d.Read("spec.yaml", spec.YAML())
		again, err := d.Spec()
		if err != nil || again.String() != spec.String() {
			t.Errorf("%s: read again, with error %v:\ngot  %s\nwant %s", name, err, again, spec)
		}
	}
}

func TestMistakesAreAllNamed(t *testing.T) {
	config := `api: {type: chatt, streeming: true}
data:
  type: random
  input_distribution: {mean: 5, std: 3}
load:
  stages:
    - {rate: -1, duration: 10}
    - {rate: 0.1, duration: 5}
    - {duration: 5}
  lora_traffic_split: [{name: a, split: 0.5}]
  base_seed: x
server: {type: mock, base_url: "http://127.0.0.1:1", ignore_eos: 7}
server: {}
`
	_, _, err := convert("c.yml", []byte(config), nothing)
	for _, want := range []string{
		`c.yml:1: api.type: must be one of completion, chat, anthropic_messages, got "chatt"`,
		"c.yml:1: api.streeming: is not a key of inference-perf",
		"c.yml:4: data.input_distribution.std: is not a key of a distribution",
		"c.yml:3: data.output_distribution: is missing",
		`c.yml:7: load.stages[0].rate: must be a number above 0, got "-1"`,
		"c.yml:8: load.stages[1]: has no request",
		"c.yml:9: load.stages[2]: needs rate",
		"c.yml:10: load.lora_traffic_split: the splits must add up to 1, got 0.5",
		"c.yml:11: load.seed: must be a whole number",
		"c.yml:12: server.type: mock is no server",
		`c.yml:12: server.ignore_eos: must be true or false, got "7"`,
		"c.yml:13: server: is given twice, first on line 12",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no fault %q in:\n%v", want, err)
		}
	}
}

func TestRefusedValuesAreNamed(t *testing.T) {
	const around = "\nload: {stages: [{rate: 1, duration: 6}]}\nserver: {base_url: \"http://127.0.0.1:1\"}"
	for config, want := range map[string]string{
		"data: {type: shareGPT}": "data.path: is missing",
		"data: {type: shareGPT, path: s, input_distribution: {min: 3}}":                                                  "data.input_distribution: is refused",
		"data: {type: infinity_instruct, path: s}":                                                                       "data.type: infinity_instruct is refused",
		"data: {type: visionarena}":                                                                                      "data.type: visionarena needs api.type chat",
		"data: {type: visionarena, visionarena: {insertion_point: 2}}":                                                   "insertion_point: must be a number within 0 and 1",
		"data: {type: weka_trace_replay}":                                                                                "data.type: weka_trace_replay needs load.type trace_session_replay",
		"data: {type: weka_trace_replay, weka_trace_replay: {}}":                                                         "data.weka_trace_replay: needs trace_directory or trace_files",
		"data: {type: weka_trace_replay, weka_trace_replay: {trace_files: [a, b]}}":                                      "trace_files: must be a list of one file or pattern",
		"data: {type: weka_trace_replay, weka_trace_replay: {default_block_size: 16}}":                                   "default_block_size: must be 64",
		"data: {type: weka_trace_replay, weka_trace_replay: {use_static_model: true}}":                                   "static_model_name: is missing",
		"data: {type: otel_trace_replay, otel_trace_replay: {filter: 'lambda x: x[0] > 1'}}":                             "filter: is refused: no Python is run",
		"data: {type: otel_trace_replay, otel_trace_replay: {include_errors: false}}":                                    "include_errors: must be true",
		"data: {type: otel_trace_replay, otel_trace_replay: {attribute_to_label_map: {a: b, c: d}}}":                     "attribute_to_label_map: must be one attribute",
		"data: {type: otel_trace_replay, otel_trace_replay: {hf_dataset_path: a/b}}":                                     "hf_dataset_path: is refused: nothing is fetched",
		"data: {type: otel_trace_replay, otel_trace_replay: {max_wait_ms: -1}}":                                          "max_wait_ms: must be a number above 0",
		"data: {type: shared_prefix, shared_prefix: {system_prompt_len: {type: uniform, min: 1, max: 9}}}":               "system_prompt_len: must be one length",
		"data: {type: shared_prefix, shared_prefix: {enable_multi_turn_chat: true}}":                                     "enable_multi_turn_chat: is refused",
		"data: {type: shared_prefix, shared_prefix: {question_len: {mean: 9}, question_distribution: {mean: 8}}}":        "question_distribution: does not go with",
		"data: {type: conversation_replay, conversation_replay: {}}\napi: {session_token_header_key: x}":                 "api.session_token_header_key: is refused",
		"api: {type: chat, response_format: {type: xml}}":                                                                "api.response_format.type: must be one of json_schema, json_object",
		"data: {type: random, input_distribution: {type: cauchy}, output_distribution: {mean: 4}}":                       "type: must be one of normal, skew_normal",
		"data: {type: conversation_replay, conversation_replay: {turns_per_conversation: 3, max_model_len: 9000}}":       "max_model_len: is refused: a conversation may have 10663 tokens",
		"data: {type: conversation_replay, conversation_replay: {turns_per_conversation: 3, tool_call_latency_sec: {}}}": "tool_call_latency_sec: must be one length",
		"data: {type: random, output_distribution: {mean: 4}, input_distribution: {variance: 4, std_dev: 3}}":            "variance: does not go with std_dev",
		"report: {goodput: {constraints: {ttft: -1}}}":                                                                   "report.goodput.constraints.ttft: must be a number of seconds above 0",
		"report: {goodput: {constraints: {e2e_latency: 0.001}}}":                                                         "report.goodput.constraints.e2e_latency: is not a key of inference-perf",
		"report: {goodput: {constraints: {tpot: 1}}}\napi: {streaming: false}":                                           "slo[0]: tpot<=1s asks for times within a reply",
		"data: {type: synthetic, multimodal: {image: {}}}":                                                               "data.multimodal: needs api.type chat",
		"data: {type: synthetic, multimodal: {image: {representation: webp}}}":                                           "representation: must be one of png, jpeg",
		"data: {type: synthetic, multimodal: {image: {resolutions: 8k}}}":                                                "resolutions: must be one of 4k",
		"data: {type: synthetic, multimodal: {video: {profiles: [{profile: {frames: 2}}, {profile: {frames: 3}}]}}}":     "frames: must be the same in all profiles: 2",
		"api: [1]":  "api: must have keys and values",
		"report: 3": "report: must have keys and values",
	} {
		_, _, err := convert("c.yml", []byte(config+around), nothing)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
}

func TestManagedPrometheusIsRefusedByName(t *testing.T) {
	text := strings.Replace(string(fixture(t, "whole.yml")), `url: "http://prometheus.example:9090", scrape_interval: 10`, "google_managed: true", 1)
	if _, _, err := convert("whole.yml", []byte(text), nothing); err == nil || !strings.Contains(err.Error(), "whole.yml:54: metrics.prometheus.google_managed: is refused") {
		t.Errorf("got %v, want it refused by its name", err)
	}
}

func TestWhatIsNotAsThereIsNoted(t *testing.T) {
	_, c, _ := convert("whole.yml", fixture(t, "whole.yml"), nothing)
	var all strings.Builder
	for _, n := range c.Notes {
		fmt.Fprintln(&all, n.Error())
	}
	for _, want := range []string{
		"whole.yml:27: load.num_workers: has no effect", "whole.yml:28: load.worker_max_concurrency: at most 200",
		"whole.yml:62: storage.google_cloud_storage: has no effect",
		"whole.yml:49: tokenizer.pretrained_model_name_or_path: example/model-8b is no file here", "temperature 0 and top_p 1 are sent",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no note %q in:\n%s", want, all.String())
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	spec, c, err := convert("whole.yml", fixture(t, "whole.yml"), nothing)
	shown := fmt.Sprint(spec, c.Notes, err)
	keyed, _, err := convert("prefix.yml", fixture(t, "prefix.yml"), nothing)
	if keyed.Target.Headers["Authorization"] != "Bearer do-not-print-me" || err != nil {
		t.Errorf("the key is not sent: error %v", err)
	}
	shown += fmt.Sprint(keyed)
	for _, secret := range []string{"do-not-print-me", "nor-me"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown in:\n%s", secret, shown)
		}
	}
}

func TestOwnSpecsAreNotTakenForConfigs(t *testing.T) {
	for _, text := range []string{
		"load: {rate: 1, duration: 1s}", "target: {url: x}\nload: {}", "target: {}\nserver: {}", "", "- a", "api: {", "workload: {}\ndata: {}",
	} {
		if infperf.Detect([]byte(text)) {
			t.Errorf("%q is taken for a config", text)
		}
	}
}

// Whatever the bytes, reading ends, and what is accepted prints as a spec that is read.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"whole.yml", "sweep.yml", "conversations.yml", "trace.yml", "otel.yml", "multimodal.yml", "prefix.yml", "turns.yml", "dumped.yml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		infperf.Detect(text)
		spec, _, err := convert("c.yml", text, nothing)
		if err != nil || strings.Contains(string(spec.YAML()), "***") {
			return
		}
		var d plan.Draft
		d.Read("spec.yaml", spec.YAML())
		if _, err := d.Spec(); err != nil {
			t.Errorf("the printed spec is refused: %v\n%s", err, spec)
		}
	})
}
