package probe_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/drive/dialect"
	"tare/internal/drive/probe"
	"tare/internal/plan"
)

// aim is a probe of every endpoint at a URL, with a key.
func aim(t *testing.T, at, key string, secure *tls.Config) probe.Config {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	way := probe.Way{Server: drive.Server{Address: u.Host, Host: u.Host, TLS: secure}, Secrets: []string{"hush-hush-9"}}
	return probe.Config{
		URL: at, Get: way, Endpoints: plan.Endpoints(), Timeout: 30 * time.Second,
		Speak: func(endpoint string, o probe.Wish) (probe.Way, error) {
			d, err := dialect.For(endpoint, dialect.Options{
				Model: o.Model, Stream: o.Stream, ContinuousUsage: o.ContinuousUsage, ReturnTokenIDs: o.ReturnTokenIDs, TopP: 1, Secrets: way.Secrets,
			})
			if err != nil {
				return probe.Way{}, err
			}
			w := way
			w.Dialect, w.Path = d, d.Path()
			if name := d.Auth().KeyHeader; key != "" && name != "" {
				w.Header = append(w.Header, name+": "+key)
			}
			return w, nil
		},
	}
}

func start(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func find(t *testing.T, h http.Handler) *probe.Finding {
	t.Helper()
	return probe.Run(t.Context(), aim(t, start(t, h).URL, "", nil))
}

func endpoint(t *testing.T, f *probe.Finding, name string) probe.Endpoint {
	t.Helper()
	for _, e := range f.Endpoints {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("endpoint %s: got none, want one", name)
	return probe.Endpoint{}
}

func TestKindsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		kind, version, model, endpoint string
		server                         http.Handler
		context                        int
	}{
		{"vllm", "0.11.2", "big", plan.EndpointChat, vllm(), 4096},
		{"sglang", "0.5.4", "qwen", plan.EndpointSGLang, sglang(), 32768},
		{"tgi", "3.3.6", "org/model", plan.EndpointTGI, tgi(), 0},
		{"llama.cpp", "b7001-abc", "", plan.EndpointLlamaCpp, llamacpp(), 0},
		{"ollama", "0.13.0", "llama", plan.EndpointOllama, ollama(), 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			f := find(t, c.server)
			if f.Server.Kind != c.kind || f.Server.Version != c.version {
				t.Errorf("server: got %q %q, want %q %q\nevidence: %q", f.Server.Kind, f.Server.Version, c.kind, c.version, f.Server.Evidence)
			}
			if f.Model != c.model {
				t.Errorf("model: got %q, want %q", f.Model, c.model)
			}
			if c.context > 0 && f.Models[0].Context != c.context {
				t.Errorf("context: got %d, want %d", f.Models[0].Context, c.context)
			}
			best, ok := f.Best()
			if !ok || best.Name != c.endpoint || !best.Streams() {
				t.Fatalf("best endpoint: got %q %v, want %q, streamed\n%s", best.Name, ok, c.endpoint, f.Text())
			}
			if got := best.Streamed; got.TokenEvents != 8 || got.Usage == nil || got.Usage.Output != 8 || got.FinishReason == "" {
				t.Errorf("stream: got %+v, want 8 token events, usage of 8 and a finish reason", got)
			}
			if best.Whole.Outcome != "completed" {
				t.Errorf("whole: got %s %s, want completed", best.Whole.Outcome, best.Whole.Evidence)
			}
			if f.Failure != "" {
				t.Errorf("failure: got %q, want none", f.Failure)
			}
		})
	}
}

