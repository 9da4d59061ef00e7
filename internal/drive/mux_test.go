package drive_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// streams is a server that speaks HTTP/2 only, with at most so many streams a connection if that is not 0, over TLS if a is given.
func streams(t *testing.T, l net.Listener, a *authority, most int, h http.HandlerFunc) (news *atomic.Int64) {
	news = new(atomic.Int64)
	s := &httptest.Server{Listener: l, Config: &http.Server{
		Handler: h, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: most},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				news.Add(1)
			}
		},
	}}
	if a != nil {
		s.Config.Protocols.SetHTTP2(true)
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}}
		s.StartTLS()
	} else {
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	t.Cleanup(s.Close)
	return news
}

// overHTTP2 runs a test with and without TLS.
func overHTTP2(t *testing.T, most int, h http.HandlerFunc, f func(t *testing.T, cfg drive.Config, news *atomic.Int64)) {
	t.Run("TLS", func(t *testing.T) {
		a, l := newAuthority(t), listen(t, "tcp", "127.0.0.1:0")
		news := streams(t, l, a, most, h)
		server := drive.Server{Address: l.Addr().String(), TLS: &tls.Config{RootCAs: a.pool, ServerName: "llm.test"}}
		f(t, drive.Config{HTTP2: true, Servers: []drive.Server{server}}, news)
	})
	t.Run("plain", func(t *testing.T) {
		l := listen(t, "tcp", "127.0.0.1:0")
		news := streams(t, l, nil, most, h)
		f(t, drive.Config{HTTP2: true, Servers: at(l.Addr().String())}, news)
	})
}

func TestRepliesOverHTTP2AreReadWhole(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Accept-Encoding") != "" || r.UserAgent() != "" {
			http.Error(w, fmt.Sprint(r.Proto, r.Header), http.StatusBadRequest)
			return
		}
		chat(w, r)
	}
	overHTTP2(t, 0, h, func(t *testing.T, cfg drive.Config, _ *atomic.Int64) {
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{{Rate: 400, Requests: 100}, {Concurrency: 3, Requests: 50}}}))
		if n := outcomes(all); n["completed"] != 150 || m.Client.Engine != "http2" || m.Client.KernelStamps {
			t.Fatalf("engine %s, kernel stamps %v, outcomes %v, want 150 completed by http2 without stamps; first error %q",
				m.Client.Engine, m.Client.KernelStamps, n, firstError(all))
		}
		first := int64(0) // requests on new connections
		for _, l := range m.Loops {
			first += l.Dials
		}
		for _, x := range all {
			if !x.Reused {
				first--
			}
			tokens := 0
			for i, e := range x.Events {
				if e.Kind.Token() {
					tokens++
				}
				if e.Flags&record.FlagStamped != 0 || e.KernelAt != e.UserAt {
					t.Fatalf("request %d event %d has a stamp", x.Index, i)
				}
			}
			if tokens != 4 || x.FinishReason != "length" || x.Usage.Output != 4 || x.Status != 200 || x.Reads == 0 || x.BytesIn == 0 {
				t.Fatalf("request %d: %d token events, %+v; want 4, all of the reply", x.Index, tokens, x)
			}
			sent, _ := x.FirstWrite.Get()
			written, ok := x.LastWrite.Get()
			end, _ := x.End.Get()
			if !ok || sent < x.Due || written < sent || end < sent {
				t.Fatalf("request %d: due %v, sent %v, written %v, end %v: out of order", x.Index, x.Due, sent, written, end)
			}
		}
		if first < 0 {
			t.Errorf("%d requests more than connections do not say that theirs had carried another", -first)
		}
	})
}

