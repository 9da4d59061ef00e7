package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tare/internal/plan"
	"tare/internal/record"
)

// pages is a server under test that has a page of metrics, and keeps whom the requests for each path came from.
type pages struct {
	page string

	lock sync.Mutex
	from map[string]string // Authorization and X-Team of the last request, by method and path
}

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.from == nil {
		p.from = map[string]string{}
	}
	p.from[r.Method+" "+r.URL.Path] = r.Header.Get("Authorization") + " " + r.Header.Get("X-Team")
	if r.Method == http.MethodPost {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return
	}
	if r.Header.Get("Metadata-Flavor") == "Google" {
		fmt.Fprint(w, `{"access_token":"token-9003","expires_in":3600}`)
		return
	}
	fmt.Fprint(w, p.page)
}

// metricsRun sends five requests to p and returns the run directory. change says what is asked of whom.
func metricsRun(t *testing.T, p *pages, change func(spec *plan.Spec, url string)) string {
	t.Helper()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	t.Setenv("KEY_OF_THE_TEST", "key-7364")
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Model, spec.Target.APIKeyEnv = s.URL+"/gateway/v1", "m", "KEY_OF_THE_TEST"
	spec.Target.Headers = map[string]string{"X-Team": "blue"}
	spec.Load.Rate, spec.Load.Requests = 200, 5
	change(&spec, s.URL)
	dir, _ := reported(t, spec)
	return dir
}

const servedTokens = "vllm:num_requests_running 0\nvllm:generation_tokens_total 7\n"

func TestServersAreAskedForMetricsAsForReplies(t *testing.T) {
	p := &pages{page: servedTokens}
	dir := metricsRun(t, p, func(*plan.Spec, string) {})
	for _, path := range []string{"GET /gateway/metrics", "GET /gateway/v1/models", "GET /gateway/version"} {
		if p.from[path] != "Bearer key-7364 blue" {
			t.Errorf("%s came from %q, want the key and the headers of the target; all: %v", path, p.from[path], p.from)
		}
	}
	all, err := record.ReadServer(dir)
	if err != nil || len(all) < 2 || all[0].Edge != record.EdgeBefore || all[len(all)-1].Edge != record.EdgeAfter {
		t.Fatalf("got %+v, %v, want a sample before and one after", all, err)
	}
	if v := all[0].Values; v == nil || v.Values[record.OutputTokens] != 7 {
		t.Errorf("got %+v, want 7 tokens", all[0])
	}
}

func TestNamedPagesGetTheirOwnSecretsAndNoneIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(spec *plan.Spec, url string)
		from   string
	}{
		"token": {func(s *plan.Spec, url string) {
			s.ServerMetrics.URLs, s.ServerMetrics.Token = url+"/own?key=query-1122", "file:"+keep(t, "token-5547\n")
		}, "Bearer token-5547 "},
		"google": {func(s *plan.Spec, url string) {
			t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(url, "http://"))
			s.ServerMetrics.URLs, s.ServerMetrics.Token = url+"/own", plan.TokenGoogle
		}, "Bearer token-9003 "},
		"user": {func(s *plan.Spec, url string) {
			s.ServerMetrics.Exporters = strings.Replace(url, "http://", "http://me:password-1122@", 1) + "/own"
		}, "Basic bWU6cGFzc3dvcmQtMTEyMg== "},
	} {
		p := &pages{page: servedTokens}
		dir := metricsRun(t, p, c.change)
		if p.from["GET /own"] != c.from {
			t.Errorf("%s: came from %q, want %q", name, p.from["GET /own"], c.from)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"token-5547", "token-9003", "query-1122", "password-1122", "bWU6cGFzc3dvcmQtMTEyMg", "key-7364"} {
				if strings.Contains(string(b), secret) {
					t.Errorf("%s: %s holds %s", name, f, secret)
				}
			}
		}
	}
}

func TestMetricsAreOffWhereAskedFor(t *testing.T) {
	p := &pages{page: servedTokens}
	dir := metricsRun(t, p, func(s *plan.Spec, _ string) { s.ServerMetrics.URLs = plan.MetricsOff })
	if _, err := os.Stat(filepath.Join(dir, record.ServerFile)); !os.IsNotExist(err) || len(p.from) != 1 {
		t.Errorf("got %v and requests %v, want the load's only and no file", err, p.from)
	}
}

func TestFaultsOfServerMetricsNameTheKey(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"{urls: 'ftp://h/metrics'}", `server_metrics.urls: must be URLs with http:// or https:// and a host, got "ftp://h/metrics"`},
		{"{exporters: 'http://h/#x'}", "server_metrics.exporters: must not have a fragment"},
		{"{prometheus: 'http://h', urls: 'http://h/m'}", "server_metrics.prometheus: takes the place of server_metrics.urls"},
		{"{prometheus: 'http://h http://i'}", "server_metrics.prometheus: must be one URL"},
		{"{prometheus: 'http://h/?a=b'}", "server_metrics.prometheus: must not have a query"},
		{"{matchers: 'job=\"a\"'}", "server_metrics.matchers: goes with server_metrics.prometheus only"},
		{"{prometheus: 'http://h', matchers: '{job=\"a\"}'}", "server_metrics.matchers: must be labels"},
		{"{token: 'abc'}", "server_metrics.token: must be env:NAME, file:PATH or google"},
		{"{token: 'env:X'}", "server_metrics.token: goes with URLs of server_metrics only"},
		{"{every: 10ms}", "server_metrics.every: must be at least 100ms"},
		{"{urls: 'http://me:hunter2@h:x/'}", "***"},
	} {
		d := new(plan.Draft)
		d.Read("spec", []byte("target: {url: http://h}\nload: {rate: 1, requests: 1}\nserver_metrics: "+c.yaml+"\n"))
		_, err := d.Spec()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: got %v, want %q", c.yaml, err, c.want)
		}
	}
}
