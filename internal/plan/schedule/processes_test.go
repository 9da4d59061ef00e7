package schedule_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"
	"time"

	"tare/internal/plan/draw"
	"tare/internal/plan/schedule"
)

var onOff = []schedule.State{{Weight: 1, Sojourn: 2 * time.Second}, {Weight: 0, Sojourn: 6 * time.Second}}

var someClients = []schedule.Client{
	{Share: 50, Process: schedule.Gamma, Shape: 0.2}, {Share: 30, Process: schedule.Weibull, Shape: 0.4},
	{Share: 15, Process: schedule.Constant}, {Share: 5, Process: schedule.Poisson},
}

// counts gives how many requests fall due in each span.
func counts(dues []time.Duration, span, window time.Duration) []float64 {
	list := make([]float64, window/span)
	for _, due := range dues {
		if i := int(due / span); i < len(list) {
			list[i]++
		}
	}
	return list
}

// moments gives the mean and the variance.
func moments(list []float64) (mean, variance float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	for _, x := range list {
		variance += (x - mean) * (x - mean) / float64(len(list)-1)
	}
	return mean, variance
}

func TestWeibullArrivalsKeepRateAndVariation(t *testing.T) {
	const n = 50_000
	for _, shape := range []float64{0.5, 1, 3} {
		o := schedule.Open{Process: schedule.Weibull, Shape: shape, Rate: 100, Limit: n}
		dues := all(o, 1, 0)
		var gaps []float64
		for i := 1; i < n; i++ {
			gaps = append(gaps, (dues[i] - dues[i-1]).Seconds())
		}
		mean, variance := moments(gaps)
		want, _ := o.Variation()
		if slack := 4 * want / math.Sqrt(n); math.Abs(mean*100-1) > slack {
			t.Errorf("shape %v: mean gap times rate: got %.4f, want 1 ± %.4f", shape, mean*100, slack)
		}
		if got := math.Sqrt(variance) / mean; math.Abs(got/want-1) > 0.06 {
			t.Errorf("shape %v: variation: got %.3f, want %.3f", shape, got, want)
		}
	}
}

// IDC(∞) = 1 + 2σ₁σ₂(λ₁−λ₂)²/((σ₁+σ₂)²(λ₁σ₂+λ₂σ₁)), where state i has the rate λᵢ and is left at the rate σᵢ.
func TestMMPPHasItsRateAndDispersion(t *testing.T) {
	for _, tc := range []struct {
		name   string
		states []schedule.State
		rate   float64
	}{
		{"on and off", onOff, 20},
		{"busy and quiet", []schedule.State{{Weight: 10, Sojourn: time.Second}, {Weight: 1, Sojourn: 3 * time.Second}}, 40},
	} {
		const window = 50_000 * time.Second
		o := schedule.Open{Process: schedule.MMPP, States: tc.states, Rate: tc.rate, Window: window}
		mean, variance := moments(counts(all(o, 1, 0), 100*time.Second, window))
		a, b := tc.states[0], tc.states[1]
		s1, s2 := 1/a.Sojourn.Seconds(), 1/b.Sojourn.Seconds()
		unit := tc.rate * (s1 + s2) / (a.Weight*s2 + b.Weight*s1)
		l1, l2 := a.Weight*unit, b.Weight*unit
		want := 1 + 2*s1*s2*(l1-l2)*(l1-l2)/((s1+s2)*(s1+s2)*(l1*s2+l2*s1))
		if slack := 4 * math.Sqrt(want/(tc.rate*window.Seconds())); math.Abs(mean/100/tc.rate-1) > slack {
			t.Errorf("%s: rate: got %.3f, want %v ± %.3f", tc.name, mean/100, tc.rate, slack*tc.rate)
		}
		if got := variance / mean; math.Abs(got/want-1) > 0.2 {
			t.Errorf("%s: index of dispersion: got %.2f, want about %.2f", tc.name, got, want)
		}
	}
}