// Ten streams a connection and fifty requests in flight: five connections, and no stream is refused.
func TestRequestsShareConnectionsUpToTheServersLimit(t *testing.T) {
	var inFlight, most atomic.Int64
	arrived := make(chan struct{}, 1000)
	h := func(w http.ResponseWriter, r *http.Request) {
		for n := inFlight.Add(1); ; {
			seen := most.Load()
			if n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		arrived <- struct{}{}
		if len(arrived) < 50 { // hold the first fifty until all are there
			for len(arrived) < 50 {
				select {
				case <-time.After(time.Millisecond):
				case <-r.Context().Done():
					return
				}
			}
		}
		inFlight.Add(-1)
		chat(w, r)
	}
	l := listen(t, "tcp", "127.0.0.1:0")
	news := streams(t, l, nil, 10, h)
	cfg := drive.Config{HTTP2: true, Servers: at(l.Addr().String()), Loops: 1}
	all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 50, Requests: 300}))
	if n := outcomes(all); n["completed"] != 300 || most.Load() != 50 {
		t.Errorf("outcomes %v, at most %d in flight, want 300 completed, 50 in flight; first error %q", n, most.Load(), firstError(all))
	}
	if l := m.Loops[0]; l.Dials < 5 || l.Dials > 10 || l.Dials != news.Load() || l.DialsInRun != l.Dials-1 {
		t.Errorf("%d connections dialled, %d of them in the run, %d taken by the server, want some 5, all but one in the run", l.Dials, l.DialsInRun, news.Load())
	}
}

func TestFailuresOverHTTP2HaveTheirCauses(t *testing.T) {
	const token = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	began := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, token)
		w.(http.Flusher).Flush()
	}
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		want record.Cause
	}{
		{"status", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, record.CauseRateLimited},
		{"an endless header", func(w http.ResponseWriter, r *http.Request) {
			for i := range 10 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1<<20))
			}
			chat(w, r)
		}, record.CauseNotHTTP},
		{"error in the stream", func(w http.ResponseWriter, r *http.Request) {
			began(w)
			fmt.Fprint(w, `data: {"error":{"message":"boom"}}`+"\n\n")
		}, record.CauseStreamError},
		{"clean end without finish", func(w http.ResponseWriter, r *http.Request) { began(w) }, record.CauseEOFClean},
		{"stream reset", func(w http.ResponseWriter, r *http.Request) { began(w); panic(http.ErrAbortHandler) }, record.CauseConnectionLost},
		{"reset without a word", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, record.CauseConnectionLost},
		{"never", silence, record.CauseTimeoutTotal},
		{"stalled", func(w http.ResponseWriter, r *http.Request) { began(w); silence(w, r) }, record.CauseTimeoutTotal},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t, "tcp", "127.0.0.1:0")
			streams(t, l, nil, 0, c.h)
			cfg := drive.Config{HTTP2: true, Servers: at(l.Addr().String()), Timeout: time.Minute}
			if c.want == record.CauseTimeoutTotal {
				cfg.Timeout = 300 * time.Millisecond
			}
			all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 2, Requests: 6}))
			for _, x := range all {
				if x.Cause != c.want {
					t.Errorf("request %d: cause %q (%s), want %q", x.Index, x.Cause, x.Error, c.want)
				}
			}
		})
	}
}

func TestTimeOutsOfPhasesHoldOverHTTP2(t *testing.T) {
	part := func(text string, comments bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if text != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, text)
				w.(http.Flusher).Flush()
			}
			for comments && r.Context().Err() == nil {
				fmt.Fprint(w, ": ping\n\n")
				w.(http.Flusher).Flush()
				<-time.After(20 * time.Millisecond)
			}
			silence(w, r)
		}
	}
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		cfg  drive.Config
		want record.Cause
	}{
		{"no answer", part("", false), drive.Config{HeaderTimeout: 150 * time.Millisecond}, record.CauseTimeoutHeaders},
		{"role, then comments", part(sseRole, true), drive.Config{FirstTokenTimeout: 150 * time.Millisecond}, record.CauseTimeoutFirstToken},
		{"a token, then comments", part(sseToken, true), drive.Config{FirstTokenTimeout: 2 * time.Second, TokenTimeout: 150 * time.Millisecond}, record.CauseTimeoutBetweenTokens},
		{"comments without end", part(sseToken, true), drive.Config{Timeout: 150 * time.Millisecond}, record.CauseTimeoutTotal},
		{"tokens for longer than a header may take", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 8 {
				fmt.Fprint(w, sseToken)
				w.(http.Flusher).Flush()
				<-time.After(100 * time.Millisecond)
			}
			fmt.Fprint(w, sseFinish+"data: [DONE]\n\n")
		}, drive.Config{HeaderTimeout: 500 * time.Millisecond}, record.CauseNone},
		{"all but the end", part(sseToken+sseFinish+"data: [DONE]\n\n", true), drive.Config{}, record.CauseNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := c.cfg
			cfg.HTTP2, cfg.Servers = true, at(serve(t, c.h))
			all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 2}))
			for _, x := range all {
				if x.Cause != c.want || x.Outcome != c.want.Outcome() {
					t.Errorf("got cause %q (%s), want %q", x.Cause, x.Error, c.want)
				}
			}
		})
	}
}

