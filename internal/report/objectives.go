package report

import (
	"bytes"
	"fmt"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/stats"
	"tare/internal/objective"
)

// writeObjectives says how the planned requests stand to what was asked, by stage.
func writeObjectives(b *bytes.Buffer, s *judge.Summary) {
	if s.SLO == nil {
		return
	}
	asked := strings.Join(s.SLO.Objectives, " · ")
	if asked == "" {
		asked = "those of the classes"
	}
	wrap(b, "objectives  ", asked)
	o := s.Total.Objectives
	if _, ok := o.Attainment.Value.Get(); ok {
		wrap(b, "            ", fmt.Sprintf("go: %.4g %% of the planned requests complete and keep those of each request; no go: %.4g %%; %.4g %% of either mistake",
			100*s.SLO.Target, 100*s.SLO.NoGo, 100*s.SLO.Alpha))
		writeTable(b, objectiveColumns(), s)
	}
	for i := range o.Each {
		e := &o.Each[i]
		text := fmt.Sprintf("%s%s: kept by %d, missed by %d of the completed", e.Objective, ofClass(e.Class), e.Kept, e.Missed)
		if e.Undefined > 0 {
			text += fmt.Sprintf(", not known of %d", e.Undefined)
		}
		wrap(b, "  ", text)
	}
	if o.Unsure > 0 {
		wrap(b, "  ", fmt.Sprintf("unsure %d of %d: they would, or would not, be good with times at the ends of their bounds, since several events came in one read", o.Unsure, o.Planned))
	}
	for i := range s.Stages {
		writeTogether(b, &s.Stages[i])
	}
	b.WriteByte('\n')
}

func ofClass(name string) string {
	if name == "" {
		return ""
	}
	return " of class " + printable(name)
}

func objectiveColumns() []column {
	of := func(cell func(o *judge.Objectives) string) func(*judge.Part) string {
		return func(p *judge.Part) string {
			if p.Objectives == nil {
				return "-"
			}
			return cell(p.Objectives)
		}
	}
	return []column{
		{"", "planned", of(func(o *judge.Objectives) string { return fmt.Sprint(o.Planned) })},
		{"", "good", of(func(o *judge.Objectives) string { return fmt.Sprint(o.Good) })},
		{"attainment", "share", of(func(o *judge.Objectives) string { return shareText(o.Attainment.Value) })},
		{"attainment", "95 %", of(func(o *judge.Objectives) string {
			return interval(o.Attainment)
		})},
		{"goodput/s", "requests", of(func(o *judge.Objectives) string { return plain(o.RequestGoodput) })},
		{"goodput/s", "tokens", of(func(o *judge.Objectives) string { return plain(o.TokenGoodput) })},
		{"goodput/s", "smooth", of(func(o *judge.Objectives) string { return plain(o.SmoothGoodput) })},
		{"fluidity", "mean", of(func(o *judge.Objectives) string { return plain(o.Fluidity.Mean) })},
		{"fluidity", "p1", of(func(o *judge.Objectives) string { return plain(o.Fluidity.P1) })},
		{"", "decision", of(func(o *judge.Objectives) string { return o.Decision })},
	}
}

// shareText has four digits: with three, 98.96 % would pass for a target of 99 %.
func shareText(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.4g %%", 100*v)
}

// interval spells that of a share.
func interval(s judge.Share) string {
	if _, ok := s.Low.Get(); !ok {
		return "-"
	}
	return shareText(s.Low) + "–" + shareText(s.High)
}

// writeTogether says of each objective of all requests together what came of it.
func writeTogether(b *bytes.Buffer, p *judge.Part) {
	if p.Objectives == nil {
		return
	}
	for i := range p.Objectives.Together {
		t := &p.Objectives.Together[i]
		text := fmt.Sprintf("%s%s, stage %s: %s, %s", t.Objective, ofClass(t.Class), clip(printable(p.Name), longestName), togetherValue(t), t.Result)
		if t.Reason != "" {
			text += ": " + t.Reason
		}
		wrap(b, "  ", text)
	}
}

// togetherValue spells the figure and its interval.
func togetherValue(t *judge.Together) string {
	spell := func(at judge.Bound) string {
		v, ok := at.Value.Get()
		switch {
		case at.Reach == string(stats.Unattainable):
			return "unattainable"
		case !ok:
			return "-"
		case strings.HasPrefix(t.Objective, objective.ErrorRate):
			return shareText(at.Value)
		case at.Reach == string(stats.Above):
			return "> " + span(v)
		}
		return span(v)
	}
	if t.Low.Reach == "" {
		return spell(t.Bound)
	}
	return spell(t.Bound) + " (" + spell(t.Low) + "–" + spell(t.High) + ")"
}

// classObjectives ends the line of a class.
func classObjectives(c *judge.Class) string {
	o := c.Objectives
	if o == nil {
		return ""
	}
	text := ""
	if _, ok := o.Attainment.Value.Get(); ok {
		text = fmt.Sprintf(" · good %d of %d, %s (%s), goodput %s/s: %s", o.Good, o.Planned, shareText(o.Attainment.Value), interval(o.Attainment),
			plain(o.RequestGoodput), o.Decision)
	}
	for i := range o.Together {
		t := &o.Together[i]
		text += fmt.Sprintf(" · %s: %s, %s", t.Objective, togetherValue(t), t.Result)
	}
	return text
}
