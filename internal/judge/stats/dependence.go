package stats

import (
	"math"
	"math/bits"
)

// Dependence says how many independent values a series is worth. Neighbours in time meet the same queue, so that a thousand
// latencies of a loaded server may say as little as ten independent ones.
type Dependence struct {
	N    int64
	Time float64 // τ, the correlation time in values, at least 1
	Cut  bool    // the correlation goes on beyond a quarter of the series: Time is too low
}

// Effective is n_eff = n/τ.
func (d Dependence) Effective() float64 { return float64(d.N) / max(d.Time, 1) }

// leastSeries is how many values there must be for a correlation time.
const leastSeries = 8 // with fewer there is no second pair to stop at

// Unknown is why nothing can be inferred from a series that is Cut.
func (d Dependence) Unknown() Reason {
	if d.N < leastSeries {
		return TooFew
	}
	return TooLong
}

// geyer sums up an autocovariance by Geyer's initial monotone sequence (1992): τ = −1 + 2·Σ(γ₂ₘ+γ₂ₘ₊₁)/γ₀ over pairs as long as
// they are positive, none above the one before. Lags are asked for one after another. A τ below 1 counts as 1.
func geyer(n int, autocovariance func(lag int) float64) Dependence {
	d := Dependence{N: int64(n), Time: 1, Cut: n < leastSeries}
	if d.Cut {
		return d
	}
	variance := autocovariance(0)
	sum, before := 0.0, math.Inf(1)
	for lag := 0; ; lag += 2 {
		if lag+1 > n/4 {
			d.Cut = true
			break
		}
		even := variance
		if lag > 0 {
			even = autocovariance(lag)
		}
		pair := min(even+autocovariance(lag+1), before)
		if pair <= 0 {
			break
		}
		sum, before = sum+pair, pair
	}
	if variance > 0 {
		d.Time = max(2*sum/variance-1, 1)
	}
	return d
}

// Depend measures the dependence of the values' mean, given in the order of time. It costs n·τ.
func Depend(values []float64) Dependence {
	n := len(values)
	mean := meanOf(values)
	return geyer(n, func(lag int) (sum float64) {
		for i := range n - lag {
			sum += (values[i] - mean) * (values[i+lag] - mean)
		}
		return sum / float64(n)
	})
}

// Indicator is a series of yes and no, one bit each. For a quantile it says of every planned request, in the order of the due
// times, whether it was within: completed, and not above the quantile. The zero value is empty and ready.
type Indicator struct {
	words []uint64
	n     int
}

// Append puts the next one in.
func (s *Indicator) Append(yes bool) {
	if s.n%64 == 0 {
		s.words = append(s.words, 0)
	}
	if yes {
		s.words[s.n/64] |= 1 << (s.n % 64)
	}
	s.n++
}

// N returns how many are in.
func (s *Indicator) N() int64 { return int64(s.n) }

// Yes returns how many of them are yes.
func (s *Indicator) Yes() int64 { return int64(s.ones()) }

// mostFine is up to how many places an Indicator looks at each; beyond it takes them together.
const mostFine = 1 << 16

// Dependence measures the dependence of the share of yes. It costs n·τ/64 up to 65,536, and n and no more than 0.1 s beyond.
func (s *Indicator) Dependence() Dependence {
	if s.n > mostFine {
		return s.coarse()
	}
	n, all := float64(s.n), s.ones()
	mean := float64(all) / max(n, 1)
	head, tail, seen := 0, 0, 0 // yes among the first and among the last seen
	return geyer(s.n, func(lag int) float64 {
		for ; seen < lag; seen++ {
			head += s.at(seen)
			tail += s.at(s.n - 1 - seen)
		}
		both := float64(s.pairs(lag))
		return (both - mean*float64(2*all-head-tail) + (n-float64(lag))*mean*mean) / n
	})
}

// coarse works on the counts of yes in equal groups: the variance of a sum grows with its length as the correlation time says,
// τ = τ_groups·Var(group) / (size·Var(one)).
func (s *Indicator) coarse() Dependence {
	size := (s.n + mostFine/4 - 1) / (mostFine / 4)
	groups := make([]float64, s.n/size)
	for g := range groups {
		for i := g * size; i < (g+1)*size; i++ {
			groups[g] += float64(s.at(i))
		}
	}
	d := Depend(groups)
	d.N = int64(s.n)
	share := float64(s.ones()) / float64(s.n)
	_, variance := moments(groups)
	if one := share * (1 - share); one > 0 {
		d.Time = max(d.Time*variance/(float64(size)*one), 1)
	}
	return d
}

func (s *Indicator) at(i int) int { return int(s.words[i/64] >> (i % 64) & 1) }

func (s *Indicator) ones() (n int) {
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// pairs counts the places where both the value and the one lag later are yes.
func (s *Indicator) pairs(lag int) (n int) {
	ahead := s.words[min(lag/64, len(s.words)):]
	shift := lag % 64
	for i, w := range ahead {
		w >>= shift
		if i+1 < len(ahead) && shift > 0 {
			w |= ahead[i+1] << (64 - shift)
		}
		n += bits.OnesCount64(s.words[i] & w)
	}
	return n
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}
