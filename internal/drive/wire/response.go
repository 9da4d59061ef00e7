// Package wire moves bytes and frames them: sockets with kernel receive stamps, HTTP/1.1 replies, server-sent events,
// lines of JSON.
// It knows nothing of what the bytes mean.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Response is an incremental parser of one HTTP/1.1 reply and the events in its body. Bytes are fed as they arrive, cut
// anywhere; only the moments of its calls to the Sink, and the sizes of Body's pieces, depend on the cuts. It
// allocates only while a partial line or event grows beyond any it has held before. The zero value must be Reset before
// use.
type Response struct {
	sink     Sink
	head     Head
	fields   fields
	events   Stream
	lines    Lines
	state    state
	err      error // why state is failed
	started  bool  // a byte of the reply has come
	expect   Framing
	packed   *unpacker // undoes the body's coding; nil without one
	mistyped bool      // its type says that it should not
	unsure   bool      // its first bytes are still to say whether it does
	piece    bool      // a byte of an unframed body has come
	line     []byte    // unfinished line of the header block, then first bytes of an unsure body
	meta     int       // bytes of header blocks and trailers so far
	left     int64     // bytes still to come of a chunk or of a body of known length
	digits   int       // hexadecimal digits of the chunk size so far
	width    int       // bytes of the chunk extension or of the trailer line so far
}

// Sink takes what a Response finds. Slices are valid only during the call.
type Sink interface {
	Head(h *Head)            // the header block is complete; 1xx replies are skipped
	Event(name, data []byte) // one server-sent event with data, or one line of JSON
	Comment()                // one comment line of an event stream
	Body(b []byte)           // a piece of a body that is not an event stream, of a status other than 200, or in a coding not undone
}

// Head is what a reply's header block says.
type Head struct {
	Status     int
	Encoding   string // Content-Encoding in lower case when it is neither absent nor identity
	Unpacked   bool   // the Encoding is undone: events and body are as they were before it
	Location   string // of a redirect
	RetryAfter string // Retry-After as sent: seconds or a date; "250ms" for a lone retry-after-ms
	RequestID  []byte // X-Request-Id, valid during the call; empty without one, and for one that is longer than any of ours

	eventStream bool  // the body is read as a stream of events: server-sent ones, or lines of JSON
	lines       bool  // as lines of JSON
	keepAlive   bool  // the connection may be used again after this reply
	length      int64 // body bytes announced; -1 when chunked or until close
}

// state is the part of the reply that the next byte belongs to.
type state uint8

const (
	inStatus    state = iota // status line
	inFields                 // header fields
	inSize                   // digits of a chunk size
	inExtension              // rest of a chunk's size line
	inChunk                  // chunk data
	inChunkEnd               // line end after chunk data
	inTrailer                // trailer fields
	inLength                 // body of known length
	untilClose               // body that lasts until the peer closes
	complete
	failed
)

const (
	maxMeta      = 64 << 10 // bytes of header blocks and trailers of one reply
	maxExtension = 4 << 10  // bytes of one chunk extension
	maxDigits    = 15       // hexadecimal digits of a chunk size, leading zeros included
	keepCapacity = 64 << 10 // bytes of a buffer that outlive a reply
)

// Reset prepares r for the next reply on a connection; found bytes go to s. Buffers of ordinary size are kept.
func (r *Response) Reset(s Sink) {
	r.Release()
	r.events.Reset(s)
	r.lines.Reset(s)
	*r = Response{sink: s, expect: r.expect, events: r.events, lines: r.lines, line: shrunk(r.line), head: Head{length: -1, RequestID: r.head.RequestID[:0]}}
}

// Release gives up what a reply holds that will not be read to its end. It must be called for such a one, unless Reset is.
func (r *Response) Release() {
	if r.packed != nil {
		r.packed.stop()
	}
}

// shrunk empties a buffer, and lets go of one that a rare long line has blown up.
func shrunk(b []byte) []byte {
	if cap(b) > keepCapacity {
		return nil
	}
	return b[:0]
}

