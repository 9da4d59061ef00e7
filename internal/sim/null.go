package sim

import (
	"bytes"
	"slices"
	"time"
)

// null is the fastest server there is: a reply is a copy of bytes made before. It reads no more of a request than it
// must, and knows no faults, no slots and no truth.
type null struct {
	ttft, gap int64 // nanoseconds
	model     string
	w         wire
	timers    timers
	idle      []*stream
	replies   map[nullKey]*canned
	maker     *core // writes replies
	last      *canned
	lastKey   nullKey
	out       []byte
}

// nullKey is all that a reply depends on.
type nullKey struct {
	chat, stream, usage bool
	tokens              int
}

// canned is a finished reply.
type canned struct {
	whole []byte
	ends  []int // where each send ends that is separate when there is a gap
}

// nullReplies is how many different replies are kept.
const nullReplies = 256

func newNull(cfg Config, w wire) *null {
	return &null{
		ttft:    cfg.TTFT.at(0.5),
		gap:     cfg.Gap.at(0.5),
		model:   cfg.Model,
		w:       w,
		replies: map[nullKey]*canned{},
		maker:   newCore(Config{Model: cfg.Model, TokensPerChunk: 1}, nil, nil, 0),
	}
}

func (k *null) next() (int64, bool) { return k.timers.next() }

func (k *null) advance(now int64) {
	for range advanceAtMost {
		s, ok := k.timers.pop(now)
		if !ok {
			return
		}
		k.play(s.owner)
	}
}

func (k *null) request(c *conn, h head, body []byte) {
	switch string(h.path) {
	case "/v1/chat/completions":
		k.complete(c, &h, body, true)
	case "/v1/completions":
		k.complete(c, &h, body, false)
	case "/v1/models":
		body := appendModels(nil, k.model)
		k.send(c, &h, append(appendHead(k.out[:0], 200, "application/json", len(body), nil, h.close), body...))
	case "/health":
		k.send(c, &h, appendHead(k.out[:0], 200, "application/json", 0, nil, h.close))
	default:
		k.send(c, &h, appendError(k.out[:0], 404, "there is nothing at "+string(h.path), h.close))
	}
}

func (k *null) send(c *conn, h *head, b []byte) {
	k.w.send(c, b)
	k.out = b
	if h.close {
		k.hangUp(c, closeWhole)
	}
}

func (k *null) hangUp(c *conn, how closing) {
	k.forget(c)
	c.gone = true
	k.w.close(c, how)
}

func (k *null) refuse(c *conn, r refusal) {
	k.w.send(c, appendError(nil, r.status, r.message, true))
	k.hangUp(c, closeDrain)
}

func (k *null) proceed(c *conn) { k.w.send(c, []byte("HTTP/1.1 100 Continue\r\n\r\n")) }

func (k *null) complete(c *conn, h *head, body []byte, chat bool) {
	reply := k.reply(glance(body, chat))
	if k.ttft == 0 && (k.gap == 0 || len(reply.ends) == 1) {
		k.w.send(c, reply.whole)
		if h.close {
			k.hangUp(c, closeWhole)
		}
		return
	}
	s := k.open(c)
	s.canned, s.closing = reply, h.close
	s.due = c.at + k.ttft
	k.timers.add(&s.sequence)
}

func (k *null) open(c *conn) *stream {
	s := &stream{}
	if last := len(k.idle) - 1; last >= 0 {
		s, k.idle = k.idle[last], k.idle[:last]
		*s = stream{}
	}
	s.owner, s.c = s, c
	c.s, c.busy = s, true
	return s
}

// play sends the next part of a reply: all that is left when there is no gap.
func (k *null) play(s *stream) {
	from, to := 0, len(s.canned.whole)
	if s.chunks > 0 {
		from = s.canned.ends[s.chunks-1]
	}
	if k.gap > 0 {
		to = s.canned.ends[s.chunks]
	}
	k.w.send(s.c, s.canned.whole[from:to])
	s.chunks++
	if to < len(s.canned.whole) {
		s.due += k.gap
		k.timers.add(&s.sequence)
		return
	}
	c, hang := s.c, s.closing
	k.forget(c)
	if hang {
		k.hangUp(c, closeWhole)
		return
	}
	resume(k, c)
}

// forget ends the reply that c is owed, if there is one.
func (k *null) forget(c *conn) {
	s := c.s
	if s == nil {
		return
	}
	k.timers.remove(&s.sequence)
	c.s, c.busy = nil, false
	s.c = nil
	k.idle = append(k.idle, s)
}

func (k *null) closed(c *conn) {
	c.gone = true
	k.forget(c)
}

func (k *null) housekeep() {}
func (k *null) stop()      {}

// glance finds what a reply depends on without reading the body as JSON. A quoted name that stands in a text is spelled
// with \" there, and so not taken for a key.
func glance(body []byte, chat bool) nullKey {
	k := nullKey{chat: chat, tokens: defaultTokens}
	k.stream = value(body, `"stream"`) == 't'
	k.usage = k.stream && value(body, `"include_usage"`) == 't'
	if n := digits(body, `"max_tokens"`); n > 0 {
		k.tokens = n
	}
	if n := digits(body, `"max_completion_tokens"`); n > 0 {
		k.tokens = n
	}
	return k
}

// after is what follows a key and its colon, white space left out.
func after(body []byte, key string) []byte {
	i := bytes.LastIndex(body, []byte(key))
	if i < 0 {
		return nil
	}
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(body[i+len(key):], " \t\r\n"), []byte(":"))
	if !ok {
		return nil
	}
	return bytes.TrimLeft(rest, " \t\r\n")
}

func value(body []byte, key string) byte {
	if rest := after(body, key); len(rest) > 0 {
		return rest[0]
	}
	return 0
}

func digits(body []byte, key string) (n int) {
	for _, c := range after(body, key) {
		if c < '0' || c > '9' || n > maxTokens/10 {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// reply is the finished reply for key, made when it is first asked for.
func (k *null) reply(key nullKey) *canned {
	if k.last != nil && key == k.lastKey {
		return k.last
	}
	r, ok := k.replies[key]
	if !ok {
		if len(k.replies) == nullReplies {
			clear(k.replies)
		}
		r = k.make(key)
		k.replies[key] = r
	}
	k.last, k.lastKey = r, key
	return r
}

func (k *null) make(key nullKey) *canned {
	s := &stream{chat: key.chat, status: 200, model: k.model, sequence: sequence{max: key.tokens, draws: drawsOf(0, 0)}}
	s.ask.stream, s.ask.usage = key.stream, key.usage
	s.created = int64(10 * 365 * 24 * time.Hour / time.Second)
	for i := range s.chunkID {
		s.chunkID[i] = '0'
	}
	r := &canned{}
	if !key.stream {
		s.tokens = s.max
		r.whole = k.maker.appendDocument(nil, s, 0)
		r.ends = []int{len(r.whole)}
		return r
	}
	r.whole = k.maker.openStream(nil, s, 0)
	for s.tokens < s.max {
		s.tokens++
		r.whole = k.maker.appendTokens(r.whole, s, 1, 0)
		r.ends = append(r.ends, len(r.whole))
	}
	r.whole = k.maker.appendStreamEnd(r.whole, s, 0)
	r.ends[len(r.ends)-1] = len(r.whole)
	r.whole = slices.Clip(r.whole)
	return r
}
