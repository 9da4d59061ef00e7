package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// rule is a gate before it has been held against anything.
type rule struct {
	id, name, text, hint string
	blames               Class // empty for an advisory rule: it stands between a run and CERTIFIED, and condemns none
	find                 func(*Evidence) []finding
}

// finding is a rule held against one stage, or against the run.
type finding struct {
	stage    string
	level    Level
	strain   float64 // measured over the limit of VALID; orders findings of one level
	measured string
	blames   Class  // when it is another than the rule's
	advisory bool   // it condemns none, whatever the rule does
	untold   bool   // it could not be observed since the server does not tell
	hint     string // when there is a better one than the rule's
}

func (r rule) gate(e *Evidence) Gate {
	worst := worstOf(r.find(e)...)
	g := Gate{ID: r.id, Name: r.name, Rule: r.text, Measured: worst.measured, Stage: worst.stage, Level: worst.level, Advisory: r.blames == "" || worst.advisory, Untold: worst.untold}
	if g.blames = cmp.Or(worst.blames, r.blames); g.Advisory {
		g.blames = ""
	}
	if g.Level == Failed || g.Level == Unobservable {
		g.Hint = cmp.Or(worst.hint, r.hint)
	}
	return g
}

// rules lists the gates. Their limits and what to do about them are in docs/verdict.md.
func rules() []rule {
	return append([]rule{
		{"C1", "capacity", "no work was added to the client on purpose, and of the capacity that a calibration found the plan's rates take " + capacityLimits.rule(plain),
			"lower the rate, give the client more loops and cores, or share the plan out to several machines", InvalidClient, capacity},
		{"C2", "slip", "slip at p50, p99 and p99.9 ≤ " + slipLimits.valid.spell(ms) + " of TTFT from send at the same quantile (E2E where there is no TTFT); certified " + slipLimits.certified.spell(ms),
			"give the client a core of its own, more loops or a lower rate", InvalidClient, eachStage(slip)},
		{"C3", "longest slip", fmt.Sprintf("largest slip ≤ max(%s, %s of TTFT p50); certified max(%s, %s)",
			ms(longestLimits.valid.floor), percent(longestLimits.valid.share), ms(longestLimits.certified.floor), percent(longestLimits.certified.share)),
			"look for what stopped the client: other processes, CPU limits, a suspended machine", InvalidClient, eachStage(longestSlip)},
		{"C4", "rate", "requests set out in the stage's window = requests due, ± " + rateLimits.valid.spell(requests) + "; certified ± " + rateLimits.certified.spell(requests),
			"the client could not keep the schedule: lower the rate or give it more cores", InvalidClient, eachStage(rate)},
		{"C5", "not sent", "planned requests that were never sent = 0",
			"let the run end by itself, or raise load.drain", InvalidClient, notSent},
		{"C6", "receive lag", "receive lag p99 ≤ " + lagLimits.valid.spell(ms) + " of ICL p50 and of TTFT p99; certified " + lagLimits.certified.spell(ms),
			"lag is seen with kernel receive stamps only (Linux, streamed replies); a high one means too few loops or cores", InvalidClient, eachStage(lag)},
		{"C7", "canary", "p99 of how late a timer of the kernel's is heard ≤ " + lagLimits.valid.spell(ms) + " of TTFT p99; certified " + lagLimits.certified.spell(ms),
			"what wakes up late within the client wakes up late for replies: give it more cores, or stop what else runs there", "", eachStage(canary)},
		{"C8", "loop load", "CPU time over wall time of the busiest loop (of the process and its processors, where loops have no thread of their own) " + loopLimits.rule(plain),
			"more loops, more cores or a lower rate", InvalidClient, loopLoad},
		{"C8a", "busiest core", "share of any second that the machine's busiest core was busy " + coreLimits.rule(plain),
			"give the client a core of its own: what else runs there may delay it", "", overHealth(busiestCore)},
		{"C8b", "stolen time", "share of any five seconds that the host took the processors away " + stealLimits.rule(percent),
			"run the client on a machine that shares its processors with nobody", "", stolen},
		{"C8c", "throttling", "time that the CPU limit of the client's control group stopped it ≤ " + percent(throttleLimits.valid) + " of any second; certified " + plain(throttleLimits.certified),
			"raise the container's CPU limit", "", overHealth(throttled)},
		{"C8d", "run queue", "share of the time that a loop was ready and another ran " + queueLimits.rule(percent),
			"something else wants the client's core: move it, or give the client more", "", runQueue},
		{"C9a", "collector pauses", "p99 of the pauses for garbage collection in any second " + pauseLimits.rule(ms),
			"give the client more memory", "", overHealth(pauses)},
		{"C9b", "scheduler latency", "p99 of the time that goroutines were ready and did not run, in any second " + schedulerLimits.rule(ms) + ". Engines without loops only",
			"more cores, or engine epoll", "", scheduler},
		{"C10", "room", "share in use of open files and of local ports " + roomLimits.rule(plain),
			"raise the limit of open files (ulimit -n), widen net.ipv4.ip_local_port_range", "", overHealth(room)},
		{"C11", "resent segments", "TCP segments sent again " + resendLimits.rule(percent),
			"the network loses packets: latencies hold its time-outs", "", resends},
		{"C12", "clock step", "largest step between the wall clock and the monotonic clock ≤ " + ms(stepLimits.valid),
			"let the clock be slewed, not stepped, during a run", InvalidClient, clockStep},
		{"C13", "queue model", "the mean wait of each loop is within a factor of two of what a model of queues expects, or below " + ms(mattersNs),
			"something other than its own queue stopped the client: other processes, a suspended machine", "", models},
		{"C14", "correction", "latencies from due and from send both stand in the report", "", InvalidStats, eachStage(corrected)},
		{"W1", "plan ids", "the hashes of the plan cover it whole", "let the run end by itself", InvalidWorkload, planIDs},
		{"W2", "generator", "the self-test of what makes plans gave the hash of this version", "the same seed makes another plan here than elsewhere: report it, with the manifest", InvalidWorkload, generator},
		{"W3", "files", "the files that the plan was made of have their hashes in the manifest", "keep the run directory, and report it", InvalidWorkload, files},
		{"W4", "arrivals", "dispersion of the counts sent over 1, 10 and 60 s = that planned, ± " + arrivalLimits.valid.spell(plain) + "; certified ± " + arrivalLimits.certified.spell(plain),
			"the client could not keep the pattern: lower the rate or give it more cores; longer stages show it better", InvalidWorkload, eachStage(arrivals)},
		{"W5", "prompt lengths", "replies in which the server counts another number of prompt tokens than planned, and what its template adds to each, ≤ " + percent(promptLimits.valid),
			"name the model's own tokenizer and its chat template (workload.tokenizer, workload.chat_template)", InvalidWorkload, promptLengths},
		{"W6", "output lengths", "with workload.ignore_eos, replies of another length than planned ≤ " + percent(lengthLimits.valid),
			"the server stops early or does not know the option", InvalidWorkload, eachStage(outputs)},
		{"W7", "cache", "share of the prompt tokens that the server found in its prefix cache = what workload.cache declares and the prompts have in common, ± " + percent(cacheLimits.valid),
			"the cache was not as declared: restart the server or change load.seed, send a warm-up, or declare what it is; the server's template may begin all prompts alike", InvalidWorkload, cache},
		{"W8", "sampling", "bodies that leave temperature or top_p to the server = 0", "give both in the bodies: servers have defaults of their own for each model", "", sampling},
		{"W9", "duplicates", "bodies that say what one before said, of a plan whose prompts are made, ≤ " + percent(duplicateLimits.valid),
			"longer prompts: very short ones are soon alike", "", duplicates},
		{"W9a", "own replies", "replies that repeat the X-Request-Id of another request than theirs = 0",
			"replies were taken for those of other requests, by the server, something on the way, or tare: keep the run directory, and report it", InvalidStats, ownReplies},
		{"T1", "accounted", "every planned request has exactly one record",
			"the records of a killed run end early: its numbers are those of the part that was written", InvalidStats, accounted},
		{"T2", "Little's law", "time in flight by the senders' gauge = that of the records, ± " + percent(balanceLimits.valid),
			"records are lost, doubled or stamped wrongly: keep the run directory, and report it", InvalidStats, eachStage(balance)},
		{"T3", "warm-up", "a steady state was seen; certified: the declared warm-up is as long as MSER-5 suggests, and the window three times the E2E p99",
			"declare a longer warm-up, or a longer stage", InvalidStats, eachStage(warmup)},
		{"T4", "drift", fmt.Sprintf("growth of the backlog over the window, less %g standard errors ≤ max(%s of their mean, %g); certified %s",
			driftQuantile, percent(driftLimits.valid.share), driftLimits.valid.floor, driftLimits.certified.spell(plain)),
			"the server does not keep up, or its latencies are long for the stage: they say how long the stage was", "", eachStage(drift)},
		{"T5", "independent requests", "percentiles that too few independent requests back are withheld; certified: TTFT and E2E p50 and p99 are shown",
			"a longer stage", InvalidStats, eachStage(backing)},
		{"T6", "interval", "half of the 95 % interval of the median TTFT and E2E " + widthLimits.rule(percent),
			"a longer stage", InvalidStats, eachStage(width)},
		{"T7", "all planned", "percentiles over all planned requests stand beside those of the completed", "", InvalidStats, eachStage(overAll)},
		{"S5", "errors", "requests that did not complete " + errorLimits.rule(percent),
			"see the outcomes and their messages; a failing server answers the rest faster", InvalidServer, eachStage(errorShare)},
	}, serverRules()...)
}

