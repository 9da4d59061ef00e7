package draw

import (
	"fmt"
	"math"
	"slices"
)

// Categorical draws one of several things, each in proportion to its weight.
type Categorical struct {
	until []uint64 // sum of the weights up to and with each, in units of 2⁻⁴⁰ of the largest
}

// MaxCategories is the largest number of things to draw from.
const MaxCategories = 1 << 20

// scale is the largest weight; so many of it in all cannot overflow.
const scale = 1 << 40

// NewCategorical takes the weights, which must not be negative, and one of which must be above 0. A weight counts to 2⁻⁴⁰ of
// the largest one.
func NewCategorical(weights []float64) (Categorical, error) {
	if len(weights) == 0 || len(weights) > MaxCategories {
		return Categorical{}, fmt.Errorf("there must be 1 to %d weights, got %d", MaxCategories, len(weights))
	}
	for i, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return Categorical{}, fmt.Errorf("weight %d must be a number of 0 or more, got %v", i+1, w)
		}
	}
	most := slices.Max(weights)
	if most == 0 {
		return Categorical{}, fmt.Errorf("one of the weights must be above 0, got %d of 0", len(weights))
	}
	until, sum := make([]uint64, len(weights)), uint64(0)
	for i, w := range weights {
		sum += uint64(math.Floor(float64(w/most*scale) + 0.5))
		until[i] = sum
	}
	return Categorical{until}, nil
}

// Draw returns the index of the next one, from 0.
func (c Categorical) Draw(s *Source) int {
	x := s.Below(c.until[len(c.until)-1])
	low, high := 0, len(c.until)-1
	for low < high {
		if middle := (low + high) / 2; c.until[middle] > x {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// Share returns the probability of one of the things.
func (c Categorical) Share(i int) float64 {
	weight := c.until[i]
	if i > 0 {
		weight -= c.until[i-1]
	}
	return float64(weight) / float64(c.until[len(c.until)-1])
}

// NewZipf returns ranks from 0 to n−1, of which rank k has the weight (k+1)^−exponent.
func NewZipf(exponent float64, n int) (Categorical, error) {
	if !(exponent >= 0 && exponent <= 20) {
		return Categorical{}, fmt.Errorf("the exponent must be within 0 and 20, got %v", exponent)
	}
	if n < 1 || n > MaxCategories {
		return Categorical{}, fmt.Errorf("there must be 1 to %d ranks, got %d", MaxCategories, n)
	}
	weights := make([]float64, n)
	for k := range weights {
		weights[k] = exp(-float64(exponent * log(float64(k+1))))
	}
	return NewCategorical(weights)
}

// Histogram draws whole numbers: a bucket in proportion to its weight, and a uniform number of its range.
type Histogram struct {
	which   Categorical
	buckets []Bucket
}

// Bucket is one bar of a histogram. A value that was observed is a bucket of its own, weighing as often as it was.
type Bucket struct {
	Range
	Weight float64
}

// NewHistogram takes the buckets and keeps them. They may overlap.
func NewHistogram(buckets []Bucket) (Histogram, error) {
	weights := make([]float64, len(buckets))
	for i, b := range buckets {
		if err := b.fault(); err != nil {
			return Histogram{}, fmt.Errorf("bucket %d: %w", i+1, err)
		}
		weights[i] = b.Weight
	}
	which, err := NewCategorical(weights)
	return Histogram{which, buckets}, err
}

// Draw returns the next number.
func (h Histogram) Draw(s *Source) int64 { return h.buckets[h.which.Draw(s)].Range.Draw(s) }
