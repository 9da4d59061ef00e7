package draw_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"tare/internal/plan/draw"
)

// must is for distributions that a test knows to be possible.
func must[D any](t testing.TB) func(D, error) D {
	return func(d D, err error) D {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func signed(next func(*draw.Source) int64) func(*draw.Source) uint64 {
	return func(s *draw.Source) uint64 { return uint64(next(s)) }
}

func normal(t testing.TB, mean, deviation float64, least, most int64) draw.Normal {
	return must[draw.Normal](t)(draw.NewNormal(mean, deviation, draw.Range{Least: least, Most: most}))
}

func lognormal(t testing.TB, mean, deviation float64, least, most int64) draw.Lognormal {
	return must[draw.Lognormal](t)(draw.LognormalOf(mean, deviation, draw.Range{Least: least, Most: most}))
}

func skewNormal(t testing.TB, mean, deviation, shape float64, least, most int64) draw.SkewNormal {
	return must[draw.SkewNormal](t)(draw.NewSkewNormal(mean, deviation, shape, draw.Range{Least: least, Most: most}))
}

func poisson(t testing.TB, mean float64, least, most int64) draw.Poisson {
	return must[draw.Poisson](t)(draw.NewPoisson(mean, draw.Range{Least: least, Most: most}))
}

func zipf(t testing.TB, exponent float64, n int) draw.Categorical {
	return must[draw.Categorical](t)(draw.NewZipf(exponent, n))
}

func categorical(t testing.TB, weights ...float64) draw.Categorical {
	return must[draw.Categorical](t)(draw.NewCategorical(weights))
}

var bars = []draw.Bucket{
	{Range: draw.Range{Least: 1, Most: 10}, Weight: 0.3}, {Range: draw.Range{Least: 50, Most: 50}, Weight: 0.2},
	{Range: draw.Range{Least: 100, Most: 100_000}, Weight: 0.5},
}

func histogram(t testing.TB) draw.Histogram {
	return must[draw.Histogram](t)(draw.NewHistogram(bars))
}

func index(c draw.Categorical) func(*draw.Source) int64 {
	return func(s *draw.Source) int64 { return int64(c.Draw(s)) }
}

// It pins every bit of a million draws. Run it on other architectures too: all must agree.
func TestAMillionDrawsAreTheSameEverywhere(t *testing.T) {
	const million, block = 1_000_000, 1000
	for _, tc := range []struct {
		name string
		next func(*draw.Source) uint64
		want string
	}{
		{"exponential", exponential, "834ce6856283a36b121c71db01adba636fa55a1406cffd02a902406d671d340f"},
		{"gamma 0.3", gamma(0.3), "8f7173db57604d511dfbf42e5551c23e7be908042a5bb2dbfc3020124488fccb"},
		{"gamma 7", gamma(7), "7f5c5f950e3b4c61de21804f9aa0ba0b5e8a63fda6f3688bcc7089d93739c4a0"},
		{"weibull 0.3", draw.NewWeibull(0.3).Draw, "0e90402e325838fb85634f77a7fca06da743782f3e851b20df06390fb45d3388"},
		{"weibull 4", draw.NewWeibull(4).Draw, "0d16779e84c0960e7900b6e23f9bb53ddb3727acb8d9d9f9cf64391065f9eb05"},
		{"residual of gamma 0.3", draw.NewGamma(0.3).Residual, "15c46165769b6b5d1e6d1ec47c51ddf099aac42e5774bef29c65f46bae8cb5a0"},
		{"residual of weibull 0.4", draw.NewWeibull(0.4).Residual, "1bf34e607df10ea5a13ca183ae87974cd85939686f3e3d274cd9516ddcab7beb"},
		{"uniform", signed(draw.Range{Least: -1000, Most: 1e9}.Draw), "335531d89d3657644d9094a02eeae16e82521de793b6d70afa433beeeba2929e"},
		{"normal", signed(normal(t, 1000, 300, -1e6, 1e6).Draw), "d237407e2cc1495327bd5ce97f024f7592d833de0e2083825f9d201cd0a80b12"},
		{"truncated normal", signed(normal(t, 0, 300, 100, 2000).Draw), "0941df95e28699c4f9552c4a628172fff890801067c0b0207f3f7fa59150d3d2"},
		{"lognormal", signed(lognormal(t, 1000, 2500, 1, 1<<40).Draw), "19f46ba11b6e46f43f6d4b0b85decca5d5a4e3f41b3f434cef41f8a17b432942"},
		{"truncated lognormal", signed(lognormal(t, 1000, 2500, 16, 4096).Draw), "9eb0a873175834773a79330965898bb8f02d7a79874179d39e137f801ee34a20"},
		{"skew-normal", signed(skewNormal(t, 128, 60, 4, 16, 512).Draw), "8d2bde43d3219339df98380b1c2b2aad8c98755f4c8ed977f4434de7b05c734c"},
		{"poisson", signed(poisson(t, 4, 1, 15).Draw), "27d974be3a86492f0678e8f22c3dc000786147176bd256af2f47b50c65b1ebae"},
		{"zipf 1.1", signed(index(zipf(t, 1.1, 100_000))), "2ec6ba136a35b38f33597358a160a407c53e6a0c3e7536e62f320d06d4d5ff77"},
		{"categorical", signed(index(categorical(t, 5, 0, 1, 2))), "d4e1212b600a3f10cdd2d76d31932044d83fc668048a214a47c23e9247be244e"},
		{"histogram", signed(histogram(t).Draw), "9dd5b18b47a003bd967652e098b30f4a4a552a6b86e0099dba2a2b1333b4593a"},
	} {
		s, h, row := draw.New(1, "million"), sha256.New(), make([]byte, 0, 8*block)
		for i := range uint64(million / block) {
			s.Seek(i)
			row = row[:0]
			for range block {
				row = binary.BigEndian.AppendUint64(row, tc.next(s))
			}
			h.Write(row)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != tc.want {
			t.Errorf("%s: SHA-256 of a million draws: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// erlang is the distribution function of gamma numbers of a whole shape and mean 1.
func erlang(shape int, x float64) float64 {
	term, sum := 1.0, 0.0
	for n := range shape {
		if n > 0 {
			term *= x * float64(shape) / float64(n)
		}
		sum += term
	}
	return 1 - math.Exp(-x*float64(shape))*sum
}

// Kolmogorov and Smirnov: the largest distance of the observed from the exact distribution function, times √n, is above 1.95
// in one of a thousand samples. The seed is fixed.
func TestContinuousSamplersFollowTheirDistribution(t *testing.T) {
	weibull := func(c float64) func(x float64) float64 {
		return func(x float64) float64 { return -math.Expm1(-math.Pow(x*math.Gamma(1+1/c), c)) }
	}
	for _, tc := range []struct {
		name string
		next func(*draw.Source) uint64
		cdf  func(x float64) float64
	}{
		{"exponential", exponential, func(x float64) float64 { return -math.Expm1(-x) }},
		{"gamma 0.5", gamma(0.5), func(x float64) float64 { return math.Erf(math.Sqrt(x / 2)) }},
		{"gamma 1", gamma(1), func(x float64) float64 { return erlang(1, x) }},
		{"gamma 3", gamma(3), func(x float64) float64 { return erlang(3, x) }},
		{"gamma 50", gamma(50), func(x float64) float64 { return erlang(50, x) }},
		{"weibull 0.3", draw.NewWeibull(0.3).Draw, weibull(0.3)},
		{"weibull 1", draw.NewWeibull(1).Draw, weibull(1)},
		{"weibull 2.5", draw.NewWeibull(2.5).Draw, weibull(2.5)},
		{"weibull 100", draw.NewWeibull(100).Draw, weibull(100)},
		{"residual of gamma 1", draw.NewGamma(1).Residual, func(x float64) float64 { return -math.Expm1(-x) }},
		{"residual of gamma 3", draw.NewGamma(3).Residual, func(x float64) float64 {
			// ∫₀ˣ (1−F) = x(1−F(x)) + the part of the mean below x, which is the function of one more in the shape
			return x*(1-erlang(3, x)) + erlang(4, x*3/4)
		}},
		{"residual of weibull 1", draw.NewWeibull(1).Residual, func(x float64) float64 { return -math.Expm1(-x) }},
		{"residual of weibull 2", draw.NewWeibull(2).Residual, func(x float64) float64 { return math.Erf(x * math.Gamma(1.5)) }},
		{"residual of weibull 0.5", draw.NewWeibull(0.5).Residual, func(x float64) float64 { return erlang(2, math.Sqrt(2*x)/2) }},
	} {
		sample := series(draws, tc.next)
		slices.Sort(sample)
		most := 0.0
		for i, v := range sample {
			want := tc.cdf(float64(v) / draw.One)
			most = max(most, want-float64(i)/draws, float64(i+1)/draws-want)
		}
		if got := most * math.Sqrt(draws); !(got < 1.95) {
			t.Errorf("%s: Kolmogorov–Smirnov: got %.3f, want below 1.95", tc.name, got)
		}
	}
}

// below is the normal distribution function.
func below(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func TestDiscreteSamplersFollowTheirDistribution(t *testing.T) {
	harmonic := func(s float64, n int64) float64 {
		sum := 0.0
		for k := range n {
			sum += math.Pow(float64(k+1), -s)
		}
		return sum
	}
	for _, tc := range []struct {
		name string
		next func(*draw.Source) int64
		cdf  func(k int64) float64 // P(X ≤ k)
		from draw.Range
	}{
		{
			"uniform", draw.Range{Least: -3, Most: 12}.Draw, func(k int64) float64 { return float64(k+4) / 16 }, draw.Range{Least: -3, Most: 12},
		},
		{"normal", normal(t, 512, 100, -1e6, 1e6).Draw, func(k int64) float64 { return below((float64(k) + 0.5 - 512) / 100) }, draw.Range{Least: -1e6, Most: 1e6}},
		{"truncated normal", normal(t, 0, 40, 10, 64).Draw, func(k int64) float64 {
			least, most := below(9.5/40), below(64.5/40)
			return (below((float64(k)+0.5)/40) - least) / (most - least)
		}, draw.Range{Least: 10, Most: 64}},
		{"lognormal", lognormal(t, 1000, 2000, 1, 1<<40).Draw, func(k int64) float64 {
			sigma := math.Sqrt(math.Log(5))
			mu := math.Log(1000) - sigma*sigma/2
			least := below((math.Log(0.5) - mu) / sigma)
			return (below((math.Log(float64(k)+0.5)-mu)/sigma) - least) / (1 - least)
		}, draw.Range{Least: 1, Most: 1 << 40}},
		{"skew-normal", skewNormal(t, 300, 80, 1, -1e6, 1e6).Draw, func(k int64) float64 {
			center := 1 / math.Sqrt(math.Pi) // of shape 1, whose distribution function is the square of the normal one
			scale := 80 / math.Sqrt(1-center*center)
			part := below((float64(k) + 0.5 - 300 + scale*center) / scale)
			return part * part
		}, draw.Range{Least: -1e6, Most: 1e6}},
		{"poisson", poisson(t, 9, 2, 1000).Draw, func(k int64) float64 {
			sum, term := 0.0, math.Exp(-9)
			outside := term * 10
			for n := range k + 1 {
				if n > 0 {
					term *= 9 / float64(n)
				}
				sum += term
			}
			return (sum - outside) / (1 - outside)
		}, draw.Range{Least: 2, Most: 1000}},
		{"zipf 1.2", index(zipf(t, 1.2, 500)), func(k int64) float64 { return harmonic(1.2, k+1) / harmonic(1.2, 500) }, draw.Range{Least: 0, Most: 499}},
		{"zipf 0", index(zipf(t, 0, 64)), func(k int64) float64 { return float64(k+1) / 64 }, draw.Range{Least: 0, Most: 63}},
		{"categorical", index(categorical(t, 5, 0, 1, 2)), func(k int64) float64 { return []float64{5, 5, 6, 8}[k] / 8 }, draw.Range{Least: 0, Most: 3}},
		{"histogram", histogram(t).Draw, func(k int64) float64 {
			sum := 0.0
			for _, b := range bars {
				sum += b.Weight * min(1, max(0, float64(k-b.Least+1)/float64(b.Most-b.Least+1)))
			}
			return sum
		}, draw.Range{Least: 1, Most: 100_000}},
	} {
		sample := make([]int64, draws)
		for i, v := range series(draws, signed(tc.next)) {
			sample[i] = int64(v)
		}
		slices.Sort(sample)
		if sample[0] < tc.from.Least || sample[draws-1] > tc.from.Most {
			t.Errorf("%s: got %d to %d, want within %v", tc.name, sample[0], sample[draws-1], tc.from)
			continue
		}
		most := 0.0
		for i, v := range sample {
			if i+1 == draws || sample[i+1] != v {
				most = max(most, math.Abs(float64(i+1)/draws-tc.cdf(v)))
			}
		}
		if got := most * math.Sqrt(draws); !(got < 1.95) {
			t.Errorf("%s: Kolmogorov–Smirnov: got %.3f, want below 1.95", tc.name, got)
		}
	}
}

func TestAThingWithoutWeightIsNeverDrawn(t *testing.T) {
	c := categorical(t, 0, 3, 0, 1, 0)
	var count [5]int
	for _, k := range series(draws, signed(index(c))) {
		count[k]++
	}
	if count[0]+count[2]+count[4] != 0 || count[1] == 0 || count[3] == 0 || math.Abs(c.Share(1)-0.75) > 1e-9 || c.Share(2) != 0 {
		t.Errorf("draws: got %v, shares %v and %v, want none of 0, 2 and 4, and 0.75 and 0", count, c.Share(1), c.Share(2))
	}
}

func TestNoDeviationGivesTheMean(t *testing.T) {
	s := draw.New(1, "test")
	if got := normal(t, 99.6, 0, 1, 1000).Draw(s); got != 100 {
		t.Errorf("normal: got %d, want 100", got)
	}
	if got := lognormal(t, 700, 0, 1, 1000).Draw(s); got != 700 {
		t.Errorf("lognormal: got %d, want 700", got)
	}
}

func TestImpossibleDistributionsAreRefused(t *testing.T) {
	within := draw.Range{Least: 1, Most: 100}
	nan := math.NaN()
	for name, err := range map[string]error{
		"empty range":            second(draw.NewNormal(10, 1, draw.Range{Least: 5, Most: 4})),
		"huge range":             second(draw.NewNormal(10, 1, draw.Range{Least: 0, Most: math.MaxInt64})),
		"negative deviation":     second(draw.NewNormal(10, -1, within)),
		"no number":              second(draw.NewNormal(nan, 1, within)),
		"normal out of range":    second(draw.NewNormal(1000, 10, within)),
		"mean out of range":      second(draw.NewNormal(1000, 0, within)),
		"lognormal out of range": second(draw.NewLognormal(10, 0.1, within)),
		"lognormal of mean 0":    second(draw.LognormalOf(0, 1, within)),
		"lognormal too wide":     second(draw.NewLognormal(1, 11, within)),
		"no weights":             second(draw.NewCategorical(nil)),
		"weights of 0":           second(draw.NewCategorical([]float64{0, 0})),
		"negative weight":        second(draw.NewCategorical([]float64{1, -1})),
		"infinite weight":        second(draw.NewCategorical([]float64{1, math.Inf(1)})),
		"no ranks":               second(draw.NewZipf(1, 0)),
		"negative exponent":      second(draw.NewZipf(-1, 10)),
		"bucket":                 second(draw.NewHistogram([]draw.Bucket{{Range: draw.Range{Least: 2, Most: 1}, Weight: 1}})),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func second[D any](_ D, err error) error { return err }

func TestSamplersAllocateNothing(t *testing.T) {
	s := draw.New(1, "test")
	w, n, l, z, h := draw.NewWeibull(0.5), normal(t, 10, 5, 1, 20), lognormal(t, 10, 5, 1, 20), zipf(t, 1, 100), histogram(t)
	k, p := skewNormal(t, 10, 5, 3, 1, 30), poisson(t, 4, 1, 20)
	got := testing.AllocsPerRun(1000, func() {
		w.Draw(s)
		n.Draw(s)
		l.Draw(s)
		z.Draw(s)
		h.Draw(s)
		k.Draw(s)
		p.Draw(s)
	})
	if got != 0 {
		t.Errorf("allocations per draw: got %v, want 0", got)
	}
}
