package dialect_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
)

// picture is a PNG of one pixel.
func picture() (media string, file []byte) {
	var b bytes.Buffer
	png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1)))
	return "image/png", b.Bytes()
}

var weather = []byte(`[{"type":"function","function":{"name":"weather","description":"The \"weather\".","parameters":{"type":"object","properties":{"at":{"type":"string"}}},"strict":true}}]`)

func TestARequestIsWrittenInEachEndpointsWords(t *testing.T) {
	media, file := picture()
	coded := base64.StdEncoding.EncodeToString(file)
	talk := []plan.Message{{Role: "system", Text: "Be \"brief\"."}, {Role: "user", Text: "a"}, {Role: "assistant", Text: "b\n"}, {Role: "user", Text: "ö"}}
	look := []plan.Message{{Role: "user", Text: "What?", Media: []plan.Medium{{MediaType: media, Bytes: file}, {MediaType: "image/jpeg", Bytes: []byte{0xff}}}}}
	tooled := []plan.Message{{Role: "assistant", Calls: []byte(`[{"id":"c1"}]`)}, {Role: "tool", Text: "4", Answers: "c1"}}
	film := []plan.Message{{Role: "user", Text: "What?", Media: []plan.Medium{{MediaType: "audio/wav", Bytes: []byte{0xff}}, {MediaType: "video/mp4", Bytes: []byte{0xff}, First: true}}}}
	mute := []plan.Message{{Role: "user", Media: []plan.Medium{{MediaType: media, Bytes: file}}}}
	const plain = `"system: Be \"brief\".\n\nuser: a\n\nassistant: b\n\n\nuser: ö\n\nassistant:"`
	const openAI = `[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"a"},{"role":"assistant","content":"b\n"},{"role":"user","content":"ö"}]`
	for _, c := range []struct {
		endpoint string
		q        plan.Request
		member   string // of the body, by dots
		want     string // JSON; empty for none
	}{
		{"openai-chat", plan.Request{Messages: talk}, "messages", openAI},
		{"openai-chat", plan.Request{Messages: look}, "messages", `[{"role":"user","content":[{"type":"text","text":"What?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + coded + `"}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/w=="}}]}]`},
		{"openai-chat", plan.Request{Messages: tooled}, "messages", `[{"role":"assistant","content":"","tool_calls":[{"id":"c1"}]},{"role":"tool","content":"4","tool_call_id":"c1"}]`},
		{"openai-responses", plan.Request{Messages: tooled}, "input", `[{"role":"assistant","content":"[{\"id\":\"c1\"}]"},{"role":"user","content":"4"}]`},
		{"anthropic-messages", plan.Request{Messages: tooled}, "messages", `[{"role":"assistant","content":"[{\"id\":\"c1\"}]"},{"role":"user","content":"4"}]`},
		{"ollama", plan.Request{Messages: tooled}, "messages", `[{"role":"assistant","content":"[{\"id\":\"c1\"}]"},{"role":"user","content":"4"}]`},
		{"tgi", plan.Request{Messages: tooled}, "inputs", `"assistant: [{\"id\":\"c1\"}]\n\nuser: 4\n\nassistant:"`},
		{"gemini", plan.Request{Messages: tooled}, "contents", `[{"role":"model","parts":[{"text":"[{\"id\":\"c1\"}]"}]},{"role":"user","parts":[{"text":"4"}]}]`},
		{"openai-chat", plan.Request{Messages: film}, "messages", `[{"role":"user","content":[{"type":"video_url","video_url":{"url":"data:video/mp4;base64,/w=="}},{"type":"text","text":"What?"},{"type":"input_audio","input_audio":{"data":"/w==","format":"wav"}}]}]`},
		{"openai-chat", plan.Request{Messages: mute}, "messages", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + coded + `"}}]}]`},
		{"openai-chat", plan.Request{Prompt: "a", Tools: weather}, "tools", string(weather)},
		{"openai-chat", plan.Request{Prompt: "a"}, "tools", ""},
		{"openai-chat", plan.Request{Prompt: "a", CacheSalt: "s\"1"}, "cache_salt", `"s\"1"`},
		{"openai-chat", plan.Request{Prompt: "a"}, "cache_salt", ""},
		{"openai-chat", plan.Request{Prompt: "a", Model: "lora-1"}, "model", `"lora-1"`},
		{"openai-chat", plan.Request{Prompt: "a"}, "model", `"m"`},
		{"openai-chat", plan.Request{Prompt: "a", Prioritized: true, Priority: -3}, "priority", `-3`},
		{"openai-chat", plan.Request{Prompt: "a", Prioritized: true}, "priority", `0`},
		{"openai-chat", plan.Request{Prompt: "a"}, "priority", ""},
		{"openai-completions", plan.Request{Prompt: "a", Prioritized: true, Priority: 2}, "priority", `2`},
		{"openai-responses", plan.Request{Prompt: "a", Prioritized: true, Priority: 2}, "priority", `2`},
		{"sglang", plan.Request{Prompt: "a", Prioritized: true, Priority: 2}, "priority", `2`},
		{"openai-completions", plan.Request{PromptIDs: []uint32{1, 4294967295, 7}}, "prompt", `[1,4294967295,7]`},
		{"openai-completions", plan.Request{Messages: talk}, "prompt", plain},
		{"openai-completions", plan.Request{Prompt: "a", CacheSalt: "s"}, "cache_salt", `"s"`},
		{"openai-completions", plan.Request{Prompt: "a", Model: "lora-1"}, "model", `"lora-1"`},
		{"openai-responses", plan.Request{Messages: talk}, "input", openAI},
		{"openai-responses", plan.Request{Prompt: "a", Tools: weather}, "tools", `[{"type":"function","name":"weather","description":"The \"weather\".","parameters":{"type":"object","properties":{"at":{"type":"string"}}},"strict":true}]`},
		{"openai-responses", plan.Request{Prompt: "a", Tools: []byte(`[{"type":"web_search"}]`)}, "tools", `[{"type":"web_search"}]`},
		{"openai-responses", plan.Request{Prompt: "a", CacheSalt: "s"}, "cache_salt", `"s"`},
		{"anthropic-messages", plan.Request{Messages: talk}, "messages", `[{"role":"user","content":"a"},{"role":"assistant","content":"b\n"},{"role":"user","content":"ö"}]`},
		{"anthropic-messages", plan.Request{Messages: talk}, "system", `[{"type":"text","text":"Be \"brief\"."}]`},
		{"anthropic-messages", plan.Request{Messages: talk[1:]}, "system", ""},
		{"anthropic-messages", plan.Request{Messages: look}, "messages", `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + coded + `"}},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/w=="}},{"type":"text","text":"What?"}]}]`},
		{"anthropic-messages", plan.Request{Messages: mute}, "messages", `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + coded + `"}}]}]`},
		{"anthropic-messages", plan.Request{Prompt: "a", Tools: weather}, "tools", `[{"name":"weather","description":"The \"weather\".","input_schema":{"type":"object","properties":{"at":{"type":"string"}}}}]`},
		{"anthropic-messages", plan.Request{Prompt: "a", Tools: []byte(`[{"type":"function","function":{"name":"f"}}]`)}, "tools", `[{"name":"f","input_schema":{"type":"object"}}]`},
		{"gemini", plan.Request{Messages: talk}, "contents", `[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b\n"}]},{"role":"user","parts":[{"text":"ö"}]}]`},
		{"gemini", plan.Request{Messages: talk}, "systemInstruction", `{"parts":[{"text":"Be \"brief\"."}]}`},
		{"gemini", plan.Request{Messages: look}, "contents", `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + coded + `"}},{"inlineData":{"mimeType":"image/jpeg","data":"/w=="}},{"text":"What?"}]}]`},
		{"gemini", plan.Request{Prompt: "a"}, "systemInstruction", ""},
		{"tgi", plan.Request{Messages: talk}, "inputs", plain},
		{"tgi", plan.Request{Prompt: "a", Model: "lora-1"}, "parameters.adapter_id", `"lora-1"`},
		{"tgi", plan.Request{Prompt: "a"}, "parameters.adapter_id", ""},
		{"llamacpp", plan.Request{PromptIDs: []uint32{5}}, "prompt", `[5]`},
		{"llamacpp", plan.Request{Messages: talk}, "prompt", plain},
		{"sglang", plan.Request{PromptIDs: []uint32{5, 6}}, "input_ids", `[5,6]`},
		{"sglang", plan.Request{PromptIDs: []uint32{5, 6}}, "text", ""},
		{"sglang", plan.Request{Messages: talk}, "text", plain},
		{"sglang", plan.Request{Prompt: "a", Model: "lora-1"}, "lora_path", `"lora-1"`},
		{"triton", plan.Request{Messages: talk}, "text_input", plain},
		{"ollama", plan.Request{Messages: talk}, "messages", openAI},
		{"ollama", plan.Request{Prompt: "a", Tools: weather}, "tools", string(weather)},
		{"ollama", plan.Request{Prompt: "a", Model: "other"}, "model", `"other"`},
	} {
		body := speak(t, c.endpoint, dialect.Options{Model: "m", Stream: true, TopP: 1}).AppendBody(nil, &c.q)
		if got := member(body, c.member); !sameJSON(got, []byte(c.want)) {
			t.Errorf("%s: %s is %s, want %s, in %s", c.endpoint, c.member, got, c.want, body)
		}
	}
}

