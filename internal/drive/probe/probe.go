package probe

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"tare/internal/drive"
	"tare/internal/drive/dialect"
)

// Config says whom to probe and how.
type Config struct {
	URL       string   // to be shown, without secrets
	Base      string   // path that the server's own paths are under: "" or "/prefix"
	Get       Way      // how plain questions go to the server; its Path and Dialect are not used
	Endpoints []string // to try, the one that is liked best first
	Model     string   // to ask for; empty for the first that the server lists
	Timeout   time.Duration

	// Speak gives the way that a run's requests take. Its error says why an endpoint cannot be asked.
	Speak func(endpoint string, o Wish) (Way, error)
}

// Wish is what a request asks for.
type Wish struct {
	Model           string
	Stream          bool
	ContinuousUsage bool
	ReturnTokenIDs  bool
}

// Way is how requests go to the server, and in which language.
type Way struct {
	drive.Server
	Dialect dialect.Dialect
	Secrets []string // masked wherever a server echoes them
}

// Run probes a server, in at most cfg.Timeout, and closes every connection that it made. What goes wrong is in the Finding.
func Run(ctx context.Context, cfg Config) *Finding {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	p := &prober{cfg: cfg, step: cfg.Timeout / steps}
	p.found = Finding{Schema: Schema, URL: cfg.URL, HTTP: []string{}, Models: []Model{}, Endpoints: []Endpoint{}, Notes: []string{}}
	p.found.Server.Evidence = []string{}
	if p.reach(ctx) && p.secure(ctx) && p.identify(ctx) {
		p.converse(ctx)
		p.conclude(ctx)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		p.fail("interrupted", "")
	}
	p.found.Sent.Connections = int(p.dialled.Load())
	return &p.found
}

// steps is the part of the whole time that a single connection or request may take.
const steps = 3

// prober is one probe while it goes on.
type prober struct {
	cfg     Config
	step    time.Duration // longest time of one connection or request
	used    string        // address of the server that took a connection
	dialled atomic.Int64
	found   Finding
	gets    map[string]get // replies to plain questions, by path
	posts   int64
}

// fail ends the probe: there is nothing to measure.
func (p *prober) fail(why, hint string) bool {
	p.found.Failure, p.found.Hint = why, hint
	return false
}

func (p *prober) note(text string) { p.found.Notes = append(p.found.Notes, text) }

// mask makes the server's text fit to be shown.
func (p *prober) mask(text string) string { return dialect.Mask(text, p.cfg.Get.Secrets...) }

// limit is a context for one step.
func (p *prober) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.step)
}

// dial opens a connection to the address that was found to take them.
func (p *prober) dial(ctx context.Context) (net.Conn, error) { return p.dialTo(ctx, p.used) }

func (p *prober) dialTo(ctx context.Context, address string) (net.Conn, error) {
	p.dialled.Add(1)
	var d net.Dialer
	return d.DialContext(ctx, cmp.Or(p.cfg.Get.Network, "tcp"), address)
}

// reason is the bare cause of an error of the network: addresses are shown beside it anyway.
func (p *prober) reason(err error) string {
	if slow(err) {
		return "no answer within " + p.step.Round(time.Millisecond).String()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name.Err
	}
	return err.Error()
}

func slow(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || ok && t.Timeout()
}
