package stats

import "math"

// Level is a quantile and the share of values at or below it.
type Level struct {
	PPM   int64   // parts per million
	Value float64 // by nearest rank, as Quantile gives it
}

// Curve gives the quantiles at every half percent, and finer towards the ends: the distribution function, in 0 to 211 levels,
// without those that so few values cannot tell apart from the one before. It holds every level that has a name here.
func (d *Distribution) Curve() (curve []Level) {
	rank := int64(-1)
	for _, ppm := range curveLevels() {
		if r := rankOf(d.n, ppm); r == rank && !named(ppm) {
			continue
		} else {
			rank = r
		}
		if v, ok := d.Quantile(ppm); ok {
			curve = append(curve, Level{ppm, v})
		}
	}
	return curve
}

func curveLevels() (levels []int64) {
	const step = 5_000
	for ppm := int64(0); ppm < P99; ppm += step {
		levels = append(levels, ppm)
	}
	for ppm := int64(P99); ppm < P999; ppm += 1_000 {
		levels = append(levels, ppm)
	}
	return append(levels, P999, 999_500, 999_900, 1_000_000)
}

func named(ppm int64) bool {
	switch ppm {
	case 0, P1, P5, P10, P25, P50, P75, P90, P95, P99, P999, 1_000_000:
		return true
	}
	return false
}

// Histogram counts the values between neighbouring edges, each with its lower edge and without its upper one but the last, which has
// both. The edges run from the least value to the greatest, in equal steps, or in equal ratios where the greatest is more than ten times
// the least. Without two different values there is none.
type Histogram struct {
	Edges  []float64 // one more than there are counts
	Counts []int64
}

// Histogram makes one of at most so many bins. Values of one bucket stand together, at their mean.
func (d *Distribution) Histogram(bins int) (h Histogram) {
	low, high := float64(d.min), float64(d.max)
	if d.n == 0 || low >= high || bins < 1 {
		return Histogram{}
	}
	h = Histogram{Edges: edges(low, high, bins), Counts: make([]int64, bins)}
	i := 0
	for c := range d.cells {
		for i < bins-1 && c.mean >= h.Edges[i+1] {
			i++
		}
		h.Counts[i] += c.count
	}
	return h
}

func edges(low, high float64, bins int) []float64 {
	const wide = 10
	all := make([]float64, bins+1)
	for i := range all {
		part := float64(i) / float64(bins)
		if low > 0 && high/low > wide {
			all[i] = low * math.Pow(high/low, part)
		} else {
			all[i] = low + (high-low)*part
		}
	}
	all[bins] = high
	return all
}
