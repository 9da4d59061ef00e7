package draw_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"tare/internal/plan/draw"
)

const draws = 100_000

// series gives n numbers, each drawn at an index of its own.
func series(n int, next func(*draw.Source) uint64) []uint64 {
	s := draw.New(1, "test")
	out := make([]uint64, n)
	for i := range out {
		s.Seek(uint64(i))
		out[i] = next(s)
	}
	return out
}

func exponential(s *draw.Source) uint64 { return s.Exponential() }

func gamma(shape float64) func(*draw.Source) uint64 {
	g := draw.NewGamma(shape)
	return g.Draw
}

// It pins every bit of every sampler. Run it with GOARCH=386 and GOAMD64=v3 too: all must agree.
func TestSamplersGiveTheSameBitsEverywhere(t *testing.T) {
	for _, tc := range []struct {
		name string
		next func(*draw.Source) uint64
		want string
	}{
		{"bits", (*draw.Source).Uint64, "b2996f1dddc163124218c9b6985b3504d5a53c7bebb89d86a875bab446bd5adf"},
		{"below", func(s *draw.Source) uint64 { return s.Below(3 << 62) }, "8e860da6376730f9a8da65f3a0530fd14e14f20eeb533e34c35de6484d24455f"},
		{"exponential", exponential, "8380764ad1c87fdf3736c2be2af8919a8313f6c2f2f71e8bfd5b8ee597379658"},
		{"gamma 0.05", gamma(0.05), "9bcebd2bc3d4f42743cf956dca7c1fbd86a4385afb33f4992b6f11036cb8c23f"},
		{"gamma 0.5", gamma(0.5), "4e5ab92a1e9da3d5b52a6578e0f6945f78054e2f50b985f9dda90202327efece"},
		{"gamma 1", gamma(1), "dce05de1a48ec03f369292c71ed66411aac3e4d719a2c0f220934d8dcd9a7fc1"},
		{"gamma 4", gamma(4), "a86332aea58fb01ed21155432fef487d72f39a3c784dbcc8927f3e89e0f29a67"},
		{"gamma 100", gamma(100), "1648b6975ab94f1e45d7bc5b1a0531d0255658daf70551af6760c71eb47eff7b"},
	} {
		h := sha256.New()
		for _, v := range series(draws, tc.next) {
			h.Write(binary.BigEndian.AppendUint64(nil, v))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != tc.want {
			t.Errorf("%s: SHA-256 of %d draws: got %s, want %s", tc.name, draws, got, tc.want)
		}
	}
}

func TestSamplersHaveTheirMeanAndVariation(t *testing.T) {
	for _, tc := range []struct {
		name string
		next func(*draw.Source) uint64
		cv   float64
	}{
		{"exponential", exponential, 1},
		{"gamma 0.05", gamma(0.05), math.Sqrt(20)},
		{"gamma 0.3", gamma(0.3), math.Sqrt(1 / 0.3)},
		{"gamma 1", gamma(1), 1},
		{"gamma 2.5", gamma(2.5), math.Sqrt(1 / 2.5)},
		{"gamma 100", gamma(100), 0.1},
	} {
		var sum, squares float64
		for _, v := range series(draws, tc.next) {
			x := float64(v) / draw.One
			sum += x
			squares += x * x
		}
		mean := sum / draws
		cv := math.Sqrt(squares/draws-mean*mean) / mean
		if slack := 4 * tc.cv / math.Sqrt(draws); math.Abs(mean-1) > slack {
			t.Errorf("%s: mean: got %.5f, want 1 ± %.5f", tc.name, mean, slack)
		}
		if math.Abs(cv/tc.cv-1) > 0.05 {
			t.Errorf("%s: coefficient of variation: got %.4f, want %.4f", tc.name, cv, tc.cv)
		}
	}
}

func TestExponentialFollowsItsDistribution(t *testing.T) {
	at := []float64{0.001, 0.01, 0.1, 0.5, 1, 2, 4, 8}
	below := make([]float64, len(at))
	for _, v := range series(draws, exponential) {
		for i, x := range at {
			if float64(v)/draw.One < x {
				below[i]++
			}
		}
	}
	for i, x := range at {
		want := 1 - math.Exp(-x)
		slack := 4 * math.Sqrt(want*(1-want)/draws)
		if got := below[i] / draws; math.Abs(got-want) > slack {
			t.Errorf("share of draws below %g: got %.5f, want %.5f ± %.5f", x, got, want, slack)
		}
	}
}

// Half a shape is χ² of one degree of freedom: P(X/k < x) = erf(√(x/2)).
func TestGammaFollowsItsDistribution(t *testing.T) {
	at := []float64{1e-6, 0.001, 0.01, 0.1, 0.5, 1, 2, 4, 8}
	below := make([]float64, len(at))
	for _, v := range series(draws, gamma(0.5)) {
		for i, x := range at {
			if float64(v)/draw.One < x {
				below[i]++
			}
		}
	}
	for i, x := range at {
		want := math.Erf(math.Sqrt(x / 2))
		slack := 4 * math.Sqrt(want*(1-want)/draws)
		if got := below[i] / draws; math.Abs(got-want) > slack {
			t.Errorf("share of draws below %g: got %.5f, want %.5f ± %.5f", x, got, want, slack)
		}
	}
}

func TestSourceForgetsWhatWasDrawn(t *testing.T) {
	s := draw.New(7, "order")
	s.Seek(3)
	want := s.Uint64()
	for range 100 {
		s.Uint64()
	}
	s.Seek(4)
	other := s.Uint64()
	s.Seek(3)
	if got := s.Uint64(); got != want {
		t.Errorf("first draw at index 3: got %x, want %x", got, want)
	}
	if other == want {
		t.Errorf("index 3 and 4 both gave %x", want)
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 1 << 63} {
		for _, name := range []string{"", "a", "b", "ab"} {
			v := draw.New(seed, name).Uint64()
			if was, ok := seen[v]; ok {
				t.Errorf("seed %d stream %q gives the same as %s", seed, name, was)
			}
			seen[v] = name
		}
	}
}

func TestBelowIsUniform(t *testing.T) {
	const n = 7
	var count [n]float64
	for _, v := range series(draws, func(s *draw.Source) uint64 { return s.Below(n) }) {
		count[v]++
	}
	for v, got := range count {
		if want := float64(draws) / n; math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("draws of %d: got %.0f, want about %.0f", v, got, want)
		}
	}
}

func TestDrawingAllocatesNothing(t *testing.T) {
	s := draw.New(1, "test")
	g := draw.NewGamma(0.5)
	var index uint64
	got := testing.AllocsPerRun(1000, func() {
		index++
		s.Seek(index)
		s.Exponential()
		g.Draw(s)
	})
	if got != 0 {
		t.Errorf("allocations per draw: got %v, want 0", got)
	}
}

func BenchmarkExponential(b *testing.B) {
	s := draw.New(1, "test")
	for i := range b.N {
		s.Seek(uint64(i))
		s.Exponential()
	}
}

func BenchmarkGamma(b *testing.B) {
	s := draw.New(1, "test")
	g := draw.NewGamma(0.5)
	for i := range b.N {
		s.Seek(uint64(i))
		g.Draw(s)
	}
}
