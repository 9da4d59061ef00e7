package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeWire is a transport without sockets, in virtual time.
type fakeWire struct {
	at     int64
	sent   map[*conn][]sending
	closed map[*conn]closing
}

type sending struct {
	at   time.Duration
	data string
}

func (w *fakeWire) now() int64 { return w.at }

func (w *fakeWire) send(c *conn, b []byte) bool {
	w.sent[c] = append(w.sent[c], sending{time.Duration(w.at), string(b)})
	return true
}

func (w *fakeWire) close(c *conn, how closing) { w.closed[c] = how }

// bench is a core in virtual time.
type bench struct {
	t *testing.T
	w *fakeWire
	k *core
}

func newBench(t *testing.T, cfg Config) *bench {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	w := &fakeWire{sent: map[*conn][]sending{}, closed: map[*conn]closing{}}
	return &bench{t: t, w: w, k: newCore(cfg.withDefaults(), w, nil, 0)}
}

// until runs what is due up to and at the given time.
func (b *bench) until(at time.Duration) {
	for {
		due, ok := b.k.next()
		if !ok || due > int64(at) {
			break
		}
		b.w.at = max(b.w.at, due)
		b.k.advance(b.w.at)
	}
	b.w.at = int64(at)
}

// ask sends a request on c at the given time.
func (b *bench) ask(c *conn, at time.Duration, body string) {
	b.until(at)
	c.at = int64(at)
	feed(b.k, c, []byte(httpRequest("/v1/completions", body)))
}

func httpRequest(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func (b *bench) times(c *conn) (at []time.Duration) {
	for _, s := range b.w.sent[c] {
		at = append(at, s.at)
	}
	return at
}

func (b *bench) expectTimes(what string, c *conn, want ...time.Duration) {
	b.t.Helper()
	if got := b.times(c); !slices.Equal(got, want) {
		b.t.Errorf("%s: sends at %v, want %v", what, got, want)
	}
}

const ms = time.Millisecond

func TestStreamKeepsItsTimes(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(50 * ms), Gap: Constant(10 * ms), Prefill: ms})
	c := &conn{}
	b.ask(c, 7*ms, `{"prompt":"a b c","stream":true,"max_tokens":4}`)
	b.until(time.Second)
	b.expectTimes("50 ms, 3 prompt tokens of 1 ms, gaps of 10 ms", c, 60*ms, 70*ms, 80*ms, 90*ms)
	last := b.w.sent[c][3].data
	if !strings.HasSuffix(last, "data: [DONE]\n\n\r\n0\r\n\r\n") {
		t.Errorf("last send does not end the stream: %q", last)
	}
}

func TestLateSendsShiftNothing(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(10 * ms), Gap: Constant(10 * ms)})
	c := &conn{}
	b.ask(c, 0, `{"prompt":"a","stream":true,"max_tokens":3}`)
	b.w.at = int64(17 * ms)
	b.k.advance(b.w.at)
	b.until(time.Second)
	b.expectTimes("first chunk 7 ms late", c, 17*ms, 20*ms, 30*ms)
}

func TestDocumentComesWithItsLastToken(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(50 * ms), Gap: Constant(10 * ms), TokensPerChunk: 2})
	c := &conn{}
	b.ask(c, 0, `{"prompt":"a","max_tokens":5}`)
	b.until(time.Second)
	b.expectTimes("5 tokens in 3 chunks", c, 70*ms)
}

func TestRoleEarlyComesWithTheStartOfService(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(50 * ms), Slots: 1, RoleEarly: true})
	first, second := &conn{}, &conn{}
	b.ask(first, 0, `{"prompt":"a","stream":true,"max_tokens":1}`)
	b.ask(second, ms, `{"prompt":"a","stream":true,"max_tokens":1}`)
	b.until(time.Second)
	b.expectTimes("first", first, 0, 50*ms)
	b.expectTimes("second", second, 50*ms, 100*ms)
}

