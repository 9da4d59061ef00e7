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
)

// SummaryFile is the name of the summary in a run directory.
const SummaryFile = "summary.json"

// JSON writes s as summary.json holds it, described in docs/summary.md.
func JSON(w io.Writer, s *judge.Summary) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteSummary puts summary.json into the run directory dir in one step: a reader sees the old one or the new one whole.
func WriteSummary(dir string, s *judge.Summary) error {
	f, err := os.CreateTemp(dir, SummaryFile+".*")
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	defer os.Remove(f.Name()) // finds nothing once renamed
	if err := fill(f, s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, SummaryFile)); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

func fill(f *os.File, s *judge.Summary) error {
	err := JSON(f, s)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
