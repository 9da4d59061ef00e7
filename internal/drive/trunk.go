package drive

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// ErrNoHTTP2 says that a server was asked for HTTP/2 and does not speak it.
var ErrNoHTTP2 = errors.New("the server does not speak HTTP/2")

// trunk is one HTTP/2 connection, which carries many requests at a time.
type trunk struct {
	conn     *http.ClientConn
	inFlight int
	since    time.Duration // of the last change of that
	used     bool          // it has carried a request
}

// station is one server as a mux reaches it.
type station struct {
	connect func(ctx context.Context) (net.Conn, error)
	url     url.URL
	header  http.Header // of every request

	trunks   []*trunk
	dialling int
	held     []*flight // for a place on a trunk, in order
}

// newStation prepares the way to a server.
func (c *crew) newStation(server int) (*station, error) {
	s := &c.run.cfg.Servers[server]
	st := &station{header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {""}}}
	for _, line := range s.Header {
		name, value, _ := strings.Cut(line, ": ")
		st.header[http.CanonicalHeaderKey(name)] = append(st.header[http.CanonicalHeaderKey(name)], value)
	}
	u, err := url.Parse("http://" + s.Host + s.Path)
	if err != nil {
		return nil, fmt.Errorf("path of requests: %w", err)
	}
	st.url = *u
	if s.TLS != nil {
		st.url.Scheme = "https"
	}
	st.connect = func(ctx context.Context) (net.Conn, error) { return c.secured(ctx, server) }
	return st, nil
}

// secured connects to a server and agrees on TLS, if it has that, and HTTP/2.
func (c *crew) secured(ctx context.Context, server int) (net.Conn, error) {
	conn, err := c.connect(ctx, server)
	config := c.run.cfg.Servers[server].TLS
	if err != nil || config == nil {
		return conn, err
	}
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	err = secure.HandshakeContext(ctx)
	if err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" || err != nil && strings.Contains(err.Error(), "no application protocol") {
		err = fmt.Errorf("%w: it did not choose h2 in the TLS handshake (ALPN)", ErrNoHTTP2)
	}
	if err != nil {
		conn.Close()
		return nil, handshakeError{err}
	}
	return secure, nil
}

// greeting is a connection on which the two sides have yet to greet each other: the server with its settings, the client by
// acknowledging them. Before that the server's limit of streams is not known.
type greeting struct {
	net.Conn
	done   chan struct{} // closed when they have
	gone   chan struct{} // closed with the connection
	greet  sync.Once
	leave  sync.Once
	mu     sync.Mutex      // guards what follows
	first  [frameHead]byte // bytes of the server's
	read   int             // of them
	reason error           // why no more could be read
}

const (
	frameHead    = 9 // bytes before the payload of a frame, RFC 9113 §4.1
	settingsType = 4 // at byte 3
	settingsAck  = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
)

// Write sees the acknowledgement pass, which is written by itself while no request has been sent.
func (g *greeting) Write(b []byte) (int, error) {
	if string(b) == settingsAck {
		g.greet.Do(func() { close(g.done) })
	}
	return g.Conn.Write(b)
}

func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if g.read < frameHead || err != nil { // only the one who reads changes it
		g.mu.Lock()
		defer g.mu.Unlock()
		g.read += copy(g.first[g.read:], b[:n])
		g.reason = err
	}
	return n, err
}

func (g *greeting) Close() error {
	g.leave.Do(func() { close(g.gone) })
	return g.Conn.Close()
}

// dial opens a trunk, and waits until the server has said how many requests it may carry.
func (st *station) dial(ctx context.Context) (*trunk, error) {
	raw, err := st.connect(ctx)
	if err != nil {
		return nil, err
	}
	g := &greeting{Conn: raw, done: make(chan struct{}), gone: make(chan struct{})}
	conn, err := over(g).NewClientConn(ctx, "http", "unused:80")
	if err != nil {
		raw.Close()
		return nil, err
	}
	select {
	case <-g.done:
		return &trunk{conn: conn}, nil
	case <-g.gone:
		err = g.fault()
	case <-ctx.Done():
		err = fmt.Errorf("%w: it did not answer the greeting in time", ErrNoHTTP2)
	}
	_ = conn.Close()
	return nil, err
}

// over is a transport whose connection is g. It takes it for unencrypted: TLS, if any, is below.
func over(g *greeting) *http.Transport {
	t := &http.Transport{
		Protocols: new(http.Protocols), DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return g, nil },
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// fault says why a connection is gone before the greeting was over.
func (g *greeting) fault() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case refusal(g.reason) != nil:
		return refusal(g.reason)
	case g.read == 0:
		return fmt.Errorf("%w, or closed the connection at once", ErrNoHTTP2)
	case g.first[3] != settingsType:
		return fmt.Errorf("%w: its first bytes are %q", ErrNoHTTP2, g.first[:g.read])
	}
	return errClosedAtOnce
}

// reserve takes a place for a request on the trunk with the fewest; it is nil when there is none. A trunk that has been idle
// too long is not used again.
func (st *station) reserve(now, idleTimeout time.Duration) *trunk {
	st.drop(now, idleTimeout)
	var best *trunk
	for _, t := range st.trunks {
		if t.conn.Available() > 0 && (best == nil || t.conn.InFlight() < best.conn.InFlight()) {
			best = t
		}
	}
	if best == nil || best.conn.Reserve() != nil {
		return nil
	}
	return best
}

// drop closes the trunks that are of no further use.
func (st *station) drop(now, idleTimeout time.Duration) {
	kept := st.trunks[:0]
	for _, t := range st.trunks {
		over := t.conn.Available() == 0 || now-t.since >= idleTimeout
		if t.conn.Err() != nil || t.inFlight == 0 && t.conn.InFlight() == 0 && over {
			_ = t.conn.Close()
			continue
		}
		kept = append(kept, t)
	}
	clear(st.trunks[len(kept):])
	st.trunks = kept
}

// next takes the flight that has waited longest.
func (st *station) next() *flight {
	f := st.held[0]
	st.held[0] = nil
	st.held = st.held[1:]
	return f
}

// wanting reports that the trunks under way have no place for another request.
func (st *station) wanting() bool { return len(st.held) >= st.dialling*st.places() }

// places is how many requests a trunk may carry at a time, as far as the server has said.
func (st *station) places() int {
	const unsaid = 100 // as the transport has it
	n := 0
	for _, t := range st.trunks {
		n = max(n, t.conn.Available()+t.conn.InFlight())
	}
	if n == 0 {
		return unsaid
	}
	return n
}

// post makes a request of a body, with headers of its own.
func (st *station) post(ctx context.Context, id string, lines, body []byte) *http.Request {
	header := st.header.Clone()
	for line := range strings.Lines(string(lines)) {
		name, value, _ := strings.Cut(line, ":")
		header.Set(name, strings.TrimSpace(value))
	}
	header["X-Request-Id"] = []string{id}
	r := &http.Request{
		Method: http.MethodPost, URL: &st.url, Host: st.url.Host, Header: header, Proto: "HTTP/2.0", ProtoMajor: 2,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	return r.WithContext(ctx)
}
