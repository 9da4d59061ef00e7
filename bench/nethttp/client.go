//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// client sends one prepared request over and over.
type client struct {
	http    *http.Client
	url     string
	body    []byte
	decode  bool
	readers sync.Pool // of *bufio.Reader
}

// reply is what was seen of one request. Offsets are from the start of the run.
type reply struct {
	due, sent, first, last, end time.Duration
	tokens                      int32
	ok                          bool
}

func newClient(o options) *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConns:        o.conns,
			MaxIdleConnsPerHost: o.conns,
			IdleConnTimeout:     4 * time.Second,
			DisableCompression:  true,
		}},
		url: o.url + "/v1/chat/completions",
		body: fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"Count to ten."}],"stream":true,`+
			`"stream_options":{"include_usage":true},"max_tokens":%d}`, o.tokens),
		decode:  o.json,
		readers: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4096) }},
	}
}

// send makes one request and fills in r, whose due time is set.
func (c *client) send(ctx context.Context, start time.Time, r *reply) {
	defer func() { r.end = time.Since(start) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	r.sent = time.Since(start)
	resp, err := c.http.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	lines := c.readers.Get().(*bufio.Reader)
	defer c.readers.Put(lines)
	lines.Reset(resp.Body)
	done := c.read(lines, start, r)
	r.ok = done && resp.StatusCode == http.StatusOK && r.tokens > 0
}

var (
	dataPrefix = []byte("data: ")
	endMarker  = []byte("[DONE]")
	contentKey = []byte(`"content":"`)
	spacedKey  = []byte(`"content": "`)
)

// read scans the events of a reply to the end of its body; done reports that the end marker came.
func (c *client) read(lines *bufio.Reader, start time.Time, r *reply) (done bool) {
	for {
		line, err := lines.ReadSlice('\n')
		if data, ok := bytes.CutPrefix(line, dataPrefix); ok {
			switch {
			case bytes.HasPrefix(data, endMarker):
				done = true
			case c.token(data):
				r.last = time.Since(start)
				if r.tokens == 0 {
					r.first = r.last
				}
				r.tokens++
			}
		}
		if err != nil {
			return done && err == io.EOF
		}
	}
}

// token reports whether an event carries text.
func (c *client) token(data []byte) bool {
	if !c.decode {
		return hasText(data, contentKey) || hasText(data, spacedKey)
	}
	var event struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
			FinishReason *string `json:"finish_reason"`
		} `json:"choices"`
		Usage *struct {
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
	return json.Unmarshal(data, &event) == nil && len(event.Choices) > 0 && event.Choices[0].Delta.Content != ""
}

// hasText reports whether key is followed by a string that is not empty.
func hasText(data, key []byte) bool {
	i := bytes.Index(data, key)
	return i >= 0 && i+len(key) < len(data) && data[i+len(key)] != '"'
}
