package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/drive/dialect"
	"tare/internal/drive/probe"
	"tare/internal/plan"
)

func newProbe() *cobra.Command {
	timeout := 30 * time.Second
	asJSON := false
	draft := new(plan.Draft)
	c := &cobra.Command{
		Use:   "probe [URL]",
		Short: "Find out what a server is and how it answers",
		Long: `Find out what a server is and how it answers, with a dozen requests that cost nothing and a few that cost up to 8 tokens each:
whether it is reachable, its certificate, what kind of server it is, its models, which endpoints answer, and whether something
holds its streams back. The findings end in a spec to start from; all that is printed is a spec file, in which they are comments.

URL is the server's base, as for tare run. Every endpoint is tried unless --endpoint names one. The API key is read from the environment
as for tare run; it is sent to this server only, and written nowhere.

Exit codes: 0 if an endpoint answers, 1 if none does, 2 if a flag or the spec is wrong.`,
		Example: `  tare probe http://127.0.0.1:8000
  tare probe http://127.0.0.1:8000 > spec.yaml && tare run -f spec.yaml
  tare probe https://host/v1 --model my-model --endpoint openai-chat --timeout 2m
  tare probe http://127.0.0.1:8000 --json | jq .endpoints
  tare probe -f spec.yaml`,
		Args: cobra.MaximumNArgs(1),
	}
	draft.Require("target.url")
	read := addFlags(c, probeFlags(), draft)
	c.Flags().DurationVar(&timeout, "timeout", timeout, "longest time of it all; one connection or request may take a third of it")
	c.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	c.RunE = verb(func(c *cobra.Command, args []string) error {
		if timeout <= 0 {
			return misused(fmt.Errorf("--timeout: must be above 0s, got %v", timeout), "")
		}
		if !c.Flags().Changed("file") {
			draft.Set("load.concurrency", "1", "") // the load of the spec to start from
			draft.Set("load.requests", "10", "")
		}
		spec, err := read(args, nil)
		if err != nil {
			return misused(err, "")
		}
		endpoints := plan.Endpoints()
		if c.Flags().Changed("endpoint") {
			endpoints = []string{spec.Target.Endpoint}
		}
		return probeServer(c, spec, endpoints, timeout, asJSON)
	})
	return c
}

// probeFlags are the flags of the spec that say whom to speak to, and as whom.
func probeFlags() []specFlag {
	keys := []string{
		"target.model", "target.endpoint", "target.headers", "target.api_key_file", "target.api_key_header", "target.insecure", "target.ca_file",
		"target.client_cert_file", "target.client_key_file", "target.server_name",
	}
	return slices.DeleteFunc(slices.Clone(specFlags), func(f specFlag) bool { return !slices.Contains(keys, f.key) })
}

func probeServer(c *cobra.Command, spec plan.Spec, endpoints []string, timeout time.Duration, asJSON bool) error {
	cfg, warnings, err := probeConfig(spec)
	if err != nil {
		return misused(err, "")
	}
	cfg.Endpoints, cfg.Timeout = endpoints, timeout
	ctx, stop := untilInterrupted(c.Context())
	defer stop()
	found := probe.Run(ctx, cfg)
	found.Notes = append(found.Notes, warnings...)
	if err := printFinding(c.OutOrStdout(), found, spec, asJSON); err != nil {
		return err
	}
	switch {
	case c.Context().Err() == nil && errors.Is(ctx.Err(), context.Canceled):
		return &exit{code: exitInterrupted}
	case found.Failure != "":
		return &exit{code: exitFailed, err: errors.New(found.Failure), hint: found.Hint}
	}
	return nil
}