func TestWhatComesWithTokensIsSeen(t *testing.T) {
	v := endpoint(t, find(t, vllm()), plan.EndpointChat)
	if got := v.Streamed.Usage; !got.Told || got.Cached != 0 || got.Input != 9 {
		t.Errorf("vllm: usage: got %+v, want 9 in, 0 cached and told", got)
	}
	if v.Streamed.Counted != 0 || v.Continuous == nil || v.Continuous.Counted != 8 {
		t.Errorf("vllm: events counted: got %d, on request %+v, want 0 and 8", v.Streamed.Counted, v.Continuous)
	}
	if v.Streamed.TokenIDs || v.IDs == nil || !v.IDs.TokenIDs || v.IDs.Counted != 8 {
		t.Errorf("vllm: token ids: got %v unasked, asked for %+v, want none and 8 counted events", v.Streamed.TokenIDs, v.IDs)
	}
	if usage, ids := v.Precise(); !usage || ids {
		t.Errorf("vllm: to be asked for: got continuous usage %v, token ids %v, want the former alone", usage, ids)
	}
	s := endpoint(t, find(t, sglang()), plan.EndpointSGLang)
	if got := s.Streamed; !got.TokenIDs || got.Counted != 8 || got.Usage.Cached != 6 {
		t.Errorf("sglang: got %+v, usage %+v, want token ids, 8 counted events and 6 cached", got, got.Usage)
	}
	if s.Continuous != nil {
		t.Error("sglang: continuous usage: got a request for it, want none: there is no such option")
	}
	if usage, ids := s.Precise(); usage || ids {
		t.Errorf("sglang: to be asked for: got continuous usage %v, token ids %v, want none: tokens are counted unasked", usage, ids)
	}
	if o := endpoint(t, find(t, ollama()), plan.EndpointOllama); o.Streamed.Usage.Told {
		t.Error("ollama: cached tokens: got told, want untold")
	}
}

func TestUnknownModelIsAskedFor(t *testing.T) {
	got := find(t, vllm()).UnknownModel
	if got.Status != 404 || got.Outcome != "http_error" || got.Shape != "error.code, error.message, error.type" {
		t.Errorf("unknown model: got %+v, want status 404 with error.code, error.message, error.type", got)
	}
	got = find(t, ollama()).UnknownModel
	if got.Outcome != "completed" || got.Shape != "" {
		t.Errorf("unknown model where any will do: got %+v, want completed", got)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	var gets, posts, connections atomic.Int64
	h := vllm()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			gets.Add(1)
		} else {
			posts.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	f := probe.Run(t.Context(), aim(t, s.URL, "", nil))
	s.Close() // all connections have been counted
	if got := f.Sent; int64(got.Gets) != gets.Load() || int64(got.Posts) != posts.Load() {
		t.Errorf("sent: got %+v, want %d GET, %d POST", got, gets.Load(), posts.Load())
	}
	// What is dialled while an idle connection comes free is not needed, and may end before the server has accepted it.
	if got := f.Sent; int64(got.Connections) < connections.Load() || got.Connections > got.Gets+got.Posts {
		t.Errorf("sent: got %+v, want the %d connections that the server saw or more, one a request at most", got, connections.Load())
	}
	if got := f.Sent; got.Costly != 4 || got.Input != 36 || got.Output != 1+8+8+8 {
		t.Errorf("cost: got %+v, want 4 POST, 36 tokens in and 25 out", got)
	}
}

func TestKeyIsAskedFor(t *testing.T) {
	s := start(t, anthropic("hush-hush-9"))
	cfg := aim(t, s.URL, "hush-hush-8", nil)
	cfg.Get.Secrets[0] = "hush-hush-8"
	f := probe.Run(t.Context(), cfg)
	if e := endpoint(t, f, plan.EndpointAnthropic); e.State != probe.Locked || e.Streamed != nil {
		t.Errorf("wrong key: got %s, want %s and no second request", e.State, probe.Locked)
	}
	if !strings.Contains(f.Failure, "key") {
		t.Errorf("failure: got %q, want one that speaks of the key", f.Failure)
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b) + f.Text(); strings.Contains(text, "hush-hush") || !strings.Contains(text, "invalid x-api-key ***") {
		t.Errorf("finding: got the key, or no masked evidence:\n%s", text)
	}

	f = probe.Run(t.Context(), aim(t, s.URL, "hush-hush-9", nil))
	if best, ok := f.Best(); !ok || best.Name != plan.EndpointAnthropic || best.Streamed.Usage.Output != 8 {
		t.Errorf("right key: got %q %v, want %s with 8 tokens out", best.Name, ok, plan.EndpointAnthropic)
	}
}

// A proxy that waits for the end of the stream is told from a server that is fast.
func TestBatchingProxyIsNoticed(t *testing.T) {
	inner := chat("big")
	h := vllm()
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		held := httptest.NewRecorder()
		inner(held, r)
		if held.Header().Get("Content-Type") == "text/event-stream" {
			select { // the tokens are being made
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		for name, values := range held.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Via", "1.1 proxy")
		w.WriteHeader(held.Code)
		w.Write(held.Body.Bytes())
	}
	f := find(t, h)
	got := endpoint(t, f, plan.EndpointChat).Buffering
	if got == nil || got.Verdict != probe.Whole || !strings.Contains(got.How, "all 8 token events came in one read") {
		t.Errorf("buffering: got %+v, want %s, and how that was decided", got, probe.Whole)
	}
}

func TestFrontIsNoted(t *testing.T) {
	h := vllm()
	f := find(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Via", "1.1 varnish")
		h.ServeHTTP(w, r)
	}))
	if !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "Via: 1.1 varnish") }) {
		t.Errorf("notes: got %q, want one on the header Via", f.Notes)
	}
}

