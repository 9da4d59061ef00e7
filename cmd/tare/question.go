package main

import (
	"errors"

	"github.com/spf13/cobra"

	"tare/internal/judge"
	"tare/internal/plan"
	"tare/internal/record"
	"tare/internal/report"
)

// question is what a run is asked after it: whether it kept its objectives, or others.
type question struct {
	objectives []string
	target     string
	fail       bool
}

func (q *question) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&q.objectives, "slo", nil, "hold the run against this `objective` in place of its own (repeatable); classes keep theirs")
	f.StringVar(&q.target, "slo-target", "", "`share` of the planned requests that is to be good, with --slo; 0.99")
	f.BoolVar(&q.fail, "fail-on-slo", false, "end with code 3 when an objective is missed")
}

func (q *question) any() bool { return len(q.objectives) > 0 || q.fail || q.target != "" }

// report prints the report of the run in dir, and ends as its objectives say.
func (q *question) report(c *cobra.Command, dir string, asJSON bool) error {
	s, err := q.summarize(dir)
	if err != nil {
		return err
	}
	if q.fail && s.SLO == nil {
		return misused(errors.New("--fail-on-slo: the run has no objective"), "set one by --slo")
	}
	show := report.Text
	if asJSON {
		show = report.JSON
	}
	if err := show(c.OutOrStdout(), s); err != nil || !q.fail {
		return err
	}
	return missed(s, c.ErrOrStderr())
}

func (q *question) summarize(dir string) (*judge.Summary, error) {
	if len(q.objectives) == 0 {
		if q.target != "" {
			return nil, misused(errors.New("--slo-target: goes with --slo"), "")
		}
		return judge.Summarize(dir)
	}
	m, err := record.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	slo, target, err := plan.ParseObjectives(q.objectives, q.target, m.Target.Stream)
	if err != nil {
		return nil, misused(err, "")
	}
	return judge.SummarizeFor(dir, judge.Ask{Objectives: slo, Target: target})
}
