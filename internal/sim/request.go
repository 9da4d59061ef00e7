package sim

import (
	"bytes"
	"strconv"
)

// head is what the header block of one request says. Its slices point into the bytes it was parsed from.
type head struct {
	method   []byte
	path     []byte // without the query
	length   int    // bytes of the body
	id       []byte // X-Request-Id
	close    bool   // the client wants the connection closed after the reply
	awaiting bool   // Expect: 100-continue
}

// refusal is a request that cannot be read further: it is answered and the connection closed.
type refusal struct {
	status  int
	message string
}

// The refusals of parseHead.
var (
	refusedHead     = refusal{400, "the request's header block is malformed"}
	refusedHuge     = refusal{431, "the request's header block is larger than 64 KiB"}
	refusedVersion  = refusal{505, "only HTTP/1.1 is spoken here"}
	refusedLength   = refusal{411, "a request with a body needs a Content-Length; chunked request bodies are not read"}
	refusedBody     = refusal{413, "the request's body is larger than 64 MiB"}
	refusedPipeline = refusal{413, "too much was sent ahead of the reply"}
)

// parseHead reads a header block from the start of b. size is its length including the empty line, and 0 while that line
// has not come yet. A refusal with status 0 is none.
func parseHead(b []byte) (h head, size int, r refusal) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		if len(b) > maxHead {
			return h, 0, refusedHuge
		}
		return h, 0, refusal{}
	}
	if end > maxHead {
		return h, 0, refusedHuge
	}
	line, rest := cutLine(b[:end])
	if r = h.parseLine(line); r.status != 0 {
		return h, 0, r
	}
	lengths := 0
	for len(rest) > 0 {
		line, rest = cutLine(rest)
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return h, 0, refusedHead
		}
		if r = h.parseField(line[:colon], bytes.Trim(line[colon+1:], " \t"), &lengths); r.status != 0 {
			return h, 0, r
		}
	}
	if lengths == 0 && string(h.method) == "POST" {
		return h, 0, refusedLength
	}
	return h, end + 4, refusal{}
}

func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.Index(b, []byte("\r\n")); i >= 0 {
		return b[:i], b[i+2:]
	}
	return b, nil
}

func (h *head) parseLine(line []byte) refusal {
	space := bytes.IndexByte(line, ' ')
	last := bytes.LastIndexByte(line, ' ')
	if space <= 0 || last <= space+1 {
		return refusedHead
	}
	h.method, h.path = line[:space], line[space+1:last]
	if query := bytes.IndexByte(h.path, '?'); query >= 0 {
		h.path = h.path[:query]
	}
	version := line[last+1:]
	if string(version) == "HTTP/1.1" {
		return refusal{}
	}
	if bytes.HasPrefix(version, []byte("HTTP/")) {
		return refusedVersion
	}
	return refusedHead
}

func (h *head) parseField(name, value []byte, lengths *int) refusal {
	switch {
	case is(name, "content-length"):
		n, err := strconv.ParseUint(string(value), 10, 63)
		if err != nil || *lengths > 0 && h.length != int(n) {
			return refusedHead
		}
		if n > maxBody {
			return refusedBody
		}
		*lengths++
		h.length = int(n)
	case is(name, "transfer-encoding"):
		return refusedLength
	case is(name, "connection"):
		h.close = is(value, "close")
	case is(name, "expect"):
		h.awaiting = is(value, "100-continue")
	case is(name, "x-request-id"):
		h.id = printable(value)
	}
	return refusal{}
}

// printable is the start of an id that is repeated in replies, or nothing when it holds what a header must not.
func printable(id []byte) []byte {
	id = id[:min(len(id), 256)]
	for _, c := range id {
		if c < ' ' || c > '~' {
			return nil
		}
	}
	return id
}

// is compares without regard to ASCII case; lower must be lower case.
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

// handler takes the requests that feed finds. It sets conn.busy while it owes a reply, and calls resume when it no longer does.
type handler interface {
	request(c *conn, h head, body []byte)
	refuse(c *conn, r refusal) // answers, and ends the connection
	proceed(c *conn)           // tells a client that waits for it to send its body
}

// feed takes the next bytes of a connection and hands over each request that is complete, one reply at a time.
func feed(h handler, c *conn, b []byte) {
	if len(c.in) > 0 || c.busy {
		c.in = append(c.in, b...)
		b = c.in
	}
	if c.busy {
		if len(b) > maxHead+maxBody {
			h.refuse(c, refusedPipeline)
		}
		return
	}
	cut(h, c, b)
}

// resume goes on with what was sent ahead of the reply that is now complete.
func resume(h handler, c *conn) {
	if !c.cutting && len(c.in) > 0 {
		cut(h, c, c.in)
	}
}

// cut hands over the complete requests at the start of b, and keeps the rest in c.
func cut(h handler, c *conn, b []byte) {
	c.cutting = true
	for len(b) >= max(c.need, 1) && !c.busy && !c.gone {
		used := cutOne(h, c, b)
		if used == 0 {
			break
		}
		b = b[used:]
	}
	c.cutting = false
	c.keep(b)
}

// cutOne hands over the request at the start of b and returns its length, or 0 when b does not hold all of it.
func cutOne(h handler, c *conn, b []byte) int {
	head, size, r := parseHead(b)
	if r.status != 0 {
		h.refuse(c, r)
		return 0
	}
	if size == 0 {
		return 0
	}
	c.need = size + head.length
	if len(b) < c.need {
		if head.awaiting && !c.proceeded {
			c.proceeded = true
			h.proceed(c)
		}
		return 0
	}
	used := c.need
	c.need, c.proceeded = 0, false
	h.request(c, head, b[size:used])
	return used
}

// keep holds back the bytes of a request that is not complete. A connection between requests holds no memory.
func (c *conn) keep(b []byte) {
	if len(b) == 0 || c.gone {
		c.in = nil
		return
	}
	if cap(c.in) < c.need {
		c.in = append(make([]byte, 0, c.need), b...)
		return
	}
	c.in = append(c.in[:0], b...)
}