func TestMMPPSpendsItsTimeInEveryState(t *testing.T) {
	states := []schedule.State{{Weight: 0, Sojourn: time.Second}, {Weight: 1, Sojourn: 2 * time.Second}, {Weight: 100, Sojourn: time.Second}}
	const window = 40_000 * time.Second
	o := schedule.Open{Process: schedule.MMPP, States: states, Rate: 51, Window: window} // 0, 2 and 200 requests/s
	var idle, some, many int
	for _, n := range counts(all(o, 1, 0), 50*time.Millisecond, window) {
		switch {
		case n == 0:
			idle++
		case n < 3:
			some++
		default:
			many++
		}
	}
	share := func(n int) float64 { return float64(n) / 800_000 }
	// A span at 2/s is empty with e^-0.1, one at 200/s holds 10.
	for name, pair := range map[string][2]float64{
		"empty": {share(idle), 0.25 + 0.5*math.Exp(-0.1)}, "one or two": {share(some), 0.5 * (1 - math.Exp(-0.1))}, "more": {share(many), 0.25},
	} {
		if got, want := pair[0], pair[1]; math.Abs(got-want) > 0.03 {
			t.Errorf("share of spans that are %s: got %.3f, want about %.3f", name, got, want)
		}
	}
}

func TestClientsKeepTheirShares(t *testing.T) {
	o := schedule.Open{Process: schedule.Clients, Clients: someClients, Rate: 200, Limit: 100_000}
	a := o.Arrivals(1, 0)
	var count [4]float64
	last := time.Duration(0)
	for due, ok := a.Next(); ok; due, ok = a.Next() {
		count[a.Client()]++
		if due < last {
			t.Fatalf("due %v comes after %v", due, last)
		}
		last = due
	}
	for i, c := range someClients {
		want := c.Share * 1000
		if slack := 5 * 3 * math.Sqrt(want); math.Abs(count[i]-want) > slack {
			t.Errorf("client %d: got %.0f requests, want %.0f ± %.0f", i, count[i], want, slack)
		}
	}
	if rate := 100_000 / last.Seconds(); math.Abs(rate/200-1) > 0.03 {
		t.Errorf("rate: got %.2f, want about 200", rate)
	}
}

// A client that sends less than once in the window is not left out, and the rate is there from the first moment on.
func TestClientsHaveBeenSendingForever(t *testing.T) {
	const seeds = 4000
	for name, c := range map[string]schedule.Client{
		"constant": {Share: 1}, "gamma": {Share: 1, Process: schedule.Gamma, Shape: 0.3}, "weibull": {Share: 1, Process: schedule.Weibull, Shape: 0.5},
		"smooth": {Share: 1, Process: schedule.Gamma, Shape: 9},
	} {
		clients := slices.Repeat([]schedule.Client{c}, 10)
		early := 0
		for seed := range uint64(seeds) {
			early += len(all(schedule.Open{Process: schedule.Clients, Clients: clients, Rate: 1, Window: time.Second}, seed, 0))
		}
		if got := float64(early) / seeds; math.Abs(got-1) > 0.1 {
			t.Errorf("ten %s clients of 0.1 requests/s each: got %.3f requests in the first second, want about 1", name, got)
		}
	}
}

func TestConstantClientsKeepTheirPeriodAndNotStep(t *testing.T) {
	clients := []schedule.Client{{Share: 1}, {Share: 3}}
	a := schedule.Open{Process: schedule.Clients, Clients: clients, Rate: 40, Limit: 100_000}.Arrivals(1, 0)
	first, count := [2]time.Duration{-1, -1}, [2]int{}
	period := [2]time.Duration{100 * time.Millisecond, time.Second / 30}
	for due, ok := a.Next(); ok; due, ok = a.Next() {
		c := a.Client()
		if first[c] < 0 {
			first[c] = due
		}
		want := first[c].Seconds() + float64(count[c])*[2]float64{0.1, 1.0 / 30}[c]
		if off := math.Abs(due.Seconds() - want); off > 1e-6 {
			t.Fatalf("client %d, request %d: got due %v, want %.9f s", c, count[c], due, want)
		}
		count[c]++
	}
	for c := range first {
		if first[c] <= 0 || first[c] >= period[c] {
			t.Errorf("client %d: first due %v, want within its first %v", c, first[c], period[c])
		}
	}
}

