package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

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
	parts := statusParts(p, d.stages[p.Stage])
	if !d.rewrite {
		fmt.Fprintln(d.to, strings.Join(append([]string{timeOf(p)}, parts...), "  "))
		return
	}
	fmt.Fprint(d.to, "\r\x1b[K"+fitting(append([]string{progressOf(p)}, parts...), d.width))
}

// fitting joins as many parts as a terminal so wide has room for, and those that come first go first; all if the width is unknown.
func fitting(parts []string, width int) string {
	line := parts[0]
	for _, part := range parts[1:] {
		longer := line + "  " + part
		if width > 0 && utf8.RuneCountInString(longer) >= width {
			return line
		}
		line = longer
	}
	return line
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

// timeOf says how long the run has gone on, and how long it will: for a line that stays.
func timeOf(p drive.Progress) string {
	if left := p.End - p.At; p.End > 0 && left > 0 {
		return fmt.Sprintf("%s (%s left)", clockTime(p.At), clockTime(left))
	}
	return clockTime(p.At)
}

// progressOf shows the same as a bar, where the end is known: for a line that is written over.
func progressOf(p drive.Progress) string {
	if p.End <= 0 {
		return clockTime(p.At)
	}
	return bar(p) + " " + clockTime(max(0, p.End-p.At)) + " left"
}

// statusParts say how the run stands, what matters most first.
func statusParts(p drive.Progress, stage plan.Stage) []string {
	sending := p.Stage + ": " + short(p.RatePerS)
	if !stage.Closed {
		sending += " of " + short((stage.Rate+stage.RateTo)/2)
	}
	return []string{
		sending + "/s",
		fmt.Sprintf("%d in flight", p.InFlight), fmt.Sprintf("%d done", p.Done), fmt.Sprintf("%d failed", p.Failed),
		short(p.TokensPerS) + " tokens/s",
		"p99 slip " + millis(p.SlipP99) + ", lag " + millis(p.LagP99),
	}
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

// bar is how far the run has come, in 10 columns.
func bar(p drive.Progress) string {
	const columns = 10
	full := int(columns * max(0, min(1, float64(p.At)/float64(p.End))))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", columns-full) + "]"
}
