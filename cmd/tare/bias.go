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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/drive"
	"tare/internal/judge"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
	"tare/internal/record"
)

// laboratory is a series of runs in which the client is made slow on purpose.
type laboratory struct {
	service time.Duration // added to each event
	window  time.Duration // of each step
	loops   []int
	loads   []float64 // offered to one loop, in parts of what it can serve
	traffic []traffic
	seed    uint64
	out     string // folder for the run directories of the steps; none: they are not kept

	progress io.Writer
}

// traffic is one way in which events come.
type traffic struct {
	name   string
	about  string
	sim    []string // flags of the server
	tokens int      // of an answer
	warmup time.Duration
}

// The streams of the laboratory.
const (
	labGap      = 50 * time.Millisecond
	labTokens   = 16
	labSpread   = 20 * time.Millisecond // of the first token: at once, it would come while the loop that sent it is free
	labPilot    = 0.4                   // ρ of the first runs
	otherEvents = 4                     // of an answer, besides one for each token: role, finish, usage and end
)

func traffics() []traffic {
	return []traffic{
		{"mixed", fmt.Sprintf("Poisson arrivals, each answer in one piece, after 0 to %v: reads know nothing of each other", labSpread),
			[]string{"--ttft", fmt.Sprintf("uniform(0s,%v)", labSpread)}, 1, 10 * labSpread},
		{"periodic", fmt.Sprintf("Poisson arrivals of streams of %d tokens, one each %v", labTokens, labGap), []string{"--null", "--gap", labGap.String()}, labTokens, labGap * labTokens},
		{"lockstep", fmt.Sprintf("the same streams, all emitting at the same ticks, each %v", labGap), []string{"--step", labGap.String()}, labTokens, labGap * labTokens},
	}
}

