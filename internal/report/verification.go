package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/record"
)

// VerificationSchema names the format of what tare verify --json prints, and its version.
const VerificationSchema = "tare.verification/v1"

// Verification is what became of holding a run directory, or one of several runs, to its own facts.
type Verification struct {
	Schema string         `json:"schema,omitempty"` // of the outermost one
	Dir    string         `json:"dir"`
	Result Held           `json:"result"` // the worst of its checks
	Checks []Check        `json:"checks"`
	Runs   []Verification `json:"runs,omitempty"` // of tare run --repeat
}

// Check is one of them.
type Check struct {
	What   string `json:"what"` // "plan id", "summary.json"
	Result Held   `json:"result"`
	Detail string `json:"detail"`

	Differences []record.Difference `json:"differences,omitempty"` // a is what the file has, b what the facts give
}

// Held is how a check came out.
type Held string

const (
	Agrees     Held = "agrees"
	Unchecked  Held = "not checked" // what it would be held to is not there
	Incomplete Held = "incomplete"  // the run did not come to its end, and what is there agrees
	Differs    Held = "differs"
)

// Add appends checks, and keeps the worst of all as the result.
func (v *Verification) Add(checks ...Check) {
	v.Checks = append(v.Checks, checks...)
	for _, c := range checks {
		v.Result = worse(v.Result, c.Result)
	}
}

// AddRun appends one of several runs.
func (v *Verification) AddRun(run Verification) {
	v.Runs = append(v.Runs, run)
	v.Result = worse(v.Result, run.Result)
}

// worse is the worse of two results. What could not be checked takes nothing from what was.
func worse(a, b Held) Held {
	for _, r := range []Held{Differs, Incomplete, Agrees, Unchecked} {
		if a == r || b == r {
			return r
		}
	}
	return Unchecked
}

// VerifySummary holds summary.json and verdict.json in dir to the bytes that s gives.
func VerifySummary(dir string, s *judge.Summary) ([]Check, error) {
	summary, err := verifyFile(dir, SummaryFile, s)
	if err != nil {
		return nil, err
	}
	v, err := verifyFile(dir, VerdictFile, verdictDocument(s))
	return []Check{summary, v}, err
}

// VerifyReplications holds replications.json to the bytes that r gives.
func VerifyReplications(r *judge.Replications) (Check, error) {
	return verifyFile(r.Dir, ReplicationsFile, r)
}

// VerifySweep holds sweep.json to the bytes that s gives, whose trials were judged anew.
func VerifySweep(s *capacity.Sweep) (Check, error) { return verifyFile(s.Dir, capacity.SweepFile, s) }

// verifyFile holds a file to what v is encoded as.
func verifyFile(dir, name string, v any) (Check, error) {
	c := Check{What: name}
	have, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		c.Result, c.Detail = Unchecked, "is not there; tare report computes it anew"
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("verify: %w", err)
	}
	var want bytes.Buffer
	if err := Encode(&want, v); err != nil {
		return c, fmt.Errorf("verify %s: %w", name, err)
	}
	if bytes.Equal(have, want.Bytes()) {
		c.Result, c.Detail = Agrees, fmt.Sprintf("all %d bytes, computed anew from the records", len(have))
		return c, nil
	}
	c.Result = Differs
	c.Differences, err = record.Differences(have, want.Bytes())
	switch {
	case err != nil:
		c.Detail = "is no JSON document: " + err.Error()
	case len(c.Differences) == 0:
		c.Detail = "has the values that the records give, in other bytes"
	default:
		c.Detail = fmt.Sprintf("%d values are not what the records give", len(c.Differences))
	}
	return c, nil
}

// VerificationJSON writes v as tare verify --json prints it.
func VerificationJSON(w io.Writer, v *Verification) error { return Encode(w, v) }

// VerificationText writes v for people, the result first.
func VerificationText(w io.Writer, v *Verification) error {
	var b bytes.Buffer
	wrap(&b, fmt.Sprintf("%s: ", v.Result), concluded(v))
	writeChecks(&b, v)
	for i := range v.Runs {
		run := &v.Runs[i]
		fmt.Fprintf(&b, "\n%s: %s\n", printable(run.Dir), run.Result)
		writeChecks(&b, run)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// concluded is the result in a sentence.
func concluded(v *Verification) string {
	n := v.counts()
	switch v.Result {
	case Differs:
		return fmt.Sprintf("%d of %d checks do not hold", n[Differs], n[Differs]+n[Agrees]+n[Incomplete])
	case Incomplete:
		return "what is there agrees with the records, but the run did not come to its end"
	case Unchecked:
		return "nothing was there to be checked"
	}
	text := fmt.Sprintf("all %d checks hold", n[Agrees])
	if n[Unchecked] > 0 {
		text += fmt.Sprintf("; %d could not be made", n[Unchecked])
	}
	return text
}

// counts are the numbers of checks by their results, those of all runs among them.
func (v *Verification) counts() map[Held]int {
	n := map[Held]int{}
	for _, c := range v.Checks {
		n[c.Result]++
	}
	for i := range v.Runs {
		for result, k := range v.Runs[i].counts() {
			n[result] += k
		}
	}
	return n
}

// mostShown is how many differences of one file people are shown.
const mostShown = 10

func writeChecks(b *bytes.Buffer, v *Verification) {
	for i := range v.Checks {
		c := &v.Checks[i]
		wrap(b, fmt.Sprintf("  %-11s  %-17s  ", c.Result, c.What), c.Detail)
		for n, d := range c.Differences {
			if n == mostShown {
				fmt.Fprintf(b, "%34sand %d more: tare verify --json lists all\n", "", len(c.Differences)-n)
				break
			}
			wrap(b, fmt.Sprintf("%34s", ""), fmt.Sprintf("%s: %s in the file, %s from the records", place(d.Path), clipped(d.A), clipped(d.B)))
		}
	}
}

func place(path string) string {
	if path == "" {
		return "the whole"
	}
	return path
}

// clipped shortens a value to what a line can hold.
func clipped(value string) string {
	if value == "" {
		return "nothing"
	}
	return clip(value, 60)
}
