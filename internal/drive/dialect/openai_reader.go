package dialect

import (
	"bytes"

	"tare/internal/record"
)

// openAIReader reads the events and documents of OpenAI's chat and completions endpoints and of the many servers that
// answer in their shape, with the liberties these take.
type openAIReader struct {
	streamed bool
	secrets  []string
	shapes   shapes
	c        cursor
	e        openAIEvent
}

// openAIEvent is what the walk over one event or document found.
type openAIEvent struct {
	choices   bool // "choices" is there and not null
	text      bool // some text of the answer
	reasoning bool
	tool      bool
	role      bool
	ids       int // token ids
	seen      indexes
	done      indexes
	reason    []byte // finish reason of the choice read last
	usage     record.Usage

	fault, objectError, detail, message, code bool // marks of an error object

	outline outline // what varies in it
}

// Glance reads an event that differs from an earlier one only where events of one kind do, and the end marker.
func (r *openAIReader) Glance(a *Answer, name, data []byte) (m Meaning, ok bool) {
	if a.Terminated || string(name) == "error" {
		return Meaning{}, false
	}
	if string(data) == "[DONE]" {
		a.Terminated = true
		return Meaning{Kind: record.KindTerminator}, true
	}
	s := r.shapes.find(data)
	if s == nil {
		return Meaning{}, false
	}
	return s.apply(a), true
}

// Read parses an event. What comes after the end marker is passed over.
func (r *openAIReader) Read(a *Answer, name, data []byte) Meaning {
	text := bytes.Trim(data, " \t\r\n")
	switch {
	case a.Terminated:
		return Meaning{Kind: record.KindOther}
	case string(name) == "error":
		return r.failed(a, data)
	case len(text) == 0:
		return Meaning{Kind: record.KindOther}
	case string(text) == "[DONE]":
		a.Terminated = true
		return Meaning{Kind: record.KindTerminator}
	}
	if !r.parse(data, false) {
		r.unread(a, data)
		return Meaning{Kind: record.KindMalformed}
	}
	if r.c.raw {
		a.Malformed++
	}
	if r.e.failed() {
		r.apply(a)
		return r.failed(a, data)
	}
	r.learn(data)
	return r.apply(a)
}

// ReadDocument parses a whole reply. A reply that is no completion is an error of its own.
func (r *openAIReader) ReadDocument(a *Answer, body []byte) Meaning {
	a.NotStreamed = r.streamed
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	switch ok := r.parse(body, true); {
	case len(bytes.TrimSpace(body)) == 0:
		a.Error = "the reply has no body"
	case !ok:
		r.unread(a, body)
		a.Error = Mask("the reply is neither an event stream nor JSON: "+string(body[:min(len(body), 2*maxEvidence)]), r.secrets...)
	case r.e.failed():
		r.apply(a)
		return r.failed(a, body)
	case !r.e.choices:
		a.Error = Mask("the reply has no choices: "+string(body[:min(len(body), 2*maxEvidence)]), r.secrets...)
	default:
		return r.document(a)
	}
	return Meaning{Kind: record.KindError}
}

// document takes a completion. Its end is its end marker, whatever the finish reasons are.
func (r *openAIReader) document(a *Answer) Meaning {
	if r.c.raw {
		a.Malformed++
	}
	m := r.apply(a)
	a.Terminated = true
	m.Tokens, m.Exact = a.Usage.Output, a.Usage.Output > 0
	return m
}

// failed takes an error object; the first one is kept.
func (r *openAIReader) failed(a *Answer, data []byte) Meaning {
	if a.Error == "" {
		a.Error = r.evidence(data)
	}
	if a.Error == "" {
		a.Error = "an error without text"
	}
	return Meaning{Kind: record.KindError}
}

func (r *openAIReader) unread(a *Answer, data []byte) {
	a.Malformed++
	if a.Unread == "" {
		a.Unread = r.evidence(data)
	}
}

func (r *openAIReader) evidence(data []byte) string {
	return Mask(string(data[:min(len(data), 2*maxEvidence)]), r.secrets...)
}

// failed reports whether the object is one of the shapes in which servers send an error with status 200.
func (e *openAIEvent) failed() bool {
	return e.fault || e.objectError || !e.choices && (e.detail || e.message && e.code)
}

