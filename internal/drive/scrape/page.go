package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"tare/internal/record"
)

// accepted is what pages are asked for in: the plain format first, which is the cheaper one to read.
const accepted = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5"

// reader reads pages of one source, one after another. It keeps what it allocates: the collector stands still during a run.
type reader struct {
	wanted map[string]bool // by the name of a metric, as met
	lines  []byte
}

// parse reads a page of metrics. Lines of other names than record.WantsMetric has are left out before they are parsed: a server's
// page has thousands, and reading takes processor time next to the load.
//
// Note: the library's decoder of OpenMetrics takes milliseconds and a megabyte for each line. So lines of that format are cut down to
// what both formats have in common, and its parser of plain text reads them.
func (r *reader) parse(header http.Header, body []byte) ([]record.Series, error) {
	if err := r.choose(body, isOpen(header, body)); err != nil {
		return nil, err
	}
	dec := expfmt.NewDecoder(bytes.NewReader(r.lines), expfmt.FmtText)
	var all []record.Series
	for {
		var f dto.MetricFamily
		switch err := dec.Decode(&f); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("not readable as metrics: %w", err)
		}
		for _, m := range f.GetMetric() {
			all = appendSeries(all, f.GetName(), m)
		}
	}
}

// isOpen reports that a page is in OpenMetrics, as it says or by its last line.
func isOpen(header http.Header, body []byte) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == expfmt.OpenMetricsType || bytes.HasSuffix(bytes.TrimSpace(body), []byte(eof))
}

const eof = "# EOF"

// choose keeps the lines of a page that are of use, in the plain format.
func (r *reader) choose(body []byte, open bool) error {
	r.lines = r.lines[:0]
	whole := !open
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if open {
			whole = string(bytes.TrimSpace(line)) == eof
			line = plain(line)
		}
		if r.wants(nameOn(line)) {
			r.lines = append(append(r.lines, line...), '\n')
		}
	}
	if !whole {
		return errors.New("cut off: OpenMetrics does not end with # EOF")
	}
	return nil
}

func (r *reader) wants(name []byte) bool {
	want, met := r.wanted[string(name)]
	if met {
		return want
	}
	if r.wanted == nil {
		r.wanted = map[string]bool{}
	}
	want = record.WantsMetric(string(name))
	r.wanted[string(name)] = want
	return want
}

// plain is a line of OpenMetrics without what the plain format does not have: types of its own, timestamps in seconds, exemplars.
func plain(line []byte) []byte {
	if rest, ok := bytes.CutPrefix(line, []byte(typeOf)); ok {
		if kind := rest[bytes.LastIndexByte(rest, ' ')+1:]; string(kind) != "histogram" && string(kind) != "summary" {
			return nil // samples without a type have the names that they show
		}
		return line
	}
	end := endOfLabels(line)
	value := bytes.TrimLeft(line[end:], " ")
	if i := bytes.IndexByte(value, ' '); i >= 0 {
		line = line[:len(line)-len(value)+i]
	}
	return line
}

// endOfLabels is where the value of a sample begins, with the space before it.
func endOfLabels(line []byte) int {
	open := bytes.IndexAny(line, "{ ")
	if open < 0 || line[open] == ' ' {
		return max(open, 0)
	}
	quoted := false
	for i := open; i < len(line); i++ {
		switch {
		case quoted && line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == '}' && !quoted:
			return i + 1
		}
	}
	return len(line)
}

const typeOf = "# TYPE "

// nameOn is the name of the metric that a line is about; empty for a help text, which nobody reads.
func nameOn(line []byte) []byte {
	line = bytes.TrimPrefix(line, []byte(typeOf))
	if end := bytes.IndexAny(line, "{ \t"); end > 0 {
		return line[:end]
	}
	return nil
}

// appendSeries takes a metric apart into its numbers.
func appendSeries(all []record.Series, name string, m *dto.Metric) []record.Series {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	add := func(suffix string, v float64) {
		all = append(all, record.Series{Name: name + suffix, Labels: labels, Value: v})
	}
	switch {
	case m.Counter != nil:
		add("", m.Counter.GetValue())
	case m.Gauge != nil:
		add("", m.Gauge.GetValue())
	case m.Untyped != nil:
		add("", m.Untyped.GetValue())
	case m.Summary != nil:
		add("_sum", m.Summary.GetSampleSum())
		add("_count", float64(m.Summary.GetSampleCount()))
	case m.Histogram != nil:
		add("_sum", m.Histogram.GetSampleSum())
		add("_count", float64(m.Histogram.GetSampleCount()))
		all = appendBuckets(all, name, labels, m.Histogram)
	}
	return all
}

func appendBuckets(all []record.Series, name string, labels map[string]string, h *dto.Histogram) []record.Series {
	for _, b := range h.GetBucket() {
		le := "+Inf"
		if bound := b.GetUpperBound(); !math.IsInf(bound, 1) {
			le = strconv.FormatFloat(bound, 'g', -1, 64)
		}
		with := map[string]string{"le": le}
		for k, v := range labels {
			with[k] = v
		}
		all = append(all, record.Series{Name: name + "_bucket", Labels: with, Value: float64(b.GetCumulativeCount())})
	}
	return all
}
