package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/judge/stats"
	"tare/internal/plan"
)

func newPlan() *cobra.Command {
	var requests, dir string
	c := &cobra.Command{
		Use:   "plan [URL...]",
		Short: "Show what a run would send, and when",
		Long: `Show what a run would send, and when, without sending it: the stages, how many requests fall due in each, the rate, the
coefficient of variation of the gaps and the index of dispersion (variance over mean) of the counts in spans of 1, 10 and 60 s that
were drawn, and the ids. Equal ids mean the same load, on every machine.`,
		Example: `  tare plan -f spec.yaml
  tare plan http://127.0.0.1:8000 --model my-model --rate 10 --duration 60s --arrival gamma --burstiness 0.5
  tare plan -f spec.yaml --list jsonl | head`,
		Args: cobra.ArbitraryArgs,
	}
	read := addSpecFlags(c)
	c.Flags().StringVar(&requests, "list", "", "list every request instead, as `jsonl` or csv")
	c.Flags().StringVar(&dir, "write", "", "write the plan into this new `dir`, for tare run --plan")
	completeWith(c, "list", "jsonl", "csv")
	c.RunE = verb(func(c *cobra.Command, args []string) error {
		spec, err := read(args, nil)
		if err != nil {
			return misused(err, "")
		}
		p, _, err := freeze(spec, nil)
		if err != nil {
			return misused(err, "")
		}
		defer p.Close()
		if dir != "" {
			if err := storePlan(c.Context(), dir, p); err != nil {
				return err
			}
		}
		switch requests {
		case "":
			return printPlan(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), p)
		case "jsonl", "csv":
			return listPlan(c.Context(), c.OutOrStdout(), p, requests)
		}
		return misused(fmt.Errorf("--list: must be jsonl or csv, got %q", requests), "")
	})
	return c
}

// printPlan also says, aside, at what rate requests were made.
func printPlan(ctx context.Context, to, aside io.Writer, p *plan.Plan) error {
	stages := make([]stats.Arrivals, len(p.Stages))
	var drawn drawnLengths
	began := time.Now()
	ids, err := p.EachKnown(ctx, func(r *plan.Request) error {
		if r.Turn == 0 {
			a := &stages[r.Stage]
			a.Add(a.N(), r.Due)
		}
		drawn.add(r)
		return nil
	})
	if err != nil {
		return err
	}
	drawn.speed(aside, time.Since(began))
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\tload\tarrivals\tgap before\twindow\trequests\tdrawn rate\tCV of gaps\tIDC 1s\t10s\t60s")
	for i := range p.Stages {
		s, a := &p.Stages[i], &stages[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%s\t%s\t%s\n", stageName(s), stageLoad(s), arrivalsOf(s), s.Gap, windowOf(s), countOf(p, s, a), drawnOf(s, a))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(to, "\nrequests    %d\nseed        %d\nplan id     %s\ncontent id  %s\n", ids.Requests, p.Spec.Load.Seed, ids.PlanID, ids.ContentID)
	drawn.print(to, p)
	for _, f := range p.Files() {
		fmt.Fprintf(to, "file        %s, %s, sha256 %s\n", f.Key, f.Path, f.SHA256)
	}
	for _, note := range p.Notes() {
		fmt.Fprintf(to, "note        %s\n", note)
	}
	return nil
}

// drawnLengths are the lengths that came out of the draws.
type drawnLengths struct {
	requests, input, output, shared int64
	classes                         map[string]int64
}

func (d *drawnLengths) add(r *plan.Request) {
	d.requests++
	d.input += int64(r.InputTokens)
	d.output += int64(r.OutputTokens)
	d.shared += int64(r.SharedTokens)
	if r.Class != "" {
		if d.classes == nil {
			d.classes = map[string]int64{}
		}
		d.classes[r.Class]++
	}
}

// speed says how fast the requests were made, bodies and hashes included, on one core.
func (d *drawnLengths) speed(to io.Writer, took time.Duration) {
	if seconds := took.Seconds(); d.requests > 0 && seconds > 0 {
		fmt.Fprintf(to, "planned     %d requests in %v: %.4g requests/s, %.4g prompt tokens/s\n", d.requests, took.Round(time.Microsecond),
			float64(d.requests)/seconds, float64(d.input)/seconds)
	}
}

// print sets the means that were drawn next to those that were asked for.
func (d *drawnLengths) print(to io.Writer, p *plan.Plan) {
	input, output, known := p.MeanLengths()
	if d.requests == 0 {
		return
	}
	n := float64(d.requests)
	if known {
		fmt.Fprintf(to, "input       mean %.2f tokens, asked %.2f\noutput      mean %.2f tokens, asked %.2f\n", float64(d.input)/n, input, float64(d.output)/n, output)
	}
	if d.input > 0 {
		fmt.Fprintf(to, "cacheable   %.2f %% of the prompt tokens, for a prefix cache that forgets nothing\n", 100*float64(d.shared)/float64(d.input))
	}
	for _, name := range slices.Sorted(maps.Keys(d.classes)) {
		fmt.Fprintf(to, "class       %s, %d requests\n", name, d.classes[name])
	}
}

func stageName(s *plan.Stage) string {
	if s.Warmup {
		return s.Name + " (not counted)"
	}
	return s.Name
}

func stageLoad(s *plan.Stage) string {
	switch {
	case s.Closed && s.ThinkTime() > 0:
		return fmt.Sprintf("%d in flight or thinking, %v in the mean", s.Concurrency, s.ThinkTime())
	case s.Closed:
		return fmt.Sprintf("%d in flight", s.Concurrency)
	case s.MaxInFlight > 0:
		return fmt.Sprintf("%s, at most %d in flight", s.Course(), s.MaxInFlight)
	}
	return s.Course()
}

// plain writes a number without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func windowOf(s *plan.Stage) string {
	if s.Duration == 0 {
		return "until done"
	}
	return s.Duration.Round(time.Millisecond).String()
}

func countOf(p *plan.Plan, s *plan.Stage, a *stats.Arrivals) string {
	switch {
	case s.Closed && s.Sessions == 0:
		return "as replies allow"
	case p.Converses():
		return fmt.Sprintf("%d sessions", a.N())
	}
	return fmt.Sprint(a.N())
}

func arrivalsOf(s *plan.Stage) string {
	if s.Closed {
		return "after replies"
	}
	return s.Arrivals()
}

// drawnOf are the columns of what came out of the random process in one stage.
func drawnOf(s *plan.Stage, a *stats.Arrivals) string {
	cells := []string{"-", "-", "-", "-", "-"}
	if s.Closed || s.Duration == 0 {
		return strings.Join(cells, "\t")
	}
	cells[0] = fmt.Sprintf("%.2f/s", float64(a.N())/s.Duration.Seconds())
	if cv, ok := a.Variation(); ok {
		cells[1] = fmt.Sprintf("%.3f", cv)
	}
	for i, span := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		if index, ok := a.Dispersion(span, s.Duration); ok {
			cells[2+i] = fmt.Sprintf("%.2f", index)
		}
	}
	return strings.Join(cells, "\t")
}