func TestSlotsServeInOrderOfArrival(t *testing.T) {
	cfg := Config{TTFT: Constant(20 * ms), Gap: Constant(10 * ms), Slots: 2}
	b := newBench(t, cfg)
	conns := make([]conn, 5)
	for i := range conns {
		b.ask(&conns[i], time.Duration(i)*ms, `{"prompt":"a","stream":true,"max_tokens":2}`)
	}
	if now := b.k.timing.load(); now.running != 2 || now.waiting != 3 {
		t.Errorf("running %d, waiting %d; want 2 and 3", now.running, now.waiting)
	}
	b.until(time.Second)
	for i, want := range [][]time.Duration{{20 * ms, 30 * ms}, {21 * ms, 31 * ms}, {50 * ms, 60 * ms}, {51 * ms, 61 * ms}, {80 * ms, 90 * ms}} {
		b.expectTimes(fmt.Sprint("request ", i), &conns[i], want...)
	}
	for i, want := range []time.Duration{0, 0, 28 * ms, 28 * ms, 56 * ms} {
		if s := b.k.ended[i]; time.Duration(s.start-s.recv) != want || s.n != uint64(i) {
			t.Errorf("request %d waited %v, want %v", s.n, time.Duration(s.start-s.recv), want)
		}
	}
	m, err := NewModel(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if capacity, ok := m.Capacity(1, 2); !ok || capacity != 2/0.030 {
		t.Errorf("capacity: got %v, %v; want 2 slots / 30 ms", capacity, ok)
	}
}

func TestLateServerKeepsTheTimesOfItsQueue(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(20 * ms), Slots: 1})
	first, second, third := &conn{}, &conn{}, &conn{}
	b.ask(first, 0, `{"prompt":"a","max_tokens":1}`)
	b.ask(second, 0, `{"prompt":"a","max_tokens":1}`)
	b.w.at = int64(27 * ms)
	third.at = int64(24 * ms) // read 3 ms after it had come
	feed(b.k, third, []byte(httpRequest("/v1/completions", `{"prompt":"a","max_tokens":1}`)))
	b.k.advance(b.w.at)
	b.until(time.Second)
	b.expectTimes("first, noticed late", first, 27*ms)
	b.expectTimes("second, from the moment the slot was free by the model", second, 40*ms)
	b.expectTimes("third", third, 60*ms)
}

func TestFullQueueRefuses(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(20 * ms), Slots: 1, QueueLimit: 1})
	conns := make([]conn, 3)
	for i := range conns {
		b.ask(&conns[i], 0, `{"prompt":"a","max_tokens":1}`)
	}
	b.until(time.Second)
	b.expectTimes("refused at once", &conns[2], 0)
	if got := b.w.sent[&conns[2]][0].data; !strings.HasPrefix(got, "HTTP/1.1 429 ") {
		t.Errorf("third request: got %q, want 429", got)
	}
}

func TestLeavingClientsFreeTheirPlaces(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(20 * ms), Slots: 1})
	conns := make([]conn, 4)
	for i := range conns {
		b.ask(&conns[i], 0, `{"prompt":"a","max_tokens":1}`)
	}
	b.until(5 * ms)
	b.k.closed(&conns[1])
	b.k.closed(&conns[0])
	b.until(time.Second)
	b.expectTimes("first", &conns[0])
	b.expectTimes("second", &conns[1])
	b.expectTimes("third", &conns[2], 25*ms)
	b.expectTimes("fourth", &conns[3], 45*ms)
}

