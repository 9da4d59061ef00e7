package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
)

// fields are the facts of a header block that only the framing of the reply needs.
type fields struct {
	http10  bool
	chunked bool
	coded   bool // a Transfer-Encoding was named
	close   bool // Connection: close
	keep    bool // Connection: keep-alive
	spent   bool // Keep-Alive says that no further request will be taken
	seconds bool // Retry-After was given
}

// persistent reports whether the connection outlives the reply, as far as its header fields say.
func (f *fields) persistent() bool {
	if f.close || f.spent {
		return false
	}
	return f.keep || !f.http10
}

// statusLine reads "HTTP/1.1 200 OK"; the reason phrase may be absent.
func (r *Response) statusLine(line []byte) error {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' {
		return notHTTP(line)
	}
	if line[7] != '0' && line[7] != '1' {
		return notHTTP(line)
	}
	status, ok := decimal(line[9:12])
	if !ok || status < 100 || len(line) > 12 && line[12] != ' ' {
		return notHTTP(line)
	}
	r.fields.http10, r.head.Status = line[7] == '0', int(status)
	return nil
}

// add reads one header field.
func (f *fields) add(h *Head, line []byte) error {
	if line[0] == ' ' || line[0] == '\t' {
		return errors.New("folded header line")
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || line[colon-1] == ' ' || line[colon-1] == '\t' {
		return fmt.Errorf("not a header field: %q", line[:min(len(line), 64)])
	}
	if bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, 0) >= 0 {
		return fmt.Errorf("control byte in header field %q", line[:min(colon, 64)])
	}
	return f.set(h, line[:colon], bytes.Trim(line[colon+1:], " \t"))
}

func (f *fields) set(h *Head, name, value []byte) error {
	switch {
	case is(name, "content-length"):
		return setLength(h, value)
	case is(name, "transfer-encoding"):
		return f.setTransfer(value)
	case is(name, "content-type"):
		media, _, _ := bytes.Cut(value, []byte(";"))
		media = bytes.Trim(media, " \t")
		h.lines = is(media, "application/x-ndjson") || is(media, "application/ndjson")
		h.eventStream = h.lines || is(media, "text/event-stream")
	case is(name, "content-encoding"):
		if len(value) > 0 && !is(value, "identity") {
			h.Encoding = strings.ToLower(string(value))
		}
	case is(name, "connection"):
		f.close = f.close || listed(value, "close")
		f.keep = f.keep || listed(value, "keep-alive")
	case is(name, "keep-alive"):
		f.spent = f.spent || listed(value, "max=0")
	case is(name, "x-request-id") && len(value) <= longestID:
		h.RequestID = append(h.RequestID[:0], value...)
	case is(name, "location"):
		h.Location = string(value)
	case is(name, "retry-after"):
		f.seconds, h.RetryAfter = true, string(value)
	case is(name, "retry-after-ms") && !f.seconds:
		h.RetryAfter = string(value) + "ms"
	}
	return nil
}

// longestID bounds what is kept of an X-Request-Id, bytes.
const longestID = 64

// setLength takes a Content-Length; repeated ones must agree.
func setLength(h *Head, value []byte) error {
	for more := true; more; {
		var part []byte
		part, value, more = bytes.Cut(value, []byte(","))
		n, ok := decimal(bytes.Trim(part, " \t"))
		if !ok {
			return fmt.Errorf("content-length %q is not a length", part[:min(len(part), 64)])
		}
		if h.length >= 0 && h.length != n {
			return fmt.Errorf("content-length is both %d and %d", h.length, n)
		}
		h.length = n
	}
	return nil
}

func (f *fields) setTransfer(value []byte) error {
	if f.coded {
		return errors.New("transfer-encoding named twice")
	}
	f.coded, f.chunked = true, is(value, "chunked")
	if !f.chunked && !is(value, "identity") {
		return fmt.Errorf("transfer-encoding %q was not asked for", value[:min(len(value), 64)])
	}
	return nil
}

// decimal reads a number of nothing but digits.
func decimal(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}

// listed reports whether a comma-separated list has an entry, whatever its case.
func listed(list []byte, entry string) bool {
	for more := true; more; {
		var part []byte
		part, list, more = bytes.Cut(list, []byte(","))
		if is(bytes.Trim(part, " \t"), entry) {
			return true
		}
	}
	return false
}

// is compares ASCII bytes to a lower-case name, whatever their case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
