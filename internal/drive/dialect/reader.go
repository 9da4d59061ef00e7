package dialect

import (
	"bytes"
	"cmp"

	"tare/internal/record"
)

// eventReader is the Reader of every dialect whose events are JSON objects. Only its grammar differs.
type eventReader struct {
	grammar  grammar
	streamed bool
	listed   bool   // a document may be an array of events
	marker   string // data of the event that ends a stream, besides [DONE]; empty for none
	secrets  []string
	repeats  bool     // its events have the whole text so far
	keep     bool     // the answer's text is wanted
	said     [][]byte // of the event's text, as it stands in the event; with keep
	shapes   shapes
	c        cursor
	e        event
}

// grammar knows the members of one dialect's events.
type grammar interface {
	// object reads an event's object, which has been entered, to its end. name is that of the event, empty for none and in
	// a document.
	object(name []byte, document bool)
	// heart names the member that every document has which is an answer.
	heart() string
}

// event is what the walk over one event or document found.
type event struct {
	answer    bool // what every answer has is there
	text      bool // some text of the answer
	reasoning bool
	tool      bool
	role      bool
	ids       int // token ids
	seen      indexes
	done      indexes
	reason    []byte // finish reason of the choice read last
	again     bool   // reason replaces an earlier one
	ends      bool   // it is the end marker
	unnamed   bool   // its meaning is from the event's name, not from its data
	stateful  bool   // its meaning is from what came before it, too
	usage     record.Usage
	pieces    pieces // of usage

	fault, objectError, detail, message, code bool // marks of an error object

	outline outline // what varies in it
}

