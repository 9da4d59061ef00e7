package wire

import "bytes"

// Framing is how a body is to be taken apart.
type Framing uint8

const (
	ByType     Framing = iota // as its Content-Type says, or else as its first bytes do
	AsEvents                  // as server-sent events
	AsLines                   // as lines of JSON
	AsDocument                // not at all
)

// Expect sets how bodies of replies with status 200 are framed from the next header block on. Reset does not change it.
func (r *Response) Expect(f Framing) { r.expect = f }

// Framed reports whether the body is taken apart into events, be it because its first bytes say so.
func (r *Response) Framed() bool { return r.state > inFields && r.head.eventStream }

// Mistyped reports whether the body is a stream of events although its Content-Type is another.
func (r *Response) Mistyped() bool { return r.mistyped && r.head.eventStream }

// frame decides how the body is framed, now that the header block is complete. Only a reply with status 200 is: any other
// is evidence, to be kept as it came.
func (r *Response) frame() {
	h := &r.head
	if h.Encoding == "gzip" || h.Encoding == "x-gzip" {
		h.Unpacked, r.packed = true, newUnpacker(r.plain)
	}
	if h.Status != 200 || h.Encoding != "" && !h.Unpacked {
		h.eventStream, h.lines = false, false
		return
	}
	typed := h.eventStream
	switch r.expect {
	case AsEvents:
		h.eventStream, h.lines = true, false
	case AsLines:
		h.eventStream, h.lines = true, true
	case AsDocument:
		h.eventStream, h.lines = false, false
	}
	r.mistyped = !typed
	r.unsure = !h.eventStream && r.expect == ByType
}

// body takes body bytes.
func (r *Response) body(b []byte) error {
	if r.packed != nil {
		return r.packed.feed(b)
	}
	return r.plain(b)
}

// plain passes body bytes on that are in no coding.
func (r *Response) plain(b []byte) error {
	if r.unsure {
		if b = r.sniff(b); len(b) == 0 {
			return nil
		}
	}
	switch {
	case r.head.lines:
		return r.lines.Feed(b)
	case r.head.eventStream:
		return r.events.Feed(b)
	}
	r.piece = true
	r.sink.Body(b)
	return nil
}

// sniff looks at the first bytes of a body that says it is no stream of events. No document in use begins with a field of
// one. It returns the bytes to go on with, none as long as it is not clear what they are. A byte order mark and blank lines
// in front mean nothing either way and are dropped.
func (r *Response) sniff(b []byte) []byte {
	if len(r.line) > 0 {
		b = append(r.line, b...)
	}
	if len(b) >= len(mark) || string(b) != mark[:len(b)] {
		b = bytes.TrimLeft(bytes.TrimPrefix(b, []byte(mark)), "\r\n")
	}
	fits, clear := beginsEvents(b)
	if !clear {
		r.line = append(r.line[:0], b...)
		return nil
	}
	r.unsure, r.mistyped, r.head.eventStream = false, fits, fits
	return b
}

const mark = "\xef\xbb\xbf" // byte order mark

// beginsEvents reports whether a body that starts with b is a stream of server-sent events, and whether that is clear yet.
func beginsEvents(b []byte) (fits, clear bool) {
	if len(b) < len(mark) && string(b) == mark[:len(b)] {
		return false, false
	}
	clear = true
	for _, field := range [...]string{"data:", "event:", "id:", "retry:", ":"} {
		switch n := min(len(b), len(field)); {
		case string(b[:n]) != field[:n]:
		case n == len(field):
			return true, true
		default:
			clear = false
		}
	}
	return false, clear
}

// endBody takes the end of the body.
func (r *Response) endBody() error {
	r.state = complete
	if r.packed != nil {
		if err := r.packed.end(); err != nil {
			return err
		}
	}
	if r.unsure {
		r.unsure = false
		if len(r.line) > 0 {
			r.sink.Body(r.line)
		}
	}
	switch {
	case r.head.lines:
		return r.lines.EOF()
	case r.head.eventStream:
		return r.events.EOF()
	}
	return nil
}