func eachStage(f func(*Evidence, *Stage) finding) func(*Evidence) []finding {
	return func(e *Evidence) (all []finding) {
		for i := range e.Stages {
			found := f(e, &e.Stages[i])
			found.stage = e.Stages[i].Name
			all = append(all, found)
		}
		return all
	}
}

// reference picks the first distribution that has values.
func reference(names []string, from ...*stats.Distribution) (name string, d *stats.Distribution) {
	for i, d := range from {
		if d.N() > 0 {
			return names[i], d
		}
	}
	return "", nil
}

// capacity condemns no run on a machine that was not calibrated: C8 then has what the loops really did. But nobody knew before
// that the plan would fit.
func capacity(e *Evidence) []finding {
	a := e.Admission
	switch {
	case e.Client.BurdenNs > 0:
		return []finding{{level: Failed, strain: math.Inf(1), measured: span(float64(e.Client.BurdenNs)) + " of work were added to each event",
			hint: "that is for tare bias, which shows what it does"}}
	case a == nil && !slices.ContainsFunc(e.Stages, func(s Stage) bool { return s.Open }):
		return []finding{{level: NotApplicable, measured: "closed loop: the rate follows the replies"}}
	case a == nil:
		return []finding{{level: Unobservable, advisory: true, measured: "the machine was not calibrated for such a load", hint: "tare calibrate, or --auto-calibrate"}}
	}
	level, strain := capacityLimits.grade(a.Utilisation)
	allowed := ""
	if a.AllowedBiased {
		allowed = ", carried out all the same (--allow-biased)"
	}
	return []finding{{level: level, strain: strain, measured: fmt.Sprintf("%.2f of the %s (limit %s)%s", a.Utilisation, a.Of, plain(capacityLimits.valid), allowed)}}
}

