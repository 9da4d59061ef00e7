package export

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/measure"
)

// benchstat writes one line of Go's benchmark format for each metric of each part. Lines of several runs put together are what
// benchstat takes for repetitions. Times are in nanoseconds, which it shows in seconds.
func benchstat(r *Run, to io.Writer) error {
	var b bytes.Buffer
	env := &r.Summary.Run.Env
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\n", env.OS, env.Arch)
	if env.CPU != "" {
		fmt.Fprintf(&b, "cpu: %s\n", env.CPU)
	}
	fmt.Fprintf(&b, "model: %s\nverdict: %s\n", line(r.Summary.Run.Target.Model), r.Summary.Verdict.Class)
	b.WriteString("Unit output-tokens/s better=higher\nUnit input-tokens/s better=higher\nUnit ok/s better=higher\n")
	for _, p := range measuredParts(r.Summary) {
		for _, m := range measure.Table() {
			f := p.Metrics[m.Name]
			figures := []pair{{"mean", f.Mean}, {"p50", f.P50}, {"p90", f.P90}, {"p99", f.P99}}
			writeBenchmark(&b, name(m.Name), p.Name, figures, unitOf(m.Name), f.N)
		}
		writeBenchmark(&b, "Throughput", p.Name, []pair{{"output-tokens/s", p.OutputRate}, {"input-tokens/s", p.InputRate}, {"ok/s", p.CompletedRate}}, "", p.Planned)
	}
	_, err := to.Write(b.Bytes())
	return err
}

type pair struct {
	name  string
	value judge.Number
}

// name is that of a benchmark: TTFTFromDue for ttft_from_due_ms.
func name(metric string) string {
	var b strings.Builder
	for _, word := range strings.Split(strings.TrimSuffix(metric, "_ms"), "_") {
		switch word {
		case "ttft", "icl", "itl", "tpot", "ntpot":
			b.WriteString(strings.ToUpper(word))
		case "e2e":
			b.WriteString("E2E")
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func unitOf(metric string) string {
	if strings.HasSuffix(metric, "_ms") {
		return "ns"
	}
	return "tokens"
}

func writeBenchmark(b *bytes.Buffer, name, stage string, figures []pair, unit string, n int64) {
	var cells []string
	for _, f := range figures {
		v := f.value.Text()
		if unit == "ns" {
			v = nanoseconds(f.value)
		}
		if v == "" {
			continue
		}
		key := f.name
		if unit != "" {
			key += "-" + unit
		}
		cells = append(cells, v+" "+key)
	}
	if len(cells) > 0 && n > 0 {
		fmt.Fprintf(b, "Benchmark%s/stage=%s %d %s\n", name, line(stage), n, strings.Join(cells, " "))
	}
}

// nanoseconds is a number of milliseconds in nanoseconds: summary.json has six digits behind the point.
func nanoseconds(n judge.Number) string {
	ms := n.Text()
	if ms == "" {
		return ""
	}
	whole, part, _ := strings.Cut(ms, ".")
	digits := strings.TrimLeft(strings.TrimLeft(whole, "-")+part+strings.Repeat("0", 6-len(part)), "0")
	if digits == "" {
		return "0"
	}
	if ms[0] == '-' {
		return "-" + digits
	}
	return digits
}

// line makes one word of a text: the format parts its fields by spaces.
func line(s string) string { return strings.Join(strings.Fields(s), "_") }
