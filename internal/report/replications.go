package report

import (
	"bytes"
	"fmt"
	"io"

	"tare/internal/judge"
	"tare/internal/judge/measure"
)

// ReplicationsFile is the name of what several runs say together, in the directory above theirs.
const ReplicationsFile = "replications.json"

// WriteReplications puts replications.json into its directory.
func WriteReplications(r *judge.Replications) error {
	if err := replace(r.Dir, ReplicationsFile, r); err != nil {
		return fmt.Errorf("write replications: %w", err)
	}
	return nil
}

// ReplicationsJSON writes r as replications.json holds it.
func ReplicationsJSON(w io.Writer, r *judge.Replications) error { return Encode(w, r) }

// Replications writes what several runs say together for people.
func Replications(w io.Writer, r *judge.Replications) error {
	var b bytes.Buffer
	wrap(&b, fmt.Sprintf("%s: ", r.Verdict.Class), r.Verdict.Reason)
	for i := range r.Runs {
		wrap(&b, fmt.Sprintf("  %s  ", r.Runs[i].Dir), fmt.Sprintf("%s: %s", r.Runs[i].Class, r.Runs[i].Reason))
	}
	fmt.Fprintf(&b, "\n%-22s  %10s  %10s  %10s  %8s  %4s\n", "between runs", "mean", "95 % from", "to", "CV", "runs")
	line := func(name string, a judge.Across, show func(judge.Number) string) {
		if a.Runs > 1 {
			fmt.Fprintf(&b, "%-22s  %10s  %10s  %10s  %8s  %4d\n", name, show(a.Mean), show(a.Low), show(a.High), plain(a.Variation), a.Runs)
		}
	}
	line("ok/s", r.Rates["completed_rate_per_s"], plain)
	line("tokens/s out", r.Rates["output_tokens_per_s"], plain)
	line("attainment", r.Objectives["attainment"], shareText)
	line("goodput/s", r.Objectives["request_goodput_per_s"], plain)
	line("goodput/s, tokens", r.Objectives["token_goodput_per_s"], plain)
	line("goodput/s, smooth", r.Objectives["smooth_goodput_per_s"], plain)
	line("fluidity index", r.Objectives["fluidity_index"], plain)
	for _, m := range []struct{ name, text string }{
		{measure.TTFT, "TTFT"}, {measure.ICL, "ICL"}, {measure.TPOT, "TPOT"}, {measure.E2E, "E2E from send"}, {measure.E2EFromDue, "E2E from due"},
	} {
		for _, level := range []string{"p50", "p99"} {
			line(m.text+" "+level, r.Metrics[m.name][level], spanOf)
		}
	}
	b.WriteByte('\n')
	writeFilesOfSeveral(&b, r.Dir, ReplicationsFile)
	_, err := w.Write(b.Bytes())
	return err
}
