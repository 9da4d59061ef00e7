package report

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/judge/verdict"
)

// severalScripts are those of a page of several runs in their order.
var severalScripts = []string{"fault.js", "uPlot.iife.min.js", "numbers.js", "charts.js", "verdict.js", "load.js", "sweep.js", "several.js"}

// together is what a page of several runs is drawn from.
type together struct {
	Runs         []pageRun           `json:"runs"`
	Worst        int                 `json:"worst"` // place of the run whose verdict condemns most
	Plans        int                 `json:"plans"` // different ones
	Sweep        *capacity.Sweep     `json:"sweep,omitempty"`
	Saturation   string              `json:"saturation,omitempty"` // of a sweep that searched for nothing: what it found all the same
	Replications *judge.Replications `json:"replications,omitempty"`
}

type pageRun struct {
	Name    string         `json:"name"`
	Link    string         `json:"link,omitempty"` // path of the run's own page from this one; left out where it has none
	Summary *judge.Summary `json:"summary"`
	Points  []judge.Point  `json:"points"` // of the measured stages, in their order
}

// SeveralPage writes several runs as one page like that of one run. It will stand in the directory from: its links begin there.
func SeveralPage(w io.Writer, from string, runs []*judge.Summary) error {
	return fillPage(w, severalScripts, joined(from, runs, func(s *judge.Summary) string { return s.Dir }))
}

// ReplicationsPage writes what the runs of tare run --repeat say together as a page that will stand in the directory from.
func ReplicationsPage(w io.Writer, from string, r *judge.Replications, runs []*judge.Summary) error {
	t := joined(from, runs, lastOf)
	t.Replications = r
	return fillPage(w, severalScripts, t)
}

// SweepPage writes a sweep, whose results ResultOf made, as a page that will stand in the directory from.
func SweepPage(w io.Writer, from string, s *capacity.Sweep) error {
	var runs []*judge.Summary
	for i := range s.Results {
		sum := s.Results[i].Summary()
		if sum == nil {
			return fmt.Errorf("write page: %s: the run was not judged", s.Results[i].Dir)
		}
		runs = append(runs, sum)
	}
	t := joined(from, runs, lastOf)
	if t.Sweep = s; s.Answer == nil {
		t.Saturation = saturation(s)
	}
	return fillPage(w, severalScripts, t)
}

// WriteReplicationsPage puts the page into the directory of the replications.
func WriteReplicationsPage(r *judge.Replications, runs []*judge.Summary) error {
	return replaceBy(r.Dir, PageFile, func(w io.Writer) error { return ReplicationsPage(w, r.Dir, r, runs) })
}

// WriteSweepPage puts the page into the directory of the sweep.
func WriteSweepPage(s *capacity.Sweep) error {
	return replaceBy(s.Dir, PageFile, func(w io.Writer) error { return SweepPage(w, s.Dir, s) })
}

func lastOf(s *judge.Summary) string { return filepath.Base(s.Dir) }

func joined(from string, runs []*judge.Summary, name func(*judge.Summary) string) *together {
	t := &together{Runs: []pageRun{}, Plans: plansOf(runs)}
	var verdicts []verdict.Run
	for _, s := range runs {
		t.Runs = append(t.Runs, pageRun{name(s), linkTo(from, s.Dir), s, judge.Points(s)})
		verdicts = append(verdicts, verdict.Run{Verdict: s.Verdict})
	}
	t.Worst = verdict.Worst(verdicts)
	return t
}

// linkTo is the path from a page in one directory to that of the run in another; empty where there is none.
func linkTo(from, dir string) string {
	if len(filesIn(dir, PageFile)) == 0 {
		return ""
	}
	here, errHere := filepath.Abs(from)
	there, errThere := filepath.Abs(dir)
	way, err := filepath.Rel(here, there)
	if errors.Join(errHere, errThere, err) != nil {
		return "" // on another drive
	}
	return filepath.ToSlash(filepath.Join(way, PageFile))
}