// Glance reads an event that differs from an earlier one only where events of one kind do, and the end marker.
func (r *eventReader) Glance(a *Answer, name, data []byte) (m Meaning, ok bool) {
	if a.Terminated || a.Keep || string(name) == "error" {
		return Meaning{}, false
	}
	if r.marks(data) {
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
func (r *eventReader) Read(a *Answer, name, data []byte) Meaning {
	text := bytes.Trim(data, " \t\r\n")
	switch {
	case a.Terminated:
		return Meaning{Kind: record.KindOther}
	case string(name) == "error":
		return r.failed(a, name, data)
	case len(text) == 0:
		return Meaning{Kind: record.KindOther}
	case r.marks(text):
		a.Terminated = true
		return Meaning{Kind: record.KindTerminator}
	}
	r.keep = a.Keep
	if !r.parse(name, data, false) {
		r.unread(a, data)
		return Meaning{Kind: record.KindMalformed}
	}
	if r.c.raw {
		a.Malformed++
	}
	if r.e.failed() {
		r.apply(a)
		return r.failed(a, name, data)
	}
	r.learn(data)
	return r.apply(a)
}

// marks reports whether the data of an event is an end marker.
func (r *eventReader) marks(data []byte) bool {
	return string(data) == "[DONE]" || r.marker != "" && string(data) == r.marker
}

// ReadDocument parses a whole reply. A reply that is no completion is an error of its own.
func (r *eventReader) ReadDocument(a *Answer, body []byte) Meaning {
	a.NotStreamed = r.streamed
	r.keep = a.Keep
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	switch ok := r.parse(nil, body, true); {
	case len(bytes.TrimSpace(body)) == 0:
		a.refuse(record.CauseNoBody, "the reply has no body")
	case !ok:
		r.unread(a, body)
		a.refuse(r.unlike(), Mask("the reply is neither an event stream nor JSON: "+string(body[:min(len(body), 2*maxEvidence)]), r.secrets...))
	case r.e.failed():
		r.apply(a)
		return r.failed(a, nil, body)
	case !r.e.answer:
		a.refuse(r.unlike(), Mask("the reply has no "+r.grammar.heart()+": "+string(body[:min(len(body), 2*maxEvidence)]), r.secrets...))
	default:
		return r.document(a)
	}
	return Meaning{Kind: record.KindError}
}

// document takes a completion. Its end is its end marker, whatever the finish reasons are.
func (r *eventReader) document(a *Answer) Meaning {
	if r.c.raw {
		a.Malformed++
	}
	m := r.apply(a)
	a.Terminated = true
	m.Tokens, m.Exact = a.Usage.Output, a.Usage.Output > 0
	return m
}

// failed takes an error object; the first one is kept.
func (r *eventReader) failed(a *Answer, name, data []byte) Meaning {
	fault := record.CauseStreamError
	if string(name) == "error" {
		fault = record.CauseErrorEvent
	}
	a.refuse(fault, cmp.Or(r.evidence(data), "an error without text"))
	return Meaning{Kind: record.KindError}
}

// unlike is the class of a document that is no answer.
func (r *eventReader) unlike() record.Cause {
	if r.streamed {
		return record.CauseNotStreamed
	}
	return record.CauseMalformed
}

func (r *eventReader) unread(a *Answer, data []byte) {
	a.Malformed++
	if a.Unread == "" {
		a.Unread = r.evidence(data)
	}
}

func (r *eventReader) evidence(data []byte) string {
	return Mask(string(data[:min(len(data), 2*maxEvidence)]), r.secrets...)
}

// failed reports whether the object is one of the shapes in which servers send an error with status 200.
func (e *event) failed() bool {
	return e.fault || e.objectError || !e.answer && (e.detail || e.message && e.code)
}

// counts reports whether the server said how many tokens there are.
func (e *event) counts() bool { return told(e.usage) || e.pieces != (pieces{}) }

func (e *event) token() bool { return e.text || e.reasoning || e.tool || e.ids > 0 }

// apply tells the Answer what the walk found and says what the event was.
func (r *eventReader) apply(a *Answer) Meaning {
	covered := !a.uncounted
	means := r.e.shape()
	m := means.apply(a)
	if a.Keep {
		a.say(r.said, r.repeats)
	}
	u := a.pieces.total(r.e.usage, r.e.pieces)
	a.count(u)
	if n := u.Output; n > 0 {
		m = a.grown(m, n, covered)
	}
	if r.e.ends {
		a.Terminated = true
		if !m.Kind.Token() {
			m.Kind = record.KindTerminator
		}
	}
	return m
}

// shape is what the event means but for its usage.
func (e *event) shape() shape {
	s := shape{kind: e.kind(), token: e.token(), seen: e.seen, done: e.done, again: e.again, ids: e.ids}
	if e.done != (indexes{}) {
		s.reason = finishReason(e.reason)
	}
	return s
}

// kind is the most telling thing an event carried.
func (e *event) kind() record.Kind {
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
	case e.counts():
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
	case "completed":
		return "completed"
	case "max_output_tokens":
		return "max_output_tokens"
	case "end_turn":
		return "end_turn"
	case "max_tokens":
		return "max_tokens"
	case "STOP":
		return "STOP"
	case "MAX_TOKENS":
		return "MAX_TOKENS"
	case "eos_token":
		return "eos_token"
	case "stop_sequence":
		return "stop_sequence"
	case "eos":
		return "eos"
	case "limit":
		return "limit"
	case "word":
		return "word"
	case "":
		return ""
	}
	return Mask(string(b[:min(len(b), 64)]))
}

// parse walks over an event or a document.
func (r *eventReader) parse(name, data []byte, document bool) bool {
	r.c = cursor{b: data}
	r.e = event{}
	r.said = r.said[:0]
	c := &r.c
	if document && r.listed && c.enter('[') {
		for c.more(']') && c.enter('{') {
			r.grammar.object(nil, true)
		}
		return c.ended()
	}
	if !c.enter('{') {
		return false
	}
	r.grammar.object(name, document)
	return c.ended()
}

// kindOf returns the member "type" of the object entered, without moving on; name takes the place of one that is missing.
func (r *eventReader) kindOf(name []byte) []byte {
	for c := r.c; c.more('}'); {
		if string(c.key()) == "type" {
			return c.text()
		}
		c.skip()
	}
	r.e.unnamed = r.e.unnamed || len(name) > 0
	return name
}

// learn remembers an event's shape if it comes once a reply or more often, and events like it always mean the same.
func (r *eventReader) learn(data []byte) {
	e := &r.e
	frequent := e.token() || e.role || e.done != (indexes{})
	if fixed := !e.counts() && !e.ends && !e.unnamed && !e.stateful && !r.c.raw; frequent && fixed {
		r.shapes.learn(data, &e.outline, e.shape())
	}
}

// padding passes a string that differs from reply to reply, or from event to event, and means nothing.
func (r *eventReader) padding() {
	c := &r.c
	if c.peek() != '"' {
		c.skip()
		return
	}
	from := c.at + 1
	r.e.outline.add(holeString, from, from+len(c.str()))
}

// moment passes a number that differs from reply to reply and means nothing.
func (r *eventReader) moment() {
	c := &r.c
	if !isNumber(c.peek()) {
		c.skip()
		return
	}
	from := c.at
	r.e.outline.add(holeNumber, from, from+len(c.number()))
}

// words reads a text, a part of a text, or a list of either, and notes in found whether there was any.
func (r *eventReader) words(found *bool) {
	c := &r.c
	switch c.peek() {
	case '"':
		from := r.c.at + 1
		*found = r.varying() || *found
		if r.keep && !r.c.bad && found != &r.e.reasoning && found != &r.e.tool {
			r.said = append(r.said, r.c.b[from:r.c.at-1])
		}
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

func (r *eventReader) part(found *bool) {
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
func (r *eventReader) varying() bool {
	r.c.peek()
	from := r.c.at + 1
	s := r.c.str()
	if len(s) > 0 {
		r.e.outline.add(holeText, from, from+len(s))
	}
	return len(s) > 0
}

// usage reads token counts; cached ones stand in a place of each server's own choice.
func (r *eventReader) usage() {
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
			r.cached()
		default:
			c.skip()
		}
	}
}

// cached reads a number of cached tokens. Servers that do not count them say null, or nothing.
func (r *eventReader) cached() {
	c, u := &r.c, &r.e.usage
	u.CachedKnown = isNumber(c.peek()) || u.CachedKnown
	u.Cached = latest(u.Cached, c.integer())
}

func (r *eventReader) details() {
	c := &r.c
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		if string(c.key()) == "cached_tokens" {
			r.cached()
		} else {
			c.skip()
		}
	}
}

// faulty reads a member that a server's own endpoint uses to report an error; ok is false if it is none.
func (r *eventReader) faulty(key []byte) (ok bool) {
	c, e := &r.c, &r.e
	switch string(key) {
	case "error":
		e.fault = c.given() || e.fault
	case "object":
		e.objectError = string(c.text()) == "error" || e.objectError
	case "detail":
		e.detail = c.given() || e.detail
	default:
		return false
	}
	return true
}
