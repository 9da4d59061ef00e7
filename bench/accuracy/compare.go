package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/bench/truth"
	"tare/internal/record"
)

// comparison gathers the differences between a run and the truth, in nanoseconds.
type comparison struct {
	truths map[int64]truth.Request
	start  int64 // CLOCK_MONOTONIC at the run's offset 0
	warmup []bool

	ttftKernel, ttftSeparate, ttftUser []int64 // recorded TTFT minus true
	gapKernel, gapSeparate, gapUser    []int64 // recorded gap between token events minus true
	wireSlip, ownSlip, requestTravel   []int64

	compared, unended, unknown, unequal int
	events, merged                      int
}

// read compares every completed request of a run outside its warm-up.
func (c *comparison) read(dir string) error {
	m, err := record.ReadManifest(dir)
	if err != nil {
		return err
	}
	if c.start = m.Clock.StartMonotonicNs; c.start == 0 {
		return fmt.Errorf("%s: the run has no monotonic start", dir)
	}
	for _, s := range m.Stages {
		c.warmup = append(c.warmup, s.Warmup)
	}
	_, err = record.ReadLog(dir, func(x *record.Exchange) error {
		c.exchange(x)
		return nil
	})
	return err
}

func (c *comparison) exchange(x *record.Exchange) {
	if x.Stage < len(c.warmup) && c.warmup[x.Stage] {
		return
	}
	sent, ok := x.FirstWrite.Get()
	t, known := c.truths[x.Index]
	tokens := tokenEvents(x.Events)
	switch {
	case !ok || x.Outcome != record.Completed:
		c.unended++
		return
	case !known:
		c.unknown++
		return
	case len(tokens) != len(t.Sends) || len(tokens) == 0:
		c.unequal++
		return
	}
	c.compared++
	c.wireSlip = append(c.wireSlip, t.Recv-c.start-int64(x.Due))
	c.ownSlip = append(c.ownSlip, int64(sent-x.Due))
	c.requestTravel = append(c.requestTravel, t.Recv-c.start-int64(sent))
	first := t.Sends[0] - t.Recv
	c.ttftKernel = append(c.ttftKernel, int64(tokens[0].KernelAt-sent)-first)
	c.ttftUser = append(c.ttftUser, int64(tokens[0].UserAt-sent)-first)
	if tokens[0].Flags&record.FlagMerged == 0 {
		c.ttftSeparate = append(c.ttftSeparate, c.ttftKernel[len(c.ttftKernel)-1])
	}
	c.gaps(tokens, t.Sends)
}

func (c *comparison) gaps(tokens []record.Event, sends []int64) {
	for i, e := range tokens {
		c.events++
		if e.Flags&record.FlagMerged != 0 {
			c.merged++
		}
		if i == 0 {
			continue
		}
		was, real := tokens[i-1], sends[i]-sends[i-1]
		kernel := int64(e.KernelAt-was.KernelAt) - real
		c.gapKernel = append(c.gapKernel, kernel)
		c.gapUser = append(c.gapUser, int64(e.UserAt-was.UserAt)-real)
		if (e.Flags|was.Flags)&record.FlagMerged == 0 {
			c.gapSeparate = append(c.gapSeparate, kernel)
		}
	}
}

func tokenEvents(events []record.Event) []record.Event {
	var tokens []record.Event
	for _, e := range events {
		if e.Kind.Token() {
			tokens = append(tokens, e)
		}
	}
	return tokens
}

// table prints the differences in Markdown.
func (c *comparison) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests compared; left out: %d not completed, %d not in the truth, %d with another number of token events.\n",
		c.compared, c.unended, c.unknown, c.unequal)
	fmt.Fprintf(&b, "%d token events, %d of them in a read with later bytes.\n\n", c.events, c.merged)
	b.WriteString("| recorded − true, µs | n | min | p50 | p99 | p99.9 | max |\n|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		of   []int64
	}{
		{"TTFT, kernel stamps", c.ttftKernel},
		{"TTFT, kernel stamps, separate reads", c.ttftSeparate},
		{"TTFT, user-space stamps", c.ttftUser},
		{"gap, kernel stamps", c.gapKernel},
		{"gap, kernel stamps, separate reads", c.gapSeparate},
		{"gap, user-space stamps", c.gapUser},
		{"slip at the server: received − due", c.wireSlip},
		{"slip as recorded: first write − due", c.ownSlip},
		{"received − first write", c.requestTravel},
	} {
		fmt.Fprintf(&b, "| %s | %d |%s\n", row.name, len(row.of), quantiles(row.of))
	}
	return b.String()
}

// quantiles prints a row's cells; dashes when there is nothing to print.
func quantiles(ns []int64) string {
	if len(ns) == 0 {
		return strings.Repeat(" – |", 5)
	}
	slices.Sort(ns)
	var b strings.Builder
	for _, q := range []float64{0, 0.5, 0.99, 0.999, 1} {
		at := ns[int(q*float64(len(ns)-1)+0.5)]
		fmt.Fprintf(&b, " %.1f |", float64(at)/float64(time.Microsecond))
	}
	return b.String()
}
