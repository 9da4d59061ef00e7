package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/internal/drive"
	"tare/internal/drive/dialect"
	"tare/internal/plan"
)

// target is a server as the drive needs it.
type target struct {
	address string // host:port
	host    string // value of the Host header
	path    string // request target, with query
	header  []string
	secrets []string // never to be printed or written
	tls     *tls.Config

	warnings []string
}

// targetOf resolves the target of a spec, which is spoken to in d.
func targetOf(spec plan.Spec, d dialect.Dialect) (target, error) {
	t := spec.Target
	text, err := t.RequestURL(d.Path())
	if err != nil {
		return target{}, misused(err, "")
	}
	u, err := url.Parse(text)
	if err != nil {
		return target{}, errors.New("target.url: not a URL") // the parser's text repeats the URL, with its password
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	out := target{address: net.JoinHostPort(u.Hostname(), port), host: u.Host, path: u.RequestURI()}
	if err := out.addHeaders(t, spec.Masked().Target, u.User, dialect.AuthOf(d)); err != nil {
		return target{}, err
	}
	if u.Scheme == "https" {
		out.tls, err = tlsConfig(t, u.Hostname())
	}
	return out, err
}

// addHeaders fills in the request's further header lines, and the values in them that are secret.
func (to *target) addHeaders(t, masked plan.Target, user *url.Userinfo, auth dialect.Auth) error {
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		to.header = append(to.header, name+": "+t.Headers[name])
		if masked.Headers[name] != t.Headers[name] {
			to.secrets = append(to.secrets, t.Headers[name])
		}
	}
	for _, line := range auth.Header {
		if name, _, _ := strings.Cut(line, ":"); headerNamed(t, name) == "" {
			to.header = append(to.header, line)
		}
	}
	key, err := apiKey(t.APIKeyEnv)
	if err != nil {
		return err
	}
	to.authorize(t, user, key, auth.KeyHeader)
	return nil
}

// authorize chooses who the requests come from. What was written for this run goes before what is in the environment: a header of
// the user's, then user info of the URL, then the API key, which goes into keyHeader, or is a bearer token if that is empty.
func (to *target) authorize(t plan.Target, user *url.Userinfo, key, keyHeader string) {
	const byUser = "user info of the URL"
	byKey := "the API key in the environment variable " + t.APIKeyEnv
	own := headerNamed(t, "Authorization")
	if own == "" && keyHeader != "" {
		own = headerNamed(t, keyHeader)
	}
	chosen := ""
	choose := func(given bool, what, header, token string) {
		switch {
		case !given:
		case chosen != "":
			to.warnings = append(to.warnings, what+" is not sent: "+chosen+" goes before it")
		case header != "":
			to.header, to.secrets = append(to.header, header+token), append(to.secrets, token)
			fallthrough
		default:
			chosen = what
		}
	}
	keyPrefix := "Authorization: Bearer "
	if keyHeader != "" {
		keyPrefix = keyHeader + ": "
	}
	choose(own != "", "the header "+own, "", "")
	choose(user != nil, byUser, "Authorization: Basic ", basicToken(user))
	choose(key != "", byKey, keyPrefix, key)
}

// headerNamed returns name if the user gives a header of that name, in any case.
func headerNamed(t plan.Target, name string) string {
	for given := range t.Headers {
		if strings.EqualFold(given, name) {
			return name
		}
	}
	return ""
}

func basicToken(user *url.Userinfo) string {
	password, _ := user.Password() // empty when there is none
	return base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
}

// apiKey reads the key from its environment variable, without the space around it. A line break within it would begin another header.
func apiKey(variable string) (key string, err error) {
	if variable == "" {
		return "", nil
	}
	key = strings.TrimSpace(os.Getenv(variable))
	if strings.ContainsFunc(key, unicode.IsControl) || !utf8.ValidString(key) {
		return "", misused(fmt.Errorf("environment variable %s: the API key must not have line breaks or other control characters", variable),
			"set it to the bare key, on one line")
	}
	return key, nil
}

func tlsConfig(t plan.Target, name string) (*tls.Config, error) {
	c := &tls.Config{ServerName: name, InsecureSkipVerify: t.Insecure, MinVersion: tls.VersionTLS12}
	if t.CAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, misused(fmt.Errorf("target.ca_file: %w", err), "")
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, misused(fmt.Errorf("target.ca_file: no certificate in %s", t.CAFile), "it must be in PEM form: -----BEGIN CERTIFICATE-----")
	}
	return c, nil
}

// driveConfig says how the drive is to carry a spec out against t. Fewer loops fit into a number of processors that was asked for.
func driveConfig(s plan.Spec, t target) drive.Config {
	loops := s.Client.Loops
	if loops == 0 && s.Client.Procs > 0 {
		loops = max(1, min(runtime.NumCPU()-1, s.Client.Procs-2))
	}
	return drive.Config{
		Address: t.address, Host: t.host, Path: t.path, Header: t.header, Secrets: t.secrets, TLS: t.tls, RunID: "tare-" + shortID(),
		Timeout: s.Target.Timeout, ConnectTimeout: s.Target.ConnectTimeout, IdleTimeout: s.Target.IdleTimeout, Drain: s.Load.Drain,
		Engine: s.Client.Engine, Loops: loops, Procs: s.Client.Procs, Connections: s.Client.Connections, Spin: s.Client.Spin,
	}
}
