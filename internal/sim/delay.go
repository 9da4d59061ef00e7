package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Delay is a distribution of spans of time. The zero value is a constant 0. It is a flag value: Set parses
//
//	50ms  constant(50ms)  uniform(10ms,20ms)  exponential(50ms)  lognormal(50ms,0.4)
//
// where exponential takes its mean, and lognormal its mean and its coefficient of variation.
type Delay struct {
	shape shape
	a     float64 // nanoseconds: value, lower bound or mean
	b     float64 // nanoseconds: upper bound; for lognormal the coefficient of variation, a ratio
}

type shape uint8

const (
	constant shape = iota
	uniform
	exponential
	lognormal
)

var shapeNames = [...]string{"constant", "uniform", "exponential", "lognormal"}

// Constant is a Delay that always is d.
func Constant(d time.Duration) Delay { return Delay{a: float64(d)} }

// ParseDelay reads a Delay in the notation of Set.
func ParseDelay(s string) (Delay, error) {
	name, args, ok := strings.Cut(strings.TrimSpace(s), "(")
	if !ok {
		name, args = "constant", name+")"
	}
	args, ok = strings.CutSuffix(args, ")")
	if !ok {
		return Delay{}, delayFault(s, "no closing parenthesis")
	}
	list := strings.Split(args, ",")
	for i, known := range shapeNames {
		if known == strings.TrimSpace(name) {
			return parseShape(s, Delay{shape: shape(i)}, list)
		}
	}
	return Delay{}, delayFault(s, "unknown distribution "+strconv.Quote(name))
}

func parseShape(s string, d Delay, args []string) (Delay, error) {
	want := 1
	if d.shape == uniform || d.shape == lognormal {
		want = 2
	}
	if len(args) != want {
		return Delay{}, delayFault(s, fmt.Sprintf("%s takes %d values", shapeNames[d.shape], want))
	}
	first, err := parseSpan(args[0])
	if err != nil {
		return Delay{}, delayFault(s, err.Error())
	}
	d.a = first
	switch d.shape {
	case uniform:
		if d.b, err = parseSpan(args[1]); err == nil && d.b < d.a {
			err = fmt.Errorf("upper bound below the lower")
		}
	case lognormal:
		d.b, err = strconv.ParseFloat(strings.TrimSpace(args[1]), 64)
		if err != nil || d.b < 0 || d.b > 100 {
			err = fmt.Errorf("coefficient of variation must be a number from 0 to 100, got %q", args[1])
		}
	}
	if err != nil {
		return Delay{}, delayFault(s, err.Error())
	}
	return d, nil
}

func parseSpan(s string) (float64, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	if d < 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("must be from 0 to 24h, got %v", d)
	}
	return float64(d), nil
}

func delayFault(s, reason string) error {
	return fmt.Errorf("delay %q: %s\nhint: 50ms, uniform(10ms,20ms), exponential(50ms) or lognormal(50ms,0.4)", s, reason)
}

// Set replaces d by the parsed s.
func (d *Delay) Set(s string) error {
	parsed, err := ParseDelay(s)
	if err == nil {
		*d = parsed
	}
	return err
}

// Type names the flag's value in help texts.
func (d *Delay) Type() string { return "delay" }

// String gives d in the notation that Set reads.
func (d Delay) String() string {
	a := time.Duration(d.a)
	switch d.shape {
	case uniform:
		return fmt.Sprintf("uniform(%v,%v)", a, time.Duration(d.b))
	case exponential:
		return fmt.Sprintf("exponential(%v)", a)
	case lognormal:
		return fmt.Sprintf("lognormal(%v,%v)", a, d.b)
	}
	return a.String()
}

func (d Delay) constant() bool { return d.shape == constant }
func (d Delay) zero() bool     { return d.shape == constant && d.a == 0 }

// mean is the expected value in nanoseconds.
func (d Delay) mean() float64 {
	if d.shape == uniform {
		return (d.a + d.b) / 2
	}
	return d.a
}

// at is the value below which the fraction u of all draws lies, in nanoseconds; 0 < u < 1.
func (d Delay) at(u float64) int64 {
	switch d.shape {
	case uniform:
		return int64(math.Round(d.a + (d.b-d.a)*u))
	case exponential:
		return int64(math.Round(-d.a * math.Log(1-u)))
	case lognormal:
		if d.a == 0 {
			return 0
		}
		variance := math.Log1p(d.b * d.b)
		normal := math.Sqrt2 * math.Erfinv(2*u-1)
		return int64(math.Round(d.a * math.Exp(math.Sqrt(variance)*normal-variance/2)))
	}
	return int64(d.a)
}
