package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"time"

	"tare/internal/drive"
	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
	"tare/internal/plan"
	"tare/internal/record"
)

const (
	prompt    = "Count from one to twenty in words."
	readBytes = 16 << 10
	keepBytes = 64 << 10               // of a reply, for its header block
	documents = 4 << 20                // of a reply that is not streamed
	lingers   = time.Second            // longest wait for the end of a reply behind its end marker
	mostBytes = 16 << 20               // of a reply to a request for a few tokens
	watched   = 100 * time.Millisecond // for a close behind a reply
)

// arrival is one token event: when its bytes were read, since the request was written, and with which read of the socket.
type arrival struct {
	at   time.Duration
	read int
}

// hailed is a connection that counts its reads below TLS.
type hailed struct {
	net.Conn
	reads int
}

func (h *hailed) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.reads++
	return n, err
}

// talk is one exchange while it lasts. It takes the parser's finds as a wire.Sink.
type talk struct {
	x       Exchange
	resp    wire.Response
	answer  dialect.Answer
	reader  dialect.Reader
	secrets []string

	at   time.Duration // of the bytes being fed, since the request was written
	read int           // of the socket, that brought them
	doc  []byte        // what is not a stream of events
	raw  []byte        // the start of the reply as it came
	size int           // bytes of the reply so far
}

