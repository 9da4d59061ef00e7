package live

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tare/internal/record"
)

// handler serves /metrics, and a line that says so elsewhere.
func (t *Teller) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(t.exposition())
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "tare: a run in progress, see /metrics") })
	return mux
}

// exposition is the run so far in the text format of Prometheus.
func (t *Teller) exposition() []byte {
	var b bytes.Buffer
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	family("tare_planned_requests", "gauge", "Requests made ready so far.")
	fmt.Fprintf(&b, "tare_planned_requests %d\n", t.gauges.planned.Load())
	family("tare_sent_requests_total", "counter", "Requests sent so far.")
	fmt.Fprintf(&b, "tare_sent_requests_total %d\n", t.gauges.sent.Load())
	family("tare_in_flight_requests", "gauge", "Requests in flight.")
	fmt.Fprintf(&b, "tare_in_flight_requests %d\n", t.gauges.inFlight.Load())
	family("tare_untold_records_total", "counter", "Records that the metrics below do not have, since there was no time to read them.")
	fmt.Fprintf(&b, "tare_untold_records_total %d\n", t.lost.Load())
	t.board.look(func(_ time.Time, _ string, stages []stage) {
		family("tare_requests_total", "counter", "Requests on record by outcome.")
		for i := range stages {
			for _, o := range record.Outcomes {
				fmt.Fprintf(&b, "tare_requests_total{stage=%s,outcome=%q} %d\n", label(stages[i].name), o.String(), stages[i].outcomes[o])
			}
		}
		family("tare_tokens_total", "counter", "Tokens of requests on record, as the server counts them.")
		for i := range stages {
			if s := &stages[i]; s.hasIn {
				fmt.Fprintf(&b, "tare_tokens_total{stage=%s,type=\"input\"} %d\n", label(s.name), s.input)
			}
			if s := &stages[i]; s.hasOut {
				fmt.Fprintf(&b, "tare_tokens_total{stage=%s,type=\"output\"} %d\n", label(s.name), s.output)
			}
		}
		for _, m := range timings() {
			family(m.prometheus, "histogram", m.about)
			for i := range stages {
				writeHistogram(&b, m.prometheus, label(stages[i].name), m.of(&stages[i]))
			}
		}
	})
	return b.Bytes()
}

func writeHistogram(b *bytes.Buffer, name, stage string, h *histogram) {
	below := int64(0)
	for i, n := range h.counts {
		below += n
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(b, "%s_bucket{stage=%s,le=%q} %d\n", name, stage, le, below)
	}
	fmt.Fprintf(b, "%s_sum{stage=%s} %v\n%s_count{stage=%s} %d\n", name, stage, seconds(h.sum), name, stage, h.n)
}

func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "�")) + `"`
}
