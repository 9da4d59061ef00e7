package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/plan"
)

// reported runs a spec and returns its directory and the report.
func reported(t *testing.T, spec plan.Spec) (dir, text string) {
	t.Helper()
	spec.Target.Model, spec.Out = "m", filepath.Join(t.TempDir(), "out")
	l, err := newLoad(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.perform(t.Context(), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := printReport(&b, r.dir, false); err != nil {
		t.Fatal(err)
	}
	return r.dir, b.String()
}

func TestTheReportSaysWhatHTTP2AndAnUncheckedCertificateMean(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.HTTP, spec.Target.Insecure = s.URL, plan.HTTP2, true
	spec.Load.Rate, spec.Load.Requests = 200, 20
	dir, text := reported(t, spec)
	for _, want := range []string{
		"streamed, HTTP/2, certificate not checked", "http2 engine", "no kernel receive stamps", "HTTP/2 requests share connections",
		"the server's certificate is not checked (target.insecure)", "completed 20 ·",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"http": "2"`, `"insecure": true`, `"kernel_stamps": false`, `"engine": "http2"`} {
		if !bytes.Contains(manifest, []byte(want)) {
			t.Errorf("want %s in:\n%s", want, manifest)
		}
	}
}

func TestAServerWithoutHTTP2IsExplained(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	for _, url := range []string{s.URL, "http" + strings.TrimPrefix(s.URL, "https")} {
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.Model, spec.Target.HTTP, spec.Target.Insecure = url, "m", plan.HTTP2, strings.HasPrefix(url, "https")
		spec.Load.Rate, spec.Load.Requests, spec.Out = 100, 1, filepath.Join(t.TempDir(), "out")
		l, err := newLoad(spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.perform(t.Context(), nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "does not speak HTTP/2") || !strings.Contains(err.Error(), "\nhint: set --http 1.1") {
			t.Errorf("%s: got %v, want that the server does not speak HTTP/2, and what to do", url, err)
		}
	}
}

// A server that repeats every header it gets puts no secret into any file of the run, nor into the report.
func TestSecretsFromFilesReachNoRecord(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprint(r.Header), http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	t.Setenv("ROUTE_OF_THE_TEST", "route-9182")
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.APIKeyFile, spec.Target.APIKeyHeader = s.URL, keep(t, "key-7364\n"), "api-key"
	spec.Target.Headers = map[string]string{"X-Team": "file:" + keep(t, "team-5547\n"), "X-Route": "env:ROUTE_OF_THE_TEST", "X-Plain": "seen"}
	spec.Load.Rate, spec.Load.Requests = 200, 5
	dir, text := reported(t, spec)
	all := []byte(text)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 7 {
		t.Fatalf("got %q, %v, want seven files", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	for _, secret := range []string{"key-7364", "team-5547", "route-9182"} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("%s is in the files or the report", secret)
		}
	}
	for _, shown := range []string{"seen", spec.Target.APIKeyFile, "env:ROUTE_OF_THE_TEST"} {
		if !bytes.Contains(all, []byte(shown)) {
			t.Errorf("%s, which is no secret, is not in the files", shown)
		}
	}
}
