package dialect

import (
	"net/url"

	"tare/internal/plan"
)

// newTriton returns the dialect of Triton's generate endpoints, in front of TensorRT-LLM or another backend.
func newTriton(o Options) *endpoint {
	path := "/v2/models/" + url.PathEscape(o.Model) + "/generate"
	if o.Stream {
		path += "_stream"
	}
	options := `,"stream":` + truth(o.Stream) + `,` + sampling(o) + seeding(o, "random_seed")
	return &endpoint{
		path: path, accepts: plan.Features{Sampling: true, Messages: true},
		form: formOf(o, part{`{"text_input":`, promptText}, part{options, noValue}, part{`,"max_tokens":`, outputTokens},
			fixed(o, `,"min_length":`), part{`}`, noValue}),
		read: func() Reader {
			r := &tritonReader{eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// tritonReader reads events that have a text, be it new or all so far. Nothing marks the last one: every event may be it, and
// the end of the body says that it was.
type tritonReader struct{ eventReader }

func (r *tritonReader) heart() string { return "text_output" }

func (r *tritonReader) object(_ []byte, _ bool) {
	c, e := &r.c, &r.e
	for c.more('}') {
		switch key := c.key(); string(key) {
		case "text_output":
			e.answer = true
			e.seen.add(0)
			e.done.add(0)
			r.words(&e.text)
		case "cum_log_probs", "sequence_index", "sequence_id":
			r.moment()
		default:
			if !r.faulty(key) {
				c.skip()
			}
		}
	}
}