// exchange sends one request on a connection of its own, reads the reply, and looks at what becomes of the connection behind
// a good one if watch is set.
func (p *prober) exchange(ctx context.Context, w Way, tokens int, watch bool) *Exchange {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	p.found.Sent.Posts++
	t := &talk{reader: w.Dialect.NewReader(), secrets: w.Secrets}
	t.resp.Expect(drive.Framing(w.Dialect))
	t.resp.Reset(t)
	socket, conn, err := p.open(ctx, w)
	if err != nil {
		t.settle(record.ConnectFailed, false, p.reason(err))
		return &t.x
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	t.carry(ctx, p, socket, conn, p.request(w, tokens))
	switch persists := t.resp.KeepAlive(); {
	case t.x.Status > 0 && !persists:
		t.x.kept = Closed
	case watch && t.x.read && persists:
		t.x.kept = fate(conn)
	}
	p.count(&t.x)
	return &t.x
}

// open connects as a run does.
func (p *prober) open(ctx context.Context, w Way) (*hailed, net.Conn, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	socket := &hailed{Conn: conn}
	if w.TLS == nil {
		return socket, socket, nil
	}
	secure := tls.Client(socket, w.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return socket, secure, nil
}

func (p *prober) request(w Way, tokens int) []byte {
	p.posts++
	r := plan.Request{Prompt: prompt, InputTokens: len(strings.Fields(prompt)), OutputTokens: tokens}
	return wire.NewPost(w.Path, w.Host, "tare-probe-", w.Header).Append(nil, p.posts, nil, w.Dialect.AppendBody(nil, &r))
}

// carry writes the request and reads until the reply is over.
func (t *talk) carry(ctx context.Context, p *prober, socket *hailed, conn net.Conn, request []byte) {
	if _, err := conn.Write(request); err != nil {
		t.settle(record.Reset, false, "write request: "+p.reason(err))
		return
	}
	began := time.Now()
	buf := make([]byte, readBytes)
	for {
		n, err := conn.Read(buf)
		t.at, t.read = time.Since(began), socket.reads
		if n > 0 {
			switch done, bad := t.take(buf[:n]); {
			case bad != nil:
				t.broken(bad)
				return
			case done:
				t.settle(0, true, "")
				return
			}
			if t.answer.Terminated {
				_ = conn.SetReadDeadline(began.Add(t.at + lingers))
			}
		}
		if err != nil {
			t.lost(ctx, p, err)
			return
		}
	}
}

// take feeds bytes to the parser. done reports a complete reply.
func (t *talk) take(b []byte) (done bool, err error) {
	if t.size += len(b); t.size > mostBytes {
		return false, fmt.Errorf("the reply is longer than %d MiB", mostBytes>>20)
	}
	t.raw = append(t.raw, b[:min(len(b), keepBytes-len(t.raw))]...)
	rest, done, err := t.resp.Feed(b)
	if len(rest) > 0 && err == nil {
		err = errors.New("bytes after the end of the reply")
	}
	return done, err
}

// Head takes note of the reply's header block.
func (t *talk) Head(h *wire.Head) {
	t.x.Header, t.x.Status = Milliseconds(t.at), h.Status
	t.x.Encoding, t.x.packed, t.x.location = dialect.Mask(h.Encoding, t.secrets...), h.Unpacked, dialect.Mask(h.Location, t.secrets...)
}

// Event reads one event.
func (t *talk) Event(name, data []byte) {
	t.x.TokenIDs = t.x.TokenIDs || hasIDs(data)
	m := t.reader.Read(&t.answer, name, data)
	if !m.Kind.Token() {
		return
	}
	t.x.arrivals = append(t.x.arrivals, arrival{t.at, t.read})
	t.x.TokenEvents++
	if m.Kind == record.KindReasoning {
		t.x.Reasoning++
	}
	if m.Exact {
		t.x.Counted++
	}
}

// Comment counts a comment.
func (t *talk) Comment() { t.x.Comments++ }

// Body keeps a reply that is not streamed.
func (t *talk) Body(b []byte) { t.doc = append(t.doc, b[:min(len(b), documents-len(t.doc))]...) }

// lost ends an exchange whose connection could not be read further.
func (t *talk) lost(ctx context.Context, p *prober, err error) {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		end := t.resp.EOF()
		switch {
		case end == nil:
			t.settle(0, true, "")
		case !t.resp.Started():
			t.settle(record.Reset, false, "the server closed the connection without a reply")
		default:
			t.settle(0, false, "the server closed the connection within the reply")
		}
	case t.answer.Terminated:
		t.settle(0, true, "") // all that was asked for had come
	case ctx.Err() != nil || slow(err):
		t.settle(record.TimedOut, false, p.tooLate(t.resp.Started()))
	default:
		t.settle(record.Reset, false, "read reply: "+p.reason(err))
	}
}

func (p *prober) tooLate(started bool) string {
	if started {
		return "the reply did not end within " + p.step.Round(time.Millisecond).String()
	}
	return "no reply within " + p.step.Round(time.Millisecond).String()
}

// broken ends an exchange whose bytes are no HTTP reply.
func (t *talk) broken(err error) {
	outcome := record.StreamError
	if t.x.Status == 0 {
		outcome = record.HTTPError
	}
	t.settle(outcome, false, "read reply: "+err.Error())
}

// settle writes down how the exchange ended, as a run would. An outcome of 0 leaves it to the dialect.
func (t *talk) settle(outcome record.Outcome, whole bool, complaint string) {
	x := &t.x
	x.End = Milliseconds(t.at)
	if !t.resp.Framed() && x.Status == http.StatusOK && outcome == 0 && whole && (x.Encoding == "" || x.packed) {
		t.reader.ReadDocument(&t.answer, t.doc)
	}
	t.resp.Release()
	x.Mistyped = t.resp.Mistyped()
	if outcome == 0 {
		outcome = t.answer.Outcome(x.Status, whole)
	}
	x.Outcome = outcome.String()
	x.FinishReason, x.NotStreamed, x.Malformed = t.answer.FinishReason, t.answer.NotStreamed, t.answer.Malformed
	if u := t.answer.Usage; u.Known {
		x.Usage = &Usage{Input: u.Input, Output: u.Output, Cached: u.Cached, Told: u.CachedKnown}
	}
	if len(x.arrivals) > 0 {
		x.FirstToken = Milliseconds(x.arrivals[0].at)
	}
	x.read = outcome == record.Completed
	x.TokenIDs = x.TokenIDs || hasIDs(t.doc)
	x.keep = t.connectionHeaders()
	x.body = dialect.Mask(string(t.doc[:min(len(t.doc), keepBytes)]), t.secrets...)
	if x.read {
		return
	}
	x.Evidence = dialect.Mask(cmp.Or(complaint, t.answer.Evidence(), string(t.doc), t.lacking(outcome)), t.secrets...)
}

// lacking says what a reply that is no answer lacks, where the server says nothing.
func (t *talk) lacking(o record.Outcome) string {
	switch {
	case t.x.Encoding != "" && !t.x.packed:
		return "the reply is encoded as " + t.x.Encoding + ", which was not asked for"
	case o == record.Truncated:
		return "the reply ended before its end marker"
	case o == record.Empty:
		return "the reply held no token"
	}
	return ""
}

// hasIDs finds the ids of generated tokens, which dialects only count.
func hasIDs(text []byte) bool {
	for _, key := range []string{`"token_ids":`, `"output_ids":`, `"tokens":`} {
		for rest := text; ; {
			_, after, found := bytes.Cut(rest, []byte(key))
			if !found {
				break
			}
			if list, ok := bytes.CutPrefix(bytes.TrimLeft(after, " "), []byte("[")); ok && len(list) > 0 && '0' <= list[0] && list[0] <= '9' {
				return true
			}
			rest = after
		}
	}
	return false
}

// connectionHeaders are the header lines that speak of the connection, as they came.
func (t *talk) connectionHeaders() string {
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(t.raw)))
	if _, err := r.ReadLine(); err != nil {
		return ""
	}
	h, _ := r.ReadMIMEHeader() // of a broken block as much as there is
	var lines []string
	for _, name := range []string{"Connection", "Keep-Alive"} {
		if v := h.Get(name); v != "" {
			lines = append(lines, name+": "+v)
		}
	}
	return dialect.Mask(strings.Join(lines, "; "), t.secrets...)
}

// fate watches a connection that may carry another request for a while, and says what became of it.
func fate(conn net.Conn) string {
	_ = conn.SetReadDeadline(time.Now().Add(watched))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return Kept
	}
	return ClosedUnsaid
}

// count adds what an exchange cost.
func (p *prober) count(x *Exchange) {
	if x.read || x.TokenEvents > 0 {
		p.found.Sent.Costly++
	}
	if x.Usage != nil {
		p.found.Sent.Input += x.Usage.Input
		p.found.Sent.Output += x.Usage.Output
	}
}
