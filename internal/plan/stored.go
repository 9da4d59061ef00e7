package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"tare/internal/plan/schedule"
	"tare/internal/plan/store"
)

// Store writes every request of the plan to a file, as they are made, and returns their ids. A plan with a stage whose number of
// requests follows from replies cannot be stored, nor one whose sessions have turns.
func (p *Plan) Store(ctx context.Context, to io.Writer) (ids IDs, err error) {
	for i := range p.Stages {
		if !p.Stages[i].counted() {
			return IDs{}, Faults{{
				Key: stagePath(i), Reason: "is a closed loop that ends by duration: how many requests it has is not known before",
				Hint: "give it requests in place of the duration",
			}}
		}
	}
	if p.Converses() {
		return IDs{}, Faults{{
			Key: p.turnsKey(), Reason: "makes requests that fall due by the replies to those before, and may hold these: they are not known before",
			Hint: "store a plan of single turns; a spec makes the same sessions anywhere, and its plan id shows that",
		}}
	}
	if p.Spec.Workload.Trace.Headers != "" {
		return IDs{}, Faults{{Key: "workload.trace.headers", Reason: "does not go with stored plans, which have no headers", Hint: "leave it out"}}
	}
	w, err := store.NewWriter(to)
	if err != nil {
		return IDs{}, err
	}
	defer func() {
		if closeErr := w.Close(); err == nil {
			err = closeErr
		}
	}()
	return p.EachKnown(ctx, func(r *Request) error {
		return w.Write(&store.Row{
			Index: r.Index, Stage: r.Stage, Due: r.Due, Think: r.Think, Session: r.Session, Turn: r.Turn, Class: r.Class, Model: r.Model,
			InputTokens: r.InputTokens, SharedTokens: r.SharedTokens, OutputTokens: r.OutputTokens, Body: string(r.Body),
		})
	})
}

// turnsKey is the key by which sessions have turns.
func (p *Plan) turnsKey() string {
	if p.recorded != nil {
		return "workload.trace.sessions"
	}
	return "workload.conversation.turns"
}

// Stored freezes a spec whose requests are those of a file that Store wrote, opened anew for every walk. It reads no other file, and
// has no prompts: its requests have bodies only. Identify tells whether they are the ones that are expected.
func Stored(spec Spec, open func() (io.ReadCloser, error)) (*Plan, error) {
	if faults := spec.check(spec.present); len(faults) > 0 {
		return nil, faults
	}
	p := &Plan{Spec: spec, stored: open, mostTurns: 1}
	if !spec.Load.replayed() {
		p.resolve()
		return p, nil
	}
	s := Stage{Name: "trace", arrival: ArrivalTrace, trace: new(schedule.Trace), MaxInFlight: spec.Load.MaxInFlight}
	p.Stages = []Stage{s}
	var due []time.Duration
	w := p.Walk()
	w.SkipBodies(true)
	for r := new(Request); w.Next(r); {
		due = append(due, r.Due)
	}
	p.Stages[0].take(due)
	if spec.Load.Duration > 0 {
		p.Stages[0].Duration = min(p.Stages[0].Duration, spec.Load.Duration)
	}
	return p, errors.Join(w.Err(), w.Close())
}

// nextStored fills r with the next row of the file that is of the stage or a later one.
func (w *Walker) nextStored(r *Request) (ok bool) {
	if w.err != nil || w.stage == len(w.plan.Stages) {
		return false
	}
	if w.rows == nil {
		file, err := w.plan.stored()
		if err == nil {
			w.rows, err = store.NewReader(file)
		}
		if err != nil {
			w.err = fmt.Errorf("read stored plan: %w", err)
			return false
		}
	}
	row := &w.stored
	for {
		err := w.rows.Next(row)
		switch {
		case err == io.EOF:
			w.stage = len(w.plan.Stages)
			return false
		case err != nil:
			w.err = fmt.Errorf("read stored plan: %w", err)
			return false
		case row.Stage < 0 || row.Stage >= len(w.plan.Stages):
			w.err = fmt.Errorf("read stored plan: request %d: stage must be below %d, got %d", row.Index, len(w.plan.Stages), row.Stage)
			return false
		case row.Stage < w.stage:
			continue // ended before
		}
		w.stage = row.Stage
		break
	}
	*r = Request{
		Index: row.Index, Stage: row.Stage, Due: row.Due, Think: row.Think, Session: row.Session, Number: w.made, Turn: row.Turn, Class: row.Class,
		Model: row.Model, Turns: 1, InputTokens: row.InputTokens, SharedTokens: row.SharedTokens, OutputTokens: row.OutputTokens,
	}
	w.made++
	w.look(r)
	if !w.skip {
		w.body = append(w.body[:0], row.Body...)
		r.Body = w.body
		w.said.Made++
		if w.plan.Spec.Workload.Dataset.File != "" { // it may be one of whole bodies
			w.said.heed(r.Body)
		}
		w.address(r)
	}
	w.hash(r)
	return true
}

// Err returns why a walk ended early, or why a later turn could not be made.
func (w *Walker) Err() error { return w.err }

// Close closes the file of a stored plan. The walk is over then.
func (w *Walker) Close() error {
	w.stage = len(w.plan.Stages)
	if w.rows == nil {
		return nil
	}
	rows := w.rows
	w.rows = nil
	return rows.Close()
}

// planned are the keys besides all of load and workload that a stored plan's requests follow from.
var planned = []string{"target.model", "target.endpoint", "target.stream", "target.continuous_usage", "target.return_token_ids", "target.response_format"}

// Differ returns faults for the keys on which two specs differ and which decide what is sent, and when.
func (s Spec) Differ(from Spec) (faults Faults) {
	for _, k := range specKeys {
		section, _, _ := strings.Cut(k.name, ".")
		decides := section == "load" && k.name != "load.drain" || section == "workload" || slices.Contains(planned, k.name)
		if decides && !reflect.DeepEqual(jsonValue(k.field(&s)), jsonValue(k.field(&from))) {
			faults = append(faults, Fault{Key: k.name, Reason: "is decided by the stored plan", Hint: "leave it out, or make another plan"})
		}
	}
	return faults
}

// Portable returns the spec without what belongs to one machine or run: the server and its headers, the client, the run directory.
func (s Spec) Portable() Spec {
	p := Defaults()
	p.Load, p.Workload, p.SLO, p.SLOTarget = s.Load, s.Workload, s.SLO, s.SLOTarget
	for _, name := range planned {
		k, _ := find(specKeys, name)
		reflect.ValueOf(k.field(&p)).Elem().Set(reflect.ValueOf(k.field(&s)).Elem())
	}
	p.Target.APIKeyEnv = keyVariable(p.Target.Endpoint)
	return p
}
