package dialect_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
	"tare/internal/record"
)

func TestBodySaysWhatWasAsked(t *testing.T) {
	q := plan.Request{Prompt: "a \"b\"\n", OutputTokens: 7}
	for _, c := range []struct {
		name, endpoint string
		o              dialect.Options
		path, want     string
	}{
		{"openai-chat", "openai-chat", dialect.Options{Model: "m", Stream: true, TopP: 1}, "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"a \"b\"\n"}],"max_tokens":7,"temperature":0,"top_p":1,"stream":true,"stream_options":{"include_usage":true}}`},
		{"openai-completions", "openai-completions", dialect.Options{Model: "m", Temperature: 0.7, TopP: 1e-7}, "/v1/completions",
			`{"model":"m","prompt":"a \"b\"\n","max_tokens":7,"temperature":0.7,"top_p":0.0000001,"stream":false}`},
		{"everything", "openai-chat", dialect.Options{Model: "m", Stream: true, ContinuousUsage: true, IgnoreEOS: true, MaxCompletionTokens: true, TopP: 1, Seed: 9}, "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"a \"b\"\n"}],"max_completion_tokens":7,"temperature":0,"top_p":1,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"seed":9,"ignore_eos":true,"min_tokens":7}`},
	} {
		d := speak(t, c.endpoint, c.o)
		if got := string(d.AppendBody(nil, &q)); got != c.want || d.Path() != c.path {
			t.Errorf("%s: %s\n got %s\nwant %s %s", c.name, d.Path(), got, c.path, c.want)
		}
	}
}

func TestBodyWithoutLengthSetsNoLimit(t *testing.T) {
	d := speak(t, "openai-chat", dialect.Options{IgnoreEOS: true})
	if got := string(d.AppendBody(nil, &plan.Request{})); strings.Contains(got, "tokens") || !json.Valid([]byte(got)) {
		t.Errorf("got %s, want JSON without a token limit", got)
	}
}

func TestForRefusesWhatItCannotSend(t *testing.T) {
	for endpoint, o := range map[string]dialect.Options{
		"embeddings": {}, "": {}, "openai-chat": {Temperature: math.NaN()}, "openai-completions": {TopP: math.Inf(1)},
	} {
		if d, err := dialect.For(endpoint, o); err == nil {
			t.Errorf("For(%q, %+v) = %v, want an error", endpoint, o, d)
		}
	}
}

func FuzzBodyIsJSONOfThePrompt(f *testing.F) {
	f.Add("plain", "m", 3, 0.5)
	f.Add("\x00\x1f\"\\/\u2028\u00e9\U0001F600\x7f</script>", "a\"b", 0, 1e-9)
	f.Add("broken \xff\xc3", "\xf0\x9f", 1<<30, 1e300)
	f.Fuzz(func(t *testing.T, prompt, model string, n int, temperature float64) {
		for _, endpoint := range []string{"openai-chat", "openai-completions"} {
			d, err := dialect.For(endpoint, dialect.Options{Model: model, Stream: true, IgnoreEOS: true, Temperature: temperature})
			if err != nil {
				return
			}
			body := d.AppendBody([]byte("#"), &plan.Request{Prompt: prompt, OutputTokens: n})[1:]
			var got struct {
				Model, Prompt string
				Messages      []struct{ Role, Content string }
				MaxTokens     int `json:"max_tokens"`
				MinTokens     int `json:"min_tokens"`
				Temperature   float64
			}
			if err := json.Unmarshal(body, &got); err != nil || !utf8.Valid(body) {
				t.Fatalf("%q: %v", body, err)
			}
			if endpoint == "openai-chat" {
				got.Prompt = got.Messages[0].Content
			}
			if got.Prompt != valid(prompt) || got.Model != valid(model) || got.Temperature != temperature {
				t.Errorf("%q: got %+v", body, got)
			}
			if got.MaxTokens != max(n, 0) || got.MinTokens != max(n, 0) {
				t.Errorf("max_tokens %d, min_tokens %d, want %d", got.MaxTokens, got.MinTokens, n)
			}
		}
	})
}

// valid replaces every byte that is not UTF-8, as encoding/json does.
func valid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

// data is an event's data without its name and framing.
func data(event string) []byte {
	if strings.HasPrefix(event, "event:") {
		_, event, _ = strings.Cut(event, "\n")
	}
	return []byte(strings.TrimSuffix(strings.TrimPrefix(event, "data: "), "\n\n"))
}

