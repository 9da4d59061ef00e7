package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/drive"
	"tare/internal/drive/dialect"
	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
	"tare/internal/record"
	"tare/internal/report"
)

// runOptions are what a run is told besides its spec.
type runOptions struct {
	repeat int // how often the load is carried out, each time with the next seed
	dryRun bool
	strict bool
	onSLO  bool // a missed objective ends with code 3
	quiet  bool
	admissionOptions
	telling
	plan string // directory of a stored plan; empty to make one
}

func newRun() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [URL...]",
		Short: "Send a load to a server and report what it did",
		Long: `Send a load to a server and report what it did.

URL is the server's base (http://host:port, the path is added) or the full path of the endpoint; several take the requests in
turn. unix:///PATH.sock is a server behind a Unix socket. Flags override the keys of the spec file. The API key is read from the
environment variable OPENAI_API_KEY, or the one that target.api_key_env names, or from --api-key-file; it is written nowhere.

Ctrl-C stops sending and waits for what is in flight; a second one cuts it. Either way the report covers what was measured.

Exit codes:
` + exitCodesHelp,
		Example: `  tare run http://127.0.0.1:8000 --model my-model --rate 10 --duration 60s
  tare run http://127.0.0.1:8000 --model my-model --concurrency 8 --requests 1000
  tare run http://127.0.0.1:8000 --model my-model --rate 10 --duration 60s --warmup 10s --arrival gamma --burstiness 0.5
  tare run http://127.0.0.1:8000 --model my-model --rate 10 --requests 600 --arrival constant --max-in-flight 64
  tare run http://127.0.0.1:8000 --model my-model --stage rate=10,duration=30s --stage rate=10,rate_to=20,duration=30s,gap=5s
  tare run http://127.0.0.1:8000 --model my-model --rate 10 --duration 60s --input-tokens 512 --output-tokens 128 --ignore-eos
  tare run https://host/v1 --model my-model --endpoint openai-completions --stream=false --rate 1 --requests 50 --timeout 30s
  tare run http://127.0.0.1:8000 --model my-model --rate 10 --duration 60s --header 'X-Team: blue' --strict --quiet
  tare run -f spec.yaml --seed 7 --out runs/seed-7
  tare run http://127.0.0.1:8000 --plan plans/seed-7
  tare run http://127.0.0.1:8000 --model my-model --rate 10 --duration 5m --slo 'ttft.p99<500ms' --slo 'tpot<50ms' --fail-on-slo
  tare run -f spec.yaml --repeat 5 --out runs/certified
  tare run -f spec.yaml --dry-run`,
		Args: cobra.ArbitraryArgs,
	}
	read := addSpecFlags(c, "target.url", "target.model")
	f := c.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "print the effective spec and send nothing")
	f.BoolVar(&o.strict, "strict", false, "end with code 4 when the verdict is below VALID")
	f.BoolVar(&o.onSLO, "fail-on-slo", false, "end with code 3 when an objective is missed")
	f.BoolVar(&o.quiet, "quiet", false, "show nothing while the run goes on")
	f.BoolVar(&o.allowBiased, "allow-biased", false, "send a plan that takes too much of this machine's calibrated capacity")
	f.BoolVar(&o.calibrate, "auto-calibrate", false, "calibrate this machine first, where that was not done for such a load")
	f.IntVar(&o.repeat, "repeat", 1, "carry the load out `n` times, each with the next seed, into run-1 to run-n of the output directory; CERTIFIED asks for 5")
	o.telling.flags(f)
	f.StringVar(&o.plan, "plan", "", "send the plan that tare plan --write has stored in this `dir`, byte for byte")
	c.RunE = verb(func(c *cobra.Command, args []string) error {
		var stored storedPlan
		if o.plan != "" {
			var err error
			if stored, err = readStoredPlan(o.plan); err != nil {
				return err
			}
		}
		spec, err := read(args, stored.Spec)
		if err == nil && o.plan != "" {
			err = stored.decided(spec)
		}
		if err != nil {
			return misused(err, "")
		}
		return runSpec(c, spec, &stored, o)
	})
	return c
}

// runSpec is the whole of a run: plan, directory, load, summary, report, exit.
func runSpec(c *cobra.Command, spec plan.Spec, stored *storedPlan, o runOptions) error {
	if o.dryRun {
		_, err := c.OutOrStdout().Write(spec.YAML())
		return err
	}
	if o.onSLO && !spec.HasObjectives() {
		return misused(errors.New("--fail-on-slo: there is no objective"), "set one by --slo, or slo in the spec")
	}
	if o.repeat < 1 {
		return misused(fmt.Errorf("--repeat: must be at least 1, got %d", o.repeat), "")
	}
	if o.repeat > 1 {
		return repeat(c, spec, stored, o)
	}
	r, err := runOnce(c, spec, stored, o)
	if err != nil {
		return err
	}
	if err := printReport(c.OutOrStdout(), r.dir, false); err != nil {
		return err
	}
	return r.exit(o, c.ErrOrStderr())
}