// The integral of the rate at constant request n is n, whatever the rate does.
func TestRatesIntegrateToTheRequests(t *testing.T) {
	wave := func(mean, amplitude, period, phase float64) func(x float64) float64 {
		return func(x float64) float64 {
			turn := 2 * math.Pi
			return mean * (x + amplitude*period/turn*(math.Cos(turn*phase)-math.Cos(turn*(x/period+phase))))
		}
	}
	for _, tc := range []struct {
		name     string
		open     schedule.Open
		integral func(x float64) float64
	}{
		{
			"wave", schedule.Open{Rate: 50, Wave: schedule.Wave{Amplitude: 0.8, Period: 7 * time.Second, Phase: 0.6}, Window: time.Minute},
			wave(50, 0.8, 7, 0.6),
		},
		{
			"wave that falls to 0", schedule.Open{Rate: 50, Wave: schedule.Wave{Amplitude: 1, Period: 7 * time.Second, Phase: 0.75}, Window: time.Minute},
			wave(50, 1, 7, 0.75),
		},
		{
			"spike", schedule.Open{Rate: 20, Spike: schedule.Spike{Peak: 900, Start: 10 * time.Second, Width: 2 * time.Second}, Window: 30 * time.Second},
			func(x float64) float64 { return 20*x + 880*min(2, max(0, x-10)) },
		},
		{
			"dip", schedule.Open{Rate: 20, Spike: schedule.Spike{Peak: 0.5, Width: 2 * time.Second}, Window: 30 * time.Second},
			func(x float64) float64 { return 20*x - 19.5*min(2, x) },
		},
	} {
		dues := all(tc.open, 1, 0)
		if want := tc.integral(tc.open.Window.Seconds()); math.Abs(float64(len(dues))-want) > 1 || math.Abs(tc.open.Mean()-want) > 1e-6 {
			t.Errorf("%s: requests: got %d, expected %.3f, want %.3f", tc.name, len(dues), tc.open.Mean(), want)
		}
		if n, known := tc.open.Count(); !known || n != int64(len(dues)) {
			t.Errorf("%s: count: got %d, %v, want %d", tc.name, n, known, len(dues))
		}
		for n, due := range dues {
			if sum := tc.integral(due.Seconds()); math.Abs(sum-float64(n)) > 1e-5 {
				t.Fatalf("%s: integral of the rate at request %d, due %v: got %.7f", tc.name, n, due, sum)
			}
		}
	}
}

// Poisson counts of a changing rate are Poisson with the integral over their span: the sum of (n−m)²/m is about the spans.
func TestPoissonFollowsAChangingRate(t *testing.T) {
	o := schedule.Open{
		Process: schedule.Poisson, Rate: 100, Wave: schedule.Wave{Amplitude: 0.9, Period: 100 * time.Second}, Window: 10_000 * time.Second,
	}
	sum := 0.0
	list := counts(all(o, 1, 0), time.Second, o.Window)
	for i, n := range list {
		turn, from := 2*math.Pi/100, float64(i)
		mean := 100 * (1 + 0.9*100/(2*math.Pi)*(math.Cos(turn*from)-math.Cos(turn*(from+1))))
		sum += (n - mean) * (n - mean) / mean
	}
	if spans := float64(len(list)); math.Abs(sum-spans) > 5*math.Sqrt(2*spans) {
		t.Errorf("χ²: got %.0f, want %.0f ± %.0f", sum, spans, 5*math.Sqrt(2*spans))
	}
}

func TestSpanOfACountIsWhereItIsExpected(t *testing.T) {
	for _, o := range []schedule.Open{
		{Process: schedule.Poisson, Rate: 10, Wave: schedule.Wave{Amplitude: 0.5, Period: time.Hour}, Limit: 5000},
		{Process: schedule.Poisson, Rate: 10, Spike: schedule.Spike{Peak: 100, Start: time.Minute, Width: time.Second}, Limit: 5000},
		{Process: schedule.MMPP, States: onOff, Rate: 10, Limit: 5000},
	} {
		span := o.Span()
		o.Window, o.Limit = span, 0
		if got := o.Mean(); math.Abs(got-5000) > 1e-3 {
			t.Errorf("%+v: expected requests in the span of 5000: got %v", o, got)
		}
	}
}

func offsets(n int, gap time.Duration) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = time.Duration(i) * gap
	}
	return list
}

func replay(tr schedule.Trace) (dues []time.Duration, rows []int) {
	r := tr.Arrivals(1, 0)
	for due, ok := r.Next(); ok; due, ok = r.Next() {
		dues, rows = append(dues, due), append(rows, r.Row())
	}
	return dues, rows
}

