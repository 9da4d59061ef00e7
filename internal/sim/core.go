package sim

import (
	"slices"
	"strings"
	"time"
)

// core is the simulated server as a state machine over the time its wire tells. Its model runs on due times: each follows
// from the receive stamp and the draws alone, so that a late send shifts nothing that comes after it.
type core struct {
	cfg     Config
	w       wire
	truth   *truth // nil when none is written
	wall    int64  // wall-clock nanoseconds minus monotonic
	timing  timing
	stopped bool
	scan    scanner
	metrics metrics

	arrivals uint64 // completion requests so far
	active   map[*stream]struct{}

	idle    []*stream         // to be used again
	ended   []*stream         // to be handed to truth
	models  map[string]string // model names of requests, so that each is stored once
	out     []byte            // what the next send will send
	payload []byte            // one event or document being written
}

// stream is one completion request, streamed or not.
type stream struct {
	sequence
	c       *conn
	ask     ask
	chat    bool
	closing bool // the client wants the connection closed
	model   string
	fault   Fault
	strike  int // chunks after which a fault in mid-stream strikes
	canned  *canned
	recv    int64 // when the request had arrived
	stamped bool  // by the kernel's stamp
	first   int64 // when the first token was sent, or made where it is not sent by itself
	last    int64 // when the newest token was
	end     int64
	headed  bool
	status  int
	outcome string
	late    int64 // largest span from due to sent
	blocked int   // sends that the socket did not take at once
	sends   []int64
	id      []byte // X-Request-Id
	chunkID [32]byte
	created int64 // Unix seconds
	port    int
}

func newCore(cfg Config, w wire, truth *truth, wall int64) *core {
	k := &core{cfg: cfg, w: w, truth: truth, wall: wall, active: map[*stream]struct{}{}, models: map[string]string{}}
	k.timing = newTiming(cfg, k)
	began := wall
	if w != nil {
		began += w.now()
	}
	k.metrics = newMetrics(cfg, float64(began)/float64(time.Second))
	if cfg.PrefixCache {
		k.scan.chain = &chain{size: cfg.KVBlock}
	}
	return k
}

func (k *core) next() (int64, bool) { return k.timing.next() }

func (k *core) advance(now int64) { k.timing.advance(now) }

func (k *core) request(c *conn, h head, body []byte) {
	switch string(h.path) {
	case "/v1/chat/completions":
		if k.allowed(c, &h, "POST") {
			k.complete(c, &h, body, true)
		}
	case "/v1/completions":
		if k.allowed(c, &h, "POST") {
			k.complete(c, &h, body, false)
		}
	case "/v1/models":
		if k.allowed(c, &h, "GET") {
			k.payload = appendModels(k.payload[:0], k.cfg.Model)
			k.answer(c, &h, 200, "application/json", k.payload)
		}
	case "/version":
		if k.allowed(c, &h, "GET") {
			k.answer(c, &h, 200, "application/json", []byte(`{"version":"tare-sim"}`))
		}
	case "/health":
		if k.allowed(c, &h, "GET") {
			k.answer(c, &h, 200, "application/json", nil)
		}
	case "/metrics":
		if k.allowed(c, &h, "GET") {
			k.payload = k.metrics.append(k.payload[:0], k.timing.load())
			k.answer(c, &h, 200, "text/plain; version=0.0.4; charset=utf-8", k.payload)
		}
	default:
		k.fail(c, &h, 404, "there is nothing at "+string(h.path))
	}
}

func (k *core) allowed(c *conn, h *head, method string) bool {
	if string(h.method) == method {
		return true
	}
	k.fail(c, h, 405, "only "+method+" is allowed at "+string(h.path))
	return false
}

func (k *core) refuse(c *conn, r refusal) {
	k.out = appendError(k.out[:0], r.status, r.message, true)
	k.w.send(c, k.out)
	k.hangUp(c, closeDrain)
}

