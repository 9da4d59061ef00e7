package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// sign is one thing that speaks for a kind of server.
type sign struct {
	kind    string
	version string // empty where the sign does not tell
	text    string
}

// name decides what kind of server it is: the kind that most signs speak for, and of equals the one whose sign came first.
func (p *prober) name() {
	s := &p.found.Server
	signs := p.signs()
	votes := map[string]int{}
	for _, v := range signs {
		votes[v.kind]++
		s.Evidence = append(s.Evidence, p.mask(v.text))
	}
	for _, v := range signs {
		if votes[v.kind] > votes[s.Kind] {
			s.Kind = v.kind
		}
	}
	for _, v := range signs {
		if v.kind == s.Kind && s.Version == "" {
			s.Version = p.mask(v.version)
		}
	}
	if len(votes) > 1 {
		p.note("the signs speak for different servers: something may stand in front, or answer for several")
	}
	s.Header = p.mask(p.header("Server"))
	p.front()
}

// header is the first value of a header field among all replies.
func (p *prober) header(name string) string {
	for _, path := range paths {
		if v := p.gets[path].header.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// front notes what only something in front of a server adds.
func (p *prober) front() {
	for _, name := range []string{"Via", "X-Litellm-Version", "Cf-Ray", "X-Envoy-Upstream-Service-Time", "X-Cache", "X-Amz-Cf-Id", "X-Kong-Proxy-Latency"} {
		if v := p.header(name); v != "" {
			p.note(p.mask(fmt.Sprintf("something stands in front of the server: header %s: %s", name, v)))
		}
	}
}

// owners are the kinds of server by what they call the owner of a model.
var owners = map[string]string{
	"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama", "tensorrt_llm": "tensorrt-llm", "tare-sim": "tare sim",
	"organization_owner": "lm studio",
}

// prefixes are the kinds of server by how the names of their metrics begin.
var prefixes = []struct{ prefix, kind string }{
	{"vllm:", "vllm"},
	{"sglang:", "sglang"},
	{"sglang_", "sglang"},
	{"tgi_", "tgi"},
	{"llamacpp:", "llama.cpp"},
	{"nv_inference_", "triton"},
	{"trtllm_", "tensorrt-llm"},
}

// signs gathers what the replies to the plain questions show.
func (p *prober) signs() (signs []sign) {
	add := func(kind, version, format string, of ...any) {
		signs = append(signs, sign{kind, version, fmt.Sprintf(format, of...)})
	}
	for _, m := range models(p.gets["/v1/models"].object()) {
		if kind, known := owners[m.Owner]; known {
			add(kind, "", "/v1/models: owned_by %s", m.Owner)
			break
		}
	}
	if o := p.gets["/info"].object(); text(o, "model_id") != "" {
		add("tgi", text(o, "version"), "/info: model_id %s", text(o, "model_id"))
	}
	for _, path := range []string{"/get_server_info", "/server_info"} {
		switch o := p.gets[path].object(); {
		case o["internal_states"] != nil || o["tokenizer_path"] != nil:
			add("sglang", text(o, "version"), "%s: arguments of SGLang", path)
		case o["vllm_config"] != nil:
			add("vllm", "", "%s: vllm_config", path)
		}
	}
	if o := p.gets["/props"].object(); o["default_generation_settings"] != nil || o["build_info"] != nil {
		add("llama.cpp", text(o, "build_info"), "/props: %s", cmp.Or(text(o, "build_info"), "default_generation_settings"))
	}
	if v := text(p.gets["/api/version"].object(), "version"); v != "" {
		add("ollama", v, "/api/version: version %s", v)
	}
	if bytes.HasPrefix(p.gets["/"].body, []byte("Ollama is running")) {
		add("ollama", "", "/: Ollama is running")
	}
	if o := p.gets["/v2"].object(); strings.Contains(text(o, "name"), "triton") {
		add("triton", text(o, "version"), "/v2: name %s", text(o, "name"))
	}
	for _, f := range families(p.gets["/metrics"]) {
		add(f.kind, "", "/metrics: names begin with %s", f.prefix)
	}
	if v := p.header("Server"); v == "llama.cpp" {
		add("llama.cpp", "", "header Server: %s", v)
	}
	// Other servers have a /version as well: it speaks for vLLM where something else does.
	if v := text(p.gets["/version"].object(), "version"); v != "" && slices.ContainsFunc(signs, func(s sign) bool { return s.kind == "vllm" }) {
		add("vllm", v, "/version: version %s", v)
	}
	return settle(signs)
}

// settle leaves out what a stand-in for another server's metrics or version says, where the models have a clear owner: a
// simulator that writes vLLM's names is no vLLM.
func settle(signs []sign) []sign {
	if len(signs) == 0 || signs[0].kind != owners["tare-sim"] {
		return signs
	}
	return slices.DeleteFunc(signs, func(s sign) bool { return s.kind != signs[0].kind })
}

// families are the known prefixes among the names of metrics, each once.
func families(g get) (found []struct{ prefix, kind string }) {
	if g.status != http.StatusOK || g.page() {
		return nil
	}
	for _, f := range prefixes {
		for lines := bufio.NewScanner(bytes.NewReader(g.body)); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), f.prefix) {
				found = append(found, f)
				break
			}
		}
	}
	return found
}

