package stats

import "math"

// Estimate is a quantile over all planned requests with its 95 % interval, or the reason why it must not be shown.
type Estimate struct {
	PPM       int64
	N         int64    // requests, however they ended
	Effective float64  // n_eff: what they are worth as independent ones
	Point     Crossing // where Quantile is
	Low, High Crossing // where the interval begins and ends
	Withheld  Reason   // empty when the figures may be shown; else Low and High are undefined
	Needed    int64    // requests needed at this dependence; 0 unless withheld for being too few
}

// Reason says why a figure is withheld.
type Reason string

const (
	Shown      Reason = ""
	NoRequests Reason = "no requests"
	TooFew     Reason = "too few independent requests"
	TooLong    Reason = "requests depend on each other over more than a quarter of the run"
)

// Estimate gives the quantile at ppm with its interval, for requests of a known dependence; Cohort.Estimates measures it. The interval is that of the
// order statistics of n_eff independent values (Hahn and Meeker), its ranks stretched to n.
func (in *Incidence) Estimate(ppm int64, d Dependence) Estimate {
	n := in.N()
	e := Estimate{PPM: ppm, N: n, Effective: min(d.Effective(), float64(n)), Point: in.Quantile(ppm)}
	switch least := Least(ppm); {
	case n == 0:
		e.Withheld = NoRequests
	case d.Cut:
		e.Withheld = TooLong
	case e.Effective < float64(least):
		e.Withheld = TooFew
		e.Needed = needed(least, d.Time)
	default:
		low, high := ranks(int64(e.Effective), ppm)
		e.Low, e.High = in.At(stretchDown(low, int64(e.Effective), n)), in.At(stretchUp(high, int64(e.Effective), n))
	}
	return e
}

// needed is how many requests of correlation time τ are worth a number of independent ones.
func needed(least int64, time float64) int64 {
	if n := math.Ceil(float64(least) * max(time, 1)); n < math.MaxInt64 {
		return int64(n)
	}
	return math.MaxInt64
}

// ranks are the ends of a 95 % interval for the quantile at ppm in n independent values. Both exist when Backed(n, ppm).
func ranks(n, ppm int64) (low, high int64) {
	const half = 0.025
	p := float64(ppm) / 1_000_000
	low = firstOf(1, n+1, func(k int64) bool { return binomial(k, n, p) > half })
	high = firstOf(1, n, func(k int64) bool { return binomial(k-1, n, p) >= 1-half })
	return low, high
}

// stretchDown and stretchUp carry a rank among m values over to n ≥ m, by the share of values that is expected below it; they
// widen what they round.
func stretchDown(rank, m, n int64) int64 {
	return max(int64(math.Floor(stretched(rank, m, n))), 1)
}

func stretchUp(rank, m, n int64) int64 {
	return min(int64(math.Ceil(stretched(rank, m, n))), n)
}

func stretched(rank, m, n int64) float64 { return float64(rank) * (float64(n+1) / float64(m+1)) }
