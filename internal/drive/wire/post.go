package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// Post writes POST requests of JSON that differ in their number and body only. It may be copied.
type Post struct {
	start []byte // request line and fixed headers
	id    []byte // start of the request id
}

// NewPost prepares requests for a path, with its query, on a host. header has further lines, "Name: value"; id begins every
// X-Request-Id, which ends in the request's number.
func NewPost(path, host, id string, header []string) Post {
	p := Post{id: []byte(id)}
	p.start = fmt.Appendf(p.start, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n", path, host)
	for _, line := range header {
		p.start = fmt.Appendf(p.start, "%s\r\n", line)
	}
	return p
}

// Echo says what an X-Request-Id that begins with start tells of a reply to the request with a number: that it repeats this
// request's (own), or one of another request (ours and not own). Servers that give ids of their own tell nothing.
func Echo(id []byte, start string, number int64) (ours, own bool) {
	rest, ours := bytes.CutPrefix(id, []byte(start))
	n, digits := decimal(rest)
	return ours && digits, ours && digits && n == number
}

// Append appends one request to dst; lines are headers of its own, each with its line end.
func (p Post) Append(dst []byte, number int64, lines, body []byte) []byte {
	dst = append(append(dst, p.start...), lines...)
	dst = append(dst, "X-Request-Id: "...)
	dst = append(dst, p.id...)
	dst = strconv.AppendInt(dst, number, 10)
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}
