package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/plan"
)

// specFlag is a flag that sets one key of the spec. Its text goes to the spec unread, so that a value is checked in one
// place, however it was given.
type specFlag struct {
	name, key string
	kind      string // shown in the help; "" for a switch
	usage     string
	words     []string // complete set of values, for the shell
}

var specFlags = []specFlag{
	{name: "model", key: "target.model", kind: "name", usage: "model to ask for"},
	{name: "endpoint", key: "target.endpoint", kind: "name", usage: "what is spoken: " + strings.Join(plan.Endpoints(), ", "), words: plan.Endpoints()},
	{name: "stream", key: "target.stream", usage: "stream replies"},
	{name: "continuous-usage", key: "target.continuous_usage", usage: "ask for token counts in every event (vLLM)"},
	{name: "return-token-ids", key: "target.return_token_ids", usage: "ask for token ids in every event (vLLM)"},
	{name: "header", key: "target.headers", kind: "'NAME: VALUE'", usage: "a further request header (repeatable)"},
	{name: "timeout", key: "target.timeout", kind: "duration", usage: "longest time for one request, from its first write"},
	{name: "header-timeout", key: "target.header_timeout", kind: "duration", usage: "longest time to the end of the reply's header; 0 for none"},
	{name: "first-token-timeout", key: "target.first_token_timeout", kind: "duration", usage: "longest time to the first token; 0 for none"},
	{name: "token-timeout", key: "target.token_timeout", kind: "duration", usage: "longest time from token to token; 0 for none"},
	{name: "retries", key: "target.retries", kind: "n", usage: "send again up to n times what got no token: no connection, 429, 503"},
	{name: "connect-timeout", key: "target.connect_timeout", kind: "duration", usage: "longest time for a connection to be made"},
	{name: "insecure", key: "target.insecure", usage: "do not check the server's certificate"},
	{name: "http", key: "target.http", kind: "version", usage: "1.1 or 2", words: []string{plan.HTTP11, plan.HTTP2}},
	{name: "reuse", key: "target.reuse", usage: "send one request after another over a connection"},
	{name: "api-key-file", key: "target.api_key_file", kind: "file", usage: "API key, in place of the environment variable"},
	{name: "api-key-header", key: "target.api_key_header", kind: "name", usage: "header that the API key goes into, such as api-key"},
	{name: "client-cert-file", key: "target.client_cert_file", kind: "file", usage: "certificate to show to the server (PEM)"},
	{name: "client-key-file", key: "target.client_key_file", kind: "file", usage: "its private key (PEM)"},
	{name: "server-name", key: "target.server_name", kind: "name", usage: "name that the server's certificate must be for, where it is not the URL's host"},
	{name: "ca-file", key: "target.ca_file", kind: "file", usage: "trust the certificates in this PEM file"},

	{name: "rate", key: "load.rate", kind: "requests/s", usage: "open loop: requests per second"},
	{name: "concurrency", key: "load.concurrency", kind: "n", usage: "closed loop: requests in flight"},
	{name: "stage", key: "load.stages", kind: "rate=R,duration=D", usage: "a part of the load (repeatable); further keys: see docs/spec.md"},
	{name: "requests", key: "load.requests", kind: "n", usage: "send exactly this many"},
	{name: "duration", key: "load.duration", kind: "duration", usage: "send for this long"},
	{name: "warmup", key: "load.warmup", kind: "duration", usage: "load before it that no total counts"},
	{name: "drain", key: "load.drain", kind: "duration", usage: "longest wait for replies after the last stage"},
	{name: "seed", key: "load.seed", kind: "n", usage: "seed of everything random"},
	{name: "arrival", key: "load.arrival", kind: "name", usage: strings.Join(plan.Arrivals(), ", "), words: plan.Arrivals()},
	{name: "burstiness", key: "load.burstiness", kind: "shape", usage: "gamma or Weibull shape: 1 is Poisson, below 1 comes in bursts"},
	{name: "states", key: "load.states", kind: "'W:SOJOURN …'", usage: "states of --arrival mmpp: '10:2s 1:8s'; weight 0 is off"},
	{name: "clients", key: "load.clients", kind: "'SHARE:ARRIVAL …'", usage: "clients of --arrival clients: '50:gamma:0.2 1:poisson*30'"},
	{name: "think-time", key: "load.think_time", kind: "duration", usage: "closed loop: mean time from a reply to the next request"},
	{name: "think-process", key: "load.think_process", kind: "name", usage: "think times: constant or exponential", words: []string{plan.ThinkConstant, plan.ThinkExponential}},
	{name: "max-in-flight", key: "load.max_in_flight", kind: "n", usage: "admission limit of open stages; the wait counts from due"},

	{name: "input-tokens", key: "workload.input_tokens", kind: "lengths", usage: "prompt length: a number, or like 'normal(512,128)'; see docs/workloads.md"},
	{name: "output-tokens", key: "workload.output_tokens", kind: "lengths", usage: "answer length asked for, likewise"},
	{name: "ignore-eos", key: "workload.ignore_eos", usage: "ask the server to go on to --output-tokens"},
	{name: "temperature", key: "workload.temperature", kind: "t", usage: "sampling temperature"},
	{name: "top-p", key: "workload.top_p", kind: "p", usage: "nucleus sampling"},
	{name: "sampling", key: "workload.sampling", kind: "name", usage: "what they are unless given: greedy or product", words: []string{plan.SamplingGreedy, plan.SamplingProduct}},
	{name: "sampling-seed", key: "workload.sampling_seed", kind: "n", usage: "seed that the server is to sample with"},
	{name: "text", key: "workload.text", kind: "name", usage: "prompts of words, markov, corpus, random or ids", words: []string{plan.TextWords, plan.TextMarkov, plan.TextCorpus, plan.TextRandom, plan.TextIDs}},
	{name: "text-file", key: "workload.text_file", kind: "file", usage: "text that markov and corpus take words from"},
	{name: "tokenizer", key: "workload.tokenizer", kind: "file", usage: "the model's tokenizer, or embedded"},
	{name: "chat-template", key: "workload.chat_template", kind: "file", usage: "the model's chat template, whose tokens count too"},
	{name: "system-tokens", key: "workload.system_tokens", kind: "n", usage: "length of a system message that all requests have"},
	{name: "prefix-groups", key: "workload.prefix.groups", kind: "n", usage: "number of prefixes that prompts share"},
	{name: "prefix-tokens", key: "workload.prefix.tokens", kind: "n", usage: "their length, beside --input-tokens"},
	{name: "prefix-zipf", key: "workload.prefix.zipf", kind: "s", usage: "how unlike they are used; 0 for all alike"},
	{name: "cache", key: "workload.cache", kind: "name", usage: "as-is, cold, salted or warm", words: []string{plan.CacheAsIs, plan.CacheCold, plan.CacheSalted, plan.CacheWarm}},
	{name: "class", key: "workload.classes", kind: "name=N,weight=W", usage: "a kind of requests (repeatable); further keys: see docs/spec.md"},
	{name: "turns", key: "workload.conversation.turns", kind: "lengths", usage: "turns of a session: a number, or like 'uniform(2,8)'; loads then count sessions"},
	{name: "turn-think-time", key: "workload.conversation.think_time", kind: "duration", usage: "mean time from a reply to the next turn"},
	{name: "turn-think-process", key: "workload.conversation.think_process", kind: "name", usage: "those times: constant or exponential", words: []string{plan.ThinkConstant, plan.ThinkExponential}},
	{name: "history", key: "workload.conversation.history", kind: "name", usage: "what later turns say was replied: live or recorded", words: []string{plan.HistoryLive, plan.HistoryRecorded}},
	{name: "tools", key: "workload.tools", kind: "file", usage: "definitions of tools that each request has"},
	{name: "images", key: "workload.images.count", kind: "n", usage: "pictures beside each prompt"},
	{name: "image-width", key: "workload.images.width", kind: "pixels", usage: "their width"},
	{name: "image-height", key: "workload.images.height", kind: "pixels", usage: "their height"},
	{name: "image-format", key: "workload.images.format", kind: "name", usage: "png or jpeg", words: []string{"png", "jpeg"}},
	{name: "dataset", key: "workload.dataset.file", kind: "file", usage: "conversations and prompts from a file"},
	{name: "dataset-format", key: "workload.dataset.format", kind: "name", usage: "its form, where it is not told by the file"},
	{name: "dataset-preset", key: "workload.dataset.preset", kind: "name", usage: "which rows: the rules of vllm, sglang, guidellm, inference-perf"},
	{name: "dataset-columns", key: "workload.dataset.columns", kind: "'USE=NAME …'", usage: "columns: 'prompt=question output=answer'"},
	{name: "dataset-template", key: "workload.dataset.template", kind: "text", usage: "prompt of several columns: 'Q: {{question}}'"},
	{name: "dataset-turns", key: "workload.dataset.turns", kind: "name", usage: "whole, first-two, each-human or chat"},
	{name: "dataset-order", key: "workload.dataset.order", kind: "name", usage: "file, shuffled or python"},
	{name: "dataset-output", key: "workload.dataset.output", kind: "name", usage: "recorded lengths, or those asked for", words: []string{plan.OutputRecorded, plan.OutputAsked}},
	{name: "trace", key: "workload.trace.file", kind: "file", usage: "replay a recording of real load"},
	{name: "trace-format", key: "workload.trace.format", kind: "name", usage: "its form, where it is not told by the file"},
	{name: "trace-scale", key: "workload.trace.scale", kind: "factor", usage: "multiply its times: 0.5 is twice the rate"},
	{name: "trace-thin", key: "workload.trace.thin", kind: "fraction", usage: "send only this part of its requests"},
	{name: "trace-from", key: "workload.trace.from", kind: "duration", usage: "start of the part that is used"},
	{name: "trace-until", key: "workload.trace.until", kind: "duration", usage: "end of that part"},
	{name: "trace-sessions", key: "workload.trace.sessions", usage: "send its sessions whole: a call waits for those that it came after; loads then count sessions"},
	{name: "trace-pauses", key: "workload.trace.pauses", kind: "name", usage: "between them: recorded, think or none", words: []string{plan.PausesRecorded, plan.PausesThink, plan.PausesNone}},
	{name: "trace-max-gap", key: "workload.trace.max_gap", kind: "duration", usage: "cut longer pauses to this"},
	{name: "trace-sort", key: "workload.trace.sort", usage: "put its times in order"},

	{name: "slo", key: "slo", kind: "'METRIC<LIMIT'", usage: "an objective (repeatable): 'tpot<50ms' of each request, 'ttft.p99<500ms' of all; see docs/metrics.md"},
	{name: "slo-target", key: "slo_target", kind: "share", usage: "share of the planned requests that is to be good"},

	{name: "engine", key: "client.engine", kind: "name", usage: "auto, epoll or goroutine", words: []string{"auto", "epoll", "goroutine"}},
	{name: "loops", key: "client.loops", kind: "n", usage: "event loops or pacers; 0 to choose"},
	{name: "procs", key: "client.procs", kind: "n", usage: "GOMAXPROCS; 0 to choose"},
	{name: "connections", key: "client.connections", kind: "n", usage: "connections made before the start; 0 to choose"},
	{name: "spin", key: "client.spin", kind: "duration", usage: "busy wait before each due time, to send more exactly; costs a core for the whole run"},
	{name: "metrics-url", key: "server_metrics.urls", kind: "'URL …'", usage: "the servers' metrics, in place of /metrics of each; off for none"},
	{name: "metrics-exporter", key: "server_metrics.exporters", kind: "'URL …'", usage: "metrics beside the servers: DCGM, AMD"},
	{name: "metrics-prometheus", key: "server_metrics.prometheus", kind: "URL", usage: "a Prometheus server that has them"},
	{name: "metrics-matchers", key: "server_metrics.matchers", kind: "labels", usage: "whose series are those of the servers: 'job=\"vllm\"'"},
	{name: "metrics-token", key: "server_metrics.token", kind: "env:NAME", usage: "bearer token for these URLs: env:NAME, file:PATH or google"},
	{name: "metrics-every", key: "server_metrics.every", kind: "duration", usage: "time between two samples of them"},
	{name: "out", key: "out", kind: "dir", usage: "run directory; a new one under ./runs when left out"},
}

