package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tare/internal/objective"
	"tare/internal/plan/dataset"
	"tare/internal/plan/draw"
	"tare/internal/plan/trace"
	"tare/internal/plan/workload"
)

// key describes one key of T: where its value is, what it means and which values it takes. Reading, checking, printing, the
// JSON Schema and the documentation all come from the two tables of keys.
type key[T any] struct {
	name  string       // dotted path
	field func(*T) any // pointer to the value
	about string       // what it means, for people
	unit  string       // of a number; empty for none
	least float64      // smallest value; seconds for a duration
	most  float64      // largest value
	above bool         // the value must be above least, not equal to it
	oneOf []string     // the only values of a text
	loose bool         // the zero value stands for a key that is not given
	lines bool         // a text may have line breaks and tabs
	rule  rule[T]      // a further rule; nil for none
	hint  string       // what to do about a value that will not do
}

// rule says why a value will not do, and what to do about it. An empty reason means that it will do, an empty hint that the
// key's own is right.
type rule[T any] func(T) (reason, hint string)

const month = 30 * 24 * 3600 // seconds

var specKeys = []key[Spec]{
	{
		name: "target.url", field: func(s *Spec) any { return &s.Target.URL }, loose: true,
		about: "Server: a base (http://host:port, with or without a prefix, to which the endpoint's path is added) or the full path of the endpoint. unix:///PATH.sock is one behind a Unix socket. Several, separated by spaces, take the requests in turn.",
		rule:  func(s Spec) (reason, hint string) { return s.Target.urlFault() }, hint: "write http://HOST:PORT, https:// or unix:///PATH.sock",
	},
	{
		name: "target.model", field: func(s *Spec) any { return &s.Target.Model }, loose: true,
		about: "Name of the model, as the server knows it.",
	},
	{
		name: "target.endpoint", field: func(s *Spec) any { return &s.Target.Endpoint },
		oneOf: Endpoints(),
		about: "What is spoken: OpenAI's chat, completions or responses, Anthropic's messages, Gemini, a server's own endpoint, or one that target.template describes.",
	},
	{
		name: "target.stream", field: func(s *Spec) any { return &s.Target.Stream },
		about: "Ask for the answer token by token. Without it there is no time to first token.",
	},
	{
		name: "target.continuous_usage", field: func(s *Spec) any { return &s.Target.ContinuousUsage },
		about: "Ask for token counts in every event (vLLM); other servers may refuse it.",
	},
	{
		name: "target.return_token_ids", field: func(s *Spec) any { return &s.Target.ReturnTokenIDs },
		about: "Ask for the ids of the tokens in every event (vLLM), which makes the tokens of each event exact; other servers may refuse it.",
	},
	{
		name: "target.headers", field: func(s *Spec) any { return &s.Target.Headers }, loose: true,
		about: "Further request headers by name. A value env:NAME or file:PATH is read from there. Secret values are sent but never printed or stored.",
	},
	{
		name: "target.session_header", field: func(s *Spec) any { return &s.Target.SessionHeader }, loose: true,
		about: "Header that names the session of each request, tare-NUMBER, for routers that keep sessions together. A request without turns is a session.",
		rule:  func(s Spec) (reason, hint string) { return s.Target.sessionHeaderFault(), "" },
	},
	{
		name: "target.response_format", field: func(s *Spec) any { return &s.Target.ResponseFormat }, loose: true, lines: true,
		about: "JSON object that each request has as response_format, for answers of a form (OpenAI's chat and completions).",
		rule:  func(s Spec) (reason, hint string) { return s.Target.responseFormatFault(), "" },
		hint:  `write '{"type": "json_object"}'`,
	},
	{
		name: "target.api_key_env", field: func(s *Spec) any { return &s.Target.APIKeyEnv },
		about: "Environment variable that holds the API key; ANTHROPIC_API_KEY or GEMINI_API_KEY with these endpoints. No key is sent if it is not set, or if this is empty.",
	},
	{
		name: "target.api_key_file", field: func(s *Spec) any { return &s.Target.APIKeyFile }, loose: true,
		about: "File whose first line is the API key, in place of the environment variable.",
	},
	{
		name: "target.api_key_header", field: func(s *Spec) any { return &s.Target.APIKeyHeader }, loose: true,
		about: "Header that the API key goes into, such as api-key; without it the endpoint's own: Authorization as a bearer token, with most.",
		rule:  func(s Spec) (reason, hint string) { return headerFault(s.Target.APIKeyHeader, "key"), "" },
	},
	{
		name: "target.timeout", field: func(s *Spec) any { return &s.Target.Timeout }, above: true, most: month,
		about: "Longest time of a whole request, from its first write.",
	},
	{
		name: "target.header_timeout", field: func(s *Spec) any { return &s.Target.HeaderTimeout }, most: month,
		about: "Longest time from the first write to the end of the reply's header block; 0 for none but timeout.",
	},
	{
		name: "target.first_token_timeout", field: func(s *Spec) any { return &s.Target.FirstTokenTimeout }, most: month,
		about: "Longest time from the first write to the first token; comments and roles are none. 0 for none but timeout.",
	},
	{
		name: "target.token_timeout", field: func(s *Spec) any { return &s.Target.TokenTimeout }, most: month,
		about: "Longest time from one token event to the next, or to the end marker; comments are none. 0 for none but timeout.",
	},
	{
		name: "target.retries", field: func(s *Spec) any { return &s.Target.Retries }, most: 100,
		about: "How often a request is sent again that got no token for want of a connection, by 429 or 503, or by a reset before the header; latencies count from the first attempt.",
	},
	{
		name: "target.connect_timeout", field: func(s *Spec) any { return &s.Target.ConnectTimeout }, above: true, most: month,
		about: "Longest time for a connection to be made.",
	},
	{
		name: "target.idle_timeout", field: func(s *Spec) any { return &s.Target.IdleTimeout }, above: true, most: month,
		about: "Idle connections are closed after this time; it should be shorter than the server's own.",
	},
	{
		name: "target.http", field: func(s *Spec) any { return &s.Target.HTTP },
		oneOf: []string{HTTP11, HTTP2},
		about: "Version of HTTP. With 2, requests share connections, and the kernel's receive stamps of each are lost.",
	},
	{
		name: "target.reuse", field: func(s *Spec) any { return &s.Target.Reuse },
		about: "Send one request after another over a connection. Without it each has a connection of its own, made when it is due.",
	},
	{
		name: "target.insecure", field: func(s *Spec) any { return &s.Target.Insecure },
		about: "Do not check the server's certificate. The report says so.",
	},
	{
		name: "target.ca_file", field: func(s *Spec) any { return &s.Target.CAFile }, loose: true,
		about: "PEM file of the certificate authorities to trust instead of the system's.",
	},
	{
		name: "target.client_cert_file", field: func(s *Spec) any { return &s.Target.ClientCertFile }, loose: true,
		about: "PEM file of the certificate to show to the server, with those between it and its authority.",
	},
	{
		name: "target.client_key_file", field: func(s *Spec) any { return &s.Target.ClientKeyFile }, loose: true,
		about: "PEM file of that certificate's private key.",
	},
	{
		name: "target.server_name", field: func(s *Spec) any { return &s.Target.ServerName }, loose: true,
		about: "Name that the server's certificate must be for, and that TLS asks for, where it is not the URL's host.",
	},
	{
		name: "target.template.path", field: func(s *Spec) any { return &s.Target.Template.Path }, loose: true,
		rule: func(s Spec) (reason, hint string) { return s.Target.Template.pathFault() }, hint: "write /v1/generate",
		about: "Path of the endpoint template, added to a base URL. Without it target.url is complete.",
	},
	{
		name: "target.template.body", field: func(s *Spec) any { return &s.Target.Template.Body }, loose: true, lines: true,
		about: "Body of its requests: JSON in which {{prompt}}, {{messages}}, {{prompt_ids}}, {{model}}, {{max_tokens}}, {{temperature}}, {{top_p}}, {{seed}}, {{stream}}, {{ignore_eos}}, {{tools}}, {{cache_salt}} and {{priority}} stand in place of values.",
		hint:  `write {"prompt": {{prompt}}, "max_tokens": {{max_tokens}}}`,
	},
	{
		name: "target.template.text", field: func(s *Spec) any { return &s.Target.Template.Text }, loose: true,
		about: "Where its replies have text of the answer: a JSON Pointer such as /choices/0/delta/content.",
		hint:  `write /text for {"text": …}`,
	},
	{
		name: "target.template.reasoning", field: func(s *Spec) any { return &s.Target.Template.Reasoning }, loose: true,
		about: "Where they have text of the reasoning.",
	},
	{
		name: "target.template.usage_input", field: func(s *Spec) any { return &s.Target.Template.UsageInput }, loose: true,
		about: "Where they have the number of prompt tokens.",
	},
	{
		name: "target.template.usage_cached", field: func(s *Spec) any { return &s.Target.Template.UsageCached }, loose: true,
		about: "Where they have the number of prompt tokens that came from a cache.",
	},
	{
		name: "target.template.usage_output", field: func(s *Spec) any { return &s.Target.Template.UsageOutput }, loose: true,
		about: "Where they have the number of generated tokens, so far or in all.",
	},
	{
		name: "target.template.finish", field: func(s *Spec) any { return &s.Target.Template.Finish }, loose: true,
		about: "Where they have a finish reason, or a true that stands for one.",
	},
	{
		name: "target.template.error", field: func(s *Spec) any { return &s.Target.Template.Error }, loose: true,
		about: "Where they have something only if a request failed.",
	},
	{
		name: "target.template.done", field: func(s *Spec) any { return &s.Target.Template.Done }, loose: true,
		about: "Data of the event that ends a stream; [DONE] always does. Without this and finish, the end of the body is the end of the answer.",
	},
	{
		name: "target.template.framing", field: func(s *Spec) any { return &s.Target.Template.Framing }, loose: true,
		oneOf: []string{FramingSSE, FramingLines, FramingDocument},
		about: "How replies are taken apart: server-sent events, lines of JSON, or not at all. Without it, as their Content-Type and first bytes say.",
	},
	{
		name: "target.template.cumulative", field: func(s *Spec) any { return &s.Target.Template.Cumulative }, loose: true,
		about: "Each event repeats the text so far.",
	},

	{
		name: "load.seed", field: func(s *Spec) any { return &s.Load.Seed }, most: math.MaxUint64,
		about: "Seed of everything random. The same spec and seed send the same bytes at the same times.",
	},
	{
		name: "load.arrival", field: func(s *Spec) any { return &s.Load.Arrival },
		oneOf: Arrivals(),
		about: "Gaps between the requests of open stages: all equal, exponential, gamma or Weibull; a Poisson process whose rate changes between states, several clients together, or the times of workload.trace.",
	},
	{
		name: "load.burstiness", field: func(s *Spec) any { return &s.Load.Burstiness }, least: 0.05, most: 100,
		about: "Shape of gamma (1/CV²) or Weibull gaps: below 1 burstier than poisson, above 1 smoother.",
	},
	{
		name: "load.states", field: func(s *Spec) any { return &s.Load.States }, loose: true,
		about: "States of an mmpp, WEIGHT:SOJOURN each: \"10:2s 1:8s\" sends ten times as fast for 2 s in the mean as for 8 s; weight 0 is off. The mean rate is rate.",
		rule:  func(s Spec) (reason, hint string) { _, reason = parseStates(s.Load.States); return reason, statesHint },
	},
	{
		name: "load.clients", field: func(s *Spec) any { return &s.Load.Clients }, loose: true,
		about: "Clients whose arrivals are put together, SHARE:ARRIVAL[:SHAPE][*N] each: \"50:gamma:0.2 1:poisson*30\". The shares divide rate.",
		rule: func(s Spec) (reason, hint string) {
			_, reason = parseClients(s.Load.Clients)
			return reason, clientsHint
		},
	},
	{
		name: "load.think_time", field: func(s *Spec) any { return &s.Load.ThinkTime }, loose: true, above: true, most: month,
		about: "Closed loop: mean time between a reply and the next request in its place.",
	},
	{
		name: "load.think_process", field: func(s *Spec) any { return &s.Load.Think }, loose: true,
		oneOf: []string{ThinkConstant, ThinkExponential},
		about: "Whether every think time is the mean, or they are exponential, which they are unless this is given.",
	},
	{
		name: "load.warmup", field: func(s *Spec) any { return &s.Load.Warmup }, most: month,
		about: "Additional load of the first stage's kind and rate before it, left out of the totals.",
	},
	{
		name: "load.drain", field: func(s *Spec) any { return &s.Load.Drain }, most: month,
		about: "Longest wait for replies after the last stage; target.timeout unless given.",
	},
	{
		name: "load.stages", field: func(s *Spec) any { return &s.Load.Stages }, loose: true,
		about: "Parts of the load, one after another. Short forms of a single one are load.rate and load.concurrency.",
	},
	{
		name: "load.rate", field: func(s *Spec) any { return &s.Load.Rate }, loose: true, unit: "requests/s", above: true, most: maxRate,
		about: "Open loop: mean rate, whatever the replies do.",
		hint:  "for a closed loop leave rate out and set concurrency",
	},
	{
		name: "load.concurrency", field: func(s *Spec) any { return &s.Load.Concurrency }, loose: true, unit: "requests", least: 1,
		most:  1e6,
		about: "Closed loop: so many requests in flight, each sent when another has ended.",
		hint:  "for an open loop leave concurrency out and set rate",
	},
	{
		name: "load.max_in_flight", field: func(s *Spec) any { return &s.Load.MaxInFlight }, loose: true, unit: "requests", least: 1,
		most:  1e6,
		about: "Admission limit of an open loop. Requests wait for it, and the wait counts in the times from due.",
	},
	{
		name: "load.requests", field: func(s *Spec) any { return &s.Load.Requests }, loose: true, unit: "requests", least: 1,
		most:  math.MaxUint32,
		about: "End after exactly so many requests; with a duration, after whichever comes first.",
	},
	{
		name: "load.duration", field: func(s *Spec) any { return &s.Load.Duration }, loose: true, above: true, most: month,
		about: "Requests fall due for this long.",
	},

	{
		name: "workload.input_tokens", field: func(s *Spec) any { return &s.Workload.InputTokens },
		about: "Length of what a prompt has of its own: a number, uniform(LEAST,MOST), normal(MEAN,SD), lognormal(MEAN,SD), skewnormal(MEAN,SD,SHAPE), poisson(MEAN), zipf(S,N) or file(PATH), each with min=N and max=N if need be. The server's own count is reported.",
	},
	{
		name: "workload.output_tokens", field: func(s *Spec) any { return &s.Workload.OutputTokens },
		about: "Longest answer asked for, written as input_tokens.",
	},
	{
		name: "workload.ignore_eos", field: func(s *Spec) any { return &s.Workload.IgnoreEOS },
		about: "Ask the server to go on to output_tokens (vLLM, SGLang); other servers may refuse it. The report counts answers of another length.",
	},
	{
		name: "workload.sampling", field: func(s *Spec) any { return &s.Workload.Sampling }, oneOf: []string{SamplingGreedy, SamplingProduct},
		about: "What temperature and top_p are unless they are given: greedy is 0 and 1, product 0.7 and 0.95.",
	},
	{
		name: "workload.temperature", field: func(s *Spec) any { return &s.Workload.Temperature }, most: 2,
		about: "Sampling temperature, always sent.",
	},
	{
		name: "workload.top_p", field: func(s *Spec) any { return &s.Workload.TopP }, above: true, most: 1,
		about: "Nucleus sampling, always sent.",
	},
	{
		name: "workload.sampling_seed", field: func(s *Spec) any { return &s.Workload.SamplingSeed }, loose: true, most: math.MaxUint64,
		about: "Seed that the server is to sample with; none is sent without it.",
	},
	{
		name: "workload.text", field: func(s *Spec) any { return &s.Workload.Text }, oneOf: []string{TextWords, TextMarkov, TextCorpus, TextRandom, TextIDs},
		about: "Where the words of prompts come from: common words of one token each, a walk over a text, stretches of a text, random words of the vocabulary, or random token ids. All but words need tokenizer.",
	},
	{
		name: "workload.text_file", field: func(s *Spec) any { return &s.Workload.TextFile }, loose: true,
		about: "Text that markov and corpus take their words from, in place of the one that comes with tare.",
	},
	{
		name: "workload.tokenizer", field: func(s *Spec) any { return &s.Workload.Tokenizer }, loose: true,
		about: "The model's tokenizer, with which prompts have exactly as many tokens as asked: tokenizer.json, tekken.json or NAME.tiktoken; or embedded, which is no model's.",
	},
	{
		name: "workload.chat_template", field: func(s *Spec) any { return &s.Workload.ChatTemplate }, loose: true,
		about: "The model's chat template: tokenizer_config.json, or the template alone. With it the asked length of a prompt has the template's tokens in it.",
	},
	{
		name: "workload.system_tokens", field: func(s *Spec) any { return &s.Workload.SystemTokens }, loose: true, unit: "tokens", least: 1, most: workload.MaxLength,
		about: "Length of a system message that all requests have, beside input_tokens.",
	},
	{
		name: "workload.prefix.groups", field: func(s *Spec) any { return &s.Workload.Prefix.Groups }, loose: true, least: 1, most: draw.MaxCategories,
		about: "Number of prefixes that prompts share: each prompt begins with one of them.",
	},
	{
		name: "workload.prefix.tokens", field: func(s *Spec) any { return &s.Workload.Prefix.Tokens }, loose: true, unit: "tokens", least: 1, most: workload.MaxLength,
		about: "Length of each of them, beside input_tokens.",
	},
	{
		name: "workload.prefix.zipf", field: func(s *Spec) any { return &s.Workload.Prefix.Zipf }, loose: true, most: 20,
		about: "How unlike they are used: prefix k has the weight k^-zipf; 0 for all alike.",
	},
	{
		name: "workload.prefix.block", field: func(s *Spec) any { return &s.Workload.Prefix.Block }, unit: "tokens", least: 1, most: workload.MaxLength,
		about: "Block of the server's prefix cache. The prefix must be a multiple of it; what a cache that forgets nothing would find is counted in blocks.",
	},
	{
		name: "workload.cache", field: func(s *Spec) any { return &s.Workload.Cache }, oneOf: []string{CacheAsIs, CacheCold, CacheSalted, CacheWarm},
		about: "What the server's prefix cache is to find: what happens to be alike (as-is), nothing, by words of its own before each prompt (cold) or a cache_salt of its own where the endpoint has it (salted), or everything (warm: sent before, nothing is added). The report warns if the server counted otherwise.",
	},
	{
		name: "workload.tools", field: func(s *Spec) any { return &s.Workload.Tools }, loose: true,
		about: "File with the definitions of tools that each request has: a JSON array in OpenAI's form.",
	},
	{
		name: "workload.images.count", field: func(s *Spec) any { return &s.Workload.Images.Count }, loose: true,
		rule:  func(s Spec) (reason, hint string) { return mediaFault(s.Workload.Images.Count) },
		about: "Pictures beside each prompt, each of squares in colours of its own: a number of at most 64, or a distribution, written as input_tokens.",
	},
	{
		name: "workload.images.width", field: func(s *Spec) any { return &s.Workload.Images.Width }, least: 1, most: 8192,
		about: "Their width in pixels.",
	},
	{
		name: "workload.images.height", field: func(s *Spec) any { return &s.Workload.Images.Height }, least: 1, most: 8192,
		about: "Their height in pixels.",
	},
	{
		name: "workload.images.format", field: func(s *Spec) any { return &s.Workload.Images.Format }, oneOf: []string{"png", "jpeg"},
		about: "Their format.",
	},
	{
		name: "workload.images.place", field: func(s *Spec) any { return &s.Workload.Images.Place }, oneOf: []string{PlaceBefore, PlaceBehind},
		about: "Whether they stand before the text or behind it, where the endpoint leaves that open (openai-chat).",
	},
	{
		name: "workload.images.sizes", field: func(s *Spec) any { return &s.Workload.Images.Sizes }, loose: true,
		rule:  func(s Spec) (reason, hint string) { return sizesFault(s.Workload.Images.Sizes) },
		about: "Sizes that are drawn from, with weights, in place of width and height: \"1920x1080*3 640x640\".",
	},
	{
		name: "workload.videos.count", field: func(s *Spec) any { return &s.Workload.Videos.Count }, loose: true,
		rule:  func(s Spec) (reason, hint string) { return mediaFault(s.Workload.Videos.Count) },
		about: "Videos beside each prompt (openai-chat): MP4 of JPEG frames, 24 a second; a number of at most 64, or a distribution. There are four of each size.",
	},
	{
		name: "workload.videos.sizes", field: func(s *Spec) any { return &s.Workload.Videos.Sizes },
		rule:  func(s Spec) (reason, hint string) { return sizesFault(s.Workload.Videos.Sizes) },
		about: "Their sizes, with weights if there are several: \"1280x720*3 640x360\".",
	},
	{
		name: "workload.videos.frames", field: func(s *Spec) any { return &s.Workload.Videos.Frames }, least: 1, most: 4096,
		about: "Their frames.",
	},
	{
		name: "workload.videos.place", field: func(s *Spec) any { return &s.Workload.Videos.Place }, oneOf: []string{PlaceBefore, PlaceBehind},
		about: "Whether they stand before the text or behind it.",
	},
	{
		name: "workload.audio.count", field: func(s *Spec) any { return &s.Workload.Audio.Count }, loose: true,
		rule:  func(s Spec) (reason, hint string) { return mediaFault(s.Workload.Audio.Count) },
		about: "Sounds beside each prompt (openai-chat): WAV of faint noise, 16 kHz; a number of at most 64, or a distribution.",
	},
	{
		name: "workload.audio.lengths", field: func(s *Spec) any { return &s.Workload.Audio.Lengths },
		rule: func(s Spec) (reason, hint string) {
			_, err := workload.ParseSpans(s.Workload.Audio.Lengths)
			return textOfError(err), "write 5s, or 5s*3 30s"
		},
		about: "How long they are, with weights if there are several: \"5s*3 30s\".",
	},
	{
		name: "workload.audio.place", field: func(s *Spec) any { return &s.Workload.Audio.Place }, oneOf: []string{PlaceBefore, PlaceBehind},
		about: "Whether they stand before the text or behind it.",
	},
	{
		name: "workload.dataset.file", field: func(s *Spec) any { return &s.Workload.Dataset.File }, loose: true,
		about: "Conversations and prompts from a file, in place of synthetic text.",
	},
	{
		name: "workload.dataset.format", field: func(s *Spec) any { return &s.Workload.Dataset.Format }, loose: true, oneOf: formatNames(dataset.Formats()),
		about: "Its form; without it, as its name and first bytes say.",
	},
	{
		name: "workload.dataset.preset", field: func(s *Spec) any { return &s.Workload.Dataset.Preset }, loose: true, oneOf: dataset.Presets(),
		about: "Rules of another tool for which rows are used, cut how, in which order. Most need tokenizer.",
	},
	{
		name: "workload.dataset.columns", field: func(s *Spec) any { return &s.Workload.Dataset.Columns }, loose: true,
		rule: func(s Spec) (reason, hint string) {
			_, reason = s.Workload.Dataset.columns()
			return reason, "write prompt=NAME output=NAME"
		},
		about: "Columns by what they are for, where their names are not the usual ones: \"prompt=question output=answer\"; id, prompt, system, messages, output, output_tokens, tools.",
	},
	{
		name: "workload.dataset.template", field: func(s *Spec) any { return &s.Workload.Dataset.Template }, loose: true, lines: true,
		about: "Makes the prompt of several columns: \"Q: {{question}}\".",
	},
	{
		name: "workload.dataset.turns", field: func(s *Spec) any { return &s.Workload.Dataset.Turns }, oneOf: []string{"whole", "first-two", "each-human", "chat"},
		about: "Which turns of a row make a request, without a preset.",
	},
	{
		name: "workload.dataset.order", field: func(s *Spec) any { return &s.Workload.Dataset.Order }, oneOf: []string{"file", "shuffled", "python"},
		about: "Order in which rows are used, without a preset.",
	},
	{
		name: "workload.dataset.output", field: func(s *Spec) any { return &s.Workload.Dataset.Output }, oneOf: []string{OutputRecorded, OutputAsked},
		about: "Whether the recorded length is asked for, where a row has it, or output_tokens.",
	},
	{
		name: "workload.trace.file", field: func(s *Spec) any { return &s.Workload.Trace.File }, loose: true,
		about: "A recording of real load: lengths, classes and common prefixes from it, and the times too (load.arrival trace, which it is unless a rate, a concurrency or stages are given).",
	},
	{
		name: "workload.trace.format", field: func(s *Spec) any { return &s.Workload.Trace.Format }, loose: true, oneOf: formatNames(trace.Formats()),
		about: "Its form; without it, as its first bytes say.",
	},
	{
		name: "workload.trace.scale", field: func(s *Spec) any { return &s.Workload.Trace.Scale }, loose: true, least: 1e-6, most: 1e6,
		about: "All times are multiplied by it: 0.5 is twice the rate. Excludes thin.",
	},
	{
		name: "workload.trace.thin", field: func(s *Spec) any { return &s.Workload.Trace.Thin }, loose: true, above: true, most: 1,
		about: "Fraction of the requests that are sent, each drawn, to lower the rate. Excludes scale.",
	},
	{
		name: "workload.trace.from", field: func(s *Spec) any { return &s.Workload.Trace.From }, loose: true, most: 10 * 12 * month,
		about: "Start of the part that is used, from the recording's first request.",
	},
	{
		name: "workload.trace.until", field: func(s *Spec) any { return &s.Workload.Trace.Until }, loose: true, most: 10 * 12 * month,
		about: "End of that part.",
	},
	{
		name: "workload.trace.sort", field: func(s *Spec) any { return &s.Workload.Trace.Sort }, loose: true,
		about: "Put times in order; without it, times that are not are an error.",
	},
	{
		name: "workload.trace.block", field: func(s *Spec) any { return &s.Workload.Trace.Block }, loose: true, unit: "tokens", least: 1, most: workload.MaxLength,
		about: "Tokens that one of its block ids stands for, where it is not the format's own.",
	},
	{
		name: "workload.trace.grid", field: func(s *Spec) any { return &s.Workload.Trace.Grid }, loose: true, above: true, most: month,
		about: "Step on which its times were recorded, where that is not the one that is found: requests are spread over it.",
	},
	{
		name: "workload.trace.keep_grid", field: func(s *Spec) any { return &s.Workload.Trace.KeepGrid }, loose: true,
		about: "Leave times on the grid on which they were recorded, with all that came at once.",
	},
	{
		name: "workload.trace.sessions", field: func(s *Spec) any { return &s.Workload.Trace.Sessions }, loose: true,
		about: "Send its sessions whole: a call falls due when those that it came after have ended and the recorded pause is over. A rate then counts sessions, a concurrency sessions in progress, requests sessions; a stage that says nothing of its end sends those that are left.",
	},
	{
		name: "workload.trace.pauses", field: func(s *Spec) any { return &s.Workload.Trace.Pauses }, loose: true, oneOf: []string{PausesRecorded, PausesThink, PausesNone},
		about: "What lies between the calls of a session: the recorded time from the last end of what a call came after, which it is unless this is given; the recorded think time alone (weka); or nothing.",
	},
	{
		name: "workload.trace.max_gap", field: func(s *Spec) any { return &s.Workload.Trace.MaxGap }, loose: true, above: true, most: 12 * month,
		about: "Longer pauses between the calls of a session are cut to this.",
	},
	{
		name: "workload.trace.min_calls", field: func(s *Spec) any { return &s.Workload.Trace.MinCalls }, loose: true, unit: "calls", least: 1, most: 1e6,
		about: "Fewest calls of a session that is used.",
	},
	{
		name: "workload.trace.max_calls", field: func(s *Spec) any { return &s.Workload.Trace.MaxCalls }, loose: true, unit: "calls", least: 1, most: 1e6,
		about: "Most calls of a session that is used.",
	},
	{
		name: "workload.trace.min_sessions", field: func(s *Spec) any { return &s.Workload.Trace.MinSessions }, loose: true, unit: "sessions", least: 1, most: 1e9,
		about: "A load that ends with the recording begins it again until there are so many sessions. A session that is used again has words of its own, so that it finds nothing in a cache.",
	},
	{
		name: "workload.trace.class", field: func(s *Spec) any { return &s.Workload.Trace.Class }, loose: true,
		about: "Span attribute that names the class of a call (otel).",
	},
	{
		name: "workload.trace.headers", field: func(s *Spec) any { return &s.Workload.Trace.Headers }, loose: true,
		rule: func(s Spec) (reason, hint string) {
			_, reason = s.Workload.Trace.attributes()
			return reason, "write ATTRIBUTE=NAME ATTRIBUTE=NAME"
		},
		about: "Span attributes that requests have as headers (otel), ATTRIBUTE=NAME pairs: \"tenant.id=X-Tenant\".",
	},
	{
		name: "workload.trace.models", field: func(s *Spec) any { return &s.Workload.Trace.Models }, loose: true,
		rule: func(s Spec) (reason, hint string) {
			_, reason = s.Workload.Trace.models()
			return reason, "write RECORDED=SENT RECORDED=SENT"
		},
		about: "Models that recorded ones stand for, RECORDED=SENT pairs: \"gpt-4=mine gpt-4-mini=mine-small\". Those that are not named go to target.model.",
	},
	{
		name: "workload.classes", field: func(s *Spec) any { return &s.Workload.Classes }, loose: true,
		about: "Kinds of requests, drawn by weight, each with what differs from the workload.",
	},
	{
		name: "workload.conversation.turns", field: func(s *Spec) any { return &s.Workload.Conversation.Turns },
		rule: func(s Spec) (reason, hint string) {
			_, reason = s.Workload.Conversation.turns()
			return reason, "write a number of turns, uniform(LEAST,MOST), normal(MEAN,SD), lognormal(MEAN,SD), poisson(MEAN) or zipf(S,N)"
		},
		about: "Turns of a session, written as input_tokens, at most 1000. Above 1 a rate counts sessions, a concurrency sessions in progress, and requests sessions.",
	},
	{
		name: "workload.conversation.think_time", field: func(s *Spec) any { return &s.Workload.Conversation.ThinkTime }, loose: true, most: month,
		about: "Mean time between a reply and the next turn of its session.",
	},
	{
		name: "workload.conversation.think_process", field: func(s *Spec) any { return &s.Workload.Conversation.Think }, loose: true,
		oneOf: []string{ThinkConstant, ThinkExponential},
		about: "Whether every such time is the mean, or they are exponential, which they are unless this is given.",
	},
	{
		name: "workload.conversation.history", field: func(s *Spec) any { return &s.Workload.Conversation.History },
		oneOf: []string{HistoryLive, HistoryRecorded},
		about: "What later turns say that the assistant said: what it did say (live), or text of output_tokens of the plan's own (recorded).",
	},
	{
		name: "workload.conversation.system_tokens", field: func(s *Spec) any { return &s.Workload.Conversation.SystemTokens }, loose: true,
		about: "Length of a system message that each session has of its own, behind that of workload.system_tokens; written as input_tokens.",
	},
	{
		name: "workload.sha256", field: func(s *Spec) any { return &s.Workload.SHA256 }, loose: true,
		about: "SHA-256 of the files by the key that names them (tokenizer, dataset.file …). Filled in when they are read; one that is given must be right.",
	},

	{
		name: "client.engine", field: func(s *Spec) any { return &s.Client.Engine },
		oneOf: []string{EngineAuto, EngineEpoll, EngineGoroutine},
		about: "What drives the connections: an event loop for each core (plaintext on Linux) or a goroutine for each connection.",
	},
	{
		name: "client.loops", field: func(s *Spec) any { return &s.Client.Loops }, most: 1024,
		about: "Event loops or pacers; 0 to choose for the machine.",
	},
	{
		name: "client.procs", field: func(s *Spec) any { return &s.Client.Procs }, most: 1024,
		about: "GOMAXPROCS; 0 to choose for the machine.",
	},
	{
		name: "client.connections", field: func(s *Spec) any { return &s.Client.Connections }, most: 1e6,
		about: "Connections made before the start; 0 to choose for the load.",
	},
	{
		name: "client.spin", field: func(s *Spec) any { return &s.Client.Spin }, most: 1,
		about: "Busy wait before each due time. It sends more exactly and costs a core.",
	},

	{
		name: "server_metrics.urls", field: func(s *Spec) any { return &s.ServerMetrics.URLs }, loose: true,
		about: "Pages of metrics that count for the servers, separated by spaces, or off for none. Without it, /metrics of each server of target.url, where it answers.",
		rule:  func(s Spec) (reason, hint string) { return s.ServerMetrics.urlsFault() },
	},
	{
		name: "server_metrics.exporters", field: func(s *Spec) any { return &s.ServerMetrics.Exporters }, loose: true,
		about: "Pages of exporters beside the servers, separated by spaces: NVIDIA's DCGM, AMD's.",
		rule:  func(s Spec) (reason, hint string) { return pagesFault(s.ServerMetrics.Exporters) },
	},
	{
		name: "server_metrics.prometheus", field: func(s *Spec) any { return &s.ServerMetrics.Prometheus }, loose: true,
		about: "Base URL of a Prometheus server that looks at the servers, in place of their pages. /api/v1/query is added.",
		rule:  func(s Spec) (reason, hint string) { return pagesFault(s.ServerMetrics.Prometheus) },
	},
	{
		name: "server_metrics.matchers", field: func(s *Spec) any { return &s.ServerMetrics.Matchers }, loose: true,
		about: "Labels that leave only the series of these servers there, as PromQL has them: job=\"vllm\",namespace=\"a\".",
		rule:  func(s Spec) (reason, hint string) { return s.ServerMetrics.matchersFault() },
		hint:  `write job="vllm", without braces`,
	},
	{
		name: "server_metrics.token", field: func(s *Spec) any { return &s.ServerMetrics.Token }, loose: true,
		about: "Where the bearer token for these URLs is kept: env:NAME or file:PATH; or google, for that of the account that this machine runs as in Google's cloud. For user and password write http://USER:PASSWORD@HOST.",
		rule:  func(s Spec) (reason, hint string) { return s.ServerMetrics.tokenFault() },
	},
	{
		name: "server_metrics.every", field: func(s *Spec) any { return &s.ServerMetrics.Every }, least: 0.1, most: month,
		about: "Time between two samples; the edges of stages are sampled too.",
	},
	{
		name: "server_metrics.timeout", field: func(s *Spec) any { return &s.ServerMetrics.Timeout }, above: true, most: 60,
		about: "Longest time of one sample. One that takes longer is missing, and the load goes on meanwhile.",
	},

	{
		name: "slo", field: func(s *Spec) any { return &s.SLO }, loose: true,
		about: "Objectives, as [\"ttft.p99 < 500ms\", \"tpot < 50ms\"]: of all planned requests together with p50 to p99.99 or mean, else of each of them. Metrics: " + either(objective.Metrics()) + ".",
	},
	{
		name: "slo_target", field: func(s *Spec) any { return &s.SLOTarget }, least: 0.5, above: true, most: 0.99999,
		about: "Share of the planned requests that is to complete and keep the objectives of each request: a stage is a go or a no go by it.",
	},

	{
		name: "out", field: func(s *Spec) any { return &s.Out }, loose: true,
		about: "Run directory; without it, a new one named by the time under ./runs.",
	},
}

