package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/compare"
	"tare/internal/judge/measure"
)

// ComparisonJSON writes c as docs/compare.md describes it.
func ComparisonJSON(w io.Writer, c *compare.Comparison) error { return Encode(w, c) }

// ComparisonText writes c for people, the result first.
func ComparisonText(w io.Writer, c *compare.Comparison) error {
	var b bytes.Buffer
	wrap(&b, string(c.Result)+": ", conclusion(c))
	fmt.Fprintln(&b)
	writeSide(&b, "A", &c.A)
	writeSide(&b, "B", &c.B)
	writeRows(&b, c)
	for _, text := range c.Refused {
		wrap(&b, "refused   ", text)
	}
	if len(c.Refused) > 0 {
		wrap(&b, "hint: ", "--expect KEY names a key in which the sides differ on purpose, like spec.target.model")
	}
	for _, text := range c.Warnings {
		wrap(&b, "warning: ", text)
	}
	writeResidue(&b, "expected", c.Expected)
	writeResidue(&b, "residue", c.Residue)
	if len(c.Residue) == 0 {
		wrap(&b, "residue   ", "none: the manifests differ in nothing else")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// conclusion is the result in a sentence.
func conclusion(c *compare.Comparison) string {
	switch c.Result {
	case compare.Refused:
		return "these runs must not be compared"
	case compare.Regression:
		return "side B is worse in " + strings.Join(effects(c, compare.Worse), ", ")
	case compare.Improvement:
		return "side B is better in " + strings.Join(effects(c, compare.Better), ", ")
	case compare.Untested:
		if _, ok := c.Least.Get(); !ok {
			return "no test is possible with one run a side: the differences below may be chance"
		}
		return fmt.Sprintf("with %d against %d runs no test of so many quantities can show a difference: p cannot come below %s", len(c.A.Dirs), len(c.B.Dirs), plain(c.Least))
	}
	return "no difference was shown, which does not say that there is none: the intervals say how large it may be"
}

func effects(c *compare.Comparison, which compare.Finding) (all []string) {
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Finding == which {
			all = append(all, fmt.Sprintf("%s (%s)", r.Quantity, percent(r.Relative)))
		}
	}
	return all
}

func writeSide(b *bytes.Buffer, name string, s *compare.Side) {
	runs := make([]string, len(s.Dirs))
	for i, dir := range s.Dirs {
		runs[i] = fmt.Sprintf("%s (%s)", dir, s.Verdicts[i])
	}
	wrap(b, "side "+name+"    ", strings.Join(runs, " · "))
}

func writeRows(b *bytes.Buffer, c *compare.Comparison) {
	if len(c.Rows) == 0 {
		fmt.Fprintln(b)
		return
	}
	fmt.Fprintf(b, "\n%-24s %10s %10s %9s %9s %9s %7s %9s  %s\n", c.Stage, "A median", "B median", "B − A", "95 % from", "to", "p", "corrected", "B is")
	for i := range c.Rows {
		r := &c.Rows[i]
		fmt.Fprintf(b, "%-24s %10s %10s %9s %9s %9s %7s %9s  %s\n", r.Quantity, quantity(r, r.MedianA), quantity(r, r.MedianB),
			percent(r.Relative), percent(r.RelativeLow), percent(r.RelativeHigh), probability(r.P), probability(r.Corrected), r.Finding)
	}
	text := "B − A is the shift of Hodges and Lehmann over A's median; p is two-sided, by Mann and Whitney, corrected by Holm"
	if c.MinEffect > 0 {
		text += fmt.Sprintf("; less than %s %% does not count", measure.Digits(100*c.MinEffect))
	}
	fmt.Fprintln(b)
	wrap(b, "  ", text)
	fmt.Fprintln(b)
}

// quantity writes a value in the unit that its name ends in.
func quantity(r *compare.Row, n judge.Number) string {
	name, _, _ := strings.Cut(r.Quantity, ".")
	if strings.HasSuffix(name, "_ms") {
		return spanOf(n)
	}
	return plain(n)
}

func percent(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*v)
}

func probability(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.3g", v)
}

func writeResidue(b *bytes.Buffer, head string, all []compare.Residue) {
	for _, r := range all {
		wrap(b, fmt.Sprintf("%-10s", head), fmt.Sprintf("%s: %s on side A, %s on side B", r.Key, valuesOf(r.A), valuesOf(r.B)))
		head = ""
	}
}

func valuesOf(values []string) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = clipped(v)
	}
	return strings.Join(shown, " and ")
}
