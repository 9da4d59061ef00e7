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
	"slices"
	"strings"

	"tare/internal/drive"
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
}

// targetOf resolves the target of a spec; dialectPath is what follows a base URL: /v1/chat/completions.
func targetOf(spec plan.Spec, dialectPath string) (target, error) {
	t := spec.Target
	text, err := t.RequestURL(dialectPath)
	if err != nil {
		return target{}, misused(err, "")
	}
	u, err := url.Parse(text)
	if err != nil {
		return target{}, errors.New("target.url: not a URL") // the parser's text repeats the URL, with its password
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	out := target{address: net.JoinHostPort(u.Hostname(), port), host: u.Host, path: u.RequestURI()}
	out.header, out.secrets = headerLines(t, spec.Masked().Target, u.User)
	if u.Scheme == "https" {
		out.tls, err = tlsConfig(t, u.Hostname())
	}
	return out, err
}

// headerLines are the request's further header lines, and the values in them that are secret. A header of the user's goes before
// user info of the URL, and that before the API key.
func headerLines(t, masked plan.Target, user *url.Userinfo) (lines, secrets []string) {
	authorized := false
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		lines = append(lines, name+": "+t.Headers[name])
		if masked.Headers[name] != t.Headers[name] {
			secrets = append(secrets, t.Headers[name])
		}
		authorized = authorized || strings.EqualFold(name, "Authorization")
	}
	if authorized {
		return lines, secrets
	}
	if user != nil {
		password, _ := user.Password() // empty when there is none
		token := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		return append(lines, "Authorization: Basic "+token), append(secrets, token)
	}
	if key := strings.TrimSpace(os.Getenv(t.APIKeyEnv)); t.APIKeyEnv != "" && key != "" {
		return append(lines, "Authorization: Bearer "+key), append(secrets, key)
	}
	return lines, secrets
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

// driveConfig says how the drive is to carry a spec out against t.
func driveConfig(s plan.Spec, t target) drive.Config {
	return drive.Config{
		Address: t.address, Host: t.host, Path: t.path, Header: t.header, TLS: t.tls, RunID: "tare-" + shortID(),
		Timeout: s.Target.Timeout, ConnectTimeout: s.Target.ConnectTimeout, IdleTimeout: s.Target.IdleTimeout, Drain: s.Load.Drain,
		Engine: s.Client.Engine, Loops: s.Client.Loops, Procs: s.Client.Procs, Connections: s.Client.Connections, Spin: s.Client.Spin,
	}
}
