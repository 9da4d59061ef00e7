package stats

import "math/bits"

// Little gathers both sides of Little's law over the window [From, To), in ns: how many requests were in flight by a gauge that was
// kept on its own, and by the stays of the requests on record. They are equal to rounding, whatever was in flight at the window's
// edges: ∫N = Σ|[aᵢ,dᵢ]∩[From,To]|. A difference means that records were lost, doubled or stamped wrongly.
type Little struct {
	From, To int64

	gauge       sum // request-ns by the gauge
	at, level   int64
	stays       sum // request-ns of the stays inside of the window
	cohortStays sum // request-ns of the stays of those who came in the window, to their ends
	inverted    int64
}

// Balance is Little's law in figures: averages over the window.
type Balance struct {
	Gauge    float64 // mean number in flight by the gauge
	Stays    float64 // by the stays
	Gap      float64 // |Gauge − Stays| / Gauge
	Naive    float64 // λ·W of those who came in the window: far from Gauge when the window is short for its stays
	Inverted int64   // stays that end before they begin
}

// Level says that from a moment on, in ns, n requests are in flight by the gauge. Moments ascend; before the first it stood at 0.
func (l *Little) Level(at, n int64) {
	l.gauge.add(l.inside(l.at, at), l.level)
	l.at, l.level = at, n
}

// Held says that requests were in flight for so many request-ns inside of the window, by a gauge that keeps only their sum.
func (l *Little) Held(ns int64) { l.gauge.add(ns, 1) }

// Stay adds one request on record.
func (l *Little) Stay(start, end int64) {
	if end < start {
		l.inverted++
		return
	}
	l.stays.add(l.inside(start, end), 1)
	if start >= l.From && start < l.To {
		l.cohortStays.add(end-start, 1)
	}
}

// inside is the length of the part of [start, end] that is in the window.
func (l *Little) inside(start, end int64) int64 {
	return max(min(end, l.To)-max(start, l.From), 0)
}

// Balance compares the sides. ok is false for an empty window and for a gauge that stood at 0 throughout.
func (l *Little) Balance() (b Balance, ok bool) {
	gauge := l.gauge
	gauge.add(l.inside(l.at, l.To), l.level)
	window := float64(l.To - l.From)
	if l.To <= l.From || gauge.value() <= 0 {
		return Balance{}, false
	}
	b = Balance{Gauge: gauge.value() / window, Stays: l.stays.value() / window, Naive: l.cohortStays.value() / window, Inverted: l.inverted}
	b.Gap = gauge.away(l.stays) / gauge.value()
	return b, true
}

// sum adds up products of two int64 from 0 up without rounding.
type sum struct{ high, low uint64 }

func (s *sum) add(v, times int64) {
	high, low := bits.Mul64(uint64(max(v, 0)), uint64(max(times, 0)))
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high, _ = bits.Add64(s.high, high, carry)
}

func (s sum) value() float64 { return float64(s.high)*0x1p64 + float64(s.low) }

// away is the distance of two sums.
func (s sum) away(t sum) float64 {
	low, borrow := bits.Sub64(s.low, t.low, 0)
	high, borrow := bits.Sub64(s.high, t.high, borrow)
	if borrow > 0 {
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	return sum{high, low}.value()
}
