package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"tare/internal/plan"
)

// service is a hosted service in small: it answers one endpoint's requests, and notes what is wrong with them.
type service struct {
	path, header, key string
	reply             string

	mu    sync.Mutex
	wrong []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body map[string]any
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		s.wrong = append(s.wrong, err.Error())
	}
	if q.URL.RequestURI() != s.path || q.Header.Get(s.header) != s.key {
		s.wrong = append(s.wrong, q.URL.RequestURI()+" with "+s.header+" "+q.Header.Get(s.header))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, s.reply)
}

func TestARunSpeaksToEachService(t *testing.T) {
	t.Setenv("KEY_OF_THE_TEST", "sk-environment")
	for endpoint, s := range map[string]*service{
		"openai-responses": {path: "/v1/responses", header: "Authorization", key: "Bearer sk-environment", reply: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"},
		"anthropic-messages": {path: "/v1/messages", header: "x-api-key", key: "sk-environment", reply: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		"template": {path: "/api/v9/say?x=1", header: "Authorization", key: "Bearer sk-environment", reply: "{\"t\":\"a\"}\n{\"why\":\"stop\"}\n"},
		"gemini": {path: "/v1beta/models/m:streamGenerateContent?alt=sse", header: "x-goog-api-key", key: "sk-environment",
			reply: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n"},
	} {
		server := httptest.NewServer(s)
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.Model, spec.Target.Endpoint, spec.Target.APIKeyEnv = server.URL, "m", endpoint, "KEY_OF_THE_TEST"
		if endpoint == plan.EndpointTemplate {
			spec.Target.URL += "/api"
			spec.Target.Template = plan.Template{Path: "/v9/say?x=1", Body: `{"q":{{prompt}}}`, Text: "/t", Finish: "/why", Framing: plan.FramingLines}
		}
		spec.Load.Concurrency, spec.Load.Requests, spec.Out = 2, 6, filepath.Join(t.TempDir(), "out")
		spec.ServerMetrics.URLs = plan.MetricsOff
		l, err := newLoad(spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.perform(t.Context(), nil, io.Discard)
		server.Close()
		if err != nil || got.summary.Total.Outcomes.Completed != 6 || len(s.wrong) > 0 {
			t.Errorf("%s: got %+v, error %v, and the server saw %q, want 6 completed", endpoint, got.summary, err, s.wrong)
		}
	}
}
