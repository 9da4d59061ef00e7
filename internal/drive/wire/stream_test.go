package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// heard is a Sink that writes down what it is told; unfinished body pieces are joined.
type heard struct {
	calls []string
	doc   bool // the last call was a piece of a body
}

func (h *heard) Head(d *Head)            { h.add(fmt.Sprintf("head %+v", *d)) }
func (h *heard) Event(name, data []byte) { h.add(fmt.Sprintf("event %q %q", name, data)) }
func (h *heard) Comment()                { h.add("comment") }

func (h *heard) Body(b []byte) {
	if h.doc {
		h.calls[len(h.calls)-1] += string(b)
		return
	}
	h.add("body " + string(b))
	h.doc = true
}

func (h *heard) add(call string) { h.calls, h.doc = append(h.calls, call), false }

func frame(t *testing.T, parts ...string) []string {
	t.Helper()
	var h heard
	var s Stream
	s.Reset(&h)
	for _, p := range parts {
		// A copy that is wiped shows any view kept beyond the call.
		b := []byte(p)
		if err := s.Feed(b); err != nil {
			t.Fatalf("Feed(%.40q): %v", p, err)
		}
		clear(b)
	}
	if err := s.EOF(); err != nil {
		t.Fatalf("EOF: %v", err)
	}
	return h.calls
}

func ev(name, data string) string { return fmt.Sprintf("event %q %q", name, data) }

var streams = []struct {
	name, bytes string
	want        []string
}{
	{"LF", "data: a\n\ndata: b\n\n", []string{ev("", "a"), ev("", "b")}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{ev("", "a"), ev("", "b")}},
	{"CR", "data: a\r\rdata: b\r\r", []string{ev("", "a"), ev("", "b")}},
	{"mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\rdata: d\r\r\n", []string{ev("", "a"), ev("", "b"), ev("", "c"), ev("", "d")}},
	{"one space is the separator's", "data:  a\n\ndata:b\n\n", []string{ev("", " a"), ev("", "b")}},
	{"a colon in the value", "data: a: b\n\n", []string{ev("", "a: b")}},
	{"BOM", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []string{ev("", "a")}},
	{"comments", ": PING\n\n:\n\ndata: a\n: in\ndata: b\n\n", []string{"comment", "comment", "comment", ev("", "a\nb")}},
	{"names", "event: x\ndata: a\n\ndata: b\n\ndata: c\nevent: y\nevent: z\n\n", []string{ev("x", "a"), ev("", "b"), ev("z", "c")}},
	{"several data lines", "data: a\ndata:\ndata: b\n\n", []string{ev("", "a\n\nb")}},
	{"no data, no event", "id: 3\n\nretry: 3000\n\nevent: x\n\n: ping\n\n\n\ndata: a\n\n", []string{"comment", ev("", "a")}},
	{"empty data is data", "data:\n\ndata\n\ndata:  \n\n", []string{ev("", ""), ev("", ""), ev("", " ")}},
	{"EOF without blank line", "data: a\n", []string{ev("", "a")}},
	{"EOF without line end", "data: a\n\ndata: [DONE]", []string{ev("", "a"), ev("", "[DONE]")}},
	{"EOF in a field name", "data: a\n\ndat", []string{ev("", "a")}},
	{"only CR and LF end lines", "data: a\u2028b\u0085c\vd\fe\n\n", []string{ev("", "a\u2028b\u0085c\vd\fe")}},
	{"unknown fields", "foo: bar\ndata: {\"a\":\"b\"}\nfoo: bar\nbaz\n\n", []string{ev("", `{"a":"b"}`)}},
	{"raw newline in a string", "data: {\"a\":\"b\nc\\\"\nd\"}\nfoo\n\n", []string{ev("", "{\"a\":\"b\nc\\\"\nd\"}")}},
	{"raw CRLF in a string", "data: {\"a\":\"b\r\nc\"}\r\n\r\n", []string{ev("", "{\"a\":\"b\nc\"}")}},
	{"raw blank line in a string", "data: {\"a\":\"f() {}\n\nb\"}\n\ndata: c\n\n", []string{ev("", "{\"a\":\"f() {}\n\nb\"}"), ev("", "c")}},
	{"a raw blank line before a quote that is escaped", "data: {\"a\":\"x: \\\"\r\n\r\n\r\n \"}\r\n\r\n", []string{ev("", "{\"a\":\"x: \\\"\n\n\n \"}")}},
	{"raw blank lines, then text", "data: {\"a\":\"\n\n\nb: c\n\nd\"}\n\n", []string{ev("", "{\"a\":\"\n\n\nb: c\n\nd\"}")}},
	{"a string without its end, then data", "data: {\"a\":\"b\n\ndata: {}\n\n", []string{ev("", "{\"a\":\"b"), ev("", "{}")}},
	{"a string without its end, then a name", "data: {\"a\":\"b\n\nevent: x\ndata: {}\n\n", []string{ev("", "{\"a\":\"b"), ev("x", "{}")}},
	{"a string without its end, then a comment", "data: {\"a\":\"b\n\n: c\n\ndata: {}\n\n", []string{ev("", "{\"a\":\"b"), "comment", ev("", "{}")}},
	{"a string without its end, then an error", "data: {\"a\":\"b\n\nerror: {}\n\n", []string{ev("", "{\"a\":\"b"), ev("error", "{}")}},
	{"a string without its end", "data: {\"a\":\"b\n\n", []string{ev("", "{\"a\":\"b")}},
	{"stray line before data", "c\"}\ndata: {}\n\n", []string{ev("", "{}")}},
	{"long line", "data: " + strings.Repeat("x", 200<<10) + "\n\ndata: b\n\n", []string{ev("", strings.Repeat("x", 200<<10)), ev("", "b")}},
	{"nothing", "", nil},
}