func TestServersWithoutHTTP2AreRefused(t *testing.T) {
	load := spec(plan.Load{Concurrency: 1, Requests: 1})
	tlsOnly := httptest.NewUnstartedServer(http.HandlerFunc(chat))
	tlsOnly.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsOnly.StartTLS()
	t.Cleanup(tlsOnly.Close)
	plain := httptest.NewServer(http.HandlerFunc(chat))
	t.Cleanup(plain.Close)
	for name, server := range map[string]drive.Server{
		"TLS":   {Address: tlsOnly.Listener.Addr().String(), TLS: &tls.Config{InsecureSkipVerify: true}},
		"plain": {Address: plain.Listener.Addr().String()},
		"mute":  {Address: accept(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })},
		"other": {Address: accept(t, func(c net.Conn) { fmt.Fprint(c, "220 ready\r\n"); c.Close() })},
	} {
		err := start(t, drive.Config{HTTP2: true, Servers: []drive.Server{server}, ConnectTimeout: 300 * time.Millisecond}, load)
		if !errors.Is(err, drive.ErrNoHTTP2) || !strings.HasPrefix(err.Error(), "connect to "+server.Address+": ") {
			t.Errorf("%s: got %v, want that %s does not speak HTTP/2", name, err, server.Address)
		}
	}
}

func TestCutEndsRequestsOverHTTP2(t *testing.T) {
	var arrived func() // of the server that the test under way speaks to
	overHTTP2(t, 0, func(w http.ResponseWriter, r *http.Request) {
		arrived()
		silence(w, r)
	}, func(t *testing.T, cfg drive.Config, _ *atomic.Int64) {
		cut := make(chan struct{})
		arrived = sync.OnceFunc(func() { close(cut) })
		cfg.Cut = cut
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 4, Requests: 40}))
		n := outcomes(all)
		if n["cancelled"] == 0 || n["cancelled"]+n["not_sent"] != 40 {
			t.Errorf("outcomes %v, want some cancelled and the rest not_sent; first error %q", n, firstError(all))
		}
	})
}

// The server goes away after the warm connections were dialled: all that waited for a new one fail with it.
func TestRefusedConnectionsOverHTTP2AreCounted(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(chat), Protocols: new(http.Protocols)}}
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	cfg := drive.Config{HTTP2: true, Servers: at(l.Addr().String()), Ready: func(*record.Manifest) error {
		s.CloseClientConnections()
		s.Close()
		return nil
	}}
	all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 200, Requests: 40}))
	if n := outcomes(all); n["connect_failed"] < 30 || n["connect_failed"]+n["reset"] != 40 {
		t.Errorf("outcomes %v, want nearly all of 40 connect_failed and the rest reset; first error %q", n, firstError(all))
	}
}

func TestHTTP2WorksOverUnixSocketsAndToSeveralServers(t *testing.T) {
	dir := t.TempDir()
	cfg := drive.Config{HTTP2: true}
	var got [2]atomic.Int64
	for i := range got {
		path := filepath.Join(dir, fmt.Sprint(i))
		streams(t, listen(t, "unix", path), nil, 0, func(w http.ResponseWriter, r *http.Request) {
			got[i].Add(1)
			chat(w, r)
		})
		cfg.Servers = append(cfg.Servers, drive.Server{Network: "unix", Address: path})
	}
	all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 300, Requests: 41}))
	if n := outcomes(all); n["completed"] != 41 || got[0].Load() != 21 || got[1].Load() != 20 {
		t.Errorf("outcomes %v, %d and %d requests, want 41 completed, 21 and 20; first error %q", n, got[0].Load(), got[1].Load(), firstError(all))
	}
}
