package plan

import (
	"fmt"
	"net/url"
	"strings"
)

// RequestURL returns the URL that requests go to, with user info if it has any: path, such as "/v1/chat/completions", is
// added to a base, and a base that ends in /v1 is not given it twice; the full path of the endpoint stays as it is.
func (t Target) RequestURL(path string) (string, error) {
	u, reason := t.parseURL()
	if reason != "" {
		return "", fmt.Errorf("target.url: %s", reason)
	}
	if endpointOf(u.Path) == "" {
		base := strings.TrimRight(u.Path, "/")
		if strings.HasPrefix(path, "/v1/") {
			base = strings.TrimSuffix(base, "/v1")
		}
		u.Path, u.RawPath = base+path, ""
	}
	return u.String(), nil
}

func (t Target) urlFault() string {
	_, reason := t.parseURL()
	return reason
}

// parseURL reads the target's URL; reason says why it will not do, without its secrets.
func (t Target) parseURL() (u *url.URL, reason string) {
	u, err := url.Parse(t.URL)
	switch shown := maskURL(t.URL); {
	case err != nil:
		return nil, fmt.Sprintf("is not a URL: %q", shown)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Sprintf("must begin with http:// or https://, got %q", shown)
	case u.Hostname() == "":
		return nil, fmt.Sprintf("names no host: %q", shown)
	case u.Fragment != "":
		return nil, fmt.Sprintf("must not have a fragment: %q", shown)
	case strings.Contains(t.URL, mask) || strings.Contains(t.URL, url.QueryEscape(mask)):
		return nil, fmt.Sprintf("is masked: %q", shown)
	}
	if e := endpointOf(u.Path); e != "" && e != t.Endpoint {
		return nil, fmt.Sprintf("is the path of endpoint %s, but target.endpoint is %s", e, t.Endpoint)
	}
	return u, ""
}

// endpointOf returns the endpoint whose full path this is; it is empty for a base.
func endpointOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return EndpointChat
	case strings.HasSuffix(path, "/completions"):
		return EndpointCompletions
	}
	return ""
}
