package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Scaled is a point of a throughput curve: with so many requests in flight, so many complete a second.
type Scaled struct {
	InFlight float64
	Rate     float64
	Error    float64 // standard error of Rate; 0 when unknown
}

// Bounded is a figure with its 95 % interval by bootstrap.
type Bounded struct{ Value, Low, High float64 }

// Scaling is the fit of Gunther's universal scalability law, X(N) = γN / (1 + σ(N−1) + κN(N−1)), and the knee of the same curve. Both are
// diagnoses of a curve, and no capacities: neither knows whether the server kept up.
type Scaling struct {
	Gamma Bounded // rate of one request in flight
	Sigma Bounded // contention: what of the work is done one after another
	Kappa Bounded // coherency: what requests cost each other; above 0 the throughput falls at last
	Peak  Bounded // number in flight at which X is greatest, √((1−σ)/κ)
	Peaks bool    // κ > 0, and Peak is within 1.5 times what was measured: else it would be an extrapolation
	Most  Bounded // rate there, or at the most in flight that was measured
	Knee  Bounded // number in flight at the knee, by Kneedle (Satopää et al. 2011): where the curve is farthest above its chord
	Miss  float64 // root mean square of the relative residuals
}

// The least points and the resamples of a fit.
const (
	leastScaled = 5
	resamples   = 500
)

// Scale fits a throughput curve. Least squares of the relative residuals are linear in N/X, so that the fit has no starting point and no
// iterations; σ and κ are not below 0. Intervals are by resampling each rate within its error, or the misfit where that is greater. ok is false for fewer
// than five different numbers in flight.
func Scale(points []Scaled) (s Scaling, ok bool) {
	points = slices.DeleteFunc(slices.Clone(points), func(p Scaled) bool { return p.InFlight <= 0 || p.Rate <= 0 })
	slices.SortFunc(points, func(a, b Scaled) int { return cmp.Compare(a.InFlight, b.InFlight) })
	if different(points) < leastScaled {
		return Scaling{}, false
	}
	law := fitLaw(points)
	s.Miss = law.miss(points)
	r := rand.New(rand.NewPCG(uint64(len(points)), 1))
	var all [6][]float64
	for range resamples {
		drawn := slices.Clone(points)
		for i := range drawn {
			spread := max(drawn[i].Error, s.Miss*drawn[i].Rate)
			drawn[i].Rate = max(drawn[i].Rate+spread*r.NormFloat64(), drawn[i].Rate/100)
		}
		l := fitLaw(drawn)
		peak, most := l.peak(points)
		for i, v := range []float64{l.gamma, l.sigma, l.kappa, peak, most, knee(drawn)} {
			all[i] = append(all[i], v)
		}
	}
	peak, most := law.peak(points)
	for i, to := range []struct {
		b *Bounded
		v float64
	}{{&s.Gamma, law.gamma}, {&s.Sigma, law.sigma}, {&s.Kappa, law.kappa}, {&s.Peak, peak}, {&s.Most, most}, {&s.Knee, knee(points)}} {
		slices.Sort(all[i])
		*to.b = Bounded{to.v, all[i][resamples*25/1000], all[i][resamples*975/1000]}
	}
	s.Peaks = law.kappa > 0 && peak < reach(points)
	return s, true
}

func different(points []Scaled) (n int) {
	for i := range points {
		if i == 0 || points[i].InFlight > points[i-1].InFlight*(1+1e-9) {
			n++
		}
	}
	return n
}

// reach is how far a fit may be believed: 1.5 times what was measured.
func reach(points []Scaled) float64 { return 1.5 * points[len(points)-1].InFlight }

// law is the universal scalability law.
type law struct{ gamma, sigma, kappa float64 }

func (l law) at(n float64) float64 {
	return l.gamma * n / (1 + l.sigma*(n-1) + l.kappa*n*(n-1))
}

// peak is where the law is greatest within reach, and how great it is there.
func (l law) peak(points []Scaled) (n, rate float64) {
	n = reach(points)
	if l.kappa > 0 {
		n = min(n, math.Sqrt(max(1-l.sigma, 0)/l.kappa))
	}
	n = max(n, 1)
	return n, l.at(n)
}

func (l law) miss(points []Scaled) float64 {
	sum := 0.0
	for _, p := range points {
		off := p.Rate/l.at(p.InFlight) - 1
		sum += off * off
	}
	return math.Sqrt(sum / float64(len(points)))
}

// fitLaw fits N/X = a + b(N−1) + cN(N−1), γ = 1/a, σ = b/a, κ = c/a, by the relative residuals; of the fits with b or c left out it
// takes the best that has none below 0.
func fitLaw(points []Scaled) (best law) {
	least := math.Inf(1)
	for _, terms := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		c, ok := solveScaled(points, terms)
		if !ok || c[0] <= 0 || c[1] < 0 || c[2] < 0 {
			continue
		}
		l := law{1 / c[0], c[1] / c[0], c[2] / c[0]}
		if miss := l.miss(points); miss < least*(1-1e-9) {
			best, least = l, miss
		}
	}
	return best
}

// solveScaled solves the normal equations of some terms by elimination.
func solveScaled(points []Scaled, terms []int) (c [3]float64, ok bool) {
	k := len(terms)
	m := make([][]float64, k)
	for i := range m {
		m[i] = make([]float64, k+1)
	}
	for _, p := range points {
		y := p.InFlight / p.Rate
		all := [3]float64{1 / y, (p.InFlight - 1) / y, p.InFlight * (p.InFlight - 1) / y} // each over y: the residual is relative
		for i, a := range terms {
			for j, b := range terms {
				m[i][j] += all[a] * all[b]
			}
			m[i][k] += all[a]
		}
	}
	for i := range k {
		if m[i][i] <= 0 {
			return c, false
		}
		for j := range k {
			if j == i {
				continue
			}
			f := m[j][i] / m[i][i]
			for l := i; l <= k; l++ {
				m[j][l] -= f * m[i][l]
			}
		}
	}
	for i, a := range terms {
		c[a] = m[i][k] / m[i][i]
	}
	return c, true
}

// knee is the number in flight at which the curve, made to fit the unit square, is farthest above the diagonal.
func knee(points []Scaled) (at float64) {
	first, last := points[0], points[len(points)-1]
	top, bottom := 0.0, math.Inf(1)
	for _, p := range points {
		top, bottom = max(top, p.Rate), min(bottom, p.Rate)
	}
	far := math.Inf(-1)
	for _, p := range points {
		off := (p.Rate-bottom)/max(top-bottom, 1e-300) - (p.InFlight-first.InFlight)/max(last.InFlight-first.InFlight, 1e-300)
		if off > far {
			far, at = off, p.InFlight
		}
	}
	return at
}
