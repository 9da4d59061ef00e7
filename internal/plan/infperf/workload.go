package infperf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// workload says what requests are made of.
func (c *converter) workload() {
	kind := c.choice("data.type", "mock", dataTypes...)
	c.unused(kind)
	switch kind {
	case "mock":
		c.set("workload.input_tokens", "4", c.get("data.type"))
		c.set("workload.output_tokens", "30", c.get("data.type"))
	case "random", "synthetic":
		c.synthetic(kind)
	case "shared_prefix":
		c.prefixes()
	case "conversation_replay":
		c.conversations()
	case "shareGPT", "cnn_dailymail":
		c.dataset(kind)
	case "billsum_conversations", "infinity_instruct":
		c.fault(c.get("data.type"), "data.type", kind+" is refused: its rules for rows and lengths are not known here",
			"--dataset FILE sends a file of conversations, see docs/datasets.md")
	case "otel_trace_replay", "weka_trace_replay":
		c.recorded(kind)
	case "visionarena":
		c.pictures()
	}
}

var dataTypes = []string{
	"mock", "shareGPT", "synthetic", "random", "shared_prefix", "cnn_dailymail", "infinity_instruct", "billsum_conversations",
	"otel_trace_replay", "weka_trace_replay", "conversation_replay", "visionarena",
}

// unused notes the keys that go with another type of data.
func (c *converter) unused(kind string) {
	for _, k := range []struct {
		name  string
		types []string
	}{
		{"path", []string{"shareGPT", "cnn_dailymail", "billsum_conversations", "infinity_instruct"}},
		{"corpus_file_path", []string{"synthetic"}},
		{"input_distribution", []string{"random", "synthetic", "shareGPT"}},
		{"output_distribution", []string{"random", "synthetic", "shareGPT"}},
		{"trace", []string{"random", "synthetic"}},
		{"shared_prefix", []string{"shared_prefix"}},
		{"conversation_replay", []string{"conversation_replay"}},
		{"otel_trace_replay", []string{"otel_trace_replay"}},
		{"weka_trace_replay", []string{"weka_trace_replay"}},
		{"visionarena", []string{"visionarena"}},
		{"multimodal", []string{"synthetic"}},
	} {
		if n := c.get("data." + k.name); !n.idle() && kind != "" && !slices.Contains(k.types, kind) {
			c.note(n, "data."+k.name, "has no effect with data.type "+kind)
		}
	}
}

func (c *converter) synthetic(kind string) {
	if n := c.get("data.trace.file"); n != nil {
		c.format("data.trace.format")
		c.set("workload.trace.file", n.text, n)
		c.set("workload.trace.format", "azure", c.get("data.trace.format"))
	} else {
		c.needed("workload.input_tokens", "data.input_distribution")
		c.needed("workload.output_tokens", "data.output_distribution")
	}
	if n := c.get("data.multimodal"); kind == "synthetic" && !n.idle() {
		c.media(n)
	}
	text := map[string]string{"random": "random", "synthetic": "corpus"}[kind]
	if c.words(text); kind == "synthetic" && c.tokenizer() != "" {
		c.pass("workload.text_file", "data.corpus_file_path")
	}
}

// words says what texts are made of: text where the model's tokenizer is here.
func (c *converter) words(text string) {
	n := c.get("tokenizer.pretrained_model_name_or_path")
	if file := c.tokenizer(); file != "" {
		c.set("workload.tokenizer", file, n)
		c.set("workload.text", text, c.get("data.type"))
		if c.rendered() {
			c.template(n)
		}
		return
	}
	why := "no tokenizer is given"
	if n != nil {
		why = n.text + " is no file here, and nothing is fetched"
	}
	c.note(n, "tokenizer.pretrained_model_name_or_path", why+": prompts are common words of one token each; --tokenizer FILE --text "+text+" makes them exact")
}

// tokenizer is the file of the tokenizer; empty where there is none on this machine.
func (c *converter) tokenizer() string {
	path := c.text("tokenizer.pretrained_model_name_or_path", "")
	if path == "" || !c.around.Exists(path) {
		return ""
	}
	if inner := strings.TrimSuffix(path, "/") + "/tokenizer.json"; c.around.Exists(inner) {
		return inner
	}
	return path
}

