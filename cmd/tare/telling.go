package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"tare/internal/drive"
	"tare/internal/live"
	"tare/internal/record"
)

// collectorHeaders is the environment variable of OpenTelemetry that holds headers for a collector, "name=value,name=value".
const collectorHeaders = "OTEL_EXPORTER_OTLP_HEADERS"

// telling is who is told of a run while it goes on.
type telling struct {
	listen    string // address that /metrics is served at; empty for none
	collector string // base URL of an OTLP/HTTP collector; empty for none
}

func (t *telling) flags(f *pflag.FlagSet) {
	f.StringVar(&t.listen, "metrics-listen", "", "serve the run's own metrics for Prometheus at http://`host:port`/metrics while it goes on")
	f.StringVar(&t.collector, "otlp", "", "send metrics, and a span for each request, to the OpenTelemetry collector at this `URL` (OTLP/HTTP, JSON) while the run goes on")
}

func (t telling) none() bool { return t.listen == "" && t.collector == "" }

// warnings say that telling is work of the client's.
func (t telling) warnings() []string {
	if t.none() {
		return nil
	}
	return []string{"others were told of the run while it went on (--metrics-listen, --otlp): that takes processor time of the client's machine"}
}

// during runs run, and tells of it. Faults of the options are found before.
func (t telling) during(ctx context.Context, cfg *drive.Config, notices io.Writer, run func() error) error {
	if t.none() {
		return run()
	}
	options, err := t.options()
	if err != nil {
		return misused(err, "")
	}
	teller := live.New(options)
	t.connect(teller, cfg)
	var telling sync.WaitGroup
	telling.Go(func() { teller.Tell(context.WithoutCancel(ctx)) })
	err = run()
	teller.End()
	telling.Wait()
	if records, spans := teller.Lost(); records+spans > 0 {
		fmt.Fprintf(notices, "not told of: %d records that were not read in time, %d spans that the collector did not take\n", records, spans)
	}
	return err
}

// connect lets the teller know what the drive knows.
func (t telling) connect(teller *live.Teller, cfg *drive.Config) {
	ready, watch := cfg.Ready, cfg.Watch
	cfg.Blocks = teller.Block
	cfg.Ready = func(m *record.Manifest) error {
		teller.Begin(m)
		return ready(m)
	}
	cfg.Watch = func(p drive.Progress) {
		teller.Progress(p.Planned, p.Sent, p.InFlight)
		watch(p)
	}
}

// options resolves addresses and headers.
func (t telling) options() (o live.Options, err error) {
	var faults []error
	if t.collector != "" {
		u, err := url.Parse(t.collector)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			faults = append(faults, errors.New("--otlp: must be the URL of a collector\nhint: --otlp http://127.0.0.1:4318"))
		}
		o.Collector = t.collector
		if o.Headers, err = parseHeaders(os.Getenv(collectorHeaders)); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 && t.listen != "" {
		if o.Listener, err = net.Listen("tcp", t.listen); err != nil {
			faults = append(faults, fmt.Errorf("--metrics-listen: %w\nhint: --metrics-listen 127.0.0.1:9464", err))
		}
	}
	return o, errors.Join(faults...)
}

// parseHeaders reads "name=value,name=value", values with percent signs. Its errors name no value.
func parseHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !ok || name == "" || err != nil || strings.ContainsAny(name+value, "\r\n") {
			return nil, fmt.Errorf("%s: entry %d must be name=value", collectorHeaders, i+1)
		}
		headers[http.CanonicalHeaderKey(name)] = value
	}
	return headers, nil
}
