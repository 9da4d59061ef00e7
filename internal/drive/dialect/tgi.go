package dialect

import (
	"strconv"

	"tare/internal/plan"
)

// newTGI returns the dialect of Text Generation Inference. It cannot be told to go on past an end of sequence.
func newTGI(o Options) *endpoint {
	path := "/generate"
	if o.Stream {
		path = "/generate_stream"
	}
	return &endpoint{
		path: path, accepts: plan.Features{Sampling: true, Model: true, Messages: true},
		form: formOf(o, part{`{"inputs":`, promptText}, part{`,"parameters":{"details":true` + tgiSampling(o) + seeding(o, "seed"), noValue},
			part{`,"max_new_tokens":`, outputTokens}, part{`,"adapter_id":`, otherModel}, part{`}}`, noValue}),
		read: func() Reader {
			r := &tgiReader{eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// tgiSampling leaves out what the server refuses: a temperature of 0, for which it has do_sample, and a top_p of 1.
func tgiSampling(o Options) string {
	b := strconv.AppendBool([]byte(`,"do_sample":`), o.Temperature > 0)
	if o.Temperature > 0 {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), o.Temperature, 'f', -1, 64)
	}
	if o.TopP > 0 && o.TopP < 1 {
		b = strconv.AppendFloat(append(b, `,"top_p":`...), o.TopP, 'f', -1, 64)
	}
	return string(b)
}

// tgiReader reads an event for each token, the last of them with the whole text and the details.
type tgiReader struct{ eventReader }

func (r *tgiReader) heart() string { return "generated_text" }

func (r *tgiReader) object(_ []byte, document bool) {
	c, e := &r.c, &r.e
	for c.more('}') {
		switch key := c.key(); string(key) {
		case "index":
			r.moment()
		case "token":
			r.token()
		case "generated_text":
			r.generated(document)
		case "details":
			r.details()
		default:
			if !r.faulty(key) {
				c.skip()
			}
		}
	}
	if document && e.answer {
		e.seen.add(0)
	}
}

// token reads one generated token, which may have no text of its own.
func (r *tgiReader) token() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	e.answer = true
	e.ids++
	e.seen.add(0)
	for c.more('}') {
		switch string(c.key()) {
		case "text":
			r.words(&e.text)
		case "id", "logprob":
			r.moment()
		default:
			c.skip()
		}
	}
}

// generated reads the whole text. In a stream it is there once more and says that this is the last event.
func (r *tgiReader) generated(document bool) {
	c, e := &r.c, &r.e
	if c.peek() != '"' {
		c.skip()
		return
	}
	e.answer = true
	e.done.add(0)
	if document {
		r.words(&e.text)
		return
	}
	e.ends = true
	c.skip()
}

func (r *tgiReader) details() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "finish_reason":
			if e.reason = c.text(); len(e.reason) > 0 {
				e.done.add(0)
			}
		case "generated_tokens":
			e.usage.Output = c.integer()
		case "input_length":
			e.usage.Input = latest(e.usage.Input, c.integer())
		case "prefill":
			e.usage.Input = latest(e.usage.Input, c.elements())
		default:
			c.skip()
		}
	}
}
