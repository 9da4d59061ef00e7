package stats

import "math"

// miss is 1 − the confidence of MLPerf's early stopping: 99 %, without tolerance.
const miss = 0.01

// LeastTrials is how many independent requests there must be, of which over were above a limit, to claim with 99 % confidence
// that the share at ppm keeps the limit: the least n with P(Bin(n, 1−p) ≤ over) < 1 %. It is 459 for a p99 with none over, 662 with one.
func LeastTrials(over, ppm int64) int64 {
	holds := func(n int64) bool { return binomial(over, n, tail(ppm)) < miss }
	high := over + 1
	for !holds(high) {
		if high > math.MaxInt64/4 {
			return math.MaxInt64
		}
		high *= 2
	}
	return firstOf(over+1, high, holds)
}

// tail is 1 − p, exact for levels that are whole parts per million.
func tail(ppm int64) float64 { return float64(1_000_000-ppm) / 1_000_000 }

// Keeps reports whether n independent requests, over of them above a limit, show with 99 % confidence that the share at ppm keeps it; and
// if not, how many more would be needed if all of them kept it. It may be asked once, at the end: asked again and again until it
// says yes, it says yes too often.
func Keeps(n, over, ppm int64) (ok bool, more int64) {
	if least := LeastTrials(over, ppm); n < least {
		return false, least - n
	}
	return true, 0
}

// UpperBound returns the rank, among all N values, of the one that bounds the quantile at ppm from above with 99 % confidence, as MLPerf
// reports it: the t-th greatest, for the greatest t ≥ 1 of which LeastTrials(t) allows. MLPerf takes the values for independent;
// here n_eff stands for their number. ok is false when there are too few: below 662 for a p99.
func UpperBound(d Dependence, ppm int64) (rank int64, ok bool) {
	m := int64(d.Effective())
	over := firstOf(0, m, func(t int64) bool { return binomial(t, m, tail(ppm)) >= miss }) - 1
	if over < 1 {
		return 0, false
	}
	return stretchUp(m-over+1, m, d.N), true
}
