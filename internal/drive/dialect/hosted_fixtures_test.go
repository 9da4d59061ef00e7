package dialect_test

import (
	"fmt"
	"strings"

	"tare/internal/record"
)

// said is an event with a name, as the hosted services send them.
func said(name, rest string) string {
	return "event: " + name + "\n" + `data: {"type":"` + name + `"` + rest + "}\n\n"
}

func response(status, rest string) string {
	return fmt.Sprintf(`,"response":{"id":"resp_1","object":"response","created_at":1,"status":"%s","model":"m","error":null%s}`, status, rest)
}

// The events of OpenAI's responses endpoint.
var (
	reC = said("response.created", `,"sequence_number":0`+response("in_progress", `,"output":[],"usage":null`))
	reI = said("response.output_item.added", `,"sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	reP = said("response.content_part.added", `,"sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}`)
	reA = reDelta(3, "response.output_text.delta", "Hello ")
	reB = reDelta(4, "response.output_text.delta", "wörld")
	reX = said("response.output_text.done", `,"sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Hello wörld"`)
	reU = `,"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5}`
	reO = `,"output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello wörld","annotations":[]}]}]`
	reD = said("response.completed", `,"sequence_number":6`+response("completed", reO+`,"incomplete_details":null`+reU))
)

func reDelta(n int, name, text string) string {
	return said(name, fmt.Sprintf(`,"sequence_number":%d,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"%s","logprobs":[],"obfuscation":"%s"`, n, text, strings.Repeat("x", n)))
}

func hosted(kinds, finish string, f func(*found)) found {
	w := found{
		outcome: record.Completed, text: "Hello wörld", tokens: 2, kinds: kinds, finish: finish,
		usage: record.Usage{Known: true, Input: 3, Output: 2, Cached: 1, CachedKnown: true}, terminated: true, exact: "?,?",
	}
	if f != nil {
		f(&w)
	}
	return w
}

func cutShort(kinds string) found {
	return found{outcome: record.Truncated, text: "Hello ", tokens: 1, kinds: kinds, exact: "?"}
}

func broken(kinds string) found {
	w := cutShort(kinds)
	w.outcome = record.StreamError
	return w
}

// withoutType leaves out the member "type" of the events, so that their names alone say what they are.
func withoutType(events string, names ...string) string {
	for _, n := range names {
		events = strings.ReplaceAll(events, `{"type":"`+n+`",`, "{")
	}
	return events
}

// typeLast puts it behind the other members.
func typeLast(event, name string) string {
	return strings.Replace(withoutType(event, name), "}\n\n", `,"type":"`+name+`"}`+"\n\n", 1)
}

var responsesFixtures = of("openai-responses", []fixture{
	{id: "R01", says: "responses: one event per read", reads: one(reC, reI, reP, reA, reB, reX, reD), want: hosted("oooccod", "completed", nil)},
	{id: "R02", says: "responses: all in one read, CRLF", reads: crlf(reC + reI + reP + reA + reB + reX + reD), want: hosted("oooccod", "completed", nil)},
	{id: "R03", says: "responses: incomplete", reads: one(reC, reA, reB, said("response.incomplete", response("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`+reU))), want: hosted("occd", "max_output_tokens", nil)},
	{id: "R04", says: "responses: reasoning text, then content", reads: one(reC, reDelta(3, "response.reasoning_text.delta", "Hello "), reB, reD), want: hosted("otcd", "completed", nil)},
	{id: "R04b", says: "responses: reasoning summary", reads: one(reC, reDelta(3, "response.reasoning_summary_text.delta", "Hello "), reB, reD), want: hosted("otcd", "completed", nil)},
	{id: "R05", says: "responses: the call of a function", reads: one(reC,
		said("response.output_item.added", `,"output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":""}`),
		reDelta(3, "response.function_call_arguments.delta", "Hello "), reDelta(4, "response.function_call_arguments.delta", "wörld"),
		said("response.output_item.done", `,"output_index":0,"item":{"type":"function_call","name":"f","arguments":"Hello wörld"}`), reD),
		want: hosted("oxxxod", "completed", func(w *found) { w.tokens, w.exact = 3, "?,?,?" })},
	{id: "R06", says: "responses: a refusal", reads: one(reC, reDelta(3, "response.refusal.delta", "Hello "), reDelta(4, "response.refusal.delta", "wörld"), reD), want: hosted("occd", "completed", nil)},
	{id: "R07", says: "responses: an empty delta", reads: one(reC, reDelta(3, "response.output_text.delta", ""), reA, reB, reD), want: hosted("ooccd", "completed", nil)},
	{id: "R08", says: "responses: audio and its bytes", reads: one(reC, reDelta(3, "response.audio.delta", "AAAA"), reA, reB, reD), want: hosted("ooccd", "completed", func(w *found) { w.text = "AAAA" + w.text })},
	{id: "R09", says: "responses: failed mid-stream", reads: one(reC, reA, said("response.failed", response("failed", `,"output":[]`))), want: broken("oce")},
	{id: "R09b", says: "responses: event error mid-stream", reads: one(reC, reA, said("error", `,"code":"server_error","message":"boom","param":null`)), want: broken("oce")},
	{id: "R09c", says: "responses: an error without a name", reads: one(reC, reA, `data: {"type":"error","code":"server_error","message":"boom"}`+"\n\n"), want: broken("oce")},
	{id: "R10", says: "responses: clean end without completion", reads: one(reC, reA), want: cutShort("oc")},
	{id: "R10b", says: "responses: body cut off", reads: one(reC, reA), cut: true, want: cutShort("oc")},
	{id: "R11", says: "responses: no token", reads: one(reC, reD), want: hosted("od", "completed", func(w *found) { w.outcome, w.text, w.tokens, w.exact = record.Empty, "", 0, "" })},
	{id: "R12", says: "responses: names without types", reads: one(withoutType(reC+reA+reB+reD, "response.created", "response.output_text.delta", "response.completed")), want: hosted("occd", "completed", nil)},
	{id: "R12b", says: "responses: types without names, and last", reads: one(strings.ReplaceAll(reC+typeLast(reA, "response.output_text.delta")+typeLast(reB, "response.output_text.delta")+reD, "event: response", "id: 1\nevent: ")), want: hosted("occd", "completed", nil)},
	{id: "R13", says: "responses: [DONE] behind the end", reads: one(reC, reA, reB, reD, evD), want: hosted("occdo", "completed", nil)},
	{id: "R14", says: "responses: body cut off behind the end", reads: one(reC, reA, reB, reD), cut: true, want: hosted("occd", "completed", nil)},
	{id: "R20", says: "responses: a document", kind: "application/json", reads: one(`{"object":"response","status":"completed","error":null` + reO + reU + `}`), want: hosted("c", "completed", func(w *found) { w.tokens, w.exact, w.notStreamed = 1, "2", true })},
	{id: "R21", says: "responses: a document of a failure", kind: "application/json", reads: one(`{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"},"output":[]}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
	{id: "R22", says: "responses: a document that is not yet one", kind: "application/json", reads: one(`{"object":"response","status":"queued","error":null,"output":[]}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
	{id: "R23", says: "responses: a document of another kind", kind: "application/json", reads: one(`{"status":"completed","choices":[]}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
}...)

// The events of Anthropic's messages endpoint.
var (
	anS = said("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":1,"cache_read_input_tokens":1,"output_tokens":1}}`)
	anI = said("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	anP = said("ping", "")
	anA = anDelta("text", "text", "Hello ")
	anB = anDelta("text", "text", "wörld")
	anX = said("content_block_stop", `,"index":0`)
	anF = said("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}`)
	anD = said("message_stop", "")
)

func anDelta(kind, member, text string) string {
	return said("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"%s_delta","%s":"%s"}`, kind, member, text))
}

var anthropicFixtures = of("anthropic-messages", []fixture{
	{id: "A01", says: "anthropic: one event per read", reads: one(anS, anI, anP, anA, anB, anX, anF, anD), want: hosted("uooccofd", "end_turn", nil)},
	{id: "A02", says: "anthropic: all in one read, CRLF", reads: crlf(anS + anI + anP + anA + anB + anX + anF + anD), want: hosted("uooccofd", "end_turn", nil)},
	{id: "A03", says: "anthropic: thinking and its signature, then text", reads: one(anS, anDelta("thinking", "thinking", "Hello "), anDelta("signature", "signature", "c2ln"), anX, anB, anF, anD), want: hosted("utoocfd", "end_turn", nil)},
	{id: "A04", says: "anthropic: the use of a tool", reads: one(anS,
		said("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`), anDelta("input_json", "partial_json", ""),
		anDelta("input_json", "partial_json", "Hello "), anDelta("input_json", "partial_json", "wörld"), anX, strings.Replace(anF, "end_turn", "tool_use", 1), anD),
		want: hosted("uxoxxofd", "tool_use", func(w *found) { w.tokens, w.exact = 3, "?,?,?" })},
	{id: "A05", says: "anthropic: usage all at the end, and cumulative", reads: one(strings.Replace(anS, `"input_tokens":1,"cache_creation_input_tokens":1,"cache_read_input_tokens":1,`, `"input_tokens":0,`, 1), anA, anB,
		said("message_delta", `,"delta":{"stop_reason":null},"usage":{"output_tokens":1}`), strings.Replace(anF, `"output_tokens":2`, `"input_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":1,"output_tokens":2`, 1), anD), want: hosted("rccufd", "end_turn", nil)},
	{id: "A05b", says: "anthropic: input tokens repeated at the end", reads: one(anS, anA, anB, strings.Replace(anF, `"output_tokens":2`, `"input_tokens":1,"output_tokens":2`, 1), anD), want: hosted("uccfd", "end_turn", nil)},
	{id: "A06", says: "anthropic: event error mid-stream", reads: one(anS, anA, said("error", `,"error":{"type":"overloaded_error","message":"Overloaded"}`)), want: started(broken("uce"))},
	{id: "A06b", says: "anthropic: an error without a name", reads: one(anS, anA, `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n"), want: started(broken("uce"))},
	{id: "A07", says: "anthropic: clean end without stop", reads: one(anS, anA), want: started(cutShort("uc"))},
	{id: "A07b", says: "anthropic: body cut off after the stop reason", reads: one(anS, anA, anB, anF), cut: true, want: hosted("uccf", "end_turn", func(w *found) { w.outcome, w.terminated = record.Truncated, false })},
	{id: "A08", says: "anthropic: a stop reason and no message_stop", reads: one(anS, anA, anB, anF), want: hosted("uccf", "end_turn", func(w *found) { w.terminated = false })},
	{id: "A09", says: "anthropic: no token", reads: one(anS, anF, anD), want: hosted("ufd", "end_turn", func(w *found) { w.outcome, w.text, w.tokens, w.exact = record.Empty, "", 0, "" })},
	{id: "A10", says: "anthropic: [DONE] behind the end (OpenRouter)", reads: one(anS, anA, anB, anF, anD, "event: data\n"+evD), want: hosted("uccfdo", "end_turn", nil)},
	{id: "A11", says: "anthropic: names without types", reads: one(withoutType(anS+anA+anB+anF, "message_start", "content_block_delta", "message_delta"), "event: message_stop\ndata: {}\n\n"), want: hosted("uccfd", "end_turn", nil)},
	{id: "A20", says: "anthropic: a document", kind: "application/json", reads: one(`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Hello wörld"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"cache_creation_input_tokens":1,"cache_read_input_tokens":1,"output_tokens":2}}`), want: hosted("c", "end_turn", func(w *found) { w.tokens, w.exact, w.notStreamed = 1, "2", true })},
	{id: "A21", says: "anthropic: an error document with 200", kind: "application/json", reads: one(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
	{id: "A22", says: "anthropic: a document of another kind", kind: "application/json", reads: one(`{"choices":[]}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
}...)

// started adds the usage that the first event tells.
func started(w found) found {
	w.usage = record.Usage{Known: true, Input: 3, Cached: 1, CachedKnown: true}
	return w
}

// The events of Gemini.
var (
	geA = geSay(`{"text":"Hello "}`, "", 1)
	geB = geSay(`{"text":"wörld"}`, "STOP", 2)
)

func geSay(part, reason string, said int) string {
	if reason != "" {
		reason = `,"finishReason":"` + reason + `"`
	}
	return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":%d,"cachedContentTokenCount":1,"totalTokenCount":5},"modelVersion":"m","responseId":"r"}`, part, reason, said) + "\r\n\r\n"
}

func google(kinds string, f func(*found)) found {
	w := hosted(kinds, "STOP", func(w *found) { w.exact, w.terminated = "1,1", false })
	if f != nil {
		f(&w)
	}
	return w
}

var geminiFixtures = of("gemini", []fixture{
	{id: "G01", says: "gemini: one event per read, CRLF", reads: one(geA, geB), want: google("cc", nil)},
	{id: "G02", says: "gemini: all in one read, LF", reads: one(strings.ReplaceAll(geA+geB, "\r\n", "\n")), want: google("cc", nil)},
	{id: "G03", says: "gemini: a finish reason in every event", reads: one(geSay(`{"text":"Hello "}`, "STOP", 1), geSay(`{"text":"wörld"}`, "MAX_TOKENS", 2)), want: google("cc", func(w *found) { w.finish = "MAX_TOKENS" })},
	{id: "G03b", says: "gemini: body cut off after a finish reason", reads: one(geSay(`{"text":"Hello "}`, "STOP", 1)), cut: true, want: google("c", func(w *found) {
		w.outcome, w.text, w.tokens, w.exact, w.usage.Output = record.Truncated, "Hello ", 1, "1", 1
	})},
	{id: "G04", says: "gemini: clean end without a finish reason", reads: one(geA), want: google("c", func(w *found) {
		w.outcome, w.text, w.tokens, w.exact, w.usage.Output, w.finish = record.Truncated, "Hello ", 1, "1", 1, ""
	})},
	{id: "G05", says: "gemini: a thought, then text", reads: one(strings.Replace(geSay(`{"text":"Hello ","thought":true}`, "", 0), `"candidatesTokenCount":0`, `"thoughtsTokenCount":7`, 1), strings.Replace(geB, `"candidatesTokenCount":2`, `"candidatesTokenCount":2,"thoughtsTokenCount":7`, 1)), want: google("tc", func(w *found) { w.exact, w.usage.Output = "7,2", 9 })},
	{id: "G05b", says: "gemini: thoughts counted once only", reads: one(strings.Replace(geSay(`{"thought":true,"text":"Hello "}`, "", 0), `"candidatesTokenCount":0`, `"thoughtsTokenCount":7`, 1), geB), want: google("tc", func(w *found) { w.exact, w.usage.Output = "7,2", 9 })},
	{id: "G06", says: "gemini: the call of a function", reads: one(geSay(`{"functionCall":{"name":"f","args":{"a":1}}}`, "STOP", 2)), want: google("x", func(w *found) { w.text, w.tokens, w.exact = "", 1, "2" })},
	{id: "G07", says: "gemini: a blocked prompt", reads: one(`data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}` + "\r\n\r\n"), want: found{outcome: record.StreamError, kinds: "e", usage: record.Usage{Known: true, Input: 3}}},
	{id: "G07b", says: "gemini: feedback without a block", reads: one(`data: {"promptFeedback":{"safetyRatings":[]}}`+"\r\n\r\n", geA, geB), want: google("occ", nil)},
	{id: "G08", says: "gemini: an error object mid-stream", reads: one(geA, `data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`+"\r\n\r\n"), want: google("ce", func(w *found) {
		w.outcome, w.text, w.tokens, w.exact, w.usage.Output, w.finish = record.StreamError, "Hello ", 1, "1", 1, ""
	})},
	{id: "G09", says: "gemini: no token", reads: one(strings.Replace(geSay(`{"text":""}`, "MAX_TOKENS", 0), `"candidatesTokenCount":0,`, "", 1)), want: google("f", func(w *found) {
		w.outcome, w.text, w.tokens, w.exact, w.usage.Output, w.finish = record.Empty, "", 0, "", 0, "MAX_TOKENS"
	})},
	{id: "G10", says: "gemini: usage and the finish reason at the end only", reads: one(
		`data: {"candidates":[{"content":{"parts":[{"text":"Hello "}],"role":"model"}}]}`+"\r\n\r\n", `data: {"candidates":[{"content":{"parts":[{"text":"wörld"}],"role":"model"}}]}`+"\r\n\r\n", geSay(`{"text":""}`, "STOP", 2)), want: google("ccf", func(w *found) { w.exact = "?,?" })},
	{id: "G20", says: "gemini: a document", kind: "application/json", reads: one(strings.TrimPrefix(geSay(`{"text":"Hello "},{"text":"wörld"}`, "STOP", 2), "data: ")), want: google("c", func(w *found) { w.tokens, w.exact, w.notStreamed, w.terminated = 1, "2", true, true })},
	{id: "G21", says: "gemini: an array in place of a stream", kind: "application/json; charset=UTF-8", reads: one("["+strings.TrimPrefix(geA, "data: ")+"\r\n,\r\n", strings.TrimPrefix(geB, "data: ")+"]"), want: google("c", func(w *found) { w.tokens, w.exact, w.notStreamed, w.terminated = 1, "2", true, true })},
	{id: "G22", says: "gemini: a blocked prompt's document", kind: "application/json", reads: one(`{"promptFeedback":{"blockReason":"SAFETY"}}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
}...)
