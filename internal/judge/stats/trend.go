package stats

import "math"

// Line is a straight line through a series.
type Line struct {
	Slope float64 // per unit of x
	Error float64 // standard error of Slope
}

// NeweyWestLags is the usual bandwidth for n values: ⌊4·(n/100)^(2/9)⌋.
func NeweyWestLags(n int) int { return int(4 * math.Pow(float64(n)/100, 2.0/9)) }

// Trend fits a line by least squares. Its error allows for values that depend on each other up to a number of lags (Newey and West
// 1987, Bartlett's weights, corrected by n/(n−2)). ok is false for fewer than three points, and for x all alike.
func Trend(x, y []float64, lags int) (line Line, ok bool) {
	n := len(x)
	if n < 3 || len(y) != n {
		return Line{}, false
	}
	mx, my := meanOf(x), meanOf(y)
	xx, xy := 0.0, 0.0
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	if xx <= 0 {
		return Line{}, false
	}
	line.Slope = xy / xx
	scores := make([]float64, n)
	for i := range x {
		scores[i] = (x[i] - mx) * (y[i] - my - line.Slope*(x[i]-mx))
	}
	line.Error = math.Sqrt(max(longRun(scores, lags), 0)*float64(n)/float64(n-2)) / xx
	return line, true
}

// longRun is the sum of products of the scores with each other, falling off to 0 beyond the lags.
func longRun(scores []float64, lags int) (sum float64) {
	for lag := 0; lag <= min(lags, len(scores)-1); lag++ {
		products := 0.0
		for i := lag; i < len(scores); i++ {
			products += scores[i] * scores[i-lag]
		}
		if lag > 0 {
			products *= 2 * (1 - float64(lag)/float64(lags+1))
		}
		sum += products
	}
	return sum
}
