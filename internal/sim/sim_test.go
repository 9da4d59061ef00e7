package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is a running simulator under test.
type server struct {
	t     *testing.T
	url   string
	addr  string
	truth string
	stop  func()
}

// start serves cfg over the named transport until stop, or the end of the test.
func start(t *testing.T, cfg Config, carry carry) *server {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	s := &server{t: t, truth: filepath.Join(t.TempDir(), "truth.jsonl")}
	if !cfg.Null {
		cfg.TruthFile = s.truth
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	ready := make(chan string, 1)
	var err error
	done.Go(func() {
		err = serve(ctx, cfg, func(addr string) { ready <- addr }, carry)
		close(ready)
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		if err != nil {
			t.Errorf("serve: got %v, want nil after its context ended", err)
		}
	})
	t.Cleanup(s.stop)
	addr, ok := <-ready
	if !ok {
		done.Wait()
		t.Fatalf("serve did not get ready: %v", err)
	}
	s.addr, s.url = addr, "http://"+addr
	return s
}

// transports are the ways to carry an engine that exist on this system.
func transports() map[string]carry {
	return map[string]carry{"native": transport, "portable": carryPortable}
}

// reply is what an independent client, net/http with encoding/json, makes of an answer.
type reply struct {
	status int
	events []chunk
	doc    chunk
	done   bool // [DONE] came
	err    error
}

type chunk struct {
	ID      string
	Object  string
	Model   string
	Choices []struct {
		Delta, Message struct {
			Role, Content string
		}
		Text         string
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
	Error *struct {
		Message, Type string
		Code          int
	}
	Sim *struct {
		RecvNs   int64 `json:"recv_ns"`
		QueuedNs int64 `json:"queued_ns"`
		SendNs   int64 `json:"send_ns"`
	}
}

func (c chunk) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content + c.Choices[0].Message.Content + c.Choices[0].Text
}

func (r reply) text() (text string) {
	for _, e := range r.events {
		text += e.text()
	}
	return text + r.doc.text()
}

func (r reply) finish() string {
	for _, e := range append(r.events, r.doc) {
		if len(e.Choices) > 0 && e.Choices[0].FinishReason != nil {
			return *e.Choices[0].FinishReason
		}
	}
	return ""
}

func (s *server) client() *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 1000}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (s *server) post(ctx context.Context, client *http.Client, path, id, body string) reply {
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	resp, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(resp.Body)
		if r.err = err; err == nil {
			r.err = json.Unmarshal(data, &r.doc)
		}
		return r
	}
	r.readEvents(resp.Body)
	return r
}

func (r *reply) readEvents(body io.Reader) {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			return
		}
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			r.done = true
			continue
		}
		var c chunk
		if r.err = json.Unmarshal([]byte(data), &c); r.err != nil {
			return
		}
		r.events = append(r.events, c)
	}
}

// fact is one line of the truth file.
type fact struct {
	N            uint64
	RequestID    string `json:"request_id"`
	RemotePort   int    `json:"remote_port"`
	Outcome      string
	Fault        string
	Status       int
	Stream       bool
	PromptTokens int `json:"prompt_tokens"`
	Tokens       int
	RecvNs       int64   `json:"recv_ns"`
	RecvByKernel bool    `json:"recv_by_kernel"`
	QueuedNs     *int64  `json:"queued_ns"`
	FirstSendNs  *int64  `json:"first_send_ns"`
	SendNs       []int64 `json:"send_ns"`
	EndNs        int64   `json:"end_ns"`
	ArrivedNs    int64   `json:"arrived_ns"`
	MaxLateNs    int64   `json:"max_late_ns"`
	Preemptions  int
}

// facts stops the server and reads its truth, by request id.
func (s *server) facts() map[string]fact {
	s.t.Helper()
	s.stop()
	data, err := os.ReadFile(s.truth)
	if err != nil {
		s.t.Fatal(err)
	}
	facts := map[string]fact{}
	for line := range strings.Lines(string(data)) {
		var f fact
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			s.t.Fatalf("truth line %q: %v", line, err)
		}
		facts[f.RequestID] = f
	}
	return facts
}

