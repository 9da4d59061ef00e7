package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// weak marks a quantile that too few values back.
const weak = "~"

// width is the longest line, in characters; a name takes longestName of them at most.
const (
	width       = 120
	longestName = 24
)

// Text writes the report for people: the verdict first, then the stages, what failed, and where the files are. It holds no
// colour codes.
func Text(w io.Writer, s *judge.Summary) error {
	var b bytes.Buffer
	writeVerdict(&b, s)
	writeRun(&b, s)
	tables := b.Len()
	writeTable(&b, loadColumns(), s)
	writeTable(&b, latencyColumns(), s)
	writeNotes(&b, s, bytes.Contains(b.Bytes()[tables:], []byte(" "+weak)))
	writeObjectives(&b, s)
	writePlanned(&b, s)
	writeSteadiness(&b, s)
	writeLoops(&b, s)
	writeOutcomes(&b, s)
	writeServers(&b, s)
	writeServer(&b, s)
	writeClasses(&b, s)
	writeTurns(&b, s)
	writeWorkload(&b, s)
	writeDelays(&b, s)
	writeArrivals(&b, s)
	writeWarnings(&b, s)
	writeFiles(&b, s)
	_, err := w.Write(b.Bytes())
	return err
}

func writeVerdict(b *bytes.Buffer, s *judge.Summary) {
	wrap(b, fmt.Sprintf("%s: ", s.Verdict.Class), s.Verdict.Reason)
	unseen := []string{}
	for _, g := range s.Verdict.Gates {
		where := ""
		if g.Stage != "" {
			where = ", stage " + g.Stage
		}
		text := fmt.Sprintf("%s %s: %s%s", g.ID, g.Name, g.Measured, where)
		switch {
		case g.Level == verdict.Unobservable && !g.Advisory:
			unseen = append(unseen, text)
		case g.Level == verdict.Failed:
			level := string(g.Level)
			if g.Advisory {
				level = "doubtful"
			}
			wrap(b, fmt.Sprintf("  %-12s  ", level), text)
			wrap(b, "                hint: ", g.Hint)
		}
	}
	if len(unseen) > 0 {
		wrap(b, "  unobservable  ", strings.Join(unseen, " · "))
	}
	b.WriteByte('\n')
}

func writeRun(b *bytes.Buffer, s *judge.Summary) {
	r := &s.Run
	streamed := "streamed"
	if !r.Target.Stream {
		streamed = "not streamed"
	}
	if r.Target.HTTP == "2" {
		streamed += ", HTTP/2"
	}
	if r.Target.Insecure {
		streamed += ", certificate not checked"
	}
	wrap(b, "target  ", fmt.Sprintf("%s · %s · %s, %s", r.Target.URL, r.Target.Model, r.Target.Endpoint, streamed))
	stamps := "kernel receive stamps"
	if !r.Client.KernelStamps {
		stamps = "no kernel receive stamps"
	}
	client := fmt.Sprintf("%s engine, loops %d, %s", r.Client.Engine, r.Client.Loops, stamps)
	if cpu, ok := r.CPUMs.Get(); ok {
		client += fmt.Sprintf(" · CPU %s, garbage collections %d", span(cpu), r.GCCycles)
	}
	wrap(b, "client  ", client)
	if dials, ok := r.Dials.Get(); ok {
		wrap(b, "        ", fmt.Sprintf("connections made before the start %d, in the run %.0f", r.Client.Connections, dials))
	}
	run := "complete"
	if !r.Complete {
		run = "INCOMPLETE"
	}
	if r.Cause != "" {
		run += " (" + r.Cause + ")"
	}
	if end, ok := r.EndMs.Get(); ok {
		run += fmt.Sprintf(", %s", span(end))
	}
	if r.Plan.PlanID != "" {
		run += " · plan " + short(r.Plan.PlanID)
	}
	if r.Plan.ContentID != "" {
		run += " · content " + short(r.Plan.ContentID)
	}
	wrap(b, "run     ", run)
	b.WriteByte('\n')
}

func short(id string) string { return id[:min(len(id), 12)] }

