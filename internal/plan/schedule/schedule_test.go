package schedule_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"testing"
	"time"

	"tare/internal/plan/schedule"
)

func all(o schedule.Open, seed uint64, first int64) []time.Duration {
	var dues []time.Duration
	a := o.Arrivals(seed, first)
	for due, ok := a.Next(); ok; due, ok = a.Next() {
		dues = append(dues, due)
	}
	return dues
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	for _, rate := range []string{"1", "3", "7", "0.1", "333.33", "48000", "1000000"} {
		exact, _ := new(big.Rat).SetString(rate)
		value, _ := exact.Float64()
		o := schedule.Open{Rate: value, Limit: 100_000}
		for n, due := range all(o, 1, 0) {
			want := new(big.Rat).Quo(big.NewRat(int64(n)*1e9, 1), exact)
			off := new(big.Rat).Sub(want, new(big.Rat).SetInt64(int64(due)))
			if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
				t.Fatalf("rate %s: request %d: got due %d ns, want %s ns", rate, n, due, want.FloatString(3))
			}
		}
	}
}

func TestStageByDurationHoldsWhatFallsDueInIt(t *testing.T) {
	for _, tc := range []struct {
		rate   float64
		window time.Duration
		want   int
	}{
		{10, time.Second, 10},
		{10, time.Second + 1, 11},
		{10, 999 * time.Millisecond, 10},
		{3, time.Second, 3},
		{0.5, time.Second, 1},
		{1000, time.Nanosecond, 1},
		{999.999999, 100 * time.Second, 100_000},
	} {
		o := schedule.Open{Rate: tc.rate, Window: tc.window}
		if n, known := o.Count(); n != int64(tc.want) || !known {
			t.Errorf("%v/s for %v: count: got %d, %v, want %d, true", tc.rate, tc.window, n, known, tc.want)
		}
		dues := all(o, 1, 0)
		if len(dues) != tc.want {
			t.Errorf("%v/s for %v: requests: got %d, want %d", tc.rate, tc.window, len(dues), tc.want)
		}
		if last := dues[len(dues)-1]; last >= tc.window {
			t.Errorf("%v/s for %v: last due %v is not within the window", tc.rate, tc.window, last)
		}
	}
}

func TestFirstConstantRequestIsDueAtOnceAndFirstRandomOneIsNot(t *testing.T) {
	if got := all(schedule.Open{Rate: 10, Limit: 1}, 1, 0)[0]; got != 0 {
		t.Errorf("constant: got %v, want 0", got)
	}
	if got := all(schedule.Open{Process: schedule.Poisson, Rate: 10, Limit: 1}, 1, 0)[0]; got == 0 {
		t.Error("poisson: got 0, want a drawn gap")
	}
}

func TestRandomArrivalsKeepRateAndVariation(t *testing.T) {
	const n = 50_000
	for _, tc := range []struct {
		process schedule.Process
		shape   float64
		cv      float64
	}{
		{schedule.Poisson, 0, 1}, {schedule.Gamma, 0.25, 2}, {schedule.Gamma, 1, 1}, {schedule.Gamma, 16, 0.25},
	} {
		dues := all(schedule.Open{Process: tc.process, Shape: tc.shape, Rate: 2000, Limit: n}, 1, 0)
		if len(dues) != n {
			t.Fatalf("%v: requests: got %d, want %d", tc, len(dues), n)
		}
		var squares, before float64
		for _, due := range dues {
			gap := due.Seconds()*2000 - before
			before += gap
			squares += gap * gap
		}
		mean := before / n
		if slack := 4 * tc.cv / math.Sqrt(n); math.Abs(mean-1) > slack {
			t.Errorf("%v: mean gap times rate: got %.4f, want 1 ± %.4f", tc, mean, slack)
		}
		if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(cv/tc.cv-1) > 0.05 {
			t.Errorf("%v: variation: got %.3f, want %.3f", tc, cv, tc.cv)
		}
	}
}

func TestRampIntegratesItsRate(t *testing.T) {
	for _, tc := range []struct{ from, to float64 }{{10, 110}, {500, 20}, {0.5, 1000}} {
		o := schedule.Open{Rate: tc.from, RateTo: tc.to, Window: 20 * time.Second}
		dues := all(o, 1, 0)
		total := (tc.from + tc.to) / 2 * 20
		if math.Abs(float64(len(dues))-total) > 1 {
			t.Errorf("%v: requests: got %d, want %.0f", tc, len(dues), total)
		}
		for n, due := range dues {
			x := due.Seconds()
			sum := tc.from*x + (tc.to-tc.from)*x*x/40
			if math.Abs(sum-float64(n)) > 1e-5 {
				t.Fatalf("%v: integral of the rate at request %d: got %.7f", tc, n, sum)
			}
		}
	}
}