const (
	chat = "/v1/chat/completions"
	text = "/v1/completions"
)

func TestIndependentClientReadsEveryShape(t *testing.T) {
	cases := []struct {
		name, path, body       string
		prompt, tokens, events int
		usage, done            bool
	}{
		{"chat stream", chat, `{"model":"m\"x","messages":[{"role":"user","content":"one two  three"}],"stream":true,"max_tokens":5,"stream_options":{"include_usage":true}}`, 3, 5, 8, true, true},
		{"chat stream without usage", chat, `{"model":"m\"x","messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two\nthree"}]}],"stream":true,"max_completion_tokens":3}`, 3, 3, 5, false, true},
		{"chat document", chat, `{"model":"m\"x","messages":[{"role":"system","content":"a b"},{"role":"user","content":"c"}],"max_tokens":4}`, 3, 4, 0, true, false},
		{"completion stream", text, `{"model":"m\"x","prompt":"a b","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, 2, 16, 18, true, true},
		{"completion of ids", text, `{"model":"m\"x","prompt":[1,2,3,4],"max_tokens":1}`, 4, 1, 0, true, false},
	}
	for transport, carry := range transports() {
		s := start(t, Config{Seed: 1}, carry)
		client := s.client()
		for _, c := range cases {
			t.Run(transport+"/"+c.name, func(t *testing.T) {
				r := s.post(t.Context(), client, c.path, "", c.body)
				if r.err != nil || r.status != 200 || r.done != c.done {
					t.Fatalf("status %d, done %v, error %v; want 200, %v, nil", r.status, r.done, r.err, c.done)
				}
				if got := len(strings.Fields(r.text())); got != c.tokens {
					t.Errorf("words of the answer: got %d, want %d", got, c.tokens)
				}
				if r.finish() != "length" {
					t.Errorf("finish reason: got %q, want length", r.finish())
				}
				if len(r.events) != c.events {
					t.Errorf("events: got %d, want %d", len(r.events), c.events)
				}
				checkUsage(t, r, c.usage, c.prompt, c.tokens)
			})
		}
	}
}

func checkUsage(t *testing.T, r reply, want bool, prompt, tokens int) {
	t.Helper()
	last := r.doc
	if n := len(r.events); n > 0 {
		last = r.events[n-1]
	}
	if last.Model != `m"x` {
		t.Errorf("model: got %q, want the request's", last.Model)
	}
	if (last.Usage != nil) != want {
		t.Fatalf("usage present: got %v, want %v", last.Usage != nil, want)
	}
	if want && (last.Usage.PromptTokens != prompt || last.Usage.CompletionTokens != tokens || last.Usage.TotalTokens != prompt+tokens) {
		t.Errorf("usage: got %+v, want %d prompt and %d completion tokens", *last.Usage, prompt, tokens)
	}
}

func TestEachFaultShowsOnTheWireAndInTheTruth(t *testing.T) {
	reset := func(r reply) bool { return errors.Is(r.err, syscall.ECONNRESET) && !r.done }
	cases := []struct {
		fault   string
		outcome string
		seen    func(r reply) bool
	}{
		{"status=503", "http_error", func(r reply) bool { return r.status == 503 && r.doc.Error != nil && r.doc.Error.Code == 503 }},
		{"stream-error", "stream_error", func(r reply) bool {
			return r.err == nil && r.events[len(r.events)-1].Error != nil && r.finish() == ""
		}},
		{"truncate", "truncated", func(r reply) bool { return r.err == nil && !r.done && r.finish() == "" && r.text() != "" }},
		{"cut", "truncated", func(r reply) bool { return errors.Is(r.err, io.ErrUnexpectedEOF) && r.text() != "" }},
		{"reset", "reset", reset},
		{"stall", "stalled", func(r reply) bool { return errors.Is(r.err, context.DeadlineExceeded) && r.text() != "" }},
		{"slow-headers=20ms", "completed", func(r reply) bool { return r.err == nil && r.done && r.finish() == "length" }},
		{"empty", "empty", func(r reply) bool { return r.err == nil && r.done && r.text() == "" && r.finish() == "stop" }},
		{"silent", "stalled", func(r reply) bool { return errors.Is(r.err, context.DeadlineExceeded) && r.status == 0 }},
		{"no-token", "stalled", func(r reply) bool {
			return errors.Is(r.err, context.DeadlineExceeded) && r.status == 200 && r.text() == ""
		}},
		{"redirect", "redirect", func(r reply) bool { return r.status == 404 }}, // Go's client goes there
		{"html", "html", func(r reply) bool { return r.status == 200 && r.text() == "" }},
		{"close-after-reply", "completed", func(r reply) bool { return r.err == nil && r.done && r.finish() == "length" }},
	}
	for transport, carry := range transports() {
		s := start(t, Config{Gap: Constant(time.Millisecond)}, carry)
		for _, c := range cases {
			client := s.client() // a new one, that has no connection which is about to be closed
			ctx, cancel := t.Context(), func() {}
			if c.outcome == "stalled" {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
			}
			r := s.post(ctx, client, chat, c.fault, `{"messages":[{"role":"user","content":"hi [[sim:`+c.fault+`]] there"}],"stream":true,"max_tokens":8}`)
			cancel()
			if !c.seen(r) {
				t.Errorf("%s %s: got status %d, %d events, done %v, finish %q, error %v", transport, c.fault, r.status, len(r.events), r.done, r.finish(), r.err)
			}
		}
		facts := s.facts()
		for _, c := range cases {
			if f := facts[c.fault]; f.Outcome != c.outcome || f.Fault != c.fault {
				t.Errorf("%s truth of %s: got outcome %q, fault %q, want %q", transport, c.fault, f.Outcome, f.Fault, c.outcome)
			}
		}
	}
}

func TestFaultsStrikeDocumentsToo(t *testing.T) {
	cases := map[string]func(r reply) bool{
		"stream-error":      func(r reply) bool { return r.status == 200 && r.doc.Error != nil },
		"truncate":          func(r reply) bool { return errors.Is(r.err, io.ErrUnexpectedEOF) },
		"cut":               func(r reply) bool { return errors.Is(r.err, io.ErrUnexpectedEOF) },
		"reset":             func(r reply) bool { return errors.Is(r.err, syscall.ECONNRESET) },
		"empty":             func(r reply) bool { return r.err == nil && r.text() == "" && r.finish() == "stop" },
		"slow-headers=10ms": func(r reply) bool { return r.err == nil && r.finish() == "length" },
		"status=429":        func(r reply) bool { return r.status == 429 },
	}
	for transport, carry := range transports() {
		s := start(t, Config{}, carry)
		for fault, seen := range cases {
			client := s.client()
			if r := s.post(t.Context(), client, text, fault, `{"prompt":"[[sim:`+fault+`]]"}`); !seen(r) {
				t.Errorf("%s %s: got status %d, error %v, document %+v", transport, fault, r.status, r.err, r.doc)
			}
		}
	}
}

func TestTruthInFileEqualsTruthInStream(t *testing.T) {
	for transport, carry := range transports() {
		s := start(t, Config{Gap: Constant(time.Millisecond), TruthInStream: true, Slots: 4}, carry)
		client := s.client()
		replies := make([]reply, 40)
		var all sync.WaitGroup
		for i := range replies {
			all.Go(func() {
				replies[i] = s.post(t.Context(), client, chat, fmt.Sprint("r", i), `{"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":6}`)
			})
		}
		all.Wait()
		facts := s.facts()
		for i, r := range replies {
			f := facts[fmt.Sprint("r", i)]
			if r.err != nil || len(r.events) != 8 {
				t.Fatalf("%s reply %d: got %d events, error %v, want 8", transport, i, len(r.events), r.err)
			}
			if len(f.SendNs) != 6 || f.Outcome != "completed" || f.Tokens != 6 {
				t.Fatalf("%s truth of %d: got %+v", transport, i, f)
			}
			for j, at := range f.SendNs {
				e := r.events[j+1]
				if e.Sim == nil || e.Sim.SendNs != at || e.Sim.RecvNs != f.RecvNs || e.Sim.QueuedNs != *f.QueuedNs {
					t.Errorf("%s reply %d chunk %d: stream says %+v, file %d received %d", transport, i, j, e.Sim, at, f.RecvNs)
				}
			}
			if role := r.events[0].Sim; role.SendNs != f.SendNs[0] {
				t.Errorf("%s reply %d: the role says sent at %d, the token in the same send %d", transport, i, role.SendNs, f.SendNs[0])
			}
			if *f.FirstSendNs != f.SendNs[0] || f.EndNs != f.SendNs[5] || f.RecvNs > f.SendNs[0] || f.RemotePort == 0 {
				t.Errorf("%s truth of %d is not in order: %+v", transport, i, f)
			}
		}
	}
}

func TestErrorsAreInTheProtocolsForm(t *testing.T) {
	s := start(t, Config{}, transport)
	cases := []struct {
		method, path, body string
		status             int
	}{
		{"POST", chat, `{`, 400},
		{"POST", chat, `{"messages":[]}`, 400},
		{"POST", text, `{"model":"m"}`, 400},
		{"POST", text, `{"prompt":"a","max_tokens":0}`, 400},
		{"POST", text, `{"prompt":"a","max_tokens":"5"}`, 400},
		{"POST", text, `{"prompt":["a","b"]}`, 400},
		{"POST", text, `{"prompt":"[[sim:explode]]"}`, 400},
		{"GET", chat, "", 405},
		{"POST", "/health", "{}", 405},
		{"GET", "/nothing", "", 404},
	}
	for _, c := range cases {
		req, _ := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
		resp, err := s.client().Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", c.method, c.path, err)
		}
		var doc chunk
		err = json.NewDecoder(resp.Body).Decode(&doc)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || doc.Error == nil || doc.Error.Code != c.status || doc.Error.Message == "" {
			t.Errorf("%s %s %s: got status %d, error %+v (%v), want %d", c.method, c.path, c.body, resp.StatusCode, doc.Error, err, c.status)
		}
	}
}