var classKeys = []key[Class]{
	{
		name: "name", field: func(c *Class) any { return &c.Name }, loose: true,
		about: "Name of the class in reports.",
	},
	{
		name: "weight", field: func(c *Class) any { return &c.Weight }, loose: true, above: true, most: 1e9,
		about: "Its part of the requests, in proportion to the others'; 1 unless given.",
	},
	{
		name: "model", field: func(c *Class) any { return &c.Model }, loose: true,
		about: "Model or adapter that its requests ask for, in place of target.model.",
	},
	{
		name: "input_tokens", field: func(c *Class) any { return &c.InputTokens }, loose: true,
		about: "The class's own workload.input_tokens.",
	},
	{
		name: "output_tokens", field: func(c *Class) any { return &c.OutputTokens }, loose: true,
		about: "The class's own workload.output_tokens.",
	},
	{
		name: "prefix_groups", field: func(c *Class) any { return &c.PrefixGroups }, loose: true, least: 1, most: draw.MaxCategories,
		about: "The class's own workload.prefix.groups. No two classes share prefixes.",
	},
	{
		name: "prefix_tokens", field: func(c *Class) any { return &c.PrefixTokens }, loose: true, unit: "tokens", least: 1, most: workload.MaxLength,
		about: "The class's own workload.prefix.tokens.",
	},
	{
		name: "priority", field: func(c *Class) any { return &c.Priority }, loose: true, least: -1e9, most: 1e9,
		about: "Priority that is sent with its requests, where the endpoint has a word for it. What a higher number means is the server's affair. If one class has one, those without send 0.",
	},
	{
		name: "slo", field: func(c *Class) any { return &c.SLO }, loose: true,
		about: "The class's own objectives, in place of slo. In a flag they are separated by spaces: --class \"name=gold,slo=ttft<200ms tpot<20ms\".",
	},
}