func span(ms float64) string { return measure.Milliseconds.Format(ms * measure.Milliseconds.Scale()) }

// column is one column of a table of stages.
type column struct {
	group, head string
	cell        func(*judge.Part) string
}

func loadColumns() []column {
	return []column{
		{"", "planned/s", func(p *judge.Part) string { return plain(p.PlannedRate) }},
		{"", "achieved/s", func(p *judge.Part) string { return plain(p.AchievedRate) }},
		{"", "planned", func(p *judge.Part) string { return fmt.Sprint(p.Planned) }},
		{"", "ok", func(p *judge.Part) string { return fmt.Sprint(p.Outcomes.Completed) }},
		{"", "failed", func(p *judge.Part) string { return fmt.Sprint(p.Planned - p.Outcomes.Completed) }},
		{"", "ok/s", func(p *judge.Part) string { return plain(p.CompletedRate) }},
		{"tokens/s", "in", func(p *judge.Part) string { return plain(p.InputRate) }},
		{"tokens/s", "out", func(p *judge.Part) string { return plain(p.OutputRate) }},
		{"client: slip", "p50", quantile(measure.Slip, stats.P50)},
		{"client: slip", "p99", quantile(measure.Slip, stats.P99)},
		{"receive lag", "p50", quantile(measure.ReceiveLag, stats.P50)},
		{"receive lag", "p99", quantile(measure.ReceiveLag, stats.P99)},
	}
}

func latencyColumns() []column {
	return []column{
		{"TTFT", "p50", quantile(measure.TTFT, stats.P50)},
		{"TTFT", "p99", quantile(measure.TTFT, stats.P99)},
		{"ICL", "p50", quantile(measure.ICL, stats.P50)},
		{"ICL", "p99", quantile(measure.ICL, stats.P99)},
		{"TPOT", "p50", quantile(measure.TPOT, stats.P50)},
		{"NTPOT", "mean", func(p *judge.Part) string { return spanOf(p.Metrics[measure.NTPOT].Mean) }},
		{"E2E from send", "p50", quantile(measure.E2E, stats.P50)},
		{"E2E from send", "p99", quantile(measure.E2E, stats.P99)},
		{"E2E from due", "p50", quantile(measure.E2EFromDue, stats.P50)},
		{"E2E from due", "p99", quantile(measure.E2EFromDue, stats.P99)},
		{"TTFT from due", "p50", quantile(measure.TTFTFromDue, stats.P50)},
		{"TTFT from due", "p99", quantile(measure.TTFTFromDue, stats.P99)},
	}
}

// quantile makes cells of a metric's p50 or p99, marked where too few values back it.
func quantile(name string, ppm int64) func(*judge.Part) string {
	return func(p *judge.Part) string {
		f := p.Metrics[name]
		n := f.P50
		if ppm == stats.P99 {
			n = f.P99
		}
		if _, ok := n.Get(); ok && !stats.Backed(f.N, ppm) {
			return weak + spanOf(n)
		}
		return spanOf(n)
	}
}

func spanOf(n judge.Number) string {
	if v, ok := n.Get(); ok {
		return span(v)
	}
	return "-"
}

func plain(n judge.Number) string {
	if v, ok := n.Get(); ok {
		return large(v)
	}
	return "-"
}

// large writes rates and counts; from 100,000 on in thousands, millions and more.
func large(v float64) string {
	for _, scale := range []struct {
		base float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= scale.base*0.9995 && v >= 99_999.5 {
			return measure.Digits(v/scale.base) + scale.name
		}
	}
	return measure.Digits(v)
}

// writeTable writes one row for each stage and, when there are several, one for the total.
func writeTable(b *bytes.Buffer, columns []column, s *judge.Summary) {
	parts := []*judge.Part{}
	for i := range s.Stages {
		parts = append(parts, &s.Stages[i])
	}
	if len(parts) > 1 {
		parts = append(parts, &s.Total)
	}
	writeParts(b, columns, "stage", parts, func(i, most int) string { return label(parts[i], most) })
}

