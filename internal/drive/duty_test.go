package drive

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/record"
)

// at the moments below, in µs, a loop with a service of 10 handles what came meanwhile.
func TestDutyReplaysTheQueueItSaw(t *testing.T) {
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	d := duty{slept: awake}
	d.woke(us(50), 3)
	d.read(us(100), us(105), us(115), true) // woke up within 5
	d.read(us(102), us(115), us(125), true)
	d.read(us(103), us(125), us(135), true)
	d.sent(us(135), us(140))
	d.woke(us(140), 1)
	d.read(us(200), us(208), us(218), true) // within 8
	d.read(0, us(218), us(220), false)      // no stamp
	w := d.whole()
	for _, c := range []struct {
		what      string
		got, want time.Duration
	}{
		{"reading", span(w.Reading.Sum), us(42)},
		{"sending", span(w.Sending.Sum), us(5)},
		{"waiting", span(w.Waiting.Sum), us(5 + 13 + 22 + 8)},
		{"waking", span(w.Waking.Sum), us(13)},
		{"gaps", span(w.Gaps.Sum), us(100)},
		{"gaps within steps", span(w.Within.Sum), us(3)},
		{"replayed: 5 of the first wake-up, 13 and 22 behind it, then the mean of the wake-ups, 6.5", span(w.Replayed.Sum), us(5+13+22) + 6500},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if w.Steps.N != 2 || w.Steps.Sum != 4 || w.Steps.Squares != 10 {
		t.Errorf("steps: got %d of %d reads, squares %v, want 2 of 4, 10", w.Steps.N, w.Steps.Sum, w.Steps.Squares)
	}
	if w.Wakeups.N != 2 || w.Wakeups.Sum != 4 {
		t.Errorf("wake-ups: got %d of %d sockets, want 2 of 4", w.Wakeups.N, w.Wakeups.Sum)
	}
	if w.Waking.N != 2 || w.Waiting.N != 4 || w.Reading.N != 5 {
		t.Errorf("got %d wakings, %d waits, %d reads, want 2, 4, 5", w.Waking.N, w.Waiting.N, w.Reading.N)
	}
}

func span(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(100)
}

// backlog tells a wait by what is left to do when an event comes, counted in steps of a nanosecond.
func backlog(arrivals, services []int64) (waits []int64) {
	left, now, next := int64(0), int64(0), 0
	for next < len(arrivals) {
		for next < len(arrivals) && arrivals[next] == now {
			waits = append(waits, left)
			left += services[next]
			next++
		}
		left = max(left-1, 0)
		now++
	}
	return waits
}

func TestReplayIsTheWorkLeft(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var arrivals, services []int64
		at := int64(0)
		for range 500 {
			at += r.Int64N(20)
			arrivals, services = append(arrivals, at), append(services, r.Int64N(18))
		}
		d := duty{slept: awake}
		for i, want := range backlog(arrivals, services) {
			before, taken := d.Replayed.Sum, time.Duration(arrivals[i]+r.Int64N(1000)) // whenever it really was taken up
			d.read(time.Duration(arrivals[i]), taken, taken+time.Duration(services[i]), true)
			if got := nanoseconds(d.Replayed.Sum - before); got != want {
				t.Fatalf("seed %d, read %d: got wait %d ns, want %d", seed, i, got, want)
			}
		}
	}
}

func TestReplayWakesAnIdleLoop(t *testing.T) {
	d := duty{slept: awake}
	d.Waking.Add(5) // ns
	for i, c := range []struct{ arrival, service, want time.Duration }{
		{100, 10, 5}, // asleep: begins at 105, free at 115
		{110, 10, 5}, // behind it: free at 125
		{125, 1, 5},  // free at this very moment: asleep again
		{127, 0, 4},  // behind it
		{120, 3, 11}, // read behind later ones: free at 134
		{250, 1, 5},
	} {
		before := d.Replayed.Sum
		d.replay(c.arrival, c.service)
		if got := nanoseconds(d.Replayed.Sum - before); got != int64(c.want) {
			t.Errorf("read %d: got wait %d ns, want %d", i, got, c.want)
		}
	}
}

func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

func TestDutyFindsTheSteps(t *testing.T) {
	var d duty
	for step := range time.Duration(100) {
		size := 3 + step%2*4 // 3 and 7 in turns
		for i := range size {
			d.arrive(step*50*time.Millisecond + i*7*time.Microsecond)
		}
	}
	w := d.whole()
	if want := (record.Counts{N: 100, Sum: 500, Squares: 50 * (9 + 49)}); w.Steps != want {
		t.Errorf("steps: got %+v, want %+v", w.Steps, want)
	}
	if got := nanoseconds(w.Within.Sum); w.Within.N != 400 || got != 400*7_000 {
		t.Errorf("gaps within steps: got %d of %d ns in all, want 400 of 7 µs each", w.Within.N, got)
	}
	if got, want := nanoseconds(w.Gaps.Sum), int64(99*50_000_000+6*7_000); w.Gaps.N != 499 || got != want {
		t.Errorf("gaps: got %d of %d ns in all, want 499 of %d", w.Gaps.N, got, want)
	}
	squares := 50*math.Pow(0.05-2*7e-6, 2) + 49*math.Pow(0.05-6*7e-6, 2) + 400*math.Pow(7e-6, 2)
	if math.Abs(w.Gaps.Squares/squares-1) > 1e-9 {
		t.Errorf("squares of gaps: got %g s², want %g", w.Gaps.Squares, squares)
	}
}

func TestAStepEndsWithALongerGap(t *testing.T) {
	var d duty
	if w := d.whole(); w.Steps.N != 0 || w.Gaps.N != 0 {
		t.Errorf("got steps %+v and gaps %+v of nothing, want none", w.Steps, w.Gaps)
	}
	at := 5 * time.Second
	for _, c := range []struct {
		later time.Duration
		want  record.Counts
	}{
		{0, record.Counts{N: 1, Sum: 1, Squares: 1}},
		{0, record.Counts{N: 1, Sum: 2, Squares: 4}},
		{-1, record.Counts{N: 1, Sum: 3, Squares: 9}}, // descends: no gap
		{record.StepGap + 2, record.Counts{N: 2, Sum: 4, Squares: 10}},
		{record.StepGap, record.Counts{N: 2, Sum: 5, Squares: 13}},
	} {
		at += c.later
		d.arrive(at)
		if got := d.whole().Steps; got != c.want {
			t.Errorf("at %v: got steps %+v, want %+v", at, got, c.want)
		}
	}
}

func TestGapsOfPoissonArrivalsHaveVariationOne(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var d duty
	at := 0.0
	for range 300_000 {
		at += r.ExpFloat64() * 1e6
		d.arrive(time.Duration(at))
	}
	w := d.whole()
	n := float64(w.Gaps.N)
	if got := w.Gaps.Squares*n/(w.Gaps.Sum*w.Gaps.Sum) - 1; math.Abs(got-1) > 0.02 {
		t.Errorf("c_a²: got %g, want 1", got)
	}
	if got, want := float64(w.Steps.Sum)/float64(w.Steps.N), 1/math.Exp(-0.02); math.Abs(got/want-1) > 0.01 {
		t.Errorf("E[X]: got %g, want %g", got, want)
	}
}
