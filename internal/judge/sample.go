package judge

import (
	"cmp"
	"slices"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// mostRequests is how many single requests a Detail holds.
const mostRequests = 20_000

// sample keeps the requests of the least hashes of their indexes: a draw that depends neither on the order of the log nor on what
// became of them.
type sample struct {
	most  int
	limit uint64 // requests with a greater hash are in no sample of that size
	of    int64
	kept  []drawn
}

// drawn is one request in the sample.
type drawn struct {
	hash          uint64
	index         int64
	stage         int
	outcome       record.Outcome
	due           time.Duration
	slip, ttft    Number
	tpot, e2e     Number
	input, output Number
	events        int
}

func newSample(most int) *sample { return &sample{most: most, limit: ^uint64(0)} }

func (s *sample) add(r *measure.Reply) {
	s.of++
	hash := scramble(uint64(r.Index))
	if hash > s.limit {
		return
	}
	s.kept = append(s.kept, drawnOf(r, hash))
	if len(s.kept) >= 2*s.most {
		s.prune()
	}
}

// prune drops all but the least.
func (s *sample) prune() {
	slices.SortFunc(s.kept, func(a, b drawn) int { return cmp.Compare(a.hash, b.hash) })
	if len(s.kept) > s.most {
		s.kept = s.kept[:s.most]
		s.limit = s.kept[s.most-1].hash
	}
}

// scramble is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): one to one, so that no two indexes share a hash.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func drawnOf(r *measure.Reply, hash uint64) drawn {
	ms := func(d time.Duration, known bool) Number { return scaled(measure.Milliseconds)(float64(d), known) }
	count := func(n int64, known bool) Number { return scaled(measure.Tokens)(float64(n), known) }
	tpot, ok := r.TPOT()
	return drawn{
		hash: hash, index: r.Index, stage: r.Stage, outcome: r.Outcome, due: r.Due,
		slip: ms(r.Sent-r.Due, r.WasSent), ttft: ms(r.FirstToken.At-r.Sent, r.WasSent && r.FirstToken.Known),
		tpot: ms(tpot, ok), e2e: ms(r.Finish-r.Sent, r.WasSent && r.Ended),
		input: count(int64(r.Usage.Input), r.Usage.Known), output: count(r.Output, r.OutputKnown), events: len(r.Tokens),
	}
}

func (s *sample) requests() Requests {
	s.prune()
	slices.SortFunc(s.kept, func(a, b drawn) int { return cmp.Compare(a.index, b.index) })
	all := Requests{
		Of: s.of, Sampled: int64(len(s.kept)) < s.of, Index: []int64{}, Stage: []int{}, Outcome: []int{},
		Due: []Number{}, Slip: []Number{}, TTFT: []Number{}, TPOT: []Number{}, E2E: []Number{}, Input: []Number{}, Output: []Number{}, Events: []int{},
	}
	for _, outcome := range record.Outcomes {
		all.Outcomes = append(all.Outcomes, outcome.String())
	}
	for i := range s.kept {
		k := &s.kept[i]
		all.Index, all.Stage, all.Outcome = append(all.Index, k.index), append(all.Stage, k.stage), append(all.Outcome, slices.Index(record.Outcomes[:], k.outcome))
		all.Due, all.Slip = append(all.Due, scaled(measure.Milliseconds)(float64(k.due), true)), append(all.Slip, k.slip)
		all.TTFT, all.TPOT, all.E2E = append(all.TTFT, k.ttft), append(all.TPOT, k.tpot), append(all.E2E, k.e2e)
		all.Input, all.Output = append(all.Input, k.input), append(all.Output, k.output)
		all.Events = append(all.Events, k.events)
	}
	return all
}
