package stats

import (
	"math"
	"slices"
)

// Levels of quantiles, in parts per million.
const (
	P1   = 10_000
	P5   = 50_000
	P10  = 100_000
	P25  = 250_000
	P50  = 500_000
	P75  = 750_000
	P90  = 900_000
	P95  = 950_000
	P99  = 990_000
	P999 = 999_000
)

// Backed reports whether n independent values are enough for a two-sided 95 % interval around the quantile at ppm to
// exist. Values of one loaded server are rarely independent, so that this is the least that can be asked.
func Backed(n, ppm int64) bool { return n >= Least(ppm) }

// Least is how many independent values back the quantile at ppm: n ≥ ln 0.025 / ln p, p being the distance of the level from the
// far end. It is 368 for a p99 and 3,688 for a p99.9.
func Least(ppm int64) int64 {
	p := float64(max(ppm, 1_000_000-ppm)) / 1_000_000
	if p >= 1 {
		return math.MaxInt64
	}
	return int64(math.Ceil(math.Log(0.025) / math.Log(p)))
}

// Median is the middle of a few values, of an even number the mean of both: one value of each run, say. ok is false for none.
func Median(values []float64) (median float64, ok bool) {
	n := len(values)
	if n == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, true
}