// template counts the tokens of the chat template that lies beside the tokenizer.
func (c *converter) template(tokenizer *node) {
	folder := strings.TrimSuffix(tokenizer.text, "/")
	for _, name := range []string{"/chat_template.jinja", "/tokenizer_config.json"} {
		if c.around.Exists(folder + name) {
			c.set("workload.chat_template", folder+name, tokenizer)
			return
		}
	}
	c.note(c.get("data.use_chat_template"), "data.use_chat_template", folder+" has no chat template: its tokens are not counted")
}

func (c *converter) needed(key, path string) {
	if n := c.get(path); n != nil {
		c.lengths(key, n, path)
		return
	}
	c.fault(c.get("data.type"), path, "is missing: "+c.text("data.type", "")+" needs it", "")
}

// optional gives lengths, or those that stand for them.
func (c *converter) optional(key, path, otherwise string) {
	if n := c.get(path); n != nil {
		c.lengths(key, n, path)
		return
	}
	c.set(key, otherwise, nil)
}

func (c *converter) lengths(key string, n *node, path string) {
	if text, ok := c.distribution(n, path); ok {
		c.set(key, text, n)
	}
}

// prefixes are prompts that begin alike.
func (c *converter) prefixes() {
	const section = "data.shared_prefix"
	if c.get(section) == nil {
		c.fault(c.get("data.type"), section, "is missing: shared_prefix needs it", "")
		return
	}
	groups := c.get(section + ".num_unique_system_prompts")
	if groups == nil {
		groups = c.get(section + ".num_groups")
	}
	if groups == nil {
		c.set("workload.prefix.groups", "10", nil)
	} else {
		c.set("workload.prefix.groups", groups.text, groups)
	}
	c.prefixLength(section + ".system_prompt_len")
	for _, part := range []struct{ ours, inline, older string }{
		{"workload.input_tokens", "question_len", "question_distribution"},
		{"workload.output_tokens", "output_len", "output_distribution"},
	} {
		inline, older := c.get(section+"."+part.inline), c.get(section+"."+part.older)
		switch {
		case inline != nil && inline.isMap && older != nil:
			c.fault(older, section+"."+part.older, "does not go with a distribution in "+part.inline, "leave one of them out")
		case older != nil:
			c.lengths(part.ours, older, section+"."+part.older)
		default:
			c.optional(part.ours, section+"."+part.inline, "50")
		}
	}
	c.words("random")
}

func (c *converter) prefixLength(path string) {
	tokens, n := "100", c.get(path)
	if n != nil {
		var ok bool
		if tokens, ok = c.distribution(n, path); !ok {
			return
		}
	}
	length, err := strconv.Atoi(tokens)
	if err != nil {
		c.fault(n, path, "must be one length: prefixes of different lengths are not made", "write a number")
		return
	}
	c.set("workload.prefix.tokens", tokens, n)
	block := 16
	for block > 1 && length%block != 0 {
		block /= 2
	}
	if block < 16 {
		c.set("workload.prefix.block", strconv.Itoa(block), n)
		c.note(n, path, fmt.Sprintf("%d is no multiple of 16 tokens: what a cache would find is counted in blocks of %d", length, block))
	}
}

// conversations are sessions of several turns.
func (c *converter) conversations() {
	const section = "data.conversation_replay"
	if c.get(section) == nil {
		c.fault(c.get("data.type"), section, "is missing: conversation_replay needs it", "")
		return
	}
	if n := c.get(section + ".shared_system_prompt_len"); n == nil {
		c.set("workload.system_tokens", "8359", nil)
	} else if !n.idle() {
		c.set("workload.system_tokens", n.text, n)
	}
	c.optional("workload.input_tokens", section+".input_tokens_per_turn", "512")
	c.optional("workload.output_tokens", section+".output_tokens_per_turn", "256")
	c.optional("workload.conversation.turns", section+".turns_per_conversation", "10")
	if n := c.get(section + ".dynamic_system_prompt_len"); n != nil {
		c.lengths("workload.conversation.system_tokens", n, section+".dynamic_system_prompt_len")
	}
	turns := most(c.get(section+".turns_per_conversation"), 10)
	c.toolTime(section+".tool_call_latency_sec", turns)
	c.roomFor(section, turns)
	c.words("random")
}

