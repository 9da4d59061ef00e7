package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/drive"
	"tare/internal/drive/calibrate"
	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
	"tare/internal/record"
)

// calibrateOptions say how long to look, and how long what was found holds.
type calibrateOptions struct {
	time   time.Duration // for all trials
	keep   time.Duration
	asJSON bool
}

// The defaults of a calibration. Kernels, clocks and neighbours change: after a week it says little.
const (
	calibrateTime = 20 * time.Second
	calibrateKeep = 7 * 24 * time.Hour
)

func newCalibrate() *cobra.Command {
	o := calibrateOptions{time: calibrateTime, keep: calibrateKeep}
	draft := new(plan.Draft)
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Find out how much load this machine can make",
		Long: `Find out how much load of a kind this machine can make before the client's own delays show: send requests like those of the
spec to a server that answers at once, in a process of its own, at rising rates, until the verdict on the client fails; then streams that
emit in lock-step, as engines with continuous batching make them, more and more of them.

What is found is kept under the user's cache directory, for this machine and this kind of load: size of a request, events of an answer,
TLS or not, event loops. tare run then holds a plan against it before it starts. The spec's own server is never spoken to.`,
		Example: `  tare calibrate
  tare calibrate -f spec.yaml
  tare calibrate --input-tokens 4000 --output-tokens 200 --loops 2
  tare calibrate --json | jq .mixed.events_per_s`,
		Args: cobra.NoArgs,
	}
	read := addFlags(c, calibrateFlags(), draft)
	f := c.Flags()
	f.DurationVar(&o.time, "time", o.time, "no further trial begins after this")
	f.DurationVar(&o.keep, "keep", o.keep, "how long it holds")
	f.BoolVar(&o.asJSON, "json", false, "print what is stored")
	c.RunE = verb(func(c *cobra.Command, _ []string) error {
		if o.time <= 0 || o.keep <= 0 {
			return misused(fmt.Errorf("--time, --keep: must be above 0s, got %v and %v", o.time, o.keep), "")
		}
		if !c.Flags().Changed("file") {
			draft.Set("load.rate", "1", "") // the kind of load is what matters, its rate is what is looked for
			draft.Set("load.requests", "1000", "")
		}
		spec, err := read(nil, nil)
		if err != nil {
			return misused(err, "")
		}
		return calibrateMachine(c, spec, o)
	})
	return c
}

// calibrateFlags are the flags of the spec that decide what a request costs the client.
func calibrateFlags() []specFlag {
	keys := []string{
		"target.endpoint", "target.stream", "target.reuse", "workload.input_tokens", "workload.output_tokens", "client.engine", "client.loops",
		"client.procs", "client.spin",
	}
	return slices.DeleteFunc(slices.Clone(specFlags), func(f specFlag) bool { return !slices.Contains(keys, f.key) })
}

