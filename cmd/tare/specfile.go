package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/plan"
	"tare/internal/plan/infperf"
)

// The forms that a spec file may have.
const (
	formatTare          = "tare"
	formatInferencePerf = "inference-perf"
)

// specFile is the file that a spec is read from.
type specFile struct {
	name   string // "-" for stdin, empty for none
	format string // empty where its keys are to say
	time   string // for {timestamp} in a path; empty to leave such a path out
}

// read gives draft what the file says, and notes what of another tool's config is not as there.
func (f specFile) read(draft *plan.Draft, stdin io.Reader, notes io.Writer) error {
	if !slices.Contains([]string{"", formatTare, formatInferencePerf}, f.format) {
		return fmt.Errorf("--format: must be %s or %s, got %q", formatTare, formatInferencePerf, f.format)
	}
	var text []byte
	var err error
	switch f.name {
	case "":
		return nil
	case "-":
		f.name = "stdin"
		text, err = io.ReadAll(stdin)
	default:
		text, err = os.ReadFile(f.name)
	}
	if err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	if f.format == formatTare || f.format == "" && !infperf.Detect(text) {
		draft.Read(f.name, text)
		return nil
	}
	config := infperf.Read(f.name, text, infperf.Around{Exists: exists, Time: f.time})
	draft.Take(f.name, config.Settings, config.Faults)
	for _, n := range config.Notes {
		fmt.Fprintln(notes, "note:", n.Error())
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// stamp is the time as paths of inference-perf have it.
func stamp() string { return time.Now().Format("20060102-150405") }

func newConvert() *cobra.Command {
	var file specFile
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Print a config of inference-perf as a spec",
		Long: `Print the spec that a config of inference-perf comes to. What is not as there is noted, what cannot be had is refused; both are
on the error output. Secrets are not printed: the spec takes them from the environment. FILE - is stdin.`,
		Example: `  tare spec convert config.yml > spec.yaml
  tare run -f spec.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: verb(func(c *cobra.Command, args []string) error {
			file.name = args[0]
			draft := new(plan.Draft)
			if err := file.read(draft, c.InOrStdin(), c.ErrOrStderr()); err != nil {
				return misused(err, "")
			}
			spec, err := draft.Spec()
			if err != nil {
				return misused(err, "")
			}
			keepElsewhere(&spec, c.ErrOrStderr())
			var again plan.Draft
			again.Read("the printed spec", spec.YAML())
			if _, err := again.Spec(); err != nil {
				return misused(err, "")
			}
			_, err = c.OutOrStdout().Write(spec.YAML())
			return err
		}),
	}
	c.Flags().StringVar(&file.format, "format", "", "form of FILE: tare or inference-perf, where its keys do not say")
	completeWith(c, "format", formatTare, formatInferencePerf)
	return c
}

// keepElsewhere puts names of environment variables in place of the headers whose values are secret.
func keepElsewhere(spec *plan.Spec, notes io.Writer) {
	shown := spec.Masked().Target.Headers
	spec.Target.Headers = maps.Clone(spec.Target.Headers)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if shown[name] == spec.Target.Headers[name] {
			continue
		}
		variable := "TARE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		spec.Target.Headers[name] = plan.SourceEnv + ":" + variable
		fmt.Fprintf(notes, "note: target.headers.%s: is secret and not printed: set the environment variable %s to its whole value\n", name, variable)
	}
}