func (k *core) proceed(c *conn) { k.w.send(c, []byte("HTTP/1.1 100 Continue\r\n\r\n")) }

// fail answers with an error in the protocol's form.
func (k *core) fail(c *conn, h *head, status int, message string) {
	k.out = appendError(k.out[:0], status, message, h.close)
	k.w.send(c, k.out)
	if h.close {
		k.hangUp(c, closeWhole)
	}
}

// answer sends a whole reply.
func (k *core) answer(c *conn, h *head, status int, kind string, body []byte) {
	k.out = appendHead(k.out[:0], status, kind, len(body), h.id, h.close)
	k.out = append(k.out, body...)
	k.w.send(c, k.out)
	if h.close {
		k.hangUp(c, closeWhole)
	}
}

// hangUp closes c from our side. A request in service on it must have ended before.
func (k *core) hangUp(c *conn, how closing) {
	if s := c.s; s != nil {
		k.leave(s, k.w.now(), "refused")
	}
	c.gone = true
	k.w.close(c, how)
}

// complete takes a completion request up.
func (k *core) complete(c *conn, h *head, body []byte, chat bool) {
	n := k.arrivals
	k.arrivals++
	want, err := k.scan.scan(body, chat)
	fault, fromPrompt := Fault{}, want.marker != nil
	if err == nil && fromPrompt {
		fault, err = parseMarker(string(want.marker))
	}
	s := k.open(c, h, n)
	if err != nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		k.reject(s, h, 400, message)
		return
	}
	if !fromPrompt {
		fault = k.cfg.Faults.pick(s.draws.unit(forFault, 0))
	}
	k.settle(s, want, chat, fault)
	switch {
	case fault.kind == faultStatus:
		k.reject(s, h, fault.status, "injected failure")
	case fault.kind == faultSilent:
	case fault.kind == faultNoToken:
		if s.ask.stream {
			k.send(s, k.openStream(k.out[:0], s, k.w.now()))
		}
	case fault.kind == faultHTML:
		k.astray(s, h, appendPage(k.out[:0], h))
	case fault.kind == faultRedirect:
		s.status = 307
		k.astray(s, h, appendRedirect(k.out[:0], h))
	default:
		s.hold = int64(fault.delay)
		if r := k.timing.arrive(&s.sequence); r.status != 0 {
			k.reject(s, h, r.status, r.message)
		}
	}
}

// open makes the stream of a new request, from the pool where it can.
func (k *core) open(c *conn, h *head, n uint64) *stream {
	var s *stream
	if last := len(k.idle) - 1; last >= 0 {
		s, k.idle = k.idle[last], k.idle[:last]
		*s = stream{sends: s.sends[:0], id: s.id[:0], sequence: sequence{
			text: chain{names: s.text.names[:0]}, batched: batched{held: s.batched.held[:0]},
		}}
	} else {
		s = &stream{}
	}
	s.owner, s.c, s.n, s.at, s.recv, s.stamped, s.port = s, c, n, c.at, c.at, c.stamped, c.port
	s.draws = drawsOf(k.cfg.Seed, n)
	s.id = append(s.id, h.id...)
	s.closing = h.close
	s.status = 200
	c.s, c.busy = s, true
	k.active[s] = struct{}{}
	return s
}

// settle decides what will happen to a request, apart from when.
func (k *core) settle(s *stream, want ask, chat bool, fault Fault) {
	s.ask, s.chat, s.fault = want, chat, fault
	if k.cfg.PrefixCache {
		s.text.copy(k.scan.chain)
	}
	s.prompt = want.prompt
	s.model = k.name(want.model)
	s.ask.model, s.ask.marker = nil, nil
	s.max = want.tokens
	if s.max == 0 {
		s.max = defaultTokens
	}
	chunks := (s.max + k.cfg.TokensPerChunk - 1) / k.cfg.TokensPerChunk
	s.strike = 1 + int(s.draws.bits(forStrike, 0)%uint64(max(chunks-1, 1)))
	s.created = (s.recv + k.wall) / int64(time.Second)
	for i := range s.chunkID {
		s.chunkID[i] = "0123456789abcdef"[s.draws.bits(forID, uint64(i/16))>>(i%16*4)&15]
	}
}

