package dialect_test

import (
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

	"tare/internal/drive"
	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
	"tare/internal/plan"
	"tare/internal/record"
)

func speak(t testing.TB, endpoint string, o dialect.Options) dialect.Dialect {
	t.Helper()
	if endpoint == plan.EndpointTemplate && o.Template == (plan.Template{}) {
		o.Template = described
	}
	d, err := dialect.For(endpoint, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listener is a wire.Sink that reads a reply twice: by Glance where it can, and by Read alone.
type listener struct {
	t       *testing.T
	speech  string // endpoint
	framing wire.Framing
	quick   dialect.Reader
	slow    dialect.Reader
	answer  dialect.Answer
	twin    dialect.Answer
	head    wire.Head
	doc     []byte
	found   found
	reads   int   // reads before the present one
	at      []int // the read of each token event
}

func newListener(t *testing.T, f *fixture) *listener {
	endpoint := cmp.Or(f.endpoint, "openai-chat")
	d := speak(t, endpoint, dialect.Options{Stream: true, Template: f.template})
	return &listener{t: t, speech: endpoint, framing: drive.Framing(d), quick: d.NewReader(), slow: d.NewReader()}
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

// end completes what was found. framed is whether the body was a stream, whole whether it was complete.
func (l *listener) end(framed, whole bool) found {
	if !framed {
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
	r.Expect(l.framing)
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
	whole := r.EOF() == nil
	return l.end(r.Framed(), whole)
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

// delivery is a way in which a real server sends the fixtures, and a client of ours reads them.
type delivery struct {
	name  string
	query string // how the handler is to send
	lacks func(f *fixture) bool
	serve func(http.Handler) *httptest.Server
	fetch func(t *testing.T, l *listener, s *httptest.Server, path string) found
}

var deliveries = []delivery{
	{name: "HTTP/1.1, chunked", serve: httptest.NewServer, fetch: request("1.1")},
	// Nothing tells a cut from an end there.
	{name: "HTTP/1.0, until close", serve: httptest.NewServer, fetch: request("1.0"), lacks: func(f *fixture) bool { return f.cut }},
	{name: "gzip", query: "gzip", serve: httptest.NewServer, fetch: request("1.1")},
	// Lines of JSON are known by their type alone.
	{name: "wrong Content-Type", query: "mistyped", serve: httptest.NewServer, fetch: request("1.1"), lacks: func(f *fixture) bool { return strings.Contains(f.kind, "ndjson") && f.template.Framing == "" }},
	{name: "HTTP/2 over TLS", serve: overHTTP2, fetch: fetchOverHTTP2},
}

// overHTTP2 serves HTTP/2 over TLS.
func overHTTP2(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

// fetchOverHTTP2 hands to the parser what net/http's client takes out of HTTP/2.
func fetchOverHTTP2(t *testing.T, l *listener, s *httptest.Server, path string) found {
	t.Helper()
	reply, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.ProtoMajor != 2 {
		t.Fatalf("the reply came over %s, want HTTP/2", reply.Proto)
	}
	l.begin()
	r := new(wire.Response)
	r.Expect(l.framing)
	r.Reset(l)
	defer r.Release()
	if err := r.Open(reply.StatusCode, reply.Header); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		n, err := reply.Body.Read(buf)
		if _, _, bad := r.Feed(buf[:n]); bad != nil {
			t.Fatal(bad)
		}
		if err != nil {
			whole := err == io.EOF && r.EOF() == nil
			return l.end(r.Framed(), whole)
		}
	}
}

// TestFixturesOverARealConnection reads them from net/http's server, which frames the replies in its own way.
func TestFixturesOverARealConnection(t *testing.T) {
	all := allFixtures()
	for _, d := range deliveries {
		server := d.serve(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			i, _ := strconv.Atoi(q.URL.Query().Get("i"))
			send(w, &all[i], q.URL.Query().Get("as"))
		}))
		for i, f := range all {
			if d.lacks != nil && d.lacks(&f) {
				continue
			}
			got := d.fetch(t, newListener(t, &f), server, fmt.Sprintf("/?i=%d&as=%s", i, d.query))
			if got != f.want {
				t.Errorf("%s, %s: %s:\n got %.400s\nwant %.400s", f.id, d.name, f.says, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", f.want))
			}
		}
		server.Close()
	}
}

// send is the server's side of a fixture: a flush behind each read.
func send(w http.ResponseWriter, f *fixture, how string) {
	w.Header().Set("Content-Type", f.contentType())
	var to io.Writer = w
	flush := w.(http.Flusher).Flush
	switch how {
	case "mistyped":
		w.Header().Set("Content-Type", "text/plain")
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		to, flush = z, func() { z.Flush(); w.(http.Flusher).Flush() }
	}
	for _, b := range f.reads {
		io.WriteString(to, b)
		flush()
	}
	if f.cut {
		panic(http.ErrAbortHandler)
	}
}

// request returns a client of the HTTP/1 parser.
func request(version string) func(t *testing.T, l *listener, s *httptest.Server, path string) found {
	return func(t *testing.T, l *listener, s *httptest.Server, path string) found {
		t.Helper()
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/%s\r\nHost: x\r\n\r\n", path, version)
		l.begin()
		r := new(wire.Response)
		r.Expect(l.framing)
		r.Reset(l)
		defer r.Release()
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			_, done, bad := r.Feed(buf[:n])
			if bad != nil {
				t.Fatal(bad)
			}
			if done || err != nil {
				whole := r.EOF() == nil
				return l.end(r.Framed(), whole)
			}
		}
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