func (e *openAIEvent) token() bool { return e.text || e.reasoning || e.tool || e.ids > 0 }

// apply tells the Answer what the walk found and says what the event was.
func (r *openAIReader) apply(a *Answer) Meaning {
	covered := !a.uncounted
	means := r.e.shape()
	m := means.apply(a)
	a.count(r.e.usage)
	if n := r.e.usage.Output; n > 0 {
		m = a.grown(m, n, covered)
	}
	return m
}

// shape is what the event means but for its usage.
func (e *openAIEvent) shape() shape {
	s := shape{kind: e.kind(), token: e.token(), seen: e.seen, done: e.done, ids: e.ids}
	if e.done != (indexes{}) {
		s.reason = finishReason(e.reason)
	}
	return s
}

// kind is the most telling thing an event carried.
func (e *openAIEvent) kind() record.Kind {
	switch {
	case e.text:
		return record.KindContent
	case e.tool:
		return record.KindTool
	case e.reasoning:
		return record.KindReasoning
	case e.ids > 0:
		return record.KindContent
	case e.done.count() > 0:
		return record.KindFinish
	case e.usage != (record.Usage{}):
		return record.KindUsage
	case e.role:
		return record.KindRole
	}
	return record.KindOther
}

// token notes a token event of the choices seen in it, with the number of its token ids, 0 where none are told.
func (a *Answer) token(k record.Kind, seen indexes, ids int) Meaning {
	a.Tokens = true
	a.uncounted = true
	a.seen = a.seen.with(seen)
	return Meaning{Kind: k, Tokens: ids, Exact: ids > 0}
}

// grown takes the completion tokens counted up to and with an event. Their growth is the event's own number if all
// token events before it were counted; with several choices servers count now each, now all, and it says nothing.
func (a *Answer) grown(m Meaning, output int, covered bool) Meaning {
	before := a.counted
	a.counted, a.uncounted = output, false
	if !m.Exact && covered && output >= before && a.seen.count() <= 1 {
		m.Tokens, m.Exact = output-before, true
	}
	return m
}

// finishReason keeps the usual reasons without allocating.
func finishReason(b []byte) string {
	switch string(b) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "content_filter":
		return "content_filter"
	}
	return Mask(string(b[:min(len(b), 64)]))
}

// parse walks over an event, or over a document, whose choices have messages instead of deltas.
func (r *openAIReader) parse(data []byte, document bool) bool {
	r.c = cursor{b: data}
	r.e = openAIEvent{}
	c := &r.c
	if !c.enter('{') {
		return false
	}
	for c.more('}') {
		r.member(c.key(), document)
	}
	return c.ended()
}

// learn remembers an event's shape if it comes once a reply or more often, and events like it always mean the same.
func (r *openAIReader) learn(data []byte) {
	e := &r.e
	frequent := e.token() || e.role || e.done != (indexes{})
	if fixed := e.usage == (record.Usage{}) && !r.c.raw; frequent && fixed {
		r.shapes.learn(data, &e.outline, e.shape())
	}
}

// member reads one member of the outermost object.
func (r *openAIReader) member(key []byte, document bool) {
	c, e := &r.c, &r.e
	switch string(key) {
	case "choices":
		r.choices(document)
	case "usage":
		r.usage()
	case "id", "obfuscation":
		r.padding()
	case "created":
		r.moment()
	case "error":
		e.fault = c.given() || e.fault
	case "object":
		e.objectError = string(c.text()) == "error" || e.objectError
	case "detail":
		e.detail = c.given() || e.detail
	case "message":
		e.message = c.given() || e.message
	case "code":
		e.code = c.given() || e.code
	default:
		c.skip()
	}
}

// padding passes a string that differs from reply to reply, or from event to event, and means nothing.
func (r *openAIReader) padding() {
	c := &r.c
	if c.peek() != '"' {
		c.skip()
		return
	}
	from := c.at + 1
	r.e.outline.add(holeString, from, from+len(c.str()))
}

// moment passes a number that differs from reply to reply and means nothing.
func (r *openAIReader) moment() {
	c := &r.c
	if b := c.peek(); b != '-' && (b < '0' || '9' < b) {
		c.skip()
		return
	}
	from := c.at
	r.e.outline.add(holeNumber, from, from+len(c.number()))
}

