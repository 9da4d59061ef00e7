package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/internal/plan"
	"tare/internal/sim"
)

func newSim() *cobra.Command {
	var cfg sim.Config
	var procs int
	var attended, secure bool
	var preset, capacityOf string
	var unread unreadable
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run a simulated server whose truth is known",
		Long: `Run a simulated LLM server: OpenAI chat and completions, streaming and not, with delays, a queue and
failures that are known exactly. It prints the address it listens on, and ends at Ctrl-C.

Delays are 50ms, uniform(10ms,20ms), exponential(50ms) or lognormal(50ms,0.4): mean and coefficient of variation.
Faults are a kind and a rate: status=503:0.05, stream-error:0.01, truncate:0.01, cut:0.01, reset:0.01, stall:0.01,
slow-headers=2s:0.1, empty:0.01, close-after-reply:0.1.

With --batching it works in engine steps, as vLLM does; see docs/sim.md. Presets:
` + presetList(),
		Example: `  tare sim --addr 127.0.0.1:8000 --ttft 50ms --gap 10ms
  tare sim --ttft 'lognormal(200ms,0.5)' --slots 8
  tare sim --fault status=503:0.05 --fault reset:0.01
  tare sim --batching --step 10ms --prefill 50us --max-seqs 64 --kv-tokens 50000 --prefix-cache
  tare sim --preset llama-8b-h100 --print-capacity=512,128
  tare sim --null`,
		Args: cobra.NoArgs,
		RunE: verb(func(c *cobra.Command, _ []string) error {
			faults := []error{unread.err()}
			if preset != "" {
				filled, err := cfg.Fill(preset)
				cfg, faults = filled, append(faults, err)
			}
			if err := errors.Join(append(faults, cfg.Validate())...); err != nil {
				return misused(err, "")
			}
			if capacityOf != "" {
				return printCapacity(c.OutOrStdout(), cfg, capacityOf)
			}
			if procs > 0 {
				runtime.GOMAXPROCS(procs)
			}
			if secure {
				certificate, err := ownCertificate()
				if err != nil {
					return err
				}
				cfg.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			}
			return serve(c, cfg, attended)
		}),
	}
	f := c.Flags()
	f.StringVar(&cfg.Addr, "addr", "127.0.0.1:8000", "listen on `host:port`; port 0 takes a free one")
	f.StringVar(&cfg.Model, "model", "sim", "model `name`")
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of every draw")
	f.Var(&cfg.TTFT, "ttft", "from the start of service to the first token")
	f.Var(&cfg.Gap, "gap", "between two chunks of a stream")
	f.DurationVar(&cfg.Step, "step", 0, "decode in lock-step: all streams emit on the ticks of this period; batching: length of a step, with nothing to do")
	f.IntVar(&cfg.TokensPerChunk, "tokens-per-chunk", 1, "output tokens in one chunk")
	f.DurationVar(&cfg.Prefill, "prefill", 0, "more time to the first token for each prompt token")
	f.IntVar(&cfg.Slots, "slots", 0, "requests in service at a time, the others queue; 0 for any number")
	f.IntVar(&cfg.QueueLimit, "queue-limit", 0, "requests that may wait, those beyond get 429; 0 for any number")
	f.BoolVar(&cfg.PrefixCache, "prefix-cache", false, "compute what prompts have in common once")
	f.IntVar(&cfg.KVTokens, "kv-tokens", 0, "tokens that the KV memory has room for; 0 for 1048576")
	f.IntVar(&cfg.KVBlock, "kv-block", 0, "tokens in a block of it; 0 for 16")
	f.Float64Var(&cfg.BucketRate, "bucket-rate", 0, "token bucket: `requests/s` that get service in the long run; 0 for no bucket")
	f.IntVar(&cfg.BucketBurst, "bucket-burst", 0, "requests that a full bucket lets in at once; 0 for 1")
	f.BoolVar(&cfg.Batching, "batching", false, "serve by continuous batching, in engine steps")
	f.IntVar(&cfg.MaxSeqs, "max-seqs", 0, "batching: requests that run at a time; 0 for 256")
	f.IntVar(&cfg.MaxStepTokens, "max-step-tokens", 0, "batching: tokens computed in one step; 0 for 2048")
	f.DurationVar(&cfg.StepPerSeq, "step-per-seq", 0, "batching: more for each request that decodes")
	f.DurationVar(&cfg.StepPerKV, "step-per-kv-token", 0, "batching: more for each token in the KV memory of these")
	f.DurationVar(&cfg.StepCrowd, "step-crowd", 0, "batching: more for the square of the number of requests")
	f.Float64Var(&cfg.StepNoise, "step-noise", 0, "batching: coefficient of `variation` of the length of steps")
	f.StringVar(&preset, "preset", "", "a server by `name`: all that is left out here is as it has it")
	f.StringVar(&capacityOf, "print-capacity", "", "print what the server can do of requests of `INPUT,OUTPUT` tokens, and end")
	f.Lookup("print-capacity").NoOptDefVal = defaultShape()
	f.BoolVar(&cfg.RoleEarly, "role-early", false, "send header and role chunk when service starts")
	f.Var(&cfg.Faults, "fault", "fail a fraction of requests (repeatable)")
	f.BoolVar(&cfg.TruthInStream, "truth-in-stream", false, "put receive and send times into every chunk")
	f.StringVar(&cfg.TruthFile, "truth", "", "write receive and send times to this `file`, as JSON Lines")
	f.BoolVar(&secure, "tls", false, "speak TLS, with a certificate made at the start: send to https:// with --insecure")
	f.BoolVar(&cfg.Null, "null", false, "answer at once with precomputed bytes")
	f.IntVar(&cfg.Loops, "loops", 1, "event loops; more than one only with --null")
	f.IntVar(&procs, "procs", 0, "GOMAXPROCS; 0 for what the machine has")
	f.BoolVar(&cfg.Spin, "spin", false, "loops never sleep: more exact, and costs a core each (Linux)")
	f.BoolVar(&cfg.HoldCPU, "hold-cpu", false, "loops keep their processor while waiting; needs --procs above --loops")
	f.BoolVar(&attended, "attended", false, "end when stdin does, and not at Ctrl-C")
	f.Lookup("attended").Hidden = true
	unread.gather(f)
	return c
}

