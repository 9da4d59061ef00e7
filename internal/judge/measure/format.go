package measure

import (
	"math"
	"strconv"
)

// Format writes a value of the unit's base (nanoseconds, tokens) for people: three significant digits, and for times the
// fitting one of ns, µs, ms and s.
func (u Unit) Format(v float64) string {
	if u != Milliseconds {
		return Digits(v)
	}
	for _, scale := range []struct {
		base float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if math.Abs(v) >= scale.base*0.9995 { // 999.5 µs and more would round to 1000
			return Digits(v/scale.base) + scale.name
		}
	}
	if v == 0 {
		return "0"
	}
	return Digits(v) + "ns"
}

// Digits writes v with three significant digits, or all digits before the point where there are more.
func Digits(v float64) string {
	size := math.Abs(v)
	switch {
	case size == 0:
		return "0"
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}
