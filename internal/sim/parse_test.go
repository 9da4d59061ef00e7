package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestPromptTokensAreWords(t *testing.T) {
	cases := []struct {
		body   string
		chat   bool
		tokens int
	}{
		{`{"prompt":" one  two\tthree\nfour "}`, false, 4},
		{`{"prompt":"\u00e9t\u00e9\u2003deux \ud83d\ude00 \"q\" a\\b"}`, false, 5},
		{`{"prompt":""}`, false, 0},
		{`{"prompt":["one two"]}`, false, 2},
		{`{"prompt":[[5,6,7]]}`, false, 3},
		{`{"prompt":[0,1,2]}`, false, 3},
		{`{"prompt":"a","prompt":"a b c"}`, false, 3},
		{`{"messages":[{"content":"a b"},{"content":null},{"content":[{"type":"image_url","image_url":{"url":"x y"}},{"type":"text","text":"c d e"}]}]}`, true, 5},
		{`{"messages":[{"role":"user","tool_calls":[{"content":"not this"}],"c\u006fntent":"a"}]}`, true, 1},
		{` { "messages" : [ { "content" : "a" } ] , "x" : [ 1.5e3 , -0 , { } , [ ] , true , false , null ] } `, true, 1},
	}
	var s scanner
	for _, c := range cases {
		got, err := s.scan([]byte(c.body), c.chat)
		if err != nil || got.prompt != c.tokens {
			t.Errorf("%s: got %d tokens, error %v; want %d", c.body, got.prompt, err, c.tokens)
		}
	}
}

