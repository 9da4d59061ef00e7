package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"tare/internal/drive"
	"tare/internal/drive/scrape"
	"tare/internal/plan"
	"tare/internal/record"
)

// follow has the metrics of the servers asked for during a run, whose requests go to the path own of each. What is secret in that
// is added to the target's secrets.
func (t *target) follow(m plan.ServerMetrics, own string) error {
	token, err := metricsToken(m)
	if err != nil {
		return err
	}
	google := m.Token == plan.TokenGoogle
	c := &scrape.Config{Every: m.Every, Timeout: m.Timeout}
	switch {
	case m.Prometheus != "":
		s := t.source(m.Prometheus, record.SourcePrometheus, token, google)
		s.URL, s.Query = strings.TrimRight(s.URL, "/"), scrape.Selector(m.Matchers)
		c.Sources = append(c.Sources, s)
	case m.URLs != "" && m.URLs != plan.MetricsOff:
		for _, page := range plan.Pages(m.URLs) {
			c.Sources = append(c.Sources, t.source(page, record.SourceServer, token, google))
		}
	case m.URLs == "":
		c.Sources = t.ownPages(own)
	}
	t.introduce(c.Sources, own)
	for _, page := range plan.Pages(m.Exporters) {
		c.Sources = append(c.Sources, t.source(page, record.SourceExporter, token, google))
	}
	if len(c.Sources) > 0 {
		t.scrape = c
	}
	return nil
}

// follow opens the file that samples of the servers go to. Without sources there is none, and Close does nothing.
func (l load) follow(dir string, cfg *drive.Config) (io.Closer, error) {
	if l.target.scrape == nil {
		return io.NopCloser(nil), nil
	}
	f, err := os.Create(filepath.Join(dir, record.ServerFile))
	if err != nil {
		return nil, fmt.Errorf("create file of server samples: %w", err)
	}
	scraped := *l.target.scrape
	scraped.Out, cfg.Scrape = f, &scraped
	return f, nil
}

func metricsToken(m plan.ServerMetrics) (secret, error) {
	const key = "server_metrics.token"
	kind, name, elsewhere := plan.Source(m.Token)
	switch {
	case !elsewhere:
		return secret{}, nil
	case kind == plan.SourceFile:
		return fromFile(key, name)
	}
	s, err := fromEnv(key, name)
	if err == nil && s.value == "" {
		err = misused(fmt.Errorf("%s: the %s is not set", key, s.place), "")
	}
	return s, err
}

// source is a page that the user named. It is given the token, or Google's, or else the user info of its URL, and nothing of the target's.
func (t *target) source(page, kind string, token secret, google bool) scrape.Source {
	u, _ := url.Parse(page) // the spec was checked
	s := scrape.Source{Kind: kind, Shown: plan.ShownURL(page)}
	authorize := func(value string) {
		s.Header = append(s.Header, "Authorization: "+value)
		_, bare, _ := strings.Cut(value, " ")
		t.secrets = united(t.secrets, []string{bare})
	}
	switch {
	case google:
		s.Google = &scrape.GoogleToken{Host: cmp.Or(os.Getenv("GCE_METADATA_HOST"), "metadata.google.internal")}
	case token.value != "":
		authorize("Bearer " + token.value)
	case u.User != nil:
		authorize("Basic " + basicToken(u.User))
	}
	u.User = nil
	s.URL = u.String()
	return s
}

// ownPages are /metrics of each server of the target, asked with its own headers.
func (t *target) ownPages(own string) (all []scrape.Source) {
	for i := range t.servers {
		s := &t.servers[i]
		page := baseURL(s, own) + "/metrics"
		all = append(all, scrape.Source{
			Kind: record.SourceServer, URL: page, Shown: page, Maybe: true, TLS: s.TLS, Header: s.Header, Dial: dialOf(s),
		})
	}
	return all
}

// introduce has the servers of the target asked what they are, along with a source each. Of more servers than sources the first
// are.
func (t *target) introduce(sources []scrape.Source, own string) {
	for i := range min(len(sources), len(t.servers)) {
		s := &t.servers[i]
		sources[i].Server = &scrape.Server{Base: baseURL(s, own), Header: s.Header, TLS: s.TLS, Dial: dialOf(s)}
	}
}

// baseURL is where a server's paths begin. It has no secrets: what is secret in the URL of a target is in the query.
func baseURL(s *drive.Server, own string) string {
	scheme := "http://"
	if s.TLS != nil {
		scheme = "https://"
	}
	return scheme + s.Host + basePath(s.Path, own)
}

// basePath is what stands before the path own of an endpoint in that of requests. Of a path of its own kind the server's others are
// not below it.
func basePath(path, own string) string {
	own, _, _ = strings.Cut(own, "?")
	path, _, _ = strings.Cut(path, "?")
	if base, under := strings.CutSuffix(path, own); under {
		return base
	}
	return ""
}

// dialOf connects to where the load goes, whatever the URL says: a Unix socket has no address in it.
func dialOf(s *drive.Server) func(context.Context) (net.Conn, error) {
	network, address := cmp.Or(s.Network, "tcp"), s.Address
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) }
}