var stageKeys = []key[LoadStage]{
	{
		name: "name", field: func(s *LoadStage) any { return &s.Name }, loose: true,
		about: "Name of the stage in reports.",
	},
	{
		name: "rate", field: func(s *LoadStage) any { return &s.Rate }, loose: true, unit: "requests/s", above: true, most: maxRate,
		about: "Open loop: mean rate, whatever the replies do.",
		hint:  "for a closed loop leave rate out and set concurrency",
	},
	{
		name: "rate_to", field: func(s *LoadStage) any { return &s.RateTo }, loose: true, unit: "requests/s", above: true, most: maxRate,
		about: "Rate at the end of the stage, to which it changes linearly from rate.",
	},
	{
		name: "concurrency", field: func(s *LoadStage) any { return &s.Concurrency }, loose: true, unit: "requests", least: 1,
		most:  1e6,
		about: "Closed loop: so many requests in flight, each sent when another has ended.",
		hint:  "for an open loop leave concurrency out and set rate",
	},
	{
		name: "start_rate", field: func(s *LoadStage) any { return &s.StartRate }, loose: true, unit: "requests/s", above: true, most: maxRate,
		about: "Closed loop: its places begin one after another, so many a second, in place of all at once; each then follows its replies.",
	},
	{
		name: "max_in_flight", field: func(s *LoadStage) any { return &s.MaxInFlight }, loose: true, unit: "requests", least: 1,
		most:  1e6,
		about: "Admission limit of an open loop. Requests wait for it, and the wait counts in the times from due.",
	},
	{
		name: "duration", field: func(s *LoadStage) any { return &s.Duration }, loose: true, above: true, most: month,
		about: "Requests fall due for this long.",
	},
	{
		name: "requests", field: func(s *LoadStage) any { return &s.Requests }, loose: true, unit: "requests", least: 1,
		most:  math.MaxUint32,
		about: "End after exactly so many requests; with a duration, after whichever comes first.",
	},
	{
		name: "gap", field: func(s *LoadStage) any { return &s.Gap }, most: month,
		about: "Idle time before the stage.",
	},
	{
		name: "arrival", field: func(s *LoadStage) any { return &s.Arrival }, loose: true, oneOf: Processes(),
		about: "The stage's own load.arrival.",
	},
	{
		name: "burstiness", field: func(s *LoadStage) any { return &s.Burstiness }, loose: true, least: 0.05, most: 100,
		about: "The stage's own load.burstiness.",
	},
	{
		name: "states", field: func(s *LoadStage) any { return &s.States }, loose: true,
		about: "The stage's own load.states.",
		rule:  func(s LoadStage) (reason, hint string) { _, reason = parseStates(s.States); return reason, statesHint },
	},
	{
		name: "clients", field: func(s *LoadStage) any { return &s.Clients }, loose: true,
		about: "The stage's own load.clients.",
		rule: func(s LoadStage) (reason, hint string) {
			_, reason = parseClients(s.Clients)
			return reason, clientsHint
		},
	},
	{
		name: "think_time", field: func(s *LoadStage) any { return &s.ThinkTime }, loose: true, above: true, most: month,
		about: "The stage's own load.think_time.",
	},
	{
		name: "think_process", field: func(s *LoadStage) any { return &s.Think }, loose: true,
		oneOf: []string{ThinkConstant, ThinkExponential},
		about: "The stage's own load.think_process.",
	},
	{
		name: "amplitude", field: func(s *LoadStage) any { return &s.Amplitude }, loose: true, above: true, most: 1,
		about: "A wave, as days are: the rate goes up and down around rate by this fraction of it.",
	},
	{
		name: "period", field: func(s *LoadStage) any { return &s.Period }, loose: true, above: true, most: month,
		about: "Length of a wave, after which it repeats.",
	},
	{
		name: "phase", field: func(s *LoadStage) any { return &s.Phase }, loose: true, most: 1,
		about: "Part of the wave that is over at the start: 0 begins at rate and rises, 0.25 at the top, 0.75 at the bottom.",
	},
	{
		name: "spike_rate", field: func(s *LoadStage) any { return &s.SpikeRate }, loose: true, unit: "requests/s", above: true, most: maxRate,
		about: "A spike: the rate while it lasts.",
	},
	{
		name: "spike_at", field: func(s *LoadStage) any { return &s.SpikeAt }, loose: true, most: month,
		about: "Start of the spike, from the start of the stage.",
	},
	{
		name: "spike_width", field: func(s *LoadStage) any { return &s.SpikeWidth }, loose: true, above: true, most: month,
		about: "How long the spike lasts.",
	},
}

