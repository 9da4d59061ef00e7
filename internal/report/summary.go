// Package report shows numbers made from a run's files: to people as text, to programs as JSON and CSV.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tare/internal/judge"
	"tare/internal/judge/verdict"
)

// SummaryFile is the name of the summary in a run directory.
const SummaryFile = "summary.json"

// VerdictFile is the name of the verdict alone, and VerdictSchema its format and version.
const (
	VerdictFile   = "verdict.json"
	VerdictSchema = "tare.verdict/v1"
)

// JSON writes s as summary.json holds it, described in docs/summary.md.
func JSON(w io.Writer, s *judge.Summary) error {
	if err := Encode(w, s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// Encode writes v as all documents of a run are written: two spaces an indent, without escapes for HTML.
func Encode(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteSummary puts summary.json and verdict.json into the run directory dir, each in one step: a reader sees the old one or
// the new one whole.
func WriteSummary(dir string, s *judge.Summary) error {
	if err := replace(dir, SummaryFile, s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if err := replace(dir, VerdictFile, verdictDocument(s)); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// verdictDocument is what verdict.json holds.
func verdictDocument(s *judge.Summary) any {
	return &struct {
		Schema string `json:"schema"`
		verdict.Verdict
	}{VerdictSchema, s.Verdict}
}

// replace puts v as JSON into the place of a file.
func replace(dir, name string, v any) error {
	return replaceBy(dir, name, func(w io.Writer) error { return Encode(w, v) })
}

// replaceBy puts what write writes into the place of a file.
func replaceBy(dir, name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // finds nothing once renamed
	if err := fill(f, write); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

func fill(f *os.File, write func(io.Writer) error) error {
	err := write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