// writeParts writes a row for each part; name gives that of part i in at most so many characters.
func writeParts(b *bytes.Buffer, columns []column, head string, parts []*judge.Part, name func(i, most int) string) {
	grid := [][]string{{}}
	for _, c := range columns {
		grid[0] = append(grid[0], c.head)
	}
	for _, p := range parts {
		row := []string{}
		for _, c := range columns {
			row = append(row, c.cell(p))
		}
		grid = append(grid, row)
	}
	widths, room := widthsOf(columns, grid)
	names := []string{head}
	for i := range parts {
		names = append(names, name(i, min(room, longestName)))
	}
	writeGrid(b, columns, widths, names, grid)
}

// label is the name of a part in at most the given number of characters.
func label(p *judge.Part, most int) string {
	const note = " (warm-up)"
	if p.Warmup && !strings.HasPrefix(p.Name, "warm") {
		return clip(printable(p.Name), max(most-len(note), 1)) + note
	}
	return clip(printable(p.Name), max(most, 1))
}

// widthsOf gives the width of each column, the first of a group wide enough for the group's name, and the room that is
// left for names.
func widthsOf(columns []column, grid [][]string) (widths []int, room int) {
	widths = make([]int, len(columns))
	for _, row := range grid {
		for i, cell := range row {
			widths[i] = max(widths[i], length(cell))
		}
	}
	for i := 0; i < len(columns); {
		end, size := group(columns, widths, i)
		widths[i] += max(length(columns[i].group)-size, 0)
		i = end
	}
	room = width
	for i, w := range widths {
		room -= length(gap(columns, i)) + w
	}
	return widths, room
}

// group tells where the group that begins at column i ends and how wide its columns are.
func group(columns []column, widths []int, i int) (end, size int) {
	for end = i; end < len(columns) && (end == i || columns[end].group != "" && columns[end].group == columns[i].group); end++ {
		if end > i {
			size += length(gap(columns, end))
		}
		size += widths[end]
	}
	return end, size
}

