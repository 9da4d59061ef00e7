package draw

import "math"

// What follows computes in float64 with nothing but + − × ÷ √, comparisons and exact scaling, and with an explicit conversion
// around every product: a conversion forbids the compiler to fuse the product with an addition, so that every architecture
// gives the same bits. Note: math.Log, Exp, Pow and Lgamma differ between architectures in the last bits; do not use them.

// fixed returns x ≥ 0 in units of 1/One, at most 2¹⁵.
func fixed(x float64) uint64 {
	if x >= 1<<15 {
		return 1<<63 - 1
	}
	return uint64(int64(float64(x * One)))
}

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

// exp returns eˣ, 0 where that is below e⁻⁶⁹⁰ and e⁶⁹⁰ where it is above.
func exp(x float64) float64 {
	if x < -690 {
		return 0
	}
	x = min(x, 690)
	half := 0.5
	if x <= 0 {
		half = -half
	}
	n := int64(x/ln2 + half)
	r := (x - float64(float64(n)*ln2High)) - float64(float64(n)*ln2Low)
	sum := 1.0
	for k := 14; k >= 1; k-- {
		sum = 1 + float64(r*sum)/float64(k)
	}
	return float64(sum * math.Float64frombits(uint64(1023+n)<<52))
}

// logGamma returns ln Γ(x) for x ≥ 1, by Stirling's series, which is good to the last bits from 16 on.
func logGamma(x float64) float64 {
	below := 1.0
	for ; x < 16; x++ {
		below = float64(below * x)
	}
	inverse := 1 / x
	square := float64(inverse * inverse)
	series := 0.0
	for _, c := range [...]float64{1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12} {
		series = float64(series*square) + c
	}
	const halfLogTwoPi = 0.91893853320467274178
	return float64((x-0.5)*log(x)) - x + halfLogTwoPi + float64(series*inverse) - log(below)
}