func TestWebPageForEverythingIsNoServer(t *testing.T) {
	f := find(t, says("text/html; charset=utf-8", "<!doctype html><title>Sign in</title>"))
	if e := endpoint(t, f, plan.EndpointChat); e.State != probe.Otherwise || !strings.Contains(e.Why, "neither an event stream nor JSON") {
		t.Errorf("chat: got %s: %q, want %s", e.State, e.Why, probe.Otherwise)
	}
	if _, ok := f.Best(); ok || f.Failure == "" {
		t.Errorf("failure: got none, want one")
	}
	if !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "web page") }) {
		t.Errorf("notes: got %q, want one on the web page", f.Notes)
	}
	if f.Sent.Costly != 0 {
		t.Errorf("costly requests: got %d, want 0", f.Sent.Costly)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var posts atomic.Int64
	f := find(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		http.Redirect(w, r, "https://elsewhere.example"+r.URL.Path, http.StatusPermanentRedirect)
	}))
	if !strings.Contains(f.Failure, "redirects every request, to https://elsewhere.example/") {
		t.Errorf("failure: got %q, want the place it redirects to", f.Failure)
	}
	if posts.Load() != 0 {
		t.Errorf("requests that may cost tokens: got %d, want 0", posts.Load())
	}
}

func TestSilentServerEndsInTime(t *testing.T) {
	release := make(chan struct{})
	s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	cfg := aim(t, s.URL, "", nil)
	cfg.Timeout = 1500 * time.Millisecond
	f := probe.Run(t.Context(), cfg)
	if !strings.Contains(f.Failure, "answers nothing") || !strings.Contains(f.Failure, "500ms") {
		t.Errorf("failure: got %q, want that it answers nothing within 500ms", f.Failure)
	}
	if e := endpoint(t, f, plan.EndpointCompletions); e.State != probe.Untried {
		t.Errorf("second endpoint: got %s, want %s", e.State, probe.Untried)
	}
	if len(f.HTTP) != 0 {
		t.Errorf("HTTP versions: got %q, want none", f.HTTP)
	}
}

func TestDeadPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	f := probe.Run(t.Context(), aim(t, "http://"+l.Addr().String(), "", nil))
	if !strings.Contains(f.Failure, "no connection to "+l.Addr().String()+": connection refused") {
		t.Errorf("failure: got %q, want that the connection was refused", f.Failure)
	}
	if f.Sent.Gets+f.Sent.Posts != 0 || len(f.Endpoints) != 0 {
		t.Errorf("sent: got %+v, want nothing", f.Sent)
	}
}

func TestNamesAreResolved(t *testing.T) {
	s := start(t, vllm())
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f := probe.Run(t.Context(), aim(t, "http://localhost:"+port, "", nil))
	if f.Reach.Resolved == 0 || f.Reach.Used != "127.0.0.1:"+port || f.Failure != "" {
		t.Errorf("localhost: got %+v, failure %q, want it resolved, and 127.0.0.1 used", f.Reach, f.Failure)
	}
	f = probe.Run(t.Context(), aim(t, "http://nobody.invalid:"+port, "", nil))
	if !strings.HasPrefix(f.Failure, "the name nobody.invalid is not resolved: ") || f.Sent.Connections != 0 {
		t.Errorf("nobody.invalid: got failure %q and %d connections, want that it is not resolved, and none", f.Failure, f.Sent.Connections)
	}
}

func TestServerThatSpeaksNoHTTPIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "SSH-2.0-OpenSSH\r\n")
			c.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	f := probe.Run(t.Context(), aim(t, "http://"+l.Addr().String(), "", nil))
	if !strings.Contains(f.Failure, "does not answer in HTTP/1.1") {
		t.Errorf("failure: got %q, want that it does not answer in HTTP/1.1", f.Failure)
	}
}

// secure starts a TLS server, and gives what trusts it.
func secure(t *testing.T) (s *httptest.Server, trust *x509.CertPool) {
	t.Helper()
	s = httptest.NewUnstartedServer(vllm())
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	trust = x509.NewCertPool()
	trust.AddCert(s.Certificate())
	return s, trust
}

func TestCertificateIsChecked(t *testing.T) {
	s, trust := secure(t)
	for _, c := range []struct {
		name   string
		config *tls.Config
		fault  string // of the certificate
		fails  bool
	}{
		{"trusted", &tls.Config{RootCAs: trust, ServerName: "127.0.0.1"}, "", false},
		{"unknown authority", &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}, "unknown authority", true},
		{"unchecked", &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", InsecureSkipVerify: true}, "unknown authority", false},
		{"other name", &tls.Config{RootCAs: trust, ServerName: "other.test"}, "not for other.test", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := probe.Run(t.Context(), aim(t, s.URL, "", c.config))
			got := f.TLS
			if got == nil {
				t.Fatalf("TLS: got none: %s", f.Failure)
			}
			if got.Version != "TLS 1.3" || got.ALPN != "h2" || got.Subject == "" || got.Expires.IsZero() || !slices.Contains(got.Names, "127.0.0.1") {
				t.Errorf("TLS: got %+v, want version 1.3, h2 and a certificate for 127.0.0.1", got)
			}
			if got.Verified != (c.fault == "") || !strings.Contains(got.Fault, c.fault) {
				t.Errorf("verified: got %v, %q, want %q", got.Verified, got.Fault, c.fault)
			}
			if failed := f.Failure != ""; failed != c.fails {
				t.Errorf("failure: got %q, want one: %v", f.Failure, c.fails)
			}
			if c.fails && f.Sent.Gets+f.Sent.Posts > 0 {
				t.Errorf("requests to a server that is not trusted: got %+v, want none", f.Sent)
			}
			if want := []string{"h2", "HTTP/1.1"}; !c.fails && !slices.Equal(f.HTTP, want) {
				t.Errorf("HTTP versions: got %q, want %q", f.HTTP, want)
			}
		})
	}
}

func TestWrongSchemeIsNamed(t *testing.T) {
	s, _ := secure(t)
	f := probe.Run(t.Context(), aim(t, strings.Replace(s.URL, "https", "http", 1), "", nil))
	if f.Failure != "the server speaks TLS" || f.Hint != "write https://" {
		t.Errorf("http:// to a TLS server: got %q, hint %q, want to be told to write https://", f.Failure, f.Hint)
	}
	plain := start(t, vllm())
	f = probe.Run(t.Context(), aim(t, plain.URL, "", &tls.Config{ServerName: "127.0.0.1"}))
	if f.Failure != "the server does not speak TLS" {
		t.Errorf("https:// to a plain server: got %q, want that it does not speak TLS", f.Failure)
	}
}

