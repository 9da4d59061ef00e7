package stats

// Share is the share of yes among requests and its 95 % interval: that of Clopper and Pearson (1934), for as many as the requests are
// worth. It is never narrower than the level asks for. ok is false for none.
func Share(yes int64, d Dependence) (i Interval, ok bool) {
	if d.N <= 0 {
		return Interval{}, false
	}
	const half = 0.025
	n := d.Effective()
	i = Interval{Mean: float64(yes) / float64(d.N), High: 1}
	k := i.Mean * n
	if yes > 0 {
		i.Low = betaQuantile(half, k, n-k+1)
	}
	if yes < d.N {
		i.High = betaQuantile(1-half, k+1, n-k)
	}
	return i, true
}

// betaQuantile is the x in [0, 1] with I_x(a, b) = p, by bisection.
func betaQuantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if mid := (low + high) / 2; beta(a, b, mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}