func TestTraceIsReplayedStretchedOrThinned(t *testing.T) {
	recorded := []time.Duration{0, 5, 5, 1_000_000_007, 2_000_000_000}
	if got, _ := replay(schedule.Trace{Offsets: recorded}); !slices.Equal(got, recorded) {
		t.Errorf("as recorded: got %v", got)
	}
	got, rows := replay(schedule.Trace{Offsets: recorded, Stretch: 0.1})
	if want := []time.Duration{0, 1, 1, 100_000_001, 200_000_000}; !slices.Equal(got, want) || !slices.Equal(rows, []int{0, 1, 2, 3, 4}) {
		t.Errorf("stretched by 0.1: got %v of rows %v, want %v", got, rows, want)
	}
	long := offsets(100_000, time.Millisecond)
	got, rows = replay(schedule.Trace{Offsets: long, Keep: 0.3})
	if n := float64(len(got)); math.Abs(n-30_000) > 4*math.Sqrt(100_000*0.3*0.7) {
		t.Errorf("thinned to 0.3: got %.0f of 100,000", n)
	}
	for i, row := range rows {
		if got[i] != long[row] {
			t.Fatalf("row %d: got due %v, want %v", row, got[i], long[row])
		}
	}
	if got, _ := replay(schedule.Trace{Offsets: long, Keep: 1}); len(got) != len(long) {
		t.Errorf("thinned to 1: got %d of %d", len(got), len(long))
	}
	if rate, ok := (schedule.Trace{Offsets: long}).Rate(); !ok || math.Abs(rate-1000) > 1e-9 {
		t.Errorf("rate: got %v, want 1000", rate)
	}
}