func TestLockStepEmitsOnCommonTicks(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(5 * ms), Step: 20 * ms})
	first, second := &conn{}, &conn{}
	b.ask(first, 0, `{"prompt":"a","stream":true,"max_tokens":3}`)
	b.ask(second, 13*ms, `{"prompt":"a","stream":true,"max_tokens":3}`)
	b.until(time.Second)
	b.expectTimes("first", first, 20*ms, 40*ms, 60*ms)
	b.expectTimes("second", second, 20*ms, 40*ms, 60*ms)
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(10 * ms)})
	c := &conn{}
	one := httpRequest("/v1/completions", `{"prompt":"a","max_tokens":1}`)
	feed(b.k, c, []byte(one+one+one[:30]))
	b.until(15 * ms)
	feed(b.k, c, []byte(one[30:]))
	b.until(time.Second)
	// The receive stamp is that of the newest byte: zero here, so that the second is due before the first was answered.
	b.expectTimes("three on one connection", c, 10*ms, 10*ms, 15*ms)
}

func TestSeedDecidesEverything(t *testing.T) {
	run := func(seed uint64) (out string) {
		var faults Faults
		if err := errorsOf(faults.Set("truncate:0.2"), faults.Set("status=503:0.2"), faults.Set("reset:0.1")); err != nil {
			t.Fatal(err)
		}
		ttft, _ := ParseDelay("lognormal(50ms,0.5)")
		gap, _ := ParseDelay("exponential(5ms)")
		b := newBench(t, Config{Seed: seed, TTFT: ttft, Gap: gap, Faults: faults})
		for i := range 40 {
			c := &conn{}
			b.ask(c, time.Duration(i)*ms, `{"prompt":"a","stream":true,"max_tokens":6}`)
			defer func() { out += fmt.Sprint(b.w.sent[c], b.w.closed[c]) }()
		}
		b.until(time.Minute)
		return fmt.Sprint(b.k.metrics.finished, b.k.metrics.ttft.sum, b.k.metrics.itl.sum, b.k.metrics.generatedTokens)
	}
	if a, b := run(7), run(7); a != b {
		t.Errorf("same seed: got %v and %v", a, b)
	}
	if a, b := run(7), run(8); a == b {
		t.Errorf("seeds 7 and 8 both give %v", a)
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestFaultsMeetTheirRate(t *testing.T) {
	var faults Faults
	if err := errorsOf(faults.Set("reset:0.1"), faults.Set("empty:0.3")); err != nil {
		t.Fatal(err)
	}
	counts := map[faultKind]int{}
	const n = 20000
	for i := range uint64(n) {
		counts[faults.pick(drawsOf(3, i).unit(forFault, 0)).kind]++
	}
	for kind, want := range map[faultKind]float64{faultReset: 0.1, faultEmpty: 0.3, noFault: 0.6} {
		if got := float64(counts[kind]) / n; got < want-0.015 || got > want+0.015 {
			t.Errorf("fraction of %q: got %.3f, want %.3f", faultNames[kind], got, want)
		}
	}
}

func TestMetricsAddUp(t *testing.T) {
	b := newBench(t, Config{TTFT: Constant(50 * ms), Gap: Constant(20 * ms), Slots: 1})
	first, second := &conn{}, &conn{}
	b.ask(first, 0, `{"prompt":"a b","stream":true,"max_tokens":3}`)
	b.ask(second, 0, `{"prompt":"a b c","max_tokens":2}`)
	b.until(70 * ms)
	text := string(b.k.metrics.append(nil, b.k.timing.load()))
	for _, want := range []string{
		"num_requests_running{engine=\"0\",model_name=\"sim\"} 1\n", "num_requests_waiting{engine=\"0\",model_name=\"sim\"} 1\n",
		"generation_tokens_total{engine=\"0\",model_name=\"sim\"} 2\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("in mid-run: no %q in\n%s", want, text)
		}
	}
	b.until(time.Second)
	text = string(b.k.metrics.append(nil, b.k.timing.load()))
	for _, want := range []string{
		"prompt_tokens_total{engine=\"0\",model_name=\"sim\"} 5\n",
		"generation_tokens_total{engine=\"0\",model_name=\"sim\"} 5\n",
		"request_success_total{engine=\"0\",model_name=\"sim\",finished_reason=\"length\"} 2\n",
		"time_to_first_token_seconds_sum{engine=\"0\",model_name=\"sim\"} 0.19\n",
		"time_to_first_token_seconds_count{engine=\"0\",model_name=\"sim\"} 2\n",
		"time_to_first_token_seconds_bucket{engine=\"0\",model_name=\"sim\",le=\"0.06\"} 1\n",
		"inter_token_latency_seconds_sum{engine=\"0\",model_name=\"sim\"} 0.06\n",
		"e2e_request_latency_seconds_sum{engine=\"0\",model_name=\"sim\"} 0.25\n",
		"request_queue_time_seconds_sum{engine=\"0\",model_name=\"sim\"} 0.09\n",
	} {
		if !strings.Contains(text, "\nvllm:"+want) {
			t.Errorf("after the run: no %q in\n%s", want, text)
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]Config{
		"slots": {TTFT: Constant(ms), Gap: Constant(ms), TruthInStream: true, PrefixCache: true},
		"batch": {Batching: true, Step: ms, PrefixCache: true, KVTokens: 64},
	} {
		expectNoAllocations(t, name, cfg)
	}
}

func expectNoAllocations(t *testing.T, name string, cfg Config) {
	t.Helper()
	b := newBench(t, cfg)
	quiet := &quietWire{}
	b.k.w = quiet
	request := []byte(httpRequest("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"one\ntwo"}],"stream":true,"max_tokens":32}`))
	c := &conn{}
	turn := func() {
		c.at = quiet.at
		feed(b.k, c, request)
		for at, ok := b.k.next(); ok; at, ok = b.k.next() {
			quiet.at = max(quiet.at, at)
			b.k.advance(quiet.at)
		}
		b.k.housekeep()
	}
	turn()
	if got := testing.AllocsPerRun(100, turn); got != 0 {
		t.Errorf("%s: a request of 32 chunks: got %v allocations, want 0", name, got)
	}
}

// quietWire sends into nothing.
type quietWire struct{ at int64 }

func (w *quietWire) now() int64              { return w.at }
func (w *quietWire) send(*conn, []byte) bool { return true }
func (w *quietWire) close(*conn, closing)    {}

func TestTimersComeInOrder(t *testing.T) {
	var h timers
	var all []*sequence
	for i := range 500 {
		s := &sequence{n: uint64(i), due: int64(mix(uint64(i)) % 50)}
		all = append(all, s)
		h.add(s)
	}
	for i := 0; i < len(all); i += 3 {
		h.remove(all[i])
		h.remove(all[i])
	}
	var got []*sequence
	for s, ok := h.pop(1000); ok; s, ok = h.pop(1000) {
		got = append(got, s)
	}
	if len(got) != 333 {
		t.Errorf("timers: got %d, want the 333 that were not removed", len(got))
	}
	if !slices.IsSortedFunc(got, func(a, b *sequence) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.n, b.n)) }) {
		t.Error("timers did not come by due time, then in the order they were set")
	}
}

func TestChunkIsAsLargeAsARealServers(t *testing.T) {
	b := newBench(t, Config{Model: "meta-llama/Llama-3.1-8B-Instruct"})
	c := &conn{}
	feed(b.k, c, []byte(httpRequest("/v1/chat/completions", `{"messages":[{"content":"a"}],"stream":true,"max_tokens":3}`)))
	b.until(ms)
	size := len(b.w.sent[c][1].data)
	if size < 220 || size > 280 {
		t.Errorf("one chunk with framing: got %d bytes, want about 245: %q", size, b.w.sent[c][1].data)
	}
	if bytes.Count([]byte(b.w.sent[c][0].data), []byte("data: ")) != 2 {
		t.Errorf("first send: got %q, want the role and one token", b.w.sent[c][0].data)
	}
}
