package dialect

// openAI is the dialect of OpenAI's chat and completions endpoints, which most servers speak.
type openAI struct {
	body
	path     string
	streamed bool
	secrets  []string
}

func newOpenAI(o Options, chat bool) *openAI {
	d := &openAI{streamed: o.Stream, secrets: o.Secrets, body: body{tail: options(o)}}
	head := appendString([]byte(`{"model":`), o.Model)
	if chat {
		d.path = "/v1/chat/completions"
		d.head, d.shut = string(head)+`,"messages":[{"role":"user","content":`, `}]`
	} else {
		d.path = "/v1/completions"
		d.head = string(head) + `,"prompt":`
	}
	d.limit = `,"max_tokens":`
	if chat && o.MaxCompletionTokens {
		d.limit = `,"max_completion_tokens":`
	}
	if o.IgnoreEOS {
		d.floor = `,"min_tokens":`
	}
	return d
}

// options writes the part of a body that is the same for every request.
func options(o Options) string {
	b := []byte(commonSampling(o))
	switch {
	case o.Stream && o.ContinuousUsage:
		b = append(b, `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`...)
	case o.Stream:
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	return string(appendWishes(b, o))
}

func (d *openAI) Path() string { return d.path }

func (d *openAI) NewReader() Reader {
	r := &openAIReader{eventReader{streamed: d.streamed, secrets: d.secrets}}
	r.grammar = r
	return r
}
