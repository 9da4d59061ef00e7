package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/drive/calibrate"
	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/plan"
	"tare/internal/record"
	"tare/internal/report"
)

// sweepOptions are what a sweep is told besides its spec.
type sweepOptions struct {
	admissionOptions
	find   string // capacity, or empty for the points that were asked for
	rates  steps
	levels steps // requests in flight
	search capacity.Config
	idle   time.Duration // between two runs, with no request in flight
	mix    bool          // points that follow each other lie far apart
	past   bool          // go on past saturation
	price  float64       // per hour
	resume bool
	strict bool
	quiet  bool
	asJSON bool
}

const findCapacity = "capacity"

func newSweep() *cobra.Command {
	o := sweepOptions{search: capacity.Defaults(), idle: time.Second, rates: steps{flag: "rates"}, levels: steps{flag: "concurrencies"}}
	draft := new(plan.Draft)
	draft.Require("target.url", "target.model")
	c := &cobra.Command{
		Use:   "sweep [URL...]",
		Short: "Find out how much load a server can carry, or measure it at several loads",
		Long: `Find out how much load a server can carry, or measure it at several loads.

Without --rates or --concurrencies it looks for the capacity: the largest rate of an open loop that is stable, with the interval and
the resolution that the length of the runs allows, the most that completes in a closed loop, and a curve of latencies below. How it
decides is in docs/capacity.md. With them it makes one run of each load, until the server is saturated.

STEPS are loads (5,10,20), linear(5,50,10) or geometric(1,64,7), from, to and how many, or linear(5) and geometric(1), which go on by the same
difference or factor of 2 until the server is saturated.

Each run has a directory of its own below that of the sweep, as tare run makes it; tare report DIR prints the whole sweep again.

Exit codes:
` + exitCodesHelp + `

A server without a capacity, since it is dead or fails, ends with 1; with --strict a capacity that is not valid ends with 4.`,
		Example: `  tare sweep http://127.0.0.1:8000 --model my-model
  tare sweep http://127.0.0.1:8000 --model my-model --width 0.1 --max-dwell 1m --input-tokens 512 --output-tokens 128 --ignore-eos
  tare sweep http://127.0.0.1:8000 --model my-model --rates 'geometric(1)' --duration 60s --warmup 10s
  tare sweep http://127.0.0.1:8000 --model my-model --rates 5,10,20 --duration 60s --interleave
  tare sweep http://127.0.0.1:8000 --model my-model --concurrencies 'geometric(1,64,7)' --requests 500
  tare sweep -f config.yml --out sweeps/today
  tare report sweeps/today`,
		Args: cobra.ArbitraryArgs,
	}
	read := addFlags(c, sweepFlags(), draft)
	f := c.Flags()
	f.StringVar(&o.find, "find", "", "what to look for: capacity, which it is unless loads are given")
	f.Var(&o.rates, o.rates.flag, "open loop at these requests per second: `STEPS`")
	f.Var(&o.levels, o.levels.flag, "closed loop with so many requests in flight: `STEPS`")
	f.BoolVar(&o.mix, "interleave", false, "let points that follow each other lie far apart, so that what changes with time does not pass for load")
	f.BoolVar(&o.past, "past-saturation", false, "go on where the server is saturated")
	f.DurationVar(&o.idle, "idle", o.idle, "pause between two runs, in which the server has nothing to do")
	f.Float64Var(&o.search.Width, "width", o.search.Width, "relative width to which the capacity is to be known")
	f.DurationVar(&o.search.LeastDwell, "min-dwell", o.search.LeastDwell, "shortest window of a trial")
	f.DurationVar(&o.search.MostDwell, "max-dwell", o.search.MostDwell, "longest window of a trial: it bounds the resolution")
	f.DurationVar(&o.search.Time, "time", 0, "begin no trial after so much load; 0 for no limit")
	f.Float64Var(&o.search.MostRate, "most-rate", o.search.MostRate, "highest `rate` that is offered, requests per second")
	f.IntVar(&o.search.MostInFlight, "most-concurrency", o.search.MostInFlight, "most requests in flight of a closed loop")
	f.IntVar(&o.search.Replications, "replications", o.search.Replications, "runs that confirm the capacity")
	f.BoolVar(&o.search.Only, "only", false, "the largest stable rate alone: no plateau, curve or overload")
	f.Float64Var(&o.price, "price-per-hour", 0, "what the server costs an hour: gives the cost of a million tokens at each load")
	f.BoolVar(&o.resume, "resume", false, "go on with the sweep in --out where it ended")
	f.BoolVar(&o.allowBiased, "allow-biased", false, "send loads that take too much of this machine's calibrated capacity, and count runs whose client gates fail; a capacity found so is not valid")
	f.BoolVar(&o.calibrate, "auto-calibrate", false, "calibrate this machine first, where that was not done for such a load")
	f.BoolVar(&o.strict, "strict", false, "end with code 4 when the capacity is not valid")
	f.BoolVar(&o.quiet, "quiet", false, "show nothing while the sweep goes on")
	f.BoolVar(&o.asJSON, "json", false, "print sweep.json instead of the table")
	completeWith(c, "find", findCapacity)
	c.RunE = verb(func(c *cobra.Command, args []string) error {
		changed := c.Flags().Changed
		if err := o.check(changed); err != nil {
			return misused(err, "")
		}
		draft.Set("load.rate", "1", "") // what it is, the sweep decides
		if o.find == findCapacity || !changed("duration") && !changed("requests") && !changed("file") {
			draft.Set("load.duration", "60s", "")
		}
		spec, err := read(args, nil)
		if err != nil {
			return misused(err, "")
		}
		return sweep(c, spec, &o)
	})
	return c
}

