package plan

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// mask stands for a secret in everything printed or stored. It is not accepted as a value, lest it be sent.
const mask = "***"

// Masked returns a copy of s without secrets: the values of headers and of query parameters whose names speak of a key, and
// the user info of the URL.
func (s Spec) Masked() Spec {
	s.Target = s.Target.masked()
	s.ServerMetrics = s.ServerMetrics.masked()
	return s
}

func (t Target) masked() Target {
	t.URL = maskURLs(t.URL)
	t.Headers = maps.Clone(t.Headers)
	for name, value := range t.Headers {
		if _, _, elsewhere := Source(value); secret(name) && !elsewhere {
			t.Headers[name] = mask
		}
	}
	return t
}

// secret says that a header or a query parameter of that name holds a secret.
func secret(name string) bool {
	name = strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
	for _, word := range []string{"auth", "apikey", "accesskey", "token", "secret", "password", "passwd", "cookie", "credential", "signature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return name == "key" || name == "sig"
}

// maskURLs masks each URL of a text that has one or several. What is not a list of URLs is masked as a whole: it may be a
// single one with a space in its password.
func maskURLs(text string) string {
	shown := strings.Fields(text)
	for i, one := range shown {
		if u, err := url.Parse(one); len(shown) > 1 && (err != nil || u.Scheme == "" || u.Opaque != "") {
			return maskText(text)
		}
		shown[i] = maskURL(one)
	}
	return strings.Join(shown, " ")
}

// ShownURL returns a URL as it may be printed or stored.
func ShownURL(text string) string { return maskURL(text) }

// shown is one URL of the target as it may be printed.
func (t Target) shown(one string) string {
	whole := maskURLs(t.URL)
	if all := strings.Fields(whole); len(all) == len(t.URLs()) {
		return all[slices.Index(t.URLs(), one)]
	}
	return whole
}

// maskURL returns text without secrets, also where it is not a URL.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User == nil && u.Host == "" && strings.Contains(text, "@") {
		return maskText(text)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		query = url.Values{mask: nil}
	}
	changed := err != nil || u.User != nil
	for name := range query {
		if secret(name) {
			query[name], changed = []string{mask}, true
		}
	}
	if !changed {
		return text
	}
	u.User, u.RawQuery = maskUser(u.User), strings.ReplaceAll(query.Encode(), url.QueryEscape(mask), mask)
	shown := u.String()
	return strings.Replace(shown, "//"+url.PathEscape(mask)+"@", "//"+mask+"@", 1)
}

func maskUser(user *url.Userinfo) *url.Userinfo {
	if user == nil {
		return nil
	}
	return url.User(mask)
}

// maskText hides everything in a broken URL that could be user info or a query.
func maskText(text string) string {
	text, _, query := strings.Cut(text, "?")
	if query {
		text += "?" + mask
	}
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return text
	}
	scheme, _, ok := strings.Cut(text, "://")
	if !ok || len(scheme) > at {
		return mask + text[at:]
	}
	return scheme + "://" + mask + text[at:]
}