// runOnce carries a load out into a directory of its own.
func runOnce(c *cobra.Command, spec plan.Spec, stored *storedPlan, o runOptions) (finished, error) {
	l, err := freezeLoad(spec, func(spec plan.Spec, secrets []string) (*plan.Plan, dialect.Dialect, error) {
		if o.plan != "" {
			return stored.freeze(c.Context(), o.plan, spec, secrets)
		}
		return freeze(spec, secrets)
	})
	if err != nil {
		return finished{}, misused(err, "")
	}
	defer l.plan.Close()
	l.telling = o.telling
	notices := io.Discard
	if !o.quiet {
		notices = c.ErrOrStderr()
	}
	if err := l.admit(c.Context(), o.admissionOptions, notices); err != nil {
		return finished{}, err
	}
	var show *display
	if !o.quiet {
		show = newDisplay(c.ErrOrStderr(), l.plan)
	}
	return l.perform(c.Context(), show, c.ErrOrStderr())
}

// load is a plan and where it goes.
type load struct {
	plan    *plan.Plan
	dialect dialect.Dialect
	target  target

	burden    time.Duration     // added to each event, by tare bias alone
	admission *record.Admission // nil where the machine was not calibrated
	telling   telling           // who is told of the run while it goes on
}

// newLoad freezes a spec. Its errors are the user's.
func newLoad(spec plan.Spec) (load, error) { return freezeLoad(spec, freeze) }

// freezeLoad is newLoad with a plan from elsewhere.
func freezeLoad(spec plan.Spec, freeze func(plan.Spec, []string) (*plan.Plan, dialect.Dialect, error)) (load, error) {
	bare, err := dialect.For(spec.Target.Endpoint, dialectOptions(spec, nil)) // its secrets come from the target
	if err != nil {
		return load{}, err
	}
	t, err := targetOf(spec, bare)
	if err != nil {
		return load{}, err
	}
	if err := t.follow(spec.ServerMetrics, bare.Path()); err != nil {
		return load{}, err
	}
	p, d, err := freeze(spec, t.secrets)
	return load{plan: p, dialect: d, target: t}, err
}

// freeze makes the plan of a spec, and the dialect that its requests are written in.
func freeze(spec plan.Spec, secrets []string) (*plan.Plan, dialect.Dialect, error) {
	d, err := dialect.For(spec.Target.Endpoint, dialectOptions(spec, secrets))
	if err != nil {
		return nil, nil, err
	}
	if faults := spec.Needs(d.Accepts()); len(faults) > 0 {
		return nil, nil, faults
	}
	p, err := plan.New(spec, d)
	if err != nil {
		return nil, nil, err
	}
	if p.Empty() {
		return nil, nil, misused(errors.New("the plan has no request: none falls due with this rate, duration and seed"),
			"set a longer duration or a higher rate, or requests in place of the duration")
	}
	return p, d, nil
}

func dialectOptions(s plan.Spec, secrets []string) dialect.Options {
	return dialect.Options{
		Model: s.Target.Model, Stream: s.Target.Stream, ContinuousUsage: s.Target.ContinuousUsage,
		ReturnTokenIDs: s.Target.ReturnTokenIDs, Template: s.Target.Template, ResponseFormat: s.Target.ResponseFormat, IgnoreEOS: s.Workload.IgnoreEOS,
		Temperature: s.Workload.Temperature, TopP: s.Workload.TopP, Seed: s.Workload.SamplingSeed, Secrets: secrets,
	}
}

// finished is a run that has been carried out and summarized.
type finished struct {
	dir         string
	summary     *judge.Summary
	interrupted bool
}

// perform carries the load out into a new run directory and writes summary and page there.
func (l load) perform(ctx context.Context, show *display, notices io.Writer) (finished, error) {
	env := record.Environ()
	warnings, err := checkLimits(demandOf(l.plan), limitsOf(env))
	if err != nil {
		return finished{}, err
	}
	m, err := l.manifest(ctx, env)
	if err != nil {
		return finished{}, err
	}
	m.Warnings = slices.Concat(l.target.warnings, l.plan.Notes(), warnings, l.telling.warnings())
	dir, err := createRunDir(l.plan.Spec.Out, time.Now())
	if err != nil {
		return finished{}, err
	}
	interrupted, err := l.drive(ctx, dir, m, show, notices)
	if err != nil {
		return finished{}, err
	}
	s, detail, err := judge.Examine(dir)
	if err != nil {
		return finished{}, err
	}
	return finished{dir: dir, summary: s, interrupted: interrupted}, errors.Join(report.WriteSummary(dir, s), report.WritePage(dir, s, detail))
}

// manifest says what is known before the run.
func (l load) manifest(ctx context.Context, env record.Environment) (*record.Manifest, error) {
	spec, err := json.Marshal(l.plan.Spec)
	if err != nil {
		return nil, fmt.Errorf("write spec: %w", err)
	}
	ids, err := l.earlyIDs(ctx)
	if err != nil {
		return nil, err
	}
	sum, err := plan.SelfTest(ctx)
	if err != nil {
		return nil, err
	}
	t := l.plan.Spec.Masked().Target
	return &record.Manifest{
		Generator: &record.Generator{SHA256: sum, Golden: plan.GeneratorGolden},
		Schema:    record.ManifestSchema, Tool: record.ThisTool(), Spec: spec, Env: env, Plan: ids, Admission: l.admission, Workload: l.asked(),
		Target: record.Target{URL: t.URL, Servers: t.URLs(), Model: t.Model, Endpoint: t.Endpoint, Stream: t.Stream, HTTP: t.HTTP, Insecure: t.Insecure},
	}, nil
}

