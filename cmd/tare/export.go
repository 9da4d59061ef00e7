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

// exportRun writes each form, and says where it is.
func exportRun(stdout, notices io.Writer, dir string, all []wanted) error {
	r, err := export.Read(dir)
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.path == "-" {
			if err := w.format.Write(r, stdout); err != nil {
				return err
			}
			continue
		}
		if w.path == "" {
			w.path = filepath.Join(dir, exportDir, filepath.FromSlash(w.format.File))
		}
		written, err := w.format.Save(r, w.path)
		if err != nil {
			return err
		}
		fmt.Fprintln(notices, strings.Join(written, "\n"))
	}
	return nil
}

func exportNames() (names []string) {
	for _, f := range export.Formats() {
		names = append(names, f.Name)
	}
	return names
}
