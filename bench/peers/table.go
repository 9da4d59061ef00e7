//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/bench/spread"
)

// limitProfile is the profile in which a tool's rate is raised until it no longer keeps its schedule.
const limitProfile = "limit"

// limitSlip is the p99 slip up to which a rate counts as kept.
const limitSlip = time.Millisecond

// key names one table.
type key struct {
	profile string
	asked   float64
}

// table folds lines into tables in Markdown, one for each profile and rate in the order of their first line.
func table(lines []Line) string {
	var b strings.Builder
	var keys []key
	for _, l := range lines {
		k := key{l.Profile, l.Asked}
		if l.Profile == limitProfile {
			k.asked = 0
		}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		of := slices.DeleteFunc(slices.Clone(lines), func(l Line) bool {
			return l.Profile != k.profile || (k.profile != limitProfile && l.Asked != k.asked)
		})
		if k.profile == limitProfile {
			limitTable(&b, of)
		} else {
			costTable(&b, k, of)
		}
	}
	return b.String()
}

// costTable compares tools at one rate. Ratios are taken within each repetition.
func costTable(b *strings.Builder, k key, lines []Line) {
	base := "net/http"
	if k.asked == 0 {
		base = "wrk"
		fmt.Fprintf(b, "\n### %s, closed loop\n\n", k.profile)
	} else {
		fmt.Fprintf(b, "\n### %s, %.0f req/s asked\n\n", k.profile, k.asked)
	}
	fmt.Fprintf(b, "| tool | n | req/s | CPU µs/req | CPU µs/token | CPU ÷ %s | slip p50 ms | slip p99 ms | slip max ms | failed | server cores | RSS MiB |\n", base)
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, tool := range tools(lines) {
		of := good(lines, tool)
		if len(of) == 0 {
			continue
		}
		perToken := func(l Line) (float64, bool) {
			v, ok := l.Values[cpu]
			return v / float64(l.Tokens), ok && l.Tokens > 0
		}
		ratio := func(l Line) (float64, bool) { return ratioTo(lines, base, l, cpu) }
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", tool, len(of),
			span(of, value(achieved), "%.0f"), span(of, value(cpu), "%.1f"), span(of, perToken, "%.2f"),
			span(of, ratio, "%.2f"), span(of, value(slipP50), "%.3f"), span(of, value(slipP99), "%.3f"),
			span(of, value(slipMax), "%.2f"), span(of, value(failed), "%.0f"),
			span(of, value(serverCores), "%.2f"), span(of, value(memory), "%.0f"))
	}
	faults(b, lines)
}

// limitTable shows the highest rate that each tool kept in each repetition.
func limitTable(b *strings.Builder, lines []Line) {
	fmt.Fprintf(b, "\n### highest rate at p99 slip ≤ %v\n\n", limitSlip)
	b.WriteString("| tool | n | req/s | ÷ net/http | CPU µs/req there | slip p99 ms there |\n|---|---|---|---|---|---|\n")
	var best []Line
	for _, tool := range tools(lines) {
		best = append(best, highest(good(lines, tool))...)
	}
	for _, tool := range tools(lines) {
		of := good(best, tool)
		ratio := func(l Line) (float64, bool) { return ratioTo(best, "net/http", l, achieved) }
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s |\n", tool, len(of), span(of, value(achieved), "%.0f"),
			span(of, ratio, "%.2f"), span(of, value(cpu), "%.1f"), span(of, value(slipP99), "%.3f"))
	}
	faults(b, lines)
}

// highest returns for each repetition the line of the highest rate kept.
func highest(lines []Line) []Line {
	byRound := map[int]Line{}
	for _, l := range lines {
		if l.within(limitSlip) && l.Asked > byRound[l.Round].Asked {
			byRound[l.Round] = l
		}
	}
	var best []Line
	for _, l := range byRound {
		best = append(best, l)
	}
	return best
}

// faults lists what gave no result.
func faults(b *strings.Builder, lines []Line) {
	for _, l := range lines {
		if l.Fault != "" {
			fmt.Fprintf(b, "\n%s, round %d: no result: %s\n", l.Tool, l.Round, l.Fault)
		}
	}
}

func tools(lines []Line) []string {
	var names []string
	for _, l := range lines {
		if !slices.Contains(names, l.Tool) {
			names = append(names, l.Tool)
		}
	}
	return names
}

// good returns a tool's lines that have a result.
func good(lines []Line, tool string) []Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Tool != tool || l.Fault != "" })
}

// value picks a value of a line; ok is false when the line has none.
func value(name string) func(Line) (v float64, ok bool) {
	return func(l Line) (float64, bool) {
		v, ok := l.Values[name]
		return v, ok
	}
}

// ratioTo divides a line's value by that of the base tool in the same repetition.
func ratioTo(lines []Line, base string, l Line, name string) (float64, bool) {
	v, ok := l.Values[name]
	for _, other := range good(lines, base) {
		if of, known := other.Values[name]; known && of > 0 && ok && other.Round == l.Round {
			return v / of, true
		}
	}
	return 0, false
}

// leastRatio is the lowest ratio of two tools' CPU per request in any repetition.
func leastRatio(lines []Line, tool, base string) (least float64, ok bool) {
	for _, l := range good(lines, tool) {
		if r, known := ratioTo(lines, base, l, cpu); known && (!ok || r < least) {
			least, ok = r, true
		}
	}
	return least, ok
}

// span prints min / median / max of a value, and a dash when no line has it.
func span(lines []Line, pick func(Line) (float64, bool), format string) string {
	var vs []float64
	for _, l := range lines {
		if v, ok := pick(l); ok {
			vs = append(vs, v)
		}
	}
	if len(vs) == 0 {
		return "–"
	}
	least, median, most := spread.Of(vs)
	if len(vs) == 1 {
		return fmt.Sprintf(format, median)
	}
	return fmt.Sprintf(format+" / "+format+" / "+format, least, median, most)
}
