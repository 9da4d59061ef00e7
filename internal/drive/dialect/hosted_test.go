package dialect_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
)

func TestHostedBodySaysWhatWasAsked(t *testing.T) {
	q := plan.Request{Prompt: "a \"b\"\n", OutputTokens: 7}
	for _, c := range []struct {
		name, endpoint string
		o              dialect.Options
		path, want     string
	}{
		{"openai-responses", "openai-responses", dialect.Options{Model: "m", Stream: true, TopP: 1}, "/v1/responses",
			`{"model":"m","input":"a \"b\"\n","max_output_tokens":7,"temperature":0,"top_p":1,"stream":true}`},
		{"responses, everything", "openai-responses", dialect.Options{Model: "m", TopP: 0.5, Seed: 9, IgnoreEOS: true}, "/v1/responses",
			`{"model":"m","input":"a \"b\"\n","max_output_tokens":7,"temperature":0,"top_p":0.5,"stream":false,"seed":9,"ignore_eos":true}`},
		{"anthropic-messages", "anthropic-messages", dialect.Options{Model: "m", Stream: true, TopP: 1}, "/v1/messages",
			`{"model":"m","messages":[{"role":"user","content":"a \"b\"\n"}],"max_tokens":7,"temperature":0,"stream":true}`},
		{"anthropic, top_p", "anthropic-messages", dialect.Options{Model: "m", Temperature: 0.5, TopP: 0.9, Seed: 9, IgnoreEOS: true}, "/v1/messages",
			`{"model":"m","messages":[{"role":"user","content":"a \"b\"\n"}],"max_tokens":7,"temperature":0.5,"top_p":0.9,"stream":false,"seed":9,"ignore_eos":true}`},
		{"gemini", "gemini", dialect.Options{Model: "models/m-1", Stream: true, TopP: 1}, "/v1beta/models/m-1:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user","parts":[{"text":"a \"b\"\n"}]}],"generationConfig":{"temperature":0,"topP":1,"maxOutputTokens":7}}`},
		{"gemini, everything", "gemini", dialect.Options{Model: "a b", Temperature: 0.5, TopP: 0.9, Seed: 9}, "/v1beta/models/a%20b:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"a \"b\"\n"}]}],"generationConfig":{"temperature":0.5,"topP":0.9,"seed":9,"maxOutputTokens":7}}`},
	} {
		d := speak(t, c.endpoint, c.o)
		if got := string(d.AppendBody(nil, &q)); got != c.want || d.Path() != c.path {
			t.Errorf("%s: %s\n got %s\nwant %s %s", c.name, d.Path(), got, c.path, c.want)
		}
		if bare := d.AppendBody(nil, &plan.Request{}); !json.Valid(bare) || strings.Contains(strings.ToLower(string(bare)), "tokens") {
			t.Errorf("%s: without a length got %s, want JSON without a limit", c.name, bare)
		}
	}
}

func TestForRefusesOptionsAnEndpointLacks(t *testing.T) {
	for _, endpoint := range plan.Endpoints() {
		_, err := dialect.For(endpoint, dialect.Options{ContinuousUsage: true})
		if refused, want := err != nil, endpoint != "openai-chat" && endpoint != "openai-completions"; refused != want {
			t.Errorf("%s with continuous usage: got error %v, want one: %v", endpoint, err, want)
		}
		_, err = dialect.For(endpoint, dialect.Options{ReturnTokenIDs: true})
		if refused, want := err != nil, endpoint != "openai-chat" && endpoint != "openai-completions"; refused != want {
			t.Errorf("%s with token ids: got error %v, want one: %v", endpoint, err, want)
		}
	}
	for _, endpoint := range []string{"gemini", "tgi", "ollama"} {
		if _, err := dialect.For(endpoint, dialect.Options{IgnoreEOS: true}); err == nil || !strings.HasPrefix(err.Error(), "workload.ignore_eos: ") {
			t.Errorf("%s: got %v, want ignore_eos refused", endpoint, err)
		}
	}
}