// member returns a member of a JSON object, and of the objects in it, nil for none.
func member(body []byte, path string) []byte {
	var got json.RawMessage = body
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(got, &object) != nil {
			return []byte("no JSON object")
		}
		got = object[name]
	}
	return got
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, _ := json.Marshal(x)
	second, _ := json.Marshal(y)
	return bytes.Equal(first, second)
}

// TestWhatAnEndpointAcceptsIsInItsBody sends each thing a request may have to each endpoint, and holds Accepts to whether it is in
// the body.
func TestWhatAnEndpointAcceptsIsInItsBody(t *testing.T) {
	media, _ := picture()
	for _, endpoint := range plan.Endpoints() {
		d := speak(t, endpoint, dialect.Options{Model: "m", Temperature: 0.5})
		f := d.Accepts()
		for _, c := range []struct {
			name    string
			accepts bool
			q       plan.Request
			mark    string
		}{
			{"model", f.Model, plan.Request{Model: "mark-1"}, "mark-1"},
			{"token ids", f.PromptIDs, plan.Request{PromptIDs: []uint32{77123}}, "77123"},
			{"messages", f.Messages, plan.Request{Messages: []plan.Message{{Role: "user", Text: "mark-2"}}}, "mark-2"},
			{"images", f.Images, plan.Request{Messages: []plan.Message{{Role: "user", Text: "x", Media: []plan.Medium{{MediaType: media, Bytes: []byte("mark-3")}}}}}, base64.StdEncoding.EncodeToString([]byte("mark-3"))},
			{"tools", f.Tools, plan.Request{Tools: []byte(`[{"type":"function","function":{"name":"mark-4"}}]`)}, "mark-4"},
			{"sampling", f.Sampling, plan.Request{}, "0.5"},
			{"cache salt", f.CacheSalt, plan.Request{CacheSalt: "mark-5"}, "mark-5"},
			{"priority", f.Priority, plan.Request{Prioritized: true, Priority: -61007}, "-61007"},
		} {
			body := d.AppendBody(nil, &c.q)
			if got := bytes.Contains(body, []byte(c.mark)); got != c.accepts {
				t.Errorf("%s: %s accepted %v, in the body %v: %s", endpoint, c.name, c.accepts, got, body)
			}
			if !json.Valid(body) {
				t.Errorf("%s: %s: %s is not JSON", endpoint, c.name, body)
			}
		}
	}
}