func slip(_ *Evidence, s *Stage) finding {
	if s.Slip.N() == 0 {
		return unsent(s)
	}
	name, of := reference([]string{"TTFT", "E2E"}, s.TTFT, s.E2E)
	f := worstOf(
		compare(s.Slip, stats.P50, name, of, stats.P50, slipLimits),
		compare(s.Slip, stats.P99, name, of, stats.P99, slipLimits),
		compare(s.Slip, stats.P999, name, of, stats.P999, slipLimits))
	f.hint = barred(s)
	return f
}

// barred is the hint on a stage in which the client could not open the connections it needed, empty for any other.
func barred(s *Stage) string {
	if s.Barred == 0 {
		return ""
	}
	return fmt.Sprintf("%d requests waited since the client's open-file limit allowed no further connection: raise it (ulimit -n), or lower the rate", s.Barred)
}

func worstOf(all ...finding) finding {
	if len(all) == 0 {
		return finding{level: Unobservable, measured: "no measured stage"}
	}
	return slices.MaxFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.level.rank(), b.level.rank()), cmp.Compare(a.strain, b.strain))
	})
}

// compare holds a quantile of d against its budget in a quantile of the metric it pollutes; without one only the floor is left.
func compare(d *stats.Distribution, at int64, name string, of *stats.Distribution, ofAt int64, allowed budgets) finding {
	value, _ := d.Quantile(at)
	polluted := "no latency to compare with"
	ref := 0.0
	if of != nil {
		ref, _ = of.Quantile(ofAt)
		polluted = fmt.Sprintf("%s %s %s", name, quantile(ofAt), span(ref))
	}
	limit := allowed.at(ref)
	level, strain := limit.grade(value)
	return finding{level: level, strain: strain,
		measured: fmt.Sprintf("%s %s (%s; limit %s)", quantile(at), span(value), polluted, span(limit.valid))}
}

