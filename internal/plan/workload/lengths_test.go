package workload_test

import (
	"math"
	"strings"
	"testing"

	"tare/internal/plan/draw"
	"tare/internal/plan/workload"
)

func TestLengthsHaveTheMeanThatIsAskedFor(t *testing.T) {
	file := []draw.Bucket{{Range: draw.Range{Least: 10, Most: 10}, Weight: 3}, {Range: draw.Range{Least: 50, Most: 50}, Weight: 1}}
	for _, tc := range []struct {
		text        string
		mean        float64
		least, most int
	}{
		{"128", 128, 128, 128},
		{"uniform(64,512)", 288, 64, 512},
		{"normal(512,64)", 512, 1, workload.MaxLength},
		{"lognormal(300, 100)", 300, 1, workload.MaxLength},
		{"skewnormal(300,80,5)", 300, 100, workload.MaxLength},
		{"skewnormal(300,80,-5)", 300, 1, 500},
		{"poisson(9)", 9, 1, 40},
		{"poisson(700)", 700, 500, 900},
		{"normal(512,64,min=400,max=624)", 512, 400, 624},
		{"zipf(1,4)", 4 / (1 + 1./2 + 1./3 + 1./4), 1, 4},
		{"zipf(1,4,min=2)", 3 / (1./2 + 1./3 + 1./4), 2, 4},
		{"file(lengths.csv)", 20, 10, 50},
		{"file(a=b,c.csv,max=20)", 10, 10, 10},
	} {
		l, err := workload.ParseLengths(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		s, err := l.Sampler(file)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		source, sum, least, most := draw.New(1, "lengths"), 0, math.MaxInt, 0
		const n = 20_000
		for i := range uint64(n) {
			source.Seek(i)
			v := s.Draw(source)
			sum, least, most = sum+v, min(least, v), max(most, v)
		}
		if got := float64(sum) / n; math.Abs(s.Mean-tc.mean) > 1e-9 || math.Abs(got-tc.mean) > 0.02*tc.mean || least < tc.least || most > tc.most {
			t.Errorf("%s: got a mean of %v, said %v, within %d and %d; want %v within %d and %d", tc.text, got, s.Mean, least, most, tc.mean, tc.least, tc.most)
		}
	}
}

func TestLengthsThatCannotBeAreRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"":                          "must be a whole number or a distribution",
		"0":                         "must be within 1 and",
		"12.5":                      "must be a whole number or a distribution",
		"uniform(5)":                "must have the numbers uniform(least,most), got 1",
		"uniform(9,3)":              "the least first",
		"uniform(1,9":               "must end with )",
		"normal(5,x)":               `sd must be a number, got "x"`,
		"normal(5,NaN)":             `sd must be a number`,
		"normal(5,1,min=100)":       "must leave 0.001",
		"normal(5,1,least=1)":       "least is not known",
		"normal(5,1,min=9,max=3)":   "min must not be above max",
		"poisson(5,1)":              "must have the numbers poisson(mean), got 2",
		"poisson(20000)":            "at most 10000",
		"poisson(3,min=90)":         "must leave 0.001",
		"skewnormal(5,1,1000)":      "shape must be within",
		"skewnormal(9,1,5,max=2)":   "must leave 0.001",
		"gauss(5,1)":                "must be a number, uniform, normal",
		"zipf(1,0)":                 "a whole n",
		"zipf(10,100,min=90)":       "must leave 0.001",
		"file()":                    "must name a file",
		"uniform(1,9,min=20)":       "must leave something",
		"lognormal(-3,1)":           "a mean above 0",
		"normal(5,1,max=999999999)": "must be within 1 and",
	} {
		if _, err := workload.ParseLengths(text); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %v, want %q in it", text, err, reason)
		}
	}
}
