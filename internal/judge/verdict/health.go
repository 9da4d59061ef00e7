package verdict

import (
	"fmt"

	"tare/internal/judge/stats"
	"tare/internal/record"
)

// The gates on the machine look at what may have delayed the client. Whether it did is what slip and receive lag say, which
// are measured: so that these only stand between a run and CERTIFIED.

// overHealth judges a figure of each sample; ok is false where the sample does not hold it.
func overHealth(of func(*record.Health) (found finding, ok bool)) func(*Evidence) []finding {
	return func(e *Evidence) (all []finding) {
		for i := range e.Health {
			if found, ok := of(&e.Health[i]); ok {
				all = append(all, found)
			}
		}
		if len(all) == 0 {
			all = append(all, finding{level: Unobservable, measured: "not told by this system, or the run has no health.jsonl"})
		}
		return all
	}
}

// leastSpan is the shortest span, in ms, that a share of processor time is taken from.
const leastSpan = 500

func busiestCore(h *record.Health) (finding, bool) {
	if len(h.Cores) == 0 || h.SpanMs < leastSpan {
		return finding{}, false
	}
	core, busy := 0, 0.0
	for i, c := range h.Cores {
		if c.Busy > busy {
			core, busy = i, c.Busy
		}
	}
	level, strain := coreLimits.grade(busy)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("core %d at %.2f by %s (limit %s)", core, busy, moment(h), plain(coreLimits.valid))}, true
}

func moment(h *record.Health) string { return span(h.AtMs * 1e6) }

// stolen looks at five seconds at a time.
func stolen(e *Evidence) (all []finding) {
	const samples = 5
	for i := 0; i+samples <= len(e.Health) || i == 0 && len(e.Health) > 0; i++ {
		part := e.Health[i:min(i+samples, len(e.Health))]
		took, spans := 0.0, 0.0
		for j := range part {
			for _, c := range part[j].Cores {
				took += c.Steal * part[j].SpanMs
				spans += part[j].SpanMs
			}
		}
		if spans == 0 {
			continue
		}
		level, strain := stealLimits.grade(took / spans)
		all = append(all, finding{level: level, strain: strain, measured: fmt.Sprintf("%.2f %% of five seconds from %s on (limit %s)", 100*took/spans, moment(&part[0]), percent(stealLimits.valid))})
	}
	if len(all) == 0 {
		return []finding{{level: Unobservable, measured: "not told by this system, or the run has no health.jsonl"}}
	}
	return all
}

func throttled(h *record.Health) (finding, bool) {
	if h.Throttling == nil {
		return finding{}, false
	}
	level, strain := throttleLimits.of(h.SpanMs).grade(h.Throttling.StoodMs)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("stood for %s in %s by %s", span(h.Throttling.StoodMs*1e6), span(h.SpanMs*1e6), moment(h))}, true
}

// canary takes all calls of the run together: a second has too few for a p99.
func canary(e *Evidence, s *Stage) finding {
	var late stats.Distribution
	for i := range e.Health {
		for _, us := range e.Health[i].Canary {
			late.Add(us * 1000)
		}
	}
	if late.N() == 0 {
		return finding{level: Unobservable, measured: "no call was heard, or the run has no health.jsonl"}
	}
	name, of := reference([]string{"TTFT", "E2E"}, s.TTFT, s.E2E)
	return compare(&late, stats.P99, name, of, stats.P99, lagLimits)
}

// runQueue takes the time that loops with a thread of their own were kept from running; else that of the client.
func runQueue(e *Evidence) (all []finding) {
	for i, l := range e.Loops {
		if l.WallNs > 0 && l.CPUNs > 0 {
			share := float64(l.RunQueueNs) / float64(l.WallNs)
			level, strain := queueLimits.grade(share)
			all = append(all, finding{level: level, strain: strain, measured: fmt.Sprintf("loop %d ready and not running for %.2g %% of the time (limit %s)", i, 100*share, percent(queueLimits.valid))})
		}
	}
	if len(all) > 0 {
		return all
	}
	return overHealth(func(h *record.Health) (finding, bool) {
		if h.RunQueue == nil || h.SpanMs < leastSpan {
			return finding{}, false
		}
		share := h.RunQueue.Ms / h.SpanMs
		level, strain := queueLimits.grade(share)
		return finding{level: level, strain: strain, measured: fmt.Sprintf("threads ready and not running for %.2g %% of the time by %s (limit %s)", 100*share, moment(h), percent(queueLimits.valid))}, true
	})(e)
}

func pauses(h *record.Health) (finding, bool) {
	level, strain := pauseLimits.grade(h.Pauses.P99Ms * 1e6)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("p99 %s of %d pauses by %s (limit %s)", span(h.Pauses.P99Ms*1e6), h.Pauses.N, moment(h), span(pauseLimits.valid))}, true
}

// scheduler says nothing on loops, which have threads and processors of their own.
func scheduler(e *Evidence) []finding {
	if e.Client.Engine == "epoll" {
		return []finding{{level: NotApplicable, measured: "event loops do not wait for Go's scheduler"}}
	}
	return overHealth(func(h *record.Health) (finding, bool) {
		level, strain := schedulerLimits.grade(h.Scheduler.P99Ms * 1e6)
		return finding{level: level, strain: strain, measured: fmt.Sprintf("p99 %s by %s (limit %s)", span(h.Scheduler.P99Ms*1e6), moment(h), span(schedulerLimits.valid))}, true
	})(e)
}

func room(h *record.Health) (finding, bool) {
	var all []finding
	for _, r := range []struct {
		what string
		of   *record.Room
	}{{"open files", h.Files}, {"local ports", h.Ports}} {
		if r.of == nil || r.of.Limit <= 0 {
			continue
		}
		share := float64(r.of.Used) / float64(r.of.Limit)
		level, strain := roomLimits.grade(share)
		all = append(all, finding{level: level, strain: strain, measured: fmt.Sprintf("%d of %d %s in use by %s", r.of.Used, r.of.Limit, r.what, moment(h))})
	}
	return worstOf(all...), len(all) > 0
}

// resends takes the run as a whole: a second has too few segments to tell a share of a thousandth.
func resends(e *Evidence) []finding {
	var sent, again int64
	known := false
	for i := range e.Health {
		if t := e.Health[i].TCP; t != nil {
			known, sent, again = true, sent+t.Sent, again+t.Resents
		}
	}
	if !known {
		return []finding{{level: Unobservable, measured: "not told by this system, or the run has no health.jsonl"}}
	}
	share := float64(again) / float64(max(sent, 1))
	level, strain := resendLimits.grade(share)
	return []finding{{level: level, strain: strain, measured: fmt.Sprintf("%d of %d segments (limit %s)", again, sent, percent(resendLimits.valid))}}
}
