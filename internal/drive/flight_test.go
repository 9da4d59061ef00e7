package drive

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
	"tare/internal/record"
)

// reply is a chat reply of n tokens as vLLM writes it, each event in an HTTP chunk of its own.
func reply(n int) []byte {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")
	event := func(choices string) {
		s := fmt.Sprintf("data: {\"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\",\"object\":\"chat.completion.chunk\","+
			"\"created\":1764460800,\"model\":\"m\",\"choices\":[%s}\n\n", choices)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(s), s)
	}
	event(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`)
	for range n {
		event(`{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]`)
	}
	event(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null}]`)
	event(fmt.Sprintf(`],"usage":{"prompt_tokens":9,"total_tokens":%d,"completion_tokens":%d}`, n+9, n))
	b.WriteString("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
	return []byte(b.String())
}

func newTestFlight(tb testing.TB) *flight {
	d, err := dialect.For("openai-chat", dialect.Options{Model: "m", Stream: true})
	if err != nil {
		tb.Fatal(err)
	}
	return &flight{reader: d.NewReader()}
}

// through takes one whole reply in and packs it for the record.
func through(tb testing.TB, f *flight, b []byte, dst []byte) []byte {
	f.begin(&job{index: 1}, 0, 0, record.DelayNone)
	f.x.FirstWrite = record.At(0)
	done, err := f.take(b, time.Millisecond, time.Millisecond+1, true)
	if !done || err != nil {
		tb.Fatalf("done %v, error %v", done, err)
	}
	f.close(verdict{whole: true, at: time.Millisecond})
	if f.x.Outcome != record.Completed || len(f.x.Events) == 0 {
		tb.Fatalf("outcome %v with %d events", f.x.Outcome, len(f.x.Events))
	}
	return record.AppendExchange(dst, &f.x)
}

// TestAReplyInGzipThatIsCutLeavesNothingBehind ends such a reply early, as a time-out does.
func TestAReplyInGzipThatIsCutLeavesNothingBehind(t *testing.T) {
	f := newTestFlight(t)
	f.begin(&job{index: 1}, 0, 0, record.DelayNone)
	head := "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b"
	if done, err := f.take([]byte(head), time.Millisecond, time.Millisecond, true); done || err != nil {
		t.Fatalf("done %v, error %v", done, err)
	}
	if n := coroutines(); n != 1 {
		t.Fatalf("%d coroutines undo gzip, want 1", n)
	}
	f.close(verdict{cause: record.CauseTimeoutTotal, at: time.Second})
	if n := coroutines(); n != 0 {
		t.Errorf("%d coroutines are left, want none", n)
	}
}

// coroutines counts those of the process that wait for their turn. Goroutines that earlier tests left to end are none.
func coroutines() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("[coroutine"))
}

func TestRepliesThatRepeatAnIDAreCountedAsWhose(t *testing.T) {
	f := newTestFlight(t)
	f.ids = "tare-ab-"
	var o oddities
	for _, id := range []string{"tare-ab-1", "tare-ab-2", "req-of-the-server", ""} {
		head := "transfer-encoding: chunked\r\n"
		if id != "" {
			head += "X-Request-Id: " + id + "\r\n"
		}
		through(t, f, []byte(strings.Replace(string(reply(1)), "transfer-encoding: chunked\r\n", head, 1)), nil)
		o.note(f)
	}
	if o.echoed != 2 || o.foreign != 1 {
		t.Errorf("got %d echoed, %d of others, want 2, 1", o.echoed, o.foreign)
	}
	if w := o.warnings(); len(w) != 0 {
		t.Errorf("got warnings %q, want none: a gate judges them", w)
	}
}

func TestReplyCostsNoAllocation(t *testing.T) {
	f, b := newTestFlight(t), reply(16)
	dst := through(t, f, b, nil)
	if n := testing.AllocsPerRun(100, func() { dst = through(t, f, b, dst[:0]) }); n != 0 {
		t.Errorf("%v allocations for a reply of 16 tokens, want none", n)
	}
}

