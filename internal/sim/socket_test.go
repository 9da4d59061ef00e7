package sim

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// dial opens a bare connection to s that ends with the test.
func (s *server) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func readReply(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("read reply: %v", err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read body: %v", err)
	}
	return resp.StatusCode, string(data)
}

func TestConnectionsCarryPipelinedRequests(t *testing.T) {
	for name, carry := range transports() {
		s := start(t, Config{TTFT: Constant(time.Millisecond)}, carry)
		c := s.dial()
		go io.WriteString(c, strings.Repeat(httpRequest(text, `{"prompt":"a b","max_tokens":2}`)+httpRequest(chat, `{"messages":[{"content":"a"}],"stream":true}`), 20))
		r := bufio.NewReader(c)
		for i := range 40 {
			status, body := readReply(t, r)
			if streamed := strings.HasSuffix(body, "data: [DONE]\n\n"); status != 200 || streamed != (i%2 == 1) {
				t.Fatalf("%s reply %d: got %d, streamed %v", name, i, status, streamed)
			}
		}
	}
}

func TestLargeBodiesAndSlowReadersAreServed(t *testing.T) {
	for name, carry := range transports() {
		s := start(t, Config{}, carry)
		c := s.dial()
		const words, tokens = 1 << 20, 100_000 // 2 MiB up, some 20 MiB down
		go io.WriteString(c, httpRequest(text, `{"stream":true,"max_tokens":`+fmt.Sprint(tokens)+`,"prompt":"`+strings.Repeat("a ", words)+`","stream_options":{"include_usage":true}}`))
		r := bufio.NewReader(c)
		if _, err := r.Peek(1); err != nil {
			t.Fatal(err)
		}
		// By the time another client has been served, the socket of the first is full.
		other := s.dial()
		io.WriteString(other, httpRequest(text, `{"prompt":"a"}`))
		if status, _ := readReply(t, bufio.NewReader(other)); status != 200 {
			t.Errorf("%s other client: got %d", name, status)
		}
		status, body := readReply(t, r)
		if got := strings.Count(body, "data: ") - 3; status != 200 || got != tokens {
			t.Errorf("%s: got status %d and %d token events, want %d", name, status, got, tokens)
		}
		if !strings.Contains(body, fmt.Sprintf(`"prompt_tokens":%d,`, words)) {
			t.Errorf("%s: usage does not count %d prompt tokens", name, words)
		}
	}
}

func TestClientsThatWaitAreToldToProceed(t *testing.T) {
	s := start(t, Config{}, transport)
	c := s.dial()
	io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n")
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	r.ReadString('\n')
	io.WriteString(c, `{"prompt":"a"}`)
	if status, _ := readReply(t, r); status != 200 {
		t.Errorf("got status %d, want 200", status)
	}
}

func TestRefusalsCanBeReadBeforeTheEnd(t *testing.T) {
	for name, carry := range transports() {
		s := start(t, Config{}, carry)
		c := s.dial()
		io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		r := bufio.NewReader(c)
		if status, _ := readReply(t, r); status != 411 {
			t.Errorf("%s: got status %d, want 411", name, status)
		}
		if n, err := r.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: after the refusal got %d bytes, %v; want EOF", name, n, err)
		}
	}
}

func TestConnectionClosesWhenAskedAndWhenTold(t *testing.T) {
	for name, carry := range transports() {
		s := start(t, Config{}, carry)
		for what, request := range map[string]string{
			"asked":     strings.Replace(httpRequest(text, `{"prompt":"a"}`), "Host:", "Connection: close\r\nHost:", 1),
			"told":      httpRequest(text, `{"prompt":"[[sim:close-after-reply]]"}`),
			"asked 404": "GET /x HTTP/1.1\r\nConnection: close\r\n\r\n",
		} {
			c := s.dial()
			io.WriteString(c, request)
			data, err := io.ReadAll(c)
			if err != nil || strings.Contains(string(data), "connection: close") != strings.HasPrefix(what, "asked") {
				t.Errorf("%s %s: got %v, %q", name, what, err, data)
			}
		}
	}
}

func TestReceiveStampIsTheKernels(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux stamps")
	}
	s := start(t, Config{}, transport)
	clock := portableClock()
	before := clock.now()
	client := s.client()
	for i := range 50 {
		s.post(t.Context(), client, text, fmt.Sprint(i), `{"prompt":"a"}`)
	}
	after := clock.now()
	for id, f := range s.facts() {
		// Half a millisecond covers the error of bringing CLOCK_REALTIME onto the monotonic clock on a busy machine.
		if !f.RecvByKernel || f.RecvNs < before-500_000 || f.RecvNs > f.EndNs || f.EndNs > after {
			t.Errorf("request %s: by kernel %v, between %d and %d: received %d, ended %d", id, f.RecvByKernel, before, after, f.RecvNs, f.EndNs)
		}
	}
}

func TestRequestsInServiceAtTheEndAreInTheTruth(t *testing.T) {
	for name, carry := range transports() {
		s := start(t, Config{TTFT: Constant(time.Hour), Slots: 1}, carry)
		first, second := s.dial(), s.dial()
		for i, c := range []net.Conn{first, second} {
			io.WriteString(c, strings.Replace(httpRequest(text, `{"prompt":"a"}`), "Host:", fmt.Sprintf("X-Request-Id: %d\r\nHost:", i), 1))
		}
		// Each is known to be there once the metrics count both.
		for {
			c := s.dial()
			io.WriteString(c, "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")
			data, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), `num_requests_waiting{engine="0",model_name="sim"} 1`) {
				break
			}
		}
		facts := s.facts()
		if len(facts) != 2 || facts["0"].Outcome != "shutdown" || facts["1"].Outcome != "shutdown" {
			t.Errorf("%s: got %+v, want two requests ended by shutdown", name, facts)
		}
	}
}

func TestFullDiskEndsTheServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	for name, carry := range transports() {
		err := serve(t.Context(), Config{Addr: "127.0.0.1:0", TruthFile: "/dev/full"}, func(addr string) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { c.Close() })
			io.WriteString(c, httpRequest(text, `{"prompt":"a"}`))
		}, carry)
		if err == nil || !strings.Contains(err.Error(), "write truth") {
			t.Errorf("%s: got %v, want the fault of the truth file", name, err)
		}
	}
}

func TestTwoServersDoNotShareAPort(t *testing.T) {
	for name, carry := range transports() {
		s := start(t, Config{}, carry)
		if err := serve(t.Context(), Config{Addr: s.addr}, func(string) {}, carry); err == nil {
			t.Errorf("%s: a second server on %s: got no error", name, s.addr)
		}
	}
}
