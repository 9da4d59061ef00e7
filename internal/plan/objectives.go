package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/internal/objective"
)

// objectiveFaults checks every objective, of the spec and of its classes.
func (s *Spec) objectiveFaults() (faults Faults) {
	faults = s.listFaults("slo", s.SLO)
	for i, c := range s.Workload.Classes {
		faults = append(faults, s.listFaults(classPath(i)+".slo", c.SLO)...)
	}
	return faults
}

// HasObjectives reports whether anything is asked of the server, of all requests or of a class.
func (s *Spec) HasObjectives() bool {
	return len(s.SLO) > 0 || slices.ContainsFunc(s.Workload.Classes, func(c Class) bool { return len(c.SLO) > 0 })
}

func (s *Spec) listFaults(path string, texts []string) (faults Faults) {
	for i, text := range texts {
		o, fault := objective.Parse(text)
		switch {
		case fault != nil:
			faults = append(faults, Fault{Key: itemPath(path, i), Reason: fault.Reason, Hint: objectiveHint(fault)})
		case slices.Contains(texts[:i], text):
			faults = append(faults, Fault{Key: itemPath(path, i), Reason: "is given twice: " + text})
		case o.Streamed() && !s.Target.Stream:
			faults = append(faults, Fault{
				Key: itemPath(path, i), Reason: fmt.Sprintf("%s asks for times within a reply, and replies are not streamed", text),
				Hint: "set target.stream, or ask for e2e",
			})
		}
	}
	return faults
}

// ParseObjectives reads what is asked of a run after it: the texts of --slo, and of --slo-target, empty for the default. streamed says
// whether its replies were. The error is Faults.
func ParseObjectives(texts []string, target string, streamed bool) (slo []string, share float64, err error) {
	var d Draft
	d.Set("load.concurrency", "1", "") // a spec has a load
	d.Set("load.requests", "1", "")
	d.Set("target.stream", strconv.FormatBool(streamed), "")
	for _, text := range texts {
		d.Set("slo", text, "--slo")
	}
	if target != "" {
		d.Set("slo_target", target, "--slo-target")
	}
	spec, err := d.Spec()
	return spec.SLO, spec.SLOTarget, err
}

// objectiveHint names what an unknown metric was probably meant to be.
func objectiveHint(fault *objective.Fault) string {
	if fault.Word == "" {
		return fault.Hint
	}
	if best, ok := nearest(fault.Word, fault.OneOf); ok {
		return meant + best + "?"
	}
	return "the metrics are " + strings.Join(fault.OneOf, ", ")
}
