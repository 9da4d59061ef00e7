package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// paths are where servers say what they are. None of them costs tokens.
var paths = []string{
	"/", "/v1/models", "/version", "/health", "/info", "/get_server_info", "/server_info", "/props", "/api/version", "/v2", "/metrics",
}

const (
	getBytes  = 1 << 20 // kept of a reply
	getsAtOne = 4       // at a time
)

// get is the reply to a plain question.
type get struct {
	status   int // 0 when none came
	header   http.Header
	body     []byte
	location string
	err      error
}

// object is the JSON object of a good reply, or nil.
func (g get) object() map[string]any {
	var o map[string]any
	if g.status != http.StatusOK || json.Unmarshal(g.body, &o) != nil {
		return nil
	}
	return o
}

// page reports that a good reply is a web page.
func (g get) page() bool {
	return g.status == http.StatusOK && strings.HasPrefix(g.header.Get("Content-Type"), "text/html")
}

// ask puts the plain questions to the server, a few at a time, and no more if the first few had no reply.
func (p *prober) ask(ctx context.Context) {
	base := "http://"
	if p.cfg.Get.TLS != nil {
		base = "https://"
	}
	base += p.cfg.Get.Host + p.cfg.Base
	client := p.client()
	defer client.CloseIdleConnections()
	p.gets = map[string]get{}
	for some := range slices.Chunk(paths, getsAtOne) {
		for i, g := range p.askAll(ctx, client, base, some) {
			p.gets[some[i]] = g
		}
		p.found.Sent.Gets += len(some)
		if p.allSilent() {
			break // each may have taken its whole time
		}
	}
}

// askAll puts some questions at the same time.
func (p *prober) askAll(ctx context.Context, client *http.Client, base string, some []string) []get {
	replies := make([]get, len(some))
	var asking sync.WaitGroup
	for i, path := range some {
		asking.Go(func() { replies[i] = p.get(ctx, client, base, path) })
	}
	asking.Wait()
	return replies
}

// client is one that hides nothing: no redirects, no proxies, no compression. It speaks HTTP/1.1.
func (p *prober) client() *http.Client {
	t := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) },
		TLSClientConfig: p.cfg.Get.TLS.Clone(), DisableCompression: true, MaxIdleConnsPerHost: getsAtOne,
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (p *prober) get(ctx context.Context, client *http.Client, base, path string) get {
	var g get
	ctx, cancel := p.limit(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		g.err = err
		return g
	}
	for _, line := range p.cfg.Get.Header {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "Host") {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	reply, err := client.Do(r)
	if err != nil {
		g.err = err
		return g
	}
	defer reply.Body.Close()
	g.status, g.header, g.location = reply.StatusCode, reply.Header, reply.Header.Get("Location")
	g.body, _ = io.ReadAll(io.LimitReader(reply.Body, getBytes)) // a reply that breaks off says what it said so far
	return g
}

// identify asks the server what it is. It ends the probe where that shows that nobody is to be spoken to.
func (p *prober) identify(ctx context.Context) bool {
	p.ask(ctx)
	answered, redirected, pages := 0, 0, 0
	for _, path := range paths {
		g := p.gets[path]
		if g.status > 0 {
			answered++
		}
		if g.status/100 == 3 {
			redirected++
		}
		if g.page() {
			pages++
		}
	}
	if answered > 0 {
		p.found.HTTP = append(p.found.HTTP, "HTTP/1.1")
	}
	first := p.gets["/"]
	switch {
	case redirected == answered && answered > 0:
		to := p.mask(first.location)
		return p.fail(fmt.Sprintf("the server redirects every request, to %s", to), "probe the address that it redirects to: a run follows no redirects")
	case p.cfg.Get.TLS == nil && (answered == 0 && !p.anySlow() || wantsTLS(first)) && p.speaksTLS(ctx):
		return p.fail("the server speaks TLS", "write https://")
	case answered == 0 && alerted(first):
		return p.fail("the server ends the TLS connection: "+p.unanswered(first), "it may want a certificate of yours: --client-cert-file and --client-key-file")
	case answered == 0 && !p.anySlow():
		return p.fail("the server takes connections and does not answer in HTTP/1.1: "+p.unanswered(first), "")
	case pages == answered && pages > 3:
		p.note("the server answers every path with a web page: it is probably not the inference server, or a login stands before it")
	}
	p.name()
	p.list()
	return true
}

// unanswered says why a plain question got no reply.
func (p *prober) unanswered(g get) string {
	text := p.reason(g.err)
	if errors.Is(g.err, io.EOF) {
		text = "it closes the connection without a reply"
	}
	return p.mask(text[strings.LastIndex(text, "\": ")+1:])
}

// alerted reports that the server ended the connection in the way of TLS: one without a certificate, for instance.
func alerted(g get) bool {
	op, is := errors.AsType[*net.OpError](g.err)
	return is && op.Op == "remote error"
}

func (p *prober) anySlow() bool {
	return slices.ContainsFunc(paths, func(path string) bool { return p.gets[path].err != nil && slow(p.gets[path].err) })
}

// wantsTLS reports that a server complains of plain HTTP.
func wantsTLS(g get) bool {
	return g.status == http.StatusBadRequest && strings.Contains(strings.ToLower(string(g.body)), "https")
}
