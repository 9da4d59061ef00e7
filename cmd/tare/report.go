package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/judge/compare"
	"tare/internal/record"
	"tare/internal/report"
)

func newReport() *cobra.Command {
	var requests, page string
	var asJSON bool
	var exports []string
	var asked question
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Print the report of a run from its directory",
		Long: `Print the report of a run from its directory, the same as the run itself printed.

A run that was killed is reported as far as its records reach. DIR may be that of tare run --repeat or of tare sweep: then what its runs
say together. Of several directories there is a table with a row for each run. --html makes a page of any of these.

With --slo the same records are held against other objectives; with --fail-on-slo it ends with code 3 when one is missed.`,
		Example: `  tare report runs/20260102T030405Z-a1b2c3
  tare report runs/today --json
  tare report runs/today --html today.html
  tare report runs/monday runs/tuesday
  tare report runs/monday runs/tuesday --html both.html
  tare report runs/today --slo 'ttft.p99<300ms' --slo 'tpot<40ms' --fail-on-slo
  tare report runs/today --requests jsonl > requests.jsonl
  tare report runs/today --requests csv > requests.csv
  tare report runs/today --export parquet --export openmetrics=-
  tare report runs/today --export hdr=today.hlog`,
		Args: cobra.MinimumNArgs(1),
		RunE: verb(func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				if requests != "" || len(exports) > 0 || asked.any() {
					return misused(errors.New("--requests, --export and --slo are of one run"), "name one directory")
				}
				if page != "" {
					return writePage(args, page)
				}
				return reportSeveral(c.OutOrStdout(), args, asJSON)
			}
			wanted, err := parseExports(exports)
			if err != nil {
				return misused(err, "")
			}
			if requests == "" && page == "" && len(exports) == 0 && !asked.any() {
				if ok, err := reportSweep(c.OutOrStdout(), args[0], asJSON); ok {
					return err
				}
				if ok, err := reportReplications(c.OutOrStdout(), args[0], asJSON); ok {
					return err
				}
			}
			if len(exports) > 0 {
				return exportRuns(c.OutOrStdout(), c.ErrOrStderr(), args[0], wanted)
			}
			if page != "" {
				return writePage(args, page)
			}
			if err := checkRunDir(args[0]); err != nil {
				return err
			}
			switch {
			case requests == "jsonl" || requests == "csv":
				return report.Requests(c.OutOrStdout(), args[0], requests)
			case requests != "":
				return misused(fmt.Errorf("--requests: must be jsonl or csv, got %q", requests), "")
			}
			if asked.any() {
				return asked.report(c, args[0], asJSON)
			}
			return printReport(c.OutOrStdout(), args[0], asJSON)
		}),
	}
	c.Flags().StringVar(&requests, "requests", "", "print every request instead, as `jsonl` or csv")
	c.Flags().BoolVar(&asJSON, "json", false, "print the summary as JSON")
	c.Flags().StringVar(&page, "html", "", "write the page for a browser to this `file` instead")
	c.Flags().StringArrayVar(&exports, "export", nil, "write the run in another `form` instead, FORM or FORM=PATH (- is stdout), into export/ of the run directory otherwise; may be given several times: "+strings.Join(exportNames(), ", "))
	asked.flags(c)
	c.MarkFlagsMutuallyExclusive("requests", "json", "html", "export")
	for _, name := range []string{"requests", "html", "export"} {
		c.MarkFlagsMutuallyExclusive(name, "slo")
		c.MarkFlagsMutuallyExclusive(name, "fail-on-slo")
	}
	completeWith(c, "export", exportNames()...)
	completeWith(c, "requests", "jsonl", "csv")
	return c
}

// reportSeveral prints a row for each run, those below directories of several runs too.
func reportSeveral(w io.Writer, dirs []string, asJSON bool) error {
	runs, err := replications(dirs)
	if err != nil {
		return err
	}
	all := summariesOf(runs)
	if asJSON {
		return report.SeveralJSON(w, all)
	}
	return report.Several(w, all)
}

func summariesOf(runs []compare.Run) (all []*judge.Summary) {
	for _, r := range runs {
		all = append(all, r.Summary)
	}
	return all
}

// checkRunDir refuses a directory that holds no run.
func checkRunDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return misused(fmt.Errorf("%s: not a run directory, but a file", dir), "name its directory: tare report "+filepath.Dir(dir))
	}
	_, err := record.ReadManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		hint := "tare run prints the directory it wrote to"
		if runs := runsBelow(dir); len(runs) > 0 {
			hint = fmt.Sprintf("it holds %d runs: name one of them, %s for instance", len(runs), runs[0])
		} else if _, err := os.Stat(filepath.Join(dir, capacity.SweepFile)); err == nil {
			hint = fmt.Sprintf("it holds a sweep: name one of its runs, %s for instance", trialDirOf(dir, 1))
		}
		return misused(fmt.Errorf("%s: not a run directory: it has no %s", dir, record.ManifestFile), hint)
	}
	if _, missing := os.Stat(filepath.Join(dir, record.ExchangesFile)); err == nil && missing != nil {
		return &exit{
			code: exitFailed, err: fmt.Errorf("%s: no %s, which holds what was measured", dir, record.ExchangesFile),
			hint: "copy the whole run directory: a report is computed from its records; summary.json, if it is there, has its numbers",
		}
	}
	return err
}

func printReport(w io.Writer, dir string, asJSON bool) error {
	s, err := judge.Summarize(dir)
	if err != nil {
		return err
	}
	if !asJSON {
		return report.Text(w, s)
	}
	return report.JSON(w, s)
}

// completeWith offers fixed words to the shell as values of a flag.
func completeWith(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
}
