package dialect

import (
	"tare/internal/plan"
	"tare/internal/record"
)

// newLlamaCpp returns the dialect of llama-server's own endpoint.
func newLlamaCpp(o Options) *endpoint {
	options := `,"stream":` + truth(o.Stream) + `,` + sampling(o) + seeding(o, "seed") + `,"cache_prompt":true` + ignoringEOS(o)
	return &endpoint{
		path: "/completion", accepts: plan.Features{Sampling: true, Messages: true, PromptIDs: true},
		form: formOf(o, part{`{"prompt":`, promptOrIDs}, part{options, noValue}, part{`,"n_predict":`, outputTokens}, part{`}`, noValue}),
		read: func() Reader {
			r := &llamaCppReader{eventReader: eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// llamaCppReader reads events that have a text, token ids and the number of tokens so far; the last says stop. Tokens held
// back until their runes are whole show in the number only.
type llamaCppReader struct {
	eventReader
	before   int  // tokens counted before the event
	counted  bool // the event has the number of tokens
	progress bool // the event tells how far the prompt is
	last     bool
}

func (r *llamaCppReader) Read(a *Answer, name, data []byte) Meaning {
	r.before = a.counted
	return r.eventReader.Read(a, name, data)
}

func (r *llamaCppReader) heart() string { return "content" }

func (r *llamaCppReader) object(_ []byte, document bool) {
	r.counted, r.progress, r.last = false, false, false
	c, e := &r.c, &r.e
	for c.more('}') {
		r.member(c.key())
	}
	if r.progress {
		// Such events name a token that is none.
		e.text, e.ids, e.usage = false, 0, record.Usage{}
		return
	}
	if r.counted && !document {
		e.ids = 0
		e.text = e.text || !r.last && e.usage.Output > r.before
	}
	if r.last {
		e.done.add(0)
		e.ends = !document
	}
	if e.answer {
		e.seen.add(0)
	}
}

func (r *llamaCppReader) member(key []byte) {
	c, e := &r.c, &r.e
	switch string(key) {
	case "content":
		e.answer = true
		r.words(&e.text)
	case "tokens":
		e.ids = c.elements()
	case "stop":
		r.last = c.given() || r.last
	case "stop_type":
		e.reason = c.text()
	case "stopped_eos", "stopped_limit", "stopped_word":
		if c.given() {
			e.reason = key[len("stopped_"):]
		}
	case "tokens_predicted":
		e.usage.Output, r.counted = c.integer(), true
	case "tokens_evaluated":
		e.usage.Input = c.integer()
	case "timings":
		r.timings()
	case "prompt_progress":
		r.progress = c.given() || r.progress
	default:
		if !r.faulty(key) {
			c.skip()
		}
	}
}

// timings holds the number of prompt tokens that came from the cache; tokens_cached is how many the cache has now.
func (r *llamaCppReader) timings() {
	c := &r.c
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		if string(c.key()) == "cache_n" {
			r.cached()
		} else {
			c.skip()
		}
	}
}
