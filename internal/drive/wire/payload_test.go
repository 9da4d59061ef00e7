package wire

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestFirstBytesSayWhatABodyIs(t *testing.T) {
	stream := []string{ev("", "a"), ev("", "b")}
	for _, c := range []struct {
		name, body string
		want       []string
		mistyped   bool
	}{
		{"data", "data: a\n\ndata: b\n\n", stream, true},
		{"a name", "event: x\ndata: a\n\n", []string{ev("x", "a")}, true},
		{"an id", "id: 1\ndata: a\n\n", []string{ev("", "a")}, true},
		{"retry", "retry:1\ndata: a\n\n", []string{ev("", "a")}, true},
		{"a comment", ": ping\n\ndata: a\n\n", []string{"comment", ev("", "a")}, true},
		{"blank lines and data", "\r\n\n\n\ndata: a\n\ndata: b\n\n", stream, true},
		{"a mark and data", "\xef\xbb\xbfdata: a\n\ndata: b\n\n", stream, true},
		{"JSON", `{"data":1}`, []string{`body {"data":1}`}, false},
		{"blank lines and JSON", "\n\n{}", []string{"body {}"}, false},
		{"a word that begins alike", "database", []string{"body database"}, false},
		{"a part of a field", "dat", []string{"body dat"}, false},
		{"half a mark", "\xef\xbb", []string{"body \xef\xbb"}, false},
		{"HTML", "<html>", []string{"body <html>"}, false},
		{"nothing", "", nil, false},
		{"blank lines", "\n\n", nil, false},
	} {
		for _, kind := range []string{"application/json", "text/plain", "text/html"} {
			whole := "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\n\r\n" + c.body
			for i := range len(whole) + 1 {
				var h heard
				var r Response
				r.Reset(&h)
				r.Feed([]byte(whole[:i]))
				r.Feed([]byte(whole[i:]))
				if err := r.EOF(); err != nil {
					t.Fatal(err)
				}
				if got := h.calls[1:]; len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) || r.Mistyped() != c.mistyped || r.Framed() != c.mistyped {
					t.Errorf("%s as %s, split at %d: got %q, mistyped %v, framed %v, want %q, %v", c.name, kind, i, got, r.Mistyped(), r.Framed(), c.want, c.mistyped)
				}
			}
		}
	}
}

func TestExpectedFramingGoesBeforeTheType(t *testing.T) {
	const lines, events = "{\"a\":1}\n{\"b\":2}\n", "data: a\n\n"
	for _, c := range []struct {
		expect     Framing
		kind, body string
		want       []string
		mistyped   bool
	}{
		{AsLines, "application/json", lines, []string{ev("", `{"a":1}`), ev("", `{"b":2}`)}, true},
		{AsLines, "text/event-stream", lines, []string{ev("", `{"a":1}`), ev("", `{"b":2}`)}, false},
		{AsEvents, "application/x-ndjson", events, []string{ev("", "a")}, false},
		{AsEvents, "text/plain", "foo\n" + events, []string{ev("", "a")}, true},
		{AsDocument, "text/event-stream", events, []string{"body " + events}, false},
		{AsDocument, "application/json", events, []string{"body " + events}, false},
		{ByType, "application/json", lines, []string{"body " + lines}, false},
	} {
		var h heard
		var r Response
		r.Expect(c.expect)
		for range 2 {
			h = heard{}
			r.Reset(&h)
			r.Feed([]byte("HTTP/1.1 200 OK\r\nContent-Type: " + c.kind + "\r\n\r\n" + c.body))
			if err := r.EOF(); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(h.calls[1:], c.want) || r.Mistyped() != c.mistyped {
				t.Errorf("%s expected as %d: got %q, mistyped %v, want %q, %v", c.kind, c.expect, h.calls[1:], r.Mistyped(), c.want, c.mistyped)
			}
		}
	}
}