func newBias() *cobra.Command {
	lab := laboratory{service: 200 * time.Microsecond, window: 3 * time.Second, seed: 1}
	var loads []float64
	var loops []int
	var names []string
	asJSON := false
	c := &cobra.Command{
		Use:   "bias",
		Short: "Show what a slow client does to the numbers",
		Long: `Show what a slow client does to the numbers it reports, on simulated servers whose truth is known. It takes three minutes.

The client is made slow on purpose: its event loop spends --service on each event, as an interpreter does that handles all events in one
thread under a global lock. The rate is raised until one loop is full (ρ = 1) and past it, with one loop and with several, in three kinds
of traffic. Each line shows what was asked, sent and completed; how long a read waited for its turn, measured and as queue models predict
it (docs/bias.md); and the time to the first token: by the kernel's stamps, and as a clock in the program would have had it.

It needs Linux: the kernel's stamps, and event loops with a thread of their own.`,
		Example: `  tare bias
  tare bias --service 500us --loops 1,2,4
  tare bias --traffic lockstep --load 0.3,0.6,0.9 --window 10s
  tare bias --traffic mixed --load 0.3,1.2 --loops 1 --out biased
  tare bias --json > bias.json`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.DurationVar(&lab.service, "service", lab.service, "work added to each event")
	f.DurationVar(&lab.window, "window", lab.window, "length of each step")
	f.Float64SliceVar(&loads, "load", []float64{0.3, 0.6, 0.8, 0.9, 1.2, 2}, "`ρ` of each step, for one loop: 1 is all it can serve")
	f.IntSliceVar(&loops, "loops", []int{1, 2}, "event loops of each sweep")
	f.StringSliceVar(&names, "traffic", []string{"mixed", "periodic", "lockstep"}, "`kinds` of traffic")
	f.Uint64Var(&lab.seed, "seed", lab.seed, "seed of the arrivals")
	f.StringVar(&lab.out, "out", "", "keep the run directory of each step, with its page, in this `folder`")
	f.BoolVar(&asJSON, "json", false, "print the steps as JSON")
	completeWith(c, "traffic", "mixed", "periodic", "lockstep")
	c.RunE = verb(func(c *cobra.Command, _ []string) error {
		lab.loads, lab.loops = loads, loops
		if err := lab.choose(names); err != nil {
			return misused(err, "")
		}
		lab.progress = c.ErrOrStderr()
		return lab.show(c, asJSON)
	})
	return c
}

// choose takes the named kinds of traffic, and reports all that is wrong with the experiment.
func (lab *laboratory) choose(names []string) error {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	refuse(lab.service <= 0 || lab.service > 100*time.Millisecond, "--service: must be above 0s and at most 100ms, got %v", lab.service)
	refuse(lab.window < 100*time.Millisecond, "--window: must be 100ms or more, got %v", lab.window)
	for _, rho := range lab.loads {
		refuse(!(rho > 0 && rho <= 10), "--load: must be above 0 and at most 10, got %v", rho)
	}
	for _, k := range lab.loops {
		refuse(k < 1 || k > 1024, "--loops: must be from 1 to 1024, got %d", k)
	}
	for _, name := range names {
		i := slices.IndexFunc(traffics(), func(t traffic) bool { return t.name == name })
		refuse(i < 0, "--traffic: must be mixed, periodic or lockstep, got %q", name)
		if i >= 0 {
			lab.traffic = append(lab.traffic, traffics()[i])
		}
	}
	if len(faults) == 0 && !drive.HasEpoll() {
		return errors.New("tare bias needs engine epoll, which this system does not have: it runs on Linux 5.11 or later")
	}
	return errors.Join(faults...)
}

// biasStep is what one run of the laboratory came to. Times are in ms. Waits and models are those of the busiest loop.
type biasStep struct {
	Traffic string  `json:"traffic"`
	Loops   int     `json:"loops"`
	Load    float64 `json:"load"`        // λ/(kμ), as it was offered
	Asked   float64 `json:"asked_per_s"` // requests that fell due in the window
	Sent    float64 `json:"sent_per_s"`  // in the window
	Done    float64 `json:"done_per_s"`  // completed in the window

	Utilisation judge.Number       `json:"utilisation"` // of the busiest loop over the whole run
	WaitMs      judge.Number       `json:"wait_ms"`     // of a read, from the kernel's stamp to its turn; mean
	Models      []judge.Prediction `json:"models"`
	Fits        string             `json:"fits,omitempty"` // the formula within a factor of two, the closest of several; from ρ = 1 on there is no wait to predict

	KernelTTFT latency `json:"ttft_kernel_ms"` // by the kernel's stamps
	UserTTFT   latency `json:"ttft_user_ms"`   // by a clock read when the program had the bytes
	Merged     float64 `json:"merged_share"`   // of the first tokens, those that came in one read with later ones: their kernel stamp is an upper bound

	Failed []string `json:"failed_gates"` // of the run's verdict; C1 always, since the work was added on purpose
}

type latency struct {
	P50 judge.Number `json:"p50"`
	P99 judge.Number `json:"p99"`
}

// show carries all steps out and prints each sweep as it ends.
func (lab *laboratory) show(c *cobra.Command, asJSON bool) error {
	dir, err := os.MkdirTemp("", "tare-bias-")
	if err != nil {
		return fmt.Errorf("make room for runs: %w", err)
	}
	defer os.RemoveAll(dir)
	out := c.OutOrStdout()
	var all []biasStep
	if !asJSON {
		env := record.Environ()
		fmt.Fprintf(out, "%v of work added to each event · %s, %d CPUs, %s %s · steps of %v\n", lab.service, env.CPU, runtime.NumCPU(), env.OS, env.Kernel, lab.window)
	}
	for _, t := range lab.traffic {
		steps, err := lab.sweep(c.Context(), t, dir)
		if err != nil {
			return err
		}
		all = append(all, steps...)
		if !asJSON {
			fmt.Fprintf(out, "\n%s: %s\n\n", t.name, t.about)
			printSteps(out, steps)
		}
	}
	if !asJSON {
		_, err := fmt.Fprint(out, biasLegend)
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"schema": "tare.bias/v1", "service_ms": lab.service.Seconds() * 1e3, "window_ms": lab.window.Seconds() * 1e3, "steps": all})
}

