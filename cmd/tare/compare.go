package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/judge"
	"tare/internal/judge/compare"
	"tare/internal/record"
	"tare/internal/report"
)

func newCompare() *cobra.Command {
	var o compare.Options
	var metrics []string
	var effect string
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare A B | A... -- B...",
		Short: "Say whether the runs of one side are worse than those of another",
		Long: `Say whether the runs of side B are worse than those of side A: per quantity the test of Mann and Whitney on one value of each run,
corrected by Holm for the number of quantities, and the shift of Hodges and Lehmann with its 95 % interval.

Each DIR is a run directory, or that of tare run --repeat, which has several. Two of them are the two sides; of more, -- stands between the
sides. Fewer than four runs a side can show nothing; docs/compare.md says how large a difference five can show.

Runs of different loads are refused, as are runs whose verdict says that their numbers are not the server's. --expect names a key of the
manifest, or its beginning, in which the sides differ on purpose. All other differences of the manifests are listed.

Exit codes:
  0    no quantity is worse, as far as the test can tell
  1    failed: a directory could not be read
  2    usage, or the runs must not be compared
  3    regression: a quantity is worse, by no less than --min-effect`,
		Example: `  tare compare runs/before runs/after
  tare compare runs/before-* -- runs/after-* --json
  tare compare runs/before runs/after --min-effect 2% --metric ttft_ms.p99 --metric output_tokens_per_s
  tare compare runs/small runs/large --expect spec.target.model`,
		Args: cobra.MinimumNArgs(2),
	}
	f := c.Flags()
	f.StringArrayVar(&metrics, "metric", nil, "compare this `quantity`, METRIC.FIGURE or a rate, in place of the usual ones; may be given several times")
	f.StringVar(&o.Stage, "stage", "", "compare the stage of this `name` in place of the total")
	f.StringVar(&effect, "min-effect", "0%", "`share` of A's median below which a difference does not count")
	f.StringArrayVar(&o.Expected, "expect", nil, "`key` of the manifest in which the sides differ on purpose, or verdict; may be given several times")
	f.BoolVar(&asJSON, "json", false, "print the comparison as JSON")
	c.RunE = verb(func(c *cobra.Command, args []string) error {
		left, right, err := sidesOf(args, c.ArgsLenAtDash())
		if err := errors.Join(err, readOptions(&o, metrics, effect)); err != nil {
			return misused(err, "")
		}
		return compareSides(c, left, right, o, asJSON)
	})
	return c
}

// sidesOf parts the arguments; dash is how many of them stand before --, or -1 without one.
func sidesOf(args []string, dash int) (a, b []string, err error) {
	switch {
	case dash < 0 && len(args) == 2:
		return args[:1], args[1:], nil
	case dash < 0:
		return nil, nil, fmt.Errorf("which of the %d directories are on which side?\nhint: write -- between the sides: tare compare A1 A2 -- B1 B2", len(args))
	case dash == 0 || dash == len(args):
		return nil, nil, errors.New("one side has no directory\nhint: write -- between the sides: tare compare A1 A2 -- B1 B2")
	}
	return args[:dash], args[dash:], nil
}

// readOptions reads what flags give as text. All mistakes are in the error.
func readOptions(o *compare.Options, metrics []string, effect string) error {
	var faults []error
	for _, text := range metrics {
		q, err := compare.ParseQuantity(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("--metric: %w", err))
		}
		o.Quantities = append(o.Quantities, q)
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(effect), "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 1) {
		faults = append(faults, fmt.Errorf("--min-effect: must be a share from 0%% to below 100%%, got %q\nhint: 2%% or 0.02", effect))
	}
	o.MinEffect = v
	return errors.Join(faults...)
}

func compareSides(c *cobra.Command, left, right []string, o compare.Options, asJSON bool) error {
	a, err := replications(left)
	if err != nil {
		return err
	}
	b, err := replications(right)
	if err != nil {
		return err
	}
	found, err := compare.Compare(a, b, o)
	if err != nil {
		return misused(err, "")
	}
	show := report.ComparisonText
	if asJSON {
		show = report.ComparisonJSON
	}
	if err := show(c.OutOrStdout(), found); err != nil {
		return err
	}
	switch found.Result {
	case compare.Regression:
		return &exit{code: exitObjective}
	case compare.Refused:
		return &exit{code: exitUsage}
	}
	return nil
}

// replications are the runs that directories hold, those below a directory of several too.
func replications(dirs []string) (runs []compare.Run, err error) {
	var faults []error
	for _, dir := range dirs {
		below := runsBelow(dir)
		if len(below) == 0 {
			below = []string{dir}
		}
		for _, at := range below {
			r, err := replication(at)
			runs, faults = append(runs, r), append(faults, err)
		}
	}
	return runs, errors.Join(faults...)
}

func replication(dir string) (r compare.Run, err error) {
	if err := checkRunDir(dir); err != nil {
		return r, err
	}
	if r.Manifest, err = os.ReadFile(filepath.Join(dir, record.ManifestFile)); err != nil {
		return r, err
	}
	r.Summary, err = judge.Summarize(dir)
	return r, err
}