// addSpecFlags gives c the flags of the spec, and -f. read returns the spec that they, the file and the argument make, where the
// spec of a stored plan takes the place of a file; required keys may not be missing in it.
func addSpecFlags(c *cobra.Command, required ...string) (read func(args []string, stored []byte) (plan.Spec, error)) {
	draft := new(plan.Draft)
	draft.Require(required...)
	return addFlags(c, specFlags, draft)
}

// addFlags gives c some flags of the spec, and -f. read returns the spec that they, the file, the argument and what draft has
// already make, where stored, the spec of a stored plan, takes the place of a file.
func addFlags(c *cobra.Command, flags []specFlag, draft *plan.Draft) (read func(args []string, stored []byte) (plan.Spec, error)) {
	defaults := defaultTexts()
	file := specFile{time: stamp()}
	c.Flags().StringVarP(&file.name, "file", "f", "", "read the spec from this `file`, or a config of inference-perf; - for stdin")
	c.Flags().StringVar(&file.format, "format", "", "form of --file: tare or inference-perf, where its keys do not say")
	completeWith(c, "format", formatTare, formatInferencePerf)
	for _, f := range flags {
		flag := c.Flags().VarPF(specValue{f, draft}, f.name, "", f.usage)
		flag.DefValue = defaults[f.key]
		if f.kind == "" {
			flag.NoOptDefVal = "true"
		}
		if f.words != nil {
			completeWith(c, f.name, f.words...)
		}
	}
	return func(args []string, stored []byte) (plan.Spec, error) {
		if len(args) > 0 {
			draft.Set("target.url", strings.Join(args, " "), "URL")
		}
		switch {
		case stored != nil && file.name != "":
			return plan.Spec{}, errors.New("--file: does not go with --plan, which has a spec of its own")
		case stored != nil:
			draft.Read(storedPlanFile, stored)
		default:
			if err := file.read(draft, c.InOrStdin(), c.ErrOrStderr()); err != nil {
				return plan.Spec{}, err
			}
		}
		return draft.Spec()
	}
}

// specValue is a flag's value on its way into the draft of a spec.
type specValue struct {
	flag  specFlag
	draft *plan.Draft
}

// Set passes the text on. The draft reports all mistakes together, so there is none to report here.
func (v specValue) Set(text string) error {
	v.draft.Set(v.flag.key, text, "--"+v.flag.name)
	return nil
}

func (v specValue) String() string { return "" }

func (v specValue) Type() string {
	if v.flag.kind == "" {
		return "bool"
	}
	return v.flag.kind
}

// defaultTexts are the defaults by key, for the help.
func defaultTexts() map[string]string {
	var sections map[string]any
	b, err := json.Marshal(plan.Defaults())
	if err == nil {
		err = json.Unmarshal(b, &sections)
	}
	if err != nil {
		panic(err) // the defaults do not print
	}
	texts := map[string]string{}
	flatten(texts, "", sections)
	return texts
}

// flatten puts the values of sections under their dotted names.
func flatten(to map[string]string, prefix string, sections map[string]any) {
	for name, value := range sections {
		if below, ok := value.(map[string]any); ok {
			flatten(to, prefix+name+".", below)
			continue
		}
		to[prefix+name] = fmt.Sprint(value)
	}
}
