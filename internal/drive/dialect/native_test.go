package dialect_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
	"tare/internal/record"
)

var natives = []string{"tgi", "llamacpp", "sglang", "triton", "ollama"}

// progressStream is as llama-server sent it.
//
//go:embed testdata/llamacpp-progress.sse
var progressStream string

func sse(objects ...string) []string {
	for i := range objects {
		objects[i] = "data: " + objects[i] + "\n\n"
	}
	return objects
}

func ndjson(objects ...string) []string {
	for i := range objects {
		objects[i] += "\n"
	}
	return objects
}

func tgi(text, end string) string {
	return `{"index":1,"token":{"id":5,"text":"` + text + `","logprob":-0.25,"special":false},` + end + `}`
}

func llama(text, ids, n string) string {
	return `{"index":0,"content":"` + text + `","tokens":[` + ids + `],"stop":false,"id_slot":-1,"tokens_predicted":` + n + `,"tokens_evaluated":3}`
}

func sglang(text, meta string) string {
	return `{"text":"` + text + `","output_ids":[1],"meta_info":{"id":"a","prompt_tokens":3,` + meta + `}}`
}

func triton(text string) string {
	return `{"model_name":"ensemble","model_version":"1","sequence_end":false,"sequence_id":0,"text_output":"` + text + `"}`
}

func ollama(message string) string {
	return `{"model":"m","created_at":"2025-01-01T00:00:00.1Z","message":{"role":"assistant",` + message + `},"done":false}`
}

const (
	tgiOpen   = `"generated_text":null,"details":null`
	tgiEnd    = `"generated_text":"Hello wörld","details":{"finish_reason":"length","generated_tokens":2,"seed":null,"input_length":3}`
	llamaEnd  = `{"index":0,"content":"","tokens":[],"stop":true,"tokens_predicted":2,"tokens_evaluated":3,"generation_settings":{"stop":["x"]},"stop_type":"limit","tokens_cached":4,"timings":{"cache_n":1,"prompt_n":2}}`
	sglangEnd = `"completion_tokens":3,"cached_tokens":2,"finish_reason":{"type":"length","length":3}`
	ollamaEnd = `{"model":"m","created_at":"2025-01-01T00:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"load_duration":1,"prompt_eval_count":3,"prompt_eval_duration":2,"eval_count":2,"eval_duration":5}`
)

// native is what most of the fixtures below mean.
func native(kinds, exact, finish string, change func(*found)) found {
	return with(func(w *found) {
		w.kinds, w.exact, w.finish = kinds, exact, finish
		if change != nil {
			change(w)
		}
		w.usage.CachedKnown = w.usage.Cached > 0
	})
}

func unended(kinds, exact string) found {
	return found{outcome: record.Truncated, text: "Hello ", tokens: 1, kinds: kinds, exact: exact}
}

func failed(kinds, exact string) found {
	w := unended(kinds, exact)
	w.outcome = record.StreamError
	return w
}

