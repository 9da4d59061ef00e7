package drive_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

const (
	sseHead   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	sseToken  = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	sseRole   = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	sseFinish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
)

// words answers each connection's first request with a text, and closes.
func words(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		fmt.Fprint(c, text)
		c.Close()
	}
}

// holds answers with a text and then keeps the connection open in silence, or with comments.
func holds(text string, comments bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		fmt.Fprint(c, text)
		for comments {
			if _, err := fmt.Fprint(c, ": ping\n\n"); err != nil {
				return
			}
			<-time.After(20 * time.Millisecond)
		}
		_, _ = io.Copy(io.Discard, c)
	}
}

func TestEveryEndHasItsCause(t *testing.T) {
	phases := drive.Config{Timeout: 5 * time.Second, HeaderTimeout: 150 * time.Millisecond}
	gaps := drive.Config{Timeout: 5 * time.Second, FirstTokenTimeout: 250 * time.Millisecond, TokenTimeout: 150 * time.Millisecond}
	total := drive.Config{Timeout: 150 * time.Millisecond}
	cases := []struct {
		name  string
		h     http.HandlerFunc
		cfg   drive.Config
		want  record.Cause
		proof string // in the evidence
	}{
		{"no answer", holds("", false), phases, record.CauseTimeoutHeaders, "header_timeout"},
		{"half a header", holds("HTTP/1.1 200 OK\r\n", false), phases, record.CauseTimeoutHeaders, "header_timeout"},
		{"header, then nothing", holds(sseHead+"\r\n", false), gaps, record.CauseTimeoutFirstToken, "first_token_timeout"},
		{"no answer, no header time-out", holds("", false), gaps, record.CauseTimeoutFirstToken, "first_token_timeout"},
		{"role, then comments", holds(sseHead+"\r\n"+sseRole, true), gaps, record.CauseTimeoutFirstToken, "first_token_timeout"},
		{"a token, then comments", holds(sseHead+"\r\n"+sseToken, true), gaps, record.CauseTimeoutBetweenTokens, "token_timeout"},
		{"comments without end", holds(sseHead+"\r\n"+sseToken, true), total, record.CauseTimeoutTotal, "within 150ms"},
		{"an error page without end", holds("HTTP/1.1 500 No\r\n\r\nworking on it", false), total, record.CauseTimeoutTotal, "within 150ms"},
		{"redirect", words("HTTP/1.1 307 Go\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), drive.Config{}, record.CauseRedirect, "redirect to http://elsewhere/"},
		{"429", words("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"), drive.Config{}, record.CauseRateLimited, "busy"},
		{"503", words("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"), drive.Config{}, record.CauseRateLimited, "busy"},
		{"status", words("HTTP/1.1 404 No\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone"), drive.Config{}, record.CauseHTTPStatus, "none"},
		{"no HTTP", words("SSH-2.0-OpenSSH_9.6\r\n"), drive.Config{}, record.CauseNotHTTP, "SSH-2.0"},
		{"error object", words(sseHead + "\r\n" + sseToken + `data: {"error":{"message":"boom"}}` + "\n\n"), drive.Config{}, record.CauseStreamError, "boom"},
		{"event: error", words(sseHead + "\r\n" + sseToken + "event: error\ndata: {\"detail\":\"boom\"}\n\n"), drive.Config{}, record.CauseErrorEvent, "boom"},
		{"clean end", words(sseHead + "\r\n" + sseToken), drive.Config{}, record.CauseEOFClean, "before its end marker"},
		{"half a rune", words(sseHead + "\r\n" + sseToken + "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe2\x82"), drive.Config{}, record.CauseEOFClean, "not readable"},
		{"missing last chunk", words(sseHead + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(sseToken), sseToken)), drive.Config{}, record.CauseEOFBody, "within the reply"},
		{"short of its length", words(sseHead + "Content-Length: 4000\r\n\r\n" + sseToken), drive.Config{}, record.CauseEOFBody, "within the reply"},
		{"broken chunks", words(sseHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), drive.Config{}, record.CauseMalformed, "chunk size"},
		{"HTML", words("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Sign in</html>"), drive.Config{}, record.CauseNotStreamed, "Sign in"},
		{"no body", words("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), drive.Config{}, record.CauseNoBody, "no body"},
		{"another encoding", words(sseHead + "Content-Encoding: br\r\n\r\nxxxx"), drive.Config{}, record.CauseEncoded, "br"},
		{"no token", words(sseHead + "\r\n" + sseFinish + "data: [DONE]\n\n"), drive.Config{}, record.CauseEmpty, "no token"},
		{"completed", words(sseHead + "\r\n" + sseToken + sseFinish + "data: [DONE]\n\n"), drive.Config{}, record.CauseNone, ""},
	}
	engines(t, func(t *testing.T, engine string) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				cfg := c.cfg
				cfg.Servers, cfg.Engine = at(serve(t, c.h)), engine
				all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 2}))
				for _, x := range all {
					if x.Cause != c.want || x.Outcome != c.want.Outcome() || !strings.Contains(x.Error, c.proof) {
						t.Errorf("got cause %q, outcome %v, evidence %q; want %q, %v, one with %q", x.Cause, x.Outcome, x.Error, c.want, c.want.Outcome(), c.proof)
					}
					if x.Attempts != 1 {
						t.Errorf("got %d attempts, want 1", x.Attempts)
					}
				}
			})
		}
	})
}

