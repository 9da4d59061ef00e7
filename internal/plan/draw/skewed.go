package draw

import (
	"errors"
	"fmt"
	"math"
)

// SkewNormal draws whole numbers: skew-normal ones (Azzalini 1985) of a mean and a standard deviation, rounded to the nearest, and
// drawn anew until they are within a range.
type SkewNormal struct {
	location, scale, delta, rest float64
	within                       Range
}

// NewSkewNormal returns the distribution of that mean, standard deviation and shape, which is 0 for a normal one and positive for a
// long tail to the right, within ±100. The range must leave a thousandth of it.
func NewSkewNormal(mean, deviation, shape float64, within Range) (SkewNormal, error) {
	if err := errors.Join(within.fault(), parameterFault(mean, deviation)); err != nil {
		return SkewNormal{}, err
	}
	if !(math.Abs(shape) <= 100) {
		return SkewNormal{}, fmt.Errorf("shape must be within ±100, got %v", shape)
	}
	const rootTwoOverPi = 0.79788456080286535588
	d := SkewNormal{delta: shape / math.Sqrt(1+float64(shape*shape)), within: within}
	center := float64(d.delta * rootTwoOverPi)
	d.rest = math.Sqrt(1 - float64(d.delta*d.delta))
	d.scale = deviation / math.Sqrt(1-float64(center*center))
	d.location = mean - float64(d.scale*center)
	return d, shareFault(d.share(shape))
}

// share is how much of the distribution the range leaves, by Simpson's rule over the density 2 φ(z) Φ(shape·z).
func (d SkewNormal) share(shape float64) float64 {
	least, most := float64(d.within.Least)-0.5, float64(d.within.Most)+0.5
	if d.scale == 0 {
		if d.location < least || d.location >= most {
			return 0
		}
		return 1
	}
	const steps, far = 4000, 9
	from, to := max((least-d.location)/d.scale, -far), min((most-d.location)/d.scale, far)
	if from >= to {
		return 0
	}
	sum, width := 0.0, (to-from)/steps
	for i := 0; i <= steps; i++ {
		z := from + float64(i)*width
		weight := 2.0
		switch {
		case i == 0 || i == steps:
			weight = 1
		case i%2 == 1:
			weight = 4
		}
		sum += weight * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * math.Erfc(-shape*z/math.Sqrt2)
	}
	return sum * width / 3
}

// Draw returns the next number.
func (d SkewNormal) Draw(s *Source) int64 {
	for {
		first, second := normal(s), normal(s)
		z := float64(d.delta*first) + float64(d.rest*second)
		if first < 0 {
			z = -z
		}
		if k, ok := d.within.nearest(d.location + float64(d.scale*z)); ok {
			return k
		}
	}
}

// Poisson draws whole numbers: Poisson-distributed ones, drawn anew until they are within a range.
type Poisson struct {
	mean   uint64 // in units of 1/One
	within Range
}

// MaxPoisson is the largest mean of a Poisson distribution: a draw takes so many exponential ones.
const MaxPoisson = 10_000

// NewPoisson returns the distribution of that mean, above 0 and at most MaxPoisson. The range must leave a thousandth of it.
func NewPoisson(mean float64, within Range) (Poisson, error) {
	if err := within.fault(); err != nil {
		return Poisson{}, err
	}
	if !(mean > 0 && mean <= MaxPoisson) {
		return Poisson{}, fmt.Errorf("the mean must be above 0 and at most %d, got %v", MaxPoisson, mean)
	}
	share := 0.0
	far := int64(mean + 12*math.Sqrt(mean) + 12)
	for k := max(0, within.Least); k <= min(within.Most, far); k++ {
		gamma, _ := math.Lgamma(float64(k + 1))
		share += math.Exp(float64(k)*math.Log(mean) - mean - gamma)
	}
	return Poisson{fixed(mean), within}, shareFault(share)
}

// Draw returns the next number: how many exponential gaps of mean 1 fit into the mean.
func (p Poisson) Draw(s *Source) int64 {
	for {
		k := int64(0)
		for left := p.mean; ; k++ {
			gap := s.Exponential()
			if gap > left {
				break
			}
			left -= gap
		}
		if k >= p.within.Least && k <= p.within.Most {
			return k
		}
	}
}
