package stats

import (
	"math"
	"math/big"
	"math/bits"
	"time"
)

// Arrivals gathers when numbered requests arrived: their rate, the variation of the gaps between neighbours, and how their counts
// are dispersed. Its state depends on what was added only, not on the order. Its memory grows with the time that was covered,
// 4 bytes a second, and with how far out of order requests were added, not with how many there are. The zero value is empty
// and ready.
type Arrivals struct {
	n      int64
	counts []uint32        // by second since the start
	loose  map[int64]loose // requests of which a neighbour has not come

	gaps    int64
	sum     int64     // of the gaps, ns
	squares [2]uint64 // of the gaps, ns², high and low
}

// loose is a request that waits for its neighbours.
type loose struct {
	at           time.Duration
	before, next bool // has come
}

// longestCovered bounds the time in which arrivals are counted.
const longestCovered = 40 * 24 * time.Hour

// Add puts request index in, which arrived at an offset from the start. No index comes twice.
func (a *Arrivals) Add(index int64, at time.Duration) {
	a.n++
	a.count(at)
	if a.loose == nil {
		a.loose = map[int64]loose{}
	}
	own := loose{at: at}
	if l, ok := a.loose[index-1]; ok {
		a.gap(at - l.at)
		own.before, l.next = true, true
		a.keep(index-1, l)
	}
	if l, ok := a.loose[index+1]; ok {
		a.gap(l.at - at)
		own.next, l.before = true, true
		a.keep(index+1, l)
	}
	a.keep(index, own)
}

func (a *Arrivals) count(at time.Duration) {
	if at < 0 || at >= longestCovered {
		return
	}
	second := int(at / time.Second)
	for len(a.counts) <= second {
		a.counts = append(a.counts, 0)
	}
	a.counts[second]++
}

func (a *Arrivals) keep(index int64, l loose) {
	if l.before && l.next {
		delete(a.loose, index)
		return
	}
	a.loose[index] = l
}

// gap takes the time between two neighbours, which is negative where the later one came first.
func (a *Arrivals) gap(d time.Duration) {
	a.gaps++
	a.sum += int64(d)
	size := uint64(max(d, -d))
	high, low := bits.Mul64(size, size)
	var carry uint64
	a.squares[1], carry = bits.Add64(a.squares[1], low, 0)
	a.squares[0], _ = bits.Add64(a.squares[0], high, carry)
}

// N returns how many were added.
func (a *Arrivals) N() int64 { return a.n }

// Variation returns the coefficient of variation of the gaps between neighbours; ok is false for fewer than two gaps.
func (a *Arrivals) Variation() (cv float64, ok bool) {
	if a.gaps < 2 || a.sum <= 0 {
		return 0, false
	}
	squares := new(big.Int).SetUint64(a.squares[0])
	squares.Lsh(squares, 64).Add(squares, new(big.Int).SetUint64(a.squares[1]))
	sum, n := big.NewInt(a.sum), big.NewInt(a.gaps)
	// variance = (n·Σx² − (Σx)²) / (n(n−1)), whose numerator is exact
	over := new(big.Int).Mul(n, squares)
	over.Sub(over, new(big.Int).Mul(sum, sum))
	variance, _ := new(big.Rat).SetFrac(over, new(big.Int).Mul(n, big.NewInt(a.gaps-1))).Float64()
	return math.Sqrt(variance) / (float64(a.sum) / float64(a.gaps)), true
}

// leastSpans is how many spans of time there must be for their counts to have a dispersion.
const leastSpans = 10

// Dispersion returns the index of dispersion of the counts in spans of whole seconds: their variance over their mean, 1 for a
// Poisson process, 0 for equal counts. Only spans that lie in the window from the start on are looked at; ok is false for
// fewer than ten of them, or when nothing arrived in them.
func (a *Arrivals) Dispersion(span, window time.Duration) (index float64, ok bool) {
	width := int(span / time.Second)
	n := int64(window / span)
	if n < leastSpans {
		return 0, false
	}
	var sum, squares int64
	for i := range n {
		count := int64(0)
		for second := int(i) * width; second < (int(i)+1)*width && second < len(a.counts); second++ {
			count += int64(a.counts[second])
		}
		sum += count
		squares += count * count
	}
	if sum == 0 {
		return 0, false
	}
	mean := float64(sum) / float64(n)
	return (float64(squares) - float64(sum)*mean) / float64(n-1) / mean, true
}
