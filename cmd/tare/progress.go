package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"tare/internal/drive"
	"tare/internal/plan"
)

// display shows a run while it goes on. The nil display shows nothing.
type display struct {
	to      io.Writer
	rewrite bool          // one line, written over and over: a terminal
	width   int           // columns of the terminal
	every   time.Duration // least time between two lines
	stages  map[string]plan.Stage
	next    time.Duration // when the next line is due, since the start of the run
	ticks   []drive.Progress
}

// newDisplay fits to: a terminal gets one line that is rewritten each second, anything else a line each five seconds.
func newDisplay(to io.Writer, p *plan.Plan) *display {
	d := &display{to: to, every: 5 * time.Second, next: 5 * time.Second, stages: map[string]plan.Stage{}}
	for _, s := range p.Stages {
		d.stages[s.Name] = s
	}
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		d.rewrite, d.every, d.next = true, time.Second, 0
		d.width, _, _ = term.GetSize(int(f.Fd()))
	}
	return d
}

// show takes in the state of the run and writes it when its time has come.
func (d *display) show(p drive.Progress) {
	if d == nil {
		return
	}
	if d.ticks = append(d.ticks, p); p.At < d.next {
		return
	}
	p = together(d.ticks)
	d.next, d.ticks = p.At+d.every, d.ticks[:0]
	line := statusLine(p, d.stages[p.Stage])
	if !d.rewrite {
		fmt.Fprintln(d.to, line)
		return
	}
	line = bar(p) + line
	if d.width > 0 && len(line) >= d.width {
		line = line[:d.width-1]
	}
	fmt.Fprint(d.to, "\r\x1b[K"+line)
}

// together is the last tick with the mean rates and the worst delays of all.
func together(ticks []drive.Progress) drive.Progress {
	p := ticks[len(ticks)-1]
	p.RatePerS, p.TokensPerS = 0, 0
	for _, t := range ticks {
		p.RatePerS += t.RatePerS / float64(len(ticks))
		p.TokensPerS += t.TokensPerS / float64(len(ticks))
		p.SlipP99, p.LagP99 = max(p.SlipP99, t.SlipP99), max(p.LagP99, t.LagP99)
	}
	return p
}

// clear takes the line away, to make room for the report.
func (d *display) clear() {
	if d != nil && d.rewrite {
		fmt.Fprint(d.to, "\r\x1b[K")
	}
}

// statusLine says how the run stands.
func statusLine(p drive.Progress, stage plan.Stage) string {
	var b strings.Builder
	b.WriteString(clockTime(p.At))
	if left := p.End - p.At; p.End > 0 && left > 0 {
		fmt.Fprintf(&b, " (%s left)", clockTime(left))
	}
	fmt.Fprintf(&b, "  %s: %s/s", p.Stage, short(p.RatePerS))
	if !stage.Closed {
		fmt.Fprintf(&b, " of %s", short((stage.Rate+stage.RateTo)/2))
	}
	fmt.Fprintf(&b, "  in flight %d  done %d  failed %d  %s tok/s", p.InFlight, p.Done, p.Failed, short(p.TokensPerS))
	fmt.Fprintf(&b, "  p99 slip %s lag %s", millis(p.SlipP99), millis(p.LagP99))
	return b.String()
}

// short is a number in three digits where it is small, whole where it is not.
func short(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// clockTime is a span as minutes and seconds: 1:05.
func clockTime(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// bar is how far the run has come, in 20 columns; empty when its end is not known.
func bar(p drive.Progress) string {
	if p.End <= 0 {
		return ""
	}
	const columns = 20
	full := int(columns * max(0, min(1, float64(p.At)/float64(p.End))))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", columns-full) + "] "
}
