package sim

import (
	"net/http"
	"strconv"
)

// vocabulary is what the simulated model says. Every token is one word with the space before it.
var vocabulary = [...]string{" the", " answer", " to", " this", " question", " is", " found", " where", " words", " follow",
	" each", " other", " in", " time", " and", " measure"}

// appendHead writes the header block of a reply of known length.
func appendHead(b []byte, status int, kind string, length int, id []byte, closing bool) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	return appendFields(b, kind, length, id, closing)
}

func appendFields(b []byte, kind string, length int, id []byte, closing bool) []byte {
	b = append(b, "\r\nserver: tare-sim\r\ncontent-type: "...)
	b = append(b, kind...)
	b = append(b, "\r\ncontent-length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	return appendHeadEnd(b, id, closing)
}

func appendHeadEnd(b []byte, id []byte, closing bool) []byte {
	if len(id) > 0 {
		b = append(b, "\r\nx-request-id: "...)
		b = append(b, id...)
	}
	if closing {
		return append(b, "\r\nconnection: close\r\n\r\n"...)
	}
	return append(b, "\r\nconnection: keep-alive\r\n\r\n"...)
}

// appendError writes a whole error reply.
func appendError(b []byte, status int, message string, closing bool) []byte {
	body := appendErrorObject(nil, status, message)
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	if status == 429 || status == 503 {
		b = append(b, "\r\nretry-after: 1"...)
	}
	b = appendFields(b, "application/json", len(body), nil, closing)
	return append(b, body...)
}

// appendPage writes what a login page in front of a server says.
func appendPage(b []byte, h *head) []byte {
	const page = "<!DOCTYPE html>\n<html><title>Sign in</title><p>Sign in to go on.</html>\n"
	return append(appendHead(b, 200, "text/html; charset=utf-8", len(page), h.id, h.close), page...)
}

// appendRedirect writes a reply that sends the client elsewhere.
func appendRedirect(b []byte, h *head) []byte {
	b = append(b, "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere"...)
	return appendFields(b, "text/plain", 0, h.id, h.close)
}

func appendErrorObject(b []byte, status int, message string) []byte {
	b = append(b, `{"error":{"message":`...)
	b = appendString(b, message)
	b = append(b, `,"type":"`...)
	b = append(b, errorType(status)...)
	b = append(b, `","param":null,"code":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	return append(b, "}}"...)
}

func errorType(status int) string {
	switch {
	case status == 404:
		return "NotFoundError"
	case status == 429:
		return "RateLimitError"
	case status >= 500:
		return "InternalServerError"
	}
	return "BadRequestError"
}

// appendString writes s as a JSON string; what is not ASCII text is left out, since messages are ours.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case ' ' <= c && c < 0x7f:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func appendModels(b []byte, model string) []byte {
	b = append(b, `{"object":"list","data":[{"id":`...)
	b = appendString(b, model)
	b = append(b, `,"object":"model","created":0,"owned_by":"tare-sim","root":`...)
	b = appendString(b, model)
	return append(b, `,"parent":null,"max_model_len":1048576}]}`...)
}

// openStream writes what stands before the first token: the header block, and in a chat the role.
func (k *core) openStream(b []byte, s *stream, now int64) []byte {
	s.headed = true
	if s.fault.kind != faultSlowHeaders {
		b = append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = append(b, "server: tare-sim\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked"...)
	b = appendHeadEnd(b, s.id, s.closing)
	if !s.chat {
		return b
	}
	k.openEvent(s)
	k.payload = append(k.payload, `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	return k.closeEvent(b, s, s.ask.continuous, now)
}

// appendTokens writes the chunk with the newest n tokens of s.
func (k *core) appendTokens(b []byte, s *stream, n int, now int64) []byte {
	k.openEvent(s)
	if s.chat {
		k.payload = append(k.payload, `{"index":0,"delta":{"content":"`...)
	} else {
		k.payload = append(k.payload, `{"index":0,"text":"`...)
	}
	k.payload = appendText(k.payload, s, s.tokens-n, s.tokens)
	if s.chat {
		k.payload = append(k.payload, `"},"logprobs":null,"finish_reason":null,"token_ids":null}]`...)
	} else {
		k.payload = append(k.payload, `","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":null}]`...)
	}
	return k.closeEvent(b, s, s.ask.continuous, now)
}

// appendText writes the words of the tokens from and up to the given numbers.
func appendText(b []byte, s *stream, from, to int) []byte {
	for i := from; i < to; i++ {
		b = append(b, vocabulary[s.draws.word(i)]...)
	}
	return b
}

// appendStreamEnd writes the finish chunk, the usage chunk where it was asked for, the end marker and the last HTTP chunk.
func (k *core) appendStreamEnd(b []byte, s *stream, now int64) []byte {
	k.openEvent(s)
	if s.chat {
		k.payload = append(k.payload, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	} else {
		k.payload = append(k.payload, `{"index":0,"text":"","logprobs":null,"finish_reason":"`...)
	}
	k.payload = append(k.payload, s.finishReason()...)
	k.payload = append(k.payload, `","stop_reason":null}]`...)
	b = k.closeEvent(b, s, s.ask.continuous, now)
	if s.ask.usage {
		k.openEvent(s)
		k.payload = append(k.payload, ']')
		b = k.closeEvent(b, s, true, now)
	}
	b = appendHTTPChunk(b, []byte("data: [DONE]\n\n"))
	return append(b, "0\r\n\r\n"...)
}

func (s *stream) finishReason() string {
	if s.tokens == 0 {
		return "stop"
	}
	return "length"
}

// openEvent starts a server-sent event up to the bracket of its choices.
func (k *core) openEvent(s *stream) {
	k.payload = append(k.payload[:0], "data: "...)
	object := "text_completion"
	if s.chat {
		object = "chat.completion.chunk"
	}
	k.openObject(s, object)
}

func (k *core) openObject(s *stream, object string) {
	p := append(k.payload, `{"id":"`...)
	if s.chat {
		p = append(p, "chat"...)
	}
	p = append(p, "cmpl-"...)
	p = append(p, s.chunkID[:]...)
	p = append(p, `","object":"`...)
	p = append(p, object...)
	p = append(p, `","created":`...)
	p = strconv.AppendInt(p, s.created, 10)
	p = append(p, `,"model":"`...)
	p = append(p, s.model...)
	k.payload = append(p, `","choices":[`...)
}

// closeEvent ends the event and appends it to b as one HTTP chunk.
func (k *core) closeEvent(b []byte, s *stream, usage bool, now int64) []byte {
	k.closeObject(s, usage, now)
	k.payload = append(k.payload, "\n\n"...)
	return appendHTTPChunk(b, k.payload)
}

func (k *core) closeObject(s *stream, usage bool, now int64) {
	p := k.payload
	if usage {
		p = append(p, `,"usage":{"prompt_tokens":`...)
		p = strconv.AppendInt(p, int64(s.ask.prompt), 10)
		p = append(p, `,"total_tokens":`...)
		p = strconv.AppendInt(p, int64(s.ask.prompt+s.tokens), 10)
		p = append(p, `,"completion_tokens":`...)
		p = strconv.AppendInt(p, int64(s.tokens), 10)
		p = append(p, `,"prompt_tokens_details":{"cached_tokens":`...)
		p = strconv.AppendInt(p, int64(s.cached), 10)
		p = append(p, "}}"...)
	}
	if k.cfg.TruthInStream {
		p = append(p, `,"sim":{"recv_ns":`...)
		p = strconv.AppendInt(p, s.recv, 10)
		p = append(p, `,"queued_ns":`...)
		p = strconv.AppendInt(p, s.start-s.recv, 10)
		p = append(p, `,"send_ns":`...)
		p = strconv.AppendInt(p, now, 10)
		p = append(p, '}')
	}
	k.payload = append(p, '}')
}

func appendHTTPChunk(b, payload []byte) []byte {
	b = strconv.AppendUint(b, uint64(len(payload)), 16)
	b = append(b, "\r\n"...)
	b = append(b, payload...)
	return append(b, "\r\n"...)
}

// appendDocument writes a whole reply that is not streamed.
func (k *core) appendDocument(b []byte, s *stream, now int64) []byte {
	k.payload = k.payload[:0]
	if s.chat {
		k.openObject(s, "chat.completion")
		k.payload = append(k.payload, `{"index":0,"message":{"role":"assistant","content":"`...)
		k.payload = appendText(k.payload, s, 0, s.tokens)
		k.payload = append(k.payload, `","refusal":null},"logprobs":null,"finish_reason":"`...)
	} else {
		k.openObject(s, "text_completion")
		k.payload = append(k.payload, `{"index":0,"text":"`...)
		k.payload = appendText(k.payload, s, 0, s.tokens)
		k.payload = append(k.payload, `","logprobs":null,"finish_reason":"`...)
	}
	k.payload = append(k.payload, s.finishReason()...)
	k.payload = append(k.payload, `","stop_reason":null}]`...)
	k.closeObject(s, true, now)
	return k.appendWhole(b, s)
}

// appendWhole writes the payload as a reply of known length.
func (k *core) appendWhole(b []byte, s *stream) []byte {
	if s.fault.kind == faultSlowHeaders {
		b = append(b, "server: tare-sim\r\ncontent-type: application/json\r\ncontent-length: "...)
		b = strconv.AppendInt(b, int64(len(k.payload)), 10)
		b = appendHeadEnd(b, s.id, s.closing)
	} else {
		b = appendHead(b, 200, "application/json", len(k.payload), s.id, s.closing)
	}
	return append(b, k.payload...)
}

// appendPart writes what a reply that breaks off has beyond its chunks: half of the document when it is not streamed.
func (k *core) appendPart(b []byte, s *stream, now int64) []byte {
	if s.ask.stream {
		return b
	}
	b = k.appendDocument(b, s, now)
	return b[:len(b)-len(k.payload)/2]
}

// appendStreamError writes an error object where a chunk was to come, or instead of the document.
func (k *core) appendStreamError(b []byte, s *stream) []byte {
	if !s.ask.stream {
		k.payload = appendErrorObject(k.payload[:0], 500, "injected failure")
		return k.appendWhole(b, s)
	}
	k.payload = appendErrorObject(append(k.payload[:0], "data: "...), 500, "injected failure")
	k.payload = append(k.payload, "\n\n"...)
	b = appendHTTPChunk(b, k.payload)
	b = appendHTTPChunk(b, []byte("data: [DONE]\n\n"))
	return append(b, "0\r\n\r\n"...)
}
