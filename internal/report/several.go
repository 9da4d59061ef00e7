package report

import (
	"bytes"
	"fmt"
	"io"

	"tare/internal/judge"
)

// SeveralSchema names the JSON form of several runs, and its version.
const SeveralSchema = "tare.runs/v1"

// Several writes a table with a row for each run: its total. It says nothing of whether they differ: tare compare does.
func Several(w io.Writer, runs []*judge.Summary) error {
	var b bytes.Buffer
	parts := []*judge.Part{}
	for _, s := range runs {
		wrap(&b, printable(s.Dir)+"  ", fmt.Sprintf("%s: %s", s.Verdict.Class, s.Verdict.Reason))
		parts = append(parts, &s.Total)
	}
	b.WriteByte('\n')
	name := func(i, most int) string { return ending(printable(runs[i].Dir), most) }
	tables := b.Len()
	writeParts(&b, loadColumns(), "run", parts, name)
	writeParts(&b, latencyColumns(), "run", parts, name)
	writeNotes(&b, runs[0], bytes.Contains(b.Bytes()[tables:], []byte(" "+weak)))
	if plans := plansOf(runs); plans > 1 {
		wrap(&b, "plans     ", fmt.Sprintf("%d different ones in %d runs: tare compare says whether they are of one load, and whether one is worse", plans, len(runs)))
	} else {
		wrap(&b, "plans     ", "the same in all runs")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// plansOf counts the different plans of runs.
func plansOf(runs []*judge.Summary) int {
	plans := map[string]bool{}
	for _, s := range runs {
		plans[s.Run.Plan.PlanID+s.Run.Plan.ContentID] = true
	}
	return len(plans)
}

// ending is the last of a path, where all of it is too long.
func ending(path string, most int) string {
	if r := []rune(path); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return path
}

// SeveralJSON writes the summaries of several runs as one document.
func SeveralJSON(w io.Writer, runs []*judge.Summary) error {
	type run struct {
		Dir     string         `json:"dir"`
		Summary *judge.Summary `json:"summary"`
	}
	all := struct {
		Schema string `json:"schema"`
		Runs   []run  `json:"runs"`
	}{Schema: SeveralSchema}
	for _, s := range runs {
		all.Runs = append(all.Runs, run{s.Dir, s})
	}
	return Encode(w, &all)
}
