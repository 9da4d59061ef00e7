package dialect

import (
	"bytes"

	"tare/internal/record"
)

// shapes remembers a few events. The events of a stream mostly differ in their text and in the ids of their reply only: a
// shape is an event with holes in these places, and an event that fits around the holes, and has in each a whole JSON
// string or number, parses as the shape did. So it means the same, with certainty and without parsing.
type shapes struct {
	known [8]shape
	count int
	next  int // replaced next
	last  int // fitted last
}

// shape is one event and what it meant.
type shape struct {
	event   []byte
	outline outline
	kind    record.Kind
	token   bool // it carries generated tokens
	seen    indexes
	done    indexes
	reason  string // finish reason, where done is not empty
	again   bool   // it replaces an earlier one
	ids     int    // token ids
}

// apply tells the Answer what an event of this shape says, and what it was.
func (s *shape) apply(a *Answer) Meaning {
	m := Meaning{Kind: s.kind}
	if s.token {
		m = a.token(s.kind, s.seen, s.ids)
	}
	a.seen = a.seen.with(s.seen).with(s.done)
	if s.done != (indexes{}) {
		a.finish(s.done, s.reason, s.again)
	}
	return m
}

// outline is where an event's holes are, in order.
type outline struct {
	holes [4]hole
	count int // more than there is room for, if there were more
	text  bool
}

type hole struct {
	kind     holeKind
	from, to int // in the event; within the quotes of a string
}

type holeKind uint8

const (
	holeString holeKind = iota
	holeText            // a string that is not empty; only the first of an event is a hole
	holeNumber
)

const maxShape = 4 << 10 // bytes of an event that is worth remembering

func (o *outline) add(k holeKind, from, to int) {
	if k == holeText && o.text {
		return
	}
	o.text = o.text || k == holeText
	if o.count < len(o.holes) {
		o.holes[o.count] = hole{k, from, to}
	}
	o.count++
}

// find returns the shape that an event fits, nil for none.
func (s *shapes) find(event []byte) *shape {
	if s.count > 0 && s.known[s.last].fits(event) {
		return &s.known[s.last]
	}
	for i := range s.count {
		if i != s.last && s.known[i].fits(event) {
			s.last = i
			return &s.known[i]
		}
	}
	return nil
}

// learn remembers an event in place of the oldest, unless it is of a known shape.
func (s *shapes) learn(event []byte, o *outline, means shape) {
	if o.count > len(o.holes) || len(event) > maxShape || s.find(event) != nil {
		return
	}
	means.event, means.outline = append(s.known[s.next].event[:0], event...), *o
	s.known[s.next] = means
	s.last = s.next
	s.next = (s.next + 1) % len(s.known)
	s.count = min(s.count+1, len(s.known))
}

// fits reports whether an event equals the shape but for what is in the holes. The shape then holds that event: the next
// one of the same reply equals it up to its text, which is one comparison.
func (s *shape) fits(event []byte) bool {
	before := s.outline.beforeText()
	from := len(s.event) // in the shape, up to where the event is known to equal it
	if before < s.outline.count {
		from = s.outline.holes[before].from
	}
	if !bytes.HasPrefix(event, s.event[:from]) {
		before, from = 0, 0
	}
	at := from // in the event
	var filled [len(s.outline.holes)]hole
	for i := before; i < s.outline.count; i++ {
		h := &s.outline.holes[i]
		between := s.event[from:h.from]
		if !bytes.HasPrefix(event[at:], between) {
			return false
		}
		at += len(between)
		end := h.kind.end(event, at)
		if end < 0 {
			return false
		}
		filled[i] = hole{h.kind, at, end}
		from, at = h.to, end
	}
	if !bytes.Equal(event[at:], s.event[from:]) {
		return false
	}
	if before == 0 && s.outline.count > 0 {
		s.event, s.outline.holes = append(s.event[:0], event...), filled
	}
	return true
}

// beforeText is the number of holes before the text, or of all if there is none.
func (o *outline) beforeText() int {
	for i := range o.count {
		if o.holes[i].kind == holeText {
			return i
		}
	}
	return o.count
}

// end returns where what fills a hole ends, -1 if nothing there fills it.
func (k holeKind) end(b []byte, at int) int {
	if k == holeNumber {
		return numberEnd(b, at)
	}
	end, raw := stringEnd(b, at)
	if raw || k == holeText && end == at {
		return -1
	}
	return end
}
