package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
)

func TestTargetIsResolvedFromTheURL(t *testing.T) {
	for _, c := range []struct{ url, address, host, path string }{
		{"http://a:8000", "a:8000", "a:8000", "/v1/chat/completions"},
		{"http://a", "a:80", "a", "/v1/chat/completions"},
		{"https://a/v1/", "a:443", "a", "/v1/chat/completions"},
		{"http://a/p/chat/completions?k=v", "a:80", "a", "/p/chat/completions?k=v"},
		{"http://[::1]:9/p", "[::1]:9", "[::1]:9", "/p/v1/chat/completions"},
	} {
		spec := plan.Defaults()
		spec.Target.URL = c.url
		got, err := targetOf(spec, spoken(t, spec))
		if err != nil || len(got.servers) != 1 {
			t.Errorf("%s: got %d servers, error %v, want one", c.url, len(got.servers), err)
			continue
		}
		s := got.servers[0]
		if s.Address != c.address || s.Host != c.host || s.Path != c.path {
			t.Errorf("%s: got %s, %s, %s, want %s, %s, %s", c.url, s.Address, s.Host, s.Path, c.address, c.host, c.path)
		}
		if tls := s.TLS != nil; tls != (c.url[:5] == "https") {
			t.Errorf("%s: TLS is %v", c.url, tls)
		}
	}
}

