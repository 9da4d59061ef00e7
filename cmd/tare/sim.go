package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/internal/plan"
	"tare/internal/sim"
)

func newSim() *cobra.Command {
	var cfg sim.Config
	var procs int
	var attended, secure bool
	var unread unreadable
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run a simulated server whose truth is known",
		Long: `Run a simulated LLM server: OpenAI chat and completions, streaming and not, with delays, a queue and
failures that are known exactly. It prints the address it listens on, and ends at Ctrl-C.

Delays are 50ms, uniform(10ms,20ms), exponential(50ms) or lognormal(50ms,0.4): mean and coefficient of variation.
Faults are a kind and a rate: status=503:0.05, stream-error:0.01, truncate:0.01, cut:0.01, reset:0.01, stall:0.01,
slow-headers=2s:0.1, empty:0.01, close-after-reply:0.1.`,
		Example: `  tare sim --addr 127.0.0.1:8000 --ttft 50ms --gap 10ms
  tare sim --ttft 'lognormal(200ms,0.5)' --slots 8
  tare sim --fault status=503:0.05 --fault reset:0.01
  tare sim --null`,
		Args: cobra.NoArgs,
		RunE: verb(func(c *cobra.Command, _ []string) error {
			if err := errors.Join(unread.err(), cfg.Validate()); err != nil {
				return misused(err, "")
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
	f.DurationVar(&cfg.Step, "step", 0, "decode in lock-step: all streams emit on the ticks of this period")
	f.IntVar(&cfg.TokensPerChunk, "tokens-per-chunk", 1, "output tokens in one chunk")
	f.DurationVar(&cfg.Prefill, "prefill", 0, "more time to the first token for each prompt token")
	f.IntVar(&cfg.Slots, "slots", 0, "requests in service at a time, the others queue; 0 for any number")
	f.IntVar(&cfg.QueueLimit, "queue-limit", 0, "requests that may queue, those beyond get 429; 0 for any number")
	f.BoolVar(&cfg.PrefixCache, "prefix-cache", false, "compute what prompts have in common once")
	f.IntVar(&cfg.KVTokens, "kv-tokens", 0, "tokens that the KV memory has room for; 0 for 1048576")
	f.IntVar(&cfg.KVBlock, "kv-block", 0, "tokens in a block of it; 0 for 16")
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
		"int": "a whole number", "uint64": "a whole number of 0 or more", "bool": "true or false", "duration": "a duration like 50ms",
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

// capacityLine says how much the server can do of what tare run asks for by default; it is empty where nothing limits it.
func capacityLine(cfg sim.Config) string {
	asked := plan.Defaults().Workload
	input, _ := asked.InputTokens.Fixed()
	output, _ := asked.OutputTokens.Fixed()
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
