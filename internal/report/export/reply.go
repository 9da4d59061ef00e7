package export

import (
	"cmp"
	"slices"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// reply is what the forms of other tools are computed from: one request that was tried, of a measured stage.
type reply struct {
	record.Exchange // without its events

	events []moment // all of them
}

// moment is when an event arrived, and what it carried.
type moment struct {
	at   time.Duration // since the start of the run
	kind record.Kind
}

// replies are the requests that were tried in a measured stage, by index: those that got no connection failed in other tools too, which have
// no record of those that were never sent. The requests of a run are held in memory, as those tools do.
func (r *Run) replies() (all []reply, err error) {
	err = r.eachReply(func(m *measure.Reply) error {
		if m.Outcome == record.NotSent || m.Stage >= len(r.Manifest.Stages) || r.Manifest.Stages[m.Stage].Warmup {
			return nil
		}
		one := reply{Exchange: *m.Exchange}
		one.Events = nil
		for i := range m.Events {
			one.events = append(one.events, moment{m.Events[i].KernelAt, m.Events[i].Kind})
		}
		all = append(all, one)
		return nil
	})
	slices.SortFunc(all, func(a, b reply) int { return cmp.Compare(a.Index, b.Index) })
	return all, err
}

// of are the replies of one stage.
func of(all []reply, stage int) (some []reply) {
	for i := range all {
		if all[i].Stage == stage {
			some = append(some, all[i])
		}
	}
	return some
}

// begins is when a client hands its request over to its HTTP library: after any limit on requests in flight, before a connection is
// there. Tools on such libraries start their stop-watch then.
func (r *reply) begins() time.Duration {
	if at, ok := r.Issued.Get(); ok {
		return at
	}
	if at, ok := r.FirstWrite.Get(); ok {
		return at
	}
	return r.Due
}

// ends is when the reply was over.
func (r *reply) ends() (at time.Duration, ok bool) { return r.End.Get() }

// chosen are the moments of the events of some kinds.
func (r *reply) chosen(of func(record.Kind) bool) (all []time.Duration) {
	for _, e := range r.events {
		if of(e.kind) {
			all = append(all, e.at)
		}
	}
	return all
}

// hasChoices says that an event of OpenAI's streams has an entry in "choices".
func hasChoices(k record.Kind) bool {
	return k.Token() || k == record.KindRole || k == record.KindFinish
}

func isContent(k record.Kind) bool { return k == record.KindContent }

func isToken(k record.Kind) bool { return k.Token() }

func gaps(at []time.Duration) (all []float64) {
	all = []float64{}
	for i := 1; i < len(at); i++ {
		all = append(all, inSeconds(at[i]-at[i-1]))
	}
	return all
}

// openAI says that the run spoke to one of the endpoints that vLLM's and inference-perf's clients read as ours does.
func (r *Run) openAI() bool {
	e := r.Manifest.Target.Endpoint
	return e == "openai-chat" || e == "openai-completions"
}

// inSeconds is a span to the last digit, which Duration.Seconds is not.
func inSeconds(d time.Duration) float64 { return float64(d) / 1e9 }