func spoken(t *testing.T, spec plan.Spec) dialect.Dialect {
	t.Helper()
	d, err := dialect.For(spec.Target.Endpoint, dialectOptions(spec, nil))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEachServiceGetsItsPathAndHeaders(t *testing.T) {
	t.Setenv("KEY_OF_THE_TEST", "sk-environment")
	for _, c := range []struct {
		endpoint string
		headers  map[string]string
		path     string
		want     []string
		secret   string
	}{
		{"openai-responses", nil, "/v1/responses", []string{"Authorization: Bearer sk-environment"}, "sk-environment"},
		{"anthropic-messages", nil, "/v1/messages", []string{"anthropic-version: 2023-06-01", "x-api-key: sk-environment"}, "sk-environment"},
		{"anthropic-messages", map[string]string{"Anthropic-Version": "2024-01-01", "X-Api-Key": "own"}, "/v1/messages", []string{"Anthropic-Version: 2024-01-01", "X-Api-Key: own"}, "own"},
		{"gemini", nil, "/v1beta/models/m%2F1:streamGenerateContent?alt=sse", []string{"x-goog-api-key: sk-environment"}, "sk-environment"},
		{"gemini", map[string]string{"Authorization": "Bearer own"}, "/v1beta/models/m%2F1:streamGenerateContent?alt=sse", []string{"Authorization: Bearer own"}, "Bearer own"},
	} {
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.Model, spec.Target.Endpoint, spec.Target.Headers, spec.Target.APIKeyEnv = "http://a", "m/1", c.endpoint, c.headers, "KEY_OF_THE_TEST"
		got, err := targetOf(spec, spoken(t, spec))
		if err != nil || got.servers[0].Path != c.path || !slices.Equal(got.servers[0].Header, c.want) || !slices.Equal(got.secrets, []string{c.secret}) {
			t.Errorf("%s: got %+v, secrets %q, error %v, want %s, %q, %q", c.endpoint, got.servers, got.secrets, err, c.path, c.want, c.secret)
		}
	}
}

func TestAuthorizationComesFromTheHeaderFirst(t *testing.T) {
	t.Setenv("KEY_OF_THE_TEST", "sk-environment")
	for _, c := range []struct {
		name    string
		url     string
		headers map[string]string
		want    []string
		secret  string
		warned  string
	}{
		{"header", "http://u:p@a", map[string]string{"authorization": "Bearer own"}, []string{"authorization: Bearer own"}, "Bearer own",
			"user info of the URL is not sent: the header Authorization goes before it|the API key in the environment variable KEY_OF_THE_TEST is not sent: the header Authorization goes before it"},
		{"user info", "http://u:p@a", nil, []string{"Authorization: Basic dTpw"}, "dTpw",
			"the API key in the environment variable KEY_OF_THE_TEST is not sent: user info of the URL goes before it"},
		{"environment", "http://a", map[string]string{"X-Team": "blue"}, []string{"X-Team: blue", "Authorization: Bearer sk-environment"}, "sk-environment", ""},
	} {
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.Headers, spec.Target.APIKeyEnv = c.url, c.headers, "KEY_OF_THE_TEST"
		got, err := targetOf(spec, spoken(t, spec))
		if err != nil || !slices.Equal(got.servers[0].Header, c.want) || !slices.Equal(got.secrets, []string{c.secret}) {
			t.Errorf("%s: got %+v, secrets %q, error %v, want %q and %q", c.name, got.servers, got.secrets, err, c.want, c.secret)
		}
		if warned := strings.Join(got.warnings, "|"); warned != c.warned {
			t.Errorf("%s: warnings: got %q, want %q", c.name, warned, c.warned)
		}
	}
}

func TestTLSToAPlainServerIsExplained(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Model, spec.Out = "https"+strings.TrimPrefix(server.URL, "http"), "m", filepath.Join(t.TempDir(), "out")
	spec.Load.Rate, spec.Load.Requests = 100, 50
	l, err := newLoad(spec)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.perform(t.Context(), nil, io.Discard)
	address := strings.TrimPrefix(server.URL, "http://")
	if err == nil || !strings.HasSuffix(err.Error(), "\nhint: the server speaks plain HTTP: write http://") || strings.Count(err.Error(), address) != 1 {
		t.Errorf("got %v, want an error that names %s once, and a hint to write http://", err, address)
	}
}

func TestAnAPIKeyCannotAddAHeader(t *testing.T) {
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.APIKeyEnv = "http://a", "KEY_OF_THE_TEST"
	t.Setenv("KEY_OF_THE_TEST", "sk-secret\r\nX-Admin: 1")
	_, err := targetOf(spec, spoken(t, spec))
	if e := asExit(err); e.code != exitUsage || !strings.Contains(e.text(), "KEY_OF_THE_TEST") || strings.Contains(e.text(), "secret") {
		t.Errorf("got code %d and %q, want 2 and the variable's name without its value", e.code, e.text())
	}
	t.Setenv("KEY_OF_THE_TEST", "sk-secret\n")
	got, err := targetOf(spec, spoken(t, spec))
	if want := []string{"Authorization: Bearer sk-secret"}; err != nil || !slices.Equal(got.servers[0].Header, want) {
		t.Errorf("line break behind the key: got %+v, %v, want %q", got.servers, err, want)
	}
}

func TestTheAPIKeyComesFromItsFile(t *testing.T) {
	t.Setenv("KEY_OF_THE_TEST", "sk-environment")
	for _, c := range []struct{ text, header, endpoint, want string }{
		{"  sk-file \nsecond line\n", "", "openai-chat", "Authorization: Bearer sk-file"},
		{"sk-file", "api-key", "openai-chat", "api-key: sk-file"},
		{"sk-file", "", "anthropic-messages", "x-api-key: sk-file"},
		{"sk-file", "authorization", "anthropic-messages", "Authorization: Bearer sk-file"},
	} {
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.Endpoint, spec.Target.APIKeyEnv = "http://a", c.endpoint, "KEY_OF_THE_TEST"
		spec.Target.APIKeyFile, spec.Target.APIKeyHeader = keep(t, c.text), c.header
		got, err := targetOf(spec, spoken(t, spec))
		if err != nil || !slices.Contains(got.servers[0].Header, c.want) || !slices.Equal(got.secrets, []string{"sk-file"}) {
			t.Errorf("%+v: got %+v, secrets %q, error %v", c, got.servers, got.secrets, err)
		}
		if shown := spec.String(); !strings.Contains(shown, spec.Target.APIKeyFile) || strings.Contains(shown, "sk-") {
			t.Errorf("the printed spec must name the file and not the key:\n%s", shown)
		}
	}
	for text, want := range map[string]string{"\n": "is empty", "sk-\x01secret\n": "control characters"} {
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.APIKeyFile = "http://a", keep(t, text)
		_, err := targetOf(spec, spoken(t, spec))
		if e := asExit(err); e.code != exitUsage || !strings.Contains(e.text(), want) || strings.Contains(e.text(), "secret") {
			t.Errorf("%q: got code %d and %q, want 2 and %q without the key", text, e.code, e.text(), want)
		}
	}
}

// keep writes a file and returns its path.
func keep(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHeaderValuesComeFromEnvironmentAndFiles(t *testing.T) {
	t.Setenv("VALUE_OF_THE_TEST", "one")
	spec := plan.Defaults()
	spec.Target.URL = "http://a http://b"
	spec.Target.Headers = map[string]string{"X-Route": "env:VALUE_OF_THE_TEST", "X-Token": "file:" + keep(t, "two\n"), "X-Plain": "http:x"}
	got, err := targetOf(spec, spoken(t, spec))
	want := []string{"X-Plain: http:x", "X-Route: one", "X-Token: two"}
	if err != nil || len(got.servers) != 2 {
		t.Fatalf("got %+v, %v, want two servers", got, err)
	}
	for _, s := range got.servers {
		if !slices.Equal(s.Header, want) {
			t.Errorf("header: got %q, want %q", s.Header, want)
		}
	}
	if !slices.Equal(got.secrets, []string{"one", "two"}) {
		t.Errorf("secrets: got %q, want what was read, each once", got.secrets)
	}
	if shown := spec.String(); !strings.Contains(shown, "env:VALUE_OF_THE_TEST") || strings.Contains(shown, "two") {
		t.Errorf("the printed spec must name the places and not the values:\n%s", shown)
	}
	spec.Target.Headers = map[string]string{"X-Token": "env:NOT_SET_IN_THE_TEST"}
	if _, err := targetOf(spec, spoken(t, spec)); err == nil || !strings.Contains(err.Error(), "NOT_SET_IN_THE_TEST is not set") {
		t.Errorf("got %v, want that the variable is not set", err)
	}
}

func TestSocketsAndSeveralServersAreResolved(t *testing.T) {
	spec := plan.Defaults()
	spec.Target.URL = "unix:///run/a%20b.sock:/v1?x=1 unix:///run/c.sock"
	got, err := targetOf(spec, spoken(t, spec))
	if err != nil || len(got.servers) != 2 {
		t.Fatalf("got %+v, %v, want two servers", got, err)
	}
	for i, want := range []string{"unix /run/a b.sock localhost /v1/chat/completions?x=1", "unix /run/c.sock localhost /v1/chat/completions"} {
		s := got.servers[i]
		if text := s.Network + " " + s.Address + " " + s.Host + " " + s.Path; text != want {
			t.Errorf("server %d: got %s, want %s", i, text, want)
		}
	}
}

func TestAnUncheckedCertificateIsWarnedOf(t *testing.T) {
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Insecure, spec.Target.ServerName = "https://a", true, "b"
	got, err := targetOf(spec, spoken(t, spec))
	if err != nil || len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "target.insecure") {
		t.Errorf("got %q, %v, want a warning that names target.insecure", got.warnings, err)
	}
	if c := got.servers[0].TLS; c == nil || !c.InsecureSkipVerify || c.ServerName != "b" {
		t.Errorf("TLS: got %+v, want the name b, unchecked", c)
	}
}

func TestLoopsFitIntoTheProcessorsAskedFor(t *testing.T) {
	spec := plan.Defaults()
	spec.Client.Procs = 3
	if got := driveConfig(spec, target{}).Loops; got != 1 {
		t.Errorf("loops for 3 processors: got %d, want 1", got)
	}
	spec.Client.Procs, spec.Client.Loops = 8, 4
	if got := driveConfig(spec, target{}).Loops; got != 4 {
		t.Errorf("loops asked for: got %d, want 4", got)
	}
}
