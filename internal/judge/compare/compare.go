// Package compare says whether one side's runs are worse than the other's. The unit is the run, never the request: what differs
// from run to run is in no single run's intervals.
package compare

import (
	"encoding/json"
	"fmt"

	"tare/internal/judge"
	"tare/internal/judge/stats"
)

// Schema names the JSON form of a Comparison and its version.
const Schema = "tare.comparison/v1"

// Level is what a corrected p-value must not be above for a difference to be shown.
const Level = 0.05

// Run is one replication: its manifest as it was written, and what it came to.
type Run struct {
	Manifest json.RawMessage
	Summary  *judge.Summary // with its Dir
}

// Options say what is compared, and how.
type Options struct {
	Quantities []Quantity // none for Headline
	Stage      string     // name of a measured stage; empty for the total
	MinEffect  float64    // share of A's median that a difference must reach to count; 0 for any
	Expected   []string   // keys, or their beginnings, in which the sides differ on purpose: "spec.target.model", "verdict"
}

// Comparison is what two sides say of each other.
type Comparison struct {
	Schema    string    `json:"schema"`
	Result    Result    `json:"result"`
	A         Side      `json:"a"`
	B         Side      `json:"b"`
	Stage     string    `json:"stage"`      // "total", or a stage's name
	MinEffect float64   `json:"min_effect"` // share of A's median
	Refused   []string  `json:"refused"`    // why the sides must not be compared
	Warnings  []string  `json:"warnings"`
	Residue   []Residue `json:"residue"`  // what differs between the sides and was not expected to
	Expected  []Residue `json:"expected"` // what differs on purpose
	Rows      []Row     `json:"rows"`     // none for a comparison that is refused

	// Least is the smallest corrected p-value that one quantity of the rows could come to with so many runs; undefined without a test.
	Least judge.Number `json:"least_p"`
}

// Side is the runs of one side, in the order in which they were given.
type Side struct {
	Dirs     []string `json:"dirs"`
	Verdicts []string `json:"verdicts"`
}

// Result is a comparison in a word or two.
type Result string

const (
	Refused     Result = "refused"     // the runs are not of one load, or not all are to be believed
	Untested    Result = "untested"    // too few runs for a test to show anything
	Regression  Result = "regression"  // a quantity is worse
	Improvement Result = "improvement" // none is worse, and one is better
	NoneShown   Result = "none shown"  // no difference was shown, which does not say that there is none
)

// Compare compares side b with side a. It returns an error for a stage or a side that is not there; what else is wrong with the runs is
// in the comparison.
func Compare(a, b []Run, o Options) (*Comparison, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("compare: each side needs a run, got %d and %d", len(a), len(b))
	}
	c := &Comparison{
		Schema: Schema, A: side(a), B: side(b), Stage: "total", MinEffect: o.MinEffect, Refused: []string{}, Warnings: []string{}, Residue: []Residue{},
		Expected: []Residue{}, Rows: []Row{},
	}
	if o.Stage != "" {
		c.Stage = o.Stage
	}
	left, err := parts(a, o.Stage)
	if err != nil {
		return nil, err
	}
	right, err := parts(b, o.Stage)
	if err != nil {
		return nil, err
	}
	quantities := o.Quantities
	if len(quantities) == 0 {
		quantities = Headline()
	}
	if err := c.admit(a, b, o.Expected, quantities); err != nil {
		return nil, err
	}
	if len(c.Refused) > 0 {
		c.Result = Refused
		return c, nil
	}
	for _, q := range quantities {
		c.Rows = append(c.Rows, q.row(left, right))
	}
	c.test(len(a), len(b))
	c.warnOfFew(quantities, append(left, right...))
	c.warnOfTokens(left, right)
	return c, nil
}

func side(runs []Run) (s Side) {
	for _, r := range runs {
		s.Dirs = append(s.Dirs, r.Summary.Dir)
		s.Verdicts = append(s.Verdicts, string(r.Summary.Verdict.Class))
	}
	return s
}

// parts are the stages that a name stands for, or the totals.
func parts(runs []Run, stage string) (all []*judge.Part, err error) {
	for _, r := range runs {
		part, err := partOf(r.Summary, stage)
		if err != nil {
			return nil, err
		}
		all = append(all, part)
	}
	return all, nil
}

func partOf(s *judge.Summary, stage string) (*judge.Part, error) {
	if stage == "" {
		return &s.Total, nil
	}
	for i := range s.Stages {
		if p := &s.Stages[i]; p.Name == stage && !p.Warmup {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s: no measured stage is called %q", s.Dir, stage)
}

// test decides on the rows. Quantities that are the same in all runs have no part in the correction: which they are does not depend on
// whose run is whose.
func (c *Comparison) test(n, m int) {
	var tested []*Row
	var p []float64
	for i := range c.Rows {
		r := &c.Rows[i]
		if v, ok := r.P.Get(); ok {
			tested, p = append(tested, r), append(p, v)
		}
	}
	for i, v := range stats.Holm(p) {
		tested[i].Corrected = judge.Some(v)
	}
	if n > 1 && m > 1 && len(tested) > 0 {
		c.Least = judge.Some(min(stats.LeastP(n, m)*float64(len(tested)), 1))
	}
	for i := range c.Rows {
		c.Rows[i].decide(c.MinEffect, len(tested))
	}
	c.Result = c.concluded(n > 1 && m > 1)
}

func (c *Comparison) concluded(several bool) Result {
	switch {
	case c.has(Worse):
		return Regression
	case c.has(Better):
		return Improvement
	case !several, c.has(NoTest) && !c.has(NotShown) && !c.has(Small) && !c.has(Changed):
		return Untested
	}
	return NoneShown
}

func (c *Comparison) has(f Finding) bool {
	for i := range c.Rows {
		if c.Rows[i].Finding == f {
			return true
		}
	}
	return false
}
