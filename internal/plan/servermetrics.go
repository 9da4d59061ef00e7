package plan

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// MetricsOff as ServerMetrics.URLs asks no server for its metrics.
const MetricsOff = "off"

// TokenGoogle as ServerMetrics.Token is the access token of the account that this machine runs as in Google's cloud.
const TokenGoogle = "google"

// ServerMetrics says where the servers' own numbers are to be had.
type ServerMetrics struct {
	URLs       string        `yaml:"urls"`       // pages, separated by spaces; MetricsOff for none; empty for /metrics of each server
	Exporters  string        `yaml:"exporters"`  // pages of what is beside the servers, such as GPUs
	Prometheus string        `yaml:"prometheus"` // base URL of a Prometheus server's API, in place of the servers' pages
	Matchers   string        `yaml:"matchers"`   // of the series there: job="vllm"
	Token      string        `yaml:"token"`      // where the bearer token for these URLs is kept: env:NAME, file:PATH or TokenGoogle
	Every      time.Duration `yaml:"every"`      // between two samples
	Timeout    time.Duration `yaml:"timeout"`    // of one
}

// urlsFault is pagesFault, for the key that may be MetricsOff as well.
func (m *ServerMetrics) urlsFault() (reason, hint string) {
	if m.URLs == MetricsOff {
		return "", ""
	}
	return pagesFault(m.URLs)
}

func (m *ServerMetrics) tokenFault() (reason, hint string) {
	if _, name, elsewhere := Source(m.Token); m.Token != TokenGoogle && (!elsewhere || name == "") {
		return "must be env:NAME, file:PATH or google", "a token itself is not written into a spec"
	}
	return "", ""
}

// Pages are the URLs of a key that may have several.
func Pages(text string) []string { return strings.Fields(text) }

// pagesFault says why a list of URLs will not do, without their secrets.
func pagesFault(text string) (reason, hint string) {
	const form = "write http://HOST:PORT/metrics"
	for _, one := range Pages(text) {
		u, err := url.Parse(one)
		switch shown := maskURLs(text); {
		case err != nil:
			return fmt.Sprintf("is not a URL: %q", shown), form
		case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isPort(u.Port()):
			return fmt.Sprintf("must be URLs with http:// or https:// and a host, got %q", shown), form
		case u.Fragment != "":
			return fmt.Sprintf("must not have a fragment: %q", shown), form
		case strings.Contains(one, mask) || strings.Contains(one, url.QueryEscape(mask)):
			return fmt.Sprintf("is masked: %q", shown), "secrets are not stored: write the URL anew, with them"
		}
	}
	return "", ""
}

func (m *ServerMetrics) matchersFault() (reason, hint string) {
	if strings.ContainsAny(m.Matchers, "{}") || !strings.Contains(m.Matchers, `"`) {
		return fmt.Sprintf("must be labels with their values in quotes, got %q", m.Matchers), ""
	}
	return "", ""
}

// faults checks that the keys go together.
func (m *ServerMetrics) faults() (faults Faults) {
	fault := func(key, reason, hint string) {
		faults = append(faults, Fault{Key: "server_metrics." + key, Reason: reason, Hint: hint})
	}
	if m.Prometheus != "" && m.URLs != "" {
		fault("prometheus", "takes the place of server_metrics.urls: only one of them can be given", "")
	}
	if len(Pages(m.Prometheus)) > 1 {
		fault("prometheus", "must be one URL", "server_metrics.matchers chooses among the servers that it knows")
	}
	if strings.Contains(m.Prometheus, "?") {
		fault("prometheus", "must not have a query: the path of the API is added", "")
	}
	if m.Matchers != "" && m.Prometheus == "" {
		fault("matchers", "goes with server_metrics.prometheus only", "")
	}
	if m.Token != "" && (m.URLs == "" || m.URLs == MetricsOff) && m.Exporters == "" && m.Prometheus == "" {
		fault("token", "goes with URLs of server_metrics only", "to the servers of target.url the target's own key and headers are sent")
	}
	return faults
}

func (m ServerMetrics) masked() ServerMetrics {
	for _, text := range []*string{&m.URLs, &m.Exporters, &m.Prometheus} {
		if *text != "" {
			*text = maskURLs(*text)
		}
	}
	return m
}

// String returns the section without secrets.
func (m ServerMetrics) String() string {
	type plain ServerMetrics
	return fmt.Sprintf("%+v", plain(m.masked()))
}

// GoString is String: no form of printing shows secrets.
func (m ServerMetrics) GoString() string { return m.String() }
