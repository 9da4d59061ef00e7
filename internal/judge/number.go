package judge

import (
	"bytes"
	"math"
	"strconv"
)

// Number is a figure that may be undefined. It is null in JSON when it is. The zero value is undefined.
type Number struct {
	value   float64
	defined bool
}

// Some makes a defined Number. NaN and infinities make an undefined one.
func Some(v float64) Number {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Number{}
	}
	return Number{v, true}
}

// Get returns the figure; ok is false when it is undefined.
func (n Number) Get() (v float64, ok bool) { return n.value, n.defined }

// Text is the figure as JSON has it, and empty where it is undefined.
func (n Number) Text() string {
	if !n.defined {
		return ""
	}
	b, _ := n.MarshalJSON() // it cannot fail
	return string(b)
}

// MarshalJSON writes the figure with at most six digits after the point: nanoseconds, where the unit is milliseconds.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.defined {
		return []byte("null"), nil
	}
	b := strconv.AppendFloat(nil, n.value, 'f', 6, 64)
	b = bytes.TrimRight(bytes.TrimRight(b, "0"), ".")
	if string(b) == "-0" {
		b = b[1:]
	}
	return b, nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number{}
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*n = Some(v)
	return nil
}
