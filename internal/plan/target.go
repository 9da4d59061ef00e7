package plan

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Server is one of the servers that a target names, and where its requests go.
type Server struct {
	Network string        // "tcp" or "unix"
	Address string        // host:port, or the path of a Unix socket
	Secure  bool          // TLS
	Host    string        // value of the Host header
	Path    string        // request target: escaped, with its query
	User    *url.Userinfo // nil for none
}

// Hostname is the host without its port, as certificates name it.
func (s Server) Hostname() string { return (&url.URL{Host: s.Host}).Hostname() }

// Servers returns the servers of the target; request n of a plan goes to server n modulo their number. path, escaped and
// with a query if need be, such as "/v1/chat/completions", is added to a base, and a base that ends in /v1 is not given it
// twice. The full path of the endpoint stays as it is; what the query lacks of path's is added.
func (t Target) Servers(path string) ([]Server, error) {
	if reason, hint := t.urlFault(); reason != "" {
		return nil, Faults{{Key: "target.url", Reason: reason, Hint: hint}}
	}
	var all []Server
	for _, text := range t.URLs() {
		a, _, _ := t.parseURL(text)
		s, err := t.server(a, path)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// URLs are the URLs of the target, one for each server.
func (t Target) URLs() []string { return strings.Fields(t.URL) }

// address is one URL of a target, taken apart.
type address struct {
	url    *url.URL
	socket string // path of a Unix socket; empty for TCP
	path   string // escaped
}

func (t Target) server(a address, path string) (Server, error) {
	path, query, _ := strings.Cut(path, "?")
	full := strings.TrimRight(a.path, "/")
	plain, err := url.PathUnescape(a.path)
	if err != nil {
		return Server{}, fmt.Errorf("path of requests: %w", err)
	}
	if t.formOf(plain) == nil {
		full = join(full, path)
	}
	if query = addQuery(a.url.RawQuery, query); query != "" {
		full += "?" + query
	}
	s := Server{Network: "tcp", Host: a.url.Host, Path: full, Secure: a.url.Scheme == "https", User: a.url.User}
	if a.socket != "" {
		s.Network, s.Address, s.Host = "unix", a.socket, "localhost"
		return s, nil
	}
	port := a.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[a.url.Scheme]
	}
	host := a.url.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	s.Address = host + ":" + port
	if host, zone, ok := strings.Cut(s.Host, "%"); ok { // a zone means something on this machine only
		_, port, _ := strings.Cut(zone, "]")
		s.Host = host + "]" + port
	}
	return s, nil
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

// urlFault says why the URLs of the target will not do, without their secrets, and what to do, where that is known.
func (t Target) urlFault() (reason, hint string) {
	var first address
	for i, text := range t.URLs() {
		a, reason, hint := t.parseURL(text)
		if reason != "" {
			return reason, hint
		}
		if i == 0 {
			first = a
		}
		switch {
		case a.url.Scheme != first.url.Scheme:
			return fmt.Sprintf("must begin with the same scheme for all servers, got %s:// and %s://", first.url.Scheme, a.url.Scheme), "make them all alike"
		case (t.formOf(a.path) == nil) != (t.formOf(first.path) == nil):
			return "must be bases for all servers, or full paths for all", "make them all alike"
		}
	}
	if len(t.URLs()) == 0 {
		return fmt.Sprintf("must begin with http://, https:// or unix://, got %q", t.URL), ""
	}
	return "", ""
}

// parseURL reads one of the target's URLs; reason says why it will not do, without its secrets, and hint what will, where
// that is known.
func (t Target) parseURL(text string) (a address, reason, hint string) {
	u, err := url.Parse(text)
	switch shown := t.shown(text); {
	case err != nil:
		return a, fmt.Sprintf("is not a URL: %q", shown), ""
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "unix":
		return a, fmt.Sprintf("must begin with http://, https:// or unix://, got %q", shown), ""
	case u.Scheme != "unix" && u.Hostname() == "":
		return a, fmt.Sprintf("names no host: %q", shown), ""
	case !isPort(u.Port()):
		return a, fmt.Sprintf("must have a port of 1 to 65535, got %q", shown), ""
	case u.Fragment != "":
		return a, fmt.Sprintf("must not have a fragment: %q", shown), "leave out # and what follows: no server gets to see it"
	case strings.Contains(text, mask) || strings.Contains(text, url.QueryEscape(mask)):
		return a, fmt.Sprintf("is masked: %q", shown), "secrets are not stored: write the URL anew, with them"
	}
	a = address{url: u, path: u.EscapedPath()}
	if u.Scheme == "unix" {
		if a.socket, a.path, reason = socketOf(u); reason != "" {
			return a, fmt.Sprintf("%s: %q", reason, t.shown(text)), "write unix:///PATH/OF.sock, or unix:///PATH/OF.sock:/v1 with a path for the server"
		}
	}
	plain, _ := url.PathUnescape(a.path) // url.Parse has seen to it
	if reason, hint := t.pathFault(plain); reason != "" {
		return a, reason, hint
	}
	return a, "", ""
}

// longestSocket is the most bytes that the path of a Unix socket may have.
const longestSocket = 107

// socketOf takes the two paths of unix:///SOCKET:/PATH apart. The second stays escaped.
func socketOf(u *url.URL) (socket, path, reason string) {
	socket, path, _ = strings.Cut(u.EscapedPath(), ":")
	socket, err := url.PathUnescape(socket)
	switch {
	case err != nil || u.Host != "" || u.Opaque != "" || len(socket) < 2 || strings.HasSuffix(socket, "/"):
		return "", "", "must name a socket by its absolute path"
	case len(socket) > longestSocket || strings.Contains(socket, "\x00"):
		return "", "", fmt.Sprintf("must name a socket by a path of at most %d bytes", longestSocket)
	case path != "" && path[0] != '/':
		return "", "", "must have a path that begins with / behind the socket's"
	}
	return socket, path, ""
}

// pathFault says why the full path of an endpoint does not go with the rest of the target.
func (t Target) pathFault(path string) (reason, hint string) {
	f := t.formOf(path)
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

// sessionHeaderFault says why a header cannot name sessions.
func (t Target) sessionHeaderFault() string {
	for name := range t.Headers {
		if strings.EqualFold(name, t.SessionHeader) {
			return t.SessionHeader + " is one of target.headers already"
		}
	}
	return headerFault(t.SessionHeader, "tare-1")
}

// responseFormatFault says why response_format cannot be sent.
func (t Target) responseFormatFault() string {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(t.ResponseFormat), &object); err != nil || object == nil {
		return fmt.Sprintf("must be a JSON object, got %q", shortened(t.ResponseFormat))
	}
	return ""
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

// formOf returns the form of a full path, with or without a slash behind; it is nil for a base. Paths of templates have no
// form: what a template's path is added to is its own affair.
func (t Target) formOf(path string) *pathForm {
	if t.Endpoint == EndpointTemplate {
		return nil
	}
	path = strings.TrimRight(path, "/")
	for i := range pathForms {
		if strings.HasSuffix(path, pathForms[i].ending) {
			return &pathForms[i]
		}
	}
	return nil
}