func quantile(ppm int64) string { return fmt.Sprintf("p%g", float64(ppm)/10_000) }

func span(ns float64) string { return measure.Milliseconds.Format(ns) }

// unsent is the finding on a stage that has no slip to judge.
func unsent(s *Stage) finding {
	if s.Capped > 0 {
		return finding{level: Unobservable, measured: "every request was held back by the in-flight limit"}
	}
	return finding{level: Unobservable, measured: "no request was sent"}
}

func longestSlip(_ *Evidence, s *Stage) finding {
	longest, ok := s.Slip.Max()
	if !ok {
		return unsent(s)
	}
	ttft := 0.0
	if _, of := reference([]string{"", ""}, s.TTFT, s.E2E); of != nil {
		ttft, _ = of.Quantile(stats.P50)
	}
	limit := longestLimits.at(ttft)
	level, strain := limit.grade(float64(longest))
	return finding{level: level, strain: strain, hint: barred(s),
		measured: fmt.Sprintf("%s (limit %s)", span(float64(longest)), span(limit.valid))}
}

// killed is the finding on what only the whole of the records could show.
var killed = finding{level: Unobservable, measured: "the run did not come to its end: requests are without a record"}

// rate leaves requests out that the in-flight limit held back, and takes the time off that a connection took to be dialled:
// that is the user's choice or the server's doing. One request over the edge of the window is no finding.
func rate(e *Evidence, s *Stage) finding {
	switch {
	case !s.Open:
		return finding{level: NotApplicable, measured: "closed loop: the rate follows the replies"}
	case e.Killed():
		return killed
	case e.Interrupted() && s.NotSent > 0:
		return finding{level: Unobservable, measured: "the run was cut short"}
	case s.Due == 0:
		return unsent(s)
	}
	due, off := float64(s.Due), math.Abs(float64(s.InWindow-s.Due))
	level, strain := rateLimits.at(due).grade(off)
	note := ""
	if s.Capped > 0 {
		note = fmt.Sprintf("; %d held back by the in-flight limit left out", s.Capped)
	}
	return finding{level: level, strain: strain, hint: barred(s),
		measured: fmt.Sprintf("%d of %d set out in the window%s", s.InWindow, s.Due, note)}
}

// notSent blames the client, unless the run was ended on purpose or the in-flight limit held the requests to the end: then
// the plan was not carried out, which is nobody's delay, and the figures lack those requests all the same.
func notSent(e *Evidence) (all []finding) {
	for i := range e.Stages {
		s := &e.Stages[i]
		f := finding{level: CertifiedLevel, measured: "0 requests"}
		if e.Killed() {
			f = killed
		}
		f.stage, f.hint = s.Name, barred(s)
		if n := s.NotSent + s.NotSentCapped; n > 0 {
			f.level, f.strain = Failed, float64(n)
			f.measured = fmt.Sprintf("%d requests", n)
		}
		switch {
		case s.NotSent > 0 && e.Interrupted():
			f.blames = InvalidWorkload
			f.measured += ", the run was cut short (" + e.State.Cause + ")"
		case s.NotSentCapped > 0:
			f.measured += fmt.Sprintf(", %d of them held back to the end by the in-flight limit", s.NotSentCapped)
			if s.NotSent == 0 {
				f.blames = InvalidWorkload
			}
		}
		all = append(all, f)
	}
	return all
}