func calibrateMachine(c *cobra.Command, spec plan.Spec, o calibrateOptions) error {
	if spec.Target.URL == "" {
		spec.Target.URL = "http://127.0.0.1" // never spoken to: it says that there is no TLS
	}
	spec.Target.APIKeyEnv, spec.Target.APIKeyFile, spec.Target.Headers = "", "", nil
	l, err := newLoad(spec)
	if err != nil {
		return misused(err, "")
	}
	defer l.plan.Close()
	b, err := newBench(l)
	if err != nil {
		return err
	}
	b.progress = c.ErrOrStderr()
	found, path, err := b.calibrate(c.Context(), o)
	if err != nil {
		return err
	}
	if o.asJSON {
		e := json.NewEncoder(c.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(found)
	}
	_, err = fmt.Fprint(c.OutOrStdout(), describeCalibration(found)+"stored     "+path+"\n")
	return err
}

// bench is what a plan asks of this machine, and where trials of such a load are made.
type bench struct {
	spec     plan.Spec
	machine  calibrate.Machine
	shape    calibrate.Shape
	progress io.Writer // what is found on the way; nil for nobody
}

// sampled is how many requests of a plan show what its requests are like.
const sampled = 256

func newBench(l load) (bench, error) {
	client, err := drive.Choose(driveConfig(l.plan.Spec, l.target), l.plan)
	if err != nil {
		return bench{}, err
	}
	return bench{
		spec:    l.plan.Spec,
		machine: calibrate.MachineOf(record.Environ(), record.ThisTool(), client),
		shape:   shapeOf(l.plan, l.target.servers[0].TLS != nil),
	}, nil
}

// shapeOf is the kind of load that a plan makes, by its first requests.
func shapeOf(p *plan.Plan, secure bool) calibrate.Shape {
	w := p.Walk()
	var r plan.Request
	n, bytes, events := 0, 0, 0
	for n < sampled && w.Next(&r) {
		n++
		bytes += len(r.Body)
		events += r.OutputTokens
	}
	t := p.Spec.Target
	s := calibrate.Shape{TLS: secure, Stream: t.Stream, Reuse: t.Reuse, BodyBytes: bytes / max(n, 1), Events: events / max(n, 1)}
	if !s.Stream {
		s.Events = 1
	}
	return s
}

// The load of a trial.
const (
	trialWindow  = 500 * time.Millisecond
	trialAnswer  = 100 * time.Millisecond // that a streamed answer takes, if its events are not too many
	leastGap     = time.Millisecond       // between the events of a stream: sooner ones come in one read
	mostEvents   = 512                    // of an answer; longer ones cost no less for each event
	stepPeriod   = 20 * time.Millisecond  // of streams in lock-step
	stepEvents   = 16                     // of their answers
	firstEvents  = 4000                   // per second, of the first trial
	firstStreams = 16
	mostRate     = 1e6 // requests per second
	mostStreams  = 1 << 12
	calibrateTo  = 0.1 // relative accuracy
	triesAtLevel = 3
)

// calibrate looks for the capacity and stores what it found.
func (b bench) calibrate(ctx context.Context, o calibrateOptions) (*calibrate.Calibration, string, error) {
	if err := b.possible(); err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "tare-calibrate-")
	if err != nil {
		return nil, "", fmt.Errorf("make room for trials: %w", err)
	}
	defer os.RemoveAll(dir)
	now := time.Now()
	found := &calibrate.Calibration{Schema: calibrate.Schema, Made: now.UTC().Truncate(time.Second), Machine: b.machine, Shape: b.shape}
	found.Expires = found.Made.Add(o.keep)
	mixed, err := b.mixed(ctx, dir, o.time)
	if err != nil {
		return nil, "", err
	}
	found.Mixed = calibrate.CapacityOf(mixed)
	if left := o.time - time.Since(now); b.shape.Stream && !b.shape.TLS && left > 0 {
		step, err := b.lockStep(ctx, dir, left)
		if err != nil {
			return nil, "", err
		}
		capacity := calibrate.CapacityOf(step)
		found.LockStep = &capacity
	}
	store, err := calibrations()
	if err != nil {
		return nil, "", err
	}
	path, err := store.Keep(found)
	return found, path, err
}

// possible reports why there is no server to calibrate such a load against, or nil.
func (b bench) possible() error {
	if b.spec.Target.HTTP == plan.HTTP2 {
		return misused(errors.New("calibrate: HTTP/2 is not possible yet, the server for trials speaks HTTP/1.1"), "")
	}
	return nil
}

// calibrations is where they are kept.
func calibrations() (calibrate.Store, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return calibrate.Store{}, fmt.Errorf("find the user's cache directory: %w", err)
	}
	return calibrate.Store{Dir: filepath.Join(dir, "tare", "calibrations")}, nil
}

// mixed looks for the highest rate of requests whose streams know nothing of each other. It takes half of the time where
// lock-step comes after it.
func (b bench) mixed(ctx context.Context, dir string, limit time.Duration) (calibrate.Found, error) {
	events := min(b.shape.Events, mostEvents)
	flags := []string{"--null"}
	spec := b.trialSpec(events)
	if b.shape.Stream {
		limit = limit * 6 / 10
		gap := max(trialAnswer/time.Duration(events), leastGap)
		flags = append(flags, "--gap", gap.String())
		spec.Load.Warmup = gap * time.Duration(events)
	}
	if b.shape.TLS {
		flags = append(flags, "--tls")
	}
	s := calibrate.Search{
		First: max(4, firstEvents/float64(events)), Least: 4, Most: mostRate, Tries: triesAtLevel, Accuracy: calibrateTo, Time: limit, Clock: time.Now,
	}
	return b.search(ctx, dir, s, flags, "requests/s", []string{"C2", "C4", "C5", "C6"}, func(level float64) plan.Spec {
		spec.Load.Rate = level
		return spec
	})
}

