package infperf

import "strings"

// use is what a key of the config comes to.
type use string

const (
	works   use = "works"
	idle    use = "no effect" // accepted: it does not change the load
	refused use = "refused"
)

// key is one key of the config. Those below a key that is refused, or that takes any value, are not in the table.
type key struct {
	path  string // "load.stages[].rate"
	use   use
	open  bool // any keys may be below it
	about string
	hint  string // what to do, where it is refused
}

const (
	asLengths = "a distribution of lengths, see below"
	noReport  = "what is written down is tare's own: tare report shows it"
	noUpload  = "nothing is uploaded: the run directory can be"
	noBreaker = "a run is not stopped by such rules"
	noFetch   = "nothing is fetched"
	noSearch  = "the stages do not follow from a burst of requests"
)

// keys is every key of the config: reading, refusing, noting and docs/inference-perf.md come from it.
var keys = []key{
	{path: "api.type", use: works, about: "`target.endpoint`: completion is openai-completions, chat openai-chat, anthropic_messages anthropic-messages"},
	{path: "api.streaming", use: works, about: "`target.stream`; false where it is not given, as there"},
	{path: "api.headers", use: works, open: true, about: "`target.headers`"},
	{path: "api.slo_unit", use: idle, about: "objectives in headers are sent and not judged"},
	{path: "api.slo_ttft_header", use: idle, about: "objectives in headers are sent and not judged"},
	{path: "api.slo_tpot_header", use: idle, about: "objectives in headers are sent and not judged"},
	{path: "api.response_format", use: works, open: true, about: "`target.response_format` with api.type chat; the others have none there either"},
	{path: "api.session_id_header_key", use: works, about: "`target.session_header`; the names of sessions are tare's own"},
	{path: "api.session_token_header_key", use: works, about: "accepted where every session is a request, which has nothing to send back; refused with conversations"},

	{path: "data.type", use: works, about: "see the table of data types"},
	{path: "data.path", use: works, about: "`workload.dataset.file`"},
	{path: "data.corpus_file_path", use: works, about: "`workload.text_file` of synthetic; without it the text that comes with tare"},
	{path: "data.input_distribution", use: works, open: true, about: "`workload.input_tokens`: " + asLengths},
	{path: "data.output_distribution", use: works, open: true, about: "`workload.output_tokens`: " + asLengths},
	{path: "data.trace.file", use: works, about: "`workload.trace.file`: the lengths"},
	{path: "data.trace.format", use: works, about: "`workload.trace.format`: AzurePublicDataset is azure"},
	{path: "data.use_chat_template", use: works, about: "`target.endpoint` openai-chat, where the server puts the template around the prompt; `workload.chat_template` where the tokenizer's folder has it, so that its tokens count"},
	{path: "data.shared_prefix.num_unique_system_prompts", use: works, about: "`workload.prefix.groups`; num_groups is the same; 10"},
	{path: "data.shared_prefix.num_groups", use: works, about: "`workload.prefix.groups`"},
	{path: "data.shared_prefix.num_users_per_system_prompt", use: idle, about: "questions do not repeat: each request has one of its own"},
	{path: "data.shared_prefix.num_prompts_per_group", use: idle, about: "questions do not repeat: each request has one of its own"},
	{path: "data.shared_prefix.system_prompt_len", use: works, open: true, about: "`workload.prefix.tokens`, one length; `workload.prefix.block` is the largest divisor it has in common with 16; 100"},
	{path: "data.shared_prefix.question_len", use: works, open: true, about: "`workload.input_tokens`; 50"},
	{path: "data.shared_prefix.output_len", use: works, open: true, about: "`workload.output_tokens`; 50"},
	{path: "data.shared_prefix.question_distribution", use: works, open: true, about: "`workload.input_tokens`, an older form of question_len"},
	{path: "data.shared_prefix.output_distribution", use: works, open: true, about: "`workload.output_tokens`, an older form of output_len"},
	{path: "data.shared_prefix.seed", use: works, about: "`load.seed`, where load.base_seed is not given"},
	{path: "data.shared_prefix.enable_multi_turn_chat", use: refused, about: "sessions that have a prefix in common and say the same in every turn are not made", hint: "workload.conversation.turns makes sessions of several turns"},
	{path: "data.shared_prefix.multimodal", use: refused, open: true, about: "media do not go with prefixes here", hint: "workload.images.count puts pictures beside each prompt"},
	{path: "data.conversation_replay.seed", use: works, about: "`load.seed`, where load.base_seed is not given"},
	{path: "data.conversation_replay.num_conversations", use: idle, about: "conversations do not repeat: there are as many as the load asks for"},
	{path: "data.conversation_replay.shared_system_prompt_len", use: works, about: "`workload.system_tokens`; 8359"},
	{path: "data.conversation_replay.dynamic_system_prompt_len", use: works, open: true, about: "`workload.conversation.system_tokens`"},
	{path: "data.conversation_replay.turns_per_conversation", use: works, open: true, about: "`workload.conversation.turns`; a load of N requests there is N over the mean number of turns, in conversations; 10"},
	{path: "data.conversation_replay.input_tokens_per_turn", use: works, open: true, about: "`workload.input_tokens`; 512"},
	{path: "data.conversation_replay.output_tokens_per_turn", use: works, open: true, about: "`workload.output_tokens`; 256"},
	{path: "data.conversation_replay.tool_call_latency_sec", use: works, open: true, about: "`workload.conversation.think_time`, one length; it is no part of a latency"},
	{path: "data.conversation_replay.max_model_len", use: works, about: "accepted where no conversation can be as long; histories are not cut"},
	{path: "data.multimodal.image.count", use: works, open: true, about: "`workload.images.count`, 1 at least; 1"},
	{path: "data.multimodal.image.insertion_point", use: works, open: true, about: "`workload.images.place`: 0 is before the text, 1 behind it; else before, which is noted"},
	{path: "data.multimodal.image.resolutions", use: works, open: true, about: "`workload.images.sizes`; 512 × 512"},
	{path: "data.multimodal.image.representation", use: works, about: "`workload.images.format`: png or jpeg; webp is not written"},
	{path: "data.multimodal.video.count", use: works, open: true, about: "`workload.videos.count`, 1 at least; 1"},
	{path: "data.multimodal.video.insertion_point", use: works, open: true, about: "`workload.videos.place`"},
	{path: "data.multimodal.video.profiles", use: works, open: true, about: "`workload.videos.sizes` and `frames`, which is the same for all; 512 × 512, 10 frames"},
	{path: "data.multimodal.video.representation", use: works, about: "mp4; videos are not sent as pictures"},
	{path: "data.multimodal.audio.count", use: works, open: true, about: "`workload.audio.count`, 1 at least; 1"},
	{path: "data.multimodal.audio.insertion_point", use: works, open: true, about: "`workload.audio.place`"},
	{path: "data.multimodal.audio.durations", use: works, open: true, about: "`workload.audio.lengths`; 1 s"},
	{path: "data.otel_trace_replay.trace_directory", use: works, about: "`workload.trace.file`, with `workload.trace.sessions`; one of directory and files"},
	{path: "data.otel_trace_replay.trace_files", use: works, open: true, about: "`workload.trace.file`: one file or pattern"},
	{path: "data.otel_trace_replay.hf_dataset_path", use: refused, open: true, about: "nothing is fetched", hint: "put the files into a folder, and set trace_directory"},
	{path: "data.otel_trace_replay.filter", use: works, about: "`workload.trace.min_calls` and `max_calls`, where it compares the number of spans with one number: lambda x: len(x['spans']) > 2; no other Python is run"},
	{path: "data.otel_trace_replay.use_static_model", use: works, about: "`target.model` static_model_name"},
	{path: "data.otel_trace_replay.static_model_name", use: works, about: "see use_static_model"},
	{path: "data.otel_trace_replay.model_mapping", use: works, open: true, about: "`workload.trace.models`; recorded models that it does not name go to target.model"},
	{path: "data.otel_trace_replay.default_max_tokens", use: works, about: "`workload.output_tokens`, where a call has neither a counted output nor max_tokens; 1000"},
	{path: "data.otel_trace_replay.override_tool_call_max_tokens", use: idle, about: "replies that call tools are asked for at their recorded length, and no tool is forced"},
	{path: "data.otel_trace_replay.inject_random_session_id", use: works, about: "`workload.cache` cold: words of its own before each session"},
	{path: "data.otel_trace_replay.duplicate_sessions_target", use: works, about: "`workload.trace.min_sessions`"},
	{path: "data.otel_trace_replay.max_wait_ms", use: works, about: "`workload.trace.max_gap`; 15000"},
	{path: "data.otel_trace_replay.predecessor_wait_timeout_sec", use: idle, about: "a call waits for those before it until they end, which target.timeout sees to"},
	{path: "data.otel_trace_replay.include_errors", use: works, about: "true; calls that failed when they were recorded are sent like others"},
	{path: "data.otel_trace_replay.skip_invalid_files", use: refused, about: "a file that cannot be read is an error; calls that cannot be used are counted and named", hint: "take it out of the folder"},
	{path: "data.otel_trace_replay.disable_output_substitution", use: works, about: "`workload.conversation.history`: false is live, true recorded"},
	{path: "data.otel_trace_replay.attribute_to_header_map", use: works, open: true, about: "`workload.trace.headers`"},
	{path: "data.otel_trace_replay.attribute_to_label_map", use: works, open: true, about: "`workload.trace.class`: one attribute"},
	{path: "data.otel_trace_replay.bad_tool_call_handling", use: idle, about: "calls of tools in histories are the recorded ones"},
	{path: "data.weka_trace_replay.trace_directory", use: works, about: "`workload.trace.file`, with `workload.trace.sessions`; one of directory and files"},
	{path: "data.weka_trace_replay.trace_files", use: works, open: true, about: "`workload.trace.file`: one file or pattern"},
	{path: "data.weka_trace_replay.hf_dataset_path", use: refused, open: true, about: "nothing is fetched", hint: "put the files into a folder, and set trace_directory"},
	{path: "data.weka_trace_replay.use_static_model", use: works, about: "`target.model` static_model_name"},
	{path: "data.weka_trace_replay.static_model_name", use: works, about: "see use_static_model"},
	{path: "data.weka_trace_replay.model_mapping", use: works, open: true, about: "`workload.trace.models`; recorded models that it does not name go to target.model"},
	{path: "data.weka_trace_replay.default_max_tokens", use: idle, about: "every call has a recorded length"},
	{path: "data.weka_trace_replay.override_tool_call_max_tokens", use: idle, about: "replies are asked for at their recorded length, and no tool is forced"},
	{path: "data.weka_trace_replay.inject_random_session_id", use: works, about: "`workload.cache` cold: words of its own before each call"},
	{path: "data.weka_trace_replay.duplicate_sessions_target", use: works, about: "`workload.trace.min_sessions`"},
	{path: "data.weka_trace_replay.max_wait_ms", use: works, about: "the shorter of it and trace_idle_gap_cap_seconds is `workload.trace.max_gap`"},
	{path: "data.weka_trace_replay.predecessor_wait_timeout_sec", use: idle, about: "a call waits for those before it until they end, which target.timeout sees to"},
	{path: "data.weka_trace_replay.include_errors", use: idle, about: "no call is recorded as failed"},
	{path: "data.weka_trace_replay.skip_invalid_files", use: refused, about: "a file that cannot be read is an error; calls that cannot be used are counted and named", hint: "take it out of the folder"},
	{path: "data.weka_trace_replay.trace_idle_gap_cap_seconds", use: works, about: "`workload.trace.max_gap`; 60"},
	{path: "data.weka_trace_replay.ignore_trace_delays", use: works, about: "`workload.trace.pauses` none"},
	{path: "data.weka_trace_replay.use_think_time_only", use: works, about: "`workload.trace.pauses` think"},
	{path: "data.weka_trace_replay.default_block_size", use: works, about: "64, which is that of files that do not say; another one is refused"},
	{path: "data.weka_trace_replay.num_dataset_entries", use: idle, about: "all conversations of the files are used"},
	{path: "data.visionarena.hf_dataset_name", use: idle, about: noFetch},
	{path: "data.visionarena.hf_split", use: idle, about: noFetch},
	{path: "data.visionarena.hf_data_files", use: idle, open: true, about: noFetch},
	{path: "data.visionarena.num_rows", use: idle, about: "no picture and no text is sent twice"},
	{path: "data.visionarena.max_images_per_request", use: works, about: "`workload.images.count`: pictures of our own, in place of those that would be fetched; 1"},
	{path: "data.visionarena.insertion_point", use: works, about: "`workload.images.place`: 0 is before the text, 1 behind it; 0"},

	{path: "load.type", use: works, about: "see the table of load types"},
	{path: "load.interval", use: works, about: "`gap` of every stage but the first; 1 s"},
	{path: "load.stages[].rate", use: works, about: "`rate`"},
	{path: "load.stages[].duration", use: works, about: "`requests`, which is rate × duration without its fraction"},
	{path: "load.stages[].num_requests", use: works, about: "`requests` of a concurrent load"},
	{path: "load.stages[].concurrency_level", use: works, about: "`concurrency`"},
	{path: "load.stages[].concurrent_sessions", use: works, about: "`concurrency` of sessions; 0, all at once, is a constant rate of a million a second"},
	{path: "load.stages[].session_rate", use: works, about: "`start_rate`: of the first sessions; each later one begins as soon as another has ended"},
	{path: "load.stages[].num_sessions", use: works, about: "`requests`, which counts sessions; without it those that are left"},
	{path: "load.stages[].timeout", use: works, about: "`duration`: then no more is sent"},
	{path: "load.sweep.type", use: works, about: "steps of closed stages: linear by equal differences, geometric by equal factors; a rate is not searched for"},
	{path: "load.sweep.num_requests", use: idle, about: noSearch},
	{path: "load.sweep.timeout", use: idle, about: noSearch},
	{path: "load.sweep.num_stages", use: works, about: "number of stages, from `concurrency` 1 to num_workers × worker_max_concurrency where both are given, or else 128; 5"},
	{path: "load.sweep.stage_duration", use: works, about: "`duration` of each; 180"},
	{path: "load.sweep.saturation_percentile", use: idle, about: noSearch},
	{path: "load.num_workers", use: idle, about: "there are no workers: event loops share the cores, see client.loops"},
	{path: "load.worker_max_concurrency", use: works, about: "`max_in_flight` of a load with rates, times num_workers where that is given; without, there is no limit"},
	{path: "load.worker_max_tcp_connections", use: idle, about: "there is a connection for each request in flight"},
	{path: "load.trace.file", use: works, about: "`workload.trace.file`: the times; data.trace must be the same file"},
	{path: "load.trace.format", use: works, about: "`workload.trace.format`: AzurePublicDataset is azure"},
	{path: "load.circuit_breakers", use: idle, open: true, about: noBreaker},
	{path: "load.request_timeout", use: works, about: "`target.timeout`; 300 s, as there"},
	{path: "load.lora_traffic_split[].name", use: works, about: "`name` and `model` of a class"},
	{path: "load.lora_traffic_split[].split", use: works, about: "`weight` of a class"},
	{path: "load.base_seed", use: works, about: "`load.seed`; 1 (conversation_replay: 42), not the time"},

	{path: "server.type", use: works, about: "vllm, sglang and tgi speak alike; mock is no server"},
	{path: "server.model_name", use: works, about: "`target.model`; the server is not asked for it"},
	{path: "server.base_url", use: works, about: "`target.url`"},
	{path: "server.ignore_eos", use: works, about: "`workload.ignore_eos`, true where it is not given, as there; not with anthropic_messages"},
	{path: "server.api_key", use: works, about: "header `Authorization`, or `x-api-key` with anthropic_messages; never printed"},
	{path: "server.cert_path", use: works, about: "`target.client_cert_file`"},
	{path: "server.key_path", use: works, about: "`target.client_key_file`"},

	{path: "tokenizer.pretrained_model_name_or_path", use: works, about: "`workload.tokenizer`, a file or a folder that has tokenizer.json; a model's name is not looked up"},
	{path: "tokenizer.trust_remote_code", use: idle, about: "no code is fetched"},
	{path: "tokenizer.token", use: idle, about: "nothing is fetched"},

	{path: "metrics.type", use: works, about: "prometheus is `server_metrics.prometheus`; without it /metrics of each server is looked at"},
	{path: "metrics.prometheus", use: works, open: true, about: "`server_metrics.prometheus` url, `server_metrics.matchers` filters; scrape_interval has no effect: each look of Prometheus' counts once. google_managed is refused: write its base as url, and server_metrics.token google"},

	{path: "report.request_lifecycle", use: idle, open: true, about: noReport},
	{path: "report.session_lifecycle", use: idle, open: true, about: noReport},
	{path: "report.prometheus", use: idle, open: true, about: noReport},
	{path: "report.goodput.constraints.ttft", use: works, about: "`slo`: ttft, seconds; good requests are counted of all planned ones, there of the successful ones"},
	{path: "report.goodput.constraints.tpot", use: works, about: "`slo`: tpot"},
	{path: "report.goodput.constraints.itl", use: works, about: "`slo`: tpot, since they compare the mean gap of a request"},
	{path: "report.goodput.constraints.ntpot", use: works, about: "`slo`: ntpot"},
	{path: "report.goodput.constraints.request_latency", use: works, about: "`slo`: e2e"},

	{path: "storage.local_storage.path", use: works, about: "`out`; {timestamp} is the time"},
	{path: "storage.local_storage.report_file_prefix", use: idle, about: "the files of a run directory have their own names"},
	{path: "storage.google_cloud_storage", use: idle, open: true, about: noUpload},
	{path: "storage.simple_storage_service", use: idle, open: true, about: noUpload},

	{path: "circuit_breakers", use: idle, open: true, about: noBreaker},
}