func lag(e *Evidence, s *Stage) finding {
	if s.Lag.N() == 0 {
		why := "no streamed reply"
		switch {
		case e.Client.KernelStamps:
		case e.Client.Engine == "http2":
			why = "no kernel receive stamps: HTTP/2 requests share connections, so that those of each are lost"
		default:
			why = "no kernel receive stamps"
		}
		return finding{level: Unobservable, measured: why}
	}
	gap, icl := reference([]string{"ICL", "TTFT", "E2E"}, s.ICL, s.TTFT, s.E2E)
	first, ttft := reference([]string{"TTFT", "E2E"}, s.TTFT, s.E2E)
	return worstOf(
		compare(s.Lag, stats.P99, gap, icl, stats.P50, lagLimits),
		compare(s.Lag, stats.P99, first, ttft, stats.P99, lagLimits))
}

// loopLoad takes a loop's CPU time for its load. Loops without a thread of their own share the process's, which then stands
// against its processors.
func loopLoad(e *Evidence) []finding {
	var all []finding
	whole := record.Loop{CPUNs: int64(e.State.CPUMs * 1e6)}
	for i, l := range e.Loops {
		if l.WallNs > 0 && l.CPUNs > 0 {
			all = append(all, load(fmt.Sprintf("loop %d", i), l))
		}
		whole.WallNs = max(whole.WallNs, l.WallNs*int64(e.processors()))
		whole.SpunNs += l.SpunNs
	}
	switch {
	case len(all) > 0:
		return all
	case whole.WallNs > 0 && whole.CPUNs > 0:
		return []finding{load(fmt.Sprintf("the process on %d processors", e.processors()), whole)}
	}
	return []finding{{level: Unobservable, measured: "the loops' CPU time is not in the manifest"}}
}

// load judges the load of who. Time spent looking out for a near due time is not load: any reply would have ended it.
func load(who string, l record.Loop) finding {
	load := float64(max(l.CPUNs-l.SpunNs, 0)) / float64(l.WallNs)
	level, strain := loopLimits.grade(load)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("%s at %.2f", who, load)}
}

func clockStep(e *Evidence) []finding {
	if e.Clock.StartMonotonicNs == 0 || e.State.EndMs == 0 {
		return []finding{{level: Unobservable, measured: "the clocks were not compared to the end of the run"}}
	}
	step := math.Abs(float64(e.Clock.MaxStepNs))
	level, strain := stepLimits.grade(step)
	return []finding{{level: level, strain: strain, measured: fmt.Sprintf("%s (limit %s)", span(step), span(stepLimits.valid))}}
}

func accounted(e *Evidence) []finding {
	f := finding{level: CertifiedLevel, measured: fmt.Sprintf("%d of %d", e.Recorded, e.Planned)}
	if e.OpenEnded {
		f = finding{level: Unobservable, measured: fmt.Sprintf("%d recorded; how many were issued was never written", e.Recorded)}
	}
	if missing := e.Planned - e.Recorded; missing > 0 || e.Duplicates > 0 || e.Excess > 0 {
		f.level = Failed
	}
	if e.Duplicates > 0 {
		f.measured += fmt.Sprintf(", %d recorded twice", e.Duplicates)
	}
	if e.Excess > 0 {
		f.measured += fmt.Sprintf(", %d more than planned", e.Excess)
	}
	switch {
	case e.idle():
		f = finding{level: Failed, measured: "nothing was planned", hint: "plan at least one request: a longer duration, a higher rate or more requests"}
	case e.Planned == 0:
		f.level = Failed
	}
	return []finding{f}
}

func errorShare(e *Evidence, s *Stage) finding {
	switch {
	case e.Killed():
		return killed
	case s.Attempted == 0:
		return unsent(s)
	}
	share := float64(s.Failed) / float64(s.Attempted)
	level, strain := errorLimits.grade(share)
	return finding{level: level, strain: strain, measured: fmt.Sprintf("%d of %d (%.3g %%)", s.Failed, s.Attempted, 100*share)}
}
