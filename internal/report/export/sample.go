package export

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"

	"tare/internal/report"
)

// sample is a quantity of which other tools hold every value.
type sample []float64

// percentile is NumPy's default: linear between the values around the place (n−1)·p/100. The sample must be sorted and not empty.
func (s sample) percentile(p float64) float64 {
	place := float64(len(s)-1) * p / 100
	low := int(math.Floor(place))
	high := min(low+1, len(s)-1)
	part := place - float64(low)
	between := s[high] - s[low]
	if part >= 0.5 { // as NumPy, from the nearer end
		return s[high] - between*(1-part)
	}
	return s[low] + between*part
}

func (s sample) sorted() sample { return slices.Sorted(slices.Values(s)) }

func (s sample) sum() (sum float64) {
	for _, v := range s {
		sum += v
	}
	return sum
}

func (s sample) mean() float64 { return s.sum() / float64(len(s)) }

// std is the standard deviation of the population, as NumPy's std.
func (s sample) std() float64 {
	mean, sum := s.mean(), 0.0
	for _, v := range s {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(s)))
}

// times is the sample in another unit.
func (s sample) times(factor float64) sample {
	scaled := make(sample, len(s))
	for i, v := range s {
		scaled[i] = v * factor
	}
	return scaled
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value any
}

func (o *object) add(key string, value any) { *o = append(*o, member{key, value}) }

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plainJSON(m.key)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON encodes without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// indented writes v as a document.
func indented(v any) func(io.Writer) error {
	return func(to io.Writer) error { return report.Encode(to, v) }
}

// orNull is v, or null where it is not known.
func orNull(v float64, known bool) any {
	if !known || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}
