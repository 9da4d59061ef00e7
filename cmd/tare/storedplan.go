package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tare/internal/drive/dialect"
	"tare/internal/plan"
	"tare/internal/record"
)

// The files of a stored plan's directory.
const (
	storedPlanFile     = "plan.json"
	storedRequestsFile = "requests.jsonl.zst"
	storedPlanSchema   = "tare.plan/v1"
)

// storedPlan is plan.json: what a plan is, and the ids by which its requests are known. It is written last.
type storedPlan struct {
	Schema    string          `json:"schema"`
	Tool      record.Tool     `json:"tool"`
	Spec      json.RawMessage `json:"spec"` // without server, headers and run directory
	PlanID    string          `json:"plan_id"`
	ContentID string          `json:"content_id"`
	Requests  int64           `json:"requests"`
}

// storePlan writes a plan into a new directory.
func storePlan(ctx context.Context, dir string, p *plan.Plan) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("store plan: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, storedRequestsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return misused(fmt.Errorf("--write: %s has a plan already", dir), "name a new directory")
	}
	if err != nil {
		return fmt.Errorf("store plan: %w", err)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	ids, err := p.Store(ctx, w)
	flushErr := errors.Join(w.Flush(), file.Close())
	if _, wrong := err.(plan.Faults); wrong {
		err = misused(err, "")
	}
	if err != nil || flushErr != nil {
		return errors.Join(err, flushErr, os.Remove(file.Name()))
	}
	text, err := describeStored(p, ids)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, storedPlanFile), text, 0o644)
}

func describeStored(p *plan.Plan, ids plan.IDs) ([]byte, error) {
	spec, err := json.Marshal(p.Spec.Portable())
	if err != nil {
		return nil, fmt.Errorf("write spec: %w", err)
	}
	text, err := json.MarshalIndent(storedPlan{
		Schema: storedPlanSchema, Tool: record.ThisTool(), Spec: spec, PlanID: ids.PlanID, ContentID: ids.ContentID, Requests: ids.Requests,
	}, "", "  ")
	return append(text, '\n'), err
}

// readStoredPlan reads plan.json.
func readStoredPlan(dir string) (s storedPlan, err error) {
	name := filepath.Join(dir, storedPlanFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return s, misused(fmt.Errorf("--plan: %w", err), "name a directory that tare plan --write has made")
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	if s.Schema != storedPlanSchema {
		return s, fmt.Errorf("read %s: schema must be %s, got %q", name, storedPlanSchema, s.Schema)
	}
	return s, nil
}

// decided returns faults for what of a spec is not as the stored plan has it.
func (s *storedPlan) decided(spec plan.Spec) error {
	var d plan.Draft
	d.Read(storedPlanFile, s.Spec)
	stored, err := d.Spec()
	if err != nil {
		return err
	}
	if faults := spec.Differ(stored); len(faults) > 0 {
		return faults
	}
	return nil
}

// freeze makes the plan of the stored requests, and holds them to the ids.
func (s *storedPlan) freeze(ctx context.Context, dir string, spec plan.Spec, secrets []string) (*plan.Plan, dialect.Dialect, error) {
	d, err := dialect.For(spec.Target.Endpoint, dialectOptions(spec, secrets))
	if err != nil {
		return nil, nil, err
	}
	name := filepath.Join(dir, storedRequestsFile)
	p, err := plan.Stored(spec, func() (io.ReadCloser, error) { return os.Open(name) })
	if err != nil {
		return nil, nil, failed(err)
	}
	ids, err := p.Identify(ctx)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", name, err)
	case ids.PlanID != s.PlanID:
		err = fmt.Errorf("%s: plan id must be %s, got %s", name, s.PlanID, ids.PlanID)
	case ids.ContentID != s.ContentID:
		err = fmt.Errorf("%s: content id must be %s, got %s", name, s.ContentID, ids.ContentID)
	}
	if err != nil {
		return nil, nil, failed(err)
	}
	return p, d, nil
}
