package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func frameLines(t *testing.T, parts ...string) []string {
	t.Helper()
	var h heard
	var l Lines
	l.Reset(&h)
	for _, p := range parts {
		b := []byte(p)
		if err := l.Feed(b); err != nil {
			t.Fatalf("Feed(%.40q): %v", p, err)
		}
		clear(b)
	}
	if err := l.EOF(); err != nil {
		t.Fatalf("EOF: %v", err)
	}
	if l.Pending() {
		t.Errorf("pending after EOF")
	}
	return h.calls
}

var lined = []struct {
	name, bytes string
	want        []string
}{
	{"LF", "{\"a\":1}\n{\"b\":2}\n", []string{ev("", `{"a":1}`), ev("", `{"b":2}`)}},
	{"CRLF", "{\"a\":1}\r\n{\"b\":2}\r\n", []string{ev("", `{"a":1}`), ev("", `{"b":2}`)}},
	{"no last line end", "{\"a\":1}\n{\"b\":2}", []string{ev("", `{"a":1}`), ev("", `{"b":2}`)}},
	{"blank lines", "\n \r\n{\"a\":1}\n\n\t\n[2]\n ", []string{ev("", `{"a":1}`), ev("", "[2]")}},
	{"blanks around", "  {\"a\": 1} \n", []string{ev("", `{"a": 1}`)}},
	{"BOM", "\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n", []string{ev("", "{}"), ev("", "\ufeff{}")}},
	{"only LF ends lines", "\"a\u2028b\u0085c\rd\ve\"\n1\n", []string{ev("", "\"a\u2028b\u0085c\rd\ve\""), ev("", "1")}},
	{"server-sent events are lines as well", "data: a\n\n: p\n", []string{ev("", "data: a"), ev("", ": p")}},
	{"long line", strings.Repeat("x", 200<<10) + "\n1\n", []string{ev("", strings.Repeat("x", 200<<10)), ev("", "1")}},
	{"nothing", "", nil},
}

func TestLinesFrameAtEverySplit(t *testing.T) {
	for _, c := range lined {
		t.Run(c.name, func(t *testing.T) {
			equal(t, "as given", frameLines(t, c.bytes), c.want)
			equal(t, "byte by byte", frameLines(t, strings.Split(c.bytes, "")...), c.want)
			for i := range min(len(c.bytes), 400) {
				equal(t, fmt.Sprintf("split at %d", i), frameLines(t, c.bytes[:i], c.bytes[i:]), c.want)
			}
		})
	}
}

func TestEndlessJSONLineIsRefused(t *testing.T) {
	piece := bytes.Repeat([]byte("x"), 4<<20)
	var l Lines
	l.Reset(&heard{})
	var err error
	for range MaxEvent>>22 + 1 {
		if err == nil {
			err = l.Feed(piece)
		}
	}
	if !errors.Is(err, ErrTooLong) || !errors.Is(l.EOF(), ErrTooLong) {
		t.Errorf("error %v, at the end %v, want %v", err, l.EOF(), ErrTooLong)
	}
	if l.Reset(&heard{}); cap(l.line) != 0 || l.Pending() {
		t.Errorf("%d bytes held after Reset, pending %v, want 0, false", cap(l.line), l.Pending())
	}
}

func TestRepliesOfLinesReadAtEverySplit(t *testing.T) {
	two := []string{ev("", `{"a":1}`), ev("", `{"b":2}`)}
	const body = "{\"a\":1}\n{\"b\":2}\n"
	for _, c := range []struct {
		name, kind, bytes string
		head              Head
		calls             []string
	}{
		{"chunked", "application/x-ndjson", "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 5), Head{length: -1, keepAlive: true, eventStream: true, lines: true}, two},
		{"parameters and case", "Application/NDJSON ; charset=utf-8", "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 8), Head{length: -1, keepAlive: true, eventStream: true, lines: true}, two},
		{"until close", "application/x-ndjson", "\r\n" + body[:len(body)-1], Head{length: -1, eventStream: true, lines: true}, two},
		{"JSON is a document", "application/json", "Content-Length: 16\r\n\r\n" + body, Head{length: 16, keepAlive: true}, []string{"body " + body}},
		{"coded", "application/x-ndjson", "Content-Encoding: br\r\nContent-Length: 16\r\n\r\n" + body, Head{length: 16, keepAlive: true, Encoding: "br"}, []string{"body " + body}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.head.Status = 200
			want := append([]string{fmt.Sprintf("head %+v", c.head)}, c.calls...)
			all := "HTTP/1.1 200 OK\r\nContent-Type: " + c.kind + "\r\n" + c.bytes
			for i := range all {
				calls, rest, _, err := reply(all[:i], all[i:])
				equal(t, fmt.Sprintf("split at %d", i), calls, want)
				if err != nil || rest != "" {
					t.Errorf("split at %d: rest %q, error %v, want none", i, rest, err)
				}
			}
		})
	}
}

func TestPendingTellsUnfinishedLines(t *testing.T) {
	var r Response
	r.Reset(&heard{})
	for _, step := range []struct {
		bytes   string
		pending bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n", false},
		{"8\r\n{\"a\":1}\n", false},
		{"\r\n4\r\n{\"b\"", true},
		{"\r\n4\r\n:2}\n\r\n", false},
	} {
		if _, _, err := r.Feed([]byte(step.bytes)); err != nil || r.Pending() != step.pending {
			t.Errorf("after %q: pending %v, error %v, want %v, nil", step.bytes, r.Pending(), err, step.pending)
		}
	}
}

func TestErrorFieldIsAnEventOfThatName(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  []string
	}{
		{"error: {\"code\":500}\n\n", []string{ev("error", `{"code":500}`)}},
		{"data: a\n\nerror:x\n\ndata: b\n\n", []string{ev("", "a"), ev("error", "x"), ev("", "b")}},
		{"data: {\"a\":\"b\nerror: c\"}\n\n", []string{ev("", "{\"a\":\"b\nerror: c\"}")}},
	} {
		for i := range c.bytes {
			equal(t, fmt.Sprintf("split at %d", i), frame(t, c.bytes[:i], c.bytes[i:]), c.want)
		}
	}
}

func FuzzLinesIgnoreSplits(f *testing.F) {
	for _, c := range lined {
		if len(c.bytes) < 1000 {
			f.Add([]byte(c.bytes), uint64(0x5555))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, cuts uint64) {
		equal(t, "cut", frameLines(t, pieces(b, cuts)...), frameLines(t, string(b)))
	})
}

func TestLinesAllocateNothing(t *testing.T) {
	body := strings.Repeat(`{"model":"m","message":{"content":" token"},"done":false}`+"\n", 20)
	buf := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, 100))
	var r Response
	d := &deaf{}
	n := testing.AllocsPerRun(20, func() { r.Reset(d); r.Feed(buf) })
	bytewise := testing.AllocsPerRun(20, func() {
		r.Reset(d)
		for i := range buf {
			r.Feed(buf[i : i+1])
		}
	})
	if n != 0 || bytewise != 0 || d.events != 2*21*20 {
		t.Errorf("%v allocations for a reply, %v byte by byte, %d events in all, want 0, 0 and %d", n, bytewise, d.events, 2*21*20)
	}
}
