package drive_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// TestOddRepliesAreReadAndWarnedOf runs against servers behind careless proxies: the run counts, and says what was wrong.
func TestOddRepliesAreReadAndWarnedOf(t *testing.T) {
	const token = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for _, c := range []struct {
		name    string
		serve   http.HandlerFunc
		tokens  int
		warning string
	}{
		{"gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for _, s := range []string{token, token, end} {
				io.WriteString(z, s)
				z.Flush()
				w.(http.Flusher).Flush()
			}
			z.Close()
		}, 2, "12 replies came in gzip"},
		{"a wrong type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, token+token+end)
		}, 2, "12 replies were streams of events under another Content-Type"},
		{"a document", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)
		}, 0, "12 replies came whole although streams were asked for"},
	} {
		addr := serve(t, c.serve)
		protocols(t, func(t *testing.T, engine string) {
			cfg := drive.Config{Servers: at(addr), Engine: engine, Loops: 2}
			all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 3, Requests: 12}))
			for _, x := range all {
				tokens := 0
				for _, e := range x.Events {
					if e.Kind.Token() {
						tokens++
					}
				}
				if x.Outcome != record.Completed || tokens != c.tokens {
					t.Errorf("%s, %s: request %d: %v, %d token events, %q, want %v, %d", c.name, engine, x.Index, x.Outcome, tokens, x.Error, record.Completed, c.tokens)
				}
			}
			if len(m.Warnings) != 1 || !strings.HasPrefix(m.Warnings[0], c.warning) {
				t.Errorf("%s, %s: warnings %q, want one %q", c.name, engine, m.Warnings, c.warning)
			}
		})
	}
}
