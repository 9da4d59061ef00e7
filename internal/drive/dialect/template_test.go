package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
	"tare/internal/record"
)

// described is an endpoint like no other.
var described = plan.Template{
	Path: "/v9/say?x=1",
	Body: `{"q": {{prompt}}, "talk": {{messages}}, "ids": {{prompt_ids}}, "who": {{model}}, "n": {{max_tokens}}, "heat": {{temperature}},
	"p": {{ top_p }}, "s": {{seed}}, "live": {{stream}}, "on": {{ignore_eos}}, "kit": {{tools}}, "salt": {{cache_salt}}}`,
	Text: "/out/t", Reasoning: "/think", UsageInput: "/use/0", UsageOutput: "/use/1", UsageCached: "/use/2", Finish: "/why", Error: "/bad",
}

func describedAs(change func(*plan.Template)) plan.Template {
	t := described
	change(&t)
	return t
}

var (
	repeating = describedAs(func(t *plan.Template) { t.Cumulative, t.UsageOutput, t.UsageInput, t.UsageCached = true, "", "", "" })
	tallying  = describedAs(func(t *plan.Template) { t.Cumulative = true })
	inLines   = describedAs(func(t *plan.Template) { t.Framing, t.Done = plan.FramingLines, `{"over":true}` })
	unmarked  = describedAs(func(t *plan.Template) { t.Finish = "" })
	marked    = describedAs(func(t *plan.Template) { t.Finish, t.Done = "", "THE END" })
	forced    = describedAs(func(t *plan.Template) { t.Framing = plan.FramingSSE })
	listed    = describedAs(func(t *plan.Template) { t.Text, t.Finish = "/parts/1/say", "/parts/1/a~1\"b" })
)

func say(text string) string { return `{"id":7,"out":{"t":"` + text + `"},"why":null,"bad":null}` }

const sayEnd = `{"out":{},"why":"stop","use":[3,2,1,9]}`

func told(kinds, exact, finish string, change func(*found)) found {
	return native(kinds, exact, finish, func(w *found) {
		w.usage.Cached, w.terminated = 1, false
		if change != nil {
			change(w)
		}
	})
}

func untold(w *found) { w.usage = record.Usage{} }