// Open gives r the head of a reply that came by another way than as bytes of HTTP/1.1. From then on Feed takes the bytes of the
// body, with its framing already undone, and EOF its regular end.
func (r *Response) Open(status int, header map[string][]string) error {
	r.started, r.head.Status = true, status
	for name, values := range header {
		for _, value := range values {
			if err := r.fields.set(&r.head, []byte(name), []byte(value)); err != nil {
				r.state, r.err = failed, err
				return err
			}
		}
	}
	r.head.keepAlive, r.state = false, untilClose
	r.frame()
	r.sink.Head(&r.head)
	return nil
}

// Feed takes the next bytes of the connection. done reports that the reply is complete; rest is what follows it.
// An error means that the peer does not speak HTTP/1.1, or sent an event beyond MaxEvent; the connection is of no
// further use.
func (r *Response) Feed(b []byte) (rest []byte, done bool, err error) {
	r.started = r.started || len(b) > 0
	for len(b) > 0 && r.state != complete {
		if b, err = r.step(b); err != nil {
			r.state, r.err = failed, err
			return nil, false, err
		}
	}
	return b, r.state == complete, nil
}

// EOF tells r that the peer closed. It returns nil when the reply is thereby complete (a body that lasts until close),
// and io.ErrUnexpectedEOF when something is missing. At a regular end of the body, here or in Feed, a pending event
// without its blank line is dispatched; when something is missing it is not.
func (r *Response) EOF() error {
	switch r.state {
	case complete:
		return nil
	case failed:
		return r.err
	case untilClose:
		return r.endBody()
	}
	return io.ErrUnexpectedEOF
}

// Pending reports whether the bytes fed so far end inside a header block, an event, a comment or a document. Then the
// last event is older than the last read's kernel stamp. The framing of chunks is not part of an event.
func (r *Response) Pending() bool {
	switch {
	case r.state == complete:
		return false
	case r.state <= inFields:
		return r.started
	case r.head.lines:
		return r.lines.Pending()
	case r.head.eventStream:
		return r.events.Pending()
	}
	return r.piece || r.unsure && len(r.line) > 0
}

// Started reports whether any byte of the reply has come.
func (r *Response) Started() bool { return r.started }

// KeepAlive reports whether the connection may carry another request: the reply is complete and nobody asked to close.
func (r *Response) KeepAlive() bool { return r.state == complete && r.head.keepAlive }

// step consumes bytes of one state and returns the others.
func (r *Response) step(b []byte) ([]byte, error) {
	switch r.state {
	case inStatus, inFields:
		return r.headBytes(b)
	case inSize:
		return r.sizeBytes(b)
	case inExtension:
		return r.extensionBytes(b)
	case inChunk, inLength:
		return r.counted(b)
	case inChunkEnd:
		return r.chunkEnd(b)
	case inTrailer:
		return r.trailerBytes(b)
	case untilClose:
		return nil, r.body(b)
	}
	return nil, r.err
}

// headBytes assembles and reads the lines of the header block.
func (r *Response) headBytes(b []byte) ([]byte, error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		r.line = append(r.line, b[:min(len(b), maxMeta+1)]...)
		if r.meta+len(r.line) > maxMeta {
			return nil, errors.New("header block above 64 KiB")
		}
		return nil, r.plausible(r.line)
	}
	line, rest := b[:end], b[end+1:]
	if len(r.line) > 0 {
		r.line = append(r.line, line...)
		line, r.line = r.line, r.line[:0]
	}
	if r.meta += len(line) + 1; r.meta > maxMeta {
		return nil, errors.New("header block above 64 KiB")
	}
	return rest, r.headLine(bytes.TrimSuffix(line, []byte("\r")))
}

// plausible refuses the start of a status line that cannot become one, so that binary garbage is not waited out.
func (r *Response) plausible(line []byte) error {
	const start = "HTTP/1."
	n := min(len(line), len(start))
	if r.state == inStatus && string(line[:n]) != start[:n] {
		return notHTTP(line)
	}
	return nil
}

func notHTTP(line []byte) error {
	return fmt.Errorf("not an HTTP/1 reply: it starts with %q", line[:min(len(line), 64)])
}

func (r *Response) headLine(line []byte) error {
	if r.state == inStatus {
		r.state = inFields
		return r.statusLine(line)
	}
	if len(line) > 0 {
		return r.fields.add(&r.head, line)
	}
	return r.endHead()
}