// name stores each model name once.
func (k *core) name(raw []byte) string {
	if raw == nil {
		return k.cfg.Model
	}
	name, ok := k.models[string(raw)]
	if !ok {
		name = string(raw)
		if len(k.models) < 1024 {
			k.models[name] = name
		}
	}
	return name
}

// reject answers a request that gets no service.
func (k *core) reject(s *stream, h *head, status int, message string) {
	s.status = status
	c := s.c
	k.out = appendError(k.out[:0], status, message, h.close)
	at := k.w.now()
	k.w.send(c, k.out)
	k.leave(s, at, "http_error")
	if h.close {
		k.hangUp(c, closeWhole)
	}
}

// astray answers with something else than a completion, without a slot.
func (k *core) astray(s *stream, h *head, reply []byte) {
	c := s.c
	k.out = reply
	at := k.w.now()
	k.w.send(c, k.out)
	k.leave(s, at, s.fault.String())
	if h.close {
		k.hangUp(c, closeWhole)
	}
}

// began sends what goes out before the first token.
func (k *core) began(q *sequence) {
	s := q.owner
	k.metrics.cacheQueries += uint64(s.prompt)
	k.metrics.cacheHits += uint64(s.cached)
	if s.hold > 0 {
		k.send(s, append(k.out[:0], "HTTP/1.1 200 OK\r\n"...))
	} else if k.cfg.RoleEarly {
		k.head(s)
	}
}

// resumed goes on after slow headers.
func (k *core) resumed(q *sequence) { k.head(q.owner) }

// head sends the rest of the header block, and the role.
func (k *core) head(s *stream) {
	if s.ask.stream {
		k.out = k.openStream(k.out[:0], s, k.w.now())
		k.send(s, k.out)
	}
}

// send hands b to the socket; it notes nothing but whether the socket was full.
func (k *core) send(s *stream, b []byte) {
	if !k.w.send(s.c, b) {
		s.blocked++
	}
	k.out = b
}

// token makes the next chunk of a request, and sends it if it is streamed.
func (k *core) token(q *sequence, n int) {
	s, now := q.owner, k.w.now()
	s.late = max(s.late, now-s.due)
	if s.chunks == 1 {
		k.metrics.promptTokens += uint64(s.prompt)
	}
	if s.fault.kind == faultEmpty {
		s.tokens, s.chunks = 0, 0
		k.finish(s, now)
		return
	}
	k.count(s, n, now)
	k.out = k.out[:0]
	if s.ask.stream {
		s.sends = append(s.sends, now)
		if !s.headed {
			k.out = k.openStream(k.out, s, now)
		}
		k.out = k.appendTokens(k.out, s, n, now)
	}
	if s.chunks == s.strike && k.struck(s, now) {
		return
	}
	if s.tokens == s.max {
		k.finish(s, now)
	} else if s.ask.stream {
		k.send(s, k.out)
	}
}

// count enters n new tokens into the facts of s and of the server.
func (k *core) count(s *stream, n int, now int64) {
	if s.chunks == 1 {
		s.first = now
		k.metrics.ttft.observe(now - s.recv)
		k.metrics.queued.observe(s.start - s.recv)
	} else {
		k.metrics.itl.observe(now - s.last)
	}
	s.last = now
	k.metrics.generatedTokens += uint64(n)
}

