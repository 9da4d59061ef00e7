package scrape

import (
	"bufio"
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

// parse reads a page of metrics. Lines of other names than record.WantsMetric has are left out before they are parsed: a server's
// page has thousands, and reading takes processor time next to the load.
func parse(header http.Header, body []byte) ([]record.Series, error) {
	format := formatOf(header, body)
	dec := expfmt.NewDecoder(bytes.NewReader(wantedLines(body)), format)
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

// formatOf takes the server's word for OpenMetrics. All else is tried as plain text: some servers have no Content-Type for it.
func formatOf(header http.Header, body []byte) expfmt.Format {
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err == nil && kind == expfmt.OpenMetricsType {
		if f := expfmt.ResponseFormat(header); f != expfmt.FmtUnknown {
			return f
		}
		return expfmt.FmtOpenMetrics_1_0_0
	}
	if bytes.HasSuffix(bytes.TrimSpace(body), []byte("# EOF")) {
		return expfmt.FmtOpenMetrics_1_0_0
	}
	return expfmt.FmtText
}

// wantedLines are the lines of a page that are of use, with their comments.
func wantedLines(body []byte) []byte {
	kept := make([]byte, 0, 16<<10)
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxPage)
	for lines.Scan() {
		line := lines.Bytes()
		if name := nameOn(line); name == eof || record.WantsMetric(name) {
			kept = append(append(kept, line...), '\n')
		}
	}
	return kept
}

const eof = "# EOF"

// nameOn is the name of the metric that a line is about; empty for a help text, which nobody reads.
func nameOn(line []byte) string {
	if bytes.Equal(bytes.TrimSpace(line), []byte(eof)) {
		return eof
	}
	if rest, ok := bytes.CutPrefix(line, []byte("# TYPE ")); ok {
		line = rest
	}
	if end := bytes.IndexAny(line, "{ \t"); end > 0 {
		return string(line[:end])
	}
	return ""
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
