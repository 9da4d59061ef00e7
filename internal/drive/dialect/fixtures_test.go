package dialect_test

import (
	"slices"
	"strings"

	"tare/internal/plan"
	"tare/internal/record"
)

// The events of the baseline stream.
const (
	evR = `data: {"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	evA = `data: {"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"Hello "},"finish_reason":null}]}` + "\n\n"
	evB = `data: {"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"wörld"},"finish_reason":null}]}` + "\n\n"
	evF = `data: {"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	evU = `data: {"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\n"
	evD = "data: [DONE]\n\n"
)

// fixture is a reply's body as a server may send it, in reads, and what it means.
type fixture struct {
	id, says string
	endpoint string // chat if empty
	reads    []string
	kind     string        // content type; text/event-stream if empty
	template plan.Template // of endpoint template; described if empty
	cut      bool          // the body is not ended as HTTP demands
	want     found
}

// found is what was read from a reply.
type found struct {
	outcome     record.Outcome
	text        string
	tokens      int    // token events
	kinds       string // a letter for each event
	usage       record.Usage
	finish      string
	comments    int
	malformed   int
	terminated  bool
	notStreamed bool
	exact       string // tokens of each token event where known: "1,?,2"
}

// arrivals is which read completed each token event, for the fixtures as given.
var arrivals = map[string][]int{
	"W01": {1, 2}, "W02": {0, 0}, "W03": {2, 3}, "W04": {1, 3}, "W06": {2, 3}, "W11b": {2, 3}, "W29": {1, 2},
}

func chat(choice string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[` + choice + `]}` + "\n\n"
}

func with(f func(*found)) found {
	w := found{
		outcome: record.Completed, text: "Hello wörld", tokens: 2, kinds: "rccfud", finish: "stop",
		usage: record.Usage{Known: true, Input: 3, Output: 2}, terminated: true, exact: "?,?",
	}
	if f != nil {
		f(&w)
	}
	return w
}

func split(s, at string) []string {
	i := strings.Index(s, at) + len(at)
	return []string{s[:i], s[i:]}
}

func crlf(reads ...string) []string {
	for i := range reads {
		reads[i] = strings.ReplaceAll(reads[i], "\n", "\r\n")
	}
	return reads
}

func join(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func one(s ...string) []string { return s }

func usageEvent(rest string) string {
	return `data: {"id":"c1",` + rest + `}` + "\n\n"
}

var longText = strings.Repeat("x", 200<<10)

// allFixtures are those of every dialect.
func allFixtures() []fixture {
	return slices.Concat(fixtures, responsesFixtures, anthropicFixtures, geminiFixtures, tgiFixtures, llamaCppFixtures, sglangFixtures, tritonFixtures, ollamaFixtures, templateFixtures)
}

// of sets the endpoint of fixtures.
func of(endpoint string, f ...fixture) []fixture {
	for i := range f {
		f[i].endpoint = endpoint
	}
	return f
}

// texts are the paths of text in the events and in the documents of each dialect, by which a test reads it on its own. A
// path goes into every element of an array.
var texts = map[string]struct{ event, document []string }{
	"openai-chat":        {[]string{"choices.text", "choices.delta.content", "choices.delta.reasoning_content", "choices.delta.tool_calls.function.name", "choices.delta.tool_calls.function.arguments"}, []string{"choices.message.content"}},
	"openai-responses":   {[]string{"delta"}, []string{"output.content.text"}},
	"anthropic-messages": {[]string{"delta.text", "delta.thinking", "delta.partial_json"}, []string{"content.text"}},
	"tgi":                {[]string{"token.text"}, []string{"generated_text"}},
	"llamacpp":           {[]string{"content"}, []string{"content"}},
	"sglang":             {[]string{"text"}, []string{"text"}},
	"triton":             {[]string{"text_output"}, []string{"text_output"}},
	"ollama":             {[]string{"message.content", "message.thinking", "message.tool_calls.function.name"}, []string{"message.content"}},
	"template":           {[]string{"out.t", "think", "parts.say"}, []string{"out.t"}},
	"gemini":             {[]string{"candidates.content.parts.text"}, []string{"candidates.content.parts.text"}},
}

var fixtures = []fixture{
	{id: "W01", says: "one event per read", reads: one(evR, evA, evB, evF, evU, evD), want: with(nil)},
	{id: "W02", says: "all in one read", reads: one(evR + evA + evB + evF + evU + evD), want: with(nil)},
	{id: "W03", says: "a read ends after a space inside a string", reads: join(one(evR), split(evA, "Hello "), one(evB, evF, evU, evD)), want: with(nil)},
	{id: "W04", says: "a read ends inside a rune", reads: join(one(evR, evA), split(evB, "w\xc3"), one(evF, evU, evD)), want: with(nil)},
	{id: "W05", says: "a read ends after the colon, and inside the field name", reads: join(one(evR), split(evA, "data:"), split(evB, "dat"), one(evF, evU, evD)), want: with(nil)},
	{id: "W06", says: "a read ends between the two LFs", reads: join(one(evR), split(evA, "}\n"), one(evB, evF, evU, evD)), want: with(nil)},
	{id: "W07", says: "a comment in its own read", reads: one(": PING\n\n", evR, evA, evB, evF, evU, evD), want: with(func(w *found) { w.comments = 1 })},
	{id: "W08", says: "a comment in front of data", reads: one(evR, ": PING\n\n"+evA, ": PING\n"+evB, evF, evU, evD), want: with(func(w *found) { w.comments = 2 })},
	{id: "W09", says: "a bare colon mid-stream", reads: one(evR, evA, ":\n\n", evB, evF, evU, evD), want: with(func(w *found) { w.comments = 1 })},
	{id: "W10", says: "CRLF, one event per read", reads: crlf(evR, evA, evB, evF, evU, evD), want: with(nil)},
	{id: "W11", says: "CRLF in one read", reads: crlf(evR + evA + evB + evF + evU + evD), want: with(nil)},
	{id: "W11b", says: "reads end inside CRLF", reads: join(crlf(evR), split(crlf(evA)[0], "}\r"), split(crlf(evB)[0], "}\r\n\r"), crlf(evF, evU, evD)), want: with(nil)},
	{id: "W12", says: "no space after the colon", reads: one(strings.ReplaceAll(evR+evA+evB+evF+evU+evD, "data: ", "data:")), want: with(nil)},
	{id: "W13", says: "event, id and retry fields", reads: one("retry: 3000\nid: 7\nevent: message\n"+evR, "event: message\nid: 8\n"+evA, "event: message\n"+evB, evF, evU, evD), want: with(nil)},
	{id: "W14", says: "JSON over two data lines", reads: one(evR, strings.Replace(evA, `"choices"`, "\ndata: "+`"choices"`, 1), strings.Replace(evB, `"model"`, "\ndata:"+`"model"`, 1), evF, evU, evD), want: with(nil)},
	{id: "W15", says: "no [DONE]", reads: one(evR, evA, evB, evF, evU), want: with(func(w *found) { w.kinds, w.terminated = "rccfu", false })},
	{id: "W16", says: "EOF right after [DONE]", reads: one(evR, evA, evB, evF, evU, "data: [DONE]"), want: with(nil)},
	{id: "W17", says: "clean end without finish", reads: one(evR, evA), want: with(func(w *found) {
		*w = found{outcome: record.Truncated, text: "Hello ", tokens: 1, kinds: "rc", exact: "?"}
	})},
	{id: "W17b", says: "body cut off", reads: one(evR, evA), cut: true, want: with(func(w *found) {
		*w = found{outcome: record.Truncated, text: "Hello ", tokens: 1, kinds: "rc", exact: "?"}
	})},
	{id: "W17c", says: "body cut off after the finish reason", reads: one(evR, evA, evB, evF), cut: true, want: with(func(w *found) {
		w.outcome, w.kinds, w.usage, w.terminated = record.Truncated, "rccf", record.Usage{}, false
	})},
	{id: "W18", says: "error object before any token", reads: one(`data: {"error":{"message":"boom","code":500}}`+"\n\n", evD), want: found{outcome: record.StreamError, kinds: "ed", terminated: true}},
	{id: "W19", says: "error object mid-stream", reads: one(evR, evA, `data: {"error":{"message":"boom","code":500}}`+"\n\n", evD), want: found{outcome: record.StreamError, text: "Hello ", tokens: 1, kinds: "rced", terminated: true, exact: "?"}},
	{id: "W19b", says: "event: error", reads: one(evR, evA, "event: error\ndata: overloaded\n\n"), want: found{outcome: record.StreamError, text: "Hello ", tokens: 1, kinds: "rce", exact: "?"}},
	{id: "W19c", says: "a finish reason that is an error (OpenRouter)", reads: one(evR, evA, `data: {"error":{"code":502,"message":"x"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`+"\n\n", evD), want: found{outcome: record.StreamError, text: "Hello ", tokens: 1, kinds: "rced", finish: "error", terminated: true, exact: "?"}},
	{id: "W19d", says: "an error that is a string (TGI)", reads: one(`data: {"error":"out of memory","error_type":"overloaded"}` + "\n\n"), want: found{outcome: record.StreamError, kinds: "e"}},
	{id: "W19e", says: "object error", reads: one(`data: {"object":"error","message":"no","type":"BadRequest","code":400}` + "\n\n" + evD), want: found{outcome: record.StreamError, kinds: "ed", terminated: true}},
	{id: "W19f", says: "detail without choices", reads: one(`data: {"detail":[{"loc":["body"],"msg":"missing"}]}` + "\n\n"), want: found{outcome: record.StreamError, kinds: "e"}},
	{id: "W20", says: "usage on the finish event", reads: one(evR, evA, evB, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\n", evD), want: with(func(w *found) { w.kinds = "rccfd" })},
	{id: "W21", says: "usage in every event, none at the end", reads: one(evR,
		`data: {"choices":[{"index":0,"delta":{"content":"Hello "}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\n",
		`data: {"choices":[{"index":0,"delta":{"content":"wörld"}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\n", evF, evD),
		want: with(func(w *found) { w.kinds, w.exact = "rccfd", "1,1" })},
	{id: "W22", says: "filter results first (Azure)", reads: one(`data: {"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`+"\n\n", evR, evA, evB, evF, evU, evD), want: with(func(w *found) { w.kinds = "orccfud" })},
	{id: "W23", says: "a choice without delta (Azure)", reads: one(evR, evA, chat(`{"index":0,"content_filter_offsets":{"check_offset":3},"finish_reason":null}`), evB, evF, evU, evD), want: with(func(w *found) { w.kinds = "rcocfud" })},
	{id: "W24", says: "reasoning, then content", reads: one(evR, chat(`{"index":0,"delta":{"reasoning_content":"Hello "},"finish_reason":null}`), evB, evF, evU, evD), want: with(func(w *found) { w.kinds = "rtcfud" })},
	{id: "W24b", says: "reasoning under both names", reads: one(evR, chat(`{"index":0,"delta":{"reasoning":"Hello ","reasoning_content":"Hello "}}`), evB, evF, evU, evD), want: with(func(w *found) { w.kinds = "rtcfud" })},
	{id: "W25", says: "role with content null", reads: one(chat(`{"index":0,"delta":{"role":"assistant","content":null}}`), evA, evB, evF, evU, evD), want: with(nil)},
	{id: "W26", says: "raw U+2028 in a string", reads: one(evR, chat(`{"index":0,"delta":{"content":"Hello`+"\u2028"+`"}}`), evB, evF, evU, evD), want: with(func(w *found) { w.text = "Hello\u2028wörld" })},
	{id: "W27", says: "byte order mark", reads: one("\xef\xbb\xbf"+evR, evA, evB, evF, evU, evD), want: with(nil)},
	{id: "W28", says: "usage null in every event", reads: one(strings.ReplaceAll(evR+evA+evB+evF, `"model":"m"`, `"model":"m","usage":null`), evU, evD), want: with(nil)},
	{id: "W29", says: "role long before the first token", reads: one(evR, evA, evB, evF, evU, evD), want: with(nil)},
	{id: "W30", says: "tool calls", reads: one(evR,
		chat(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}}`),
		chat(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}`),
		chat(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`), evU, evD),
		want: with(func(w *found) { w.kinds, w.text, w.finish = "rxxfud", "f{}", "tool_calls" })},
	{id: "W31", says: "usage with choices null", reads: one(evR, evA, evB, evF, usageEvent(`"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":2}`), evD), want: with(nil)},
	{id: "W31b", says: "usage without choices", reads: one(evR, evA, evB, evF, usageEvent(`"usage":{"prompt_tokens":3,"completion_tokens":2}`), evD), want: with(nil)},
	{id: "W32", says: "two tokens in one delta", reads: one(evR, evA, evB, evF, usageEvent(`"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}`), evD), want: with(func(w *found) { w.usage = record.Usage{Known: true, Input: 3, Output: 3, Cached: 1, CachedKnown: true} })},
	{id: "W32b", says: "token ids", reads: one(evR,
		chat(`{"index":0,"delta":{"content":"Hello "},"token_ids":[1,2]}`), chat(`{"index":0,"delta":{"content":""},"token_ids":[3]}`), chat(`{"index":0,"delta":{"content":"wörld"},"finish_reason":"stop","token_ids":[4]}`), evU, evD),
		want: with(func(w *found) { w.kinds, w.tokens, w.exact = "rcccud", 3, "2,1,1" })},
	{id: "W33", says: "a line of 200 KiB", reads: one(evR, chat(`{"index":0,"delta":{"content":"`+longText+`"}}`), evB, evF, evU, evD), want: with(func(w *found) { w.text = longText + "wörld" })},
	{id: "W34", says: "CR line ends", reads: one(strings.ReplaceAll(evR+evA+evB+evF+evU+evD, "\n", "\r")), want: with(nil)},
	{id: "W35", says: "empty and blank data", reads: one(evR, "data:\n\n", evA, "data:    \n\n", evB, evF, evU, evD), want: with(func(w *found) { w.kinds = "rococfud" })},
	{id: "W36", says: "events after [DONE]", reads: one(evR, evA, evB, evF, evU, evD, "event: data\ndata: [DONE]\n\n"+evA+"data: {\n\n"), want: with(func(w *found) { w.kinds, w.text = "rccfudooo", "Hello wörldHello " })},
	{id: "W37", says: "two choices, one ends early", reads: one(evR, chat(`{"index":1,"delta":{"content":"Hello "}}`), chat(`{"index":1,"delta":{},"finish_reason":"stop"}`), chat(`{"index":0,"delta":{"content":"wörld"}}`), chat(`{"index":0,"delta":{},"finish_reason":"length"}`), evU, evD), want: with(func(w *found) { w.kinds, w.finish = "rcfcfud", "length" })},
	{id: "W37b", says: "two choices, one never ends", reads: one(evR, evA, chat(`{"index":1,"delta":{"content":"wörld"}}`), evF, evU), want: with(func(w *found) { w.outcome, w.kinds, w.terminated = record.Truncated, "rccfu", false })},
	{id: "W38", says: "zeros in every usage, the real one last (Ollama)", reads: one(strings.ReplaceAll(evR+evA+evB+evF, `"model":"m"`, `"model":"m","usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`), evU, evD), want: with(nil)},
	{id: "W38b", says: "zeros after the real usage", reads: one(evR, evA, evB, evF, evU, usageEvent(`"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}`), evD), want: with(func(w *found) { w.kinds = "rccfuod" })},
	{id: "W38c", says: "a zero in one field after the real usage", reads: one(evR, evA, evB, evF, evU, usageEvent(`"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":0}`), evD), want: with(func(w *found) { w.kinds, w.usage.Input = "rccfuud", 4 })},
	{id: "W39", says: "a document instead of a stream", kind: "application/json", reads: one("\n\n" + `{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello wörld"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`), want: with(func(w *found) {
		w.tokens, w.kinds, w.exact, w.notStreamed = 1, "c", "2", true
	})},
	{id: "W39b", says: "an HTML page", kind: "text/html", reads: one("<html><body>It works!</body></html>"), want: found{outcome: record.StreamError, kinds: "e", malformed: 1, notStreamed: true}},
	{id: "W39c", says: "an error document with 200", kind: "application/json", reads: one(`{"object":"error","message":"no such model","code":404}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
	{id: "W41", says: "pings only", reads: one(strings.Repeat(": ping\n\n", 20)), want: found{outcome: record.Truncated, comments: 20}},
	{id: "W42", says: "no token", reads: one(evR, chat(`{"index":0,"delta":{},"finish_reason":"length"}`), usageEvent(`"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}`), evD), want: found{outcome: record.Empty, kinds: "rfud", finish: "length", usage: record.Usage{Known: true, Input: 3}, terminated: true}},
	{id: "W43", says: "a surrogate pair over two events", reads: one(evR, chat(`{"index":0,"delta":{"content":"\ud83d"}}`), chat(`{"index":0,"delta":{"content":"\ude00"}}`), evF, evU, evD), want: with(func(w *found) { w.text = "\ufffd\ufffd" })},
	{id: "W44", says: "empty finish reasons, the last event twice", reads: one(evR, chat(`{"index":0,"delta":{"content":"Hello "},"finish_reason":""}`), chat(`{"index":0,"delta":{"content":"wörld"},"finish_reason":"null"}`), evF, evF, evU, evD), want: with(func(w *found) { w.kinds = "rccffud" })},
	{id: "W45", says: "fields without data", reads: one("id: 3\n\n", "retry: 3000\n\n", evR, "id: 5\n"+evA, ": ping\n\n", evB, evF, evU, evD), want: with(func(w *found) { w.comments = 1 })},
	{id: "W46", says: "[DONE] with blanks", reads: one(evR, evA, evB, evF, evU, "data: [DONE] \n\n"), want: with(nil)},
	{id: "W46b", says: "[DONE] with CRLF", reads: one(evR, evA, evB, evF, evU, "data: [DONE]\r\n"), want: with(nil)},
	{id: "X01", says: "a raw newline inside a string (vLLM)", reads: one(evR, strings.Replace(evA, "Hello ", "Hello\n", 1), evB, evF, evU, evD), want: with(func(w *found) { w.text, w.malformed = "wörld", 1 })},
	{id: "X01b", says: "a raw blank line inside a string", reads: one(evR, strings.Replace(evA, "Hello ", "f() {}\n\nHello ", 1), evB, evF, evU, evD), want: with(func(w *found) { w.text, w.malformed = "wörld", 1 })},
	{id: "X01c", says: "a string without its end", reads: one(evR, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\n\n", evA, evB, evF, evU, evD), want: with(func(w *found) { w.kinds, w.malformed = "rmccfud", 1 })},
	{id: "X02", says: "an event that is not JSON", reads: one(evR, evA, "data: {\"choices\":[\n\n", evB, evF, evU, evD), want: with(func(w *found) { w.kinds, w.malformed = "rcmcfud", 1 })},
	{id: "X03", says: "completions", reads: one(`data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"Hello ","logprobs":null,"finish_reason":null}]}`+"\n\n", `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"wörld","logprobs":null,"finish_reason":"length"}]}`+"\n\n", evU, evD), want: with(func(w *found) { w.kinds, w.finish = "ccud", "length" })},
	{id: "X04", says: "content as a list of parts", reads: one(evR, chat(`{"index":0,"delta":{"content":[{"type":"text","text":"Hello "}]}}`), chat(`{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"wörld"}]}]}}`), evF, evU, evD), want: with(func(w *found) { w.kinds, w.text = "rctfud", "" })},
	{id: "X05", says: "llama.cpp: progress events and timings", reads: one(chat(`{"index":0,"delta":{"role":"assistant","content":null}}`), usageEvent(`"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":9,"cache":0,"processed":4}`), evA, evB, evF, usageEvent(`"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":3},"timings":{"prompt_n":3,"predicted_ms":1.5e1}`), evD), want: with(func(w *found) { w.kinds = "rrccfud" })},
	{id: "X06", says: "role in every event (older Ollama)", reads: one(chat(`{"index":0,"delta":{"role":"assistant","content":"Hello "}}`), chat(`{"index":0,"delta":{"role":"assistant","content":"wörld"}}`), evF, evU, evD), want: with(func(w *found) { w.kinds = "ccfud" })},
	{id: "X07", says: "explicit nulls (SGLang)", reads: one(chat(`{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}`), chat(`{"index":0,"delta":{"role":null,"content":"Hello ","reasoning_content":null,"tool_calls":null}}`), evB, evF, evU, evD), want: with(nil)},
	{id: "X08", says: "body cut off after [DONE]", reads: one(evR, evA, evB, evF, evU, evD), cut: true, want: with(nil)},
}