// finish sends the end of a reply that ends well.
func (k *core) finish(s *stream, now int64) {
	if s.ask.stream {
		if !s.headed {
			k.out = k.openStream(k.out[:0], s, now)
		}
		k.out = k.appendStreamEnd(k.out, s, now)
	} else {
		s.sends = append(s.sends, now)
		k.out = k.appendDocument(k.out[:0], s, now)
	}
	k.send(s, k.out)
	outcome := "completed"
	if s.tokens == 0 {
		outcome = "empty"
		s.sends = s.sends[:0]
	}
	how, hang := closeWhole, s.closing || s.fault.kind == faultCloseAfterReply
	k.over(s, now, outcome, how, hang)
}

// over ends a request that was sent to its end, and turns to the connection's next.
func (k *core) over(s *stream, now int64, outcome string, how closing, hang bool) {
	c := s.c
	k.leave(s, now, outcome)
	if hang {
		c.gone = true
		k.w.close(c, how)
		return
	}
	resume(k, c)
}

// struck lets a fault strike in mid-stream. It reports false when s has none that does.
func (k *core) struck(s *stream, now int64) bool {
	outcome, how, hang := "", closeWhole, true
	switch s.fault.kind {
	case faultStreamError:
		outcome, hang = "stream_error", s.closing
		k.out = k.appendStreamError(k.out, s)
	case faultTruncate:
		outcome = "truncated"
		k.out = k.appendPart(k.out, s, now)
		if s.ask.stream {
			k.out = append(k.out, "0\r\n\r\n"...)
		}
	case faultCut:
		outcome = "truncated"
		k.out = k.appendPart(k.out, s, now)
	case faultReset:
		outcome, how = "reset", closeReset
		k.out = k.appendPart(k.out, s, now)
	case faultStall:
		if s.ask.stream {
			k.send(s, k.out)
		}
		s.phase = phaseStalled
		return true
	default:
		return false
	}
	k.send(s, k.out)
	k.over(s, now, outcome, how, hang)
	return true
}

// closed ends the request of a client that has gone.
func (k *core) closed(c *conn) {
	c.gone = true
	s := c.s
	if s == nil {
		return
	}
	outcome := "disconnected"
	hung := s.fault.kind == faultSilent || s.fault.kind == faultNoToken
	if hung || s.fault.kind == faultStall && s.chunks >= s.strike {
		outcome = "stalled"
	}
	k.leave(s, k.w.now(), outcome)
}

// leave takes s out of the server: its place in the model of time, its connection. at is when its last byte was sent.
func (k *core) leave(s *stream, at int64, outcome string) {
	s.end, s.outcome = at, outcome
	delete(k.active, s)
	s.c.s, s.c.busy = nil, false
	s.c = nil
	k.metrics.ended(s)
	if !k.stopped {
		k.timing.leave(&s.sequence, s.vacated())
	}
	k.ended = append(k.ended, s)
	if len(k.ended) >= batchSize {
		k.record()
	}
}

// vacated is when the place of s is free. By the model that is the due time of its last chunk, however late that was sent; a
// client that leaves frees it when it has left.
func (s *stream) vacated() int64 {
	switch s.outcome {
	case "disconnected", "stalled", "refused":
		return s.end
	}
	return s.due
}

// record hands ended requests to the truth, and takes the memory of earlier ones back.
func (k *core) record() {
	if k.truth == nil {
		k.idle = append(k.idle, k.ended...)
		k.ended = k.ended[:0]
		return
	}
	if len(k.ended) == 0 {
		return
	}
	k.ended = k.truth.exchange(k.ended)
	k.idle = append(k.idle, k.ended...)
	k.ended = k.ended[:0]
}

func (k *core) housekeep() { k.record() }

// stop records what is still in service or waiting.
func (k *core) stop() {
	k.stopped = true
	rest := make([]*stream, 0, len(k.active))
	for s := range k.active {
		rest = append(rest, s)
	}
	slices.SortFunc(rest, func(a, b *stream) int { return int(int64(a.n) - int64(b.n)) })
	now := k.w.now()
	for _, s := range rest {
		s.c.gone = true
		k.leave(s, now, "shutdown")
	}
	k.record()
}
