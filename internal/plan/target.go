package plan

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// RequestURL returns the URL that requests go to, with user info if it has any: path, such as "/v1/chat/completions", is
// added to a base, and a base that ends in /v1 is not given it twice; the full path of the endpoint stays as it is.
func (t Target) RequestURL(path string) (string, error) {
	u, reason, hint := t.parseURL()
	if reason != "" {
		return "", Faults{{Key: "target.url", Reason: reason, Hint: hint}}
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	if endpointOf(u.Path) == "" {
		base := u.Path
		if strings.HasPrefix(path, "/v1/") {
			base = strings.TrimSuffix(base, "/v1")
		}
		u.Path, u.RawPath = base+path, ""
	}
	return u.String(), nil
}

func (t Target) urlFault() (reason, hint string) {
	_, reason, hint = t.parseURL()
	return reason, hint
}

// parseURL reads the target's URL; reason says why it will not do, without its secrets, and hint what will, where that is known.
func (t Target) parseURL() (u *url.URL, reason, hint string) {
	u, err := url.Parse(t.URL)
	switch shown := maskURL(t.URL); {
	case err != nil:
		return nil, fmt.Sprintf("is not a URL: %q", shown), ""
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Sprintf("must begin with http:// or https://, got %q", shown), ""
	case u.Hostname() == "":
		return nil, fmt.Sprintf("names no host: %q", shown), ""
	case !isPort(u.Port()):
		return nil, fmt.Sprintf("must have a port of 1 to 65535, got %q", shown), ""
	case u.Fragment != "":
		return nil, fmt.Sprintf("must not have a fragment: %q", shown), "leave out # and what follows: no server gets to see it"
	case strings.Contains(t.URL, mask) || strings.Contains(t.URL, url.QueryEscape(mask)):
		return nil, fmt.Sprintf("is masked: %q", shown), "secrets are not stored: write the URL anew, with them"
	}
	if e := endpointOf(u.Path); e != "" && e != t.Endpoint {
		return nil, fmt.Sprintf("is the path of endpoint %s, but target.endpoint is %s", e, t.Endpoint),
			fmt.Sprintf("set --endpoint %s (target.endpoint), or leave the path out", e)
	}
	return u, "", ""
}

// isPort says that text is a port number, or empty for that of the scheme.
func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && 1 <= n && n <= 65535
}

// endpointOf returns the endpoint whose full path this is, with or without a slash behind; it is empty for a base.
func endpointOf(path string) string {
	path = strings.TrimRight(path, "/")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return EndpointChat
	case strings.HasSuffix(path, "/completions"):
		return EndpointCompletions
	}
	return ""
}