// find returns the key of a path, or the one around it that takes any; inside says that the path is that of a section.
func find(path string) (k *key, inside bool) {
	path = anyIndex(path)
	for i := range keys {
		k := &keys[i]
		switch rest, below := strings.CutPrefix(path, k.path); {
		case path == k.path || k.open && below && (rest[0] == '.' || rest[0] == '['):
			return k, false
		case strings.HasPrefix(k.path, path+".") || strings.HasPrefix(k.path, path+"[]"):
			inside = true
		}
	}
	return nil, inside
}

// isList says that a section is a list.
func isList(path string) bool {
	path = anyIndex(path) + "[]"
	for i := range keys {
		if strings.HasPrefix(keys[i].path, path) {
			return true
		}
	}
	return false
}

// anyIndex writes the indexes of a path as [].
func anyIndex(path string) string {
	var b strings.Builder
	skip := false
	for _, c := range path {
		switch c {
		case ']':
			skip = false
		case '[':
			b.WriteRune(c)
			skip = true
			continue
		}
		if !skip {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// below lists the names right below a section.
func below(path string) (names []string) {
	prefix := anyIndex(path)
	if prefix != "" {
		prefix += "."
	}
	seen := map[string]bool{}
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.path, prefix)
		if !ok {
			continue
		}
		name := rest
		if i := strings.IndexAny(rest, ".["); i >= 0 {
			name = rest[:i]
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