// lockStep looks for the most streams that may emit at once.
func (b bench) lockStep(ctx context.Context, dir string, limit time.Duration) (calibrate.Found, error) {
	spec := b.trialSpec(stepEvents)
	spec.Load.Duration = 2 * stepPeriod * stepEvents
	s := calibrate.Search{
		First: firstStreams, Least: float64(b.machine.Loops), Most: mostStreams, Tries: triesAtLevel, Accuracy: calibrateTo, Time: limit, Clock: time.Now,
	}
	return b.search(ctx, dir, s, []string{"--step", stepPeriod.String()}, "streams in lock-step", []string{"C6"}, func(level float64) plan.Spec {
		spec.Load.Concurrency = int(math.Round(level))
		return spec
	})
}

// trialSpec is a load like the plan's on a server of our own, without its rate and its URL.
func (b bench) trialSpec(events int) plan.Spec {
	s := plan.Defaults()
	s.Target.Model, s.Target.Stream, s.Target.Reuse = "sim", b.shape.Stream, b.shape.Reuse
	if b.spec.Target.Endpoint == plan.EndpointCompletions {
		s.Target.Endpoint = plan.EndpointCompletions
	}
	s.Target.Insecure = b.shape.TLS
	s.Target.APIKeyEnv = ""
	s.Workload, s.Client = b.spec.Workload, b.spec.Client
	s.Workload.OutputTokens = plan.Lengths(strconv.Itoa(events))
	s.Load.Duration, s.Load.Drain = trialWindow, 5*time.Second
	return s
}

// search starts a server and looks for the highest level of a load on it that passes some gates.
func (b bench) search(ctx context.Context, dir string, s calibrate.Search, flags []string, unit string, gates []string, load func(level float64) plan.Spec) (calibrate.Found, error) {
	self, err := os.Executable()
	if err != nil {
		return calibrate.Found{}, err
	}
	server, err := startSim(ctx, self, os.Stderr, flags...)
	if err != nil {
		return calibrate.Found{}, err
	}
	scheme := "http://"
	if b.shape.TLS {
		scheme = "https://"
	}
	found, err := s.Run(ctx, func(ctx context.Context, level float64) (calibrate.Trial, error) {
		spec := load(level)
		spec.Target.URL = scheme + server.addr
		t, err := attempt(ctx, spec, dir, gates)
		if err == nil && b.progress != nil {
			fmt.Fprintf(b.progress, "%9s %s: %s\n", short(level), unit, outcomeOf(t))
		}
		return t, err
	})
	if errors.Is(err, calibrate.ErrBusy) {
		err = &exit{code: exitFailed, err: err, hint: "end what else is running here, or give --loops and --procs"}
	}
	return found, errors.Join(err, server.stop())
}

func outcomeOf(t calibrate.Trial) string {
	if t.Held {
		return "held"
	}
	return t.Why
}

// attempt carries one trial out, as any other run, and judges the client by the same gates.
func attempt(ctx context.Context, spec plan.Spec, under string, gates []string) (t calibrate.Trial, err error) {
	if spec.Out, err = os.MkdirTemp(under, "trial-"); err != nil {
		return t, fmt.Errorf("make room for a trial: %w", err)
	}
	defer os.RemoveAll(spec.Out)
	l, err := newLoad(spec)
	if err != nil {
		return t, err
	}
	defer l.plan.Close()
	r, err := l.perform(ctx, nil, io.Discard)
	if err != nil {
		return t, err
	}
	if r.interrupted {
		return t, &exit{code: exitInterrupted}
	}
	m, err := record.ReadManifest(r.dir)
	if err != nil {
		return t, err
	}
	return trialOf(r.summary, m, shapeOf(l.plan, false), gates), nil
}