// find returns the key of that name.
func find[T any](keys []key[T], name string) (key[T], bool) {
	for _, k := range keys {
		if k.name == name {
			return k, true
		}
	}
	return key[T]{}, false
}

// fault says why the key's value in s will not do, and what to do; reason is empty if it will.
func (k *key[T]) fault(s *T) (reason, hint string) {
	switch v := k.field(s).(type) {
	case *string:
		reason = k.textFault(*v)
	case *Lengths:
		if k.rule == nil { // which takes its place
			reason, hint = v.fault()
		}
	case *float64:
		reason = k.rangeFault(*v, strconv.FormatFloat(*v, 'g', -1, 64), func(x float64) string { return k.quantity(x) })
	case *time.Duration:
		reason = k.rangeFault(v.Seconds(), v.String(), spell)
	case *int:
		reason = k.rangeFault(float64(*v), strconv.Itoa(*v), func(x float64) string { return k.quantity(x) })
	case *int64:
		reason = k.rangeFault(float64(*v), strconv.FormatInt(*v, 10), func(x float64) string { return k.quantity(x) })
	}
	if reason == "" && k.rule != nil {
		reason, hint = k.rule(*s)
	}
	return reason, cmp.Or(hint, k.meantHint(s), k.hint)
}

// meantHint names the one of several values that a wrong one resembles: it has a letter or so else, or is a part of it, as
// "chat" is of openai-chat.
func (k *key[T]) meantHint(s *T) string {
	text, ok := k.field(s).(*string)
	if !ok || k.oneOf == nil || *text == "" || slices.Contains(k.oneOf, *text) {
		return ""
	}
	for _, name := range k.oneOf {
		if slices.Contains(strings.Split(name, "-"), *text) {
			return meant + name + "?"
		}
	}
	if best, ok := nearest(*text, k.oneOf); ok {
		return meant + best + "?"
	}
	return ""
}

