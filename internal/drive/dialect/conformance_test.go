package dialect_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
	"tare/internal/record"
)

func speak(t testing.TB, endpoint string, o dialect.Options) dialect.Dialect {
	t.Helper()
	d, err := dialect.For(endpoint, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listener is a wire.Sink that reads a reply twice: by Glance where it can, and by Read alone.
type listener struct {
	t      *testing.T
	speech string // endpoint
	quick  dialect.Reader
	slow   dialect.Reader
	answer dialect.Answer
	twin   dialect.Answer
	head   wire.Head
	doc    []byte
	found  found
	reads  int   // reads before the present one
	at     []int // the read of each token event
}

func newListener(t *testing.T, f *fixture) *listener {
	endpoint := cmp.Or(f.endpoint, "openai-chat")
	d := speak(t, endpoint, dialect.Options{Stream: true})
	return &listener{t: t, speech: endpoint, quick: d.NewReader(), slow: d.NewReader()}
}

func (l *listener) begin() {
	l.answer.Reset()
	l.twin.Reset()
	l.head, l.doc, l.found, l.reads, l.at = wire.Head{Status: 200}, nil, found{}, 0, nil
}

func (l *listener) Head(h *wire.Head) { l.head = *h }
func (l *listener) Comment()          { l.found.comments++ }
func (l *listener) Body(b []byte)     { l.doc = append(l.doc, b...) }

func (l *listener) Event(name, data []byte) {
	m, ok := l.quick.Glance(&l.answer, name, data)
	if !ok {
		m = l.quick.Read(&l.answer, name, data)
	}
	if twin := l.slow.Read(&l.twin, name, data); twin != m || !reflect.DeepEqual(l.answer, l.twin) {
		l.t.Errorf("%q: by Glance %v: %+v %+v, by Read %+v %+v", data, ok, m, l.answer, twin, l.twin)
	}
	l.note(m)
	l.found.text += textOf(data, texts[l.speech].event)
}

func (l *listener) note(m dialect.Meaning) {
	letters := [...]byte{
		record.KindOther: 'o', record.KindRole: 'r', record.KindContent: 'c', record.KindReasoning: 't', record.KindTool: 'x', record.KindUsage: 'u',
		record.KindFinish: 'f', record.KindTerminator: 'd', record.KindError: 'e', record.KindMalformed: 'm',
	}
	l.found.kinds += string(letters[m.Kind])
	if !m.Kind.Token() {
		return
	}
	l.found.tokens++
	l.at = append(l.at, l.reads)
	exact := "?"
	if m.Exact {
		exact = strconv.Itoa(m.Tokens)
	}
	l.found.exact = strings.TrimPrefix(l.found.exact+","+exact, ",")
}

// textOf reads the text at paths by encoding/json, independently of the code under test.
func textOf(data []byte, paths []string) (text string) {
	var e any
	if json.Unmarshal(data, &e) != nil {
		return ""
	}
	for _, p := range paths {
		text += textAt(e, strings.Split(p, "."))
	}
	return text
}

func textAt(v any, path []string) (text string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			text += textAt(e, path)
		}
	case map[string]any:
		if len(path) > 0 {
			return textAt(v[path[0]], path[1:])
		}
	case string:
		if len(path) == 0 {
			return v
		}
	}
	return text
}

// end completes what was found. whole is whether the body was complete.
func (l *listener) end(whole bool) found {
	if !l.head.EventStream {
		l.note(l.quick.ReadDocument(&l.answer, l.doc))
		l.found.text += textOf(l.doc, texts[l.speech].document)
	}
	f, a := &l.found, &l.answer
	f.outcome = a.Outcome(l.head.Status, whole)
	f.usage, f.finish, f.malformed, f.terminated, f.notStreamed = a.Usage, a.FinishReason, a.Malformed, a.Terminated, a.NotStreamed
	if a.NotStreamed && a.Error == "" {
		// A document is its own end marker.
		f.terminated = true
	}
	return *f
}

// feed reads a reply over HTTP and returns what was found.
func (l *listener) feed(r *wire.Response, reads []string) found {
	l.begin()
	r.Reset(l)
	for _, b := range reads {
		own := []byte(b)
		_, done, err := r.Feed(own)
		clear(own)
		if err != nil {
			l.t.Fatalf("Feed: %v", err)
		}
		if done {
			break
		}
		l.reads++
	}
	return l.end(r.EOF() == nil)
}

func (f *fixture) contentType() string {
	if f.kind == "" {
		return "text/event-stream; charset=utf-8"
	}
	return f.kind
}