// sweepFlags are the flags of the spec but those that say how much load there is.
func sweepFlags() []specFlag {
	own := []string{"load.rate", "load.concurrency", "load.stages", "load.think_time", "load.think_process"}
	return slices.DeleteFunc(slices.Clone(specFlags), func(f specFlag) bool { return slices.Contains(own, f.key) })
}

// check reports all that does not go together.
func (o *sweepOptions) check(changed func(string) bool) error {
	var faults []error
	if o.find == "" && o.rates.text == "" && o.levels.text == "" {
		o.find = findCapacity
	}
	fault := func(when bool, format string, args ...any) {
		if when {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	plain := o.rates.text != "" || o.levels.text != ""
	fault(o.find != "" && o.find != findCapacity, "--find: must be %s, got %q", findCapacity, o.find)
	fault(o.rates.text != "" && o.levels.text != "", "--rates: does not go with --concurrencies")
	fault(o.find == findCapacity && plain, "--find: does not go with --rates and --concurrencies")
	for _, name := range []string{"duration", "requests", "warmup", "interleave", "past-saturation"} {
		fault(!plain && changed(name), "--%s: does not go with the search for the capacity, which decides that: see --min-dwell, --max-dwell", name)
	}
	for _, name := range []string{"width", "min-dwell", "max-dwell", "time", "replications", "only"} {
		fault(plain && changed(name), "--%s: belongs to the search for the capacity", name)
	}
	fault(o.idle < 0, "--idle: must not be below 0s, got %v", o.idle)
	fault(o.price < 0, "--price-per-hour: must not be below 0, got %v", o.price)
	fault(o.resume && !changed("out"), "--resume: needs --out, the directory of the sweep")
	fault(o.mix && (o.rates.open || o.levels.open), "--interleave: needs to know how many loads there are")
	for _, s := range []*steps{&o.rates, &o.levels} {
		if s.text != "" {
			if err := s.read(s == &o.levels); err != nil {
				faults = append(faults, err)
			}
		}
	}
	if err := o.search.Check(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// sweep carries the whole sweep out.
func sweep(c *cobra.Command, spec plan.Spec, o *sweepOptions) error {
	if spec.Load.Arrival == plan.ArrivalTrace {
		return misused(errors.New("load.arrival: the times of a trace have no rate that a sweep could change"), "give --arrival poisson, and take the trace's lengths only")
	}
	s := &sweeper{sweepOptions: o, spec: spec, stderr: c.ErrOrStderr(), began: time.Now()}
	if o.quiet {
		s.stderr = io.Discard
	}
	if err := s.open(c.Context()); err != nil {
		return err
	}
	runErr := s.run(c.Context())
	if len(s.state.Results) == 0 && runErr != nil {
		os.Remove(s.state.Dir) // stays when it holds something
		return runErr
	}
	s.state.Conclude()
	if err := errors.Join(s.save(), report.WriteSweepPage(s.state), printSweep(c.OutOrStdout(), s.state, o.asJSON), runErr); err != nil {
		return err
	}
	return s.exit()
}

// sweeper is a sweep under way.
type sweeper struct {
	*sweepOptions
	spec    plan.Spec
	state   *capacity.Sweep
	stderr  io.Writer
	began   time.Time
	earlier float64 // ms that the sweep had taken before it was resumed
	stopped bool    // by the user
}

// open makes the sweep's directory, or reads what is in it already.
func (s *sweeper) open(ctx context.Context) error {
	masked := s.spec.Masked()
	masked.Out = ""
	text, err := json.Marshal(masked)
	if err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	probe, err := newLoad(s.specOf(capacity.Load{Rate: 1, Dwell: time.Minute}, 0, ""))
	if err != nil {
		return misused(err, "")
	}
	err = s.admit(ctx, probe)
	if err := errors.Join(err, probe.plan.Close()); err != nil {
		return err
	}
	if err := s.bound(); err != nil {
		return err
	}
	if s.spec.HasObjectives() {
		s.search.Target = s.spec.SLOTarget
	}
	if s.resume {
		return s.reopen(text)
	}
	dir, err := createRunDir(s.spec.Out, time.Now())
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, capacity.SweepFile)); err == nil {
		return misused(fmt.Errorf("out: %s already holds a sweep", dir), "name another directory, or give --resume")
	}
	s.state = &capacity.Sweep{Dir: dir, Schema: capacity.SweepSchema, Tool: record.ThisTool(), Start: s.began.UTC().Format(time.RFC3339), Spec: text, Price: s.price, Biased: s.allowBiased, Results: []capacity.Result{}}
	if s.find == findCapacity {
		s.search.Biased = s.allowBiased
		s.state.Config = &s.search
	}
	return nil
}

// admit asks what this machine was calibrated for, and keeps the rates within half of it.
func (s *sweeper) admit(ctx context.Context, l load) error {
	b, err := newBench(l)
	if err != nil {
		return nil // the drive refuses to choose, and says why when it is to run
	}
	found, err := b.known(ctx, s.admissionOptions, s.stderr)
	if errors.Is(err, calibrate.ErrNone) {
		fmt.Fprintln(s.stderr, "capacity of this machine: not known for such a load (tare calibrate, or --auto-calibrate)")
		return nil
	}
	if err != nil {
		return err
	}
	if u, ok := found.Use(calibrate.Demand{RequestsPerS: 1, EventsPerS: float64(b.shape.Events)}); ok {
		s.search.ClientRequests = 1 / u.Share
		offered := ""
		if !s.allowBiased {
			s.search.MostRate = min(s.search.MostRate, s.search.ClientRequests/2)
			offered = "; at most half of them are offered"
		}
		fmt.Fprintf(s.stderr, "capacity of this machine: %s such requests/s%s\n", short(s.search.ClientRequests), offered)
	}
	return nil
}

// bound leaves out the loads that were asked for and are above the most that is offered, and says so.
func (s *sweeper) bound() error {
	asked, most := &s.rates, s.search.MostRate
	if s.levels.text != "" {
		asked, most = &s.levels, float64(s.search.MostInFlight)
	}
	left := asked.within(most)
	switch {
	case len(left) == 0:
		return nil
	case len(asked.values) == 0:
		return misused(fmt.Errorf("--%s: all are above the most that is offered, %s: got %s", asked.flag, short(most), asked.text),
			"--most-rate and --most-concurrency raise it, --allow-biased goes beyond half of this machine's capacity")
	}
	fmt.Fprintf(s.stderr, "--%s: left out, above the most that is offered, %s: %v\n", asked.flag, short(most), left)
	return nil
}

// reopen goes on with a sweep that has begun. What was measured must be what is asked for now.
func (s *sweeper) reopen(spec []byte) (err error) {
	if s.state, err = readSweep(s.spec.Out); err != nil {
		return err
	}
	if !sameJSON(s.state.Spec, spec) {
		return misused(errors.New("--resume: the spec is not that of the sweep in "+s.spec.Out), "give the same flags and files")
	}
	s.earlier, s.state.Cause, s.price = s.state.WallMs, "", max(s.price, s.state.Price)
	s.state.Price = s.price
	if s.state.Config != nil && s.find == findCapacity {
		s.search = *s.state.Config
	}
	if (s.state.Config != nil) != (s.find == findCapacity) {
		return misused(errors.New("--resume: the sweep in "+s.spec.Out+" is of another kind"), "")
	}
	return nil
}

// sameJSON reports whether two documents say the same, however they are laid out.
func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, errA := json.Marshal(x)
	second, errB := json.Marshal(y)
	return errA == nil && errB == nil && string(first) == string(second)
}

// run makes one run after another until there is nothing more to measure.
func (s *sweeper) run(ctx context.Context) error {
	for n := len(s.state.Results); ; n++ {
		l, ok := s.next()
		if !ok {
			return nil
		}
		if n > 0 && !s.pause(ctx) {
			return nil
		}
		if err := s.measure(ctx, n, l); err != nil || s.stopped {
			return err
		}
		if err := s.save(); err != nil {
			return err
		}
	}
}

// next is the next load.
func (s *sweeper) next() (capacity.Load, bool) {
	if s.find == findCapacity {
		step := s.state.Next()
		return step.Load, !step.Done
	}
	return s.point(len(s.state.Results))
}

// pause lets the server be idle; it is false when the user wants to end.
func (s *sweeper) pause(ctx context.Context) bool {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	select {
	case <-time.After(s.idle):
		return true
	case <-ctx.Done():
		s.stopped, s.state.Cause = true, errInterrupted.Error()
		return false
	}
}

// measure makes run n and takes its result in.
func (s *sweeper) measure(ctx context.Context, n int, l capacity.Load) error {
	path := trialDirOf(s.state.Dir, n+1)
	name := filepath.Base(path)
	if err := os.RemoveAll(path); err != nil { // what a sweep that was killed left of this run
		return fmt.Errorf("clear run directory: %w", err)
	}
	one, err := newLoad(s.specOf(l, n, path))
	if err != nil {
		return misused(err, "")
	}
	defer one.plan.Close()
	if err := one.admit(ctx, s.admissionOptions, io.Discard); err != nil {
		return err
	}
	show := newDisplay(s.stderr, one.plan)
	if !show.rewrite {
		show = nil // a line for each run is enough
	}
	done, err := one.perform(ctx, show, s.stderr)
	if err != nil {
		return err
	}
	if done.interrupted {
		s.stopped, s.state.Cause = true, errInterrupted.Error()
		return nil
	}
	r, err := s.state.ResultOf(name, path, l)
	if err != nil {
		return err
	}
	s.state.Results = append(s.state.Results, r)
	fmt.Fprintln(s.stderr, report.SweepLine(n+1, &r))
	return nil
}

// trialDirOf is the directory of run n of a sweep, from 1.
func trialDirOf(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("trial-%03d", n)) }