// list takes the models that the server lists, and chooses the one to ask for.
func (p *prober) list() {
	p.found.Models = append(p.found.Models, models(p.gets["/v1/models"].object())...)
	if id := text(p.gets["/info"].object(), "model_id"); id != "" && len(p.found.Models) == 0 {
		p.found.Models = append(p.found.Models, Model{Name: id})
	}
	p.found.Models = slices.DeleteFunc(p.found.Models, func(m Model) bool { return p.echoes(m.Name) })
	for i := range p.found.Models {
		m := &p.found.Models[i]
		m.Owner = p.mask(m.Owner)
	}
	p.found.Model = p.cfg.Model
	switch listed := p.found.Models; {
	case p.cfg.Model == "" && len(listed) > 0:
		p.found.Model = listed[0].Name
	case p.cfg.Model != "" && len(listed) > 0 && !slices.ContainsFunc(listed, func(m Model) bool { return m.Name == p.cfg.Model }):
		p.note(fmt.Sprintf("model %s is not among those that the server lists", p.cfg.Model))
	}
}

// echoes reports that a name, which is sent and printed as it is, holds one of our secrets.
func (p *prober) echoes(name string) bool {
	return slices.ContainsFunc(p.cfg.Get.Secrets, func(s string) bool { return s != "" && strings.Contains(name, s) })
}

// models reads the list in OpenAI's form; other lists give none.
func models(list map[string]any) (all []Model) {
	data, _ := list["data"].([]any)
	for _, d := range data {
		o, _ := d.(map[string]any)
		if id := text(o, "id"); id != "" {
			all = append(all, Model{Name: id, Owner: text(o, "owned_by"), Context: contextOf(o)})
		}
	}
	return all
}

// contextOf is a model's longest context, where each server has it; 0 for unknown.
func contextOf(model map[string]any) int {
	if n, ok := model["max_model_len"].(float64); ok {
		return int(n)
	}
	meta, _ := model["meta"].(map[string]any) // llama.cpp
	for _, key := range []string{"n_ctx", "n_ctx_train"} {
		if n, ok := meta[key].(float64); ok {
			return int(n)
		}
	}
	return 0
}

// text is a member of an object that is a string; empty for none.
func text(o map[string]any, key string) string {
	s, _ := o[key].(string)
	return s
}

// shapeOf names the members of an error: "error.message, error.type". It is empty for what is no JSON object.
func shapeOf(body string) string {
	var o map[string]any
	if json.Unmarshal([]byte(body), &o) != nil {
		return ""
	}
	var names []string
	for key, v := range o {
		inner, _ := v.(map[string]any)
		for within := range inner {
			names = append(names, key+"."+within)
		}
		if len(inner) == 0 {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
