package stats

import (
	"math"
	"sort"
)

// binomial is P(X ≤ k) of n trials that each come true with chance p.
func binomial(k, n int64, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return beta(float64(n-k), float64(k+1), 1-p)
}

// beta is the regularized incomplete beta function I_x(a, b), by its continued fraction (Lentz's method).
func beta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - beta(b, a, 1-x)
	}
	front := math.Exp(a*math.Log(x)+b*math.Log1p(-x)-logBeta(a, b)) / a
	return front * betaFraction(a, b, x)
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// betaFraction needs some √max(a,b) terms.
func betaFraction(a, b, x float64) float64 {
	const tiny, enough = 1e-300, 1e-15
	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < 1e6; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/away(1+even*d), away(1+even/c)
		f *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/away(1+odd*d), away(1+odd/c)
		f *= d * c
		if math.Abs(d*c-1) < enough {
			break
		}
	}
	return f
}

// normal is the quantile of the standard normal distribution.
func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// normalBelow is P(Z ≤ z) of the standard normal distribution.
func normalBelow(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// student is the quantile of Student's t with df degrees of freedom, for p from 0.5 to below 1.
func student(p, df float64) float64 {
	above := func(t float64) float64 { return beta(df/2, 0.5, df/(df+t*t)) / 2 }
	low, high := 0.0, 1.0
	for above(high) > 1-p {
		low, high = high, 2*high
	}
	for range 100 {
		if mid := (low + high) / 2; above(mid) > 1-p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// firstOf is the least k from low to high for which a claim holds that, once true, stays true; high when it never does.
func firstOf(low, high int64, holds func(k int64) bool) int64 {
	return low + int64(sort.Search(int(high-low), func(i int) bool { return holds(low + int64(i)) }))
}