func TestStreamFramesAtEverySplit(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			equal(t, "as given", frame(t, c.bytes), c.want)
			equal(t, "byte by byte", frame(t, strings.Split(c.bytes, "")...), c.want)
			for i := range min(len(c.bytes), 400) {
				equal(t, fmt.Sprintf("split at %d", i), frame(t, c.bytes[:i], c.bytes[i:]), c.want)
			}
		})
	}
}

func equal(t *testing.T, how string, got, want []string) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %.300q\nwant %.300q", how, got, want)
	}
}

func TestCarriageReturnAtEndOfReadEndsTheLine(t *testing.T) {
	var h heard
	var s Stream
	s.Reset(&h)
	for _, step := range []struct {
		bytes   string
		events  int
		pending bool
	}{
		{"data: a\r", 0, true},
		{"\n\r", 1, false},
		{"\n", 1, false},
		{"data: b\n", 1, true},
		{"\n", 2, false},
		{": ping\n", 3, false},
		{": pi", 3, true},
		{"ng\n\nid: 7\n", 4, true},
		{"\n", 4, false},
	} {
		if err := s.Feed([]byte(step.bytes)); err != nil {
			t.Fatal(err)
		}
		if len(h.calls) != step.events || s.Pending() != step.pending {
			t.Errorf("after %q: %d calls, pending %v, want %d, %v", step.bytes, len(h.calls), s.Pending(), step.events, step.pending)
		}
	}
}

func TestEndlessLineIsRefusedWithBoundedMemory(t *testing.T) {
	piece := bytes.Repeat([]byte("x"), 4<<20)
	for _, start := range []string{"data: ", ": ", "event: "} {
		var s Stream
		s.Reset(&heard{})
		err := s.Feed([]byte(start))
		for range MaxEvent / len(piece) {
			if err == nil {
				err = s.Feed(piece)
			}
		}
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("%q: error %v, want %v", start, err, ErrTooLong)
		}
		if cap(s.line) > 2*MaxEvent {
			t.Errorf("%q: %d bytes held, want at most %d", start, cap(s.line), 2*MaxEvent)
		}
		if s.Reset(&heard{}); cap(s.line) != 0 {
			t.Errorf("%q: %d bytes held after Reset, want 0", start, cap(s.line))
		}
	}
}

func TestEndlessDataLinesAreRefused(t *testing.T) {
	piece := bytes.Repeat([]byte("data: "+strings.Repeat("x", 1<<20)+"\n"), 4)
	var s Stream
	s.Reset(&heard{})
	var err error
	for range MaxEvent >> 22 {
		if err == nil {
			err = s.Feed(piece)
		}
	}
	if !errors.Is(err, ErrTooLong) {
		t.Errorf("error %v, want %v", err, ErrTooLong)
	}
}

// counter is a Sink that counts what it is told.
type counter struct{ told int }

func (c *counter) Head(*Head)        {}
func (c *counter) Event(_, _ []byte) { c.told++ }
func (c *counter) Comment()          { c.told++ }
func (c *counter) Body([]byte)       {}
func (c *counter) reset() (told int) { told, c.told = c.told, 0; return told }

func TestEventsWithoutEndAreRefused(t *testing.T) {
	var s Stream
	var l Lines
	var c counter
	for what, feed := range map[string]func([]byte) error{":\n": s.Feed, "data:1\n\n": s.Feed, "data:1\r\n\r\n": s.Feed, "data:1\n:\n\n": s.Feed, "1\n": l.Feed} {
		s.Reset(&c)
		l.Reset(&c)
		piece := []byte(strings.Repeat(what, 1000))
		var err error
		for n := 0; n <= MaxEvents/1000 && err == nil; n++ {
			err = feed(piece)
		}
		if told := c.reset(); !errors.Is(err, ErrTooMany) || told != MaxEvents {
			t.Errorf("%q: error %v behind %d events, want %v behind %d", what, err, told, ErrTooMany, MaxEvents)
		}
	}
}

func FuzzStreamIgnoresSplits(f *testing.F) {
	for _, c := range streams {
		if len(c.bytes) < 1000 {
			f.Add([]byte(c.bytes), uint64(0x5555))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, cuts uint64) {
		equal(t, "cut", frame(t, pieces(b, cuts)...), frame(t, string(b)))
	})
}

// pieces cuts b where bits of cuts, used again and again, are set.
func pieces(b []byte, cuts uint64) (parts []string) {
	from := 0
	for i := range b {
		if cuts>>(i%64)&1 == 1 {
			parts = append(parts, string(b[from:i]))
			from = i
		}
	}
	return append(parts, string(b[from:]))
}
