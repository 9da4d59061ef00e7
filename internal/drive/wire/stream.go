package wire

import (
	"bytes"
	"errors"
)

const (
	MaxEvent  = 64 << 20 // bytes that one line, or the joined data of one event, may have
	MaxEvents = 1 << 20  // events and comments that one reply may have: each is remembered
)

var (
	ErrTooLong = errors.New("line or event above 64 MiB")           // one beyond MaxEvent
	ErrTooMany = errors.New("more than 1048576 events or comments") // of one reply
)

// Stream frames server-sent events as the WHATWG standard does, on bytes, however they are cut. It differs from the
// standard in three ways, all in favour of what a careless server meant: EOF dispatches an event whose blank line is
// missing; a line that is no field, while the data so far ends inside a JSON string, is a raw newline of that string
// and joined; and a field "error" (older llama.cpp) is data of an event of that name. The zero value must be Reset
// before use.
type Stream struct {
	sink   Sink
	err    error
	told   int    // events and comments
	began  bool   // the first line has ended: no byte order mark may follow
	cr     bool   // the last byte fed was a CR, which ended a line: an LF now belongs to it
	open   bool   // a field of an unfinished event has come
	blanks int    // blank lines since, while its data ended inside a JSON string
	hasAny bool   // one of them was data
	line   []byte // unfinished line
	name   held   // of the unfinished event
	data   held
	quote  quoting // of data
}

// held is a value of the unfinished event: a view of the bytes fed until it must outlive them, then a copy.
type held struct {
	view  []byte
	own   []byte
	owned bool
}

func (h *held) set(b []byte) { h.view, h.owned = b, false }

func (h *held) keep() {
	if !h.owned {
		h.own = append(h.own[:0], h.view...)
		h.view, h.owned = h.own, true
	}
}

func (h *held) join(b []byte) {
	h.keep()
	h.own = append(append(h.own, '\n'), b...)
	h.view = h.own
}

// Reset prepares s for the next stream. Of the Sink, only Event and Comment are called.
func (s *Stream) Reset(sink Sink) {
	*s = Stream{
		sink: sink,
		line: shrunk(s.line),
		name: held{own: shrunk(s.name.own)},
		data: held{own: shrunk(s.data.own)},
	}
}

// Feed takes the next bytes of the stream. The only errors are ErrTooLong and ErrTooMany; they stay.
func (s *Stream) Feed(b []byte) error {
	if s.cr && len(b) > 0 && b[0] == '\n' {
		s.cr, b = false, b[1:]
	}
	if b = s.singles(b); len(b) == 0 || s.err != nil {
		return s.err
	}
	s.cr = b[len(b)-1] == '\r'
	ends := lineEnds{b: b, lf: -1, cr: -1}
	for at := 0; s.err == nil; {
		end, next := ends.after(at)
		if end == len(b) {
			s.keep(b[at:])
			break
		}
		s.take(s.whole(b[at:end]))
		at = next
	}
	return s.err
}

// singles passes on the events at the start of b that are one data line and a blank one, as nearly all are, and returns
// what is left. It does what take would do, in a third of the time.
func (s *Stream) singles(b []byte) []byte {
	const field = "data:"
	for !s.open && len(s.line) == 0 && len(b) > len(field) && string(b[:len(field)]) == field {
		end := bytes.IndexByte(b, '\n')
		if end < 0 || end+1 == len(b) || b[end+1] != '\n' || bytes.IndexByte(b[:end], '\r') >= 0 {
			break
		}
		value := b[len(field):end]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		if next := b[end+2:]; !bytes.HasPrefix(next, []byte(field)) && insideString(value) {
			break
		}
		s.began, s.cr = true, false
		if !s.room() {
			break
		}
		s.sink.Event(nil, value)
		b = b[end+2:]
	}
	return b
}

// EOF ends the stream: the last line needs no line end, the last event no blank line.
func (s *Stream) EOF() error {
	if s.err == nil && len(s.line) > 0 {
		s.take(s.whole(nil))
	}
	if s.err == nil {
		s.dispatch()
	}
	return s.err
}

// Pending reports whether an unfinished line or event is held.
func (s *Stream) Pending() bool { return s.open || len(s.line) > 0 }

// lineEnds finds the ends of lines in b, each byte looked at once for LF and once for CR.
type lineEnds struct {
	b      []byte
	lf, cr int // next of its kind at or after the last position asked, len(b) for none
}

