package dialect

import (
	"bytes"

	"tare/internal/plan"
)

// newResponses returns the dialect of OpenAI's responses endpoint.
func newResponses(o Options) *endpoint {
	options := `,` + sampling(o) + `,"stream":` + truth(o.Stream) + seeding(o, "seed") + ignoringEOS(o)
	return &endpoint{
		path: "/v1/responses", accepts: plan.Features{Sampling: true, Model: true, Messages: true, Tools: true, CacheSalt: true, Priority: true},
		form: formOf(o, part{`{"model":`, modelName}, part{`,"input":`, responsesInput}, part{`,"max_output_tokens":`, outputTokens},
			part{options, noValue}, part{`,"tools":`, responsesTools}, part{`,"cache_salt":`, cacheSalt}, part{`,"priority":`, priority}, part{`}`, noValue}),
		read: func() Reader {
			r := &responsesReader{eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// responsesReader reads events that say in "type" what they are, and documents that are a response.
type responsesReader struct{ eventReader }

func (r *responsesReader) heart() string { return "output" }

func (r *responsesReader) object(name []byte, document bool) {
	if document {
		r.response(true)
		return
	}
	c, e := &r.c, &r.e
	kind := r.kindOf(name)
	for c.more('}') {
		switch string(c.key()) {
		case "delta":
			r.delta(kind)
		case "sequence_number":
			r.moment()
		case "item_id", "response_id", "obfuscation":
			r.padding()
		case "item":
			if string(kind) == "response.output_item.added" && c.enter('{') {
				r.item()
			} else {
				c.skip()
			}
		case "response":
			if c.enter('{') {
				r.response(false)
			} else {
				c.skip()
			}
		case "error":
			e.fault = c.given() || e.fault
		default:
			c.skip()
		}
	}
	switch string(kind) {
	case "response.completed", "response.incomplete":
		r.end(kind[len("response."):])
	case "error", "response.failed", "response.cancelled":
		e.fault = true
	}
}

// end takes the last event, whose own reason goes before the one given.
func (r *responsesReader) end(reason []byte) {
	e := &r.e
	e.ends = true
	e.done.add(0)
	if len(e.reason) == 0 {
		e.reason = reason
	}
}

// delta reads what was generated, which the type of the event tells apart. An audio's bytes are no text.
func (r *responsesReader) delta(kind []byte) {
	e := &r.e
	var found *bool
	switch {
	case !bytes.HasPrefix(kind, []byte("response.")) || !bytes.HasSuffix(kind, []byte(".delta")) || bytes.HasPrefix(kind, []byte("response.audio")):
		r.c.skip()
		return
	case bytes.HasPrefix(kind, []byte("response.reasoning")):
		found = &e.reasoning
	case bytes.Contains(kind, []byte("_call")):
		found = &e.tool
	default:
		found = &e.text
	}
	if r.words(found); *found {
		e.seen.add(0)
	}
}

// response reads a response that has been entered. In a stream it repeats what the deltas said, but for its end.
func (r *responsesReader) response(document bool) {
	c, e := &r.c, &r.e
	var status, reason []byte
	for c.more('}') {
		switch string(c.key()) {
		case "status":
			status = c.text()
		case "incomplete_details":
			reason = r.reason()
		case "usage":
			r.usage()
		case "error":
			e.fault = c.given() || e.fault
		case "output":
			e.answer = c.peek() == '['
			if document {
				r.output()
			} else {
				c.skip()
			}
		default:
			c.skip()
		}
	}
	if len(reason) > 0 {
		e.reason = reason
	}
	if !document {
		return
	}
	switch string(status) {
	case "completed", "incomplete":
		e.done.add(0)
		if len(reason) == 0 {
			e.reason = status
		}
	case "":
	default:
		e.fault = true
	}
}

func (r *responsesReader) reason() (reason []byte) {
	c := &r.c
	if !c.enter('{') {
		c.skip()
		return nil
	}
	for c.more('}') {
		if string(c.key()) == "reason" {
			reason = c.text()
		} else {
			c.skip()
		}
	}
	return reason
}

func (r *responsesReader) output() {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	for c.more(']') {
		if c.enter('{') {
			r.item()
		} else {
			c.skip()
		}
	}
}

// item reads an output item that has been entered: a message, reasoning, or the call of a tool.
func (r *responsesReader) item() {
	c, e := &r.c, &r.e
	kind := r.kindOf(nil)
	content := &e.text
	if string(kind) == "reasoning" {
		content = &e.reasoning
	}
	call := bytes.HasSuffix(kind, []byte("_call"))
	for c.more('}') {
		switch key := c.key(); {
		case string(key) == "content":
			r.words(content)
		case string(key) == "summary":
			r.words(&e.reasoning)
		case call && (string(key) == "name" || string(key) == "arguments" || string(key) == "input"):
			r.words(&e.tool)
		default:
			c.skip()
		}
	}
	if e.token() {
		e.seen.add(0)
	}
}
