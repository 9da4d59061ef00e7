package stats

import (
	"cmp"
	"math"
	"slices"
)

// mostExact is up to how many values of both samples the rank-sum test counts its arrangements.
const mostExact = 50

// RankSum is the test of Mann and Whitney (Wilcoxon): whether the values of one sample tend to be above those of another.
type RankSum struct {
	U     float64 // pairs in which a is above b, ties by halves
	P     float64 // two-sided
	Exact bool    // all arrangements counted, ties included; else by the normal approximation
}

// MannWhitney tests two samples: one value of each run, never of each request. Four runs against four can come to p = 0.029 at best, three
// against three to 0.1. ok is false when a sample is empty.
func MannWhitney(a, b []float64) (r RankSum, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return RankSum{}, false
	}
	ranks, ties := doubledRanks(append(slices.Clone(a), b...))
	sum := 0
	for _, rank := range ranks[:len(a)] {
		sum += rank
	}
	r.U = float64(sum)/2 - float64(len(a)*(len(a)+1))/2
	if len(ranks) <= mostExact {
		r.Exact = true
		r.P = exactP(ranks, len(a), sum)
		return r, true
	}
	r.P = normalP(r.U, float64(len(a)), float64(len(b)), ties)
	return r, true
}

// doubledRanks are twice the ranks, the mean one for equal values, and Σ(t³−t) over groups of t equal values.
func doubledRanks(values []float64) (ranks []int, ties float64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	ranks = make([]int, len(values))
	for first := 0; first < len(order); {
		next := first + 1
		for next < len(order) && cmp.Compare(values[order[next]], values[order[first]]) == 0 {
			next++
		}
		for _, i := range order[first:next] {
			ranks[i] = first + 1 + next
		}
		t := float64(next - first)
		ties += t*t*t - t
		first = next
	}
	return ranks, ties
}

// exactP counts the choices of n ranks out of all whose sum is as far out as the one seen.
func exactP(ranks []int, n, seen int) float64 {
	ways := sumsOf(ranks, n)
	all, below, above := 0.0, 0.0, 0.0
	for sum, w := range ways {
		all += w
		if sum <= seen {
			below += w
		}
		if sum >= seen {
			above += w
		}
	}
	return min(2*min(below, above)/all, 1)
}

// sumsOf counts, by their sum, the choices of n out of the numbers.
func sumsOf(numbers []int, n int) []float64 {
	total := 0
	for _, v := range numbers {
		total += v
	}
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, v := range numbers {
		for k := n; k >= 1; k-- {
			for sum := total; sum >= v; sum-- {
				ways[k][sum] += ways[k-1][sum-v]
			}
		}
	}
	return ways[n]
}

func normalP(u, n, m, ties float64) float64 {
	all := n + m
	variance := n * m / 12 * (all + 1 - ties/(all*(all-1)))
	if variance <= 0 {
		return 1
	}
	off := max(math.Abs(u-n*m/2)-0.5, 0)
	return min(2*normalBelow(-off/math.Sqrt(variance)), 1)
}

// Shift is how far one sample lies above another.
type Shift struct {
	Median    float64 // of a−b over all pairs, the estimate of Hodges and Lehmann
	Low, High float64 // 95 % interval
	Bounded   bool    // the interval exists: not for three runs against four or fewer
}

// HodgesLehmann estimates by how much a lies above b, with the interval that belongs to MannWhitney. ok is false when a sample is empty.
func HodgesLehmann(a, b []float64) (s Shift, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return Shift{}, false
	}
	pairs := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			pairs = append(pairs, x-y)
		}
	}
	slices.Sort(pairs)
	n := len(pairs)
	s.Median, _ = Median(pairs)
	if k := shiftRank(len(a), len(b)); k >= 1 {
		s.Low, s.High, s.Bounded = pairs[k-1], pairs[n-k], true
	}
	return s, true
}

// shiftRank is the greatest k with P(U < k) ≤ 2.5 % when the samples are alike and without ties; 0 for none.
func shiftRank(n, m int) int {
	const half = 0.025
	if n+m > mostExact {
		nm := float64(n) * float64(m)
		return max(int(nm/2+normal(half)*math.Sqrt(nm*float64(n+m+1)/12)), 0)
	}
	numbers := make([]int, n+m)
	all := 1.0
	for i := range numbers {
		numbers[i] = i + 1
	}
	for i := 1; i <= n; i++ {
		all *= float64(m+i) / float64(i)
	}
	least := n * (n + 1) / 2
	below := 0.0
	for u, w := range sumsOf(numbers, n)[least:] {
		if below += w; below/all > half {
			return u
		}
	}
	return 0
}

// Holm corrects the p-values of several tests for their number: each result may be held against the level on its own. The order is kept.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	corrected := make([]float64, len(p))
	most := 0.0
	for place, i := range order {
		most = max(most, min(float64(len(p)-place)*p[i], 1))
		corrected[i] = most
	}
	return corrected
}

// LeastP is the smallest two-sided p-value that MannWhitney can come to: that of n values all below m others.
func LeastP(n, m int) float64 {
	ways := 1.0
	for i := 1; i <= n; i++ {
		ways *= float64(m+i) / float64(i)
	}
	return min(2/ways, 1)
}