func TestRetryAfterIsRecorded(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
		for text, want := range map[string][2]time.Duration{ // least and most
			"7": {7 * time.Second, 7 * time.Second}, "soon": {}, date: {50 * time.Minute, time.Hour},
		} {
			addr := serve(t, words("HTTP/1.1 503 Busy\r\nRetry-After: "+text+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine}, spec(plan.Load{Concurrency: 1, Requests: 1}))
			if got := all[0].RetryAfter; got < want[0] || got > want[1] {
				t.Errorf("Retry-After %s: got %v, want %v to %v", text, got, want[0], want[1])
			}
		}
	})
}

func TestLostConnectionsAreToldApart(t *testing.T) {
	reply := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	whole := sseToken + sseFinish + "data: [DONE]\n\n"
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			name   string
			after  int // replies before the connection is lost
			half   string
			linger int // 0 for a reset
			want   record.Cause
		}{
			{"closed, new", 0, "", -1, record.CauseUnanswered},
			{"closed, kept", 1, "", -1, record.CauseStale},
			{"reset, kept", 1, "", 0, record.CauseStale},
			{"reset within a reply", 0, sseHead + "\r\n" + sseToken, 0, record.CauseConnectionLost},
		} {
			t.Run(c.name, func(t *testing.T) {
				addr := accept(t, func(conn net.Conn) {
					defer conn.Close()
					buf := make([]byte, 4096)
					for range c.after {
						if _, err := conn.Read(buf); err != nil {
							return
						}
						<-time.After(10 * time.Millisecond) // the request counts as written
						fmt.Fprintf(conn, "%s%x\r\n%s\r\n0\r\n\r\n", reply, len(whole), whole)
					}
					if _, err := conn.Read(buf); err != nil {
						return
					}
					fmt.Fprint(conn, c.half)
					if c.half != "" {
						<-time.After(30 * time.Millisecond)
					}
					_ = conn.(*net.TCPConn).SetLinger(c.linger)
				})
				all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Loops: 1, Connections: 1}, spec(plan.Load{Rate: 10, Requests: int64(c.after) + 1}))
				if last := all[c.after]; last.Cause != c.want {
					t.Errorf("got cause %q (%s), want %q", last.Cause, last.Error, c.want)
				}
			})
		}
	})
}

// away is a server that goes once its first connections were made.
func away(t *testing.T, cfg drive.Config, load plan.Load) []record.Exchange {
	s := httptest.NewServer(http.HandlerFunc(chat))
	var once sync.Once
	cfg.Servers, cfg.Connections = at(s.Listener.Addr().String()), 1
	cfg.Ready = func(*record.Manifest) error {
		once.Do(s.Close)
		return nil
	}
	all, _ := carry(t, t.Context(), cfg, spec(load))
	return all
}

func TestRefusedConnectionsHaveTheirCause(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		all := away(t, drive.Config{Engine: engine}, plan.Load{Rate: 100, Requests: 20})
		if last := all[len(all)-1]; last.Cause != record.CauseRefused || last.Attempts != 1 {
			t.Errorf("got cause %q, %d attempts (%s), want refused at the first", last.Cause, last.Attempts, last.Error)
		}
	})
}

func TestFailedHandshakesHaveTheirCause(t *testing.T) {
	var mu sync.Mutex
	secure := 1 // connections that get TLS
	plainly := httptest.NewTLSServer(http.HandlerFunc(chat))
	t.Cleanup(plainly.Close)
	addr := accept(t, func(c net.Conn) {
		mu.Lock()
		secure--
		good := secure >= 0
		mu.Unlock()
		if !good {
			fmt.Fprint(c, "HTTP/1.1 400 Bad\r\n\r\n")
			c.Close()
			return
		}
		s := tls.Server(c, plainly.TLS)
		_ = s.Handshake()
		<-time.After(50 * time.Millisecond)
		s.Close()
	})
	cfg := drive.Config{Servers: []drive.Server{{Address: addr, TLS: &tls.Config{InsecureSkipVerify: true}}}, Connections: 1}
	all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 20, Requests: 10}))
	if last := all[len(all)-1]; last.Cause != record.CauseTLS {
		t.Errorf("got cause %q (%s), want tls", last.Cause, last.Error)
	}
}