// trialOf reads off what a trial came to.
func trialOf(s *judge.Summary, m *record.Manifest, shape calibrate.Shape, gates []string) calibrate.Trial {
	p := &s.Total
	value := func(n judge.Number) float64 { v, _ := n.Get(); return v }
	t := calibrate.Trial{
		RequestsPerS: value(p.CompletedRate), EventsPerS: value(p.CompletedRate), BodyBytes: float64(shape.BodyBytes),
		LagP99: milli(value(p.Metrics["receive_lag_ms"].P99)), SlipP99: milli(value(p.Metrics["slip_ms"].P99)),
	}
	if shape.Stream {
		t.EventsPerS = value(p.OutputRate)
	}
	for _, l := range m.Loops {
		t.Streams += l.MaxInFlight
		if l.WallNs > 0 && l.CPUNs > 0 {
			t.LoopLoad = max(t.LoopLoad, float64(l.CPUNs-l.SpunNs)/float64(l.WallNs))
		}
	}
	t.Held, t.Why = heldBy(s, gates)
	if m.Stages[0].Kind == "closed" {
		t.Streams = int64(m.Stages[0].Concurrency)
		return t // the loop has nothing to do between two steps, so that its load says nothing
	}
	if !t.Held && t.LoopLoad > 0 && t.LoopLoad < idleLoop {
		t.Why += fmt.Sprintf("; the busiest loop was at %.2f of its core, so that the server, or what else runs here, gave out first", t.LoopLoad)
	}
	return t
}

// idleLoop is the load of a loop below which it is not the loop that gives out.
const idleLoop = 0.6

func milli(ms float64) time.Duration { return time.Duration(ms * 1e6) }

// heldBy reports whether the client added nothing that counts, by those gates of the verdict.
func heldBy(s *judge.Summary, gates []string) (held bool, why string) {
	if n := s.Total.Planned - s.Total.Outcomes.Completed; n > 0 {
		return false, fmt.Sprintf("%d requests did not complete", n)
	}
	for _, g := range s.Verdict.Gates {
		if g.Level == verdict.Failed && slices.Contains(gates, g.ID) {
			return false, g.Name + " " + g.Measured
		}
	}
	return true, ""
}

// describeCalibration is what a person reads.
func describeCalibration(c *calibrate.Calibration) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s"+format+"\n", append([]any{name}, args...)...)
	}
	m := c.Machine
	line("machine", "%s, %d CPUs, %s %s; engine %s, loops %d, GOMAXPROCS %d", m.CPU, m.CPUs, m.OS, m.Kernel, m.Engine, m.Loops, m.GOMAXPROCS)
	line("load", "%s", describeShape(c.Shape))
	line("mixed", "%s requests/s, %s events/s, %d streams; loop load %.2f, slip p99 %.3g ms, receive lag p99 %.3g ms",
		short(c.Mixed.RequestsPerS), short(c.Mixed.EventsPerS), c.Mixed.Streams, c.Mixed.LoopLoad, c.Mixed.SlipP99Ms, c.Mixed.LagP99Ms)
	line("", "%s", describeLimit(&c.Mixed, "requests/s"))
	if s := c.LockStep; s != nil {
		line("lock-step", "%d streams each %v, %s events/s; loop load %.2f, receive lag p99 %.3g ms", s.Streams, stepPeriod, short(s.EventsPerS), s.LoopLoad, s.LagP99Ms)
		line("", "%s", describeLimit(s, "streams"))
	}
	line("holds", "until %s", c.Expires.Format(time.RFC3339))
	return b.String()
}

func describeShape(s calibrate.Shape) string {
	how := "answers whole"
	if s.Stream {
		how = fmt.Sprintf("answers streamed in %d events", s.Events)
	}
	if s.TLS {
		how += ", TLS"
	}
	if !s.Reuse {
		how += ", a connection for each"
	}
	return fmt.Sprintf("requests of %d bytes, %s", s.BodyBytes, how)
}

func describeLimit(c *calibrate.Capacity, unit string) string {
	if c.BrokeAt == 0 {
		return fmt.Sprintf("a lower bound: the search ended before anything gave out (%d trials)", c.Trials)
	}
	return fmt.Sprintf("known to %.0f %%: at %s %s %s (%d trials)", 100*c.Accuracy, short(c.BrokeAt), unit, c.Broke, c.Trials)
}
