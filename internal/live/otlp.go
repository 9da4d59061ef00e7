package live

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// spans are those that the collector is still to be told of.
type spans struct {
	mu    sync.Mutex
	start time.Time
	run   string
	model string
	op    string
	names []string // of the stages
	list  []span
	lost  atomic.Int64
}

// mostSpans wait for the collector; what comes while so many wait is dropped.
const mostSpans = 1 << 14

// batch is how many spans one request to the collector carries at most.
const batch = 2048

func (s *spans) begin(m *record.Manifest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start, s.model, s.op = m.Clock.StartWall, m.Target.Model, "chat"
	if strings.Contains(m.Target.Endpoint, "completions") {
		s.op = "text_completion"
	}
	s.run = m.Clock.StartWall.UTC().Format(time.RFC3339Nano) + m.Plan.PlanID
	for _, stage := range m.Stages {
		s.names = append(s.names, stage.Name)
	}
}

func (s *spans) add(r *measure.Reply) {
	if !r.WasSent {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= mostSpans {
		s.lost.Add(1)
		return
	}
	s.list = append(s.list, s.spanOf(r))
}

// next takes a batch out.
func (s *spans) next() (some []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.list), batch)
	some = append(some, s.list[:n]...)
	s.list = s.list[:copy(s.list, s.list[n:])]
	return some
}

// forget drops what is left.
func (s *spans) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.Add(int64(len(s.list)))
	s.list = nil
}

// The messages of OTLP in JSON, as far as they are used: https://opentelemetry.io/docs/specs/otlp/. Whole numbers of 64 bits are texts.
type (
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Events     []event     `json:"events,omitempty"`
		Status     status      `json:"status"`
	}
	event struct {
		Time string `json:"timeUnixNano"`
		Name string `json:"name"`
	}
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	point struct {
		Attributes []attribute `json:"attributes"`
		Start      string      `json:"startTimeUnixNano"`
		Time       string      `json:"timeUnixNano"`
		AsInt      string      `json:"asInt,omitempty"`
		Count      string      `json:"count,omitempty"`
		Sum        *float64    `json:"sum,omitempty"`
		Buckets    []string    `json:"bucketCounts,omitempty"`
		Bounds     []float64   `json:"explicitBounds,omitempty"`
	}
)

const (
	kindClient = 3
	codeError  = 2
	cumulative = 2
)

func text(key, v string) attribute { return attribute{key, map[string]string{"stringValue": v}} }

func whole(key string, n int64) attribute {
	return attribute{key, map[string]string{"intValue": strconv.FormatInt(n, 10)}}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// spanOf is a request from its first write to its end. Its ids follow from the run and its index.
func (s *spans) spanOf(r *measure.Reply) span {
	sum := sha256.Sum256(strconv.AppendInt([]byte(s.run), r.Index, 10))
	end := r.Sent
	if r.Ended {
		end = r.Finish
	}
	o := span{
		TraceID: hex.EncodeToString(sum[:16]), SpanID: hex.EncodeToString(sum[16:24]), Name: s.op + " " + s.model, Kind: kindClient,
		Start: nanos(s.start.Add(r.Sent)), End: nanos(s.start.Add(end)),
		Attributes: []attribute{
			text("gen_ai.operation.name", s.op), text("gen_ai.request.model", s.model), whole("tare.index", r.Index), text("tare.outcome", r.Outcome.String()),
			whole("tare.slip_ns", int64(r.Sent-r.Due)),
		},
	}
	if r.Stage >= 0 && r.Stage < len(s.names) {
		o.Attributes = append(o.Attributes, text("tare.stage", s.names[r.Stage]))
	}
	if r.Usage.Known {
		o.Attributes = append(o.Attributes, whole("gen_ai.usage.input_tokens", int64(r.Usage.Input)))
	}
	if r.OutputKnown {
		o.Attributes = append(o.Attributes, whole("gen_ai.usage.output_tokens", r.Output))
	}
	if r.Status != 0 {
		o.Attributes = append(o.Attributes, whole("http.response.status_code", int64(r.Status)))
	}
	if r.FirstToken.Known {
		o.Events = append(o.Events, event{nanos(s.start.Add(r.FirstToken.At)), "first_token"})
	}
	if r.Outcome != record.Completed {
		o.Attributes = append(o.Attributes, text("error.type", r.Cause.String()))
		o.Status = status{codeError, r.Error}
	}
	return o
}

// report tells the collector of metrics and spans, again and again, and a last time when all records are read.
func (t *Teller) report(ctx context.Context, read <-chan struct{}) {
	tick := time.NewTicker(t.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.tell(ctx)
		case <-read:
			t.tell(ctx)
			t.spans.forget()
			return
		case <-ctx.Done():
			return
		}
	}
}

