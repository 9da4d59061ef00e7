package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tare/internal/record"
)

// lookback is how far behind a Prometheus server may be and still be of use.
const lookback = 5 * time.Minute

// Selector is the query for all series that are of use, of those that matchers such as job="vllm" leave; they may be empty.
func Selector(matchers string) string {
	names := record.MetricNames()
	for i, name := range names {
		names[i] = strings.Replace(name, "_", "[:_]", 1)
	}
	selector := `__name__=~"(` + strings.Join(names, "|") + `)(_sum|_count)?"`
	if matchers != "" {
		selector += "," + matchers
	}
	return "{" + selector + "}"
}

// answer is what a Prometheus server's API says.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Type   string `json:"resultType"`
		Result []struct {
			Metric map[string]string `json:"metric"`
			Values [][2]any          `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// query asks for the samples of the last minutes and takes the newest of each series. seen is then the moment at which Prometheus
// looked at the server, by its clock, which ought to be in step with ours.
func (l *looker) query(ctx context.Context, seen *look) ([]record.Series, error) {
	query := url.Values{"query": {fmt.Sprintf("%s[%ds]", l.source.Query, int(lookback/time.Second))}}
	header, err := l.header(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.ask(ctx, l.client, l.source.URL+"/api/v1/query", header, query.Encode())
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(r.body, &a); err != nil {
		return nil, fmt.Errorf("status %d, and no answer of Prometheus' API", r.status)
	}
	switch {
	case a.Status != "success":
		return nil, fmt.Errorf("status %d: %s", r.status, a.Error)
	case r.status != http.StatusOK || a.Data.Type != "matrix":
		return nil, fmt.Errorf("status %d, result of type %q", r.status, a.Data.Type)
	case len(a.Data.Result) == 0:
		return nil, errors.New("no series matches")
	}
	series, newest, err := a.series()
	if err != nil {
		return nil, err
	}
	seen.took = time.Since(seen.asked)
	seen.asked = seen.asked.Add(-time.Since(newest)).Add(seen.took)
	seen.stale = !newest.After(l.seen)
	l.seen = newest
	return series, nil
}

// series are the values at the newest moment. A series whose newest sample is older ended with its process: were it counted, that
// of the next process would be added to it.
func (a *answer) series() (all []record.Series, newest time.Time, err error) {
	var moments []time.Time // of each of all
	for _, r := range a.Data.Result {
		if len(r.Values) == 0 {
			continue // a native histogram, whose samples are elsewhere
		}
		last := r.Values[len(r.Values)-1]
		at, isNumber := last[0].(float64)
		text, isText := last[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if !isNumber || !isText || err != nil {
			return nil, newest, errors.New("not readable as samples")
		}
		moment := time.UnixMilli(int64(at * 1000))
		if moment.After(newest) {
			newest = moment
		}
		moments = append(moments, moment)
		all = append(all, record.Series{Name: r.Metric["__name__"], Labels: r.Metric, Value: v})
	}
	return fresh(all, moments, newest), newest, nil
}

// scrapeGap is the longest usual interval between two looks of a Prometheus server.
const scrapeGap = 65 * time.Second

func fresh(all []record.Series, moments []time.Time, newest time.Time) []record.Series {
	kept := all[:0]
	for i, s := range all {
		if newest.Sub(moments[i]) < scrapeGap {
			kept = append(kept, s)
		}
	}
	return kept
}
