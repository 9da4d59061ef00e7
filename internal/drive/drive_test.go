package drive_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
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
	"tare/internal/drive/dialect"
	"tare/internal/plan"
	"tare/internal/record"
)

// spec is a small valid spec around a load.
func spec(load plan.Load) plan.Spec {
	s := plan.Defaults()
	s.Target.URL = "http://127.0.0.1:1"
	s.Target.Model = "m"
	load.Seed = 7
	if load.Arrival == "" {
		load.Arrival = "constant"
	}
	if load.Burstiness == 0 {
		load.Burstiness = 1
	}
	load.Drain = 2 * time.Second
	s.Load = load
	s.Workload.InputTokens, s.Workload.OutputTokens = "8", "4"
	return s
}

// carry runs a load and returns what was recorded.
func carry(t *testing.T, ctx context.Context, cfg drive.Config, s plan.Spec) ([]record.Exchange, record.Manifest) {
	t.Helper()
	dir, m, err := run(t, ctx, cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	return recorded(t, dir, m), m
}

// start runs a load that is not to start, and returns why it did not.
func start(t *testing.T, cfg drive.Config, s plan.Spec) error {
	t.Helper()
	_, _, err := run(t, t.Context(), cfg, s)
	return err
}

// run runs a load; dir holds its records.
func run(t *testing.T, ctx context.Context, cfg drive.Config, s plan.Spec) (dir string, m record.Manifest, err error) {
	t.Helper()
	d, err := dialect.For(s.Target.Endpoint, dialect.Options{Model: "m", Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, d)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	log, err := record.CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	set(&cfg)
	err = drive.Run(ctx, cfg, p, d, log, &m)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, m, err
}

// recorded reads the exchanges of a run, one for every planned request.
func recorded(t *testing.T, dir string, m record.Manifest) (all []record.Exchange) {
	t.Helper()
	_, err := record.ReadLog(dir, func(x *record.Exchange) error {
		held := *x
		held.Events = append([]record.Event(nil), x.Events...)
		all = append(all, held)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	planned := int64(0)
	for _, st := range m.Stages {
		planned += st.Planned
	}
	if int64(len(all)) != planned {
		t.Errorf("recorded %d exchanges of %d planned", len(all), planned)
	}
	return all
}

// at is one server at an address.
func at(addr string) []drive.Server { return []drive.Server{{Address: addr}} }

func set(cfg *drive.Config) {
	cfg.RunID = "run"
	if cfg.Engine == drive.EngineHTTP2 {
		cfg.Engine, cfg.HTTP2 = drive.EngineAuto, true
	}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		s.Host, s.Path = "test", "/v1/chat/completions"
		s.Header = append(s.Header, "Accept: text/event-stream")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 2 * time.Second
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = 4 * time.Second
	}
	if cfg.Drain == 0 {
		cfg.Drain = 2 * time.Second
	}
}

func outcomes(all []record.Exchange) map[string]int {
	n := map[string]int{}
	for _, x := range all {
		n[x.Outcome.String()]++
	}
	return n
}

// engines runs a test with both engines, where the system has both.
func engines(t *testing.T, f func(t *testing.T, engine string)) {
	for _, e := range []string{drive.EngineEpoll, drive.EngineGoroutine} {
		t.Run(e, func(t *testing.T) {
			if e == drive.EngineEpoll && !drive.HasEpoll() {
				t.Skip("this system has no engine epoll")
			}
			f(t, e)
		})
	}
}

// protocols runs a test with every engine, HTTP/2 included. Its servers are made by serve.
func protocols(t *testing.T, f func(t *testing.T, engine string)) {
	engines(t, f)
	t.Run(drive.EngineHTTP2, func(t *testing.T) { f(t, drive.EngineHTTP2) })
}

// chat answers like an OpenAI chat server, with as many tokens as were asked for.
func chat(w http.ResponseWriter, r *http.Request) {
	var body struct {
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	f := w.(http.Flusher)
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n")
	f.Flush()
	for i := range body.MaxTokens {
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"t%d"}}]}`+"\n\n", i)
		f.Flush()
	}
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`+"\n\n")
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":%d}}`+"\n\n", body.MaxTokens)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// silence takes a request and never answers. Only with its body read does net/http notice that the client has gone.
func silence(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func serve(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// accept listens and gives each connection to f in a goroutine of its own; the connections are closed when the test ends.
func accept(t *testing.T, f func(net.Conn)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var conns []net.Conn
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			serving.Go(func() { f(c) })
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-accepted
		for _, c := range conns {
			c.Close()
		}
		serving.Wait()
	})
	return l.Addr().String()
}

func TestEveryReplyIsReadWhole(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		addr := serve(t, chat)
		all, m := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine},
			spec(plan.Load{Stages: []plan.LoadStage{{Rate: 400, Requests: 100}, {Concurrency: 3, Requests: 50}, {Rate: 200, Requests: 20}}}))
		if n := outcomes(all); n["completed"] != 170 {
			t.Fatalf("outcomes %v, want 170 completed", n)
		}
		seen := map[int64]bool{}
		for _, x := range all {
			seen[x.Index] = true
			tokens := 0
			for _, e := range x.Events {
				if e.Kind.Token() {
					tokens++
				}
			}
			if tokens != 4 || x.Usage != (record.Usage{Known: true, Input: 8, Output: 4}) || x.FinishReason != "length" {
				t.Fatalf("request %d: %d token events, usage %+v, finish %q; want 4, 8 and 4, length", x.Index, tokens, x.Usage, x.FinishReason)
			}
			sent, _ := x.FirstWrite.Get()
			end, ok := x.End.Get()
			if !ok || sent < x.Due || end < sent {
				t.Fatalf("request %d: due %v, sent %v, end %v: out of order", x.Index, x.Due, sent, end)
			}
		}
		if len(seen) != 170 {
			t.Errorf("%d different indexes, want 170", len(seen))
		}
		if m.Stages[2].StartMs < m.Stages[1].EndMs {
			t.Errorf("stage 3 starts at %v ms, before stage 2 ends at %v ms", m.Stages[2].StartMs, m.Stages[1].EndMs)
		}
		if !m.Plan.Complete || m.Plan.PlanID == "" || m.Plan.Requests != 170 {
			t.Errorf("plan ids %+v, want complete ones over 170 requests", m.Plan)
		}
	})
}

