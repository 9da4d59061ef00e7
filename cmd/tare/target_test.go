package main

import (
	"slices"
	"testing"

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
		got, err := targetOf(spec, "/v1/chat/completions")
		if err != nil || got.address != c.address || got.host != c.host || got.path != c.path {
			t.Errorf("%s: got %s, %s, %s, error %v, want %s, %s, %s", c.url, got.address, got.host, got.path, err, c.address, c.host, c.path)
		}
		if tls := got.tls != nil; tls != (c.url[:5] == "https") {
			t.Errorf("%s: TLS is %v", c.url, tls)
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
	}{
		{"header", "http://u:p@a", map[string]string{"authorization": "Bearer own"}, []string{"authorization: Bearer own"}, "Bearer own"},
		{"user info", "http://u:p@a", nil, []string{"Authorization: Basic dTpw"}, "dTpw"},
		{"environment", "http://a", map[string]string{"X-Team": "blue"}, []string{"X-Team: blue", "Authorization: Bearer sk-environment"}, "sk-environment"},
	} {
		spec := plan.Defaults()
		spec.Target.URL, spec.Target.Headers, spec.Target.APIKeyEnv = c.url, c.headers, "KEY_OF_THE_TEST"
		got, err := targetOf(spec, "/v1/chat/completions")
		if err != nil || !slices.Equal(got.header, c.want) || !slices.Equal(got.secrets, []string{c.secret}) {
			t.Errorf("%s: got header %q, secrets %q, error %v, want %q and %q", c.name, got.header, got.secrets, err, c.want, c.secret)
		}
	}
}
