// Package verdict judges the run itself: whether its numbers are the server's or the client's.
package verdict

import (
	"fmt"
	"strings"
)

// Verdict is the judgement of one run.
type Verdict struct {
	Class  Class  `json:"class"`
	Reason string `json:"reason"` // one sentence that explains the class
	Gates  []Gate `json:"gates"`
}

// Gate is one rule, held against the worst of the measured stages.
type Gate struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Rule     string `json:"rule"`
	Measured string `json:"measured"`        // the worst stage's value and its limit, for people
	Stage    string `json:"stage,omitempty"` // the worst stage; empty for a rule on the whole run
	Level    Level  `json:"level"`
	Hint     string `json:"hint,omitempty"` // what to do, for a gate that failed or could not be observed

	Advisory bool `json:"advisory,omitempty"` // it condemns no run, and stands between it and CERTIFIED

	Untold bool `json:"untold,omitempty"` // it could not be observed since the server does not tell: CERTIFIED names it, and does not ask for it

	blames Class
}

// Class is the judgement in one word.
type Class string

const (
	Certified       Class = "CERTIFIED" // several runs of one load, each of which passed every gate at that level
	Valid           Class = "VALID"
	InvalidClient   Class = "INVALID-CLIENT"   // the latencies hold the client's own delays, or the load was not offered
	InvalidWorkload Class = "INVALID-WORKLOAD" // what was sent is not what was planned
	InvalidServer   Class = "INVALID-SERVER"   // too few requests were answered for the latencies to stand for the load, or the server was not this run's alone
	InvalidStats    Class = "INVALID-STATS"    // the records do not carry the numbers
)

// Level is how far a gate was passed.
type Level string

const (
	NotApplicable  Level = "not_applicable" // the rule says nothing about this kind of run
	CertifiedLevel Level = "certified"
	ValidLevel     Level = "valid"
	Unobservable   Level = "unobservable" // the facts needed are not there: never counted as passed
	Failed         Level = "failed"
)

// rank orders levels from good to bad.
func (l Level) rank() int {
	for i, known := range []Level{NotApplicable, CertifiedLevel, ValidLevel, Unobservable, Failed} {
		if l == known {
			return i
		}
	}
	return 0
}

// blame lists the classes of failed gates, the one that is named first.
func blame() []Class { return []Class{InvalidClient, InvalidWorkload, InvalidServer, InvalidStats} }

// Judge holds the evidence against every gate.
func Judge(e *Evidence) Verdict {
	v := Verdict{Class: Valid}
	for _, r := range rules() {
		v.Gates = append(v.Gates, r.gate(e))
	}
	for _, class := range blame() {
		if failed := v.failed(class); len(failed) > 0 {
			v.Class = class
			v.Reason = accuse(e, class, failed, v.count(Failed)-len(failed))
			return v
		}
	}
	v.Reason = "no gate failed: in every measured stage the client's own delay stayed within its share of what it measured"
	if ids := v.unseen(); len(ids) > 0 {
		v.Reason = "no gate failed, but this run could not show " + strings.Join(ids, ", ")
	}
	switch {
	case !e.Interrupted() && !e.State.Complete:
		v.Reason += "; the run did not come to its end"
	case e.Interrupted():
		v.Reason += "; the run was cut short (" + e.State.Cause + ")"
	}
	return v
}

func accuse(e *Evidence, class Class, failed []Gate, others int) string {
	meaning := map[Class]string{
		InvalidClient:   "the latencies hold delays of the client's own",
		InvalidWorkload: "what was sent is not what was planned",
		InvalidServer:   "too many requests failed for the latencies of the rest to stand for the load",
		InvalidStats:    "the records do not carry the figures",
	}[class]
	first := failed[0]
	if class == InvalidServer && first.ID != "S5" {
		meaning = "what the servers tell does not fit this run"
	}
	if e.idle() {
		return "the plan held no request: there is nothing to measure"
	}
	where := ""
	if first.Stage != "" {
		where = " in stage " + first.Stage
	}
	more := ""
	if n := len(failed) - 1 + others; n == 1 {
		more = " (and 1 more gate failed)"
	} else if n > 1 {
		more = fmt.Sprintf(" (and %d more gates failed)", n)
	}
	return fmt.Sprintf("%s: %s %s%s%s", meaning, first.Name, first.Measured, where, more)
}

func (v *Verdict) failed(class Class) (gates []Gate) {
	for _, g := range v.Gates {
		if g.Level == Failed && g.blames == class {
			gates = append(gates, g)
		}
	}
	return gates
}

func (v *Verdict) count(l Level) (n int) {
	for _, g := range v.Gates {
		if g.Level == l && !g.Advisory {
			n++
		}
	}
	return n
}

// unseen names the gates that count and could not be observed.
func (v *Verdict) unseen() (ids []string) {
	for _, g := range v.Gates {
		if g.Level == Unobservable && !g.Advisory {
			ids = append(ids, g.ID+" "+g.Name)
		}
	}
	return ids
}