func TestABodyOfAnErrorIsEvidence(t *testing.T) {
	calls, _, _, err := reply("HTTP/1.1 503 Busy\r\nContent-Type: text/event-stream\r\n\r\ndata: busy\n\n")
	if err != nil || len(calls) != 2 || calls[1] != "body data: busy\n\n" {
		t.Errorf("got %q, error %v, want the body as it came", calls, err)
	}
}

func packed(t *testing.T, flush bool, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, p := range parts {
		io.WriteString(z, p)
		if flush {
			z.Flush()
		}
	}
	z.Close()
	return b.Bytes()
}

func TestGzipIsUndoneAtEverySplit(t *testing.T) {
	events := []string{"data: a\n\n", "data: b\n\n", "event: x\ndata: c\n\n"}
	want := []string{ev("", "a"), ev("", "b"), ev("x", "c")}
	for _, c := range []struct {
		name, kind string
		body       []byte
		want       []string
	}{
		{"flushed", "text/event-stream", packed(t, true, events...), want},
		{"not flushed", "text/event-stream", packed(t, false, events...), want},
		{"two members", "text/event-stream", append(packed(t, true, events[:2]...), packed(t, true, events[2])...), want},
		{"a wrong type", "application/json", packed(t, true, events...), want},
		{"lines", "application/x-ndjson", packed(t, true, "{}\n", "[]\n"), []string{ev("", "{}"), ev("", "[]")}},
		{"a document", "application/json", packed(t, true, `{"a":`, `1}`), []string{`body {"a":1}`}},
	} {
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", c.kind, len(c.body))
		whole := head + string(c.body)
		check := func(how string, parts ...string) {
			calls, _, keep, err := reply(parts...)
			if err != nil || !keep || !reflect.DeepEqual(calls[1:], c.want) {
				t.Errorf("%s, %s: got %q, kept %v, error %v, want %q, true, nil", c.name, how, calls[1:], keep, err, c.want)
			}
		}
		check("whole", whole)
		check("byte by byte", strings.Split(whole, "")...)
		for i := range whole {
			check(fmt.Sprintf("split at %d", i), whole[:i], whole[i:])
		}
	}
}

// TestGzipGivesEachEventWhenItHasCome holds back nothing of what the server has flushed.
func TestGzipGivesEachEventWhenItHasCome(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	var h heard
	var r Response
	r.Reset(&h)
	r.Feed([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"))
	for i := range 5 {
		fmt.Fprintf(z, "data: %d\n\n", i)
		z.Flush()
		r.Feed(b.Bytes())
		b.Reset()
		if len(h.calls) != i+2 || r.Pending() {
			t.Fatalf("after event %d: got %q, pending %v, want one event more, false", i, h.calls, r.Pending())
		}
	}
	r.Release()
	r.Release()
}

func TestBrokenGzipIsAnError(t *testing.T) {
	whole := packed(t, true, "data: a\n\n")
	for name, body := range map[string]string{
		"no gzip":      "data: a\n\ndata: b\n\n",
		"cut":          string(whole[:len(whole)-9]),
		"wrong sum":    string(whole[:len(whole)-8]) + "12345678",
		"bytes behind": string(whole) + "more",
		"nothing":      "",
	} {
		head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
		_, _, _, err := reply(head + chunked(body, 100))
		if err == nil || !strings.HasPrefix(err.Error(), "gzip-encoded body: ") {
			t.Errorf("%s: error %v, want one of the gzip-encoded body", name, err)
		}
	}
}

func TestWhatUnpacksToMuchIsBounded(t *testing.T) {
	bomb := packed(t, false, "data: "+strings.Repeat("x", MaxEvent+1))
	_, _, _, err := reply("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n" + string(bomb))
	if err == nil || !strings.Contains(err.Error(), "above 64 MiB") {
		t.Errorf("%d bytes that unpack to more than 64 MiB: error %v, want one", len(bomb), err)
	}
}
