package probe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// routes is a server that answers these paths and no others. A key of a full path goes before one that ends in a slash.
type routes map[string]http.HandlerFunc

func (r routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if h, ok := r[req.URL.Path]; ok {
		h(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, `{"detail":"Not Found"}`)
}

// says answers with a fixed text.
func says(media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		io.WriteString(w, text)
	}
}

func saysJSON(text string) http.HandlerFunc { return says("application/json", text) }

// asked is what the fakes read of a request.
type asked struct {
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
	IDs       bool   `json:"return_token_ids"`
	MaxTokens int    `json:"max_tokens"`
	Options   struct {
		Continuous bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	Parameters struct {
		MaxNewTokens int `json:"max_new_tokens"`
	} `json:"parameters"`
	SamplingParams struct {
		MaxNewTokens int `json:"max_new_tokens"`
	} `json:"sampling_params"`
}

func read(r *http.Request) (a asked) {
	b, _ := io.ReadAll(r.Body)
	json.Unmarshal(b, &a) // what is not understood is not asked
	return a
}

// sends writes server-sent events, each flushed.
func sends(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		io.WriteString(w, e+"\n\n")
		w.(http.Flusher).Flush()
	}
}

// chat is OpenAI's chat as most servers have it. It knows one model.
func chat(model string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := read(r)
		if a.Model != model {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"error":{"message":"The model %s does not exist.","type":"NotFoundError","code":404}}`, a.Model)
			return
		}
		usage := `{"prompt_tokens":9,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":0}}`
		if !a.Stream {
			fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"content":"one"},"finish_reason":"length"}],"usage":`+usage+`}`, a.MaxTokens)
			return
		}
		var events []string
		for i := range a.MaxTokens {
			e := `data: {"choices":[{"index":0,"delta":{"content":"one "}}]`
			if a.IDs {
				e = `data: {"choices":[{"index":0,"delta":{"content":"one "},"token_ids":[7]}]`
			}
			if a.Options.Continuous {
				e += fmt.Sprintf(`,"usage":`+usage, i+1)
			}
			events = append(events, e+"}")
		}
		sends(w, append(events, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`,
			fmt.Sprintf(`data: {"choices":[],"usage":`+usage+"}", a.MaxTokens), "data: [DONE]")...)
	}
}

func vllm() routes {
	return routes{
		"/version":             saysJSON(`{"version":"0.11.2"}`),
		"/v1/models":           saysJSON(`{"data":[{"id":"big","owned_by":"vllm","max_model_len":4096},{"id":"lora","owned_by":"vllm"}]}`),
		"/metrics":             says("text/plain", "# HELP x\nvllm:num_requests_running 0\nvllm:prompt_tokens_total 3\n"),
		"/v1/chat/completions": chat("big"),
	}
}

func sglang() routes {
	return routes{
		"/get_server_info": saysJSON(`{"version":"0.5.4","tokenizer_path":"q","internal_states":[{}]}`),
		"/v1/models":       saysJSON(`{"data":[{"id":"qwen","owned_by":"sglang","max_model_len":32768}]}`),
		"/generate": func(w http.ResponseWriter, r *http.Request) {
			a := read(r)
			meta := `{"prompt_tokens":7,"completion_tokens":%d,"cached_tokens":6,"finish_reason":%s}`
			if !a.Stream {
				fmt.Fprintf(w, `{"text":"a","meta_info":`+meta+"}", 1, `{"type":"length"}`)
				return
			}
			n := a.SamplingParams.MaxNewTokens
			for i := range n {
				reason := "null"
				if i == n-1 {
					reason = `{"type":"length"}`
				}
				sends(w, fmt.Sprintf(`data: {"text":%q,"output_ids":[5],"meta_info":`+meta+"}", strings.Repeat("a", i+1), i+1, reason))
			}
			sends(w, "data: [DONE]")
		},
	}
}

func tgi() routes {
	return routes{
		"/info": saysJSON(`{"model_id":"org/model","version":"3.3.6","router":"text-generation-router","max_total_tokens":8192}`),
		"/generate": func(w http.ResponseWriter, r *http.Request) {
			if read(r).Parameters.MaxNewTokens == 0 {
				w.WriteHeader(http.StatusUnprocessableEntity)
				io.WriteString(w, "Failed to deserialize the JSON body into the target type: missing field `inputs`")
				return
			}
			io.WriteString(w, `{"generated_text":"one","details":{"finish_reason":"length","generated_tokens":1,"prefill":[{}]}}`)
		},
		"/generate_stream": func(w http.ResponseWriter, r *http.Request) {
			n := read(r).Parameters.MaxNewTokens
			for i := range n - 1 {
				sends(w, fmt.Sprintf(`data:{"index":%d,"token":{"id":5,"text":"a","special":false},"generated_text":null,"details":null}`, i+1))
			}
			sends(w, fmt.Sprintf(`data:{"index":%d,"token":{"id":5,"text":"a","special":false},"generated_text":"aaaa",`+
				`"details":{"finish_reason":"length","generated_tokens":%d}}`, n, n))
		},
	}
}

func ollama() routes {
	last := `{"model":"llama","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":11,"eval_count":%d}` + "\n"
	return routes{
		"/":            says("text/plain", "Ollama is running"),
		"/api/version": saysJSON(`{"version":"0.13.0"}`),
		"/v1/models":   saysJSON(`{"data":[{"id":"llama","owned_by":"library"}]}`),
		"/api/chat": func(w http.ResponseWriter, r *http.Request) {
			if !read(r).Stream {
				io.WriteString(w, `{"message":{"content":"one"},"done":true,"done_reason":"length","prompt_eval_count":11,"eval_count":1}`)
				return
			}
			w.Header().Set("Content-Type", "application/x-ndjson")
			for range 8 {
				io.WriteString(w, `{"message":{"role":"assistant","content":"a"},"done":false}`+"\n")
			}
			fmt.Fprintf(w, last, 8)
		},
	}
}

func anthropic(key string) routes {
	return routes{
		"/v1/messages": func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("X-Api-Key"); got != key {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key %s"}}`, got)
				return
			}
			if !read(r).Stream {
				io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"one"}],"stop_reason":"max_tokens","usage":{"input_tokens":5,"output_tokens":1}}`)
				return
			}
			events := []string{"event: message_start\n" + `data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}`}
			for range 8 {
				events = append(events, "event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`)
			}
			sends(w, append(events, "event: message_delta\n"+`data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":8}}`,
				"event: message_stop\n"+`data: {"type":"message_stop"}`)...)
		},
	}
}

func llamacpp() routes {
	last := `{"content":"","stop":true,"stop_type":"limit","tokens_predicted":%d,"tokens_evaluated":13,"timings":{"cache_n":12,"prompt_n":1,"predicted_n":%d}}`
	return routes{
		"/props": saysJSON(`{"default_generation_settings":{},"build_info":"b7001-abc"}`),
		"/completion": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Server", "llama.cpp")
			if !read(r).Stream {
				fmt.Fprintf(w, strings.Replace(last, `"content":""`, `"content":"a"`, 1), 1, 1)
				return
			}
			for range 8 {
				sends(w, `data: {"content":"a","tokens":[5],"stop":false}`)
			}
			sends(w, "data: "+fmt.Sprintf(last, 8, 8))
		},
	}
}
