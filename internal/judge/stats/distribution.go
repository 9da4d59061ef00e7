// Package stats summarizes samples: distributions that merge without loss, their quantiles, and how far n carries them.
package stats

import (
	"math/big"
	"math/bits"
)

const (
	subBits = 9
	subs    = 1 << subBits // buckets per octave
	octaves = 64 - subBits + 1
)

// Distribution gathers int64 values (nanoseconds, counts) in bounded memory: n, sum, mean, least and greatest value are
// exact, and a quantile is the mean of the values in its bucket, at most 1/512 away from the value itself and equal to it
// where the bucket's values are equal. Values below 1024 have a bucket each.
//
// Its state depends on the multiset of the values only: any order of Add and any partition joined with Merge leads to the
// same bits. The zero value is empty and ready. It must not be copied once it holds values.
//
// Note: hdrhistogram-go costs the same per value, but a bucket of it stands for its middle: a constant 50 ms comes out as
// 50.004 ms and the mean is that of the buckets. Its upper limit must also be declared before the first value.
type Distribution struct {
	n        int64
	min, max int64
	sides    [2][octaves]*octave // values from 0 up, values below 0 by magnitude
}

// octave holds the values whose magnitude has one bit length; the first octave holds those below 512, one apiece.
type octave [subs]bucket

type bucket struct {
	count uint64
	above uint64 // sum of the distances of the magnitudes from the bucket's lower bound
}

// Add puts one value in.
func (d *Distribution) Add(v int64) { d.AddN(v, 1) }

// AddN puts the value v in n times. n below 1 adds nothing.
func (d *Distribution) AddN(v, n int64) {
	if n < 1 {
		return
	}
	if d.n == 0 {
		d.min, d.max = v, v
	}
	d.n += n
	if v < d.min {
		d.min = v
	}
	if v > d.max {
		d.max = v
	}
	side, m := &d.sides[0], uint64(v)
	if v < 0 {
		side, m = &d.sides[1], -m
	}
	o, sub, above := locate(m)
	oct := side[o]
	if oct == nil {
		oct = new(octave)
		side[o] = oct
	}
	b := &oct[sub%subs]
	b.count += uint64(n)
	b.above += above * uint64(n)
}

// locate finds the bucket of a magnitude and its distance from the bucket's lower bound.
func locate(m uint64) (o, sub int, above uint64) {
	if m < subs {
		return 0, int(m), 0
	}
	o = bits.Len64(m) - subBits
	shift := o - 1
	return o, int(m>>shift) - subs, m & (1<<shift - 1)
}

// place gives the width of octave o's buckets (unit) and the number of widths at which its first one starts.
func place(o int) (unit, first uint64) {
	if o == 0 {
		return 1, 0
	}
	return 1 << (o - 1), subs
}

// Merge puts all values of other in. It leaves other as it is.
func (d *Distribution) Merge(other *Distribution) {
	if other.n == 0 {
		return
	}
	if d.n == 0 {
		d.min, d.max = other.min, other.max
	}
	d.n += other.n
	d.min, d.max = min(d.min, other.min), max(d.max, other.max)
	for s := range other.sides {
		for o, from := range other.sides[s] {
			if from == nil {
				continue
			}
			to := d.sides[s][o]
			if to == nil {
				to = new(octave)
				d.sides[s][o] = to
			}
			for i := range from {
				to[i].count += from[i].count
				to[i].above += from[i].above
			}
		}
	}
}

// N returns how many values are in.
func (d *Distribution) N() int64 { return d.n }

// Min returns the least value, exact.
func (d *Distribution) Min() (v int64, ok bool) { return d.min, d.n > 0 }

// Max returns the greatest value, exact.
func (d *Distribution) Max() (v int64, ok bool) { return d.max, d.n > 0 }

// Mean returns the mean of the values, exact before it is rounded to a float64.
func (d *Distribution) Mean() (mean float64, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	mean, _ = new(big.Rat).SetFrac(d.sum(), big.NewInt(d.n)).Float64()
	return mean, true
}

// Sum returns the sum of the values, exact before it is rounded to a float64.
func (d *Distribution) Sum() float64 {
	sum, _ := new(big.Float).SetInt(d.sum()).Float64()
	return sum
}

func (d *Distribution) sum() *big.Int {
	total := new(big.Int)
	for s := range d.sides {
		for o, oct := range d.sides[s] {
			if oct == nil {
				continue
			}
			part := oct.sum(o)
			if s == 1 {
				part.Neg(part)
			}
			total.Add(total, part)
		}
	}
	return total
}

// sum adds up the magnitudes in octave o.
func (oct *octave) sum(o int) *big.Int {
	unit, first := place(o)
	var widths, above uint64
	for i, b := range oct {
		widths += b.count * (first + uint64(i))
		above += b.above
	}
	sum := new(big.Int).SetUint64(widths)
	sum.Mul(sum, new(big.Int).SetUint64(unit))
	return sum.Add(sum, new(big.Int).SetUint64(above))
}

// Quantile returns the value at a level given in parts per million, by nearest rank: of n values in ascending order the one
// at rank ceil(n·ppm/10⁶), the first for 0.
func (d *Distribution) Quantile(ppm int64) (v float64, ok bool) { return d.At(rankOf(d.n, ppm)) }

// At returns the value at a rank, from 1 for the least to n for the greatest. Those two are exact; any other comes out as the mean
// of its bucket. ok is false for ranks that no value has.
func (d *Distribution) At(rank int64) (v float64, ok bool) {
	switch {
	case rank < 1 || rank > d.n:
		return 0, false
	case rank == 1:
		return float64(d.min), true
	case rank == d.n:
		return float64(d.max), true
	}
	left := rank
	for c := range d.cells {
		if left <= c.count {
			return c.mean, true
		}
		left -= c.count
	}
	return float64(d.max), true
}

// Each gives yield every bucket that holds values, in ascending order: the mean of its values, at most 1/512 away from any of them, and
// how many they are.
func (d *Distribution) Each(yield func(value float64, n int64)) {
	for c := range d.cells {
		yield(c.mean, c.count)
	}
}

// cell is a bucket that holds values.
type cell struct {
	place int // ascends with the values; equal in all distributions for equal values
	count int64
	mean  float64
}

// cells yields the buckets that hold values, in ascending order.
func (d *Distribution) cells(yield func(cell) bool) {
	for o := octaves - 1; o >= 0; o-- {
		if oct := d.sides[1][o]; oct != nil {
			for i := subs - 1; i >= 0; i-- {
				if n := oct[i].count; n > 0 && !yield(cell{-1 - o*subs - i, int64(n), -oct.mean(o, i)}) {
					return
				}
			}
		}
	}
	for o, oct := range d.sides[0] {
		if oct != nil {
			for i := range oct {
				if n := oct[i].count; n > 0 && !yield(cell{o*subs + i, int64(n), oct.mean(o, i)}) {
					return
				}
			}
		}
	}
}

// rankOf is ceil(n·ppm/10⁶) without overflow, kept in 1…n, and 0 for no values.
func rankOf(n, ppm int64) int64 {
	const whole = 1_000_000
	ppm = min(max(ppm, 0), whole)
	high, low := bits.Mul64(uint64(n), uint64(ppm))
	rank, rest := bits.Div64(high, low, whole)
	if rest > 0 {
		rank++
	}
	return min(max(int64(rank), 1), n)
}

// mean is the mean magnitude in bucket i of octave o, which holds at least one value.
func (oct *octave) mean(o, i int) float64 {
	unit, first := place(o)
	b := oct[i]
	return float64((first+uint64(i))*unit) + float64(b.above)/float64(b.count)
}
