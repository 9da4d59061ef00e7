package stats

import (
	"cmp"
	"slices"
)

// Incidence holds how long each planned request took until it ended in one of three ways. Quantiles of the completed ones alone
// improve as a server fails; those of an Incidence are over all.
//
// Put what never was sent under Failed, at 0: it will not complete. It merges without loss. The zero value is empty and ready.
type Incidence struct {
	Completed Distribution // the value of the metric
	Failed    Distribution // when it was clear that there would be no value: an error
	Censored  Distribution // up to when there was none: timed out, cancelled
}

// Reach says what is known of a quantile.
type Reach string

const (
	Undefined    Reach = ""             // there are no requests, or not so many
	Reached      Reach = "reached"      // the quantile is the value
	Above        Reach = "above"        // the quantile is greater than the value; so many had not completed by then
	Unattainable Reach = "unattainable" // so many failed that the quantile does not exist
)

// Crossing is where the share of completed requests reaches a level, as far as that is known.
type Crossing struct {
	Value float64 // for Reached and Above
	Reach Reach
}

// N returns the number of requests, however they ended.
func (in *Incidence) N() int64 { return in.Completed.n + in.Failed.n + in.Censored.n }

// Merge puts all requests of other in. It leaves other as it is.
func (in *Incidence) Merge(other *Incidence) {
	in.Completed.Merge(&other.Completed)
	in.Failed.Merge(&other.Failed)
	in.Censored.Merge(&other.Censored)
}

// Quantile returns where the share of all requests that completed reaches a level, in parts per million.
func (in *Incidence) Quantile(ppm int64) Crossing { return in.At(rankOf(in.N(), ppm)) }

// At returns where a number of all requests has completed: the estimate of Aalen and Johansen, in which a failure competes with
// completion and a censored request counts until it was given up. Without censored requests before the crossing that is the
// rank-th least completed value.
func (in *Incidence) At(rank int64) Crossing {
	n := in.N()
	switch {
	case rank < 1 || rank > n:
		return Crossing{}
	case in.Completed.n == n:
		v, _ := in.Completed.At(rank)
		return Crossing{v, Reached}
	}
	const rounding = 0.01 // of one request: far above the error of the sums, far below a request
	level := (float64(rank) - rounding) / float64(n)
	share, open := 0.0, 1.0 // that completed; that has not ended
	atRisk := float64(n)
	for _, e := range in.ends() {
		part := open * float64(e.count) / atRisk
		switch e.as {
		case asCompleted:
			if share += part; share >= level {
				return Crossing{e.mean, Reached}
			}
			open -= part
		case asFailed:
			open -= part
		}
		atRisk -= float64(e.count)
	}
	last, _ := in.Censored.Max()
	if in.Censored.n == 0 || share+open < level {
		return Crossing{Reach: Unattainable}
	}
	return Crossing{float64(last), Above}
}

// end is requests that ended alike and at the same time. Of equal times completions come first, since a request that is given up at
// a moment would have counted had it completed just then.
type end struct {
	cell
	as ending
}

type ending int

const (
	asCompleted ending = iota
	asFailed
	asCensored
)

func (in *Incidence) ends() (all []end) {
	for as, d := range []*Distribution{&in.Completed, &in.Failed, &in.Censored} {
		for c := range d.cells {
			all = append(all, end{c, ending(as)})
		}
	}
	slices.SortFunc(all, func(a, b end) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.as, b.as)) })
	return all
}
