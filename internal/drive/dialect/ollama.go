package dialect

import "tare/internal/plan"

// newOllama returns the dialect of Ollama's own chat endpoint, whose stream is lines of JSON. It cannot be told to go on past
// an end of sequence.
func newOllama(o Options) *endpoint {
	return &endpoint{
		path: "/api/chat", accepts: plan.Features{Sampling: true, Model: true, Messages: true, Tools: true},
		form: formOf(o, part{`{"model":`, modelName}, part{`,"messages":`, textMessages}, part{`,"tools":`, openAITools},
			part{`,"stream":` + truth(o.Stream) + `,"options":{` + sampling(o) + seeding(o, "seed"), noValue},
			part{`,"num_predict":`, outputTokens}, part{`}}`, noValue}),
		read: func() Reader {
			r := &ollamaReader{eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// ollamaReader reads lines that have a part of the message; the last is done.
type ollamaReader struct{ eventReader }

func (r *ollamaReader) heart() string { return "message" }

func (r *ollamaReader) object(_ []byte, document bool) {
	c, e := &r.c, &r.e
	done := false
	for c.more('}') {
		switch key := c.key(); string(key) {
		case "message":
			r.message()
		case "created_at":
			r.padding()
		case "done":
			done = c.given() || done
		case "done_reason":
			e.reason = c.text()
		case "prompt_eval_count":
			e.usage.Input = c.integer()
		case "eval_count":
			e.usage.Output = c.integer()
		default:
			if !r.faulty(key) {
				c.skip()
			}
		}
	}
	if e.answer {
		e.seen.add(0)
	}
	if done {
		e.done.add(0)
		e.ends = !document
	}
}

func (r *ollamaReader) message() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	e.answer = true
	for c.more('}') {
		switch string(c.key()) {
		case "content":
			r.words(&e.text)
		case "thinking":
			r.words(&e.reasoning)
		case "tool_calls":
			e.tool = c.elements() > 0 || e.tool
		case "role":
			e.role = len(c.text()) > 0 || e.role
		default:
			c.skip()
		}
	}
}
