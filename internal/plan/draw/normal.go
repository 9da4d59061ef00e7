package draw

import (
	"errors"
	"fmt"
	"math"
)

// Normal draws whole numbers: normal ones rounded to the nearest, and drawn anew until they are within a range.
type Normal struct {
	mean, deviation float64
	within          Range
}

// Range is the whole numbers from Least to Most, both included.
type Range struct{ Least, Most int64 }

// fault says why a range cannot be drawn from: floats tell its numbers apart up to 2⁵³.
func (r Range) fault() error {
	switch {
	case r.Least > r.Most:
		return fmt.Errorf("the range must not be empty, got %d to %d", r.Least, r.Most)
	case r.Least < -1<<52 || r.Most > 1<<52:
		return fmt.Errorf("the range must be within ±2⁵², got %d to %d", r.Least, r.Most)
	}
	return nil
}

// Draw returns a uniform number of the range.
func (r Range) Draw(s *Source) int64 { return r.Least + int64(s.Below(uint64(r.Most-r.Least)+1)) }

// leastShare is the smallest part of a distribution that a range may leave of it, or drawing would take forever.
const leastShare = 0.001

// NewNormal returns the distribution of that mean and standard deviation, of which the range must leave a thousandth.
func NewNormal(mean, deviation float64, within Range) (Normal, error) {
	n := Normal{mean, deviation, within}
	if err := errors.Join(within.fault(), parameterFault(mean, deviation)); err != nil {
		return Normal{}, err
	}
	return n, shareFault(share(n.at(within.Least), n.at(within.Most+1)))
}

func parameterFault(mean, deviation float64) error {
	if !(math.Abs(mean) <= 1<<52) || !(deviation >= 0 && deviation <= 1<<52) {
		return fmt.Errorf("mean and deviation must be numbers, the deviation 0 or more, got %v and %v", mean, deviation)
	}
	return nil
}

func shareFault(share float64) error {
	if share < leastShare {
		return fmt.Errorf("the range must leave %v of the distribution or more, it leaves %.3g", leastShare, share)
	}
	return nil
}

// at is where the lower edge of the numbers that round to k lies, in standard deviations from the mean.
func (n Normal) at(k int64) float64 { return n.standard(float64(k) - 0.5) }

// standard is where x lies in standard deviations from the mean; infinitely far where there is no deviation.
func (n Normal) standard(x float64) float64 {
	distance := x - n.mean
	if n.deviation == 0 {
		return math.Copysign(math.Inf(1), distance)
	}
	return distance / n.deviation
}

// share is how much of a standard normal distribution lies between two points.
func share(from, to float64) float64 {
	return (math.Erfc(-to/math.Sqrt2) - math.Erfc(-from/math.Sqrt2)) / 2
}

// Draw returns the next number.
func (n Normal) Draw(s *Source) int64 {
	for {
		if k, ok := n.within.nearest(n.mean + float64(n.deviation*normal(s))); ok {
			return k
		}
	}
}

// nearest rounds x, halves upwards; ok is false where that is not in the range.
func (r Range) nearest(x float64) (k int64, ok bool) {
	x = math.Floor(x + 0.5)
	if x < float64(r.Least) || x > float64(r.Most) {
		return 0, false
	}
	return int64(x), true
}

// Lognormal draws whole numbers: those whose logarithm is normal, rounded to the nearest, and drawn anew until they are
// within a range.
type Lognormal struct {
	mu, sigma float64
	within    Range
}

// NewLognormal returns the distribution whose logarithm has that mean and standard deviation. The range must leave a
// thousandth of it.
func NewLognormal(mu, sigma float64, within Range) (Lognormal, error) {
	l := Lognormal{mu, sigma, within}
	if err := errors.Join(within.fault(), parameterFault(mu, sigma)); err != nil {
		return Lognormal{}, err
	}
	if !(math.Abs(mu) <= 40 && sigma <= 10) {
		return Lognormal{}, fmt.Errorf("mu must be within ±40 and sigma within 0 and 10, got %v and %v", mu, sigma)
	}
	return l, shareFault(share(l.at(within.Least), l.at(within.Most+1)))
}

// LognormalOf returns the distribution whose numbers, before the range cuts it, have that mean and standard deviation.
func LognormalOf(mean, deviation float64, within Range) (Lognormal, error) {
	if err := parameterFault(mean, deviation); err != nil || mean <= 0 {
		return Lognormal{}, errors.Join(err, fmt.Errorf("the mean must be above 0, got %v", mean))
	}
	variation := deviation / mean
	variance := log(1 + float64(variation*variation))
	return NewLognormal(log(mean)-variance/2, math.Sqrt(variance), within)
}

func (l Lognormal) at(k int64) float64 {
	edge := float64(k) - 0.5
	if edge <= 0 {
		return math.Inf(-1)
	}
	return Normal{mean: l.mu, deviation: l.sigma}.standard(log(edge))
}

// Draw returns the next number.
func (l Lognormal) Draw(s *Source) int64 {
	for {
		if k, ok := l.within.nearest(exp(l.mu + float64(l.sigma*normal(s)))); ok {
			return k
		}
	}
}

// normal returns a standard normal number, by Marsaglia's polar method.
func normal(s *Source) float64 {
	for {
		x, y := signed(s), signed(s)
		square := float64(x*x) + float64(y*y)
		if square > 0 && square < 1 {
			return float64(x * math.Sqrt(-2*log(square)/square))
		}
	}
}

// signed returns a uniform number in [−1, 1).
func signed(s *Source) float64 { return float64(int64(s.Uint64())>>11) / (1 << 52) }
