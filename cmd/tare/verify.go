package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/plan"
	"tare/internal/record"
	"tare/internal/report"
)

func newVerify() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Hold a run directory to its own facts",
		Long: `Hold a run directory to its own facts, and say what differs. DIR may be that of tare run --repeat or of tare sweep.

The plan is made anew from the spec in the manifest and must have the ids that the run had; the files that the spec names must still
have their hashes, where they are there. The records must have the checksums they were written with, and the due times of the plan.
summary.json, verdict.json, replications.json and sweep.json are computed anew from the records and must be the same, byte for byte.

Exit codes:
  0    everything that could be checked agrees, and the run came to its end
  1    something differs, or the run is incomplete: stopped, killed, or cut off
  2    usage: DIR is no run directory`,
		Example: `  tare verify runs/today
  tare verify runs/today --json`,
		Args: cobra.ExactArgs(1),
		RunE: verb(func(c *cobra.Command, args []string) error {
			v, err := verifyDir(c.Context(), args[0])
			if err != nil {
				return err
			}
			v.Schema = report.VerificationSchema
			show := report.VerificationText
			if asJSON {
				show = report.VerificationJSON
			}
			if err := show(c.OutOrStdout(), &v); err != nil {
				return err
			}
			if v.Result == report.Differs || v.Result == report.Incomplete {
				return &exit{code: exitFailed}
			}
			return nil
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the checks as JSON")
	return c
}

// verifyDir holds one run, or all that a directory of several has, to their facts.
func verifyDir(ctx context.Context, dir string) (v report.Verification, err error) {
	if _, err := os.Stat(filepath.Join(dir, capacity.SweepFile)); err == nil {
		return verifySweep(ctx, dir)
	}
	runs := runsBelow(dir)
	if len(runs) == 0 {
		v, _, err = verifyRun(ctx, dir)
		return v, err
	}
	v.Dir = dir
	var all []*judge.Summary
	for _, at := range runs {
		run, s, err := verifyRun(ctx, at)
		if err != nil {
			return v, err
		}
		v.AddRun(run)
		all = append(all, s)
	}
	joint, err := report.VerifyReplications(judge.Replicated(dir, all))
	v.Add(joint)
	return v, err
}

// verifySweep holds every trial of a sweep to its facts, and what they were concluded to.
func verifySweep(ctx context.Context, dir string) (v report.Verification, err error) {
	s, err := readSweep(dir)
	if err != nil {
		return v, err
	}
	v.Dir = dir
	for _, r := range s.Results {
		run, _, err := verifyRun(ctx, filepath.Join(dir, r.Dir))
		if err != nil {
			return v, err
		}
		v.AddRun(run)
	}
	whole, err := report.VerifySweep(s)
	v.Add(whole)
	return v, err
}

func verifyRun(ctx context.Context, dir string) (v report.Verification, s *judge.Summary, err error) {
	if err := checkRunDir(dir); err != nil {
		return v, nil, err
	}
	m, err := record.ReadManifest(dir)
	if err != nil {
		return v, nil, err
	}
	if s, err = judge.Summarize(dir); err != nil {
		return v, nil, err
	}
	log, err := verifyLog(dir)
	if err != nil {
		return v, nil, err
	}
	files, err := report.VerifySummary(dir, s)
	if err != nil {
		return v, nil, err
	}
	v.Dir = dir
	v.Add(verifyEnd(m, s))
	planned, err := verifyPlan(ctx, m, dir)
	if err != nil {
		return v, nil, err
	}
	v.Add(planned...)
	v.Add(log)
	v.Add(explainBuild(m, files)...)
	return v, s, ctx.Err()
}

// verifyEnd says whether the run came to its end and every planned request is on record.
func verifyEnd(m *record.Manifest, s *judge.Summary) report.Check {
	c := report.Check{What: "end", Result: report.Incomplete}
	switch {
	case m.State.Cause != "":
		c.Detail = "the run was cut short: " + m.State.Cause
	case !m.State.Complete:
		c.Detail = "the run did not come to its end: it was killed, or it is still going on"
	case !s.Run.Complete:
		c.Detail = "not every planned request has a record"
	default:
		c.Result, c.Detail = report.Agrees, "the run came to its end, and every planned request is on record"
	}
	return c
}

// verifyLog reads all records.
func verifyLog(dir string) (report.Check, error) {
	c := report.Check{What: record.ExchangesFile, Result: report.Agrees}
	tail, err := record.ReadLog(dir, func(*record.Exchange) error { return nil })
	if err != nil {
		return c, err
	}
	c.Detail = fmt.Sprintf("%d records in %d blocks, each with its checksum", tail.Exchanges, tail.Blocks)
	var lost []string
	if tail.LostBlocks > 0 {
		lost = append(lost, fmt.Sprintf("%d blocks are damaged, with at least %d records", tail.LostBlocks, tail.LostExchanges))
	}
	if tail.LostBytes > 0 {
		lost = append(lost, fmt.Sprintf("%d bytes are no records", tail.LostBytes))
	}
	if tail.Torn {
		lost = append(lost, "the file ends within a block")
	}
	if len(lost) > 0 {
		c.Result = report.Differs
		c.Detail += "; " + strings.Join(lost, "; ")
	}
	return c, nil
}

// explainBuild says of files that differ when another build has written them: it may compute otherwise.
func explainBuild(m *record.Manifest, files []report.Check) []report.Check {
	hash, err := record.BinarySHA256()
	if err != nil || m.Tool.BinarySHA256 == "" || hash == m.Tool.BinarySHA256 {
		return files
	}
	for i := range files {
		if files[i].Result == report.Differs {
			files[i].Detail += fmt.Sprintf("; another build of tare has written it (%s), which may compute otherwise", versionOf(m.Tool))
		}
	}
	return files
}

func versionOf(t record.Tool) string { return strings.TrimSpace(t.Version + " " + t.Revision) }

// verifyPlan makes the plan anew from the effective spec, which holds it to the hashes of the files that it names, and compares ids and records.
func verifyPlan(ctx context.Context, m *record.Manifest, dir string) ([]report.Check, error) {
	p, err := replan(m.Spec)
	if err != nil {
		return refusedPlan(err), nil
	}
	defer p.Close()
	var checks []report.Check
	for _, f := range p.Files() {
		checks = append(checks, report.Check{What: f.Key, Result: report.Agrees, Detail: fmt.Sprintf("%s, %s", f.SHA256, f.Path)})
	}
	due := dueTimes{manifest: m, plan: p}
	ids, err := p.EachKnown(ctx, due.add)
	if err != nil {
		return append(checks, report.Check{What: "plan id", Result: report.Unchecked, Detail: err.Error()}), nil
	}
	if !m.Plan.Complete {
		checks = append(checks, report.Check{What: "plan id", Result: report.Unchecked, Detail: "the run was not walked to the end of its plan, and has no ids of the whole"})
	} else {
		checks = append(checks, identical("plan id", m.Plan.PlanID, ids.PlanID, ids.Requests), identical("content id", m.Plan.ContentID, ids.ContentID, ids.Requests))
	}
	records, err := due.held(dir)
	return append(checks, records), err
}

// dueTimes are the requests of a plan that fall due at a known time: first turns of open stages.
type dueTimes struct {
	manifest *record.Manifest
	plan     *plan.Plan
	all      []dueTime // by index; a run may have millions
}

type dueTime struct {
	index         int64
	due           time.Duration // since the start of the run
	stage, output int32         // tokens
}

func (d *dueTimes) add(r *plan.Request) error {
	if r.Turn > 0 || r.Stage >= len(d.manifest.Stages) || d.plan.Stages[r.Stage].Closed {
		return nil
	}
	start := time.Duration(math.Round(d.manifest.Stages[r.Stage].StartMs * 1e6))
	d.all = append(d.all, dueTime{r.Index, start + r.Due, int32(r.Stage), int32(r.OutputTokens)})
	return nil
}

// of is the planned request with an index, if that is known.
func (d *dueTimes) of(index int64) (planned dueTime, known bool) {
	i, known := slices.BinarySearchFunc(d.all, index, func(t dueTime, index int64) int { return cmp.Compare(t.index, index) })
	if known {
		planned = d.all[i]
	}
	return planned, known
}

// held holds the records in dir of requests that were sent to them: stage, due time to the nanosecond, asked output tokens.
func (d *dueTimes) held(dir string) (report.Check, error) {
	c := report.Check{What: "due times", Result: report.Unchecked, Detail: "replies decide when requests fall due"}
	if !d.manifest.State.Complete {
		c.Detail = "when its stages began was not written"
		return c, nil
	}
	n, wrong := 0, 0
	example := ""
	_, err := record.ReadLog(dir, func(x *record.Exchange) error {
		want, known := d.of(x.Index)
		if _, sent := x.FirstWrite.Get(); !known || !sent { // a stage that was not reached has no start
			return nil
		}
		n++
		if got := (dueTime{x.Index, x.Due, int32(x.Stage), int32(x.PlannedOut)}); got != want {
			if wrong++; wrong == 1 {
				example = fmt.Sprintf("request %d is of stage %d, due at %v, %d tokens; planned: stage %d, %v, %d tokens", x.Index, got.stage, got.due, got.output, want.stage, want.due, want.output)
			}
		}
		return nil
	})
	switch {
	case err != nil || n == 0:
	case wrong > 0:
		c.Result, c.Detail = report.Differs, fmt.Sprintf("%d of %d records are not as planned: %s", wrong, n, example)
	default:
		c.Result, c.Detail = report.Agrees, fmt.Sprintf("%d records are due when the plan has them, to the nanosecond", n)
	}
	return c, err
}

func identical(what, have, want string, requests int64) report.Check {
	c := report.Check{What: what, Result: report.Agrees, Detail: fmt.Sprintf("%s, %d requests", want, requests)}
	if have != want {
		c.Result, c.Detail = report.Differs, fmt.Sprintf("the run had %q, the spec gives %q", have, want)
	}
	return c
}

// refusedPlan are the checks of a spec of which no plan can be made here: files that have changed, or that are not there.
func refusedPlan(err error) (checks []report.Check) {
	faults, ok := errors.AsType[plan.Faults](err)
	if !ok {
		return []report.Check{{What: "plan id", Result: report.Unchecked, Detail: err.Error()}}
	}
	var reasons []string
	for _, f := range faults {
		if file, changed := strings.CutPrefix(f.Key, "workload.sha256."); changed {
			checks = append(checks, report.Check{What: file, Result: report.Differs, Detail: f.Reason})
			continue
		}
		reasons = append(reasons, f.Key+": "+f.Reason)
	}
	if len(reasons) == 0 {
		reasons = []string{"the files that it was made from have changed"}
	}
	return append(checks, report.Check{What: "plan id", Result: report.Unchecked, Detail: strings.Join(reasons, "; ")})
}

// replan makes the plan of a spec as a manifest has it. What may be masked there, the server's URL and the headers, decides nothing of it.
func replan(text json.RawMessage) (*plan.Plan, error) {
	var whole struct {
		Target   map[string]json.RawMessage `json:"target"`
		Load     json.RawMessage            `json:"load"`
		Workload json.RawMessage            `json:"workload"`
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("the manifest has no spec: %w", err)
	}
	delete(whole.Target, "url")
	delete(whole.Target, "headers")
	deciding, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	var d plan.Draft
	d.Read("", deciding)
	spec, err := d.Spec()
	if err != nil {
		return nil, err
	}
	p, _, err := freeze(spec, nil)
	return p, err
}