func (k *key[T]) textFault(text string) string {
	switch {
	case k.oneOf != nil && !slices.Contains(k.oneOf, text):
		return fmt.Sprintf("must be %s, got %q", either(k.oneOf), text)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !(k.lines && isSpace(r)) }):
		return "must not have control characters"
	}
	return ""
}

func isSpace(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }

func (k *key[T]) rangeFault(x float64, got string, say func(float64) string) string {
	switch {
	case math.IsNaN(x):
		return "must be a number, got " + got
	case k.above && x <= k.least:
		return "must be above " + say(k.least) + ", got " + got
	case x < k.least:
		return "must be at least " + say(k.least) + ", got " + got
	case x > k.most:
		return "must be at most " + say(k.most) + ", got " + got
	case k.above && k.unit == "requests/s" && x < minRate:
		return "must be at least " + say(minRate) + ", got " + got
	}
	return ""
}

// The smallest and the largest rate, requests per second. The schedule counts in 10⁻⁹ requests per second.
const (
	minRate = 1e-6
	maxRate = 1e7
)

// quantity spells a number with the key's unit.
func (k *key[T]) quantity(x float64) string {
	return strings.TrimSpace(strconv.FormatFloat(x, 'f', -1, 64) + " " + k.unit)
}

// spell writes seconds as a duration.
func spell(seconds float64) string { return time.Duration(seconds * 1e9).String() }

