package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tare/internal/report/export"
)

// exportDir is where exports go unless a path is given, below the run directory.
const exportDir = "export"

// wanted is a form of export and where it goes: "-" is stdout, empty its usual name.
type wanted struct {
	format export.Format
	path   string
}

// parseExports reads FORMAT or FORMAT=PATH, all mistakes in the error.
func parseExports(texts []string) (all []wanted, err error) {
	var faults []string
	for _, text := range texts {
		name, path, _ := strings.Cut(text, "=")
		f, err := export.Find(name)
		switch {
		case err != nil:
			faults = append(faults, "--export: "+err.Error())
		case path == "-" && f.Several():
			faults = append(faults, fmt.Sprintf("--export: %s is several files, which stdout cannot hold\nhint: --export %s=DIRECTORY", name, name))
		}
		all = append(all, wanted{f, path})
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	return all, nil
}

// exportRuns writes each form of the run in dir, or of the runs below it, and says where it is.
func exportRuns(stdout, notices io.Writer, dir string, all []wanted) error {
	dirs := runsBelow(dir)
	if len(dirs) == 0 {
		if err := checkRunDir(dir); err != nil {
			return err
		}
		dirs = []string{dir}
	}
	var runs []*export.Run
	for _, at := range dirs {
		r, err := export.Read(at)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	for _, w := range all {
		if len(runs) > 1 && !w.format.Joins {
			return misused(fmt.Errorf("--export: %s is of one run, and %s has %d", w.format.Name, dir, len(runs)), "name one of them: tare report "+dirs[0])
		}
		if w.path == "" {
			w.path = filepath.Join(dir, exportDir, filepath.FromSlash(w.format.File))
		}
		if err := w.write(stdout, notices, runs); err != nil {
			return err
		}
	}
	return nil
}

func (w wanted) write(stdout, notices io.Writer, runs []*export.Run) error {
	if w.path != "-" {
		written, err := w.format.Save(runs, w.path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(notices, strings.Join(written, "\n"))
		return err
	}
	for _, r := range runs {
		if err := w.format.Write(r, stdout); err != nil {
			return err
		}
	}
	return nil
}

func exportNames() (names []string) {
	for _, f := range export.Formats() {
		names = append(names, f.Name)
	}
	return names
}