// probeConfig turns a spec into whom to probe, and how each endpoint is spoken to.
func probeConfig(spec plan.Spec) (cfg probe.Config, warnings []string, err error) {
	get, t, err := wayTo(spec)
	if err != nil {
		return probe.Config{}, nil, err
	}
	base := basePath(get.Path, get.Dialect.Path())
	warnings = t.warnings
	if n := len(t.servers); n > 1 {
		warnings = append(warnings, fmt.Sprintf("of %d servers the first is probed", n))
	}
	return probe.Config{
		URL: spec.Masked().Target.URL, Base: base, Get: get, Model: spec.Target.Model,
		Speak: func(endpoint string, o probe.Wish) (probe.Way, error) {
			asked := spec
			asked.Target.Endpoint, asked.Target.Model = endpoint, o.Model
			asked.Target.Stream, asked.Target.ContinuousUsage, asked.Target.ReturnTokenIDs = o.Stream, o.ContinuousUsage, o.ReturnTokenIDs
			w, _, err := wayTo(asked)
			return w, err
		},
	}, warnings, nil
}

// wayTo is how a run of this spec would speak to its server, the first of them, in HTTP/1.1.
func wayTo(spec plan.Spec) (probe.Way, target, error) {
	spec.Target.HTTP = plan.HTTP11
	bare, err := dialect.For(spec.Target.Endpoint, dialectOptions(spec, nil)) // its secrets come from the target
	if err != nil {
		return probe.Way{}, target{}, err
	}
	t, err := targetOf(spec, bare)
	if err != nil {
		return probe.Way{}, target{}, err
	}
	d, err := dialect.For(spec.Target.Endpoint, dialectOptions(spec, t.secrets))
	return probe.Way{Server: t.servers[0], Dialect: d, Secrets: t.secrets}, t, err
}

// printFinding prints what was found. With a spec to start from, everything is one spec file.
func printFinding(to io.Writer, found *probe.Finding, asked plan.Spec, asJSON bool) error {
	spec, left, ok := startFrom(found, asked)
	if asJSON {
		out := struct {
			*probe.Finding
			Spec *plan.Spec `json:"spec,omitempty"`
		}{Finding: found}
		if ok {
			out.Spec = &spec
		}
		b, err := json.MarshalIndent(out, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(to, "%s\n", b)
		}
		return err
	}
	text := found.Text()
	if !ok {
		_, err := io.WriteString(to, text)
		return err
	}
	for _, l := range left {
		text += "left out below: " + l + "\n"
	}
	_, err := fmt.Fprintf(to, "%s\n%s", comment(text), spec.YAML())
	return err
}

// comment makes every line of a text a comment of YAML.
func comment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	return b.String()
}

// startFrom is the spec of a small run against the best endpoint found; ok is false if there is none. Secrets, which are not
// printed, are left out of it, so that it is accepted as it stands.
func startFrom(found *probe.Finding, asked plan.Spec) (spec plan.Spec, left []string, ok bool) {
	best, ok := found.Best()
	if !ok {
		return plan.Spec{}, nil, false
	}
	spec = asked
	t := &spec.Target
	t.Endpoint, t.Model, t.Stream = best.Name, best.Model, best.Streams()
	t.ContinuousUsage, t.ReturnTokenIDs = best.Precise()
	t.Reuse = asked.Target.Reuse && !found.KeepAlive.Unsaid()
	masked := asked.Masked().Target
	t.Headers = map[string]string{}
	for name, value := range asked.Target.Headers {
		if masked.Headers[name] != value {
			left = append(left, "header "+name+", which may be secret: give it with --header")
			continue
		}
		t.Headers[name] = value
	}
	slices.Sort(left)
	if masked.URL != asked.Target.URL {
		t.URL = withoutSecrets(asked.Target, masked)
		left = append(left, "what is secret in the URL: give the URL with it anew")
	}
	return spec, left, true
}

// withoutSecrets are the URLs of a target without their user info and without the parameters that their masked form hides.
func withoutSecrets(asked, masked plan.Target) string {
	urls, hidden := asked.URLs(), masked.URLs()
	for i := range urls {
		u, err := url.Parse(urls[i])
		shown, errShown := url.Parse(hidden[i])
		if err != nil || errShown != nil {
			return ""
		}
		query, visible := u.Query(), shown.Query()
		for name := range query {
			if !slices.Equal(query[name], visible[name]) {
				query.Del(name)
			}
		}
		u.User, u.RawQuery = nil, query.Encode()
		urls[i] = u.String()
	}
	return strings.Join(urls, " ")
}