// either lists texts: "a, b or c".
func either(texts []string) string {
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// given says that the value is not the zero value.
func given(field any) bool {
	switch v := field.(type) {
	case *string:
		return *v != ""
	case *Lengths:
		return *v != ""
	case *[]Class:
		return len(*v) > 0
	case *bool:
		return *v
	case *float64:
		return *v != 0
	case *time.Duration:
		return *v != 0
	case *int:
		return *v != 0
	case *int64:
		return *v != 0
	case *uint64:
		return *v != 0
	case *map[string]string:
		return len(*v) > 0
	case *[]LoadStage:
		return len(*v) > 0
	case *[]string:
		return len(*v) > 0
	}
	panic(fmt.Sprintf("plan: no rule for a key of type %T", field))
}

// assign reads text into a value that is neither headers nor stages; reason says why it could not.
func assign(field any, text string) (reason string) {
	switch v := field.(type) {
	case *string:
		*v = text
	case *Lengths:
		*v = Lengths(strings.TrimSpace(text))
	case *[]string:
		*v = append(*v, text)
	case *bool:
		return read(v, text, "true or false", parseBool)
	case *float64:
		return read(v, text, "a number", parseNumber)
	case *time.Duration:
		return read(v, text, "a duration like 30s or 1m30s", time.ParseDuration)
	case *int:
		return read(v, text, "a whole number", func(text string) (int, error) {
			n, err := strconv.ParseInt(text, 10, 32)
			return int(n), err
		})
	case *int64:
		return read(v, text, "a whole number", func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
	case *uint64:
		return read(v, text, "a whole number of 0 or more", func(text string) (uint64, error) {
			return strconv.ParseUint(text, 10, 64)
		})
	default:
		panic(fmt.Sprintf("plan: no reader for a key of type %T", field))
	}
	return ""
}

func read[V any](to *V, text, want string, parse func(string) (V, error)) (reason string) {
	v, err := parse(text)
	if err != nil {
		return fmt.Sprintf("must be %s, got %q", want, shortened(text))
	}
	*to = v
	return ""
}

// shortened is text, or the beginning of a long one.
func shortened(text string) string {
	const most = 40
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, strconv.ErrSyntax
}

// parseNumber reads a decimal number; it takes no infinities and no hexadecimal.
func parseNumber(text string) (float64, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789.eE+-", r) }) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// headerFault says why a header cannot be sent. It does not repeat the value, which may be a secret.
func headerFault(name, value string) string {
	switch {
	case name == "" || strings.ContainsFunc(name, notToken):
		return fmt.Sprintf("%q is not a header name", name)
	case strings.ContainsFunc(value, unicode.IsControl) || !utf8.ValidString(value):
		return fmt.Sprintf("the value of %s must not have line breaks or other control characters", name)
	case value == mask:
		return fmt.Sprintf("the value of %s is masked", name)
	case value == SourceEnv+":" || value == SourceFile+":":
		return fmt.Sprintf("the value of %s names nothing to read it from", name)
	}
	for _, owned := range []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "X-Request-Id"} {
		if strings.EqualFold(name, owned) {
			return name + " is set by the client itself"
		}
	}
	return ""
}

// notToken says that r may not stand in a header's name (RFC 9110, token).
func notToken(r rune) bool {
	letter := 'a' <= r|0x20 && r|0x20 <= 'z'
	return !letter && !('0' <= r && r <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
