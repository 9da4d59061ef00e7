package draw

import "math"

// Gamma draws gamma-distributed numbers of mean 1 and coefficient of variation 1/√shape.
//
// It computes in float64, with nothing but + − × ÷ √, comparisons and exact scaling, and an explicit conversion around
// every product: a conversion forbids the compiler to fuse it with an addition, so that every architecture gives the
// same bits. Note: math.Log, Exp and Pow differ between architectures in the last bit; do not use them here.
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
	if x >= 1<<15 {
		return 1<<63 - 1
	}
	return uint64(int64(float64(x * One)))
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

const (
	ln2     = 6.93147180559945286227e-01
	ln2High = 6.93147180369123816490e-01 // the upper bits, so that multiples are exact
	ln2Low  = 1.90821492927058770002e-10
)

// log returns ln x for a normal positive x: x = m·2ᵉ with m near 1, ln m = 2 atanh((m−1)/(m+1)).
func log(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	z := (m - 1) / (m + 1)
	square := float64(z * z)
	sum := 0.0
	for n := 21; n >= 3; n -= 2 {
		sum = float64((sum + 1/float64(n)) * square)
	}
	return float64(float64(e)*ln2) + float64(2*(z+float64(z*sum)))
}

// exp returns eˣ for x ≤ 0, and 0 where that is below 2⁻¹⁰⁰⁰.
func exp(x float64) float64 {
	if x < -690 {
		return 0
	}
	n := int64(x/ln2 - 0.5)
	r := (x - float64(float64(n)*ln2High)) - float64(float64(n)*ln2Low)
	sum := 1.0
	for k := 14; k >= 1; k-- {
		sum = 1 + float64(r*sum)/float64(k)
	}
	return float64(sum * math.Float64frombits(uint64(1023+n)<<52))
}