// after returns the first line end at or after a position, len(b) for none, and where the next line starts.
func (e *lineEnds) after(at int) (end, next int) {
	if e.lf < at {
		e.lf = indexFrom(e.b, at, '\n')
	}
	if e.cr < at {
		e.cr = indexFrom(e.b, at, '\r')
	}
	if e.cr < e.lf {
		if e.cr+1 == e.lf && e.lf < len(e.b) {
			return e.cr, e.lf + 1
		}
		return e.cr, e.cr + 1
	}
	return e.lf, e.lf + 1
}

func indexFrom(b []byte, at int, c byte) int {
	if i := bytes.IndexByte(b[at:], c); i >= 0 {
		return at + i
	}
	return len(b)
}

// whole puts the last part of a line to what was held of it. The result lives until the next keep.
func (s *Stream) whole(last []byte) []byte {
	if len(s.line)+len(last) > MaxEvent {
		s.err = ErrTooLong
		return nil
	}
	if len(s.line) == 0 {
		return last
	}
	line := append(s.line, last...)
	s.line = line[:0]
	return line
}

// keep saves what must outlive the bytes fed: the event so far, then the unfinished line, whose buffer the event may
// still point into.
func (s *Stream) keep(line []byte) {
	if s.open {
		s.name.keep()
		s.data.keep()
	}
	if len(s.line)+len(line) > MaxEvent {
		s.err = ErrTooLong
		return
	}
	s.line = append(s.line, line...)
}

// take reads one line.
func (s *Stream) take(line []byte) {
	if s.err != nil {
		return
	}
	if !s.began {
		s.began = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	switch {
	case len(line) == 0:
		s.blank()
	case line[0] == ':':
		s.resolve()
		if s.room() {
			s.sink.Comment()
		}
	default:
		if isField(line) {
			s.resolve()
		}
		s.open = true
		s.field(line)
	}
}

func (s *Stream) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.addData(value)
	case "event":
		s.name.set(value)
	case "id", "retry":
	case "error":
		s.fault(line, name, value)
	default:
		s.stray(line)
	}
}

// fault takes an error that stands in a field of its own, unless the line is the rest of a string cut by a raw newline.
func (s *Stream) fault(line, name, value []byte) {
	if s.hasAny && s.quote.open(s.data.view) {
		s.addData(line)
		return
	}
	s.name.set(name)
	s.addData(value)
}

func (s *Stream) addData(value []byte) {
	if !s.hasAny {
		s.hasAny = true
		s.data.set(value)
		return
	}
	if len(s.data.view)+1+len(value) > MaxEvent {
		s.err = ErrTooLong
		return
	}
	s.data.join(value)
}

// stray looks at a line that is no field: it is joined when a raw newline has cut a JSON string, with the blank lines
// before it, and ignored otherwise.
func (s *Stream) stray(line []byte) {
	if !s.hasAny || !s.quote.open(s.data.view) {
		return
	}
	for ; s.blanks > 0; s.blanks-- {
		s.addData(nil)
	}
	s.addData(line)
}

// blank ends the event, unless its data ends inside a JSON string: then the next line says whether the string goes on.
func (s *Stream) blank() {
	if s.hasAny && s.quote.open(s.data.view) {
		s.blanks++
		return
	}
	s.dispatch()
}

// resolve ends an event that blank lines have left open, now that its string does not go on.
func (s *Stream) resolve() {
	if s.blanks > 0 {
		s.dispatch()
	}
}

// room counts an event or a comment that is about to be passed on, unless there have been too many.
func (s *Stream) room() bool {
	if s.told == MaxEvents {
		s.err = ErrTooMany
		return false
	}
	s.told++
	return true
}

func isField(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte(":"))
	switch string(name) {
	case "data", "event", "id", "retry", "error":
		return true
	}
	return false
}

func (s *Stream) dispatch() {
	if s.hasAny && s.room() {
		s.sink.Event(s.name.view, s.data.view)
	}
	s.open, s.hasAny, s.blanks = false, false, 0
	s.name.set(nil)
	s.data.set(nil)
	s.quote = quoting{}
}

// quoting follows JSON strings through growing data, each byte once.
type quoting struct {
	read    int // bytes looked at
	inside  bool
	escaped bool // the last of them was a backslash that escapes
}

// insideString reports whether the whole data of an event ends inside a JSON string.
func insideString(data []byte) bool {
	if bytes.IndexByte(data, '\\') < 0 {
		return bytes.Count(data, []byte{'"'})%2 == 1
	}
	return new(quoting).open(data)
}

// open reports whether data ends inside a JSON string.
func (q *quoting) open(data []byte) bool {
	for _, c := range data[q.read:] {
		switch {
		case q.escaped:
			q.escaped = false
		case c == '"':
			q.inside = !q.inside
		case c == '\\':
			q.escaped = q.inside
		}
	}
	q.read = len(data)
	return q.inside
}
