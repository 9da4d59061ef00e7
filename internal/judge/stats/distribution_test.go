package stats_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tare/internal/judge/stats"
)

func gather(values ...int64) *stats.Distribution {
	d := new(stats.Distribution)
	for _, v := range values {
		d.Add(v)
	}
	return d
}

// sample draws values of every size: small counts, nanoseconds of latencies, both signs, the limits of the type.
func sample(rng *rand.Rand, n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		switch rng.IntN(6) {
		case 0:
			values[i] = rng.Int64N(1024)
		case 1:
			values[i] = -rng.Int64N(1_000_000)
		case 2:
			values[i] = int64(50e6)
		case 3:
			values[i] = []int64{math.MaxInt64, math.MinInt64, 0, 511, 512, 1023, 1024, -1}[rng.IntN(8)]
		default:
			values[i] = int64(math.Exp(rng.NormFloat64()*2 + 16))
		}
	}
	return values
}

func TestAnyOrderAndPartitionGivesTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		values := sample(rng, 1+rng.IntN(2000))
		want := gather(values...)
		rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		parts := make([]*stats.Distribution, 1+rng.IntN(5))
		for i := range parts {
			parts[i] = new(stats.Distribution)
		}
		for _, v := range values {
			parts[rng.IntN(len(parts))].Add(v)
		}
		got := new(stats.Distribution)
		for _, i := range rng.Perm(len(parts)) {
			got.Merge(parts[i])
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %d values in %d parts merge to another state", round, len(values), len(parts))
		}
	}
}

func TestMergeLeavesItsArgumentAlone(t *testing.T) {
	a, b, want := gather(1, 2_000_000), gather(3, 4_000_000), gather(3, 4_000_000)
	a.Merge(b)
	a.Add(5)
	if !reflect.DeepEqual(b, want) {
		t.Errorf("the merged part changed")
	}
}

func TestMeanAndExtremesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		values := sample(rng, 1+rng.IntN(500))
		d := gather(values...)
		sum := new(big.Int)
		for _, v := range values {
			sum.Add(sum, big.NewInt(v))
		}
		want, _ := new(big.Rat).SetFrac(sum, big.NewInt(int64(len(values)))).Float64()
		if got, ok := d.Mean(); !ok || got != want {
			t.Errorf("mean: got %v %v, want %v", got, ok, want)
		}
		if got, _ := d.Min(); got != slices.Min(values) {
			t.Errorf("min: got %d, want %d", got, slices.Min(values))
		}
		if got, _ := d.Max(); got != slices.Max(values) {
			t.Errorf("max: got %d, want %d", got, slices.Max(values))
		}
		if d.N() != int64(len(values)) {
			t.Errorf("n: got %d, want %d", d.N(), len(values))
		}
	}
}

func TestQuantileIsWithinItsBucketOfTheNearestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		values := sample(rng, 1+rng.IntN(3000))
		d := gather(values...)
		slices.Sort(values)
		for _, ppm := range []int64{0, stats.P1, stats.P5, stats.P10, stats.P25, stats.P50, stats.P75, stats.P90, stats.P95, stats.P99, stats.P999, 1_000_000} {
			rank := max(1, (int64(len(values))*ppm+999_999)/1_000_000)
			want := float64(values[rank-1])
			got, ok := d.Quantile(ppm)
			if !ok || math.Abs(got-want) > math.Abs(want)/512 {
				t.Errorf("quantile %d of %d values: got %v, want %v", ppm, len(values), got, want)
			}
		}
	}
}

func TestQuantileOfEqualValuesIsTheValue(t *testing.T) {
	for _, v := range []int64{0, 1, -7, 1023, 50_000_001, -123_456_789, 1<<52 + 1} {
		d := new(stats.Distribution)
		d.AddN(v, 1000)
		for _, ppm := range []int64{stats.P1, stats.P50, stats.P999} {
			if got, ok := d.Quantile(ppm); !ok || got != float64(v) {
				t.Errorf("quantile %d of a constant: got %v, want %d", ppm, got, v)
			}
		}
	}
}

func TestSmallCountsHaveExactQuantiles(t *testing.T) {
	d := new(stats.Distribution)
	for v := range int64(1000) {
		d.Add(v + 1)
	}
	for ppm, want := range map[int64]float64{stats.P50: 500, stats.P99: 990, stats.P999: 999, stats.P1: 10} {
		if got, _ := d.Quantile(ppm); got != want {
			t.Errorf("quantile %d of 1…1000: got %v, want %v", ppm, got, want)
		}
	}
}

func TestEmptyDistributionHasNoValues(t *testing.T) {
	var d stats.Distribution
	d.AddN(5, 0)
	d.Merge(new(stats.Distribution))
	if _, ok := d.Quantile(stats.P50); ok {
		t.Error("quantile of nothing is ok")
	}
	if _, ok := d.Mean(); ok {
		t.Error("mean of nothing is ok")
	}
	if _, ok := d.Max(); ok {
		t.Error("max of nothing is ok")
	}
}

func TestBackedFollowsTheOrderStatistics(t *testing.T) {
	tests := []struct{ ppm, least int64 }{{stats.P90, 36}, {stats.P95, 72}, {stats.P99, 368}, {stats.P999, 3688}, {stats.P1, 368}, {stats.P50, 6}}
	for _, tt := range tests {
		if stats.Backed(tt.least-1, tt.ppm) || !stats.Backed(tt.least, tt.ppm) {
			t.Errorf("quantile %d: want exactly %d values to back it", tt.ppm, tt.least)
		}
	}
}

func TestAddDoesNotAllocateInAKnownOctave(t *testing.T) {
	d := gather(50_000_000)
	if got := testing.AllocsPerRun(100, func() { d.Add(50_000_123) }); got != 0 {
		t.Errorf("allocations per value: got %v, want 0", got)
	}
}

func BenchmarkAdd(b *testing.B) {
	d := new(stats.Distribution)
	rng := rand.New(rand.NewPCG(7, 8))
	values := sample(rng, 4096)
	for i := 0; b.Loop(); i++ {
		d.Add(values[i&4095])
	}
}
