package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tare/internal/plan/schedule"
)

// replayFaults checks that the trace can be replayed, if it is to be.
func (p *Plan) replayFaults() (faults Faults) {
	t := p.material.trace
	if !p.Spec.Load.replayed() {
		return nil
	}
	if t.Relative {
		return Faults{{
			Key: "workload.trace.file", Reason: "does not say when its conversations start: times count from the start of each",
			Hint: "set load.rate or load.concurrency: its requests are sent in their order then, or, with workload.trace.sessions, its conversations",
		}}
	}
	if err := p.offsets().Fault(); err != nil {
		faults = append(faults, Fault{Key: "workload.trace", Reason: err.Error()})
	}
	return faults
}

// offsets are the trace's times, or those at which its sessions begin.
func (p *Plan) offsets() schedule.Trace {
	w := &p.Spec.Workload.Trace
	t := schedule.Trace{Stretch: w.Scale, Keep: w.Thin}
	if p.recorded != nil {
		for i := range p.recorded.sessions {
			t.Offsets = append(t.Offsets, p.material.trace.Rows[p.recorded.sessions[i].rows[0]].At)
		}
		return t
	}
	for i := range p.material.trace.Rows {
		t.Offsets = append(t.Offsets, p.material.trace.Rows[i].At)
	}
	return t
}

// replayed is the stage of a trace.
func (p *Plan) replayed() Stage {
	t := p.offsets()
	load := &p.Spec.Load
	var due []time.Duration
	turns := int64(0)
	for replay := t.Arrivals(load.Seed, 0); load.Requests == 0 || int64(len(due)) < load.Requests; {
		at, ok := replay.Next()
		if !ok || load.Duration > 0 && at >= load.Duration {
			break
		}
		due = append(due, at)
		if p.recorded != nil {
			turns += p.recorded.turns(int64(replay.Row()), 1)
		}
	}
	s := Stage{Name: "trace", arrival: ArrivalTrace, trace: &t, MaxInFlight: load.MaxInFlight}
	s.take(due)
	if p.recorded != nil {
		s.Requests, s.Expected = turns, float64(turns)
	}
	if load.Duration > 0 {
		s.Duration = min(s.Duration, load.Duration)
	}
	w := &p.Spec.Workload.Trace
	switch {
	case w.Scale != 0:
		s.arrival = fmt.Sprintf("trace, times × %v", w.Scale)
	case w.Thin != 0:
		s.arrival = fmt.Sprintf("trace, thinned to %v of the requests", w.Thin)
	}
	return s
}

// take gives a replayed stage the figures of its due times. Its window ends a mean gap behind the last one.
func (s *Stage) take(due []time.Duration) {
	n := len(due)
	s.Requests, s.Sessions, s.Expected = int64(n), int64(n), float64(n)
	if n == 0 {
		return
	}
	last := due[n-1]
	s.Duration = max(last+last/time.Duration(max(n-1, 1)), last+1)
	if n == 1 || last == 0 {
		s.Duration = last + time.Second
	}
	s.Rate = float64(n) / s.Duration.Seconds()
	s.RateTo, s.peak = s.Rate, s.Rate
	from := 0
	for i, at := range due {
		for due[from] <= at-time.Second {
			from++
		}
		s.peak = max(s.peak, float64(i-from+1))
	}
}

// canonical is the workload for the plan's id: its keys, and the hashes of files in place of their names.
func (w Workload) canonical() []byte {
	w.Tokenizer, w.TextFile, w.ChatTemplate, w.Tools = fileOf(w.Tokenizer), "", "", ""
	w.Dataset.File, w.Trace.File = "", ""
	w.Classes = append([]Class(nil), w.Classes...)
	w.Conversation.SystemTokens = w.Conversation.SystemTokens.nameless()
	w.InputTokens, w.OutputTokens = w.InputTokens.nameless(), w.OutputTokens.nameless()
	for i := range w.Classes {
		c := &w.Classes[i]
		c.InputTokens, c.OutputTokens = c.InputTokens.nameless(), c.OutputTokens.nameless()
		c.SLO = nil // changes nothing that is sent
	}
	var form struct {
		Workload json.RawMessage `json:"workload"`
	}
	text, err := json.Marshal(Spec{Workload: w})
	if err == nil {
		err = json.Unmarshal(text, &form)
	}
	var compact bytes.Buffer
	if err == nil {
		err = json.Compact(&compact, form.Workload)
	}
	if err != nil {
		panic("plan: workload: " + err.Error()) // a spec always prints
	}
	return append(compact.Bytes(), '\n')
}

func fileOf(tokenizer string) string {
	if tokenizer == TokenizerEmbedded {
		return tokenizer
	}
	return ""
}

// nameless is a file of lengths without the file's name.
func (l Lengths) nameless() Lengths {
	if strings.HasPrefix(string(l), "file(") {
		return "file()"
	}
	return l
}