// TestEveryEndpointReadsOnlyJSON holds each grammar to encoding/json on every fixture's events with one byte changed.
func TestEveryEndpointReadsOnlyJSON(t *testing.T) {
	tried := map[string]bool{}
	for _, f := range allFixtures() {
		r := speak(t, cmp.Or(f.endpoint, "openai-chat"), dialect.Options{}).NewReader()
		for _, e := range strings.Split(strings.ReplaceAll(strings.Join(f.reads, ""), "\r\n", "\n"), "\n\n") {
			b := data(e)
			if tried[f.endpoint+e] || len(e) > 1000 || !json.Valid(b) || b[0] != '{' {
				continue
			}
			tried[f.endpoint+e] = true
			for at := 0; at < len(b); at += 3 {
				for _, m := range [][]byte{spliced(b, at, at+1, ""), changed(b, at, '"'), changed(b, at, '}'), changed(b, at, '['), changed(b, at, '0')} {
					var a dialect.Answer
					r.Read(&a, nil, m)
					if read, want := a.Malformed == 0, json.Valid(m) && strings.HasPrefix(strings.TrimLeft(string(m), " "), "{"); read != want {
						t.Fatalf("%s, %s: read %v, JSON object %v", f.id, m, read, want)
					}
				}
			}
		}
	}
}

func TestReadingHostedEventsAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		events   []string
	}{
		{"openai-responses", []string{reC, reI, reP, reA, reB, reX, reD}},
		{"anthropic-messages", []string{anS, anI, anP, anA, anB, anX, anF, anD}},
		{"gemini", []string{geA, geB}},
	} {
		r := speak(t, c.endpoint, dialect.Options{}).NewReader()
		var events [][]byte
		for _, e := range c.events {
			events = append(events, data(strings.ReplaceAll(e, "\r\n", "\n")))
		}
		var a dialect.Answer
		n := testing.AllocsPerRun(50, func() {
			a.Reset()
			for _, e := range events {
				if _, ok := r.Glance(&a, nil, e); !ok {
					r.Read(&a, nil, e)
				}
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations for %d events, want 0", c.endpoint, n, len(events))
		}
	}
}

func TestTokenEventsOfHostedServicesAreKnownAtAGlance(t *testing.T) {
	for endpoint, events := range map[string][2]string{
		"openai-responses":   {reA, strings.Replace(reDelta(17, "response.output_text.delta", "other"), "msg_1", "msg_2", 1)},
		"anthropic-messages": {anA, anDelta("text", "text", "other")},
	} {
		var a, b dialect.Answer
		d := speak(t, endpoint, dialect.Options{})
		quick := d.NewReader()
		quick.Read(new(dialect.Answer), nil, data(events[0]))
		got, ok := quick.Glance(&a, nil, data(events[1]))
		if want := d.NewReader().Read(&b, nil, data(events[1])); !ok || got != want || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: Glance %v %+v %+v, Read %+v %+v", endpoint, ok, got, a, want, b)
		}
	}
}

// FuzzReadOfNamedEvents feeds any bytes under any name to the readers and holds a second one, taught by them, to the first.
func FuzzReadOfNamedEvents(f *testing.F) {
	for _, fx := range append(append([]fixture(nil), responsesFixtures...), anthropicFixtures...) {
		for _, e := range strings.Split(strings.Join(fx.reads, ""), "\n\n") {
			f.Add(fx.endpoint == "openai-responses", "response.output_text.delta", data(e))
		}
	}
	f.Fuzz(func(t *testing.T, responses bool, name string, event []byte) {
		endpoint := "anthropic-messages"
		if responses {
			endpoint = "openai-responses"
		}
		d := speak(t, endpoint, dialect.Options{})
		taught := d.NewReader()
		taught.Read(new(dialect.Answer), []byte(name), event)
		for _, n := range []string{name, "", "message_stop"} {
			var a, b dialect.Answer
			want := d.NewReader().Read(&b, []byte(n), event)
			if got, ok := taught.Glance(&a, []byte(n), event); ok && (got != want || !reflect.DeepEqual(a, b)) {
				t.Errorf("%s %q: Glance %+v %+v, Read %+v %+v", n, event, got, a, want, b)
			}
			taught.ReadDocument(&b, event)
		}
	})
}