// asked is what is asked of the requests.
func (l load) asked() *record.Workload {
	input, output, _ := l.plan.MeanLengths()
	return &record.Workload{MeanInput: input, MeanOutput: output, MeanTurns: l.plan.MeanTurns(), Cache: l.plan.Spec.Workload.Cache}
}

// The largest plan whose ids are found before the start: some milliseconds of work.
const (
	earlyRequests = 5000
	earlyTokens   = 1 << 20 // of all prompts
)

// earlyIDs are the ids of a small plan, so that a run which is killed has them too. Those of a larger one come with its end.
func (l load) earlyIDs(ctx context.Context) (record.PlanIDs, error) {
	n, exact := l.plan.Requests()
	input, _, ok := l.plan.MeanLengths()
	if !exact || !ok || n > earlyRequests || float64(n)*input > earlyTokens {
		return record.PlanIDs{}, nil
	}
	ids, err := l.plan.Identify(ctx)
	return record.PlanIDs{PlanID: ids.PlanID, ContentID: ids.ContentID, Requests: ids.Requests, Complete: true}, err
}

// drive sends the load and leaves manifest and exchanges in dir, whole, whatever happens.
func (l load) drive(ctx context.Context, dir string, m *record.Manifest, show *display, notices io.Writer) (interrupted bool, err error) {
	log, err := record.CreateLog(dir)
	if err != nil {
		return false, err
	}
	ctx, cut, stop := interrupts(ctx, notices)
	defer stop()
	cfg := driveConfig(l.plan.Spec, l.target)
	cfg.Burden = l.burden
	cfg.Cut, cfg.Watch = cut, show.show
	health, err := os.Create(filepath.Join(dir, record.HealthFile))
	if err != nil {
		return false, errors.Join(fmt.Errorf("create health file: %w", err), log.Close(), abandonRunDir(dir))
	}
	cfg.Health = health
	server, err := l.follow(dir, &cfg)
	if err != nil {
		return false, errors.Join(err, log.Close(), health.Close(), abandonRunDir(dir))
	}
	started := false
	cfg.Ready = func(m *record.Manifest) error {
		started = true
		return m.Write(dir)
	}
	runErr := l.telling.during(ctx, &cfg, notices, func() error { return drive.Run(ctx, cfg, l.plan, l.dialect, log, m) })
	show.clear()
	closeErr := errors.Join(log.Close(), health.Close(), server.Close())
	if !started {
		return false, errors.Join(l.explained(runErr), closeErr, abandonRunDir(dir))
	}
	if runErr != nil {
		m.State.Complete, m.State.Cause = false, runErr.Error()
	}
	return errors.Is(context.Cause(ctx), errInterrupted), errors.Join(runErr, closeErr, seal(m, dir))
}

// explained adds what to do about a run that did not start.
func (l load) explained(err error) error {
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, drive.ErrNoHTTP2):
		return fmt.Errorf("%w\nhint: set --http 1.1 (target.http), or name an address that speaks HTTP/2", err)
	case noTLS:
		return fmt.Errorf("%w\nhint: the server speaks plain HTTP: write http://", err)
	case l.target.servers[0].TLS != nil && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w\nhint: if the server speaks plain HTTP, write http://", err)
	}
	return err
}

// seal writes the manifest for the last time, with the hash of the binary that nothing was to wait for before.
func seal(m *record.Manifest, dir string) (err error) {
	if m.Tool.BinarySHA256, err = record.BinarySHA256(); err != nil {
		return err
	}
	return m.Write(dir)
}

// exit is how the program ends after the report. A verdict that is too low goes before a missed objective, since it says that nobody
// knows.
func (r finished) exit(o runOptions, notices io.Writer) error {
	switch {
	case r.interrupted:
		return &exit{code: exitInterrupted}
	case r.summary.Total.Outcomes.Completed == 0:
		return failed(errors.New("no request completed"))
	case o.strict && r.summary.Verdict.Class != verdict.Valid:
		return &exit{code: exitVerdict, err: fmt.Errorf("verdict: %s is below VALID", r.summary.Verdict.Class)}
	case o.onSLO:
		return missed(r.summary, notices)
	}
	return nil
}

// missed is the exit for objectives that were missed. Those of which nobody can tell are named, and end nothing.
func missed(s *judge.Summary, notices io.Writer) error {
	misses, open := s.Misses()
	for _, text := range open {
		fmt.Fprintln(notices, "objective, cannot tell: "+text)
	}
	if len(misses) == 0 {
		return nil
	}
	return &exit{code: exitObjective, err: errors.New("objective missed: " + strings.Join(misses, "\nobjective missed: "))}
}
