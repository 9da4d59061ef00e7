package report

import (
	"bytes"
	"fmt"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/measure"
)

// writeServer sets what the servers counted themselves next to what the records say: of the run, and of the measured part of it.
func writeServer(b *bytes.Buffer, s *judge.Summary) {
	if s.Server == nil {
		return
	}
	head := "server    "
	line := func(text string) {
		if text != "" {
			wrap(b, head, text)
			head = "          "
		}
	}
	line(sources(s.Server))
	parts := []*judge.BothSides{&s.Server.Run}
	if s.Server.Total != nil {
		parts = append(parts, s.Server.Total)
	}
	for _, t := range parts {
		if t.Reason != "" {
			line(t.Name + ": nothing to compare: " + t.Reason)
			continue
		}
		line(both(t))
		line(means(t))
	}
	line(states(parts[len(parts)-1]))
	for i := len(parts) - 1; i >= 0; i-- {
		if text := perToken(parts[i]); text != "" {
			line(parts[i].Name + ": " + text)
			break
		}
	}
}

func sources(s *judge.ServerSide) string {
	var all []string
	for _, from := range s.Sources {
		text := printable(from.URL)
		if from.Dialect != "" {
			text += " (" + from.Dialect + ")"
		}
		switch {
		case from.Failed > 0:
			text += fmt.Sprintf(": %d of %d looks brought nothing: %s", from.Failed, from.Looks, from.Reason)
		case from.Dialect == "":
			text += ": none of its metrics is known"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// both has the counts: "204 requests there, 204 here".
func both(t *judge.BothSides) string {
	var all []string
	for _, c := range []struct {
		what string
		of   judge.Count
	}{{"requests", t.Requests}, {"prompt tokens", t.Prompt}, {"output tokens", t.Output}} {
		if text := counted(c.what, c.of); text != "" {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return t.Name + ": " + strings.Join(all, " · ")
}

func counted(what string, c judge.Count) string {
	there, told := c.Server.Get()
	least, known := c.Least.Get()
	if !told || !known {
		return ""
	}
	most, closed := c.Most.Get()
	here := fmt.Sprintf("%.0f", least)
	switch {
	case !closed:
		here += " or more"
	case most != least:
		here += fmt.Sprintf(" to %.0f", most)
	}
	return fmt.Sprintf("%.0f %s there, %s here", there, what, here)
}

func means(t *judge.BothSides) string {
	var all []string
	for _, m := range []struct {
		name string
		of   judge.Means
	}{{"TTFT", t.TTFT}, {"E2E", t.E2E}} {
		if _, both := m.of.Difference.Get(); both {
			all = append(all, fmt.Sprintf("mean %s %s there, %s here", m.name, spanOf(m.of.Server), spanOf(m.of.Client)))
		}
	}
	for _, m := range []struct {
		name string
		of   judge.Number
	}{{"queue", t.Queue}, {"prefill", t.Prefill}, {"decode", t.Decode}} {
		if _, told := m.of.Get(); told {
			all = append(all, m.name+" "+spanOf(m.of))
		}
	}
	return strings.Join(all, " · ")
}

// states has what was so at the looks.
func states(t *judge.BothSides) string {
	var all []string
	add := func(format string, scale float64, of ...judge.Number) {
		values := []any{}
		for _, n := range of {
			v, told := n.Get()
			if !told {
				return
			}
			values = append(values, measure.Digits(v*scale))
		}
		all = append(all, fmt.Sprintf(format, values...))
	}
	add(t.Name+": in flight %s running and %s waiting there, %s here", 1, t.InFlight.Running, t.InFlight.Waiting, t.InFlight.Client)
	add("KV use %s %%, at most %s %%", 100, t.KVUsage.Mean, t.KVUsage.Max)
	add("prefix hits %s %%", 100, t.CacheHits)
	add("preemptions %s", 1, t.Preemptions)
	return strings.Join(all, " · ")
}

// perToken has the parts that are told: without all of them there is no rest.
func perToken(t *judge.BothSides) string {
	p := &t.PerToken
	var parts []string
	for _, part := range []struct {
		name string
		of   judge.Number
	}{{"queue", p.Queue}, {"prefill", p.Prefill}, {"decode", p.Decode}, {"outside of the server", p.Outside}} {
		if _, told := part.of.Get(); told {
			parts = append(parts, part.name+" "+spanOf(part.of))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := fmt.Sprintf("per output token %s: %s", spanOf(p.Client), strings.Join(parts, " + "))
	if _, whole := p.Outside.Get(); !whole {
		text += " of it"
	}
	return text
}
