package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// Residue is a key of the manifests with another value, or other values, on one side than on the other.
type Residue struct {
	Key string   `json:"key"`
	A   []string `json:"a"` // each value of the side once, as JSON; empty text where a run has none
	B   []string `json:"b"`
}

// loads are the keys that decide what is sent, and when: they must be the same in every run.
var loads = []string{
	"spec.load", "spec.workload", "spec.target.model", "spec.target.endpoint", "spec.target.stream", "spec.target.continuous_usage",
	"spec.target.return_token_ids", "spec.target.template", "spec.target.response_format", "spec.target.session_header",
}

// own are the keys in which any two runs may differ: times, accounts and draws, and what only repeats the spec.
var own = []string{
	"spec.load.seed", "spec.load.drain", "spec.out", "plan", "stages", "workload", "clock.start_wall", "clock.start_monotonic_ns", "clock.max_step_ns",
	"state", "loops", "admission.calibrated", "admission.utilisation", "target.url", "target.servers", "target.model", "target.endpoint", "target.stream",
	"target.http", "target.insecure", "warnings",
}

// under reports whether key is one of the prefixes or below one.
func under(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		rest, ok := strings.CutPrefix(key, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// objective reports whether key is one of the objectives, of the spec or of a class: they change nothing that is sent.
func objective(key string) bool {
	_, class, ok := strings.Cut(key, "spec.workload.classes[")
	return under(key, []string{"spec.slo"}) || ok && strings.Contains(class, "].slo")
}

// admit looks for what forbids the comparison, and for what a reader must know of it.
func (c *Comparison) admit(a, b []Run, expected []string, quantities []Quantity) error {
	asks := slices.ContainsFunc(quantities, func(q Quantity) bool { return q.asks })
	all := append(slices.Clone(a), b...)
	manifests := make([]record.Manifest, len(all))
	for i, r := range all {
		if err := json.Unmarshal(r.Manifest, &manifests[i]); err != nil {
			return fmt.Errorf("manifest of %s: %w", r.Summary.Dir, err)
		}
	}
	found, err := differences(all)
	if err != nil {
		return err
	}
	for _, key := range found.keys() {
		if under(key, own) {
			continue
		}
		r := Residue{key, found.values(key, 0, len(a)), found.values(key, len(a), len(all))}
		decides := under(key, loads) && !objective(key)
		switch {
		case asks && objective(key):
			c.refuse("%s decides what is good, and is %s on side A, %s on side B", key, listed(r.A), listed(r.B))
		case under(key, expected):
			c.Expected = append(c.Expected, r)
		case decides:
			c.refuse("%s decides the load, and is %s on side A, %s on side B", key, listed(r.A), listed(r.B))
		case !slices.Equal(r.A, r.B):
			c.Residue = append(c.Residue, r)
		}
	}
	c.admitVerdicts(all, expected)
	c.admitPlans(manifests, len(a), under("plan", expected) || slices.ContainsFunc(c.Expected, func(r Residue) bool { return under(r.Key, loads) }))
	c.admitTimes(all, manifests, len(a))
	return nil
}

func (c *Comparison) refuse(format string, args ...any) {
	c.Refused = append(c.Refused, fmt.Sprintf(format, args...))
}

func (c *Comparison) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// listed names the values that a side has.
func listed(values []string) string {
	shown := slices.Clone(values)
	for i, v := range shown {
		if v == "" {
			shown[i] = "not there"
		}
	}
	return strings.Join(shown, " and ")
}

// apart are the manifests of runs against that of the first.
type apart struct {
	first map[string]string   // values of the first run at the keys that differ in some other
	runs  []map[string]string // of each run, at the keys in which it differs from the first
}

func differences(all []Run) (d apart, err error) {
	d.first = map[string]string{}
	for _, r := range all {
		found, err := record.Differences(all[0].Manifest, r.Manifest)
		if err != nil {
			return d, fmt.Errorf("manifest of %s: %w", r.Summary.Dir, err)
		}
		values := map[string]string{}
		for _, f := range found {
			d.first[f.Path], values[f.Path] = f.A, f.B
		}
		d.runs = append(d.runs, values)
	}
	return d, nil
}

func (d *apart) keys() (all []string) {
	for key := range d.first {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// values are the different ones that the runs from one to before another have at a key.
func (d *apart) values(key string, from, until int) (all []string) {
	for _, run := range d.runs[from:until] {
		v, differs := run[key]
		if !differs {
			v = d.first[key]
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// admitVerdicts refuses runs whose numbers are not the server's. A server that did not answer has numbers of its own: what it did answer.
func (c *Comparison) admitVerdicts(all []Run, expected []string) {
	for _, r := range all {
		v := &r.Summary.Verdict
		switch {
		case v.Class == verdict.Valid || v.Class == verdict.Certified:
		case v.Class == verdict.InvalidServer || under("verdict", expected):
			c.warn("%s is %s: %s", r.Summary.Dir, v.Class, v.Reason)
		default:
			c.refuse("verdict: %s is %s: %s", r.Summary.Dir, v.Class, v.Reason)
		}
		if !r.Summary.Run.Complete && !under("state", expected) {
			c.refuse("state: %s did not carry its plan out to the end", r.Summary.Dir)
		}
	}
}

// admitPlans holds the sides to the same plans. Replications draw anew, each with its own seed; the same seed must give the same
// plan, unless it is explained why not.
func (c *Comparison) admitPlans(manifests []record.Manifest, inA int, explained bool) {
	plans := map[string]record.PlanIDs{}
	seeds := make([]string, len(manifests))
	for i := range manifests {
		ids := manifests[i].Plan
		seeds[i] = seedOf(manifests[i].Spec)
		if !ids.Complete {
			continue
		}
		first, seen := plans[seeds[i]]
		switch {
		case !seen:
			plans[seeds[i]] = ids
		case explained:
		case first.PlanID != ids.PlanID:
			c.refuse("plan: seed %s has made the plans %.12s and %.12s: the programs or the files differ", seeds[i], first.PlanID, ids.PlanID)
		case first.ContentID != ids.ContentID:
			c.refuse("plan: seed %s has made the contents %.12s and %.12s: the programs or the files differ", seeds[i], first.ContentID, ids.ContentID)
		}
	}
	a, b := slices.Sorted(slices.Values(seeds[:inA])), slices.Sorted(slices.Values(seeds[inA:]))
	if !slices.Equal(a, b) {
		c.warn("the sides have drawn with other seeds (load.seed %s and %s): the same ones on both sides would leave the draw out of the difference", strings.Join(a, ", "), strings.Join(b, ", "))
	}
}

func seedOf(spec json.RawMessage) string {
	var s struct {
		Load struct {
			Seed json.Number `json:"seed"`
		} `json:"load"`
	}
	_ = json.Unmarshal(spec, &s) // it has been read before; a run without a seed has none
	return s.Load.Seed.String()
}

// admitTimes refuses a run that is there twice, and warns of sides that ran one after the other.
func (c *Comparison) admitTimes(all []Run, manifests []record.Manifest, inA int) {
	for i := range manifests {
		for j := range i {
			if at := manifests[i].Clock.StartWall; !at.IsZero() && at.Equal(manifests[j].Clock.StartWall) {
				c.refuse("runs: %s and %s are the same run", all[j].Summary.Dir, all[i].Summary.Dir)
			}
		}
	}
	start := func(i int) int64 { return manifests[i].Clock.StartWall.UnixNano() }
	firstA, lastA, firstB, lastB := start(0), start(0), start(inA), start(inA)
	for i := range manifests {
		if i < inA {
			firstA, lastA = min(firstA, start(i)), max(lastA, start(i))
		} else {
			firstB, lastB = min(firstB, start(i)), max(lastB, start(i))
		}
	}
	if len(manifests) > 2 && (lastA < firstB || lastB < firstA) {
		c.warn("one side ran before the other: what changed in between on the machines is in the difference; runs in turn (A B B A …) leave it out")
	}
}

// warnOfFew names quantiles of runs with too few values for them, and quantities that some runs do not have.
func (c *Comparison) warnOfFew(quantities []Quantity, parts []*judge.Part) {
	for i := range quantities {
		q := &quantities[i]
		few, none := 0, 0
		for _, p := range parts {
			if _, ok := q.of(p).Get(); !ok {
				none++
			} else if !q.backed(p) {
				few++
			}
		}
		if few > 0 {
			c.warn("%s: %d of %d runs have fewer than the %d values that it takes", q.Name, few, len(parts), q.Needs)
		}
		if none > 0 {
			c.warn("%s: %d of %d runs have none, and are left out of it", q.Name, none, len(parts))
		}
	}
}

// warnOfTokens says when the servers did not give as many tokens on one side as on the other: rates and latencies then are of other work.
func (c *Comparison) warnOfTokens(left, right []*judge.Part) {
	for _, name := range []string{"input_tokens.mean", "output_tokens.mean"} {
		q, _ := ParseQuantity(name) // of the table
		r := q.row(left, right)
		a, known := r.MedianA.Get()
		b, both := r.MedianB.Get()
		if known && both && (b > a*1.01 || b < a*0.99) {
			c.warn("%s: %.1f on side A, %.1f on side B: the work was not the same", name, a, b)
		}
	}
}
