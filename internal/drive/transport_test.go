package drive_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
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

// serveOn answers like chat on a listener.
func serveOn(t *testing.T, l net.Listener, h http.HandlerFunc) {
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil && network == "tcp6" {
		t.Skip("this machine has no ::1")
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUnixSocketsCarryRequestsWithoutStamps(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		path := filepath.Join(t.TempDir(), "s.sock")
		serveOn(t, listen(t, "unix", path), chat)
		cfg := drive.Config{Servers: []drive.Server{{Network: "unix", Address: path}}, Engine: engine}
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{{Rate: 300, Requests: 60}, {Concurrency: 3, Requests: 40}}}))
		if n := outcomes(all); n["completed"] != 100 || m.Client.KernelStamps || m.Client.Engine != engine {
			t.Fatalf("engine %s, kernel stamps %v, outcomes %v, want 100 completed by %s without stamps; first error %q",
				m.Client.Engine, m.Client.KernelStamps, n, engine, firstError(all))
		}
		for _, x := range all {
			for i, e := range x.Events {
				if e.Flags&record.FlagStamped != 0 || e.KernelAt != e.UserAt {
					t.Fatalf("request %d event %d: stamped %v, kernel time %v, user time %v: want the user time in place of a stamp",
						x.Index, i, e.Flags&record.FlagStamped != 0, e.KernelAt, e.UserAt)
				}
			}
		}
	})
}

func TestASocketThatIsNotThereIsNamed(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		path := filepath.Join(t.TempDir(), "none.sock")
		err := start(t, drive.Config{Servers: []drive.Server{{Network: "unix", Address: path}}, Engine: engine}, spec(plan.Load{Concurrency: 1, Requests: 1}))
		if want := "connect to " + path + ": "; err == nil || err.Error()[:min(len(want), len(err.Error()))] != want {
			t.Errorf("got %v, want an error that begins with %q", err, want)
		}
	})
}

func TestIPv6ServersAreReachedByAddressAndName(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		l := listen(t, "tcp6", "[::1]:0")
		serveOn(t, l, chat)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		addresses := []string{net.JoinHostPort("::1", port)}
		if found, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip6", "localhost"); err == nil && len(found) > 0 {
			addresses = append(addresses, net.JoinHostPort("localhost", port))
		}
		for _, a := range addresses {
			all, m := carry(t, t.Context(), drive.Config{Servers: at(a), Engine: engine}, spec(plan.Load{Concurrency: 2, Requests: 20}))
			if n := outcomes(all); n["completed"] != 20 || m.Client.KernelStamps != drive.HasEpoll() {
				t.Errorf("%s: outcomes %v, kernel stamps %v, want 20 completed, stamped where there are stamps; first error %q",
					a, n, m.Client.KernelStamps, firstError(all))
			}
		}
	})
}

// counted is a server that notes the requests it got by their numbers.
type counted struct {
	mu   sync.Mutex
	ids  map[string]int
	news atomic.Int64 // connections
}

func (c *counted) serve(t *testing.T) drive.Server {
	c.ids = map[string]int{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.ids[r.Header.Get("X-Request-Id")]++
		c.mu.Unlock()
		chat(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.news.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return drive.Server{Address: s.Listener.Addr().String()}
}

func TestServersTakeTheRequestsInTurn(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		var servers [3]counted
		var cfg drive.Config
		for i := range servers {
			cfg.Servers = append(cfg.Servers, servers[i].serve(t))
		}
		cfg.Engine, cfg.Loops, cfg.Connections = engine, 2, 5
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{{Rate: 500, Requests: 100}, {Concurrency: 4, Requests: 50}}}))
		if n := outcomes(all); n["completed"] != 150 {
			t.Fatalf("outcomes %v, want 150 completed; first error %q", n, firstError(all))
		}
		for _, x := range all {
			for i := range servers {
				want := 0
				if x.Index%3 == int64(i) {
					want = 1
				}
				if got := servers[i].ids[fmt.Sprintf("run-%d", x.Index)]; got != want {
					t.Errorf("request %d: server %d got it %d times, want %d", x.Index, i, got, want)
				}
			}
		}
	})
}