func writeGrid(b *bytes.Buffer, columns []column, widths []int, names []string, grid [][]string) {
	first := 0
	for _, name := range names {
		first = max(first, length(name))
	}
	writeGroups(b, columns, widths, first)
	for n, row := range grid {
		line := pad(names[n], first)
		for i, cell := range row {
			line += gap(columns, i) + strings.Repeat(" ", widths[i]-length(cell)) + cell
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteByte('\n')
}

func pad(s string, to int) string { return s + strings.Repeat(" ", to-length(s)) }

// gap is what stands before column i: less between columns of one group.
func gap(columns []column, i int) string {
	if i > 0 && columns[i].group != "" && columns[i].group == columns[i-1].group {
		return " "
	}
	return "  "
}

// writeGroups writes the upper head line.
func writeGroups(b *bytes.Buffer, columns []column, widths []int, first int) {
	line := strings.Repeat(" ", first)
	for i := 0; i < len(columns); {
		end, size := group(columns, widths, i)
		line += gap(columns, i) + strings.Repeat(" ", size-length(columns[i].group)) + columns[i].group
		i = end
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

func writeNotes(b *bytes.Buffer, s *judge.Summary, marked bool) {
	if marked {
		wrap(b, weak+" ", "too few values for this quantile: a p99 needs 368, a p50 needs 6")
	}
	if s.Run.Target.Stream {
		wrap(b, "  ", "ICL is the gap between token events, TPOT the time per token after the first, NTPOT the E2E over output tokens")
	}
	b.WriteByte('\n')
}

func writeOutcomes(b *bytes.Buffer, s *judge.Summary) {
	parts := counts(&s.Total.Outcomes)
	if s.Total.Missing > 0 {
		parts = append(parts, fmt.Sprintf("unrecorded %d", s.Total.Missing))
	}
	wrap(b, "outcomes  ", strings.Join(parts, " · ")+fmt.Sprintf(" · of %d planned", s.Total.Planned))
	for i := range s.Total.Causes {
		c := &s.Total.Causes[i]
		wrap(b, fmt.Sprintf("  %6d × ", c.Requests), clip(printable(causeText(c)), 2*width-40))
	}
	if r := s.Total.Resent; r.Requests > 0 {
		wrap(b, "resent    ", fmt.Sprintf("requests %d, further attempts %d, completed %d; their latencies count from the first attempt", r.Requests, r.Attempts, r.Completed))
	}
}

// causeText spells a cause: "http_error, rate_limited (429, Retry-After up to 2.00s): busy".
func causeText(c *judge.Cause) string {
	what, notes := c.Outcome, []string{}
	if c.Cause != "" && c.Cause != c.Outcome {
		what += ", " + c.Cause
	}
	if c.Status != 0 {
		notes = append(notes, fmt.Sprint(c.Status))
	}
	if wait, ok := c.RetryAfter.Get(); ok {
		notes = append(notes, "Retry-After up to "+span(wait))
	}
	if len(notes) > 0 {
		what += " (" + strings.Join(notes, ", ") + ")"
	}
	if c.Example != "" {
		what += ": " + c.Example
	}
	return what
}

// counts spells the outcomes that there were.
func counts(o *judge.Outcomes) (parts []string) {
	for _, which := range record.Outcomes {
		if n := *o.Of(which); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", which, n))
		}
	}
	return parts
}

// writeServers says what became of the requests to each server, if there are several.
// writeClasses gives outcomes and main latencies of each class.
func writeClasses(b *bytes.Buffer, s *judge.Summary) {
	head := "classes   "
	for i := range s.Classes {
		c := &s.Classes[i]
		p := judge.Part{Metrics: c.Metrics}
		wrap(b, head, fmt.Sprintf("%s: %s · TTFT p50 %s, p99 %s · E2E from send p50 %s, p99 %s", printable(c.Name), strings.Join(counts(&c.Outcomes), " · "),
			quantile(measure.TTFT, stats.P50)(&p), quantile(measure.TTFT, stats.P99)(&p), quantile(measure.E2E, stats.P50)(&p), quantile(measure.E2E, stats.P99)(&p))+classObjectives(c))
		head = "          "
	}
}

// writeTurns gives outcomes and main latencies of first and later turns of sessions.
func writeTurns(b *bytes.Buffer, s *judge.Summary) {
	head := "turns     "
	for i := range s.Turns {
		t := &s.Turns[i]
		p := judge.Part{Metrics: t.Metrics}
		cached := ""
		if v, ok := t.Cached.Get(); ok {
			cached = fmt.Sprintf(" · cached %s %% of the prompt", measure.Digits(100*v))
		}
		wrap(b, head, fmt.Sprintf("%s: %s · TTFT p50 %s, p99 %s · E2E from send p50 %s, p99 %s%s", t.Turns, strings.Join(counts(&t.Outcomes), " · "),
			quantile(measure.TTFT, stats.P50)(&p), quantile(measure.TTFT, stats.P99)(&p), quantile(measure.E2E, stats.P50)(&p), quantile(measure.E2E, stats.P99)(&p), cached))
		head = "          "
	}
}

// writeWorkload sets what was asked of lengths and caches next to what came out, where requests are not all of one length.
func writeWorkload(b *bytes.Buffer, s *judge.Summary) {
	w := &s.Workload
	if _, varied := w.Expected.Get(); !varied {
		return
	}
	parts := []string{}
	of := func(what string, n judge.Number, scale float64, unit string) {
		if v, ok := n.Get(); ok {
			parts = append(parts, what+" "+measure.Digits(v*scale)+unit)
		}
	}
	of("input tokens asked", w.AskedInput, 1, "")
	of("planned", w.PlannedInput, 1, "")
	of("counted by the server", w.CountedInput, 1, "")
	of("output tokens asked", w.AskedOutput, 1, "")
	of("planned", w.PlannedOutput, 1, "")
	of("prompt tokens in a cache that forgets nothing", w.Expected, 100, " %"+tokens(w.ExpectedTokens))
	of("in the server's", w.Cached, 100, " %"+tokens(w.CachedTokens))
	if len(parts) > 0 {
		wrap(b, "means     ", strings.Join(parts, ", "))
	}
}

// tokens is a count behind a share.
func tokens(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (%.0f tokens)", v)
}

func writeServers(b *bytes.Buffer, s *judge.Summary) {
	head := "servers   "
	for i := range s.Servers {
		at := &s.Servers[i]
		wrap(b, head, printable(at.URL)+": "+strings.Join(counts(&at.Outcomes), " · "))
		head = "          "
	}
}

func writeDelays(b *bytes.Buffer, s *judge.Summary) {
	names := []string{"on time", "sender busy", "no idle connection", "in-flight limit", "request not prepared", "open-file limit"}
	parts := []string{}
	for cause, name := range names {
		if d := s.Total.Delays.Of(record.Delay(cause)); d.Requests > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (slip max %s)", name, d.Requests, spanOf(d.Longest)))
		}
	}
	if len(parts) > 0 {
		wrap(b, "sends     ", strings.Join(parts, " · "))
	}
	if e := s.Total.Events; e.All > 0 {
		wrap(b, "events    ", fmt.Sprintf("%d, %s %% stamped by the kernel, %s %% merged with others in a read", e.All,
			measure.Digits(100*float64(e.Stamped)/float64(e.All)), measure.Digits(100*float64(e.Merged)/float64(e.All))))
	}
}

// writeArrivals sets, for each measured open stage, what was planned and sent next to what was asked.
func writeArrivals(b *bytes.Buffer, s *judge.Summary) {
	head := "arrivals  "
	for i := range s.Stages {
		p := &s.Stages[i]
		if p.Kind != "open" || p.Warmup || p.Sent == 0 {
			continue
		}
		text := label(p, longestName) + ": "
		if p.Arrivals.Asked != "" {
			text += "asked " + p.Arrivals.Asked + " · "
		}
		wrap(b, head, text+"planned "+flow(p.PlannedRate, p.Arrivals.Planned)+" · sent "+flow(p.AchievedRate, p.Arrivals.Sent))
		head = "          "
	}
}

// flow writes "10.0/s, CV 0.980, IDC 1.01 (1s) 1.20 (10s)", without what there are too few spans for.
func flow(rate judge.Number, f judge.Flow) string {
	text := fmt.Sprintf("%s/s, CV %s", plain(rate), plain(f.Variation))
	head := ", IDC"
	for _, d := range []struct {
		index judge.Number
		span  string
	}{{f.Second, "1s"}, {f.TenSeconds, "10s"}, {f.Minute, "60s"}} {
		if _, ok := d.index.Get(); ok {
			text += fmt.Sprintf("%s %s (%s)", head, plain(d.index), d.span)
			head = ""
		}
	}
	return text
}

func writeWarnings(b *bytes.Buffer, s *judge.Summary) {
	for _, warning := range s.Warnings {
		wrap(b, "warning: ", warning)
	}
}

func writeFiles(b *bytes.Buffer, s *judge.Summary) {
	if s.Dir == "" {
		return
	}
	there := filesIn(s.Dir, PageFile, SummaryFile, VerdictFile, record.ManifestFile, record.ExchangesFile, record.HealthFile, record.ServerFile)
	if len(there) > 0 {
		fmt.Fprintf(b, "files     %s:\n          %s\n", printable(s.Dir), strings.Join(there, ", "))
	}
}

// filesIn are those of the names that a directory has.
func filesIn(dir string, names ...string) (there []string) {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// writeFilesOfSeveral names the file that several runs share, and their page where there is one.
func writeFilesOfSeveral(b *bytes.Buffer, dir, name string) {
	fmt.Fprintf(b, "files     %s: %s, and a run directory for each run\n", printable(dir), strings.Join(append(filesIn(dir, PageFile), name), ", "))
}

func length(s string) int { return len([]rune(s)) }

// printable writes what a terminal might obey, or could not show, as Go spells it in a string: a server's words are not ours.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// wrap writes head and text as printable characters, broken at spaces into lines of at most width; further lines stand under the text.
func wrap(b *bytes.Buffer, head, text string) {
	line, indent := head, strings.Repeat(" ", length(head))
	empty := true
	for _, word := range strings.Fields(text) {
		word = printable(word)
		switch {
		case empty:
			line += word
		case length(line)+1+length(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