func TestNullSpeaksTheSameProtocol(t *testing.T) {
	for transport, carry := range transports() {
		for name, gap := range map[string]time.Duration{"coalesced": 0, "separate": time.Millisecond} {
			s := start(t, Config{Null: true, Loops: loopsOf(transport), Gap: Constant(gap)}, carry)
			client := s.client()
			for i := range 6 {
				r := s.post(t.Context(), client, chat, "", `{"messages":[{"role":"user","content":"\"stream\": false"}],"stream": true,"max_tokens":7,"stream_options":{"include_usage":true}}`)
				if r.err != nil || !r.done || len(strings.Fields(r.text())) != 7 || r.events[len(r.events)-1].Usage.CompletionTokens != 7 {
					t.Errorf("%s %s reply %d: got %q, done %v, error %v", transport, name, i, r.text(), r.done, r.err)
				}
				r = s.post(t.Context(), client, text, "", `{"prompt":"a","max_tokens":3}`)
				if r.err != nil || len(strings.Fields(r.text())) != 3 {
					t.Errorf("%s %s document %d: got %q, error %v", transport, name, i, r.text(), r.err)
				}
			}
		}
	}
}

func loopsOf(transport string) int {
	if transport == "native" {
		return 2
	}
	return 1
}

func TestModelsHealthAndMetricsAnswer(t *testing.T) {
	s := start(t, Config{Model: "tiny"}, transport)
	for path, want := range map[string]string{
		"/v1/models": `"id":"tiny"`,
		"/health":    "",
		"/metrics":   `vllm:num_requests_running{engine="0",model_name="tiny"} 0`,
	} {
		resp, err := s.client().Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %q, want it to hold %q", path, resp.StatusCode, body, want)
		}
	}
}
