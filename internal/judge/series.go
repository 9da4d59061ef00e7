package judge

import (
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// Series is a run over time, warm-up and drain included: one value for each span of equal length since the start of the run. Counts
// stand at the moment they happened, latencies at the moment their request was due. A latency that no request of the span has is
// null, and so is everything in a last span that the run ended in the first half of. What was planned for after a stop is in
// none.
type Series struct {
	WidthMs float64 `json:"width_ms"` // of a span: a second, twice as long as often as there would be more than 3,600 of them

	Due       []Number `json:"due_per_s"` // requests
	Sent      []Number `json:"sent_per_s"`
	Completed []Number `json:"completed_per_s"`
	Failed    []Number `json:"failed_per_s"` // any other outcome; those that were never sent stand at their due time
	InFlight  []Number `json:"in_flight"`    // mean over the span, from first write to end

	InputTokens  []Number `json:"input_tokens_per_s"` // where the server counts them, at the first token
	OutputTokens []Number `json:"output_tokens_per_s"`

	SlipP50 []Number `json:"slip_p50_ms"` // of sent requests
	SlipP99 []Number `json:"slip_p99_ms"`
	SlipMax []Number `json:"slip_max_ms"`
	LagMean []Number `json:"receive_lag_mean_ms"` // of stamped events, at their arrival
	LagMax  []Number `json:"receive_lag_max_ms"`
	TTFTP50 []Number `json:"ttft_p50_ms"` // of completed requests, from send
	TTFTP99 []Number `json:"ttft_p99_ms"`
	E2EP50  []Number `json:"e2e_p50_ms"`
	E2EP99  []Number `json:"e2e_p99_ms"`
}

const (
	firstSpan = time.Second
	mostSpans = 3600
)

// timeline gathers a Series. Spans grow twice as long when there would be too many.
type timeline struct {
	width time.Duration
	spans []moments

	before moments // what is on record from before the start of the run: in no span

	inputKnown, outputKnown bool
}

// moments is what happened in one span.
type moments struct {
	due, sent, completed, failed int64
	input, output                int64
	held                         time.Duration // request-time in flight in this span, of requests that came or went in it
	begun                        int64         // requests in flight from the start of the next span on, less those that no longer are
	slip, ttft, e2e              sheaf
	lag                          struct {
		n        int64
		sum, max time.Duration
	}
}

func newTimeline() *timeline { return &timeline{width: firstSpan} }

// at returns the span of a moment. It is valid until the next call.
func (t *timeline) at(when time.Duration) *moments {
	if when < 0 {
		return &t.before
	}
	for int64(when/t.width) >= mostSpans {
		t.halve()
	}
	for int(when/t.width) >= len(t.spans) {
		t.spans = append(t.spans, moments{})
	}
	return &t.spans[when/t.width]
}

// halve makes one span of two.
func (t *timeline) halve() {
	half := make([]moments, (len(t.spans)+1)/2)
	for i := range t.spans {
		half[i/2].merge(&t.spans[i], i%2 == 1, t.width)
	}
	t.spans, t.width = half, 2*t.width
}

// merge takes a span of that width in. What is in flight from the start of the second one on is so for a whole width of the first.
func (m *moments) merge(o *moments, second bool, width time.Duration) {
	if second {
		m.held += time.Duration(m.begun) * width
	}
	m.held += o.held
	m.begun += o.begun
	m.due += o.due
	m.sent += o.sent
	m.completed += o.completed
	m.failed += o.failed
	m.input += o.input
	m.output += o.output
	m.slip.merge(&o.slip)
	m.ttft.merge(&o.ttft)
	m.e2e.merge(&o.e2e)
	m.lag.n += o.lag.n
	m.lag.sum += o.lag.sum
	m.lag.max = max(m.lag.max, o.lag.max)
}

func (t *timeline) add(r *measure.Reply) {
	t.at(r.Due).due++
	t.addEnd(r)
	if r.WasSent {
		t.at(r.Sent).sent++
		t.at(r.Due).slip.add(int64(r.Sent - r.Due))
	}
	if r.WasSent && r.Ended {
		t.hold(r.Sent, r.Finish)
	}
	if r.WasSent && r.Outcome == record.Completed {
		if r.FirstToken.Known {
			t.at(r.Due).ttft.add(int64(r.FirstToken.At - r.Sent))
		}
		if r.Ended {
			t.at(r.Due).e2e.add(int64(r.Finish - r.Sent))
		}
	}
	t.addTokens(r)
	t.addLag(r)
}

func (t *timeline) addEnd(r *measure.Reply) {
	when := r.Due
	if r.WasSent && r.Ended {
		when = r.Finish
	}
	if r.Outcome == record.Completed {
		t.at(when).completed++
	} else {
		t.at(when).failed++
	}
}

func (t *timeline) addTokens(r *measure.Reply) {
	r.EachToken(func(at time.Duration, n int64) {
		t.at(at).output += n
		t.outputKnown = true
	})
	if begun, ok := r.Begun(); ok && r.Usage.Known {
		t.at(begun).input += int64(r.Usage.Input)
		t.inputKnown = true
	}
}

func (t *timeline) addLag(r *measure.Reply) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.Flags&record.FlagStamped == 0 {
			continue
		}
		m, lag := t.at(e.KernelAt), e.UserAt-e.KernelAt
		m.lag.n++
		m.lag.sum += lag
		m.lag.max = max(m.lag.max, lag)
	}
}