var templateFixtures = of("template", []fixture{
	{id: "P01", says: "template: text, then a finish reason and usage", reads: sse(say("Hello "), say("wörld"), sayEnd), want: told("ccf", "?,?", "stop", nil)},
	{id: "P02", says: "template: CRLF, all in one read", reads: crlf(strings.Join(sse(say("Hello "), say("wörld"), sayEnd), "")), want: told("ccf", "?,?", "stop", nil)},
	{id: "P03", says: "template: [DONE] behind it", reads: sse(say("Hello "), say("wörld"), sayEnd, "[DONE]"), want: told("ccfd", "?,?", "stop", func(w *found) { w.terminated = true })},
	{id: "P04", says: "template: usage in every event", reads: sse(`{"out":{"t":"Hello "},"use":[3,1]}`, `{"out":{"t":"wörld"},"use":[3,4]}`, `{"why":true}`), want: told("ccf", "1,3", "true", func(w *found) { w.usage.Output, w.usage.Cached = 4, 0 })},
	{id: "P05", says: "template: reasoning, then text", reads: sse(`{"think":"Hello ","out":{"t":""}}`, say("wörld"), sayEnd), want: told("tcf", "?,?", "stop", nil)},
	{id: "P06", says: "template: an error mid-stream", reads: sse(say("Hello "), `{"bad":{"text":"boom"}}`, "[DONE]"), want: func() found { w := failed("ced", "?"); w.terminated = true; return w }()},
	{id: "P06b", says: "template: event: error", reads: append(sse(say("Hello ")), "event: error\ndata: boom\n\n"), want: failed("ce", "?")},
	{id: "P07", says: "template: clean end without a finish reason", reads: sse(say("Hello ")), want: unended("c", "?")},
	{id: "P07b", says: "template: body cut off", reads: sse(say("Hello "), say("wörld"), sayEnd), cut: true, want: told("ccf", "?,?", "stop", func(w *found) { w.outcome = record.Truncated })},
	{id: "P08", says: "template: no token", reads: sse(say(""), sayEnd), want: told("of", "", "stop", func(w *found) { w.outcome, w.text, w.tokens = record.Empty, "", 0 })},
	{id: "P09", says: "template: an event that is not JSON", reads: sse(say("Hello "), "{", say("wörld"), sayEnd), want: told("cmcf", "?,?", "stop", func(w *found) { w.malformed = 1 })},
	{id: "P10", says: "template: other members, other types", reads: sse(`{"out":7,"think":null,"use":{},"x":[[{"t":"no"}]]}`, say("Hello "), `{"out":["no"],"use":null}`, say("wörld"), sayEnd), want: told("ococf", "?,?", "stop", nil)},
	{id: "P11", says: "template: the text so far in every event", template: repeating, reads: sse(say("Hello "), say("Hello "), say("Hello wörld"), `{"out":{"t":"Hello wörld"},"why":"stop"}`), want: told("cocf", "?,?", "stop", func(w *found) { untold(w); w.text = "Hello Hello Hello wörldHello wörld" })},
	{id: "P11b", says: "template: the text so far, and counts", template: tallying, reads: sse(`{"out":{"t":"Hello "},"use":[3,1]}`, `{"out":{"t":"Hello "},"use":[3,2]}`, `{"out":{"t":"Hello wörld"},"use":[3,4,1]}`, `{"out":{"t":"Hello wörld"},"use":[3,4,1],"why":"stop"}`), want: told("cccf", "1,1,2", "stop", func(w *found) { w.tokens, w.usage.Output, w.text = 3, 4, "Hello Hello Hello wörldHello wörld" })},
	{id: "P12", says: "template: lines of JSON under another type, with an end of its own", template: inLines, kind: "application/json", reads: ndjson(say("Hello "), say("wörld"), sayEnd, `{"over":true}`), want: told("ccfd", "?,?", "stop", func(w *found) { w.terminated = true })},
	{id: "P13", says: "template: nothing marks the end", template: unmarked, reads: sse(say("Hello "), say("wörld")), want: told("cc", "?,?", "", untold)},
	{id: "P13b", says: "template: nothing marks the end, body cut off", template: unmarked, reads: sse(say("Hello "), say("wörld")), cut: true, want: told("cc", "?,?", "", func(w *found) { untold(w); w.outcome = record.Truncated })},
	{id: "P14", says: "template: an end marker of its own", template: marked, reads: sse(say("Hello "), say("wörld"), "THE END"), want: told("ccd", "?,?", "", func(w *found) { untold(w); w.terminated = true })},
	{id: "P14b", says: "template: without its end marker", template: marked, reads: sse(say("Hello ")), want: unended("c", "?")},
	{id: "P15", says: "template: server-sent events under another type", template: forced, kind: "application/json", reads: append(one("x\n\n"), sse(say("Hello "), say("wörld"), sayEnd)...), want: told("ccf", "?,?", "stop", nil)},
	{id: "P16", says: "template: elements of arrays, names with escapes", template: listed, reads: sse(`{"parts":[{"say":""},{"say":"Hello "}]}`, `{"parts":["x",{"say":"wörld"},{"say":""}]}`, `{"parts":[0,{"a\/b":"no","a\/\"b":"no","a\/\u0022b":"no"}]}`), want: told("ccf", "?,?", "no", untold)},
	{id: "P20", says: "template: a document instead of a stream", kind: "application/json", reads: one(`{"out":{"t":"Hello wörld"},"why":"stop","use":[3,2,1]}`), want: told("c", "2", "stop", func(w *found) { w.tokens, w.notStreamed, w.terminated = 1, true, true })},
	{id: "P21", says: "template: a document without text", kind: "application/json", reads: one(`{"status":"ok"}`), want: found{outcome: record.StreamError, kinds: "e", notStreamed: true}},
}...)

func TestATemplatesBodySaysWhatWasAsked(t *testing.T) {
	d := speak(t, "template", dialect.Options{Model: "m", Stream: true, Temperature: 0.5, TopP: 1, Seed: 9, IgnoreEOS: true})
	for _, c := range []struct {
		q    plan.Request
		want string
	}{
		{plan.Request{Prompt: "a \"b\"\n", OutputTokens: 7}, `{"q":"a \"b\"\n","talk":[{"role":"user","content":"a \"b\"\n"}],"ids":[],"who":"m","n":7,"heat":0.5,"p":1,"s":9,"live":true,"on":true,"kit":null,"salt":null}`},
		{plan.Request{PromptIDs: []uint32{4, 5}, Model: "other", CacheSalt: "s", Tools: weather}, `{"q":"","talk":[{"role":"user","content":""}],"ids":[4,5],"who":"other","n":0,"heat":0.5,"p":1,"s":9,"live":true,"on":true,"kit":` + string(weather) + `,"salt":"s"}`},
	} {
		if got := d.AppendBody(nil, &c.q); !sameJSON(got, []byte(c.want)) || d.Path() != "/v9/say?x=1" {
			t.Errorf("%s: got %s, want %s", d.Path(), got, c.want)
		}
	}
}

