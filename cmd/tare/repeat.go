package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
	"tare/internal/record"
	"tare/internal/report"
)

// mostRepeats bounds the names run-1, run-2, … to what sorts well enough for a person.
const mostRepeats = 100

// repeat carries a load out several times, into run-1, run-2, … below one directory, and says what the runs say together. Each
// takes the next seed, so that arrivals and prompts are drawn anew; a stored plan is sent as it is each time.
func repeat(c *cobra.Command, spec plan.Spec, stored *storedPlan, o runOptions) error {
	if o.repeat > mostRepeats {
		return misused(fmt.Errorf("--repeat: must be at most %d, got %d", mostRepeats, o.repeat), "")
	}
	if o.plan == "" { // faults of the spec are found before anything is created
		l, err := newLoad(spec)
		if err != nil {
			return misused(err, "")
		}
		if err := l.plan.Close(); err != nil {
			return err
		}
	}
	base, err := createRunDir(spec.Out, time.Now())
	if err != nil {
		return err
	}
	if _, err := os.Stat(runDirOf(base, 1)); err == nil {
		return misused(fmt.Errorf("out: %s already holds runs", base), "name another directory, or leave --out away for a new one under ./runs")
	}
	first := spec.Load.Seed
	var runs []finished
	for i := range o.repeat {
		spec.Out = runDirOf(base, i+1)
		if o.plan == "" {
			spec.Load.Seed = first + uint64(i)
		}
		r, err := runOnce(c, spec, stored, o)
		if err != nil {
			return errors.Join(err, cleared(base, runs))
		}
		runs = append(runs, r)
		fmt.Fprintf(c.ErrOrStderr(), "run %d of %d: %s: %s\n", i+1, o.repeat, r.summary.Verdict.Class, r.summary.Verdict.Reason)
		if r.interrupted {
			break
		}
	}
	all := summariesIn(runs)
	joint := judge.Replicated(base, all)
	if err := errors.Join(report.WriteReplications(joint), report.WriteReplicationsPage(joint, all)); err != nil {
		return err
	}
	if err := report.Replications(c.OutOrStdout(), joint); err != nil {
		return err
	}
	return exitOfAll(runs, joint, o, c.ErrOrStderr())
}

// runDirOf is the directory of run n.
func runDirOf(base string, n int) string { return filepath.Join(base, fmt.Sprintf("run-%d", n)) }

// cleared removes the directory of runs of which none came about.
func cleared(base string, runs []finished) error {
	if len(runs) == 0 {
		_ = os.Remove(base) // stays when it holds something
	}
	return nil
}

func summariesIn(runs []finished) (all []*judge.Summary) {
	for _, r := range runs {
		all = append(all, r.summary)
	}
	return all
}

// exitOfAll is the code of the first run that does not end well, or of the judgement on all of them.
func exitOfAll(runs []finished, joint *judge.Replications, o runOptions, notices io.Writer) error {
	each := o
	each.strict = false // the joint verdict says
	for _, r := range runs {
		if err := r.exit(each, notices); err != nil {
			return err
		}
	}
	if class := joint.Verdict.Class; o.strict && class != verdict.Valid && class != verdict.Certified {
		return &exit{code: exitVerdict, err: fmt.Errorf("verdict: %s is below VALID", class)}
	}
	return nil
}

// reportReplications prints what the runs below dir say together; ok is false when it holds none.
func reportReplications(w io.Writer, dir string, asJSON bool) (ok bool, err error) {
	all, err := summarizeBelow(dir)
	if err != nil || len(all) == 0 {
		return err != nil, err
	}
	joint := judge.Replicated(dir, all)
	if asJSON {
		return true, report.ReplicationsJSON(w, joint)
	}
	return true, report.Replications(w, joint)
}

// runsBelow are the directories of the runs that tare run --repeat has put below dir.
func runsBelow(dir string) (runs []string) {
	for n := 1; n <= mostRepeats; n++ {
		at := runDirOf(dir, n)
		if _, err := os.Stat(filepath.Join(at, record.ManifestFile)); err == nil {
			runs = append(runs, at)
		}
	}
	return runs
}

func summarizeBelow(dir string) (all []*judge.Summary, err error) {
	for _, at := range runsBelow(dir) {
		s, err := judge.Summarize(at)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
