package stats_test

import (
	"testing"

	"tare/internal/judge/stats"
)

// MLPerf gives 459 and 662 for a p99, and the floors 11, 64, 130, 662 and 6,636 (one over); the rest agrees with scipy's binomial.
func TestLeastTrialsAreThoseOfMLPerf(t *testing.T) {
	over := []int64{0, 1, 2, 3, 5, 10, 20, 50, 100}
	for ppm, want := range map[int64][]int64{
		stats.P50:  {7, 11, 14, 17, 22, 35, 59, 128, 237},
		stats.P75:  {17, 24, 31, 37, 49, 76, 126, 267, 490},
		stats.P90:  {44, 64, 81, 97, 127, 197, 325, 681, 1246},
		stats.P95:  {90, 130, 165, 198, 259, 398, 656, 1372, 2504},
		970_000:    {152, 219, 277, 332, 433, 667, 1097, 2293, 4182},
		stats.P99:  {459, 662, 838, 1001, 1307, 2010, 3304, 6898, 12_571},
		stats.P999: {4603, 6636, 8403, 10_042, 13_105, 20_140, 33_097, 69_058, 125_826},
		999_900:    {46_050, 66_381},
	} {
		for i, n := range want {
			if got := stats.LeastTrials(over[i], ppm); got != n {
				t.Errorf("quantile %d, %d over: got %d requests, want %d", ppm, over[i], got, n)
			}
		}
	}
}

// What MLPerf's LoadGen wrote into result logs that were published: how many of the highest latencies it would discard, which are
// those above the bound.
func TestUpperBoundIsThatOfPublishedResults(t *testing.T) {
	for _, tt := range []struct{ n, ppm, discarded int64 }{{2048, stats.P90, 172}, {7469, stats.P90, 685}, {4_776_846, stats.P90, 476_158}} {
		rank, ok := stats.UpperBound(stats.Dependence{N: tt.n, Time: 1}, tt.ppm)
		if got := tt.n - rank; !ok || got != tt.discarded {
			t.Errorf("%d requests: got %d discarded, want %d", tt.n, got, tt.discarded)
		}
	}
}

// Two more such logs: 300 requests with none over want 159 more, 21 want 438 more.
func TestKeepsSaysHowManyAreMissing(t *testing.T) {
	for _, tt := range []struct {
		n, over int64
		ok      bool
		more    int64
	}{{300, 0, false, 159}, {21, 0, false, 438}, {459, 0, true, 0}, {458, 0, false, 1}, {661, 1, false, 1}, {662, 1, true, 0}, {10, 10, false, 2000}} {
		ok, more := stats.Keeps(tt.n, tt.over, stats.P99)
		if ok != tt.ok || more != tt.more {
			t.Errorf("%d over of %d: got %v, %d more, want %v, %d", tt.over, tt.n, ok, more, tt.ok, tt.more)
		}
	}
}

func TestUpperBoundNeedsOneToSpare(t *testing.T) {
	for ppm, least := range map[int64]int64{stats.P50: 11, stats.P90: 64, stats.P99: 662, stats.P999: 6636} {
		if _, ok := stats.UpperBound(stats.Dependence{N: least - 1, Time: 1}, ppm); ok {
			t.Errorf("quantile %d: got a bound from %d requests", ppm, least-1)
		}
		if rank, ok := stats.UpperBound(stats.Dependence{N: least, Time: 1}, ppm); !ok || rank != least {
			t.Errorf("quantile %d: got rank %d %v, want the greatest of %d", ppm, rank, ok, least)
		}
	}
	if _, ok := stats.UpperBound(stats.Dependence{}, stats.P50); ok {
		t.Error("nothing has a bound")
	}
}

func TestUpperBoundCountsEffectiveRequests(t *testing.T) {
	alone, _ := stats.UpperBound(stats.Dependence{N: 10_000, Time: 1}, stats.P99)
	rank, ok := stats.UpperBound(stats.Dependence{N: 10_000, Time: 10}, stats.P99)
	// 1,000 allow for the second greatest; among ten times as many that is the 19th: ⌊2·10,001/1,001⌋.
	if !ok || alone != 9924 || rank != 9982 {
		t.Errorf("got rank %d, %d when independent, want 9982 and 9924", rank, alone)
	}
}
