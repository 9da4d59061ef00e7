package scrape

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"

	"tare/internal/record"
)

// maxPage is the most bytes of a page: a server that sends more is not waited for.
const maxPage = 16 << 20

// looker looks at one source, over a connection of its own.
type looker struct {
	source  *Source
	timeout time.Duration
	client  *http.Client
	server  *http.Client      // of the server under test; nil for none
	kind    string            // dialect of the last page that could be read
	told    map[string]string // settings on that page
	read    reader
	body    bytes.Buffer // of the last reply
	seen    time.Time    // newest sample of a Prometheus server
}

// look is one look at a source.
type look struct {
	asked    time.Time
	took     time.Duration
	values   *record.ServerValues
	reason   string // why there are none
	stale    bool   // a Prometheus server had nothing newer than at the look before
	identity *record.Identity
}

func newLooker(s *Source, timeout time.Duration) *looker {
	l := &looker{source: s, timeout: timeout, client: newClient(s.TLS, s.Dial)}
	if s.Server != nil {
		l.server = newClient(s.Server.TLS, s.Server.Dial)
	}
	return l
}

// newClient is one that hides nothing: no redirects, no proxies, no compression, one connection that is kept.
func newClient(secure *tls.Config, dial func(context.Context) (net.Conn, error)) *http.Client {
	t := &http.Transport{TLSClientConfig: secure.Clone(), DisableCompression: true, MaxConnsPerHost: 1}
	if dial != nil {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (l *looker) close() {
	l.client.CloseIdleConnections()
	if l.server != nil {
		l.server.CloseIdleConnections()
	}
	if g := l.source.Google; g != nil && g.client != nil {
		g.client.CloseIdleConnections()
	}
}

// look asks once, at an edge for more. It returns within the time limit, whatever the source does.
func (l *looker) look(ctx context.Context, edge bool) look {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	seen := look{asked: time.Now()}
	var series []record.Series
	var err error
	if l.source.Kind == record.SourcePrometheus {
		series, err = l.query(ctx, &seen)
	} else {
		series, err = l.page(ctx)
	}
	if seen.took == 0 {
		seen.took = time.Since(seen.asked)
	}
	if err != nil {
		seen.reason = l.reason(ctx, err)
		return seen
	}
	values, told := record.Translate(series, edge)
	if !told { // yet: series with labels appear when they first count
		values = record.ServerValues{Values: map[record.Quantity]float64{}}
	}
	l.kind, seen.values = cmp.Or(values.Dialect, l.kind), &values
	if edge {
		l.told = record.SettingsOn(series)
	}
	return seen
}

// restsAs reports that a server has nothing in service, and counts what it counted a look before.
func (k *look) restsAs(before *look) bool {
	if k.values == nil || before.values == nil {
		return false
	}
	now, then := k.values.Values, before.values.Values
	if now[record.Running]+now[record.Waiting] != 0 {
		return false
	}
	for q, v := range now {
		if q.Counter() && v != then[q] {
			return false
		}
	}
	return true
}

func (l *looker) page(ctx context.Context) ([]record.Series, error) {
	header, err := l.header(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.get(ctx, l.client, l.source.URL, with(header, "Accept: "+accepted))
	if err != nil {
		return nil, err
	}
	if r.status != http.StatusOK {
		return nil, fmt.Errorf("status %d", r.status)
	}
	series, err := l.read.parse(r.header, r.body)
	if kind, _, _ := mime.ParseMediaType(r.header.Get("Content-Type")); err == nil && len(series) == 0 && kind != "" && kind != "text/plain" && kind != expfmt.OpenMetricsType {
		err = fmt.Errorf("no metrics, but %s", kind)
	}
	return series, err
}

// header is the lines that go to the source.
func (l *looker) header(ctx context.Context) ([]string, error) {
	if l.source.Google == nil {
		return l.source.Header, nil
	}
	line, err := l.source.Google.header(ctx)
	if err != nil {
		return nil, err
	}
	return with(l.source.Header, line), nil
}

// with is header lines and one more, which goes before one of the same name.
func with(header []string, line string) []string { return append(slices.Clone(header), line) }

// reply is the reply to a plain question. Its body is the looker's, to the next question.
type reply struct {
	status int
	header http.Header
	body   []byte
}

var errTooLarge = fmt.Errorf("more than %d MiB", maxPage>>20)

func (l *looker) get(ctx context.Context, client *http.Client, url string, header []string) (reply, error) {
	return l.ask(ctx, client, url, header, "")
}

// ask is get, or with a form a POST of it: a query may be longer than a URL.
func (l *looker) ask(ctx context.Context, client *http.Client, url string, header []string, form string) (r reply, err error) {
	method := http.MethodGet
	if form != "" {
		method = http.MethodPost
	}
	ask, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(form))
	if err != nil {
		return r, err
	}
	if form != "" {
		ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "Host") {
			ask.Host = value
		}
		ask.Header.Set(name, value)
	}
	got, err := client.Do(ask)
	if err != nil {
		return r, err
	}
	defer got.Body.Close()
	l.body.Reset()
	if _, err := l.body.ReadFrom(io.LimitReader(got.Body, maxPage+1)); err != nil {
		return r, err
	}
	if l.body.Len() > maxPage {
		return r, errTooLarge
	}
	return reply{got.StatusCode, got.Header, l.body.Bytes()}, nil
}

// longestReason is the most bytes of a reason that are kept.
const longestReason = 300

// reason says why a look brought nothing. The URL, which may hold a secret, is left out.
func (l *looker) reason(ctx context.Context, err error) string {
	var bare interface{ Timeout() bool }
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &bare) && bare.Timeout():
		return fmt.Sprintf("no answer within %v", l.timeout)
	case ctx.Err() != nil:
		return "the run was cut"
	}
	text := err.Error()
	if i := strings.LastIndex(text, "\": "); i >= 0 { // Get "URL": reason
		text = text[i+len("\": "):]
	}
	for _, line := range l.source.Header {
		if _, value, _ := strings.Cut(line, ": "); value != "" {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	if g := l.source.Google; g != nil && g.value != "" {
		text = strings.ReplaceAll(text, g.value, "***")
	}
	return strings.ToValidUTF8(text[:min(len(text), longestReason)], "")
}
