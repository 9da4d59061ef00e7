package dialect

import (
	"bytes"
	"strconv"

	"tare/internal/plan"
)

// newAnthropic returns the dialect of Anthropic's messages endpoint.
func newAnthropic(o Options) *endpoint {
	return &endpoint{
		path: "/v1/messages", accepts: plan.Features{Sampling: true, Model: true, Messages: true, Images: true, Tools: true},
		auth: Auth{KeyHeader: "x-api-key", Header: []string{"anthropic-version: 2023-06-01"}},
		form: formOf(o, part{`{"model":`, modelName}, part{`,"messages":`, anthropicMessages}, part{`,"system":`, anthropicSystem},
			part{`,"max_tokens":`, outputTokens}, part{anthropicOptions(o), noValue}, part{`,"tools":`, anthropicTools}, part{`}`, noValue}),
		read: func() Reader {
			r := &anthropicReader{eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// anthropicOptions leaves a top_p of 1 out: newer models refuse it beside a temperature.
func anthropicOptions(o Options) string {
	b := strconv.AppendFloat([]byte(`,"temperature":`), o.Temperature, 'f', -1, 64)
	if o.TopP != 1 {
		b = strconv.AppendFloat(append(b, `,"top_p":`...), o.TopP, 'f', -1, 64)
	}
	return string(b) + `,"stream":` + truth(o.Stream) + seeding(o, "seed") + ignoringEOS(o)
}

// anthropicReader reads events that say in "type" what they are, and documents that are a message.
type anthropicReader struct{ eventReader }

func (r *anthropicReader) heart() string { return "content" }

func (r *anthropicReader) object(name []byte, document bool) {
	if document {
		r.message()
		return
	}
	c, e := &r.c, &r.e
	kind := r.kindOf(name)
	for c.more('}') {
		switch string(c.key()) {
		case "delta":
			r.delta()
		case "content_block":
			if c.enter('{') {
				r.block()
			} else {
				c.skip()
			}
		case "message":
			r.opening()
		case "usage":
			r.counts()
		case "error":
			e.fault = c.given() || e.fault
		default:
			c.skip()
		}
	}
	switch string(kind) {
	case "message_stop":
		e.ends = true
	case "error":
		e.fault = true
	}
}

// opening reads the message that the first event announces. Its count of output tokens is no result.
func (r *anthropicReader) opening() {
	if !r.c.enter('{') {
		r.c.skip()
		return
	}
	r.message()
	r.e.usage.Output = 0
}

// message reads a message that has been entered.
func (r *anthropicReader) message() {
	c, e := &r.c, &r.e
	for c.more('}') {
		switch string(c.key()) {
		case "role":
			e.role = len(c.text()) > 0 || e.role
		case "content":
			r.content()
		case "stop_reason":
			r.stopped()
		case "usage":
			r.counts()
		case "error":
			e.fault = c.given() || e.fault
		default:
			c.skip()
		}
	}
}

func (r *anthropicReader) content() {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	r.e.answer = true
	for c.more(']') {
		if c.enter('{') {
			r.block()
		} else {
			c.skip()
		}
	}
}

// block reads a content block that has been entered. That of a tool begins with its name.
func (r *anthropicReader) block() {
	c, e := &r.c, &r.e
	tool := bytes.HasSuffix(r.kindOf(nil), []byte("tool_use"))
	for c.more('}') {
		switch key := c.key(); {
		case string(key) == "text":
			r.words(&e.text)
		case string(key) == "thinking":
			r.words(&e.reasoning)
		case tool && string(key) == "name":
			r.words(&e.tool)
		default:
			c.skip()
		}
	}
	if e.token() {
		e.seen.add(0)
	}
}

// delta reads what was added to a block, or to the message. A signature is no token.
func (r *anthropicReader) delta() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "text":
			r.words(&e.text)
		case "thinking":
			r.words(&e.reasoning)
		case "partial_json":
			r.words(&e.tool)
		case "stop_reason":
			r.stopped()
		default:
			c.skip()
		}
	}
	if e.token() {
		e.seen.add(0)
	}
}

func (r *anthropicReader) stopped() {
	if reason := r.c.text(); len(reason) > 0 {
		r.e.done.add(0)
		r.e.reason = reason
	}
}

// counts reads usage. The prompt's tokens come in three parts, of which "input_tokens" are those that no cache knew.
func (r *anthropicReader) counts() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "input_tokens":
			e.pieces.uncached = latest(e.pieces.uncached, c.integer())
		case "cache_creation_input_tokens":
			e.pieces.written = latest(e.pieces.written, c.integer())
		case "cache_read_input_tokens":
			e.usage.CachedKnown = isNumber(c.peek()) || e.usage.CachedKnown
			e.pieces.read = latest(e.pieces.read, c.integer())
		case "output_tokens":
			e.usage.Output = latest(e.usage.Output, c.integer())
		default:
			c.skip()
		}
	}
}
