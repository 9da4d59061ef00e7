package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// reply feeds a Response and closes; ended is the error of Feed or EOF.
func reply(parts ...string) (calls []string, rest string, keep bool, ended error) {
	var h heard
	var r Response
	r.Reset(&h)
	done := false
	for i, p := range parts {
		b := []byte(p)
		var left []byte
		left, done, ended = r.Feed(b)
		rest = string(left)
		clear(b)
		if ended != nil {
			break
		}
		if done {
			rest += strings.Join(parts[i+1:], "")
			break
		}
	}
	if ended == nil && !done {
		ended = r.EOF()
	}
	return h.calls, rest, r.KeepAlive(), ended
}

const eventHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"

// chunked makes chunks of n bytes.
func chunked(body string, n int) string {
	var out strings.Builder
	for len(body) > 0 {
		part := body[:min(n, len(body))]
		fmt.Fprintf(&out, "%x\r\n%s\r\n", len(part), part)
		body = body[len(part):]
	}
	return out.String() + "0\r\n\r\n"
}

func TestRepliesReadAtEverySplit(t *testing.T) {
	stream := func(h Head, calls ...string) []string {
		h.eventStream = true
		return append([]string{fmt.Sprintf("head %+v", h)}, calls...)
	}
	two := []string{ev("", "a"), ev("", "b")}
	doc := func(h Head, body string) []string {
		calls := []string{fmt.Sprintf("head %+v", h)}
		if body != "" {
			calls = append(calls, "body "+body)
		}
		return calls
	}
	open := Head{Status: 200, length: -1, keepAlive: true}
	closing := Head{Status: 200, length: -1}
	for _, c := range []struct {
		name, bytes string
		want        []string
		rest        string
		keep        bool
		ended       error
	}{
		{"chunked", eventHead + "Transfer-Encoding: chunked\r\n\r\n" + chunked("data: a\n\ndata: b\n\n", 9), stream(open, two...), "", true, nil},
		{"chunks cut events", eventHead + "transfer-encoding: Chunked\r\n\r\n" + chunked("data: a\n\ndata: b\n\n", 4) + "HTTP/1.1", stream(open, two...), "HTTP/1.1", true, nil},
		{"extensions and trailers", eventHead + "Transfer-Encoding: chunked\r\n\r\n9;x=y\r\ndata: a\n\n\r\n009 \r\ndata: b\n\n\r\n0;z\r\nX-Sum: 1\r\nY: 2\r\n\r\n", stream(open, two...), "", true, nil},
		{"bare LF everywhere", "HTTP/1.1 200 OK\nContent-Type: text/event-stream\nTransfer-Encoding: chunked\n\n9\ndata: a\n\n\n9\ndata: b\n\n\n0\n\n", stream(open, two...), "", true, nil},
		{"end of chunks dispatches", eventHead + "Transfer-Encoding: chunked\r\n\r\n" + chunked("data: a\n\ndata: b", 99), stream(open, two...), "", true, nil},
		{"no last chunk", eventHead + "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n8\r\ndata: b\n\r\n", stream(open, two[0]), "", false, io.ErrUnexpectedEOF},
		{"no end of trailer", eventHead + "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n0\r\n", stream(open, two[0]), "", false, io.ErrUnexpectedEOF},
		{"until close", eventHead + "\r\ndata: a\n\ndata: b\n", stream(closing, two...), "", false, nil},
		{"length", eventHead + "Content-Length: 18\r\n\r\ndata: a\n\ndata: b\n\nHTTP", stream(Head{Status: 200, length: 18, keepAlive: true}, two...), "HTTP", true, nil},
		{"length cut", eventHead + "Content-Length: 18\r\n\r\ndata: a\n\n", stream(Head{Status: 200, length: 18, keepAlive: true}, two[0]), "", false, io.ErrUnexpectedEOF},
		{"connection: close", eventHead + "Connection: foo, Close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked("data: a\n\ndata: b\n\n", 99), stream(closing, two...), "", false, nil},
		{"last of a connection", eventHead + "Keep-Alive: timeout=5, max=0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked("data: a\n\ndata: b\n\n", 99), stream(closing, two...), "", false, nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", doc(Head{Status: 200, length: 2}, "ok"), "", false, nil},
		{"HTTP/1.0 kept", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok", doc(Head{Status: 200, length: 2, keepAlive: true}, "ok"), "", true, nil},
		{"HTTP/1.0 in chunks", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", doc(closing, "ok"), "", false, nil},
		{"length beside chunks", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", doc(closing, "ok"), "", false, nil},
		{"interim replies", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\nLocation: /x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", doc(Head{Status: 200, length: 2, keepAlive: true}, "ok"), "", true, nil},
		{"no content", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\nHTTP", doc(Head{Status: 204, keepAlive: true}, ""), "HTTP", true, nil},
		{"not modified", "HTTP/1.1 304\r\nContent-Length: 5\r\n\r\n", doc(Head{Status: 304, keepAlive: true}, ""), "", true, nil},
		{"empty body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", doc(Head{Status: 200, keepAlive: true}, ""), "", true, nil},
		{"redirect", "HTTP/1.1 307 \r\nLocation:  /elsewhere \r\nContent-Length: 0\r\n\r\n", doc(Head{Status: 307, keepAlive: true, Location: "/elsewhere"}, ""), "", true, nil},
		{"overloaded", "HTTP/1.1 429 Too Many Requests\r\nretry-after-ms: 250\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", doc(Head{Status: 429, keepAlive: true, RetryAfter: "1"}, ""), "", true, nil},
		{"overloaded, milliseconds", "HTTP/1.1 503 Service Unavailable\r\nretry-after-ms: 250\r\nContent-Length: 0\r\n\r\n", doc(Head{Status: 503, keepAlive: true, RetryAfter: "250ms"}, ""), "", true, nil},
		{"coded", eventHead + "Content-Encoding: BR\r\nContent-Length: 9\r\n\r\ndata: a\n\n", []string{fmt.Sprintf("head %+v", Head{Status: 200, length: 9, keepAlive: true, Encoding: "br"}), "body data: a\n\n"}, "", true, nil},
		{"equal lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok", doc(Head{Status: 200, length: 2, keepAlive: true}, "ok"), "", true, nil},
		{"nothing", "", nil, "", false, io.ErrUnexpectedEOF},
		{"cut in the head", "HTTP/1.1 200 OK\r\nContent-Le", nil, "", false, io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, parts ...string) {
				t.Helper()
				calls, rest, keep, ended := reply(parts...)
				equal(t, how, calls, c.want)
				if rest != c.rest || keep != c.keep || !errors.Is(ended, c.ended) {
					t.Errorf("%s: rest %q, keep-alive %v, ended %v, want %q, %v, %v", how, rest, keep, ended, c.rest, c.keep, c.ended)
				}
			}
			check("as given", c.bytes)
			check("byte by byte", strings.Split(c.bytes, "")...)
			for i := range c.bytes {
				check(fmt.Sprintf("split at %d", i), c.bytes[:i], c.bytes[i:])
			}
		})
	}
}

func TestWhatIsNotHTTPIsRefused(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, bytes := range []string{
		"\x15\x03\x01\x00\x02\x02\x50", // TLS alert
		"SSH-2.0-OpenSSH_9.6\r\n",
		"PRI * HTTP/2.0\r\n\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.2 200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"\r\n" + ok + "\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		ok + " folded: x\r\n\r\n",
		ok + "A: b\r\n\tc\r\n\r\n",
		ok + "no colon\r\n\r\n",
		ok + ": no name\r\n\r\n",
		ok + "space : x\r\n\r\n",
		ok + "A: b\rc\r\n\r\n",
		ok + "A: b\x00c\r\n\r\n",
		ok + "Content-Length: -1\r\n\r\n",
		ok + "Content-Length: 1x\r\n\r\n",
		ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
		ok + "Content-Length: 99999999999999999999\r\n\r\n",
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\nxyz",
		ok + "Transfer-Encoding: chunked\r\n\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n2z\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nokay",
		ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\r",
		ok + "Transfer-Encoding: chunked\r\n\r\n1000000000000000\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 5<<10) + "\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 20<<10),
		ok + strings.Repeat("A: b\r\n", 20<<10),
		ok + "A: " + strings.Repeat("x", 70<<10),
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 4<<10),
	} {
		if _, _, keep, err := reply(bytes); err == nil || errors.Is(err, io.ErrUnexpectedEOF) || keep {
			t.Errorf("%.80q: error %v, keep-alive %v, want a refusal", bytes, err, keep)
		}
		if _, _, _, err := reply(strings.Split(bytes, "")...); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%.80q byte by byte: error %v, want a refusal", bytes, err)
		}
	}
}

func TestPendingTellsEventBytesFromFraming(t *testing.T) {
	var r Response
	r.Reset(&heard{})
	if r.Started() || r.Pending() {
		t.Errorf("fresh: started %v, pending %v, want false, false", r.Started(), r.Pending())
	}
	for _, step := range []struct {
		bytes   string
		pending bool
	}{
		{"H", true},
		{"TTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r", true},
		{"\n", false},
		{"9", false},
		{"\r\ndata: a\n\n\r", false},
		{"\n8\r\ndata: b\n\r\n", true},
		{"1\r\n\n\r\n", false},
		{"0\r\n\r", false},
		{"\n", false},
	} {
		if _, _, err := r.Feed([]byte(step.bytes)); err != nil {
			t.Fatal(err)
		}
		if r.Pending() != step.pending {
			t.Errorf("after %q: pending %v, want %v", step.bytes, r.Pending(), step.pending)
		}
	}
}

func FuzzResponseIgnoresSplits(f *testing.F) {
	f.Add([]byte(eventHead+"Transfer-Encoding: chunked\r\n\r\n"+chunked("data: a\n\n: p\r\n\r\ndata: b\n\n", 5)), uint64(0x1249))
	f.Add([]byte(eventHead+"Content-Length: 9\r\n\r\ndata: a\n\n"), uint64(0xffff))
	f.Add([]byte(eventHead+"Connection: close\r\n\r\ndata: a\n\n"), uint64(3))
	f.Add([]byte("HTTP/1.1 100\r\n\r\nHTTP/1.0 503 X\r\nRetry-After: 1\r\n\r\nbusy"), uint64(1<<20))
	f.Fuzz(func(t *testing.T, b []byte, cuts uint64) {
		calls, rest, keep, ended := reply(string(b))
		calls2, rest2, keep2, ended2 := reply(pieces(b, cuts)...)
		equal(t, "cut", calls2, calls)
		if rest != rest2 || keep != keep2 || (ended == nil) != (ended2 == nil) {
			t.Errorf("cut: rest %q, keep-alive %v, ended %v, whole: %q, %v, %v", rest2, keep2, ended2, rest, keep, ended)
		}
	})
}

// deaf is a Sink that only counts events.
type deaf struct{ events int }

func (d *deaf) Head(*Head)           {}
func (d *deaf) Event(_, data []byte) { d.events++ }
func (d *deaf) Comment()             {}
func (d *deaf) Body([]byte)          {}

const tokenEvent = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n"

func TestSteadyStateAllocatesNothing(t *testing.T) {
	whole := []byte(eventHead + "Transfer-Encoding: chunked\r\n\r\n" + chunked(strings.Repeat(tokenEvent, 20), len(tokenEvent)))
	cut := []byte(eventHead + "Transfer-Encoding: chunked\r\n\r\n" + chunked(strings.Repeat(tokenEvent, 20), 100))
	var r Response
	d := &deaf{}
	for _, c := range []struct {
		name string
		feed func()
	}{
		{"whole events", func() { r.Feed(whole) }},
		{"cut events", func() { r.Feed(cut) }},
		{"byte by byte", func() {
			for i := range cut {
				r.Feed(cut[i : i+1])
			}
		}},
	} {
		d.events = 0
		n := testing.AllocsPerRun(20, func() { r.Reset(d); c.feed() })
		if n != 0 || d.events != 21*20 {
			t.Errorf("%s: %v allocations for a reply, %d events in all, want 0 and %d", c.name, n, d.events, 21*20)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	buf := []byte(strings.Repeat(tokenEvent, 64))
	var s Stream
	s.Reset(&deaf{})
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		s.Feed(buf)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/event")
}

func BenchmarkChunked(b *testing.B) {
	buf := []byte(chunked(strings.Repeat(tokenEvent, 64), len(tokenEvent)))
	buf = buf[:len(buf)-len("0\r\n\r\n")]
	var r Response
	r.Reset(&deaf{})
	r.Feed([]byte(eventHead + "Transfer-Encoding: chunked\r\n\r\n"))
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		r.Feed(buf)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/event")
}