// hold counts a request in flight from from to to.
func (t *timeline) hold(from, to time.Duration) {
	if from < 0 || to < from {
		return
	}
	t.at(to)
	first, last := from/t.width, to/t.width
	if first == last {
		t.spans[first].held += to - from
		return
	}
	t.spans[first].held += (first+1)*t.width - from
	t.spans[first].begun++
	t.spans[last].held += to - last*t.width
	t.spans[last-1].begun--
}

// series closes a run that ended at end.
func (t *timeline) series(end time.Duration) Series {
	t.at(max(end, 0))
	s := Series{WidthMs: float64(t.width) / 1e6}
	through := int64(0) // requests that are in flight for the whole of a span
	for i := range t.spans {
		m := &t.spans[i]
		m.held += time.Duration(through) * t.width
		through += m.begun
		covered := min(t.width, end-time.Duration(i)*t.width)
		if i < len(t.spans)-1 {
			covered = t.width
		}
		s.append(m, covered, covered >= t.width/2, t)
	}
	return s
}

func (s *Series) append(m *moments, covered time.Duration, whole bool, t *timeline) {
	rate := func(to *[]Number, n int64, known bool) {
		v := Number{}
		if whole && known {
			v = perSecond(n, covered)
		}
		*to = append(*to, v)
	}
	rate(&s.Due, m.due, true)
	rate(&s.Sent, m.sent, true)
	rate(&s.Completed, m.completed, true)
	rate(&s.Failed, m.failed, true)
	rate(&s.InputTokens, m.input, t.inputKnown)
	rate(&s.OutputTokens, m.output, t.outputKnown)
	inFlight := Number{}
	if whole {
		inFlight = Some(float64(m.held) / float64(covered))
	}
	s.InFlight = append(s.InFlight, inFlight)
	slip, ttft, e2e := m.slip.distribution(), m.ttft.distribution(), m.e2e.distribution()
	for _, to := range []struct {
		column *[]Number
		of     *stats.Distribution
		ppm    int64
	}{
		{&s.SlipP50, slip, stats.P50}, {&s.SlipP99, slip, stats.P99}, {&s.SlipMax, slip, 1_000_000},
		{&s.TTFTP50, ttft, stats.P50}, {&s.TTFTP99, ttft, stats.P99}, {&s.E2EP50, e2e, stats.P50}, {&s.E2EP99, e2e, stats.P99},
	} {
		v := scaled(measure.Milliseconds)(to.of.Quantile(to.ppm))
		if !whole {
			v = Number{}
		}
		*to.column = append(*to.column, v)
	}
	mean, most := Number{}, Number{}
	if whole && m.lag.n > 0 {
		mean, most = Some(float64(m.lag.sum)/float64(m.lag.n)/1e6), Some(float64(m.lag.max)/1e6)
	}
	s.LagMean, s.LagMax = append(s.LagMean, mean), append(s.LagMax, most)
}

// sheaf holds a few values as they are and many as a distribution: a span has few of them as a rule, and a distribution needs some
// 10 KiB.
type sheaf struct {
	few  []int64
	many *stats.Distribution
}

const fewValues = 4096

func (s *sheaf) add(v int64) {
	if s.many != nil {
		s.many.Add(v)
		return
	}
	s.few = append(s.few, v)
	if len(s.few) >= fewValues {
		s.many, s.few = s.distribution(), nil
	}
}

func (s *sheaf) merge(o *sheaf) {
	for _, v := range o.few {
		s.add(v)
	}
	if o.many != nil {
		s.many, s.few = s.distribution(), nil
		s.many.Merge(o.many)
	}
}

func (s *sheaf) distribution() *stats.Distribution {
	if s.many != nil {
		return s.many
	}
	d := new(stats.Distribution)
	for _, v := range s.few {
		d.Add(v)
	}
	return d
}