// specOf is the spec of a run with that load. Each run has a seed of its own, and so arrivals and prompts of its own.
func (s *sweeper) specOf(l capacity.Load, n int, out string) plan.Spec {
	spec := s.spec
	spec.Out = out
	load := &spec.Load
	load.Seed += uint64(n)
	load.Stages, load.Rate, load.Concurrency = nil, l.Rate, l.InFlight
	if l.Phase != capacity.Point {
		load.Warmup, load.Duration, load.Requests = l.Warmup, l.Dwell, l.Requests
	}
	if l.InFlight > 0 {
		load.MaxInFlight = 0
	}
	if l.Even {
		load.Arrival, load.Burstiness, load.States, load.Clients = plan.ArrivalConstant, 1, "", ""
	}
	if l.Recovery > 0 {
		load.Stages = []plan.LoadStage{
			{Name: "overload", Rate: l.Rate, Duration: l.Dwell, MaxInFlight: load.MaxInFlight}, {Name: "recovery", Rate: l.Then, Duration: l.Recovery, MaxInFlight: load.MaxInFlight},
		}
		load.Rate, load.Duration, load.MaxInFlight = 0, 0, 0
	}
	return spec
}

// point is load n of those that were asked for. After one at which the server is saturated there is no other, unless that is wanted.
func (s *sweeper) point(n int) (capacity.Load, bool) {
	if !s.past && !s.mix && report.Saturated(s.state.Results) {
		return capacity.Load{}, false
	}
	from := &s.rates
	if s.levels.text != "" {
		from = &s.levels
	}
	v, ok := from.at(n, s.mix)
	if !ok || from == &s.rates && v > s.search.MostRate || from == &s.levels && int(v) > s.search.MostInFlight {
		return capacity.Load{}, false
	}
	l := capacity.Load{Phase: capacity.Point, Dwell: s.spec.Load.Duration, Requests: s.spec.Load.Requests, Warmup: s.spec.Load.Warmup, Number: 1}
	if from == &s.levels {
		l.InFlight = int(v)
		return l, true
	}
	l.Rate, l.Tolerance = v, judge.StableWithin
	return l, true
}

