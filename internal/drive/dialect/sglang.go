package dialect

import "tare/internal/plan"

// newSGLang returns the dialect of SGLang's own endpoint.
func newSGLang(o Options) *endpoint {
	options := `,"stream":` + truth(o.Stream) + `,"sampling_params":{` + sampling(o) + seeding(o, "sampling_seed") + ignoringEOS(o)
	return &endpoint{
		path: "/generate", accepts: plan.Features{Sampling: true, Model: true, Messages: true, PromptIDs: true, Priority: true},
		form: formOf(o, part{`{`, sglangPrompt}, part{`,"lora_path":`, otherModel}, part{`,"priority":`, priority}, part{options, noValue},
			part{`,"max_new_tokens":`, outputTokens}, fixed(o, `,"min_new_tokens":`), part{`}}`, noValue}),
		read: func() Reader {
			r := &sglangReader{eventReader: eventReader{streamed: o.Stream, repeats: true, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// sglangReader reads events that have the whole text so far and the number of its tokens. The number makes a token event,
// not the text: it grows with a token that is half a rune, and the finish reason comes with the same text again.
type sglangReader struct {
	eventReader
	before  int  // tokens counted before the event
	counted bool // the event has the number of tokens
}

func (r *sglangReader) Read(a *Answer, name, data []byte) Meaning {
	r.before = a.counted
	return r.eventReader.Read(a, name, data)
}

func (r *sglangReader) heart() string { return "text" }

func (r *sglangReader) object(_ []byte, document bool) {
	r.counted = false
	c, e := &r.c, &r.e
	for c.more('}') {
		switch key := c.key(); string(key) {
		case "text":
			e.answer = c.peek() == '"' || e.answer
			r.words(&e.text)
		case "output_ids":
			e.ids = c.elements()
		case "meta_info":
			r.meta()
		default:
			if !r.faulty(key) {
				c.skip()
			}
		}
	}
	switch {
	case r.counted && !document:
		e.text, e.ids = e.usage.Output > r.before, 0
	case e.answer:
		e.ids = 0
	}
	if e.answer = e.answer || r.counted || e.ids > 0; e.answer {
		e.seen.add(0)
	}
}

func (r *sglangReader) meta() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "completion_tokens":
			e.usage.Output, r.counted = c.integer(), true
		case "prompt_tokens":
			e.usage.Input = c.integer()
		case "cached_tokens":
			r.cached()
		case "finish_reason":
			r.finish()
		default:
			c.skip()
		}
	}
}

// finish reads a finish reason, which is an object or, in old versions, a text. An aborted request has failed.
func (r *sglangReader) finish() {
	c, e := &r.c, &r.e
	if c.peek() != '{' {
		e.reason = c.text()
	} else {
		for c.enter('{'); c.more('}'); {
			if string(c.key()) == "type" {
				e.reason = c.text()
			} else {
				c.skip()
			}
		}
	}
	if len(e.reason) > 0 {
		e.done.add(0)
		e.fault = e.fault || string(e.reason) == "abort"
	}
}