// What becomes of a connection behind a reply is seen, not believed.
func TestConnectionsAreWatched(t *testing.T) {
	kept := find(t, vllm()).KeepAlive
	if kept.AfterWhole != probe.Kept || kept.AfterStreamed != probe.Kept {
		t.Errorf("kept: got %+v, want kept behind both", kept)
	}
	inner := chat("big")
	h := vllm()
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		inner(w, r)
	}
	closed := find(t, h).KeepAlive
	if closed.AfterWhole != probe.Closed || closed.AfterStreamed != probe.Closed || closed.Header != "Connection: close" {
		t.Errorf("closed: got %+v, want closed behind both, and the header", closed)
	}
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		held := httptest.NewRecorder()
		inner(held, r)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		reply := held.Result()
		reply.ContentLength = int64(held.Body.Len())
		reply.Header.Set("Keep-Alive", "timeout=5, max=100")
		reply.Write(c)
	}
	unsaid := find(t, h).KeepAlive
	if !unsaid.Unsaid() || kept.Unsaid() || closed.Unsaid() {
		t.Errorf("closes without word: got %v, %v when kept, %v when said, want the first alone", unsaid.Unsaid(), kept.Unsaid(), closed.Unsaid())
	}
	if unsaid.AfterWhole != probe.ClosedUnsaid || unsaid.AfterStreamed != probe.ClosedUnsaid || unsaid.Header != "Keep-Alive: timeout=5, max=100" {
		t.Errorf("closed without word: got %+v, want that behind both, and the header", unsaid)
	}
}

func TestStreamThatIsIgnoredIsSaid(t *testing.T) {
	h := vllm()
	inner := chat("big")
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		whole := strings.NewReader(strings.Replace(string(b), `"stream":true`, `"stream":false`, 1))
		r.Body = io.NopCloser(whole)
		inner(w, r)
	}
	e := endpoint(t, find(t, h), plan.EndpointChat)
	if e.Streams() || !e.Streamed.NotStreamed || e.Buffering != nil {
		t.Errorf("stream: got streams %v, not streamed %v, want a whole reply", e.Streams(), e.Streamed.NotStreamed)
	}
}

func TestModelThatIsNotListedIsNoted(t *testing.T) {
	cfg := aim(t, start(t, vllm()).URL, "", nil)
	cfg.Model = "small"
	f := probe.Run(t.Context(), cfg)
	if !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "model small is not among those") }) {
		t.Errorf("notes: got %q, want one on the model", f.Notes)
	}
	if e := endpoint(t, f, plan.EndpointChat); e.State != probe.Refuses || !strings.Contains(f.Failure, "small does not exist") {
		t.Errorf("chat: got %s, failure %q, want a refusal that names the model", e.State, f.Failure)
	}
}

func TestServersCannotSteerTheTerminal(t *testing.T) {
	h := vllm()
	h["/v1/models"] = saysJSON(`{"data":[{"id":"big"},{"id":"\u001b[2Jgone\nnew line"}]}`)
	text := find(t, h).Text()
	if strings.ContainsAny(text, "\x1b") || !strings.Contains(text, "[2Jgone new line") {
		t.Errorf("text: got control characters:\n%q", text)
	}
}

func TestInterruptEndsTheProbe(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("enough"))
		<-r.Context().Done()
	}))
	f := probe.Run(ctx, aim(t, s.URL, "", nil))
	if f.Failure != "interrupted" || f.Sent.Posts != 0 {
		t.Errorf("interrupted: got failure %q and %d POST, want interrupted and none", f.Failure, f.Sent.Posts)
	}
}

func TestUnixSocketIsProbed(t *testing.T) {
	path := t.TempDir() + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("no Unix sockets here: ", err)
	}
	s := httptest.NewUnstartedServer(vllm())
	s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	cfg := aim(t, "http://localhost", "", nil)
	inner := cfg.Speak
	cfg.Get.Network, cfg.Get.Address = "unix", path
	cfg.Speak = func(endpoint string, o probe.Wish) (probe.Way, error) {
		w, err := inner(endpoint, o)
		w.Network, w.Address = "unix", path
		return w, err
	}
	f := probe.Run(t.Context(), cfg)
	if best, ok := f.Best(); !ok || best.Name != plan.EndpointChat || f.Server.Kind != "vllm" || f.Reach.RTT.Samples != 0 {
		t.Errorf("got %q %v of a %q, round trips %+v, want %s of vllm, and no round trip", best.Name, ok, f.Server.Kind, f.Reach.RTT, plan.EndpointChat)
	}
}

