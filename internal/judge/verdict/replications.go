package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// CertifiedRuns is how many runs of the same load CERTIFIED asks for.
const CertifiedRuns = 5

// Run is one of several runs of one load.
type Run struct {
	Verdict Verdict
	Differs []string // keys of the spec, but for seed and directory, in which it differs from the first
}

// joint lists the gates that only runs together are held against. Docs/verdict.md has them beside those of rules.
func joint() []rule {
	return []rule{
		{id: "T9", name: "replications", text: fmt.Sprintf("certified: runs of the same load ≥ %d", CertifiedRuns), hint: "repeat the run: --repeat 5", blames: InvalidStats},
		{id: "T10", name: "same load", text: "the specs of the runs differ in seed and directory alone", hint: "put runs of one spec together", blames: InvalidStats},
	}
}

// Certify is the judgement on several runs of one load by those on each: the worst of them, or CERTIFIED. Its gates are those that no
// run alone can be held against.
func Certify(runs []Run) Verdict {
	v := Verdict{}
	for i, r := range joint() {
		r.find = func(*Evidence) []finding { return []finding{[]finding{replicated(len(runs)), alike(runs)}[i]} }
		v.Gates = append(v.Gates, r.gate(nil))
	}
	v.Class, v.Reason = v.joined(runs)
	return v
}

func (v *Verdict) joined(runs []Run) (Class, string) {
	worst := runs[Worst(runs)].Verdict
	if worst.Class != Valid {
		return worst.Class, worst.Reason
	}
	if failed := v.failed(InvalidStats); len(failed) > 0 {
		return InvalidStats, "these are not runs of one load: " + failed[0].Measured
	}
	if len(runs) < CertifiedRuns {
		return Valid, fmt.Sprintf("no gate failed in %d runs; CERTIFIED asks for %d", len(runs), CertifiedRuns)
	}
	for i := range runs {
		if ids := runs[i].Verdict.short(); len(ids) > 0 {
			return Valid, fmt.Sprintf("no gate failed in %d runs; not certified in run %d: %s", len(runs), i+1, strings.Join(ids, ", "))
		}
	}
	reason := fmt.Sprintf("every gate passed at the certified level in each of %d runs", len(runs))
	if ids := untold(runs); len(ids) > 0 {
		reason += ", but for what the server does not tell: " + strings.Join(ids, ", ")
	}
	return Certified, reason
}

// replicated is the finding on so many runs of one load.
func replicated(runs int) finding {
	if runs >= CertifiedRuns {
		return finding{level: CertifiedLevel, measured: fmt.Sprintf("%d runs", runs)}
	}
	return finding{level: ValidLevel, measured: fmt.Sprintf("%d of %d runs (--repeat)", runs, CertifiedRuns)}
}

// alike asks whether all are runs of one spec: the same structure, sampling and cache.
func alike(runs []Run) finding {
	for i := range runs {
		if d := runs[i].Differs; len(d) > 0 {
			return finding{level: Failed, strain: float64(len(d)), measured: fmt.Sprintf("run %d differs from the first in %s", i+1, strings.Join(d, ", "))}
		}
	}
	return finding{level: CertifiedLevel, measured: "the same spec but for the seed"}
}

// short lists what stands between a run and CERTIFIED.
func (v *Verdict) short() (ids []string) {
	for _, g := range v.Gates {
		if g.Level != CertifiedLevel && g.Level != NotApplicable && !g.Untold {
			ids = append(ids, g.ID+" "+g.Name)
		}
	}
	return ids
}

// untold names the gates that could not be observed in some run since the server does not tell.
func untold(runs []Run) (ids []string) {
	for i := range runs {
		for _, g := range runs[i].Verdict.Gates {
			if id := g.ID + " " + g.Name; g.Untold && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Worst is the place of the run whose verdict condemns most, the first of equals; 0 of none.
func Worst(runs []Run) (at int) {
	for i := range runs {
		if severity(runs[i].Verdict.Class) > severity(runs[at].Verdict.Class) {
			at = i
		}
	}
	return at
}

// severity orders classes from good to bad.
func severity(c Class) int {
	if i := slices.Index(blame(), c); i >= 0 {
		return len(blame()) - i
	}
	return 0
}