func (r *openAIReader) choices(document bool) {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	r.e.choices = true
	for c.more(']') {
		r.choice(document)
	}
}

// choice reads one choice. One without delta, message or text is none: Azure sends such for its content filter.
func (r *openAIReader) choice(document bool) {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	index, alive := 0, false
	var reason []byte
	for c.more('}') {
		switch key := c.key(); string(key) {
		case "index":
			index = c.integer()
		case "finish_reason":
			reason = c.text()
		case "delta", "message":
			// A message beside the deltas is the whole answer so far, again.
			if document == (string(key) == "message") && c.enter('{') {
				alive = true
				r.message()
			} else {
				c.skip()
			}
		case "text":
			alive = c.peek() == '"' || alive
			r.words(&e.text)
		case "token_ids":
			n := c.elements()
			alive = alive || n > 0
			e.ids += n
		default:
			c.skip()
		}
	}
	if alive {
		e.seen.add(index)
	}
	r.finished(index, reason)
}

func (r *openAIReader) finished(index int, reason []byte) {
	switch string(reason) {
	case "", "null":
		return
	case "error":
		r.e.fault = true
	}
	r.e.done.add(index)
	r.e.reason = reason
}

// message reads the members of a delta or message that has been entered.
func (r *openAIReader) message() {
	c, e := &r.c, &r.e
	for c.more('}') {
		switch string(c.key()) {
		case "content", "refusal":
			r.words(&e.text)
		case "reasoning_content", "reasoning":
			r.words(&e.reasoning)
		case "tool_calls":
			r.calls()
		case "function_call":
			r.function()
		case "role":
			e.role = len(c.text()) > 0 || e.role
		default:
			c.skip()
		}
	}
}

// words reads a text, a part of a text, or a list of either, and notes in found whether there was any.
func (r *openAIReader) words(found *bool) {
	c := &r.c
	switch c.peek() {
	case '"':
		*found = r.varying() || *found
	case '[':
		for c.enter('['); c.more(']'); {
			r.words(found)
		}
	case '{':
		r.part(found)
	default:
		c.skip()
	}
}

func (r *openAIReader) part(found *bool) {
	c := &r.c
	for c.enter('{'); c.more('}'); {
		switch string(c.key()) {
		case "text", "refusal":
			r.words(found)
		case "thinking":
			r.words(&r.e.reasoning)
		default:
			c.skip()
		}
	}
}

// varying reads the text for whose sake an event was sent and reports whether there is any.
func (r *openAIReader) varying() bool {
	r.c.peek()
	from := r.c.at + 1
	s := r.c.str()
	if len(s) > 0 {
		r.e.outline.add(holeText, from, from+len(s))
	}
	return len(s) > 0
}

func (r *openAIReader) calls() {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	for c.more(']') {
		if !c.enter('{') {
			c.skip()
			continue
		}
		for c.more('}') {
			switch string(c.key()) {
			case "function", "custom":
				r.function()
			default:
				c.skip()
			}
		}
	}
}

// function reads what a tool call names and hands over; an id or a type alone is no token.
func (r *openAIReader) function() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "name", "arguments", "input":
			if c.peek() == '"' {
				e.tool = r.varying() || e.tool
			} else {
				e.tool = c.given() || e.tool
			}
		default:
			c.skip()
		}
	}
}

// usage reads token counts; cached ones stand in a place of each server's own choice.
func (r *openAIReader) usage() {
	c, u := &r.c, &r.e.usage
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "prompt_tokens", "input_tokens":
			u.Input = latest(u.Input, c.integer())
		case "completion_tokens", "output_tokens":
			u.Output = latest(u.Output, c.integer())
		case "prompt_tokens_details", "input_tokens_details":
			r.details()
		case "prompt_cache_hit_tokens", "cached_tokens":
			u.Cached = latest(u.Cached, c.integer())
		default:
			c.skip()
		}
	}
}

func (r *openAIReader) details() {
	c, u := &r.c, &r.e.usage
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		if string(c.key()) == "cached_tokens" {
			u.Cached = latest(u.Cached, c.integer())
		} else {
			c.skip()
		}
	}
}