func TestGlanceKnowsTokenEventsOfOtherReplies(t *testing.T) {
	var a dialect.Answer
	r := speak(t, "openai-chat", dialect.Options{}).NewReader()
	event := func(id, created, text string) []byte {
		return fmt.Appendf(nil, `{"id":"chatcmpl-%s","object":"chat.completion.chunk","created":%s,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}]}`, id, created, text)
	}
	r.Read(&a, nil, event("1", "1700000000", "x"))
	for _, c := range []struct {
		name string
		data []byte
		want bool
	}{
		{"other text", event("1", "1700000000", "other"), true},
		{"other reply", event("abcdef", "9", " ä"), true},
		{"escapes", event("1", "2", `\n\"\u00e9`), true},
		{"no text", event("1", "2", ""), false},
		{"broken escape", event("1", "2", `\x`), false},
		{"raw newline", event("1", "2", "a\nb"), false},
		{"ends in a backslash", event("1", "2", `a\`), false},
		{"more members", event("1", "2", `a","role":"x`), false},
		{"broken number", event("1", "01", "a"), false},
		{"other shape", bytes.Replace(event("1", "2", "a"), []byte("null}"), []byte(`"stop"}`), 1), false},
		{"cut", event("1", "2", "a")[:90], false},
		{"longer", append(event("1", "2", "a"), '}'), false},
	} {
		m, ok := r.Glance(&a, nil, c.data)
		if ok != c.want || ok && m != (dialect.Meaning{Kind: record.KindContent}) {
			t.Errorf("%s: Glance(%s) = %+v, %v, want ok %v", c.name, c.data, m, ok, c.want)
		}
	}
	if _, ok := r.Glance(&a, []byte("error"), event("1", "2", "a")); ok {
		t.Errorf("Glance takes an event named error for a token")
	}
}

// FuzzGlanceAgreesWithRead teaches a reader one event, shows it another, and holds what it says at a glance to what a
// fresh reader reads.
func FuzzGlanceAgreesWithRead(f *testing.F) {
	endpoints := plan.Endpoints()
	for _, fx := range allFixtures() {
		if body := strings.Join(fx.reads, ""); len(body) < 10_000 {
			events := strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n")
			for i := range events {
				f.Add(uint8(max(0, slices.Index(endpoints, fx.endpoint))), data(events[i]), data(events[(i+1)%len(events)]), uint16(7), uint16(9), byte('"'), "y")
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, lesson, event []byte, at, to uint16, c byte, text string) {
		d, err := dialect.For(endpoints[int(which)%len(endpoints)], dialect.Options{Template: described})
		if err != nil {
			return
		}
		taught := d.NewReader()
		var a dialect.Answer
		taught.Read(&a, nil, lesson)
		for _, e := range [][]byte{event, lesson, changed(lesson, int(at), c), spliced(lesson, int(at), int(to), text)} {
			var quick, slow dialect.Answer
			for range 2 {
				m, ok := taught.Glance(&quick, nil, e)
				want := d.NewReader().Read(&slow, nil, e)
				if ok && (m != want || !reflect.DeepEqual(quick, slow)) {
					t.Fatalf("taught by %q, %q: Glance %+v %+v, Read %+v %+v", lesson, e, m, quick, want, slow)
				}
				quick = slow
			}
		}
	})
}

// TestGlanceAgreesWithReadOnEveryChangedByte does so for each event of the fixtures with one byte changed, left out or
// doubled.
func TestGlanceAgreesWithReadOnEveryChangedByte(t *testing.T) {
	tried, glanced := map[string]bool{}, map[string]int{}
	for _, f := range allFixtures() {
		d := speak(t, cmp.Or(f.endpoint, "openai-chat"), dialect.Options{})
		slow := d.NewReader()
		for _, e := range strings.Split(strings.ReplaceAll(strings.Join(f.reads, ""), "\r\n", "\n"), "\n\n") {
			lesson := data(e)
			if tried[f.endpoint+e] || len(e) > 1000 || len(lesson) == 0 {
				continue
			}
			tried[f.endpoint+e] = true
			quick := d.NewReader()
			quick.Read(new(dialect.Answer), nil, lesson)
			for at := range lesson {
				mutants := [][]byte{spliced(lesson, at, at+1, ""), spliced(lesson, at, at, string(lesson[at:at+1]))}
				for _, c := range []byte("\"\\x0}\n,\xff") {
					mutants = append(mutants, changed(lesson, at, c))
				}
				for _, m := range mutants {
					var a, b dialect.Answer
					got, ok := quick.Glance(&a, nil, m)
					if !ok {
						continue
					}
					glanced[cmp.Or(f.endpoint, "openai-chat")]++
					if want := slow.Read(&b, nil, m); got != want || !reflect.DeepEqual(a, b) {
						t.Fatalf("taught by %s, %s: Glance %+v %+v, Read %+v %+v", lesson, m, got, a, want, b)
					}
				}
			}
		}
	}
	for _, endpoint := range []string{"openai-chat", "openai-responses", "anthropic-messages"} {
		if n := glanced[endpoint]; n < 500 {
			t.Errorf("%s: only %d events were read at a glance", endpoint, n)
		}
	}
}

func changed(b []byte, at int, c byte) []byte {
	b = bytes.Clone(b)
	if len(b) > 0 {
		b[at%len(b)] = c
	}
	return b
}

func spliced(b []byte, at, to int, text string) []byte {
	at, to = at%(len(b)+1), to%(len(b)+1)
	at, to = min(at, to), max(at, to)
	return []byte(string(b[:at]) + text + string(b[to:]))
}

// FuzzReadKnowsJSON holds the walk over an event to encoding/json: it reads what is JSON and nothing else, raw control
// bytes in strings and great depth apart.
func FuzzReadKnowsJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":[1,-0.5e+3,true,false,null,"\u00e9\n"]}`, `{"a":{"b":[{}]},}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":-}`, `{"a":"\x"}`,
		`{"a":"\u12"}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1}}`, `[1,]`, `{"a":[,1]}`, `{"a":nul}`, `{"choices":{"index":[1,2]}}`, "{\"a\":\"\xff\"}", `{"choices":[{"delta":[1],"index":1.5e3}]}`,
		`{"usage":{"completion_tokens":99999999999999999999,"prompt_tokens":-4}}`, `{"choices":[{"delta":{"tool_calls":[null,{"function":{"arguments":{"a":1}}}]}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		trimmed := bytes.Trim(b, " \t\r\n")
		if len(trimmed) == 0 || string(trimmed) == "[DONE]" || bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > 200 {
			return
		}
		var a dialect.Answer
		m := speak(t, "openai-chat", dialect.Options{}).NewReader().Read(&a, nil, b)
		want := json.Valid(b) && trimmed[0] == '{'
		lenient := a.Malformed == 1 && m.Kind != record.KindMalformed // a raw control byte
		if got := m.Kind != record.KindMalformed; got != want && !lenient {
			t.Errorf("%q: read %v, JSON object %v", b, got, want)
		}
	})
}

func TestDeepNestingIsRefused(t *testing.T) {
	var a dialect.Answer
	r := speak(t, "openai-chat", dialect.Options{}).NewReader()
	for _, s := range []string{`{"a":` + strings.Repeat("[", 1<<20), `{"choices":[{"delta":{"content":` + strings.Repeat("[", 1<<20)} {
		if m := r.Read(&a, nil, []byte(s)); m.Kind != record.KindMalformed {
			t.Errorf("%.40s…: kind %v, want %v", s, m.Kind, record.KindMalformed)
		}
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	r := speak(t, "openai-chat", dialect.Options{}).NewReader()
	var a dialect.Answer
	events := [][]byte{data(evR), data(evA), data(evB), data(chat(`{"index":0,"delta":{"content":"a\n"}}`)), data(evF), data(evU)}
	reading := func() {
		a.Reset()
		for _, e := range events {
			r.Read(&a, nil, e)
		}
	}
	if n := testing.AllocsPerRun(50, reading); n != 0 {
		t.Errorf("Read: %v allocations for %d events, want 0", n, len(events))
	}
	glancing := func() {
		for _, e := range events {
			r.Glance(&a, nil, e)
		}
	}
	if n := testing.AllocsPerRun(50, glancing); n != 0 {
		t.Errorf("Glance: %v allocations for %d events, want 0", n, len(events))
	}
	d, body, q := speak(t, "openai-chat", dialect.Options{}), make([]byte, 0, 4096), plan.Request{Prompt: "a\"ö", OutputTokens: 5}
	if n := testing.AllocsPerRun(50, func() { body = d.AppendBody(body[:0], &q) }); n != 0 {
		t.Errorf("AppendBody: %v allocations, want 0", n)
	}
}

func TestExactTokensNeedCountsOfAllBefore(t *testing.T) {
	use := func(text, n string) string {
		return `{"choices":[{"index":0,"delta":{"content":"` + text + `"}}],"usage":{"completion_tokens":` + n + `}}`
	}
	plain := `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
	for _, c := range []struct {
		name   string
		events []string
		want   dialect.Meaning // of the last
	}{
		{"first", []string{use("a", "3")}, dialect.Meaning{Kind: record.KindContent, Tokens: 3, Exact: true}},
		{"growth", []string{use("a", "3"), use("a", "5")}, dialect.Meaning{Kind: record.KindContent, Tokens: 2, Exact: true}},
		{"no growth", []string{use("a", "3"), use("a", "3")}, dialect.Meaning{Kind: record.KindContent, Tokens: 0, Exact: true}},
		{"shrinks", []string{use("a", "3"), use("a", "2")}, dialect.Meaning{Kind: record.KindContent}},
		{"zero", []string{use("a", "0")}, dialect.Meaning{Kind: record.KindContent}},
		{"total on the last text", []string{plain, use("a", "2")}, dialect.Meaning{Kind: record.KindContent}},
		{"counted again", []string{plain, use("a", "2"), use("a", "3")}, dialect.Meaning{Kind: record.KindContent, Tokens: 1, Exact: true}},
		{"two choices", []string{use("a", "1"), strings.Replace(use("a", "1"), `"index":0`, `"index":1`, 1)}, dialect.Meaning{Kind: record.KindContent}},
	} {
		var a dialect.Answer
		var got dialect.Meaning
		r := speak(t, "openai-chat", dialect.Options{}).NewReader()
		for _, e := range c.events {
			got = r.Read(&a, nil, []byte(e))
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestNoCachedTokensAreACountOnlyIfTheServerCounts(t *testing.T) {
	for _, c := range []struct {
		endpoint, event string
		want            bool
	}{
		{"openai-chat", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, false},
		{"openai-chat", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":null}}`, false},
		{"openai-chat", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":null}}}`, false},
		{"openai-chat", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`, true},
		{"openai-chat", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_cache_hit_tokens":0}}`, true},
		{"openai-chat", `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}`, false},
		{"openai-responses", `{"type":"response.completed","response":{"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":2}}}`, true},
		{"anthropic-messages", `{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":0}}}`, true},
		{"anthropic-messages", `{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, false},
		{"gemini", `{"usageMetadata":{"promptTokenCount":3}}`, false},
		{"gemini", `{"usageMetadata":{"promptTokenCount":3,"cachedContentTokenCount":0}}`, true},
		{"sglang", `{"text":"a","meta_info":{"completion_tokens":1,"prompt_tokens":3,"cached_tokens":0}}`, true},
		{"sglang", `{"text":"a","meta_info":{"completion_tokens":1,"prompt_tokens":3}}`, false},
		{"llamacpp", `{"content":"","stop":true,"tokens_evaluated":3,"timings":{"cache_n":0}}`, true},
		{"llamacpp", `{"content":"","stop":true,"tokens_evaluated":3,"tokens_cached":9}`, false},
		{"ollama", `{"message":{},"done":true,"prompt_eval_count":3}`, false},
	} {
		var a dialect.Answer
		speak(t, c.endpoint, dialect.Options{Stream: true}).NewReader().Read(&a, nil, []byte(c.event))
		if a.Usage.CachedKnown != c.want || a.Usage.Cached != 0 {
			t.Errorf("%s: %s: cached tokens known %v, %d, want %v, 0", c.endpoint, c.event, a.Usage.CachedKnown, a.Usage.Cached, c.want)
		}
	}
}

func TestOutcomeFollowsHeadBytesAndAnswer(t *testing.T) {
	all := []string{evR, evA, evF, evD}
	for _, c := range []struct {
		name   string
		events []string
		status int
		whole  bool
		want   record.Outcome
	}{
		{"complete", all, 200, true, record.Completed},
		{"broken behind the end marker", all, 200, false, record.Completed},
		{"finished but cut", all[:3], 200, false, record.Truncated},
		{"finished without end marker", all[:3], 200, true, record.Completed},
		{"end marker without finish", []string{evA, evD}, 200, true, record.Completed},
		{"unfinished", all[:2], 200, true, record.Truncated},
		{"no event", nil, 200, true, record.Truncated},
		{"no token", []string{evR, evF, evD}, 200, true, record.Empty},
		{"error and end marker", []string{evA, "data: {\"error\":\"x\"}\n\n", evF, evD}, 200, true, record.StreamError},
		{"status", all, 429, true, record.HTTPError},
		{"redirected", nil, 307, true, record.HTTPError},
		{"no reply", nil, 0, false, record.Reset},
	} {
		var a dialect.Answer
		r := speak(t, "openai-chat", dialect.Options{}).NewReader()
		for _, e := range c.events {
			r.Read(&a, nil, data(e))
		}
		if got := a.Outcome(c.status, c.whole); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDocumentsAreReadWhole(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       record.Outcome
		m          dialect.Meaning
		err        string
	}{
		{"openai-chat", `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, record.Completed, dialect.Meaning{Kind: record.KindContent, Tokens: 2, Exact: true}, ""},
		{"openai-completions", "\xef\xbb\xbf" + `{"choices":[{"text":"hi","finish_reason":null}]}`, record.Completed, dialect.Meaning{Kind: record.KindContent}, ""},
		{"tool", `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`, record.Completed, dialect.Meaning{Kind: record.KindTool}, ""},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, record.Completed, dialect.Meaning{Kind: record.KindContent}, ""},
		{"empty", `{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`, record.Empty, dialect.Meaning{Kind: record.KindFinish}, ""},
		{"error", `{"error":{"message":"boom"}}`, record.StreamError, dialect.Meaning{Kind: record.KindError}, `{"error":{"message":"boom"}}`},
		{"no completion", `{"status":"ok"}`, record.StreamError, dialect.Meaning{Kind: record.KindError}, `the reply has no choices: {"status":"ok"}`},
		{"HTML", "<html>", record.StreamError, dialect.Meaning{Kind: record.KindError}, "the reply is neither an event stream nor JSON: <html>"},
		{"nothing", "\n", record.StreamError, dialect.Meaning{Kind: record.KindError}, "the reply has no body"},
	} {
		var a dialect.Answer
		m := speak(t, "openai-chat", dialect.Options{}).NewReader().ReadDocument(&a, []byte(c.body))
		if got := a.Outcome(200, true); got != c.want || m != c.m || a.Error != c.err || a.NotStreamed {
			t.Errorf("%s: %v %+v %q, not streamed %v, want %v %+v %q, false", c.name, got, m, a.Error, a.NotStreamed, c.want, c.m, c.err)
		}
	}
}

func TestEvidenceIsShortAndHoldsNoSecret(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"error":"Incorrect API key provided: sk-proj-abcdefgh1234."}`, `{"error":"Incorrect API key provided: sk-***"}`},
		{"Authorization: Bearer abc.def-123", "Authorization: ***"},
		{`{"authorization":"Basic dXNlcjpwYXNz","x":1}`, `{"authorization":"***","x":1}`},
		{`{"headers":{"api-key": "0123456789"}}`, `{"headers":{"api-key": "***"}}`},
		{`"{\"api_key\":\"0123456789\"}"`, `"{\"api_key\":\"***\"}"`},
		{"missing bearer authentication", "missing bearer authentication"},
		{"at https://user:hunter22pass@host/v1", "at https://user:***@host/v1"},
		{"my own key-77 is echoed", "my own *** is echoed"},
		{"risk-averse task", "risk-averse task"},
		{strings.Repeat("ö", 4000), strings.Repeat("ö", 2048)},
		{"cut in a rune \xc3", "cut in a rune \uFFFD"},
	} {
		if got := dialect.Mask(c.text, "key-77"); got != c.want {
			t.Errorf("Mask(%.80q) = %.80q, want %.80q", c.text, got, c.want)
		}
	}
	d := speak(t, "openai-chat", dialect.Options{Secrets: []string{"key-77"}})
	var a dialect.Answer
	d.NewReader().Read(&a, nil, []byte(`{"error":"bad key-77 `+strings.Repeat("x", 1<<20)+`"}`))
	if len(a.Error) > 4<<10 || strings.Contains(a.Error, "key-77") {
		t.Errorf("kept %d bytes: %.60q, want at most 4096 without the key", len(a.Error), a.Error)
	}
}

var sink dialect.Meaning

func BenchmarkGlance(b *testing.B) {
	r := speak(b, "openai-chat", dialect.Options{}).NewReader()
	var a dialect.Answer
	e := data(tokenEvent)
	r.Read(&a, nil, e)
	b.SetBytes(int64(len(e)))
	for b.Loop() {
		sink, _ = r.Glance(&a, nil, e)
	}
}

func BenchmarkRead(b *testing.B) {
	r := speak(b, "openai-chat", dialect.Options{}).NewReader()
	var a dialect.Answer
	e := data(tokenEvent)
	b.SetBytes(int64(len(e)))
	for b.Loop() {
		sink = r.Read(&a, nil, e)
	}
}

const tokenEvent = `{"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`