func TestCertificateOfOursIsAskedFor(t *testing.T) {
	s := httptest.NewUnstartedServer(vllm())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	trust := x509.NewCertPool()
	trust.AddCert(s.Certificate())
	f := probe.Run(t.Context(), aim(t, s.URL, "", &tls.Config{RootCAs: trust, ServerName: "127.0.0.1"}))
	if !strings.Contains(f.Failure, "ends the TLS connection") || !strings.Contains(f.Hint, "--client-cert-file") {
		t.Errorf("no certificate of ours: got %q, hint %q, want to be told of --client-cert-file", f.Failure, f.Hint)
	}
}

// A reply that never ends costs neither memory nor the whole time.
func TestEndlessLineIsCut(t *testing.T) {
	h := vllm()
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		piece := []byte("data: " + strings.Repeat("x", 1<<20))
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
	e := endpoint(t, find(t, h), plan.EndpointChat)
	if e.State != probe.Otherwise || !strings.Contains(e.Why, "longer than 16 MiB") {
		t.Errorf("endless line: got %s: %q, want it to be cut at 16 MiB", e.State, e.Why)
	}
}

func TestEmptyRepliesAreNoAnswer(t *testing.T) {
	h := vllm()
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		if read(r).Stream {
			sends(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "data: [DONE]")
			return
		}
		io.WriteString(w, `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}]}`)
	}
	f := find(t, h)
	if e := endpoint(t, f, plan.EndpointChat); e.State != probe.Refuses || e.Whole.Outcome != "empty" || !strings.Contains(f.Failure, "no token") {
		t.Errorf("empty replies: got %s, %s, failure %q, want no answer", e.State, e.Whole.Outcome, f.Failure)
	}
}

func TestReasoningIsToldFromTheAnswer(t *testing.T) {
	h := vllm()
	inner := h["/v1/chat/completions"]
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		held := httptest.NewRecorder()
		inner(held, r)
		w.Header().Set("Content-Type", held.Header().Get("Content-Type"))
		w.WriteHeader(held.Code)
		io.WriteString(w, strings.Replace(held.Body.String(), `{"content":"one "}`, `{"reasoning":"hm"}`, 3))
	}
	if got := endpoint(t, find(t, h), plan.EndpointChat).Streamed; got.TokenEvents != 8 || got.Reasoning != 3 {
		t.Errorf("token events: got %d, of reasoning %d, want 8 and 3", got.TokenEvents, got.Reasoning)
	}
}

