package stats

import "math"

// Interval is a mean and its 95 % interval.
type Interval struct{ Mean, Low, High float64 }

// HalfWidth is half the length of the interval over the mean's magnitude. ok is false for a mean of 0.
func (i Interval) HalfWidth() (share float64, ok bool) {
	if i.Mean > 0 || i.Mean < 0 {
		return (i.High - i.Low) / 2 / math.Abs(i.Mean), true
	}
	return 0, false
}

// Replications is what runs of the same plan say together: one value of each.
type Replications struct {
	Interval
	Runs      int
	Variation float64 // standard deviation over the mean's magnitude; 0 for a mean of 0
}

// Replicate gives the interval of the mean of independent runs, by Student's t with n−1 degrees of freedom. What differs from run to
// run (placement, clocks, caches) is in it, and never in the interval of one run. ok is false for fewer than two.
func Replicate(values []float64) (r Replications, ok bool) {
	if len(values) < 2 {
		return Replications{}, false
	}
	mean, variance := moments(values)
	r = Replications{Interval: around(mean, variance, len(values)), Runs: len(values)}
	if mean > 0 || mean < 0 {
		r.Variation = math.Sqrt(variance) / math.Abs(mean)
	}
	return r, true
}

// around is the t interval of a mean of n values with that sample variance.
func around(mean, variance float64, n int) Interval {
	half := student(0.975, float64(n-1)) * math.Sqrt(variance/float64(n))
	return Interval{mean, mean - half, mean + half}
}

// moments are the mean and the sample variance of two values or more.
func moments(values []float64) (mean, variance float64) {
	mean = meanOf(values)
	for _, v := range values {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(values)-1)
}

// Batches is the interval of a mean over time, such as a throughput, by the means of equal batches.
type Batches struct {
	Interval
	Batches    int
	Size       int     // bins in a batch
	Neighbours float64 // correlation of a batch with the next
	Time       float64 // τ of the bins
}

const (
	leastBatches = 20
	mostBatches  = 30
	mostAlike    = 0.2 // correlation of neighbouring batches up to which they pass for independent
	leastTimes   = 10  // length of a batch in correlation times
)

// BatchMeans gives the interval of the mean of a series in 20 to 30 equal batches, as many as leave the fewest bins out at the series'
// start; of equals the most. ok is false for fewer than 40 bins.
func BatchMeans(bins []float64) (b Batches, ok bool) {
	if len(bins) < 2*leastBatches {
		return Batches{}, false
	}
	count := leastBatches
	for c := leastBatches; c <= mostBatches; c++ {
		if len(bins)/c >= 2 && len(bins)%c <= len(bins)%count {
			count = c
		}
	}
	used := bins[len(bins)%count:]
	b = Batches{Batches: count, Size: len(used) / count, Time: Depend(used).Time}
	means := batchMeans(used, b.Size)
	mean, variance := moments(means)
	b.Interval = around(mean, variance, count)
	b.Neighbours = neighbours(means)
	return b, true
}

// Independent reports whether the batches may pass for independent of each other, so that the interval can be believed: neighbours correlate
// by less than 0.2, and a batch is ten correlation times long. Of independent series one in six fails the former by chance.
func (b Batches) Independent() bool {
	return b.Neighbours < mostAlike && float64(b.Size) >= leastTimes*b.Time
}

// neighbours is the correlation at lag 1; 0 for a constant.
func neighbours(values []float64) float64 {
	mean := meanOf(values)
	both, all := 0.0, 0.0
	for i, v := range values {
		all += (v - mean) * (v - mean)
		if i > 0 {
			both += (v - mean) * (values[i-1] - mean)
		}
	}
	if all <= 0 {
		return 0
	}
	return both / all
}