// One server of two is gone: requests to the other go out on time and complete.
func TestAServerThatIsGoneHoldsUpNoOther(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		var good counted
		cfg := drive.Config{Servers: []drive.Server{good.serve(t), {Address: unanswered(t)}}, Engine: engine, Loops: 1, NoReuse: true,
			ConnectTimeout: 200 * time.Millisecond}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 200, Requests: 60}))
		n := outcomes(all)
		if n["completed"] < 30 || n["completed"]+n["connect_failed"] != 60 {
			t.Errorf("outcomes %v, want the 30 of the server that is there completed", n)
		}
		for _, x := range all {
			if x.Index%2 == 0 && x.Outcome != record.Completed {
				t.Errorf("request %d to the server that is there: %v, %q", x.Index, x.Outcome, x.Error)
			}
		}
	})
}

// unanswered is an address whose connections are refused.
func unanswered(t *testing.T) string {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	return l.Addr().String()
}

func TestWithoutReuseEveryRequestHasItsOwnConnection(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		var server counted
		cfg := drive.Config{Servers: []drive.Server{server.serve(t)}, Engine: engine, NoReuse: true, Connections: 3}
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{{Rate: 200, Requests: 20}, {Concurrency: 2, Requests: 20}}}))
		dials := int64(0)
		for _, l := range m.Loops {
			dials += l.Dials
		}
		if n := outcomes(all); n["completed"] != 40 || server.news.Load() != 40 || dials != 40 {
			t.Errorf("outcomes %v over %d connections, %d dialled, want 40 each; first error %q", n, server.news.Load(), dials, firstError(all))
		}
		for _, x := range all {
			if x.Reused {
				t.Errorf("request %d went over a connection that had carried another", x.Index)
			}
		}
	})
}

// A server that keeps its connections whatever the request says is not given a second request on any.
func TestWithoutReuseTheServersWishDoesNotCount(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		var seconds atomic.Int64
		addr := accept(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			for n := 0; ; n++ {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				if n > 0 {
					seconds.Add(1)
				}
				const answer = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
			}
		})
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(addr), Engine: engine, NoReuse: true}, spec(plan.Load{Concurrency: 2, Requests: 20}))
		if n := outcomes(all); n["completed"] != 20 || seconds.Load() != 0 {
			t.Errorf("outcomes %v, %d requests on connections that had carried one, want 20 completed and none", n, seconds.Load())
		}
	})
}

// authority signs certificates for the tests, for 127.0.0.1 and the name llm.test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.cert, a.key = certify(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	a.pool.AddCert(a.cert)
	return a
}

// issue makes a certificate that a signs.
func (a *authority) issue(t *testing.T) tls.Certificate {
	t.Helper()
	cert, key := certify(t, &x509.Certificate{DNSNames: []string{"llm.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// certify makes a certificate that by signs, or that signs itself.
func certify(t *testing.T, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// guarded is a TLS server that wants a client certificate signed by a.
func guarded(t *testing.T, a *authority, http2 bool) string {
	s := httptest.NewUnstartedServer(http.HandlerFunc(chat))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool}
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestServersThatWantACertificateGetIt(t *testing.T) {
	a := newAuthority(t)
	addr := guarded(t, a, false)
	secure := func(c *tls.Config) drive.Config {
		return drive.Config{Servers: []drive.Server{{Address: addr, TLS: c}}, Connections: 1}
	}
	load := spec(plan.Load{Rate: 100, Requests: 10})
	all, _ := carry(t, t.Context(), secure(&tls.Config{RootCAs: a.pool, ServerName: "llm.test", Certificates: []tls.Certificate{a.issue(t)}}), load)
	if n := outcomes(all); n["completed"] != 10 {
		t.Errorf("with it: outcomes %v, want 10 completed; first error %q", n, firstError(all))
	}
	all, _ = carry(t, t.Context(), secure(&tls.Config{RootCAs: a.pool, ServerName: "llm.test"}), load)
	refused := 0
	for _, x := range all {
		if x.Outcome == record.ConnectFailed && strings.Contains(x.Error, "the server refused the TLS session: tls: certificate required") {
			refused++
		}
	}
	// The kernel throws the server's words away when the request comes to a socket that has been closed.
	if n := outcomes(all); refused < 5 || n["connect_failed"]+n["reset"] != 10 {
		t.Errorf("without it: outcomes %v, want mostly connect_failed for want of it, else reset; first error %q", n, firstError(all))
	}
	for want, c := range map[string]*tls.Config{
		"certificate signed by unknown authority":        {RootCAs: newAuthority(t).pool, ServerName: "llm.test"},
		"certificate is valid for llm.test, not other.x": {RootCAs: a.pool, ServerName: "other.x"},
	} {
		if err := start(t, secure(c), load); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