func TestTokenIDsAreAskedForWhereWished(t *testing.T) {
	for _, endpoint := range []string{"openai-chat", "openai-completions"} {
		for _, wished := range []bool{true, false} {
			body := speak(t, endpoint, dialect.Options{ReturnTokenIDs: wished}).AppendBody(nil, &plan.Request{Prompt: "a"})
			if got := string(member(body, "return_token_ids")) == "true"; got != wished {
				t.Errorf("%s, wished %v: got %s", endpoint, wished, body)
			}
		}
	}
}

func TestWritingAnyRequestAllocatesNothing(t *testing.T) {
	media, file := picture()
	q := plan.Request{
		Model: "lora-1", PromptIDs: []uint32{1, 2, 3}, Tools: weather, CacheSalt: "s", OutputTokens: 5, Prioritized: true, Priority: 3,
		Messages: []plan.Message{{Role: "system", Text: "x"}, {Role: "user", Text: "a", Media: []plan.Medium{{MediaType: media, Bytes: file}}}},
	}
	for _, endpoint := range plan.Endpoints() {
		d, body := speak(t, endpoint, dialect.Options{Model: "m"}), make([]byte, 0, 1<<16)
		if n := testing.AllocsPerRun(50, func() { body = d.AppendBody(body[:0], &q) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", endpoint, n)
		}
	}
}