// plannedRequest is one line of tare plan --list.
type plannedRequest struct {
	Index        int64    `json:"index"`
	Stage        string   `json:"stage"`
	Due          *float64 `json:"due_ms"`       // since the start of the run; null when replies decide
	StageDue     *float64 `json:"stage_due_ms"` // since the start of the stage
	InputTokens  int      `json:"input_tokens"`
	OutputTokens int      `json:"output_tokens"`
	BodySHA256   string   `json:"body_sha256"` // empty for a later turn of a session: replies decide
	Session      int64    `json:"session"`
	Turn         int      `json:"turn"`
}

// plannedColumns are the keys of a plannedRequest, as the head of a table.
var plannedColumns = []string{"index", "stage", "due_ms", "stage_due_ms", "input_tokens", "output_tokens", "body_sha256", "session", "turn"}

// fields are the values of plannedColumns; empty where there is none.
func (r *plannedRequest) fields() []string {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return plain(*v)
	}
	return []string{
		strconv.FormatInt(r.Index, 10), r.Stage, number(r.Due), number(r.StageDue), strconv.Itoa(r.InputTokens),
		strconv.Itoa(r.OutputTokens), r.BodySHA256, strconv.FormatInt(r.Session, 10), strconv.Itoa(r.Turn),
	}
}

// listPlan writes every request as "jsonl" or "csv".
func listPlan(ctx context.Context, to io.Writer, p *plan.Plan, format string) error {
	w := bufio.NewWriter(to)
	if format == "csv" {
		table := csv.NewWriter(w)
		err := errors.Join(table.Write(plannedColumns), eachPlanned(ctx, p, func(r *plannedRequest) error { return table.Write(r.fields()) }))
		table.Flush()
		return errors.Join(err, w.Flush())
	}
	e := json.NewEncoder(w)
	err := eachPlanned(ctx, p, func(r *plannedRequest) error { return e.Encode(r) })
	return errors.Join(err, w.Flush())
}

func eachPlanned(ctx context.Context, p *plan.Plan, put func(*plannedRequest) error) error {
	starts := knownStarts(p.Stages)
	_, err := p.EachKnown(ctx, func(r *plan.Request) error {
		s := p.Stages[r.Stage]
		line := plannedRequest{
			Index: r.Index, Stage: s.Name, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Session: r.Session, Turn: r.Turn,
		}
		if r.Turn > 0 {
			return put(&line)
		}
		sum := sha256.Sum256(r.Body)
		line.BodySHA256 = hex.EncodeToString(sum[:])
		if !s.Closed {
			line.StageDue = inMillis(r.Due)
		}
		if !s.Closed && r.Stage < len(starts) {
			line.Due = inMillis(starts[r.Stage] + r.Due)
		}
		return put(&line)
	})
	return err
}

// knownStarts are the starts of the stages that do not wait for replies, since the start of the run.
func knownStarts(stages []plan.Stage) (starts []time.Duration) {
	at := time.Duration(0)
	for _, s := range stages {
		at += s.Gap
		starts = append(starts, at)
		if s.Duration == 0 {
			break
		}
		at += s.Duration
	}
	return starts
}

func inMillis(d time.Duration) *float64 {
	v := float64(d) / 1e6
	return &v
}