// patience is how long the collector may take for one request.
const patience = 5 * time.Second

// tell sends what there is. Spans that the collector does not take are dropped and counted; metrics add up and are told again.
func (t *Teller) tell(ctx context.Context) {
	for some := t.spans.next(); len(some) > 0; some = t.spans.next() {
		body := resource(map[string]any{"scopeSpans": []any{map[string]any{"scope": scope(), "spans": some}}})
		if err := t.post(ctx, "/v1/traces", map[string]any{"resourceSpans": body}); err != nil {
			t.spans.lost.Add(int64(len(some)))
			break
		}
	}
	body := resource(map[string]any{"scopeMetrics": []any{map[string]any{"scope": scope(), "metrics": t.metrics(time.Now())}}})
	_ = t.post(ctx, "/v1/metrics", map[string]any{"resourceMetrics": body}) // the next ones hold these
}

func resource(content map[string]any) []any {
	content["resource"] = map[string]any{"attributes": []attribute{text("service.name", "tare")}}
	return []any{content}
}

func scope() map[string]string { return map[string]string{"name": "tare"} }

// metrics are sums and histograms since the start of the run.
func (t *Teller) metrics(now time.Time) (all []map[string]any) {
	t.board.look(func(start time.Time, model string, stages []stage) {
		base := func(s *stage) []attribute {
			return []attribute{text("tare.stage", s.name), text("gen_ai.request.model", model)}
		}
		var requests, tokens []point
		sum := func(list *[]point, s *stage, n int64, extra attribute) {
			*list = append(*list, point{Attributes: append(base(s), extra), Start: nanos(start), Time: nanos(now), AsInt: strconv.FormatInt(n, 10)})
		}
		for i := range stages {
			s := &stages[i]
			for _, o := range record.Outcomes {
				if n := s.outcomes[o]; n > 0 {
					sum(&requests, s, n, text("tare.outcome", o.String()))
				}
			}
			if s.hasIn {
				sum(&tokens, s, s.input, text("gen_ai.token.type", "input"))
			}
			if s.hasOut {
				sum(&tokens, s, s.output, text("gen_ai.token.type", "output"))
			}
		}
		add := func(name, unit, kind string, points []point, monotonic bool) {
			if len(points) == 0 {
				return
			}
			data := map[string]any{"aggregationTemporality": cumulative, "dataPoints": points}
			if monotonic {
				data["isMonotonic"] = true
			}
			all = append(all, map[string]any{"name": name, "unit": unit, kind: data})
		}
		add("tare.requests", "{request}", "sum", requests, true)
		add("tare.tokens", "{token}", "sum", tokens, true)
		for _, m := range timings() {
			var points []point
			for i := range stages {
				if h := m.of(&stages[i]); h.n > 0 {
					points = append(points, h.point(base(&stages[i]), start, now))
				}
			}
			add(m.otlp, "s", "histogram", points, false)
		}
	})
	return all
}

func (h *histogram) point(attributes []attribute, start, now time.Time) point {
	sum := seconds(h.sum)
	p := point{Attributes: attributes, Start: nanos(start), Time: nanos(now), Count: strconv.FormatInt(h.n, 10), Sum: &sum, Bounds: bounds}
	for _, n := range h.counts {
		p.Buckets = append(p.Buckets, strconv.FormatInt(n, 10))
	}
	return p
}

func (t *Teller) post(ctx context.Context, path string, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(t.options.Collector, "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	for name, value := range t.options.Headers {
		q.Header.Set(name, value)
	}
	reply, err := t.options.Transport.RoundTrip(q)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, 1<<20)) // so that the connection can be used again
	if reply.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", reply.Status)
	}
	return nil
}
