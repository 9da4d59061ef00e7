package stats_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/internal/judge/stats"
)

type stay struct{ start, end int64 }

// change is the gauge going up or down.
type change struct{ at, by int64 }

// traffic makes stays and the changes of the gauge that belong to them.
func traffic(seed uint64, n int) (stays []stay, gauge []change) {
	rng := rand.New(rand.NewPCG(seed, 19))
	at := int64(0)
	for range n {
		at += rng.Int64N(2e9)
		s := stay{at, at + rng.Int64N(30e9)}
		stays = append(stays, s)
		gauge = append(gauge, change{s.start, 1}, change{s.end, -1})
	}
	slices.SortFunc(gauge, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return stays, gauge
}

func balance(l stats.Little, stays []stay, gauge []change) (stats.Balance, bool) {
	level := int64(0)
	for _, c := range gauge {
		level += c.by
		l.Level(c.at, level)
	}
	for _, s := range stays {
		l.Stay(s.start, s.end)
	}
	return l.Balance()
}

func TestLittleHoldsExactlyWithItsEdges(t *testing.T) {
	for seed := range uint64(50) {
		stays, gauge := traffic(seed, 300)
		window := stats.Little{From: 20e9 + int64(seed)*1e9, To: 200e9}
		b, ok := balance(window, stays, gauge)
		if !ok || b.Gap != 0 || b.Inverted != 0 || b.Gauge != b.Stays {
			t.Errorf("seed %d: got %+v %v, want both sides equal", seed, b, ok)
		}
		if b.Gauge < 8 || b.Gauge > 22 {
			t.Errorf("seed %d: got %g in flight, want about 15", seed, b.Gauge)
		}
	}
}

func TestLittleNoticesWhatIsWrongWithTheRecords(t *testing.T) {
	stays, gauge := traffic(1, 300)
	window := stats.Little{From: 50e9, To: 250e9}
	middle := 150
	for name, wrong := range map[string][]stay{
		"lost":    slices.Delete(slices.Clone(stays), middle, middle+1),
		"doubled": append(slices.Clone(stays), stays[middle]),
		"late":    append(slices.Delete(slices.Clone(stays), middle, middle+1), stay{stays[middle].start, stays[middle].end + 5e9}),
	} {
		if b, ok := balance(window, wrong, gauge); !ok || b.Gap < 0.0001 || b.Gap > 0.02 {
			t.Errorf("%s: got a gap of %g, want one of a single request", name, b.Gap)
		}
	}
	inverted := append(slices.Clone(stays), stay{100e9, 99e9})
	if b, _ := balance(window, inverted, gauge); b.Inverted != 1 {
		t.Errorf("got %d stays that end before they begin, want 1", b.Inverted)
	}
}

// In a window short for its stays λ·W is not L: that says how little the identity without edges would show.
func TestNaiveLittleNeedsALongWindow(t *testing.T) {
	stays, gauge := traffic(2, 3000)
	short, _ := balance(stats.Little{From: 0, To: 20e9}, stays, gauge)
	long, _ := balance(stats.Little{From: 0, To: 2800e9}, stays, gauge)
	away := func(b stats.Balance) float64 { return max(b.Naive/b.Gauge-1, 1-b.Naive/b.Gauge) }
	if away(short) < 0.2 || away(long) > 0.02 || short.Gap != 0 || long.Gap != 0 {
		t.Errorf("got %+v in 20 s and %+v in 2,800 s, want λ·W far off in the short one only", short, long)
	}
}

func TestLittleByHand(t *testing.T) {
	l := stats.Little{From: 10, To: 20}
	l.Level(5, 2)
	l.Level(12, 1)
	l.Level(18, 3)
	l.Level(30, 0)
	l.Stay(5, 12)
	l.Stay(5, 18)
	l.Stay(18, 30)
	l.Stay(20, 25) // came when the window was over
	b, ok := l.Balance()
	// The gauge has 2·2 + 1·6 + 3·2 = 16 over 10; the stays 2 + 8 + 2 = 12.
	if !ok || b.Gauge != 1.6 || b.Stays != 1.2 || b.Gap != 0.25 || b.Naive != 1.2 {
		t.Errorf("got %+v %v, want 1.6, 1.2, 0.25, 1.2", b, ok)
	}
	for name, l := range map[string]stats.Little{"empty window": {From: 3, To: 3}, "nothing in flight": {From: 0, To: 10}} {
		if b, ok := l.Balance(); ok {
			t.Errorf("%s: got %+v, want none", name, b)
		}
	}
}

func TestLittleAddsUpWithoutOverflow(t *testing.T) {
	const day = int64(86_400e9)
	l := stats.Little{From: 0, To: 100 * day}
	l.Level(0, 1_000_000)
	for range 1000 {
		l.Stay(0, 100*day)
	}
	if b, ok := l.Balance(); !ok || b.Gauge != 1e6 || b.Stays != 1000 || b.Gap != 0.999 {
		t.Errorf("got %+v %v, want a million by the gauge and a thousand on record", b, ok)
	}
}
