package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"tare/internal/drive"
	"tare/internal/drive/dialect"
	"tare/internal/drive/scrape"
	"tare/internal/plan"
)

// target is the servers of a spec as the drive needs them.
type target struct {
	servers []drive.Server
	secrets []string       // never to be printed or written
	scrape  *scrape.Config // of the servers' own metrics, without where it is written; nil for none

	warnings []string
}

// targetOf resolves the target of a spec, which is spoken to in d.
func targetOf(spec plan.Spec, d dialect.Dialect) (target, error) {
	t := spec.Target
	servers, err := t.Servers(d.Path())
	if err != nil {
		return target{}, misused(err, "")
	}
	key, err := apiKey(t)
	if err != nil {
		return target{}, err
	}
	values, err := headerValues(t.Headers)
	if err != nil {
		return target{}, err
	}
	out := target{}
	if t.Insecure {
		out.warnings = []string{"the server's certificate is not checked (target.insecure): whoever answers is taken for the server"}
	}
	for _, s := range servers {
		h := headers{keyName: keyHeader(t, d.Auth())}
		h.add(t, values, spec.Masked().Target, d.Auth().Header)
		h.authorize(t, s.User, key)
		server := drive.Server{Network: s.Network, Address: s.Address, Host: s.Host, Path: s.Path, Header: h.lines}
		if s.Secure {
			if server.TLS, err = tlsConfig(t, s.Hostname()); err != nil {
				return target{}, err
			}
		}
		out.servers = append(out.servers, server)
		out.secrets = united(out.secrets, h.secrets)
		out.warnings = united(out.warnings, h.warnings)
	}
	return out, nil
}

// united adds what a list does not have yet.
func united(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// headers are the further header lines of a request, and what of them is secret.
type headers struct {
	keyName string // of the header that the API key goes into; empty for a bearer token

	lines, secrets, warnings []string
}

// keyHeader is the header that the API key goes into; empty for a bearer token.
func keyHeader(t plan.Target, auth dialect.Auth) string {
	switch {
	case strings.EqualFold(t.APIKeyHeader, "Authorization"):
		return ""
	case t.APIKeyHeader != "":
		return t.APIKeyHeader
	}
	return auth.KeyHeader
}

// add takes the user's headers in, and those of the dialect that the user does not give. A value is secret that the spec does
// not hold, or does not show.
func (h *headers) add(t plan.Target, values map[string]string, masked plan.Target, own []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		h.lines = append(h.lines, name+": "+values[name])
		if masked.Headers[name] != values[name] {
			h.secrets = append(h.secrets, values[name])
		}
	}
	for _, line := range own {
		if name, _, _ := strings.Cut(line, ":"); headerNamed(t, name) == "" {
			h.lines = append(h.lines, line)
		}
	}
}

// authorize chooses who the requests come from. What was written for this run goes before what is in the environment: a header of
// the user's, then user info of the URL, then the API key.
func (h *headers) authorize(t plan.Target, user *url.Userinfo, key secret) {
	const byUser = "user info of the URL"
	own := headerNamed(t, "Authorization")
	if own == "" && h.keyName != "" {
		own = headerNamed(t, h.keyName)
	}
	chosen := ""
	choose := func(given bool, what, header, token string) {
		switch {
		case !given:
		case chosen != "":
			h.warnings = append(h.warnings, what+" is not sent: "+chosen+" goes before it")
		case header != "":
			h.lines, h.secrets = append(h.lines, header+token), append(h.secrets, token)
			fallthrough
		default:
			chosen = what
		}
	}
	keyPrefix := "Authorization: Bearer "
	if h.keyName != "" {
		keyPrefix = h.keyName + ": "
	}
	choose(own != "", "the header "+own, "", "")
	choose(user != nil, byUser, "Authorization: Basic ", basicToken(user))
	choose(key.value != "", "the API key in the "+key.place, keyPrefix, key.value)
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

func tlsConfig(t plan.Target, name string) (*tls.Config, error) {
	c := &tls.Config{ServerName: cmp.Or(t.ServerName, name), InsecureSkipVerify: t.Insecure, MinVersion: tls.VersionTLS12}
	if t.ClientCertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.ClientCertFile, t.ClientKeyFile)
		if err != nil {
			return nil, misused(fmt.Errorf("target.client_cert_file, target.client_key_file: %w", err), "both must be in PEM form, and belong together")
		}
		c.Certificates = []tls.Certificate{pair}
	}
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
		Servers: t.servers, Secrets: t.secrets, RunID: "tare-" + shortID(),
		Timeout: s.Target.Timeout, ConnectTimeout: s.Target.ConnectTimeout, IdleTimeout: s.Target.IdleTimeout, NoReuse: !s.Target.Reuse, HTTP2: s.Target.HTTP == plan.HTTP2, Drain: s.Load.Drain,
		HeaderTimeout: s.Target.HeaderTimeout, FirstTokenTimeout: s.Target.FirstTokenTimeout, TokenTimeout: s.Target.TokenTimeout,
		Retries: s.Target.Retries,
		Engine:  s.Client.Engine, Loops: loops, Procs: s.Client.Procs, Connections: s.Client.Connections, Spin: s.Client.Spin,
	}
}
