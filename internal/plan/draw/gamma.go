package draw

import "math"

// Gamma draws gamma-distributed numbers of mean 1 and coefficient of variation 1/√shape.
//
// It computes in rounded float64: see rounded.go.
type Gamma struct {
	shape float64
	boost bool // shape below 1: draw from shape + 1 and scale by u^(1/shape)
	d, c  float64
}

// NewGamma returns the distribution of that shape, which must be within 0.05 and 100.
func NewGamma(shape float64) Gamma {
	g := Gamma{shape: shape, boost: shape < 1}
	if g.boost {
		shape++
	}
	g.d = shape - 1.0/3
	g.c = 1 / math.Sqrt(float64(9*g.d))
	return g
}

// Draw returns the next number in units of 1/One.
func (g Gamma) Draw(s *Source) uint64 {
	x := float64(g.d*g.cube(s)) / g.shape
	if g.boost {
		x = float64(x * exp(-float64(s.Exponential())/One/g.shape))
	}
	return fixed(x)
}

// cube returns Marsaglia and Tsang's v = (1 + c·normal)³, accepted so that d·v is gamma-distributed.
func (g Gamma) cube(s *Source) float64 {
	for {
		x := normal(s)
		root := 1 + float64(g.c*x)
		if root <= 0 {
			continue
		}
		v := float64(float64(root*root) * root)
		bound := float64(float64(x*x)/2) + float64(g.d*(1-v+log(v)))
		if -float64(s.Exponential())/One < bound {
			return v
		}
	}
}