func TestRampByCountEndsAtItsLastRate(t *testing.T) {
	o := schedule.Open{Rate: 10, RateTo: 30, Limit: 400}
	if got, want := o.Span(), 20*time.Second; got != want {
		t.Errorf("span: got %v, want %v", got, want)
	}
	o.Process = schedule.Poisson
	if got := len(all(o, 3, 0)); got != 400 {
		t.Errorf("requests: got %d, want 400", got)
	}
}

func TestStageEndsByWhicheverComesFirst(t *testing.T) {
	for _, p := range []schedule.Process{schedule.Constant, schedule.Poisson, schedule.Gamma} {
		byCount := schedule.Open{Process: p, Shape: 2, Rate: 100, Window: time.Minute, Limit: 50}
		if got := len(all(byCount, 1, 0)); got != 50 {
			t.Errorf("process %d, limit first: got %d requests, want 50", p, got)
		}
		byWindow := schedule.Open{Process: p, Shape: 2, Rate: 100, Window: time.Second, Limit: 5000}
		dues := all(byWindow, 1, 0)
		if len(dues) > 200 || dues[len(dues)-1] >= time.Second {
			t.Errorf("process %d, window first: got %d requests until %v", p, len(dues), dues[len(dues)-1])
		}
	}
}

func TestDueTimesNeverDecrease(t *testing.T) {
	for _, o := range []schedule.Open{
		{Process: schedule.Gamma, Shape: 0.05, Rate: 5000, Limit: 20_000},
		{Process: schedule.Gamma, Shape: 0.05, Rate: 5000, RateTo: 1, Limit: 20_000},
		{Process: schedule.Poisson, Rate: 1, RateTo: 1e6, Window: 40 * time.Millisecond},
		{Process: schedule.Constant, Rate: 1e7, RateTo: 1, Window: 4 * time.Millisecond},
	} {
		last := time.Duration(0)
		for n, due := range all(o, 1, 0) {
			if due < last {
				t.Fatalf("%+v: request %d is due %v, before %v", o, n, due, last)
			}
			last = due
		}
	}
}

func TestNextStaysAtTheEnd(t *testing.T) {
	a := schedule.Open{Process: schedule.Poisson, Rate: 1000, Window: 10 * time.Millisecond}.Arrivals(1, 0)
	for _, ok := a.Next(); ok; _, ok = a.Next() {
	}
	if due, ok := a.Next(); ok {
		t.Errorf("after the end: got a request due at %v", due)
	}
}

// It pins every bit. Run it with GOARCH=386 and GOAMD64=v3 too: all must agree.
func TestArrivalsGiveTheSameBitsEverywhere(t *testing.T) {
	for _, tc := range []struct {
		name string
		open schedule.Open
		want string
	}{
		{"constant", schedule.Open{Rate: 333.3, Limit: 50_000}, "f0d1eea75f022b5237b55059a7228760fc52190acf50e66deb6e00a1f948a749"},
		{"poisson", schedule.Open{Process: schedule.Poisson, Rate: 333.3, Limit: 50_000}, "3099cf9877f51af9a9bfc5b20500179bf07e078264390e74340df8fa1b446305"},
		{"gamma", schedule.Open{Process: schedule.Gamma, Shape: 0.3, Rate: 333.3, Limit: 50_000}, "44ecfa22bfcc6f8390e558aa7d3fb997da90a19dcbcc6080139b31a34c79c518"},
		{"ramp up", schedule.Open{Process: schedule.Poisson, Rate: 3.3, RateTo: 970, Limit: 50_000}, "ad9e7499fe68fd7ab309f46675d0f7705a0757e0fbbfa53fab7041ecf93a1560"},
		{"ramp down", schedule.Open{Process: schedule.Gamma, Shape: 4, Rate: 970, RateTo: 3.3, Window: time.Minute}, "b686ccdb78c4608af5238b7b0e1554ece2b584b951faa1f36b0a1604d8c991d1"},
	} {
		h := sha256.New()
		for _, due := range all(tc.open, 1, 1<<32) {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(due)))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != tc.want {
			t.Errorf("%s: SHA-256 of due times: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	a := schedule.Open{Process: schedule.Gamma, Shape: 0.5, Rate: 100, RateTo: 200, Limit: 1e6}.Arrivals(1, 0)
	if got := testing.AllocsPerRun(1000, func() { a.Next() }); got != 0 {
		t.Errorf("allocations per request: got %v, want 0", got)
	}
}

func BenchmarkPoisson(b *testing.B) {
	a := schedule.Open{Process: schedule.Poisson, Rate: 1000, Limit: int64(b.N)}.Arrivals(1, 0)
	for range b.N {
		a.Next()
	}
}