// chunked is the fixture as a chunked reply, a chunk to a read, the head in the first.
func (f *fixture) chunked() []string {
	head := "HTTP/1.1 200 OK\r\nContent-Type: " + f.contentType() + "\r\nTransfer-Encoding: chunked\r\n\r\n"
	var reads []string
	for _, b := range f.reads {
		reads = append(reads, fmt.Sprintf("%x\r\n%s\r\n", len(b), b))
	}
	reads[0] = head + reads[0]
	if !f.cut {
		reads = append(reads, "0\r\n\r\n")
	}
	return reads
}

// untilClose is the fixture as a reply that the end of the connection ends; a cut one announces a length instead.
func (f *fixture) untilClose() []string {
	head := "HTTP/1.0 200 OK\r\ncontent-type:" + f.contentType() + "\r\n"
	if f.cut {
		head += "Content-Length: 99999999\r\n"
	}
	reads := append([]string(nil), f.reads...)
	reads[0] = head + "\r\n" + reads[0]
	return reads
}

func TestFixturesAreReadRightAtEverySplit(t *testing.T) {
	for _, f := range allFixtures() {
		t.Run(f.id, func(t *testing.T) {
			l, r := newListener(t, &f), new(wire.Response)
			for framing, reads := range map[string][]string{"chunked": f.chunked(), "until close": f.untilClose()} {
				check := func(how string, reads []string) {
					t.Helper()
					if got := l.feed(r, reads); got != f.want {
						t.Errorf("%s, %s, %s:\n got %.400s\nwant %.400s", f.says, framing, how, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", f.want))
					}
				}
				check("as given", reads)
				if at, ok := arrivals[f.id]; ok && !reflect.DeepEqual(l.at, at) {
					t.Errorf("%s, %s: token events came with reads %v, want %v", f.says, framing, l.at, at)
				}
				all := strings.Join(reads, "")
				check("byte by byte", strings.Split(all, ""))
				for i := 1; i < len(all); i += stride(len(all)) {
					check(fmt.Sprintf("split at %d", i), []string{all[:i], all[i:]})
				}
			}
		})
	}
}

// stride is the distance of splits to try: every place, but in a reply of 200 KiB.
func stride(n int) int {
	if n < 10_000 {
		return 1
	}
	return n / 100
}

// TestFixturesOverARealConnection reads them from net/http's server, which frames the replies in its own way.
func TestFixturesOverARealConnection(t *testing.T) {
	all := allFixtures()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		i, _ := strconv.Atoi(q.URL.Query().Get("i"))
		f := all[i]
		w.Header().Set("Content-Type", f.contentType())
		for _, b := range f.reads {
			io.WriteString(w, b)
			w.(http.Flusher).Flush()
		}
		if f.cut {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	r := new(wire.Response)
	for i, f := range all {
		l := newListener(t, &f)
		for _, version := range []string{"1.1", "1.0"} {
			if f.cut && version == "1.0" {
				continue // nothing tells a cut from an end there
			}
			got := fetch(t, l, r, server.Listener.Addr().String(), fmt.Sprintf("GET /?i=%d HTTP/%s\r\nHost: x\r\n\r\n", i, version))
			if got != f.want {
				t.Errorf("%s, HTTP/%s: %s:\n got %.400s\nwant %.400s", f.id, version, f.says, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", f.want))
			}
		}
	}
}

func fetch(t *testing.T, l *listener, r *wire.Response, addr, request string) found {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, request)
	l.begin()
	r.Reset(l)
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		_, done, bad := r.Feed(buf[:n])
		if bad != nil {
			t.Fatal(bad)
		}
		if done || err != nil {
			return l.end(r.EOF() == nil)
		}
	}
}

// TestCodedStreamIsPassedOnAndReadable is W40: the coding is reported, and what it held frames as ever.
func TestCodedStreamIsPassedOnAndReadable(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, evR+evA+evB+evF+evU+evD)
	z.Close()
	l, r := newListener(t, &fixture{}), new(wire.Response)
	l.begin()
	r.Reset(l)
	_, done, err := r.Feed([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: " + strconv.Itoa(packed.Len()) + "\r\n\r\n" + packed.String()))
	if !done || err != nil || l.head.Encoding != "gzip" || l.found.kinds != "" {
		t.Fatalf("done %v, error %v, encoding %q, events %q, want true, nil, gzip and none", done, err, l.head.Encoding, l.found.kinds)
	}
	plain, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(l.doc)))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(plain)
	var s wire.Stream
	s.Reset(l)
	s.Feed(text)
	s.EOF()
	if got := l.end(true); got != with(nil) {
		t.Errorf("got %+v, want %+v", got, with(nil))
	}
}

func TestDocumentListsEveryFixture(t *testing.T) {
	page, err := os.ReadFile("../../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range allFixtures() {
		if row := "| " + f.id + " | " + f.says + " | "; !strings.Contains(string(page), row) {
			t.Errorf("docs/wire.md has no row %q", row)
		}
	}
}