// Secrets that a server echoes, in whatever place, are not in the finding.
func TestEchoedSecretsAreMasked(t *testing.T) {
	const key = "hush-hush-9"
	f := find(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Server", key)
		h.Set("Via", key)
		h.Set("Keep-Alive", key)
		switch r.URL.Path {
		case "/v1/models":
			saysJSON(`{"data":[{"id":"`+key+`","owned_by":"`+key+`"},{"id":"big","owned_by":"`+key+`"}]}`)(w, r)
		case "/info":
			saysJSON(`{"model_id":"`+key+`","version":"`+key+`"}`)(w, r)
		case "/v1/chat/completions":
			chat("big")(w, r)
		case "/v1/completions":
			http.Redirect(w, r, "/"+key, http.StatusTemporaryRedirect)
		default:
			w.Header().Set("Content-Encoding", key)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"`+key+`":"`+key+`"}}`)
		}
	}))
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b) + f.Text(); strings.Contains(text, key) || f.Model != "big" {
		t.Errorf("model %q, want big, and no secret in\n%s", f.Model, text)
	}
}

func TestSignsThatContradictAreSaid(t *testing.T) {
	h := routes{
		"/v1/models":           saysJSON(`{"data":[{"id":"big","owned_by":"sglang"}]}`),
		"/api/version":         saysJSON(`{"version":"0.13.0"}`),
		"/version":             saysJSON(`{"version":"7"}`),
		"/v1/chat/completions": chat("big"),
	}
	f := find(t, h)
	if f.Server.Kind != "sglang" || f.Server.Version != "" {
		t.Errorf("server: got %q %q, want sglang, whose sign came first, without the version of another", f.Server.Kind, f.Server.Version)
	}
	if !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "different servers") }) {
		t.Errorf("notes: got %q, want one on the signs", f.Notes)
	}
	h["/"] = says("text/plain", "Ollama is running")
	if f = find(t, h); f.Server.Kind != "ollama" || f.Server.Version != "0.13.0" {
		t.Errorf("server: got %q %q, want ollama 0.13.0, which two signs speak for", f.Server.Kind, f.Server.Version)
	}
}

// What was asked for has come with the end marker, even if the reply stays open.
func TestOpenEndIsNotWaitedFor(t *testing.T) {
	h := vllm()
	inner := chat("big")
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		inner(w, r)
		if text := string(b); strings.Contains(text, `"big"`) && strings.Contains(text, `"stream":true`) && !strings.Contains(text, "continuous") && !strings.Contains(text, "return_token_ids") {
			<-r.Context().Done()
		}
	}
	cfg := aim(t, start(t, h).URL, "", nil)
	cfg.Endpoints = []string{plan.EndpointChat}
	f := probe.Run(t.Context(), cfg)
	if got := endpoint(t, f, plan.EndpointChat).Streamed; got.Outcome != "completed" || got.TokenEvents != 8 {
		t.Errorf("stream with an open end: got %s: %s, want completed", got.Outcome, got.Evidence)
	}
	if f.KeepAlive.AfterStreamed == probe.Kept {
		t.Errorf("connection: got %s, want not: its reply has not ended", f.KeepAlive.AfterStreamed)
	}
}

func TestPackedAndMistypedStreamsAreSaid(t *testing.T) {
	inner := chat("big")
	h := vllm()
	h["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		held := httptest.NewRecorder()
		inner(held, r)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(held.Code)
		packer := gzip.NewWriter(w)
		packer.Write(held.Body.Bytes())
		packer.Close()
	}
	f := find(t, h)
	got := endpoint(t, f, plan.EndpointChat)
	if s := got.Streamed; s.Outcome != "completed" || s.TokenEvents != 8 || s.Encoding != "gzip" || !s.Mistyped {
		t.Errorf("stream: got %+v, want 8 token events, packed and mistyped", s)
	}
	if !got.IDs.TokenIDs {
		t.Error("token ids within gzip: got none, want some")
	}
	if w := got.Whole; w.Outcome != "completed" || w.Encoding != "gzip" || w.Mistyped {
		t.Errorf("whole: got %+v, want it completed, packed and not mistyped", w)
	}
	if !strings.Contains(f.Text(), "packed as gzip, which was not asked for") || !strings.Contains(f.Text(), "under a Content-Type that is not a stream's") {
		t.Errorf("text: got neither what was packed nor what was mistyped:\n%s", f.Text())
	}
}

// A template may say how replies are to be read, whatever their type.
func TestFramingOfATemplateGoesBeforeTheType(t *testing.T) {
	say := plan.Template{Path: "/say", Body: `{"q": {{prompt}}, "n": {{max_tokens}}}`, Text: "/t", Finish: "/why", Framing: plan.FramingLines}
	h := routes{say.Path: says("text/plain", `{"t":"one "}`+"\n"+`{"t":"two "}`+"\n"+`{"t":"","why":"length"}`+"\n")}
	cfg := aim(t, start(t, h).URL, "", nil)
	cfg.Endpoints = []string{plan.EndpointTemplate}
	cfg.Speak = func(endpoint string, o probe.Wish) (probe.Way, error) {
		w := cfg.Get
		d, err := dialect.For(endpoint, dialect.Options{Model: o.Model, Stream: o.Stream, TopP: 1, Template: say})
		if err == nil {
			w.Dialect, w.Path = d, d.Path()
		}
		return w, err
	}
	e := endpoint(t, probe.Run(t.Context(), cfg), plan.EndpointTemplate)
	if s := e.Streamed; e.State != probe.Answers || s == nil || s.TokenEvents != 2 || s.FinishReason != "length" {
		t.Errorf("got %+v, streamed %+v; want an answer of 2 token events that ends with length", e, s)
	}
}