func TestFieldsOfARequestAreRead(t *testing.T) {
	var s scanner
	got, err := s.scan([]byte(`{"max_tokens":9,"max_completion_tokens":7,"model":"a/b","n":1,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"prompt":"x [[sim:stall]] y"}`), false)
	if err != nil || got.tokens != 7 || string(got.model) != "a/b" || !got.stream || !got.usage || !got.continuous || string(got.marker) != "stall" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = s.scan([]byte(`{"max_completion_tokens":7,"max_tokens":9,"model":null,"stream":null,"prompt":"[[sim:"}`), false)
	if err != nil || got.tokens != 7 || got.model != nil || got.stream || got.marker != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFaultyBodiesAreRefusedWithTheReason(t *testing.T) {
	cases := []struct {
		body string
		chat bool
		want error
	}{
		{``, true, errNotJSON}, {`[]`, true, errNotJSON}, {`{"messages":[]} x`, true, errNotJSON}, {`{"prompt":"a",}`, false, errNotJSON},
		{`{"prompt":"a` + "\n" + `"}`, false, errNotJSON}, {`{"prompt":"\x"}`, false, errNotJSON}, {`{"x":01,"prompt":"a"}`, false, errNotJSON},
		{`{"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, true, errNotJSON},
		{`{}`, true, errMessages}, {`{"messages":"a"}`, true, errMessages}, {`{"messages":["a"]}`, true, errMessages}, {`{"messages":[{"content":5}]}`, true, errMessages},
		{`{"prompt":{}}`, false, errPrompt}, {`{"prompt":[]}`, false, errPrompt}, {`{"prompt":["a",1]}`, false, errPrompt}, {`{"prompt":null}`, false, errPrompt},
		{`{"prompt":"a","max_tokens":1.5}`, false, errTokens}, {`{"prompt":"a","max_tokens":-1}`, false, errTokens}, {`{"prompt":"a","max_tokens":99999999999999999999}`, false, errTokens},
		{`{"prompt":"a","stream":1}`, false, errStream}, {`{"prompt":"a","stream_options":[]}`, false, errStream}, {`{"prompt":"a","n":2}`, false, errChoices}, {`{"prompt":"a","model":1}`, false, errModel},
	}
	var s scanner
	for _, c := range cases {
		if _, err := s.scan([]byte(c.body), c.chat); !errors.Is(err, c.want) {
			t.Errorf("%.60s: got %v, want %v", c.body, err, c.want)
		}
	}
}

func FuzzScanAgreesWithEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"prompt":"a b\u00e9","stream":true,"max_tokens":5}`, `{"messages":[{"content":[{"text":"x"}]}],"n":1}`,
		`{"prompt":[1,2],"stream_options":{"include_usage":false}}`, `{"prompt":"\ud800x","x":-1.5E+3}`, `{"a":{"b":[null,true]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, chat := range []bool{false, true} {
			s := scanner{chain: &chain{size: 2}}
			got, err := s.scan(body, chat)
			if err == nil && (s.chain.n != got.prompt || len(s.chain.names) != got.prompt/2) {
				t.Fatalf("%q: %d tokens counted, %d in %d blocks", body, got.prompt, s.chain.n, len(s.chain.names))
			}
			if err == nil && !json.Valid(body) {
				t.Fatalf("accepted %q, which is not JSON", body)
			}
			var object struct {
				Prompt *string `json:"prompt"`
			}
			if errors.Is(err, errNotJSON) && strings.Count(string(body), "[")+strings.Count(string(body), "{") <= maxDepth {
				var m map[string]json.RawMessage
				if json.Unmarshal(body, &m) == nil && m != nil {
					t.Fatalf("refused %q, which is a JSON object", body)
				}
			}
			if err == nil && !chat && strings.Count(strings.ToLower(string(body)), "prompt") == 1 && json.Unmarshal(body, &object) == nil && object.Prompt != nil {
				if want := len(strings.Fields(*object.Prompt)); got.prompt != want {
					t.Fatalf("%q: got %d words, want %d", body, got.prompt, want)
				}
			}
		}
	})
}

func TestHeadsAreReadOrRefused(t *testing.T) {
	cases := []struct {
		head   string
		status int
	}{
		{"POST /v1/completions HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 0},
		{"GET /health?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{"POST / HTTP/1.1\r\nHost: a\r\n\r\n", 411},
		{"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
		{"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413},
		{"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
		{"GET / HTTP/1.0\r\n\r\n", 505},
		{"GET /\r\n\r\n", 400},
		{"\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nnonsense\r\n\r\n", 400},
		{strings.Repeat("x", maxHead+1), 431},
	}
	for _, c := range cases {
		_, size, r := parseHead([]byte(c.head))
		if r.status != c.status {
			t.Errorf("%.50q: got status %d, want %d", c.head, r.status, c.status)
		}
		if c.status == 0 && size != len(c.head) {
			t.Errorf("%.50q: got size %d, want %d", c.head, size, len(c.head))
		}
	}
}

// gatherer notes the requests that feed finds.
type gatherer struct{ found []string }

func (g *gatherer) request(c *conn, h head, body []byte) {
	g.found = append(g.found, fmt.Sprintf("%s %s %s %q", h.method, h.path, h.id, body))
}
func (g *gatherer) refuse(c *conn, r refusal) {
	g.found = append(g.found, fmt.Sprint(r.status))
	c.gone = true
}
func (g *gatherer) proceed(*conn) {}

func FuzzCutsChangeNothing(f *testing.F) {
	f.Add([]byte("POST /a HTTP/1.1\r\nX-Request-ID: 7\r\nContent-Length: 3\r\n\r\nabcGET /b?c HTTP/1.1\r\n\r\nGET"), uint16(20), uint16(50))
	f.Add([]byte("POST /a HTTP/1.1\r\ncontent-length: 0\r\nConnection: close\r\n\r\nPUT / HTTP/2\r\n\r\n"), uint16(1), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, i, j uint16) {
		var whole, parts gatherer
		feed(&whole, &conn{}, append([]byte(nil), b...))
		first := int(i) % (len(b) + 1)
		second := first + int(j)%(len(b)-first+1)
		c := &conn{}
		for _, part := range [][]byte{b[:first], b[first:second], b[second:]} {
			if !c.gone {
				feed(&parts, c, append([]byte(nil), part...))
			}
		}
		if fmt.Sprint(whole.found) != fmt.Sprint(parts.found) {
			t.Errorf("%q cut at %d and %d: got %v, want %v", b, first, second, parts.found, whole.found)
		}
	})
}

func TestDelaysReadAndPrintTheSame(t *testing.T) {
	cases := []struct {
		text string
		mean time.Duration
	}{
		{"50ms", 50 * ms}, {"0s", 0}, {"uniform(10ms,20ms)", 15 * ms}, {"exponential(5ms)", 5 * ms}, {"lognormal(50ms,0.5)", 50 * ms},
	}
	for _, c := range cases {
		d, err := ParseDelay(c.text)
		if err != nil || d.String() != c.text {
			t.Errorf("%s: got %v, %v", c.text, d, err)
		}
		sum := 0.0
		const n = 200000
		for i := range uint64(n) {
			sum += float64(d.at(drawsOf(1, i).unit(forGap, 0)))
		}
		if got := sum / n; math.Abs(got-float64(c.mean)) > 0.01*float64(c.mean) || d.mean() != float64(c.mean) {
			t.Errorf("%s: mean of draws %v, mean() %v; want %v", c.text, time.Duration(got), d.mean(), c.mean)
		}
	}
	if d, err := ParseDelay("constant(5ms)"); err != nil || d != Constant(5*ms) {
		t.Errorf("constant(5ms): got %v, %v", d, err)
	}
	for _, bad := range []string{"", "5", "-5ms", "gamma(1ms)", "uniform(2ms,1ms)", "uniform(2ms)", "lognormal(5ms,x)", "exponential(5ms", "constant(25h)"} {
		if _, err := ParseDelay(bad); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestFaultsReadAndPrintTheSame(t *testing.T) {
	var fs Faults
	for _, s := range []string{"status=503:0.05", "slow-headers=2s:0.1", "reset:0.5"} {
		if err := fs.Set(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if got, want := fs.String(), "status=503:0.05,slow-headers=2s:0.1,reset:0.5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"reset", "reset:2", "reset:x", "status:0.1", "status=200:0.1", "reset=1:0.1", "boom:0.1", "slow-headers=x:0.1", ":0.1"} {
		if err := fs.Set(bad); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestValidateReportsEveryFault(t *testing.T) {
	cfg := Config{Addr: "nowhere", Slots: -1, Step: ms, Gap: Constant(ms), Loops: 2, Faults: Faults{{kind: faultReset, rate: 0.7}, {kind: faultCut, rate: 0.7}}}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"addr:", "slots:", "gap:", "loops:", "fault:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	null := Config{Addr: ":0", Null: true, Slots: 1, TruthFile: "x", Loops: 4}
	if err := null.Validate(); err == nil || !strings.Contains(err.Error(), "slots:") || !strings.Contains(err.Error(), "truth:") || strings.Contains(err.Error(), "loops:") {
		t.Errorf("null with slots and truth: got %v", err)
	}
}
