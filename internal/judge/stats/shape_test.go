package stats_test

import (
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

func TestCurveIsMadeOfQuantiles(t *testing.T) {
	d := gather(sample(rand.New(rand.NewPCG(1, 2)), 5000)...)
	curve := d.Curve()
	named := map[int64]bool{stats.P1: true, stats.P50: true, stats.P95: true, stats.P99: true, stats.P999: true, 0: true, 1_000_000: true}
	for i, level := range curve {
		if want, _ := d.Quantile(level.PPM); level.Value != want {
			t.Errorf("%d ppm: got %v, want the quantile %v", level.PPM, level.Value, want)
		}
		if i > 0 && (level.PPM <= curve[i-1].PPM || level.Value < curve[i-1].Value) {
			t.Errorf("level %d: got %v after %v, want an ascent", i, level, curve[i-1])
		}
		delete(named, level.PPM)
	}
	if len(named) > 0 || len(curve) > 220 {
		t.Errorf("got %d levels, want at most 220, with these too: %v", len(curve), named)
	}
}

func TestCurveOfFewValuesIsShort(t *testing.T) {
	if got := len(gather(3, 1, 2).Curve()); got > 14 {
		t.Errorf("got %d levels of three values, want the named ones and one for each rank", got)
	}
	if got := gather().Curve(); got != nil {
		t.Errorf("got %v of no value, want nothing", got)
	}
}

func TestHistogramCountsEveryValueOnce(t *testing.T) {
	for _, values := range [][]int64{{1, 2, 3, 4, 5, 6, 7, 8}, {100, 1000, 100_000, 100_000}, {-5, 0, 5}} {
		d := gather(values...)
		h := d.Histogram(7)
		if len(h.Edges) != 8 || h.Edges[0] != float64(values[0]) || h.Edges[7] != float64(values[len(values)-1]) {
			t.Fatalf("%v: got the edges %v, want 8 from the least to the greatest", values, h.Edges)
		}
		for i, got := range h.Counts {
			want := int64(0)
			for _, v := range values {
				last := i == len(h.Counts)-1
				if float64(v) >= h.Edges[i] && (float64(v) < h.Edges[i+1] || last) {
					want++
				}
			}
			if got != want {
				t.Errorf("%v: bin %d: got %d, want %d", values, i, got, want)
			}
		}
	}
}

func TestHistogramGoesByRatiosWhereValuesAreFarApart(t *testing.T) {
	h := gather(10, 1000).Histogram(2)
	if h.Edges[1] < 99.9 || h.Edges[1] > 100.1 {
		t.Errorf("got a middle edge of %v between 10 and 1000, want 100", h.Edges[1])
	}
	if h := gather(10, 20).Histogram(2); h.Edges[1] != 15 {
		t.Errorf("got a middle edge of %v between 10 and 20, want 15", h.Edges[1])
	}
}

func TestHistogramOfEqualValuesIsNone(t *testing.T) {
	for _, d := range []*stats.Distribution{gather(), gather(5), gather(5, 5)} {
		if h := d.Histogram(10); h.Edges != nil || h.Counts != nil {
			t.Errorf("got %v, want none", h)
		}
	}
}