// Replies are stamped by the kernel, in order, never after they were read.
func TestKernelStampsComeBeforeReads(t *testing.T) {
	if !drive.HasEpoll() {
		t.Skip("this system has no receive stamps")
	}
	engines(t, func(t *testing.T, engine string) {
		all, m := carry(t, t.Context(), drive.Config{Servers: at(serve(t, chat)), Engine: engine},
			spec(plan.Load{Concurrency: 2, Requests: 40}))
		if !m.Client.KernelStamps {
			t.Error("manifest says: no kernel stamps")
		}
		for _, x := range all {
			last := time.Duration(0)
			for i, e := range x.Events {
				if e.Flags&record.FlagStamped == 0 {
					t.Fatalf("request %d event %d is not stamped", x.Index, i)
				}
				if e.KernelAt > e.UserAt || e.KernelAt < last {
					t.Fatalf("request %d event %d: stamp %v, read %v, stamp before %v", x.Index, i, e.KernelAt, e.UserAt, last)
				}
				last = e.KernelAt
			}
		}
	})
}

func TestRepliesOverTLSAreStampedBelowIt(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(chat))
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	cfg := drive.Config{Servers: []drive.Server{{Address: s.Listener.Addr().String(), TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}}}}
	all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 3, Requests: 60}))
	if n := outcomes(all); n["completed"] != 60 || m.Client.Engine != drive.EngineGoroutine {
		t.Fatalf("engine %s, outcomes %v, want 60 completed by engine goroutine; first error %q", m.Client.Engine, n, firstError(all))
	}
	for _, x := range all {
		for i, e := range x.Events {
			if stamped := e.Flags&record.FlagStamped != 0; stamped != m.Client.KernelStamps {
				t.Fatalf("request %d event %d: stamped %v, the manifest says %v", x.Index, i, stamped, m.Client.KernelStamps)
			}
		}
	}
}

