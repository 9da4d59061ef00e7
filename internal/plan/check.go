package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// presence says whether a key was given. Without a draft, that is whether its value is not the zero value.
type presence func(path string, field any) bool

func (s *Spec) present(_ string, field any) bool { return given(field) }

// maxStages bounds the stages of a spec, so that all offsets fit into 64 bits of nanoseconds.
const maxStages = 1000

// shortForms are the keys that make up a single stage.
var shortForms = []string{"load.rate", "load.concurrency", "load.max_in_flight", "load.requests", "load.duration"}

// check returns every fault of a spec, and changes nothing.
func (s *Spec) check(present presence) Faults {
	faults := valueFaults(specKeys, s, "", present)
	for _, name := range slices.Sorted(maps.Keys(s.Target.Headers)) {
		if reason := headerFault(name, s.Target.Headers[name]); reason != "" {
			faults = append(faults, Fault{Key: "target.headers." + name, Reason: reason, Hint: maskHint(s.Target.Headers[name])})
		}
	}
	faults = append(faults, s.transportFaults()...)
	faults = append(faults, s.Target.templateFaults(present)...)
	for i := range s.Load.Stages {
		faults = append(faults, valueFaults(stageKeys, &s.Load.Stages[i], stagePath(i)+".", present)...)
	}
	for i := range s.Workload.Classes {
		faults = append(faults, valueFaults(classKeys, &s.Workload.Classes[i], classPath(i)+".", present)...)
	}
	faults = append(faults, s.workloadFaults(present)...)
	faults = append(faults, s.objectiveFaults()...)
	faults = append(faults, s.Load.arrivalFaults(present)...)
	faults = append(faults, s.Client.fault()...)
	faults = append(faults, s.ServerMetrics.faults()...)
	return append(faults, s.Load.shapeFaults(present, s.Workload.Trace.Sessions)...)
}

// fault checks that processors are left for others than the event loops.
func (c *Client) fault() Faults {
	loops := max(1, c.Loops)
	if c.Procs <= 0 || c.Procs > loops+1 {
		return nil
	}
	return Faults{{
		Key: "client.procs", Reason: fmt.Sprintf("must be above client.loops + 1, which is %d, got %d", loops+1, c.Procs),
		Hint: fmt.Sprintf("the event loops and the feeder keep a processor each: set --procs %d or more, or leave it out", loops+2),
	}}
}

func maskHint(value string) string {
	if value == mask {
		return "secrets are not stored: give the value anew"
	}
	return ""
}

// valueFaults applies each key's own rules.
func valueFaults[T any](keys []key[T], s *T, prefix string, present presence) (faults Faults) {
	for i := range keys {
		k := &keys[i]
		if k.loose && !present(prefix+k.name, k.field(s)) {
			continue
		}
		if reason, hint := k.fault(s); reason != "" {
			faults = append(faults, Fault{Key: prefix + k.name, Reason: reason, Hint: hint})
		}
	}
	return faults
}

func stagePath(i int) string { return itemPath("load.stages", i) }

func itemPath(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// shapeFaults checks that the load has stages, and that the keys of each go together. whole says that it may end with a recording.
func (l *Load) shapeFaults(present presence, whole bool) (faults Faults) {
	if l.replayed() {
		return nil
	}
	if !present("load.stages", &l.Stages) {
		return stageFaults(&l.measured()[0], "load", present, whole)
	}
	for _, name := range shortForms {
		k, _ := find(specKeys, name)
		if present(name, k.field(&Spec{Load: *l})) {
			faults = append(faults, Fault{
				Key: name, Reason: "does not go with load.stages", Hint: "it is the short form of a single stage: give it in a stage instead",
			})
		}
	}
	if len(l.Stages) == 0 || len(l.Stages) > maxStages {
		faults = append(faults, Fault{
			Key: "load.stages", Reason: fmt.Sprintf("must have 1 to %d stages, got %d", maxStages, len(l.Stages)),
		})
	}
	for i := range l.Stages {
		faults = append(faults, stageFaults(&l.Stages[i], stagePath(i), present, whole)...)
	}
	return append(faults, l.nameFaults()...)
}

// nameFaults finds stages of the same name.
func (l *Load) nameFaults() (faults Faults) {
	seen := map[string]bool{}
	if l.Warmup > 0 {
		seen[WarmupName] = true
	}
	for i, s := range l.measured() {
		if seen[s.Name] && len(l.Stages) > 0 {
			faults = append(faults, Fault{
				Key: stagePath(i) + ".name", Reason: fmt.Sprintf("is the name of another stage too: %q", s.Name),
			})
		}
		seen[s.Name] = true
	}
	return faults
}

// stageFaults checks that the keys of a stage, or of the short form, go together.
func stageFaults(s *LoadStage, path string, present presence, whole bool) (faults Faults) {
	has := func(name string, field any) bool { return present(path+"."+name, field) }
	fault := func(name, reason, hint string) {
		faults = append(faults, Fault{Key: path + name, Reason: reason, Hint: hint})
	}
	rate, concurrency := has("rate", &s.Rate), has("concurrency", &s.Concurrency)
	requests, duration := has("requests", &s.Requests), has("duration", &s.Duration)
	switch {
	case rate && concurrency:
		fault(".concurrency", "does not go with rate", "rate is for an open loop, concurrency for a closed one: leave one of them out")
	case !rate && !concurrency:
		fault("", "needs a rate or a concurrency", "rate sends on a schedule (open loop), concurrency keeps so many requests in flight (closed loop)")
	}
	if !requests && !duration && !whole {
		fault("", "needs a duration or a number of requests", "set duration, requests, or both to end by whichever comes first")
	}
	if has("rate_to", &s.RateTo) && !rate {
		fault(".rate_to", "needs a rate to start from", "")
	}
	if has("start_rate", &s.StartRate) && !concurrency {
		fault(".start_rate", "goes with concurrency only", "an open loop has a rate")
	}
	if has("max_in_flight", &s.MaxInFlight) && concurrency && !rate {
		fault(".max_in_flight", "goes with rate only", "in a closed loop concurrency is the limit")
	}
	if rate && s.Rate >= minRate && max(s.Rate, s.RateTo) <= maxRate {
		s.sizeFaults(fault)
	}
	return faults
}

// sizeFaults bounds an open stage to 2³² requests and 30 days.
func (s *LoadStage) sizeFaults(fault func(name, reason, hint string)) {
	mean := max(s.Rate, (s.Rate+s.RateTo)/2) + s.SpikeRate*min(1, s.SpikeWidth.Seconds()/max(s.Duration.Seconds(), 1e-9))
	if n := mean * s.Duration.Seconds(); s.Requests <= 0 && n > math.MaxUint32 {
		fault(".duration", fmt.Sprintf("would make %.5g requests, at most %d are possible", n, uint32(math.MaxUint32)), "")
	}
	if seconds := float64(s.Requests) / s.Rate; s.Duration <= 0 && seconds > month {
		fault(".requests", fmt.Sprintf("would take %.5g days, at most 30 are possible", seconds/(24*time.Hour).Seconds()), "")
	}
}