func TestATemplateAcceptsWhatItHasPlacesFor(t *testing.T) {
	d := speak(t, "template", dialect.Options{Template: plan.Template{Body: `{"q":{{prompt}}}`, Text: "/t"}})
	if got, want := d.Accepts(), (plan.Features{Messages: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for body, want := range map[string]bool{
		`{"q":{{prompt}},"t":{{temperature}},"p":{{top_p}}}`: true, `{"q":{{prompt}},"temperature":1,"topP":1}`: true, `{"q":{{prompt}},"t":{{temperature}}}`: false,
	} {
		if got := speak(t, "template", dialect.Options{Template: plan.Template{Body: body, Text: "/t"}}).Accepts().Sampling; got != want {
			t.Errorf("%s: got sampling %v, want %v", body, got, want)
		}
	}
	for _, tpl := range []plan.Template{{}, {Body: `{"q":{{prompt}}}`}, {Body: `{"q":{{prompt}}}`, Text: "t"}} {
		if _, err := dialect.For("template", dialect.Options{Template: tpl}); err == nil {
			t.Errorf("%+v: got no error", tpl)
		}
	}
	if _, err := dialect.For("template", dialect.Options{IgnoreEOS: true, Template: plan.Template{Body: `{"q":{{prompt}}}`, Text: "/t"}}); err == nil || !strings.HasPrefix(err.Error(), "workload.ignore_eos: ") {
		t.Errorf("ignore_eos without a place: got %v, want it refused", err)
	}
}

func TestATemplatesFramingFollowsTheStream(t *testing.T) {
	for _, c := range []struct {
		stream bool
		given  string
		want   string
	}{{true, "", ""}, {false, "", plan.FramingDocument}, {true, plan.FramingLines, plan.FramingLines}} {
		tpl := describedAs(func(t *plan.Template) { t.Framing = c.given })
		if got := speak(t, "template", dialect.Options{Stream: c.stream, Template: tpl}).Framing(); got != c.want {
			t.Errorf("stream %v, framing %q: got %q, want %q", c.stream, c.given, got, c.want)
		}
	}
}

func TestATemplateReadsWithoutAllocation(t *testing.T) {
	r := speak(t, "template", dialect.Options{Stream: true}).NewReader()
	var a dialect.Answer
	events := [][]byte{[]byte(say("a")), []byte(say("b")), []byte(sayEnd)}
	n := testing.AllocsPerRun(50, func() {
		a.Reset()
		for _, e := range events {
			if _, ok := r.Glance(&a, nil, e); !ok {
				r.Read(&a, nil, e)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for %d events, want 0", n, len(events))
	}
	if _, ok := r.Glance(&a, nil, []byte(say("another"))); !ok {
		t.Errorf("a token event like an earlier one was not known at a glance")
	}
}

// FuzzTemplateReadsWhatItsPlacesHold holds the walk along pointers to encoding/json and a walk of its own.
func FuzzTemplateReadsWhatItsPlacesHold(f *testing.F) {
	f.Add("/out/t", `{"out":{"t":"a"}}`)
	f.Add("/a/0/b~1", `{"a":[{"b/":"x"}],"a":[{"b\/":""}]}`)
	f.Add("/0", `{"0":"x","00":"y"}`)
	f.Add("/a/", `{"a":{"":"x"}}`)
	f.Fuzz(func(t *testing.T, pointer, event string) {
		names, err := plan.Pointer(pointer)
		if err != nil || !utf8.ValidString(event) || !utf8.ValidString(pointer) || strings.Count(event, "{")+strings.Count(event, "[") > 200 {
			return
		}
		d, err := dialect.For("template", dialect.Options{Stream: true, Template: plan.Template{Body: `{{prompt}}`, Text: pointer}})
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if json.Unmarshal([]byte(event), &value) != nil || hasTwins([]byte(event)) {
			return
		}
		if _, ok := value.(map[string]any); !ok {
			return
		}
		var a dialect.Answer
		m := d.NewReader().Read(&a, nil, []byte(event))
		text, isText := at(value, names).(string)
		if got, want := m.Kind == record.KindContent, isText && text != ""; got != want && a.Error == "" && isPlain(at(value, names)) {
			t.Errorf("%q in %s: token %v, want %v (%q)", pointer, event, got, want, fmt.Sprint(at(value, names)))
		}
	})
}

// isPlain reports whether a value is neither parts nor a part of a text, of which the reader knows more.
func isPlain(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

// hasTwins reports whether some object has a key twice, of which encoding/json keeps the last.
func hasTwins(event []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(event)))
	var keys []map[string]bool
	var name []bool
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		n := len(keys) - 1
		switch v := token.(type) {
		case json.Delim:
			if v == '}' || v == ']' {
				keys, name = keys[:n], name[:n]
				if n > 0 && keys[n-1] != nil {
					name[n-1] = true
				}
				continue
			}
			if n >= 0 {
				name[n] = false
			}
			if v == '{' {
				keys, name = append(keys, map[string]bool{}), append(name, true)
			} else {
				keys, name = append(keys, nil), append(name, false)
			}
		case string:
			if n >= 0 && keys[n] != nil && name[n] {
				if keys[n][v] {
					return true
				}
				keys[n][v] = true
				name[n] = false
				continue
			}
			if n >= 0 && keys[n] != nil {
				name[n] = true
			}
		default:
			if n >= 0 && keys[n] != nil {
				name[n] = true
			}
		}
	}
}

func at(v any, names []string) any {
	for _, name := range names {
		switch c := v.(type) {
		case map[string]any:
			v = c[name]
		case []any:
			v = nil
			for i := range c {
				if fmt.Sprint(i) == name {
					v = c[i]
				}
			}
		default:
			return nil
		}
	}
	return v
}