func TestConnectErrorsAreClassed(t *testing.T) {
	for want, err := range map[record.Cause]error{
		record.CauseDNS:         &net.DNSError{Err: "no such host", Name: "nowhere"},
		record.CauseUnconnected: errors.New("odd"),
	} {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Servers: at("pipe"), Connections: 1, Dial: dialOnce(err)}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 100, Requests: 2}))
		if last := all[len(all)-1]; last.Cause != want {
			t.Errorf("%v: got cause %q, want %q", err, last.Cause, want)
		}
	}
}

// dialOnce gives one connection, to a server that hangs up, and then fails.
func dialOnce(err error) dialer {
	var mu sync.Mutex
	given := false
	return func(context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if given {
			return nil, err
		}
		given = true
		client, server := net.Pipe()
		go server.Close()
		return client, nil
	}
}

type dialer = func(context.Context) (net.Conn, error)

// Both engines send again over real sockets, with a request that needs more than one write.
func TestRefusedRequestsAreSentAgainWhole(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		var mu sync.Mutex
		bodies := map[string][]string{}
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			mu.Lock()
			id := r.Header.Get("X-Request-Id")
			bodies[id] = append(bodies[id], fmt.Sprint(len(body), err))
			first := len(bodies[id]) == 1
			mu.Unlock()
			if first {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, sseToken+sseFinish+"data: [DONE]\n\n")
		})
		s := spec(plan.Load{Rate: 20, Requests: 6})
		s.Workload.InputTokens = "50000"
		all, m := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Retries: 2}, s)
		if n := outcomes(all); n["completed"] != 6 {
			t.Fatalf("outcomes %v, want 6 completed; first error %q", n, firstError(all))
		}
		for _, x := range all {
			sent, _ := x.FirstWrite.Get()
			if end, _ := x.End.Get(); x.Attempts != 2 || end-sent < 100*time.Millisecond {
				t.Errorf("request %d: %d attempts, %v from its first write; want 2, and the back-off of 100ms in it", x.Index, x.Attempts, end-sent)
			}
		}
		for id, sizes := range bodies {
			if len(sizes) != 2 || sizes[0] != sizes[1] || sizes[0] < "2" {
				t.Errorf("%s: bodies %v, want the same one twice", id, sizes)
			}
		}
		sent := int64(0)
		for _, l := range m.Loops {
			sent += l.Sent
		}
		if sent != 6 {
			t.Errorf("sent %d requests, want 6: an attempt is not a request", sent)
		}
	})
}

func TestRacesAreWonByAnotherAttempt(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			chat(w, r)
			w.(http.Flusher).Flush()
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				fmt.Fprint(c, "0\r\n\r\n")
				c.Close()
			}
		})
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Retries: 1}, spec(plan.Load{Concurrency: 4, Requests: 200}))
		if n := outcomes(all); n["completed"] != 200 {
			t.Errorf("outcomes %v, want 200 completed; first error %q", n, firstError(all))
		}
	})
}

func TestDialsThatFailAreTriedAgain(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		all := away(t, drive.Config{Engine: engine, Retries: 2}, plan.Load{Rate: 50, Requests: 5})
		last := all[len(all)-1]
		issued, _ := last.Issued.Get()
		if end, _ := last.End.Get(); last.Cause != record.CauseRefused || last.Attempts != 3 || end-issued < 300*time.Millisecond {
			t.Errorf("got %q after %d attempts in %v; want refused after 3, with back-offs of 100 and 200ms", last.Cause, last.Attempts, end-issued)
		}
	})
}

// The moment at which the next look for overdue requests is due must cover those that are sent before it.
func TestRequestsSentWhileNothingIsInFlightAreWatched(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		cfg := drive.Config{Servers: at(serve(t, holds("", false))), Engine: engine, Loops: 1, Connections: 4, HeaderTimeout: 100 * time.Millisecond, Timeout: 5 * time.Second}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 4, Requests: 2}))
		for _, x := range all {
			sent, _ := x.FirstWrite.Get()
			if end, _ := x.End.Get(); x.Cause != record.CauseTimeoutHeaders || end-sent >= cfg.Timeout/2 {
				t.Errorf("request %d: got %q after %v, want timeout_headers long before %v", x.Index, x.Cause, end-sent, cfg.Timeout)
			}
		}
	})
}