// save writes sweep.json.
func (s *sweeper) save() error {
	s.state.WallMs = s.earlier + float64(time.Since(s.began))/1e6
	return report.WriteSweep(s.state)
}

// exit is how the program ends after the table.
func (s *sweeper) exit() error {
	a := s.state.Answer
	switch {
	case s.stopped:
		return &exit{code: exitInterrupted}
	case !slices.ContainsFunc(s.state.Results, func(r capacity.Result) bool { return r.Completed > 0 }):
		return failed(errors.New("no request completed"))
	case a != nil && !a.Stable.Known:
		return failed(errors.New("no capacity: " + a.Reason))
	case a != nil && s.strict && !a.Valid:
		return &exit{code: exitVerdict, err: errors.New("capacity: not valid: " + a.Reason)}
	}
	return nil
}

// readSweep reads the sweep in dir, and judges its runs anew.
func readSweep(dir string) (*capacity.Sweep, error) {
	path := filepath.Join(dir, capacity.SweepFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, misused(fmt.Errorf("%s: not the directory of a sweep: it has no %s", dir, capacity.SweepFile), "")
	}
	if err != nil {
		return nil, fmt.Errorf("read sweep: %w", err)
	}
	s := new(capacity.Sweep)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if s.Schema != capacity.SweepSchema {
		return nil, fmt.Errorf("read %s: schema: must be %q, got %q", path, capacity.SweepSchema, s.Schema)
	}
	s.Dir = dir
	for i, r := range s.Results {
		if !filepath.IsLocal(r.Dir) {
			return nil, fmt.Errorf("read %s: trials[%d].dir: must be below the sweep's, got %q", path, i, r.Dir)
		}
		if s.Results[i], err = s.ResultOf(r.Dir, filepath.Join(dir, r.Dir), r.Load); err != nil {
			return nil, err
		}
	}
	s.Conclude()
	return s, nil
}

// reportSweep prints the sweep in dir; ok is false when it holds none.
func reportSweep(w io.Writer, dir string, asJSON bool) (ok bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, capacity.SweepFile)); err != nil {
		return false, nil
	}
	s, err := readSweep(dir)
	if err != nil {
		return true, err
	}
	return true, printSweep(w, s, asJSON)
}

func printSweep(w io.Writer, s *capacity.Sweep, asJSON bool) error {
	if asJSON {
		return report.SweepJSON(w, s)
	}
	return report.Sweep(w, s)
}
