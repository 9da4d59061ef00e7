package infperf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// distributionKeys are those of a distribution.
var distributionKeys = []string{"type", "min", "max", "mean", "std_dev", "variance", "skew", "total_count"}

// distribution writes a length or a distribution as lengths of our spec.
func (c *converter) distribution(n *node, path string) (text string, ok bool) {
	if n.single {
		v, number := n.number()
		if !number || v != math.Trunc(v) {
			c.fault(n, path, fmt.Sprintf("must be a whole number or a distribution, got %q", n.text), "")
			return "", false
		}
		return whole(v), true
	}
	d, ok := c.shape(n, path)
	if !ok {
		return "", false
	}
	limits := fmt.Sprintf("min=%s,max=%s", whole(max(1, d.min)), whole(d.max))
	switch d.family {
	case "fixed":
		return whole(d.mean), true
	case "uniform":
		return fmt.Sprintf("uniform(%s,%s)", whole(max(1, d.min)), whole(d.max)), true
	case "normal", "lognormal":
		if d.deviation == 0 {
			return whole(min(max(d.mean, d.min), d.max)), true
		}
		return fmt.Sprintf("%s(%s,%s,%s)", d.family, plain(d.mean), plain(d.deviation), limits), true
	case "skew_normal":
		c.note(n, path, "is a skew-normal distribution of that mean and std_dev, of shape skew")
		return fmt.Sprintf("skewnormal(%s,%s,%s,%s)", plain(d.mean), plain(d.deviation), plain(d.skew), limits), true
	case "poisson":
		return fmt.Sprintf("poisson(%s,%s)", plain(d.mean), limits), true
	}
	c.fault(n, path+".type", fmt.Sprintf("must be one of normal, skew_normal, lognormal, uniform, poisson, fixed, got %q", d.family), "")
	return "", false
}

// shape is a distribution as it is given, with what stands for the keys that are not.
type shape struct {
	family                    string
	min, max, mean, deviation float64
	skew                      float64
}

func (c *converter) shape(n *node, path string) (d shape, ok bool) {
	if !n.isMap {
		c.fault(n, path, "must be a number or a distribution", "")
		return d, false
	}
	before := len(c.Faults)
	for _, e := range n.keys {
		if !slices.Contains(distributionKeys, e.name) {
			c.fault(e.at, path+"."+e.name, "is not a key of a distribution", fmt.Sprintf("the keys here are %v", distributionKeys))
		}
	}
	number := func(name string, otherwise float64) float64 {
		child := n.child(name)
		if child == nil {
			return otherwise
		}
		v, ok := child.number()
		if !ok || math.IsNaN(v) || v < 0 && name != "skew" || math.Abs(v) > 1e12 {
			c.fault(child, path+"."+name, fmt.Sprintf("must be a number of 0 or more, got %q", child.text), "")
		}
		return v
	}
	d = shape{"normal", number("min", 10), number("max", 1024), number("mean", 512), number("std_dev", 200), number("skew", 0)}
	if t := n.child("type"); t != nil {
		d.family = t.text
	}
	if v := n.child("variance"); v != nil {
		if n.child("std_dev").idle() {
			d.deviation = math.Sqrt(number("variance", 0))
		} else {
			c.fault(v, path+".variance", "does not go with std_dev", "leave one of them out")
		}
	}
	return d, len(c.Faults) == before
}

// fixedOf is the number that a value always has; ok is false where it differs.
func fixedOf(n *node) (v int, ok bool) {
	x, single := n.number()
	if !single {
		var quiet converter
		d, good := quiet.shape(n, "")
		fixed := good && (d.family == "fixed" || (d.family == "normal" || d.family == "lognormal") && d.deviation == 0 || d.family == "uniform" && d.min == d.max)
		if !fixed {
			return 0, false
		}
		if x = d.mean; d.family == "uniform" {
			x = d.min
		}
	}
	return int(math.Round(x)), x == math.Trunc(x)
}

// most is the largest number that a value may have.
func most(n *node, otherwise float64) float64 {
	if n == nil {
		return otherwise
	}
	if v, ok := n.number(); ok {
		return v
	}
	var quiet converter
	d, _ := quiet.shape(n, "")
	if d.family == "fixed" {
		return d.mean
	}
	return d.max
}

// mean is the mean of a value before min and max cut it; 0 where it cannot be read.
func mean(n *node, otherwise float64) float64 {
	if n == nil {
		return otherwise
	}
	if v, ok := n.number(); ok {
		return v
	}
	var quiet converter
	d, ok := quiet.shape(n, "")
	switch {
	case !ok:
		return 0
	case d.family == "uniform":
		return (max(1, d.min) + d.max) / 2
	}
	return d.mean
}

func whole(v float64) string { return strconv.FormatFloat(math.Round(v), 'f', 0, 64) }

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
