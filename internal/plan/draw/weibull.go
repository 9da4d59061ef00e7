package draw

// Weibull draws Weibull-distributed numbers of mean 1: E^(1/shape)/Γ(1+1/shape), where E is exponential.
type Weibull struct {
	shape  float64
	center float64 // ln Γ(1+1/shape)
}

// NewWeibull returns the distribution of that shape, which must be within 0.2 and 100. Its numbers are cut off at 2¹⁵, which
// takes less than 10⁻⁴ off the mean, and nothing from shape 0.3 on.
func NewWeibull(shape float64) Weibull { return Weibull{shape, logGamma(1 + 1/shape)} }

// Draw returns the next number in units of 1/One.
func (w Weibull) Draw(s *Source) uint64 {
	return fixed(exp(logExponential(s)/w.shape - w.center))
}

// logExponential returns the logarithm of an exponential number.
func logExponential(s *Source) float64 { return log(float64(max(s.Exponential(), 1)) / One) }

// Residual draws how long it is until the next event of a process of Weibull gaps that has been going on forever, in units
// of 1/One: a uniform part of a gap drawn in proportion to its length, whose shape-th power is gamma-distributed.
func (w Weibull) Residual(s *Source) uint64 {
	g := NewGamma(1 + 1/w.shape)
	power := float64(float64(g.Draw(s)) / One * g.shape)
	if power == 0 {
		return 0
	}
	return part(s, exp(log(power)/w.shape-w.center))
}

// Residual draws how long it is until the next event of a process of gamma gaps that has been going on forever, in units of
// 1/One: a uniform part of a gap drawn in proportion to its length, which is gamma-distributed with one more in its shape.
func (g Gamma) Residual(s *Source) uint64 {
	long := NewGamma(g.shape + 1)
	return part(s, float64(float64(long.Draw(s))/One*(long.shape/g.shape)))
}

// part returns a uniform part of x in units of 1/One.
func part(s *Source, x float64) uint64 {
	return fixed(float64(x * (float64(s.Uint64()>>11) / (1 << 53))))
}