func TestTraceFaultsComeAtOnce(t *testing.T) {
	bad := schedule.Trace{Offsets: []time.Duration{5, 4}, Stretch: -1, Keep: 2}
	if err := bad.Fault(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 4 {
		t.Errorf("got %v, want four faults", err)
	}
	if err := (schedule.Trace{Offsets: offsets(10, 1), Keep: 0.5}).Fault(); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func TestThinkTimesHaveTheirMean(t *testing.T) {
	const n = 50_000
	exponential := schedule.Think{Mean: 3 * time.Second, Exponential: true}.Times(1)
	var sum, begin float64
	for i := range int64(n) {
		sum += exponential.After(i).Seconds() / n
		begin += exponential.Begin(i, 0).Seconds() / n
	}
	if math.Abs(sum-3) > 4*3/math.Sqrt(n) || math.Abs(begin-3) > 4*3/math.Sqrt(n) {
		t.Errorf("exponential: mean of think times and of begins: got %.3f s and %.3f s, want 3 s", sum, begin)
	}
	constant := schedule.Think{Mean: 3 * time.Second}.Times(1)
	begin = 0
	for i := range n {
		if got := constant.After(int64(i)); got != 3*time.Second {
			t.Fatalf("constant: got %v", got)
		}
		at := constant.Begin(0, i)
		if at < 0 || at >= 3*time.Second {
			t.Fatalf("constant: place %d begins after %v", i, at)
		}
		begin += at.Seconds() / n
	}
	if math.Abs(begin-1.5) > 0.02 {
		t.Errorf("constant: mean of begins: got %.3f s, want 1.5 s", begin)
	}
	if got := (schedule.Think{}).Times(1); got.After(3) != 0 || got.Begin(0, 3) != 0 {
		t.Error("no think time: got some")
	}
}

func sessions() schedule.Sessions {
	return schedule.Sessions{Turns: draw.Range{Least: 0, Most: 8}, Think: schedule.Think{Mean: time.Second, Exponential: true}}
}

func TestSessionsHaveTurnsAndThinkTimes(t *testing.T) {
	const n = 10_000
	v := sessions().Visits(1)
	turns, thinks, index := 0.0, map[time.Duration]bool{}, int64(100)
	for range n {
		k := v.Turns(index)
		if k < 1 || k > 8 {
			t.Fatalf("session %d: got %d turns, want 1 to 8", index, k)
		}
		turns += float64(k)
		for range k {
			thinks[v.Think(index)] = true
			index++
		}
	}
	if mean := turns / n; math.Abs(mean-37.0/9) > 0.1 {
		t.Errorf("got %.3f turns in the mean, want %.3f", mean, 37.0/9)
	}
	if float64(len(thinks)) < turns-5 {
		t.Errorf("think times: got %d different ones for %.0f turns", len(thinks), turns)
	}
	if a, b := v.Turns(7), sessions().Visits(1).Turns(7); a != b {
		t.Errorf("session 7 drawn late: got %d turns, want %d as at first", a, b)
	}
}

// It pins every bit. Run it on other architectures too: all must agree.
func TestProcessesAreTheSameEverywhere(t *testing.T) {
	for _, tc := range []struct {
		name string
		next func() (time.Duration, bool)
		want string
	}{
		{"weibull", schedule.Open{Process: schedule.Weibull, Shape: 0.4, Rate: 333.3, Limit: 50_000}.Arrivals(1, 1<<32).Next, "e86fe1569669b26cd0ed0885eed9247789a5f9d42f3564dba0efc7c8dbacba41"},
		{"mmpp", schedule.Open{Process: schedule.MMPP, States: onOff, Rate: 333.3, Limit: 50_000}.Arrivals(1, 1<<32).Next, "34af97c44ce2ab3dc173d1bc8ed7f316f2c687b8e9602d733f0ef1391c595b63"},
		{"clients", schedule.Open{Process: schedule.Clients, Clients: someClients, Rate: 333.3, Limit: 50_000}.Arrivals(1, 1<<32).Next, "8f9e78af01528cc4c663827bc0a60fb729d1a182ba8fa2c60cd63d18843386f4"},
		{
			"wave",
			schedule.Open{
				Process: schedule.Gamma, Shape: 0.5, Rate: 333.3, Wave: schedule.Wave{Amplitude: 0.9, Period: 19 * time.Second, Phase: 0.3}, Limit: 50_000,
			}.Arrivals(1, 1<<32).Next,
			"3a768fc36901741d308a0530c2fee72f132089ff9e20c58467ac85eb1c91e08d",
		},
		{
			"full wave",
			schedule.Open{
				Process: schedule.Clients, Clients: someClients, Rate: 333.3, Wave: schedule.Wave{Amplitude: 1, Period: time.Hour}, Limit: 50_000,
			}.Arrivals(1, 1<<32).Next,
			"b2e08f0233cbd51f5bac5eddc0c3852be4e7c92b9f078d7097c283dad3893bea",
		},
		{
			"spike",
			schedule.Open{
				Process: schedule.Poisson, Rate: 33.3, Spike: schedule.Spike{Peak: 9999.9, Start: 7 * time.Second, Width: 3 * time.Second}, Limit: 50_000,
			}.Arrivals(1, 1<<32).Next,
			"81f03f879ee50422cee0289747808cb0450ee6d9018886153e29fb9cc91cce61",
		},
		{"stretched", schedule.Trace{Offsets: offsets(50_000, 1234567), Stretch: 0.7321}.Arrivals(1, 1<<32).Next, "9636bc30a878cab59c0b8a4f425f182cbcd0b898fd864c86d7224c19c60c6af5"},
		{"thinned", schedule.Trace{Offsets: offsets(50_000, 1234567), Keep: 0.7321}.Arrivals(1, 1<<32).Next, "422b27466cb00e8143927a04b5deb51ffd4b5a6a3a5f47b5ceb66f1f4d5a0dbb"},
		{"sessions", turns(sessions().Visits(1), 1<<32), "f476e6741f5f7fbd4ac2eb350ae0acc50d83512a9e2fdc99c9c4cfa6de03670c"},
	} {
		h := sha256.New()
		for due, ok := tc.next(); ok; due, ok = tc.next() {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(due)))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != tc.want {
			t.Errorf("%s: SHA-256 of due times: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// turns gives the number of turns of each of 10,000 sessions and then their think times.
func turns(v *schedule.Visits, index int64) func() (time.Duration, bool) {
	sessions, left := 0, int64(0)
	return func() (time.Duration, bool) {
		if left > 1 {
			left--
			index++
			return v.Think(index - 1), true
		}
		sessions, index = sessions+1, index+1
		left = v.Turns(index)
		return time.Duration(left), sessions <= 10_000
	}
}

func TestProcessesAllocateNothing(t *testing.T) {
	for name, o := range map[string]schedule.Open{
		"weibull": {Process: schedule.Weibull, Shape: 0.5, Rate: 100, Limit: 1e6},
		"mmpp":    {Process: schedule.MMPP, States: onOff, Rate: 100, Limit: 1e6},
		"clients": {Process: schedule.Clients, Clients: someClients, Rate: 100, Wave: schedule.Wave{Amplitude: 1, Period: time.Minute}, Limit: 1e6},
	} {
		a := o.Arrivals(1, 0)
		if got := testing.AllocsPerRun(1000, func() { a.Next() }); got != 0 {
			t.Errorf("%s: allocations per request: got %v, want 0", name, got)
		}
	}
}
