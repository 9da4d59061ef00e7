package export

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/record"
)

// openMetrics writes the figures of every measured stage and of the total as OpenMetrics text, version 1.0.
func openMetrics(r *Run, to io.Writer) error {
	var b bytes.Buffer
	parts := measuredParts(r.Summary)
	run := &r.Summary.Run
	family(&b, "tare_run", "info", "", "What was run, and by which program.")
	fmt.Fprintf(&b, "tare_run_info{%s} 1\n", labels("version", run.Tool.Version, "plan_id", run.Plan.PlanID, "content_id", run.Plan.ContentID,
		"model", run.Target.Model, "endpoint", run.Target.Endpoint, "start", run.Start))
	family(&b, "tare_verdict", "gauge", "", "1 for the class that the verdict has.")
	fmt.Fprintf(&b, "tare_verdict{%s} 1\n", labels("class", string(r.Summary.Verdict.Class)))
	family(&b, "tare_requests", "counter", "", "Planned requests by outcome.")
	for _, p := range parts {
		for _, o := range record.Outcomes {
			fmt.Fprintf(&b, "tare_requests_total{%s} %d\n", labels("stage", p.Name, "outcome", o.String()), *p.Outcomes.Of(o))
		}
	}
	writeRates(&b, parts)
	for _, m := range measure.Table() {
		writeSummary(&b, &m, parts)
	}
	b.WriteString("# EOF\n")
	_, err := to.Write(b.Bytes())
	return err
}

// measuredParts are the measured stages, and the total where there are several.
func measuredParts(s *judge.Summary) (all []*judge.Part) {
	for i := range s.Stages {
		if !s.Stages[i].Warmup {
			all = append(all, &s.Stages[i])
		}
	}
	if len(all) != 1 {
		all = append(all, &s.Total)
	}
	return all
}

func writeRates(b *bytes.Buffer, parts []*judge.Part) {
	for _, rate := range []struct {
		name, help string
		of         func(*judge.Part) judge.Number
	}{
		{"planned_requests", "Requests that fell due in a second of the window.", func(p *judge.Part) judge.Number { return p.PlannedRate }},
		{"sent_requests", "Requests whose first byte was written in a second of the window.", func(p *judge.Part) judge.Number { return p.AchievedRate }},
		{"completed_requests", "Requests that completed in a second of the window.", func(p *judge.Part) judge.Number { return p.CompletedRate }},
		{"input_tokens", "Prompt tokens of replies that began in a second of the window.", func(p *judge.Part) judge.Number { return p.InputRate }},
		{"output_tokens", "Tokens that arrived in a second of the window.", func(p *judge.Part) judge.Number { return p.OutputRate }},
	} {
		name := "tare_" + rate.name + "_per_second"
		family(b, name, "gauge", "", rate.help)
		for _, p := range parts {
			if v := rate.of(p).Text(); v != "" {
				fmt.Fprintf(b, "%s{%s} %s\n", name, labels("stage", p.Name), v)
			}
		}
	}
}

// writeSummary writes a metric as a summary, times in seconds.
func writeSummary(b *bytes.Buffer, m *measure.Metric, parts []*judge.Part) {
	name, unit, value := "tare_reply_"+m.Name, "", judge.Number.Text
	if bare, ok := strings.CutSuffix(m.Name, "_ms"); ok {
		name, unit, value = "tare_"+bare+"_seconds", "seconds", seconds
	}
	family(b, name, "summary", unit, "Metric "+m.Name+" of docs/metrics.md.")
	for _, p := range parts {
		f, ok := p.Metrics[m.Name]
		if !ok {
			continue
		}
		for _, q := range quantiles(&f) {
			if v := value(q.value); v != "" {
				fmt.Fprintf(b, "%s{%s} %s\n", name, labels("stage", p.Name, "quantile", q.level), v)
			}
		}
		fmt.Fprintf(b, "%s_count{%s} %d\n", name, labels("stage", p.Name), f.N)
	}
}

type quantile struct {
	level string
	value judge.Number
}

func quantiles(f *judge.Figures) []quantile {
	return []quantile{
		{"0.01", f.P1}, {"0.05", f.P5}, {"0.1", f.P10}, {"0.25", f.P25}, {"0.5", f.P50}, {"0.75", f.P75}, {"0.9", f.P90}, {"0.95", f.P95},
		{"0.99", f.P99}, {"0.999", f.P999}, {"1.0", f.Max},
	}
}

func family(b *bytes.Buffer, name, kind, unit, help string) {
	fmt.Fprintf(b, "# TYPE %s %s\n", name, kind)
	if unit != "" {
		fmt.Fprintf(b, "# UNIT %s %s\n", name, unit)
	}
	fmt.Fprintf(b, "# HELP %s %s\n", name, help)
}

// labels writes names and values in turn.
func labels(pairs ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf(`%s="%s"`, pairs[i], escape.Replace(strings.ToValidUTF8(pairs[i+1], "�"))))
	}
	return strings.Join(all, ",")
}