const biasLegend = `
ρ = λ/(kμ): what was offered over what k loops can serve; in use: share of its time the busiest loop was at work. Waits are from the
kernel's stamp to the read's turn, means in ms; models are those of docs/bias.md, - where they expect a wait without bound. TTFT counts
from the send. "user clock" is what a client reports that looks at its clock when it has the bytes: its own queue is in it. ≤ marks
upper bounds: so many tokens had piled up that reads took the first together with later ones, and the kernel stamps a read's last byte.
Failed gates are those of the step's own verdict (docs/verdict.md); C1 fails for the work that was added on purpose, the others by what they measured.
`

// sweep raises the rate of one kind of traffic, with each number of loops.
func (lab *laboratory) sweep(ctx context.Context, t traffic, dir string) ([]biasStep, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server, err := startSim(ctx, self, os.Stderr, t.sim...)
	if err != nil {
		return nil, err
	}
	steps, err := lab.raise(ctx, t, "http://"+server.addr, dir)
	return steps, errors.Join(err, server.stop())
}

func (lab *laboratory) raise(ctx context.Context, t traffic, url, dir string) (steps []biasStep, err error) {
	busy, err := lab.explore(ctx, t, url, dir)
	if err != nil {
		return nil, err
	}
	for _, k := range lab.loops {
		for _, load := range lab.loads {
			s, _, err := lab.run(ctx, t, url, lab.stepDir(dir, t, k, load), k, load/busy)
			if err != nil {
				return nil, err
			}
			if s.Load = load / float64(k); s.Load < 1 {
				s.Fits = closest(s.Models)
			}
			steps = append(steps, s)
			fmt.Fprintf(lab.progress, "%s, loops %d, ρ %.2f: done %s of what was asked\n", t.name, k, s.Load, partOf(s.Done, s.Asked))
		}
	}
	return steps, nil
}

// explore finds out how long a request keeps a loop at work, in seconds, by runs below what it can do: the lesser of two, since
// what disturbs a run only adds.
func (lab *laboratory) explore(ctx context.Context, t traffic, url, dir string) (busy float64, err error) {
	rate := labPilot / (lab.service.Seconds() * float64(t.tokens+otherEvents))
	busy = math.Inf(1)
	for i := range 2 {
		_, b, err := lab.run(ctx, t, url, filepath.Join(dir, fmt.Sprintf("%s-pilot-%d", t.name, i)), 1, rate)
		if err != nil {
			return 0, err
		}
		busy = min(busy, b)
	}
	return busy, nil
}

// stepDir is the run directory of one step: in the folder that is kept, or in dir, which is not.
func (lab *laboratory) stepDir(dir string, t traffic, loops int, load float64) string {
	if lab.out != "" {
		dir = lab.out
	}
	return filepath.Join(dir, fmt.Sprintf("%s-loops-%d-load-%g", t.name, loops, load))
}

// run carries one step out into the run directory out. busy is how long a request keeps a loop at work, in seconds.
func (lab *laboratory) run(ctx context.Context, t traffic, url, out string, loops int, rate float64) (s biasStep, busy float64, err error) {
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Model, spec.Target.APIKeyEnv = url, "sim", ""
	spec.Workload.InputTokens, spec.Workload.OutputTokens = "16", plan.Lengths(strconv.Itoa(t.tokens))
	spec.Load.Seed, spec.Load.Rate, spec.Load.Warmup, spec.Load.Duration = lab.seed, rate, t.warmup, lab.window
	spec.Client.Engine, spec.Client.Loops = plan.EngineEpoll, loops
	spec.Out = out
	l, err := newLoad(spec)
	if err != nil {
		return s, 0, err
	}
	l.burden = lab.service
	r, err := l.perform(ctx, nil, io.Discard)
	if err != nil {
		return s, 0, err
	}
	if r.interrupted {
		return s, 0, &exit{code: exitInterrupted}
	}
	m, err := record.ReadManifest(r.dir)
	if err != nil {
		return s, 0, err
	}
	s = stepOf(r.summary, t, loops)
	return s, busyPerRequest(m), s.readFirstTokens(r.dir)
}