func TestFailuresHaveTheirOutcomes(t *testing.T) {
	hijack := func(text string, reset bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			fmt.Fprint(c, text)
			if reset {
				_ = c.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		}
	}
	const sse = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	const token = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	cases := []struct {
		name string
		h    http.HandlerFunc
		want string
	}{
		{"status", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "http_error"},
		{"error in the stream", hijack(sse+"\r\n"+token+`data: {"error":{"message":"boom"}}`+"\n\n", false), "stream_error"},
		{"clean end without finish", hijack(sse+"\r\n"+token, false), "truncated"},
		{"missing last chunk", hijack(sse+"Transfer-Encoding: chunked\r\n\r\n"+fmt.Sprintf("%x\r\n%s\r\n", len(token), token), false), "truncated"},
		{"closed without a word", hijack("", false), "reset"},
		{"reset", hijack("", true), "reset"},
		{"no token", hijack(sse+"\r\n"+`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", false), "empty"},
		{"never", silence, "timeout"},
	}
	engines(t, func(t *testing.T, engine string) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				cfg := drive.Config{Servers: at(serve(t, c.h)), Engine: engine, Timeout: 300 * time.Millisecond}
				all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 3}))
				if n := outcomes(all); n[c.want] != 3 {
					t.Errorf("outcomes %v, want 3 %s; first error %q", n, c.want, all[0].Error)
				}
			})
		}
	})
}

func TestRefusedConnectionsAreCounted(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		s := httptest.NewServer(http.HandlerFunc(chat))
		addr := s.Listener.Addr().String()
		var once sync.Once
		// The server goes away after the warm connections were dialled.
		cfg := drive.Config{Servers: at(addr), Engine: engine, Connections: 1, Ready: func(*record.Manifest) error {
			once.Do(s.Close)
			return nil
		}}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 200, Requests: 10}))
		n := outcomes(all)
		if n["connect_failed"] < 9 || n["connect_failed"]+n["reset"] != 10 {
			t.Errorf("outcomes %v, want at least 9 connect_failed and else reset", n)
		}
	})
}

func TestServersThatSpeakFirstAreNotTakenForIdle(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		addr := accept(t, func(c net.Conn) {
			fmt.Fprint(c, "220 ready\r\n")
			c.Close()
		})
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Connections: 100},
			spec(plan.Load{Rate: 500, Requests: 50}))
		for _, x := range all {
			if x.Outcome == record.Completed || strings.Contains(x.Error, "descriptor") {
				t.Fatalf("request %d: %v, %q", x.Index, x.Outcome, x.Error)
			}
		}
		if len(all) != 50 {
			t.Errorf("%d requests recorded, want 50", len(all))
		}
	})
}

func TestServersThatDoNotReadAreTimedOut(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		addr := accept(t, func(net.Conn) {})
		s := spec(plan.Load{Concurrency: 2, Requests: 4})
		s.Workload.InputTokens = "3000000" // more than the sockets' buffers take
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Timeout: 300 * time.Millisecond}, s)
		if n := outcomes(all); n["timeout"] != 4 {
			t.Errorf("outcomes %v, want 4 timeout; first error %q", n, firstError(all))
		}
		for _, x := range all {
			if _, written := x.LastWrite.Get(); written {
				t.Errorf("request %d counts as written whole", x.Index)
			}
		}
	})
}

func TestEarlyRefusalsOfLargeRequestsEndThemAlone(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		addr := accept(t, func(c net.Conn) { // reads the head only, refuses, and reads no further
			buf := make([]byte, 512)
			_, _ = c.Read(buf)
			fmt.Fprint(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong")
		})
		s := spec(plan.Load{Concurrency: 1, Requests: 4})
		s.Workload.InputTokens = "3000000"
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Timeout: 3 * time.Second}, s)
		if n := outcomes(all); n["http_error"] != 4 {
			t.Errorf("outcomes %v, want 4 http_error; first error %q", n, firstError(all))
		}
	})
}

func firstError(all []record.Exchange) string {
	for _, x := range all {
		if x.Error != "" {
			return x.Error
		}
	}
	return ""
}

func TestStoppedRunRecordsWhatWasNotSent(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var once sync.Once
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { cancel(errors.New("enough")) })
			chat(w, r)
		})
		all, m := carry(t, ctx, drive.Config{Servers: at(addr), Engine: engine}, spec(plan.Load{Rate: 100, Requests: 20000}))
		n := outcomes(all)
		if n["not_sent"] < 19000 || n["completed"] == 0 || n["not_sent"]+n["completed"] != 20000 {
			t.Errorf("outcomes %v, want some completed and the rest of 20000 not_sent", n)
		}
		if m.State.Cause != "enough" {
			t.Errorf("cause %q, want enough", m.State.Cause)
		}
	})
}

func TestCutEndsWhatIsInFlight(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		cut := make(chan struct{})
		var once sync.Once
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { close(cut) })
			silence(w, r)
		})
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, Cut: cut}, spec(plan.Load{Concurrency: 4, Requests: 40}))
		n := outcomes(all)
		if n["cancelled"] == 0 || n["cancelled"]+n["not_sent"] != 40 {
			t.Errorf("outcomes %v, want cancelled and not_sent only", n)
		}
	})
}

func TestAdmissionLimitHoldsAndIsNamed(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		var mu sync.Mutex
		now, most := 0, 0
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(5 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			chat(w, r)
		})
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine},
			spec(plan.Load{Stages: []plan.LoadStage{{Rate: 2000, Requests: 100, MaxInFlight: 2}}}))
		if n := outcomes(all); n["completed"] != 100 {
			t.Fatalf("outcomes %v, want 100 completed", n)
		}
		if most > 2 {
			t.Errorf("%d requests at once at the server, limit 2", most)
		}
		held := 0
		for _, x := range all {
			if x.Delay == record.DelayInFlightCap {
				held++
			}
		}
		if held < 80 {
			t.Errorf("%d of 100 requests name the limit as the cause of their delay, want most", held)
		}
	})
}

func TestSecretsStayOutOfRecords(t *testing.T) {
	protocols(t, func(t *testing.T, engine string) {
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "bad key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		})
		all, _ := carry(t, t.Context(), drive.Config{Servers: []drive.Server{{Address: addr, Header: []string{"Authorization: pass phrase"}}}, Engine: engine, Secrets: []string{"pass phrase"}},
			spec(plan.Load{Concurrency: 1, Requests: 1}))
		if all[0].Outcome != record.HTTPError || !strings.Contains(all[0].Error, "bad key") || strings.Contains(all[0].Error, "phrase") {
			t.Errorf("outcome %v, error %q: want an http_error with the key masked", all[0].Outcome, all[0].Error)
		}
	})
}
