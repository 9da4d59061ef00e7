//go:build linux

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

const stream = `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}

data: {"choices":[{"delta":{"content":"one"}}]}

data: {"choices":[{"delta":{"content": "two"}}]}

data: {"choices":[{"delta":{},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}

`

func TestEventsWithTextAreTokens(t *testing.T) {
	for _, test := range []struct {
		name, body string
		status     int
		tokens     int32
		ok         bool
	}{
		{"whole", stream + "data: [DONE]\n\n", 200, 2, true},
		{"cut", stream, 200, 2, false},
		{"refused", "data: [DONE]\n\n", 503, 0, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		}))
		for _, decode := range []bool{false, true} {
			c := newClient(options{url: server.URL, tokens: 2, conns: 1, json: decode})
			r := reply{due: time.Millisecond}
			c.send(context.Background(), time.Now(), &r)
			if r.tokens != test.tokens || r.ok != test.ok {
				t.Errorf("%s, decode %v: got %d tokens, ok %v; want %d, %v", test.name, decode, r.tokens, r.ok, test.tokens, test.ok)
			}
			if test.ok && !(r.sent <= r.first && r.first <= r.last && r.last <= r.end) {
				t.Errorf("%s: got moments out of order: %+v", test.name, r)
			}
		}
		server.Close()
	}
}

func TestArrivalsKeepTheirRate(t *testing.T) {
	even := arrivals(options{rate: 1000, duration: 2 * time.Second})
	if len(even) != 2000 || even[1999] != 1999*time.Millisecond {
		t.Errorf("constant: got %d arrivals, the last at %v; want 2000, 1.999s", len(even), even[len(even)-1])
	}
	poisson := arrivals(options{rate: 1000, duration: 20 * time.Second, poisson: true, seed: 3})
	if n := len(poisson); n < 19400 || n > 20600 {
		t.Errorf("poisson: got %d arrivals, want 20000 ± 600", n)
	}
	if !slices.IsSorted(poisson) {
		t.Error("poisson: got arrivals out of order")
	}
}

func TestSummaryCountsTheSteadyWindowOnly(t *testing.T) {
	ms := time.Millisecond
	l := load{
		planned: 4, from: 200 * ms, to: 1000 * ms,
		after: usage{cpu: 8 * ms, objects: 80},
		replies: []reply{
			{due: 10 * ms, sent: 11 * ms, first: 12 * ms, last: 13 * ms, end: 14 * ms, tokens: 3, ok: true},
			{due: 300 * ms, sent: 301 * ms, first: 306 * ms, last: 308 * ms, end: 309 * ms, tokens: 3, ok: true},
			{due: 400 * ms, sent: 404 * ms},
			{due: 990 * ms, sent: 991 * ms, first: 1001 * ms, last: 1002 * ms, end: 1003 * ms, tokens: 3, ok: true},
		},
	}
	s := summarize(l, options{rate: 4})
	if s.RatePS != 1.25 || s.TokensPS != 3.75 || s.CPUUs != 8000 || s.Allocs != 80 || s.Failed != 1 {
		t.Errorf("got %+v, want 1.25 req/s, 3.75 tokens/s, 8000 µs and 80 objects per request, 1 failed", s)
	}
	if s.SlipMs.N != 3 || s.SlipMs.Max != 4 || s.TTFTMs.N != 2 || s.TTFTMs.P50 != 10 {
		t.Errorf("got slip %+v and TTFT %+v, want 3 slips up to 4 ms and 2 TTFTs", *s.SlipMs, *s.TTFTMs)
	}
}
