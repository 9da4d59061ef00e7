package draw

import "math/bits"

// One is 1 in the fixed-point numbers that the samplers return: 16 bits before the binary point and 48 after it.
const One = 1 << 48

// Exponential returns an exponential number of mean 1 in units of 1/One: −ln u, at most 44.4.
func (s *Source) Exponential() uint64 { return minusLog(max(s.Uint64(), 1)) }

const (
	halfRoot = 0xB504F333F9DE6485 // 2⁶⁴/√2
	log2     = 0x02C5C85FDF473DE7 // ln 2 · 2⁵⁸
)

// odd holds 2⁶⁴/(2j+1), the coefficients of atanh z = z + z³/3 + z⁵/5 …
var odd = [...]uint64{
	0, // j = 0 is 1, added apart
	0x5555555555555555, 0x3333333333333333, 0x2492492492492492, 0x1C71C71C71C71C72, 0x1745D1745D1745D1,
	0x13B13B13B13B13B1, 0x1111111111111111, 0x0F0F0F0F0F0F0F0F, 0x0D79435E50D79436, 0x0C30C30C30C30C31,
}

// minusLog returns −ln(u/2⁶⁴) in units of 2⁻⁴⁸, to the last bit but one. u is not 0.
//
// It uses integers only, so that every architecture gives the same bits: u/2⁶⁴ = f·2⁻ᵉ with f in [½, 1), and
// ln f = −½ ln 2 + 2 atanh((f − 1/√2)/(f + 1/√2)).
func minusLog(u uint64) uint64 {
	e := bits.LeadingZeros64(u)
	f := u << e
	above := f >= halfRoot
	distance := halfRoot - f
	if above {
		distance = f - halfRoot
	}
	z, _ := bits.Div64(distance>>1, distance<<63, f>>1+halfRoot>>1)
	square := product(z, z)
	sum := odd[len(odd)-1]
	for j := len(odd) - 2; j > 0; j-- {
		sum = odd[j] + product(sum, square)
	}
	tail := (z + product(z, product(sum, square))) >> 5 // 2 atanh z in units of 2⁻⁵⁸
	x := uint64(e)*log2 + log2/2
	switch {
	case !above:
		x += tail
	case tail > x:
		x = 0
	default:
		x -= tail
	}
	return (x + 1<<9) >> 10
}

// product multiplies two fractions in units of 2⁻⁶⁴.
func product(a, b uint64) uint64 {
	high, _ := bits.Mul64(a, b)
	return high
}
