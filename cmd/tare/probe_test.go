package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair is a certificate of our own for 127.0.0.1, and its key, in PEM.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", secret)
}

// chatOnly answers chat requests with a token, and nothing else.
func chatOnly(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		return
	}
	fmt.Fprint(w, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`)
}

// Whatever a run can be sent to can be probed, and what is printed can be run.
func TestProbesGoWhereRunsGo(t *testing.T) {
	open := func(network, address string, secure *tls.Config) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil && network == "tcp6" {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(chatOnly))
		s.Listener.Close()
		s.Listener, s.Config.ErrorLog = l, log.New(io.Discard, "", 0)
		if s.TLS = secure; secure != nil {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return l
	}
	cert, key := pair(t)
	identity, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	ours := x509.NewCertPool()
	ours.AppendCertsFromPEM([]byte(cert))
	guarded := &tls.Config{Certificates: []tls.Certificate{identity}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours}

	socket := filepath.Join(t.TempDir(), "s.sock")
	open("unix", socket, nil)
	plain := "http://" + open("tcp", "127.0.0.1:0", nil).Addr().String()
	cases := map[string][]string{
		"a Unix socket":           {"unix://" + socket},
		"the first of several":    {plain + " http://127.0.0.1:1"},
		"with our certificate":    {"https://" + open("tcp", "127.0.0.1:0", guarded).Addr().String(), "--ca-file", keep(t, cert), "--client-cert-file", keep(t, cert), "--client-key-file", keep(t, key)},
		"a full path and a query": {plain + "/v1/chat/completions?tenant=a"},
	}
	if l := open("tcp6", "[::1]:0", nil); l != nil {
		cases["IPv6"] = []string{"http://" + l.Addr().String()}
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			var found bytes.Buffer
			code := execute(t.Context(), append([]string{"probe", "--model", "m"}, args...), &found, t.Output())
			if code != exitDone || !strings.Contains(found.String(), "openai-chat         answers") {
				t.Fatalf("exit code %d, want %d and that openai-chat answers:\n%s", code, exitDone, found.String())
			}
			if name == "the first of several" {
				return // the other is not there
			}
			run := []string{"run", "-f", keep(t, found.String()), "--quiet", "--requests", "3", "--out", filepath.Join(t.TempDir(), "out")}
			var report bytes.Buffer
			if code := execute(t.Context(), run, &report, t.Output()); code != exitDone || !strings.Contains(report.String(), "completed 3 ") {
				t.Errorf("the spec that was printed: exit code %d, want %d and 3 completed:\n%s\n%s", code, exitDone, found.String(), report.String())
			}
		})
	}
}
