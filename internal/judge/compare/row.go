package compare

import (
	"math"
	"slices"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
)

// Row is one quantity of both sides.
type Row struct {
	Quantity string         `json:"quantity"`
	Better   string         `json:"better"` // lower, higher, or neither
	A        []judge.Number `json:"a"`      // one value of each run
	B        []judge.Number `json:"b"`
	MedianA  judge.Number   `json:"median_a"`
	MedianB  judge.Number   `json:"median_b"`
	Shift    judge.Number   `json:"shift"` // B − A, the estimate of Hodges and Lehmann
	Low      judge.Number   `json:"low"`   // its 95 % interval; undefined with too few runs
	High     judge.Number   `json:"high"`

	// Shares of the median of A; undefined where that is 0.
	Relative     judge.Number `json:"relative"`
	RelativeLow  judge.Number `json:"relative_low"`
	RelativeHigh judge.Number `json:"relative_high"`

	U         judge.Number `json:"u"`           // pairs in which B is above A, ties by halves
	P         judge.Number `json:"p"`           // two-sided, of Mann and Whitney; undefined where all values are the same, or a side has one run
	Corrected judge.Number `json:"corrected_p"` // by Holm, for the number of rows that were tested
	Exact     bool         `json:"exact"`       // by counting all arrangements
	Finding   Finding      `json:"finding"`

	better measure.Better
	apart  bool    // some values differ
	least  float64 // that P could have come to
}

// Finding is what a row says.
type Finding string

const (
	Worse    Finding = "worse"
	Better   Finding = "better"
	Changed  Finding = "changed"   // of a quantity for which neither direction is better
	Small    Finding = "small"     // a difference was shown, below the least that counts
	NotShown Finding = "not shown" // no difference was shown
	NoTest   Finding = "no test"   // too few runs for one
	Same     Finding = "the same"  // in every run of both sides
	NoValue  Finding = "no values" // on one side or both
)

// row gathers a quantity of both sides and tests it.
func (q *Quantity) row(left, right []*judge.Part) Row {
	r := Row{Quantity: q.Name, Better: direction(q.Better), better: q.Better}
	var a, b []float64
	r.A, a = q.values(left)
	r.B, b = q.values(right)
	r.MedianA, r.MedianB = median(a), median(b)
	if len(a) == 0 || len(b) == 0 {
		return r
	}
	all := append(slices.Clone(a), b...)
	r.apart = slices.Min(all) != slices.Max(all)
	r.shift(a, b)
	if len(a) > 1 && len(b) > 1 && r.apart {
		t, _ := stats.MannWhitney(b, a)
		r.U, r.P, r.Exact = judge.Some(t.U), judge.Some(t.P), t.Exact
		r.least = stats.LeastP(len(a), len(b))
	}
	return r
}

func (q *Quantity) values(parts []*judge.Part) (shown []judge.Number, known []float64) {
	for _, p := range parts {
		n := q.of(p)
		shown = append(shown, n)
		if v, ok := n.Get(); ok {
			known = append(known, v)
		}
	}
	return shown, known
}

func (r *Row) shift(a, b []float64) {
	s, _ := stats.HodgesLehmann(b, a)
	r.Shift = judge.Some(s.Median)
	base, _ := r.MedianA.Get()
	r.Relative = judge.Some(s.Median / math.Abs(base)) // undefined for 0
	if s.Bounded {
		r.Low, r.High = judge.Some(s.Low), judge.Some(s.High)
		r.RelativeLow, r.RelativeHigh = judge.Some(s.Low/math.Abs(base)), judge.Some(s.High/math.Abs(base))
	}
}

func median(values []float64) judge.Number {
	m, ok := stats.Median(values)
	if !ok {
		return judge.Number{}
	}
	return judge.Some(m)
}

func direction(b measure.Better) string {
	switch b {
	case measure.Lower:
		return "lower"
	case measure.Higher:
		return "higher"
	}
	return "neither"
}

// decide says what the row shows. A difference from a median of 0 has no share, and counts as large enough.
func (r *Row) decide(least float64, tests int) {
	p, tested := r.Corrected.Get()
	shift, known := r.Shift.Get()
	relative, shared := r.Relative.Get()
	switch {
	case !known:
		r.Finding = NoValue
	case !r.apart:
		r.Finding = Same
	case !tested || r.least*float64(tests) > Level:
		r.Finding = NoTest
	case p > Level || shift == 0:
		r.Finding = NotShown
	case shared && math.Abs(relative) < least:
		r.Finding = Small
	case r.better == measure.Neither:
		r.Finding = Changed
	case (shift > 0) == (r.better == measure.Higher):
		r.Finding = Better
	default:
		r.Finding = Worse
	}
}