func TestEventsOfOneReadAreFlagged(t *testing.T) {
	f, b := newTestFlight(t), reply(2)
	f.begin(&job{}, 0, 0, record.DelayNone)
	cut := strings.Index(string(b), " token") // within the first token's event
	_, _ = f.take(b[:cut], 1, 2, true)
	_, _ = f.take(b[cut:], 3, 4, true)
	var merged []bool
	for _, e := range f.x.Events {
		merged = append(merged, e.Flags&record.FlagMerged != 0)
	}
	// The role event's read held a piece of the next event; only the end marker closed its read.
	if got, want := fmt.Sprint(merged), "[true true true true true false]"; got != want {
		t.Errorf("merged %v, want %v", got, want)
	}
}

func TestPiecesOfOneReadShareItsStamp(t *testing.T) {
	f, b := newTestFlight(t), reply(2)
	f.begin(&job{}, 0, 0, record.DelayNone)
	cut := strings.Index(string(b), "data: ") + strings.Index(string(b)[strings.Index(string(b), "data: "):], "\n\n") + 2
	_, _ = f.take(b[:cut], 3, 4, true) // the role event, whole
	f.continueRead()
	_, _ = f.take(b[cut:], 3, 5, true)
	if f.x.Events[0].Flags&record.FlagMerged == 0 {
		t.Error("the event before bytes of the same read is not flagged as merged")
	}
}

func BenchmarkReplyOf16Tokens(b *testing.B) {
	f, bytes := newTestFlight(b), reply(16)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = through(b, f, bytes, dst[:0])
	}
}

// A line or a document without end costs its limit in memory, and has a class.
func TestEndlessRepliesAreTooLarge(t *testing.T) {
	piece := []byte(strings.Repeat("x", 1<<20))
	for _, kind := range []string{"text/event-stream", "text/plain"} {
		f := newTestFlight(t)
		f.begin(&job{}, 0, 0, record.DelayNone)
		_, err := f.take([]byte("HTTP/1.1 200 OK\r\nContent-Type: "+kind+"\r\n\r\ndata: "), 1, 1, false)
		for n := 0; n < 100 && err == nil; n++ {
			_, err = f.take(piece, 1, 1, false)
		}
		if err == nil {
			t.Fatalf("%s: taken to its end, want it refused as it grows too large", kind)
		}
		f.close(f.broken(err))
		if f.x.Cause != record.CauseTooLarge || cap(f.doc) > 2*documentMax {
			t.Errorf("%s: got cause %q, %d MiB held (%s), want too_large and at most %d", kind, f.x.Cause, cap(f.doc)>>20, f.x.Error, 2*documentMax>>20)
		}
	}
}

// Events without end cost their limit in memory, have a class, and fit in a block of the log.
func TestRepliesOfEndlessEventsAreTooLarge(t *testing.T) {
	for _, what := range []string{":\n", "data: 1\n\n"} {
		f := newTestFlight(t)
		f.begin(&job{}, 0, 0, record.DelayNone)
		_, err := f.take([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"), 1, 1, false)
		piece := []byte(strings.Repeat(what, 4096))
		for at := time.Duration(0); at < 1<<40 && err == nil; at += 1 << 30 {
			_, err = f.take(piece, at, 2*at, true)
		}
		f.close(f.broken(err))
		if f.x.Cause != record.CauseTooLarge || len(f.x.Events) != wire.MaxEvents {
			t.Errorf("%q: cause %q with %d events, want too_large with %d", what, f.x.Cause, len(f.x.Events), wire.MaxEvents)
		}
		if n := len(record.AppendExchange(nil, &f.x)); n+mostHeld > record.MaxBlock {
			t.Errorf("%q: the record has %d bytes; with %d held before it, it is over a block's %d", what, n, mostHeld, record.MaxBlock)
		}
	}
}