// unreadable gathers the values of flags that could not be read, so that all are reported together.
type unreadable struct{ faults []error }

// gather makes every flag of f pass its faults on to u.
func (u *unreadable) gather(f *pflag.FlagSet) {
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.DefValue == "0s" {
			flag.DefValue = "" // the help leaves a zero away only while it knows the type
		}
		flag.Value = gathered{flag.Value, "--" + flag.Name, u}
	})
}

func (u *unreadable) err() error { return errors.Join(u.faults...) }

// gathered is a flag's value whose faults wait for those of the others.
type gathered struct {
	pflag.Value
	name string
	to   *unreadable
}

func (g gathered) Set(text string) error {
	err := g.Value.Set(text)
	wanted := map[string]string{
		"int": "a whole number", "uint64": "a whole number of 0 or more", "bool": "true or false", "duration": "a duration like 50ms", "float64": "a number",
	}[g.Type()]
	switch {
	case err == nil:
		return nil
	case wanted != "":
		err = fmt.Errorf("%s: must be %s, got %q", g.name, wanted, text)
	default:
		err = fmt.Errorf("%s: %w", g.name, err)
	}
	g.to.faults = append(g.to.faults, err)
	return nil
}

func serve(c *cobra.Command, cfg sim.Config, attended bool) error {
	until := untilInterrupted
	if attended {
		until = untilStdinCloses
	}
	ctx, stop := until(c.Context())
	defer stop()
	if !attended {
		fmt.Fprint(c.ErrOrStderr(), capacityLine(cfg))
	}
	return sim.Serve(ctx, cfg, func(addr string) { announce(c.OutOrStdout(), addr) })
}

// presetList is a line for each preset.
func presetList() string {
	var b strings.Builder
	names, abouts := sim.PresetNames()
	for i, name := range names {
		fmt.Fprintf(&b, "  %-18s %s\n", name, abouts[i])
	}
	return strings.TrimRight(b.String(), "\n")
}

// defaultShape is what tare run asks for by default, as --print-capacity has it.
func defaultShape() string {
	input, output := asked()
	return fmt.Sprintf("%d,%d", input, output)
}

func asked() (input, output int) {
	w := plan.Defaults().Workload
	input, _ = w.InputTokens.Fixed()
	output, _ = w.OutputTokens.Fixed()
	return input, output
}

// printCapacity prints what a server completes when it is never idle: by arithmetic where it can, and by carrying it out in virtual time.
func printCapacity(to io.Writer, cfg sim.Config, shape string) error {
	var input, output int
	if n, err := fmt.Sscanf(shape+"\n", "%d,%d\n", &input, &output); n != 2 || err != nil || input < 1 || output < 1 {
		return misused(fmt.Errorf("--print-capacity: must be INPUT,OUTPUT tokens, both 1 or more, got %q", shape), "--print-capacity="+defaultShape())
	}
	m, err := sim.NewModel(cfg)
	if err != nil {
		return misused(err, "")
	}
	perSecond, completions, ok := longRun(m, cfg, input, output)
	if !ok {
		fmt.Fprintf(to, "requests of %d input and %d output tokens: nothing limits this server, or it never serves them\n", input, output)
		return nil
	}
	fmt.Fprintf(to, "requests of %d input and %d output tokens\n", input, output)
	fmt.Fprintf(to, "long run     %s requests/s, %d of them in virtual time with always some that wait\n", short(perSecond), completions)
	full, known := m.Capacity(input, output)
	if known {
		fmt.Fprintf(to, "arithmetic   %s requests/s\n", short(full))
	}
	if most, running, ok := m.Peak(input, output); ok && known && most > 1.001*full {
		fmt.Fprintf(to, "peak         %s requests/s, while no more than %d run\n", short(most), running)
	}
	return nil
}

// longRun completes at least a hundred times as many requests as are in service at once, so that rounds of them do not show, and more where
// each has draws of its own.
func longRun(m *sim.Model, cfg sim.Config, input, output int) (perSecond float64, completions int, ok bool) {
	completions = max(100_000, 100*cfg.Slots)
	if cfg.Batching {
		completions = max(20_000, 100*cfg.MaxSeqs)
	}
	perSecond, ok = m.LongRun(func(int) sim.Arrival { return sim.Arrival{Prompt: input, Output: output} }, completions)
	return perSecond, completions, ok
}

// capacityLine says how much the server can do of what tare run asks for by default; it is empty where nothing limits it.
func capacityLine(cfg sim.Config) string {
	input, output := asked()
	m, err := sim.NewModel(cfg)
	if err != nil {
		return ""
	}
	perSecond, ok := m.Capacity(input, output)
	if !ok {
		return ""
	}
	return fmt.Sprintf("capacity: %s requests/s of %d input and %d output tokens\n", short(perSecond), input, output)
}

// listening begins the line by which a simulator says where it is; tare demo reads it.
const listening = "listening on http://"

func announce(w io.Writer, addr string) {
	fmt.Fprintln(w, listening+addr)
}