func stepOf(sum *judge.Summary, t traffic, loops int) biasStep {
	value := func(n judge.Number) float64 { v, _ := n.Get(); return v }
	p := &sum.Total
	s := biasStep{Traffic: t.name, Loops: loops, Asked: value(p.PlannedRate), Sent: value(p.AchievedRate), Done: value(p.CompletedRate)}
	for _, g := range sum.Verdict.Gates {
		if g.Level == verdict.Failed {
			s.Failed = append(s.Failed, g.ID)
		}
	}
	if len(sum.Run.Loops) == 0 {
		return s
	}
	busiest := slices.MaxFunc(sum.Run.Loops, func(a, b judge.Loop) int {
		return int(1e6 * (value(a.Utilisation) - value(b.Utilisation)))
	})
	s.Utilisation, s.WaitMs, s.Models = busiest.Utilisation, busiest.WaitMs, busiest.Models
	return s
}

// closest names the formula whose prediction is within a factor of two of the measured wait, the closest if several are. The
// replay is none: it is given the moments of all arrivals.
func closest(models []judge.Prediction) (name string) {
	nearest := math.Log(2)
	for _, m := range models {
		ratio, ok := m.Ratio.Get()
		if off := math.Abs(math.Log(ratio)); m.Model != "lindley" && ok && ratio > 0 && off <= nearest {
			name, nearest = m.Model, off
		}
	}
	return name
}

// busyPerRequest is how long a request keeps a loop at work, reads of its reply included, in seconds.
func busyPerRequest(m *record.Manifest) float64 {
	busy, sent := 0.0, int64(0)
	for i := range m.Loops {
		w := &m.Loops[i].Work
		busy += w.Reading.Sum + w.Sending.Sum
		sent += m.Loops[i].Sent
	}
	return busy / float64(max(sent, 1))
}

// readFirstTokens takes in when the first tokens came by either clock.
func (s *biasStep) readFirstTokens(dir string) error {
	first, err := judge.ReadFirstTokens(dir)
	if err != nil {
		return err
	}
	s.KernelTTFT, s.UserTTFT = latencyOf(&first.Kernel), latencyOf(&first.User)
	s.Merged = float64(first.Merged) / float64(max(first.Kernel.N(), 1))
	return nil
}

func latencyOf(d *stats.Distribution) latency {
	at := func(ppm int64) judge.Number {
		v, ok := d.Quantile(ppm)
		if !ok {
			return judge.Number{}
		}
		return judge.Some(v / 1e6)
	}
	return latency{at(stats.P50), at(stats.P99)}
}

func printSteps(to io.Writer, steps []biasStep) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	models := []string{"p-k", "kingman", "m^x/g/1", "batch drain", "lindley"}
	fmt.Fprintln(w, "\t\trequests/s\t\t\tin\twait\t"+strings.Join(models, "\t")+"\t\tTTFT kernel\t\tuser clock\t\tfailed\t")
	fmt.Fprintln(w, "loops\tρ\tasked\tsent\tdone\tuse\tms\t"+strings.Repeat("ms\t", len(models))+"fits\tp50 ms\tp99\tp50 ms\tp99\tgates\t")
	for _, s := range steps {
		cells := []string{
			strconv.Itoa(s.Loops), fmt.Sprintf("%.2f", s.Load), short(s.Asked), partOf(s.Sent, s.Asked), partOf(s.Done, s.Asked), digits(s.Utilisation), digits(s.WaitMs),
		}
		for _, m := range models {
			cells = append(cells, digits(modelOf(s.Models, m)))
		}
		fits := s.Fits
		switch {
		case s.Load >= 1:
			fits = "-"
		case fits == "":
			fits = "none"
		}
		bound := ""
		if s.Merged > mergedNoted {
			bound = "≤"
		}
		cells = append(cells, fits, bound+digits(s.KernelTTFT.P50), bound+digits(s.KernelTTFT.P99), digits(s.UserTTFT.P50), digits(s.UserTTFT.P99), strings.Join(s.Failed, " "))
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	w.Flush()
}

// mergedNoted is the share of first tokens with an upper bound above which a step's kernel TTFT is called one.
const mergedNoted = 0.005

func modelOf(all []judge.Prediction, name string) judge.Number {
	i := slices.IndexFunc(all, func(p judge.Prediction) bool { return p.Model == name })
	if i < 0 {
		return judge.Number{}
	}
	return all[i].WaitMs
}

func partOf(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}

func digits(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "-"
	}
	return short(v)
}