var tgiFixtures = of("tgi", []fixture{
	{id: "T01", says: "an event a token, no space after the colon", reads: one("data:"+tgi("Hello ", tgiOpen)+"\n\n", ":\n\n", "data:"+tgi("wörld", tgiEnd)+"\n\n"), want: native("cc", "1,1", "length", func(w *found) { w.comments = 1 })},
	{id: "T02", says: "special token, token without text", reads: sse(tgi("Hello ", tgiOpen), tgi("", tgiOpen), strings.Replace(tgi("wörld", tgiEnd), `"special":false`, `"special":true`, 1)), want: native("ccc", "1,1,1", "length", func(w *found) { w.tokens = 3 })},
	{id: "T03", says: "whole text without details", reads: sse(tgi("Hello ", tgiOpen), tgi("wörld", `"generated_text":"Hello wörld","details":null`)), want: native("cc", "1,1", "", func(w *found) { w.usage = record.Usage{} })},
	{id: "T04", says: "error amid the stream", reads: sse(tgi("Hello ", tgiOpen), `{"error":"Request failed during generation","error_type":"generation"}`), want: failed("ce", "1")},
	{id: "T05", says: "clean end without the whole text", reads: sse(tgi("Hello ", tgiOpen)), want: unended("c", "1")},
	{id: "T06", says: "body cut off behind the last token", reads: sse(tgi("Hello ", tgiOpen), tgi("wörld", tgiEnd)), cut: true, want: native("cc", "1,1", "length", nil)},
	{id: "T07", says: "whole text of no token", reads: sse(`{"generated_text":"","details":{"finish_reason":"eos_token","generated_tokens":0,"input_length":3}}`), want: found{outcome: record.Empty, kinds: "d", finish: "eos_token", usage: record.Usage{Known: true, Input: 3}, terminated: true}},
	{id: "T08", says: "a document instead of a stream", kind: "application/json", reads: one(`{"generated_text":"Hello wörld","details":{"finish_reason":"stop_sequence","generated_tokens":2,"prefill":[{"id":1},{"id":2},{"id":3}],"tokens":[{"id":5,"text":"x"}]}}`), want: native("c", "2", "stop_sequence", func(w *found) { w.tokens, w.notStreamed = 1, true })},
	{id: "T09", says: "an error document with 200", kind: "application/json", reads: one(`{"error":"Model is overloaded","error_type":"overloaded"}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
}...)

var llamaCppFixtures = of("llamacpp", []fixture{
	{id: "L01", says: "text, token ids and counts", reads: append(one(":\n\n"), sse(llama("Hello ", "7", "1"), llama("wörld", "8", "2"), llamaEnd)...), want: native("ccd", "1,1", "limit", func(w *found) { w.usage.Cached, w.comments = 1, 1 })},
	{id: "L02", says: "as sent by llama-server, with progress events", reads: one(progressStream), want: found{outcome: record.Completed, text: " receivedinputments", tokens: 3, kinds: "oocccd", exact: "1,1,1", finish: "limit", usage: record.Usage{Known: true, Input: 5, Output: 3, Cached: 4, CachedKnown: true}, terminated: true}},
	{id: "L03", says: "a rune of several tokens", reads: sse(llama("Hello ", "7", "1"), llama("wörld", "9", "4"), strings.Replace(llamaEnd, `"tokens_predicted":2`, `"tokens_predicted":4`, 1)), want: native("ccd", "1,3", "limit", func(w *found) { w.usage.Output, w.usage.Cached = 4, 1 })},
	{id: "L04", says: "no counts before the last event (older)", reads: sse(`{"content":"Hello ","stop":false,"multimodal":false,"slot_id":0}`, `{"content":"wörld","stop":false,"multimodal":false,"slot_id":0}`, `{"content":"","stop":true,"stopped_eos":false,"stopped_limit":true,"stopped_word":false,"tokens_predicted":2,"tokens_evaluated":3,"timings":{"predicted_ms":1.5}}`), want: native("ccd", "?,?", "limit", nil)},
	{id: "L05", says: "no counts but token ids", reads: sse(`{"content":"Hello ","tokens":[1,2],"stop":false}`, `{"content":"wörld","tokens":[3],"stop":false}`, llamaEnd), want: native("ccd", "2,1", "limit", func(w *found) { w.usage.Cached = 1 })},
	{id: "L06", says: "a token without text, text in the last event", reads: sse(llama("Hello ", "7", "1"), llama("", "8", "2"), strings.Replace(strings.Replace(llamaEnd, `"content":""`, `"content":"wörld"`, 1), `"tokens_predicted":2`, `"tokens_predicted":4`, 1)), want: native("ccc", "1,1,2", "limit", func(w *found) {
		w.tokens = 3
		w.usage.Output, w.usage.Cached = 4, 1
	})},
	{id: "L07", says: "error amid the stream", reads: sse(llama("Hello ", "7", "1"), `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`), want: counted(failed("ce", "1"), 1)},
	{id: "L08", says: "error in a field of its own (older)", reads: one("data: "+llama("Hello ", "7", "1")+"\n\n", "error: {\"code\":500,\"message\":\"slot unavailable\"}\n\n"), want: counted(failed("ce", "1"), 1)},
	{id: "L09", says: "clean end without stop", reads: sse(llama("Hello ", "7", "1")), want: counted(unended("c", "1"), 1)},
	{id: "L10", says: "body cut off after stop", reads: sse(llama("Hello ", "7", "1"), llama("wörld", "8", "2"), llamaEnd), cut: true, want: native("ccd", "1,1", "limit", func(w *found) { w.usage.Cached = 1 })},
	{id: "L11", says: "stop and no token", reads: sse(strings.Replace(llamaEnd, `"tokens_predicted":2`, `"tokens_predicted":0`, 1)), want: found{outcome: record.Empty, kinds: "d", finish: "limit", usage: record.Usage{Known: true, Input: 3, Cached: 1, CachedKnown: true}, terminated: true}},
	{id: "L12", says: "a document instead of a stream", kind: "application/json", reads: one(strings.Replace(llamaEnd, `"content":""`, `"content":"Hello wörld"`, 1)), want: native("c", "2", "limit", func(w *found) { w.tokens, w.notStreamed, w.usage.Cached = 1, true, 1 })},
}...)

var sglangFixtures = of("sglang", []fixture{
	{id: "S01", says: "the whole text so far, and counts", reads: append(sse(sglang("Hello ", `"completion_tokens":1,"cached_tokens":2,"finish_reason":null`), sglang("Hello wörld", sglangEnd)), evD), want: cumulative("ccd", "1,2", nil)},
	{id: "S02", says: "equal text and another token (half a rune), then no token", reads: append(sse(sglang("Hello ", `"completion_tokens":1,"finish_reason":null`), sglang("Hello ", `"completion_tokens":2,"finish_reason":null`), sglang("Hello wörld", `"completion_tokens":3,"finish_reason":null`), sglang("Hello wörld", sglangEnd)), evD), want: cumulative("cccfd", "1,1,1", func(w *found) { w.tokens, w.text = 3, "Hello Hello Hello wörldHello wörld" })},
	{id: "S03", says: "a first event without token", reads: append(sse(sglang("", `"completion_tokens":0,"finish_reason":null`), sglang("Hello ", `"completion_tokens":1,"finish_reason":null`), sglang("Hello wörld", sglangEnd)), evD), want: cumulative("uccd", "1,2", nil)},
	{id: "S04", says: "no [DONE]", reads: sse(sglang("Hello ", `"completion_tokens":1,"finish_reason":null`), sglang("Hello wörld", sglangEnd)), want: cumulative("cc", "1,2", func(w *found) { w.terminated = false })},
	{id: "S05", says: "error amid the stream", reads: append(sse(sglang("Hello ", `"completion_tokens":1,"finish_reason":null`), `{"error":{"message":"boom"}}`), evD), want: counted(ended(failed("ced", "1")), 1)},
	{id: "S06", says: "aborted", reads: append(sse(sglang("Hello ", `"completion_tokens":1,"finish_reason":null`), sglang("", `"completion_tokens":1,"finish_reason":{"type":"abort","message":"out of memory","status_code":500}`)), evD), want: counted(ended(func() found { w := failed("ced", "1"); w.finish = "abort"; return w }()), 1)},
	{id: "S07", says: "clean end without finish", reads: sse(sglang("Hello ", `"completion_tokens":1,"finish_reason":null`)), want: counted(unended("c", "1"), 1)},
	{id: "S08", says: "finish and no token", reads: append(sse(sglang("", `"completion_tokens":0,"finish_reason":{"type":"stop","matched":2}`)), evD), want: found{outcome: record.Empty, kinds: "fd", finish: "stop", usage: record.Usage{Known: true, Input: 3}, terminated: true}},
	{id: "S09", says: "a document instead of a stream", kind: "application/json", reads: one(sglang("Hello wörld", sglangEnd)), want: native("c", "3", "length", func(w *found) {
		w.tokens, w.notStreamed = 1, true
		w.usage.Output, w.usage.Cached = 3, 2
	})},
}...)

var tritonFixtures = of("triton", []fixture{
	{id: "N01", says: "new text in each event", reads: sse(triton("Hello "), triton("wörld"), triton("")), want: tritonic("ccf", "Hello wörld")},
	{id: "N02", says: "all text so far in each event", reads: sse(triton("Hello "), triton("Hello wörld")), want: tritonic("cc", "Hello Hello wörld")},
	{id: "N03", says: "log probabilities that vary", reads: sse(strings.Replace(triton("Hello "), `"model_v`, `"cum_log_probs":-0.5,"model_v`, 1), strings.Replace(triton("wörld"), `"model_v`, `"cum_log_probs":-1.25e1,"model_v`, 1)), want: tritonic("cc", "Hello wörld")},
	{id: "N04", says: "error amid the stream", reads: sse(triton("Hello "), `{"error":"in ensemble 'ensemble', out of memory"}`), want: failed("ce", "?")},
	{id: "N05", says: "body cut off", reads: sse(triton("Hello "), triton("")), cut: true, want: unended("cf", "?")},
	{id: "N06", says: "no token", reads: sse(triton("")), want: found{outcome: record.Empty, kinds: "f"}},
	{id: "N07", says: "no event", reads: one(":\n\n"), want: found{outcome: record.Truncated, comments: 1}},
	{id: "N08", says: "a document instead of a stream", kind: "application/json", reads: one(triton("Hello wörld")), want: found{outcome: record.Completed, text: "Hello wörld", tokens: 1, kinds: "c", exact: "?", terminated: true, notStreamed: true}},
}...)

const linesType = "application/x-ndjson"

var ollamaFixtures = of("ollama", []fixture{
	{id: "O01", says: "a line for each part of the message", kind: linesType, reads: ndjson(ollama(`"content":"Hello "`), ollama(`"content":"wörld"`), ollamaEnd), want: native("ccd", "?,?", "stop", nil)},
	{id: "O02", says: "CRLF, all in one read, no last line end", kind: "application/ndjson; charset=utf-8", reads: one(ollama(`"content":"Hello "`) + "\r\n\r\n" + ollama(`"content":"wörld"`) + "\r\n" + ollamaEnd), want: native("ccd", "?,?", "stop", nil)},
	{id: "O03", says: "thinking, then a tool call", kind: linesType, reads: ndjson(ollama(`"content":"","thinking":"Hello "`), ollama(`"content":"","tool_calls":[{"function":{"name":"wörld","arguments":{"a":1}}}]`), ollamaEnd), want: native("txd", "?,?", "stop", nil)},
	{id: "O04", says: "a line without content opens, the last line has text", kind: linesType, reads: ndjson(ollama(`"content":""`), ollama(`"content":"Hello "`), strings.Replace(ollamaEnd, `"content":""`, `"content":"wörld"`, 1)), want: native("rcc", "?,?", "stop", nil)},
	{id: "O05", says: "prompt wholly cached, no count of it", kind: linesType, reads: ndjson(ollama(`"content":"Hello "`), ollama(`"content":"wörld"`), strings.Replace(ollamaEnd, `"prompt_eval_count":3,`, "", 1)), want: native("ccd", "?,?", "stop", func(w *found) { w.usage.Input = 0 })},
	{id: "O06", says: "error line", kind: linesType, reads: ndjson(ollama(`"content":"Hello "`), `{"error":"an error was encountered while running the model"}`), want: failed("ce", "?")},
	{id: "O07", says: "clean end without done", kind: linesType, reads: ndjson(ollama(`"content":"Hello "`)), want: unended("c", "?")},
	{id: "O08", says: "body cut off in a line", kind: linesType, reads: one(ollama(`"content":"Hello "`)+"\n", ollama(`"content":"wörld"`)[:50]), cut: true, want: unended("c", "?")},
	{id: "O09", says: "body cut off after done", kind: linesType, reads: ndjson(ollama(`"content":"Hello "`), ollama(`"content":"wörld"`), ollamaEnd), cut: true, want: native("ccd", "?,?", "stop", nil)},
	{id: "O10", says: "done and no token", kind: linesType, reads: ndjson(`{"model":"m","message":{"role":"assistant","content":""},"done_reason":"load","done":true}`), want: found{outcome: record.Empty, kinds: "d", finish: "load", terminated: true}},
	{id: "O11", says: "a line that is not JSON", kind: linesType, reads: ndjson(ollama(`"content":"Hello "`), `{"model":`, ollama(`"content":"wörld"`), ollamaEnd), want: native("cmcd", "?,?", "stop", func(w *found) { w.malformed = 1 })},
	{id: "O12", says: "a document instead of a stream", kind: "application/json", reads: one(strings.Replace(ollamaEnd, `"content":""`, `"content":"Hello wörld"`, 1)), want: native("c", "2", "stop", func(w *found) { w.tokens, w.notStreamed = 1, true })},
}...)

func cumulative(kinds, exact string, change func(*found)) found {
	return native(kinds, exact, "length", func(w *found) {
		w.text = "Hello Hello wörld"
		w.usage.Output, w.usage.Cached = 3, 2
		if change != nil {
			change(w)
		}
	})
}

func tritonic(kinds, text string) found {
	return found{outcome: record.Completed, text: text, tokens: 2, kinds: kinds, exact: "?,?"}
}

func counted(w found, n int) found {
	w.usage = record.Usage{Known: true, Input: 3, Output: n}
	return w
}

func ended(w found) found {
	w.terminated = true
	return w
}

func TestNativeBodySaysWhatWasAsked(t *testing.T) {
	q := plan.Request{Prompt: "a \"b\"\n", OutputTokens: 7}
	plain := dialect.Options{Model: "m/1", Stream: true, TopP: 1}
	all := dialect.Options{Model: "m", IgnoreEOS: true, Temperature: 0.7, TopP: 0.9, Seed: 9}
	short := all
	short.IgnoreEOS = false
	for _, c := range []struct {
		endpoint   string
		o          dialect.Options
		path, want string
	}{
		{"tgi", plain, "/generate_stream", `{"inputs":"a \"b\"\n","parameters":{"details":true,"do_sample":false,"max_new_tokens":7}}`},
		{"tgi", short, "/generate", `{"inputs":"a \"b\"\n","parameters":{"details":true,"do_sample":true,"temperature":0.7,"top_p":0.9,"seed":9,"max_new_tokens":7}}`},
		{"llamacpp", plain, "/completion", `{"prompt":"a \"b\"\n","stream":true,"temperature":0,"top_p":1,"cache_prompt":true,"n_predict":7}`},
		{"llamacpp", all, "/completion", `{"prompt":"a \"b\"\n","stream":false,"temperature":0.7,"top_p":0.9,"seed":9,"cache_prompt":true,"ignore_eos":true,"n_predict":7}`},
		{"sglang", plain, "/generate", `{"text":"a \"b\"\n","stream":true,"sampling_params":{"temperature":0,"top_p":1,"max_new_tokens":7}}`},
		{"sglang", all, "/generate", `{"text":"a \"b\"\n","stream":false,"sampling_params":{"temperature":0.7,"top_p":0.9,"sampling_seed":9,"ignore_eos":true,"max_new_tokens":7,"min_new_tokens":7}}`},
		{"triton", plain, "/v2/models/m%2F1/generate_stream", `{"text_input":"a \"b\"\n","stream":true,"temperature":0,"top_p":1,"max_tokens":7}`},
		{"triton", all, "/v2/models/m/generate", `{"text_input":"a \"b\"\n","stream":false,"temperature":0.7,"top_p":0.9,"random_seed":9,"max_tokens":7,"min_length":7}`},
		{"ollama", plain, "/api/chat", `{"model":"m/1","messages":[{"role":"user","content":"a \"b\"\n"}],"stream":true,"options":{"temperature":0,"top_p":1,"num_predict":7}}`},
		{"ollama", short, "/api/chat", `{"model":"m","messages":[{"role":"user","content":"a \"b\"\n"}],"stream":false,"options":{"temperature":0.7,"top_p":0.9,"seed":9,"num_predict":7}}`},
	} {
		d := speak(t, c.endpoint, c.o)
		if got := string(d.AppendBody(nil, &q)); got != c.want || d.Path() != c.path {
			t.Errorf("%s: %s\n got %s\nwant %s %s", c.endpoint, d.Path(), got, c.path, c.want)
		}
		got := d.AppendBody(nil, &plan.Request{})
		if !json.Valid(got) || bytes.Contains(got, []byte("max")) || bytes.Contains(got, []byte("predict")) || bytes.Contains(got, []byte("min_")) {
			t.Errorf("%s: got %s, want JSON without a limit", c.endpoint, got)
		}
	}
}

func FuzzNativeBodyIsJSONOfThePrompt(f *testing.F) {
	f.Add("plain", "m", 3, 0.5, 1.0)
	f.Add("\x00\x1f\"\\/\u2028\u00e9\U0001F600\x7f</script>", "a\"b", 0, 1e-9, 0.25)
	f.Add("broken \xff\xc3", "\xf0\x9f", 1<<30, 1e300, -1.0)
	f.Fuzz(func(t *testing.T, prompt, model string, n int, temperature, topP float64) {
		for _, endpoint := range natives {
			d, err := dialect.For(endpoint, dialect.Options{Model: model, Stream: true, IgnoreEOS: endpoint != "tgi" && endpoint != "ollama", Temperature: temperature, TopP: topP})
			if err != nil {
				return
			}
			body := d.AppendBody([]byte("#"), &plan.Request{Prompt: prompt, OutputTokens: n})[1:]
			var got struct {
				Inputs, Prompt, Text string
				TextInput            string `json:"text_input"`
				Messages             []struct{ Content string }
			}
			if err := json.Unmarshal(body, &got); err != nil || !utf8.Valid(body) {
				t.Fatalf("%q: %v", body, err)
			}
			said := got.Inputs + got.Prompt + got.Text + got.TextInput
			for _, m := range got.Messages {
				said += m.Content
			}
			if said != valid(prompt) {
				t.Errorf("%s: prompt %q in %q, want %q", endpoint, said, body, valid(prompt))
			}
		}
	})
}

// eventsOf is the data of a fixture's events.
func eventsOf(f fixture) (all [][]byte) {
	for _, line := range strings.Split(strings.Join(f.reads, ""), "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if strings.HasPrefix(line, "{") {
			all = append(all, []byte(line))
		}
	}
	return all
}

// TestNativeGlanceAgreesWithReadAmidAReply changes each byte of each event and reads it after those before it.
func TestNativeGlanceAgreesWithReadAmidAReply(t *testing.T) {
	glanced := map[string]int{}
	for _, f := range allFixtures() {
		if f.endpoint == "" || len(strings.Join(f.reads, "")) > 5000 {
			continue
		}
		d := speak(t, f.endpoint, dialect.Options{Stream: true})
		quick, slow := d.NewReader(), d.NewReader()
		var before dialect.Answer
		for _, lesson := range eventsOf(f) {
			for at := range lesson {
				for _, c := range []byte("\"\\1}\n,\xff") {
					var a, b = before, before
					quick.Read(new(dialect.Answer), nil, lesson)
					e := changed(lesson, at, c)
					got, ok := quick.Glance(&a, nil, e)
					if !ok {
						continue
					}
					glanced[f.endpoint]++
					if want := slow.Read(&b, nil, e); got != want || !reflect.DeepEqual(a, b) {
						t.Fatalf("%s: taught by %s, %s: Glance %+v %+v, Read %+v %+v", f.id, lesson, e, got, a, want, b)
					}
				}
			}
			slow.Read(&before, nil, lesson)
		}
	}
	for _, endpoint := range []string{"tgi", "triton", "ollama"} {
		if glanced[endpoint] < 100 {
			t.Errorf("%s: %d events were read at a glance, want 100 or more", endpoint, glanced[endpoint])
		}
	}
}

func TestNativeTokenEventsAreKnownAtAGlance(t *testing.T) {
	for endpoint, events := range map[string][2]string{
		"tgi":    {tgi("a", tgiOpen), strings.NewReplacer(`"id":5`, `"id":17`, "-0.25", "-1e-05", `"index":1`, `"index":20`).Replace(tgi(" other", tgiOpen))},
		"triton": {triton("a"), triton("a longer")},
		"ollama": {ollama(`"content":"a"`), strings.Replace(ollama(`"content":"\n"`), "00.1Z", "59.123456Z", 1)},
	} {
		r := speak(t, endpoint, dialect.Options{Stream: true}).NewReader()
		var a dialect.Answer
		want := r.Read(&a, nil, []byte(events[0]))
		if got, ok := r.Glance(&a, nil, []byte(events[1])); !ok || got != want || want.Kind != record.KindContent {
			t.Errorf("%s: %+v, %v, want %+v, true", endpoint, got, ok, want)
		}
	}
}

func TestNativeReadingAllocatesNothing(t *testing.T) {
	for _, f := range allFixtures() {
		switch f.id {
		case "T01", "L01", "L02", "S01", "S02", "N01", "N02", "O01", "O03", "O05":
		default:
			continue
		}
		r := speak(t, f.endpoint, dialect.Options{Stream: true}).NewReader()
		var a dialect.Answer
		events := eventsOf(f)
		n := testing.AllocsPerRun(50, func() {
			a.Reset()
			for _, e := range events {
				if _, ok := r.Glance(&a, nil, e); !ok {
					r.Read(&a, nil, e)
				}
			}
			a.Reset()
			for _, e := range events {
				r.Read(&a, nil, e)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations for %d events read twice, want 0", f.id, n, len(events))
		}
	}
	for _, endpoint := range natives {
		d, body, q := speak(t, endpoint, dialect.Options{Model: "m"}), make([]byte, 0, 4096), plan.Request{Prompt: "a\"ö", OutputTokens: 5}
		if n := testing.AllocsPerRun(50, func() { body = d.AppendBody(body[:0], &q) }); n != 0 {
			t.Errorf("%s: AppendBody: %v allocations, want 0", endpoint, n)
		}
	}
}

func TestNativeDocumentsAreReadWhole(t *testing.T) {
	for _, c := range []struct {
		endpoint, body string
		want           record.Outcome
		err            string
	}{
		{"tgi", `{"generated_text":"a"}`, record.Completed, ""},
		{"llamacpp", `{"content":"a","stop":true,"tokens_predicted":1}`, record.Completed, ""},
		{"sglang", `{"text":"a","meta_info":{"finish_reason":{"type":"stop"},"completion_tokens":1}}`, record.Completed, ""},
		{"sglang", `{"text":"","meta_info":{"finish_reason":{"type":"stop"},"completion_tokens":1}}`, record.Empty, ""},
		{"sglang", `{"text":"","output_ids":[2],"meta_info":{"completion_tokens":1}}`, record.Empty, ""},
		{"sglang", `{"output_ids":[5,2],"meta_info":{"completion_tokens":2}}`, record.Completed, ""},
		{"triton", `{"text_output":["a"]}`, record.Completed, ""},
		{"ollama", `{"message":{"content":"a"},"done":true}`, record.Completed, ""},
		{"ollama", `{"message":{"content":""},"done":true}`, record.Empty, ""},
		{"template", `{"out":{"t":"a"},"why":"stop","use":[3,2,1]}`, record.Completed, ""},
		{"template", `{"out":{"t":""},"why":"stop"}`, record.Empty, ""},
		{"template", `{"bad":"no"}`, record.StreamError, `{"bad":"no"}`},
		{"template", `{"status":"ok"}`, record.StreamError, `the reply has no /out/t: {"status":"ok"}`},
		{"tgi", `{"status":"ok"}`, record.StreamError, `the reply has no generated_text: {"status":"ok"}`},
		{"llamacpp", `{"status":"ok"}`, record.StreamError, `the reply has no content: {"status":"ok"}`},
		{"sglang", `{"status":"ok"}`, record.StreamError, `the reply has no text: {"status":"ok"}`},
		{"triton", `{"status":"ok"}`, record.StreamError, `the reply has no text_output: {"status":"ok"}`},
		{"ollama", `{"status":"ok"}`, record.StreamError, `the reply has no message: {"status":"ok"}`},
		{"ollama", `{"error":"model 'x' not found"}`, record.StreamError, `{"error":"model 'x' not found"}`},
		{"triton", `<html>`, record.StreamError, "the reply is neither an event stream nor JSON: <html>"},
	} {
		var a dialect.Answer
		m := speak(t, c.endpoint, dialect.Options{}).NewReader().ReadDocument(&a, []byte(c.body))
		if got := a.Outcome(200, true); got != c.want || a.Error != c.err || a.NotStreamed || m.Kind == record.KindTerminator {
			t.Errorf("%s %s: %v %+v %q, not streamed %v, want %v %q, false", c.endpoint, c.body, got, m, a.Error, a.NotStreamed, c.want, c.err)
		}
	}
}

// TestNativeRepliesMayInterleave reads two replies by one reader, event by event, as an event loop does.
func TestNativeRepliesMayInterleave(t *testing.T) {
	for _, endpoint := range []string{"llamacpp", "sglang"} {
		r := speak(t, endpoint, dialect.Options{Stream: true}).NewReader()
		var a, b dialect.Answer
		event := map[string]func(n string) string{
			"llamacpp": func(n string) string { return llama("x", "1", n) },
			"sglang":   func(n string) string { return sglang("x", `"completion_tokens":`+n) },
		}[endpoint]
		for i, n := range []string{"5", "6", "7"} {
			r.Read(&a, nil, []byte(event(n)))
			m := r.Read(&b, nil, []byte(event(string('1'+byte(i)))))
			if want := (dialect.Meaning{Kind: record.KindContent, Tokens: 1, Exact: true}); m != want {
				t.Errorf("%s, event %d: %+v, want %+v", endpoint, i, m, want)
			}
		}
	}
}
