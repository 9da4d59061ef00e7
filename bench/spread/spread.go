// Package spread says how far repeated measurements lie apart.
package spread

import "slices"

// Of returns the least, the median and the most of values, of which there must be some. It puts them in order.
func Of(values []float64) (least, median, most float64) {
	slices.Sort(values)
	n := len(values)
	return values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]
}
