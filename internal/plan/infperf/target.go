package infperf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target says whom the load goes to.
func (c *converter) target() {
	kind := c.choice("api.type", "completion", "completion", "chat", "anthropic_messages")
	if c.rendered() && kind == "completion" {
		kind = "chat"
		c.note(c.get("data.use_chat_template"), "data.use_chat_template", "prompts go to the endpoint openai-chat, where the server puts its template around them")
	}
	endpoint := map[string]string{"completion": "openai-completions", "chat": "openai-chat", "anthropic_messages": "anthropic-messages"}[kind]
	if c.text("data.type", "") == "conversation_replay" && kind == "completion" {
		endpoint = "openai-chat"
		c.note(c.get("data.type"), "data.type", "conversations are sent as messages, to the endpoint openai-chat")
	}
	if endpoint != "" {
		c.set("target.endpoint", endpoint, c.get("api.type"))
	}
	c.set("target.stream", strconv.FormatBool(c.truth("api.streaming", false)), c.get("api.streaming"))
	c.pass("target.url", "server.base_url")
	c.pass("target.model", "server.model_name")
	c.pass("target.client_cert_file", "server.cert_path")
	c.pass("target.client_key_file", "server.key_path")
	if v := c.choice("server.type", "vllm", "vllm", "sglang", "tgi", "mock"); v == "mock" {
		c.fault(c.get("server.type"), "server.type", "mock is no server, and nothing would be sent", "tare sim is a server to try things with: set base_url to its address")
	}
	c.timeout()
	c.headers(kind)
	c.ignoreEOS(kind)
}

func (c *converter) timeout() {
	n := c.get("load.request_timeout")
	if n == nil {
		c.set("target.timeout", "5m", nil)
		return
	}
	if d, ok := c.seconds(n, "load.request_timeout"); ok {
		c.set("target.timeout", d, n)
	}
}

// seconds writes a number of seconds as a duration.
func (c *converter) seconds(n *node, path string) (text string, ok bool) {
	v, ok := n.number()
	if !ok || math.IsNaN(v) || math.Abs(v) > 1e9 {
		c.fault(n, path, "must be a number of seconds", "")
		return "", false
	}
	return time.Duration(math.Round(v * 1e9)).String(), true
}

// headers are the config's own; they go before the API key.
func (c *converter) headers(kind string) {
	key := "Authorization"
	if kind == "anthropic_messages" {
		key = "x-api-key"
	}
	given := false
	if h := c.get("api.headers"); h != nil {
		for _, e := range h.keys {
			if e.node == nil || !e.node.single {
				c.fault(e.at, "api.headers."+e.name, "must be text", "")
				continue
			}
			given = given || strings.EqualFold(e.name, key)
			c.set("target.headers."+e.name, e.node.text, e.at)
		}
	}
	switch n := c.get("server.api_key"); {
	case n == nil || n.text == "":
	case given:
		c.note(n, "server.api_key", "is not sent: api.headers has "+key)
	case kind == "anthropic_messages":
		c.set("target.headers."+key, n.text, n)
	default:
		c.set("target.headers."+key, "Bearer "+n.text, n)
	}
}

func (c *converter) ignoreEOS(kind string) {
	n := c.get("server.ignore_eos")
	ignore := c.truth("server.ignore_eos", true)
	if kind != "anthropic_messages" {
		c.set("workload.ignore_eos", strconv.FormatBool(ignore), n)
	} else if n != nil && ignore {
		c.note(n, "server.ignore_eos", "is not sent with anthropic_messages")
	}
}

// rendered says that prompts are to be within the model's chat template.
func (c *converter) rendered() bool {
	return c.text("data.type", "mock") == "random" && c.truth("data.use_chat_template", false)
}

// answers says what form answers are to have, and how requests name their sessions.
func (c *converter) answers() {
	const path = "api.response_format"
	n := c.get(path)
	chat := c.text("api.type", "completion") == "chat"
	switch kind := c.text(path+".type", "json_schema"); {
	case n.idle():
	case !chat:
		c.note(n, path, "has no effect without api.type chat, as there")
	case kind == "json_object":
		c.set("target.response_format", `{"type":"json_object"}`, n)
	case kind == "json_schema":
		form := append([]byte(`{"type":"json_schema","json_schema":{"name":`), n.child("name").jsonOr(`"structured_output"`)...)
		form = append(append(form, `,"schema":`...), n.child("json_schema").jsonOr(`{}`)...)
		c.set("target.response_format", string(append(form, `}}`...)), n)
	default:
		c.fault(n.child("type"), path+".type", fmt.Sprintf("must be one of json_schema, json_object, got %q", kind), "")
	}
	c.pass("target.session_header", "api.session_id_header_key")
	const token = "api.session_token_header_key"
	switch n := c.get(token); {
	case n.idle():
	case c.sessions():
		c.fault(n, token, "is refused: headers of replies are not sent back", "leave it out; api.session_id_header_key keeps sessions together")
	default:
		c.note(n, token, "has no effect: every session is a request")
	}
}

// storage says where the run is written.
func (c *converter) storage() {
	n := c.get("storage.local_storage.path")
	if n == nil || !n.single || n.text == "" {
		return
	}
	if strings.Contains(n.text, "{timestamp}") && c.around.Time == "" {
		c.note(n, "storage.local_storage.path", fmt.Sprintf("%s is left out: out without a value is a directory named by the time", n.text))
		return
	}
	c.set("out", strings.ReplaceAll(n.text, "{timestamp}", c.around.Time), n)
}

// goodput makes objectives of each request. A constraint holds at its limit too.
func (c *converter) goodput() {
	var asked []string
	for _, g := range []struct{ theirs, ours string }{
		{"ttft", "ttft"}, {"tpot", "tpot"}, {"itl", "tpot"}, {"ntpot", "ntpot"}, {"request_latency", "e2e"},
	} {
		path := "report.goodput.constraints." + g.theirs
		at := c.get(path)
		if at == nil || !at.single || at.text == "" {
			continue
		}
		seconds, err := strconv.ParseFloat(at.text, 64)
		limit := time.Duration(math.Round(seconds * 1e9))
		if err != nil || !(seconds > 0 && seconds < 1e9) || limit <= 0 {
			c.fault(at, path, fmt.Sprintf("must be a number of seconds above 0, got %q", at.text), "")
			continue
		}
		if text := g.ours + "<=" + limit.String(); !slices.Contains(asked, text) {
			c.set(fmt.Sprintf("slo[%d]", len(asked)), text, at)
			asked = append(asked, text)
		}
	}
}