// sessions says that requests are turns of sessions.
func (c *converter) sessions() bool {
	return slices.Contains([]string{"conversation_replay", "otel_trace_replay", "weka_trace_replay"}, c.text("data.type", ""))
}

// conversationsOf is how many conversations make n requests, where requests are turns.
func (c *converter) conversationsOf(n float64, stage *node, path string) (conversations float64, ok bool) {
	if c.text("data.type", "") != "conversation_replay" {
		return n, true
	}
	turns := mean(c.get("data.conversation_replay.turns_per_conversation"), 10)
	if turns < 1 {
		return 0, false // said where the turns are
	}
	conversations = max(1, math.Round(n/turns))
	if conversations*turns != n {
		c.note(stage, path, fmt.Sprintf("%v requests are %v whole conversations of %v turns in the mean", n, conversations, turns))
	}
	return conversations, true
}

// pictures are requests with pictures of our own, where there a data set would be fetched.
func (c *converter) pictures() {
	const section = "data.visionarena"
	count := "1"
	if n := c.get(section + ".max_images_per_request"); n != nil {
		count = n.text
	}
	c.set("workload.images.count", count, c.get(section+".max_images_per_request"))
	c.place("workload.images.place", section+".insertion_point")
	c.set("workload.input_tokens", "64", c.get("data.type"))
	c.set("workload.output_tokens", "30", c.get("data.type"))
	if c.text("api.type", "completion") == "completion" {
		c.fault(c.get("data.type"), "data.type", "visionarena needs api.type chat", "")
	}
	c.note(c.get("data.type"), "data.type", "visionarena is not fetched: each request has pictures of our own beside 64 words; workload.images sets their size")
	c.words("random")
}

// place says where media stand; anywhere there, before or behind the text here.
func (c *converter) place(key, path string) {
	n := c.get(path)
	at, ok := n.number()
	switch {
	case n != nil && n.single && !ok || ok && (at < 0 || at > 1):
		c.fault(n, path, fmt.Sprintf("must be a number within 0 and 1, got %q", n.text), "")
		return
	case n != nil && (!ok || at != 0 && at != 1):
		c.note(n, path, "is before the text: media stand before it or behind it here")
	}
	place := "before"
	if at == 1 {
		place = "behind"
	}
	c.set(key, place, n)
}

// toolTime is the pause between a reply and the next turn.
func (c *converter) toolTime(path string, turns float64) {
	n := c.get(path)
	if n == nil || turns < 2 {
		return
	}
	seconds, ok := fixedOf(n)
	if !ok {
		c.fault(n, path, "must be one length: pauses of this distribution are not made", "write {type: fixed, mean: SECONDS}; workload.conversation.think_process makes exponential ones")
		return
	}
	if seconds > 0 {
		c.set("workload.conversation.think_time", fmt.Sprintf("%ds", seconds), n)
		c.set("workload.conversation.think_process", "constant", n)
	}
}

// roomFor refuses a limit that a conversation may come to, as nothing is cut.
func (c *converter) roomFor(section string, turns float64) {
	n := c.get(section + ".max_model_len")
	limit, ok := n.number()
	if !ok {
		return
	}
	system, given := c.get(section + ".shared_system_prompt_len").number()
	if !given {
		system = 8359
	}
	each := most(c.get(section+".input_tokens_per_turn"), 512) + most(c.get(section+".output_tokens_per_turn"), 256)
	const margin = 200
	if whole := system + turns*each + most(c.get(section+".dynamic_system_prompt_len"), 0); whole > limit-margin {
		c.fault(n, section+".max_model_len", fmt.Sprintf("is refused: a conversation may have %v tokens, and histories are not cut", whole), "make turns fewer or shorter")
	}
}
