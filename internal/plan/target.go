package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// RequestURL returns the URL that requests go to, with user info if it has any. path, escaped and with a query if need be,
// such as "/v1/chat/completions", is added to a base, and a base that ends in /v1 is not given it twice. The full path of the
// endpoint stays as it is; what the query lacks of path's is added.
func (t Target) RequestURL(path string) (string, error) {
	u, reason, hint := t.parseURL()
	if reason != "" {
		return "", Faults{{Key: "target.url", Reason: reason, Hint: hint}}
	}
	path, query, _ := strings.Cut(path, "?")
	full := strings.TrimRight(u.EscapedPath(), "/")
	if formOf(u.Path) == nil {
		full = join(full, path)
	}
	var err error
	if u.Path, err = url.PathUnescape(full); err != nil {
		return "", fmt.Errorf("path of requests: %w", err)
	}
	u.RawPath = full
	u.RawQuery = addQuery(u.RawQuery, query)
	return u.String(), nil
}

// join adds path to a base, whose last part may be the version that path begins with, or another one of it.
func join(base, path string) string {
	last := base[strings.LastIndexByte(base, '/')+1:]
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if last != "" && (last == first || isVersion(last) && isVersion(first)) {
		return base + "/" + rest
	}
	return base + path
}

func isVersion(s string) bool { return s == "v1" || s == "v1beta" || s == "v1alpha" }

// addQuery adds a query of one parameter to another that lacks it.
func addQuery(query, more string) string {
	name, _, _ := strings.Cut(more, "=")
	given, err := url.ParseQuery(query)
	switch {
	case more == "" || err != nil || given.Has(name):
		return query
	case query == "":
		return more
	}
	return query + "&" + more
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
	if reason, hint := t.pathFault(u.Path); reason != "" {
		return nil, reason, hint
	}
	return u, "", ""
}

// pathFault says why the full path of an endpoint does not go with the rest of the target.
func (t Target) pathFault(path string) (reason, hint string) {
	f := formOf(path)
	switch {
	case f == nil:
	case !slices.Contains(f.endpoints, t.Endpoint):
		names := strings.Join(f.endpoints, " or ")
		return fmt.Sprintf("is the path of endpoint %s, but target.endpoint is %s", names, t.Endpoint),
			fmt.Sprintf("set --endpoint %s (target.endpoint), or leave the path out", names)
	case f.streams && !t.Stream:
		return "is the path of streamed replies, but target.stream is false", "set --stream (target.stream), or leave the path out"
	case f.waits && t.Stream && t.Endpoint != EndpointSGLang:
		return "is the path of replies that are not streamed, but target.stream is true", "set --stream=false (target.stream), or leave the path out"
	case t.Endpoint == EndpointGemini:
		return t.modelFault(path)
	}
	return "", ""
}

// modelFault holds the model that is part of a path to the one that the run is said to measure.
func (t Target) modelFault(path string) (reason, hint string) {
	name := path[strings.LastIndexByte(path, '/')+1 : strings.LastIndexByte(path, ':')]
	if t.Model == "" || name == strings.TrimPrefix(t.Model, "models/") {
		return "", ""
	}
	return fmt.Sprintf("asks for model %s, but target.model is %s", name, t.Model), "name the same model, or leave the path out"
}

// isPort says that text is a port number, or empty for that of the scheme.
func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && 1 <= n && n <= 65535
}

// pathForm is how full paths of some endpoints end.
type pathForm struct {
	ending    string
	endpoints []string
	streams   bool // replies are streamed
	waits     bool // replies are not streamed, but for SGLang's
}

var pathForms = []pathForm{
	{ending: "/chat/completions", endpoints: []string{EndpointChat}},
	{ending: "/completions", endpoints: []string{EndpointCompletions}},
	{ending: "/responses", endpoints: []string{EndpointResponses}},
	{ending: "/messages", endpoints: []string{EndpointAnthropic}},
	{ending: ":streamGenerateContent", endpoints: []string{EndpointGemini}, streams: true},
	{ending: ":generateContent", endpoints: []string{EndpointGemini}, waits: true},
	{ending: "/generate_stream", endpoints: []string{EndpointTGI, EndpointTriton}, streams: true},
	{ending: "/generate", endpoints: []string{EndpointTGI, EndpointSGLang, EndpointTriton}, waits: true},
	{ending: "/completion", endpoints: []string{EndpointLlamaCpp}},
	{ending: "/api/chat", endpoints: []string{EndpointOllama}},
}

// formOf returns the form of a full path, with or without a slash behind; it is nil for a base.
func formOf(path string) *pathForm {
	path = strings.TrimRight(path, "/")
	for i := range pathForms {
		if strings.HasSuffix(path, pathForms[i].ending) {
			return &pathForms[i]
		}
	}
	return nil
}
