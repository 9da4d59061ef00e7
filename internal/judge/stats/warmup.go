package stats

// mserBatch is how many bins MSER-5 takes together.
const mserBatch = 5

// SteadyFrom returns how many bins to leave out as warm-up: as many as MSER-5 finds (White 1997), and at least the declared number. MSER
// cuts where the standard error of the mean of what remains is least. steady is false when that is not before the middle of the
// series, when the series has fewer than 50 bins, or when nothing is left: then no steady state was seen.
func SteadyFrom(bins []float64, declared int) (from int, steady bool) {
	declared = max(declared, 0)
	batches := batchMeans(bins, mserBatch)
	m := len(batches)
	if m < 10 {
		return declared, false
	}
	cut := mser(batches)
	from = max(cut*mserBatch, declared)
	return from, cut < m/2 && from < len(bins)
}

// mser is argmin over d ≤ m/2 of Σ_{j>d}(Y_j−Ȳ_d)²/(m−d)², the first of equals. The sums are taken from the end and corrected by the mean.
func mser(y []float64) (cut int) {
	m := len(y)
	mean, squares, n := 0.0, 0.0, 0.0 // of what remains
	least := 0.0
	for d := m - 1; d >= 0; d-- {
		n++
		off := y[d] - mean
		mean += off / n
		squares += off * (y[d] - mean)
		if d > m/2 {
			continue
		}
		if score := squares / (n * n); d == m/2 || score <= least {
			least, cut = score, d
		}
	}
	return cut
}

// batchMeans are the means of batches of a size; an incomplete last one is left out.
func batchMeans(values []float64, size int) (means []float64) {
	for ; len(values) >= size; values = values[size:] {
		means = append(means, meanOf(values[:size]))
	}
	return means
}