// endHead decides how the body is delimited, in the order of RFC 9112 §6.3.
func (r *Response) endHead() error {
	if r.head.Status == 101 {
		return errors.New("the server switched protocols unasked")
	}
	if r.head.Status < 200 {
		r.head, r.fields, r.state = Head{length: -1}, fields{}, inStatus
		return nil
	}
	bodiless := r.head.Status == 204 || r.head.Status == 304
	r.delimit(bodiless)
	r.frame()
	r.sink.Head(&r.head)
	if bodiless || r.head.length == 0 {
		return r.endBody()
	}
	return nil
}

func (r *Response) delimit(bodiless bool) {
	f := &r.fields
	r.head.keepAlive = f.persistent()
	switch {
	case bodiless:
		r.head.length = 0
	case f.chunked:
		// A length beside chunks, or chunks from HTTP/1.0, is a faulty framing: read it, then close.
		r.head.keepAlive = r.head.keepAlive && r.head.length < 0 && !f.http10
		r.head.length, r.state = -1, inSize
	case r.head.length >= 0:
		r.left, r.state = r.head.length, inLength
	default:
		r.head.keepAlive, r.state = false, untilClose
	}
}

// counted takes bytes of a chunk or of a body of known length.
func (r *Response) counted(b []byte) ([]byte, error) {
	n := int(min(r.left, int64(len(b))))
	r.left -= int64(n)
	if err := r.body(b[:n]); err != nil {
		return nil, err
	}
	if r.left > 0 {
		return b[n:], nil
	}
	if r.state == inChunk {
		r.state = inChunkEnd
		return b[n:], nil
	}
	return b[n:], r.endBody()
}

// sizeBytes reads the hexadecimal chunk size; what follows the digits is left to extensionBytes.
func (r *Response) sizeBytes(b []byte) ([]byte, error) {
	for i, c := range b {
		d, ok := hexDigit(c)
		if !ok {
			if r.digits == 0 {
				return nil, fmt.Errorf("chunk size expected, got %q", b[i:min(len(b), i+16)])
			}
			if c == '\r' && i+1 < len(b) && b[i+1] == '\n' {
				r.sized()
				return b[i+2:], nil
			}
			r.state, r.width = inExtension, 0
			return b[i:], nil
		}
		if r.digits++; r.digits > maxDigits {
			return nil, errors.New("chunk size out of range")
		}
		r.left = r.left<<4 | int64(d)
	}
	return nil, nil
}

func hexDigit(c byte) (d byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// extensionBytes skips to the end of a chunk's size line.
func (r *Response) extensionBytes(b []byte) ([]byte, error) {
	if r.width == 0 && b[0] != ';' && b[0] != ' ' && b[0] != '\t' && b[0] != '\r' && b[0] != '\n' {
		return nil, fmt.Errorf("chunk size is followed by %q", b[0])
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		r.width += len(b)
	} else {
		r.width += end
	}
	if r.width > maxExtension {
		return nil, errors.New("chunk extension above 4 KiB")
	}
	if end < 0 {
		return nil, nil
	}
	r.sized()
	return b[end+1:], nil
}

// sized goes on behind a chunk's size line.
func (r *Response) sized() {
	r.digits, r.width, r.state = 0, 0, inChunk
	if r.left == 0 {
		r.state = inTrailer
	}
}

// chunkEnd takes the line end after a chunk's data; a lone LF is let pass.
func (r *Response) chunkEnd(b []byte) ([]byte, error) {
	switch {
	case b[0] == '\n':
		r.width, r.state = 0, inSize
	case b[0] == '\r' && r.width == 0:
		r.width = 1
	default:
		return nil, fmt.Errorf("chunk data is followed by %q", b[0])
	}
	return b[1:], nil
}

// trailerBytes skips trailer fields up to the empty line that ends the reply.
func (r *Response) trailerBytes(b []byte) ([]byte, error) {
	for i, c := range b {
		if r.meta++; r.meta > maxMeta {
			return nil, errors.New("trailer above 64 KiB")
		}
		switch {
		case c == '\n' && r.width == 0:
			return b[i+1:], r.endBody()
		case c == '\n':
			r.width = 0
		case c != '\r':
			r.width++
		}
	}
	return nil, nil
}
