package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/report"
)

// writePage puts the page of what is in dirs where the user wants it.
func writePage(dirs []string, path string) error {
	write, err := pageOf(dirs, filepath.Dir(path))
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return misused(fmt.Errorf("--html: %w", err), "")
	}
	return errors.Join(write(f), f.Close())
}

// pageOf makes the page that is to stand in the directory from: of a sweep, of repeated runs, of a run, or of several of these.
func pageOf(dirs []string, from string) (write func(io.Writer) error, err error) {
	if len(dirs) > 1 {
		runs, err := replications(dirs)
		return func(w io.Writer) error { return report.SeveralPage(w, from, summariesOf(runs)) }, err
	}
	dir := dirs[0]
	if _, err := os.Stat(filepath.Join(dir, capacity.SweepFile)); err == nil {
		s, err := readSweep(dir)
		return func(w io.Writer) error { return report.SweepPage(w, from, s) }, err
	}
	if runs, err := summarizeBelow(dir); err != nil || len(runs) > 0 {
		return func(w io.Writer) error { return report.ReplicationsPage(w, from, judge.Replicated(dir, runs), runs) }, err
	}
	if err := checkRunDir(dir); err != nil {
		return nil, err
	}
	s, detail, err := judge.Examine(dir)
	return func(w io.Writer) error { return report.Page(w, s, detail) }, err
}
