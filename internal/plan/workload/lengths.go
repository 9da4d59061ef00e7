package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/internal/plan/draw"
)

// Lengths is how long prompts or answers are, as it is written: a number, or a distribution of whole numbers like
// "normal(512,128,min=16,max=2048)". What min and max cut off is drawn anew.
type Lengths struct {
	Family    string // one of Families; empty for a number
	Parameter [3]float64
	File      string // of family file: a length on each line, and a weight behind it if they are not alike
	Within    draw.Range
}

// Families returns how distributions of lengths are written.
func Families() []string {
	return []string{"uniform(LEAST,MOST)", "normal(MEAN,SD)", "lognormal(MEAN,SD)", "skewnormal(MEAN,SD,SHAPE)", "poisson(MEAN)", "zipf(S,N)", "file(PATH)"}
}

// MaxLength is the longest prompt or answer, tokens.
const MaxLength = 4 << 20

// ParseLengths reads lengths; its errors say what would be right.
func ParseLengths(text string) (l Lengths, err error) {
	l.Within = draw.Range{Least: 1, Most: MaxLength}
	family, rest, distributed := strings.Cut(strings.TrimSpace(text), "(")
	if !distributed {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return l, fmt.Errorf("must be a whole number or a distribution, got %q", text)
		}
		l.Parameter[0] = float64(n)
		return l, within(float64(n))
	}
	l.Family = strings.TrimSpace(family)
	inner, closed := strings.CutSuffix(strings.TrimSpace(rest), ")")
	if !closed {
		return l, fmt.Errorf("must end with ), got %q", text)
	}
	var plain []string
	for part := range strings.SplitSeq(inner, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named || l.Family == "file" && name != "min" && name != "max" {
			plain = append(plain, strings.TrimSpace(part))
			continue
		}
		if err := l.limit(name, value); err != nil {
			return l, err
		}
	}
	return l, l.take(plain)
}

func (l *Lengths) limit(name, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case name != "min" && name != "max":
		return fmt.Errorf("%s is not known: what a distribution may have besides its numbers is min and max", name)
	case err != nil:
		return fmt.Errorf("%s must be a whole number, got %q", name, value)
	case name == "min":
		l.Within.Least = n
	default:
		l.Within.Most = n
	}
	return within(float64(n))
}

func (l *Lengths) take(plain []string) error {
	if l.Family == "file" {
		if l.File = strings.Join(plain, ","); l.File == "" {
			return errors.New("must name a file: file(PATH)")
		}
		return l.rangeFault()
	}
	names := map[string][]string{
		"uniform": {"least", "most"}, "normal": {"mean", "sd"}, "lognormal": {"mean", "sd"}, "skewnormal": {"mean", "sd", "shape"},
		"poisson": {"mean"}, "zipf": {"s", "n"},
	}[l.Family]
	switch {
	case names == nil:
		return fmt.Errorf("must be a number, uniform, normal, lognormal, skewnormal, poisson, zipf or file, got %q", l.Family)
	case len(plain) != len(names):
		return fmt.Errorf("must have the numbers %s(%s), got %d", l.Family, strings.Join(names, ","), len(plain))
	}
	for i, text := range plain {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("%s must be a number, got %q", names[i], text)
		}
		l.Parameter[i] = v
	}
	return errors.Join(l.rangeFault(), l.parameterFault())
}

func (l *Lengths) rangeFault() error {
	if l.Within.Least > l.Within.Most {
		return fmt.Errorf("min must not be above max, got %d and %d", l.Within.Least, l.Within.Most)
	}
	return nil
}

func (l *Lengths) parameterFault() error {
	a, b := l.Parameter[0], l.Parameter[1]
	switch whole := a == math.Trunc(a) && b == math.Trunc(b); {
	case l.Family == "uniform" && (!whole || a < 1 || b < a || b > MaxLength):
		return fmt.Errorf("must have whole numbers within 1 and %d, the least first, got %v and %v", MaxLength, a, b)
	case l.Family == "zipf" && (!(a >= 0 && a <= 20) || b != math.Trunc(b) || b < 1 || b > draw.MaxCategories):
		return fmt.Errorf("must have s within 0 and 20 and a whole n within 1 and %d, got %v and %v", draw.MaxCategories, a, b)
	case (l.Family == "normal" || l.Family == "lognormal" || l.Family == "skewnormal") && (!(a > 0 && a <= MaxLength) || !(b >= 0 && b <= MaxLength)):
		return fmt.Errorf("must have a mean above 0 and an sd of 0 or more, at most %d, got %v and %v", MaxLength, a, b)
	}
	if l.Family != "file" {
		_, err := l.Sampler(nil)
		return err
	}
	return nil
}

func within(n float64) error {
	if n < 1 || n > MaxLength {
		return fmt.Errorf("must be within 1 and %d tokens, got %v", MaxLength, n)
	}
	return nil
}

// Fixed returns the number, if it is one.
func (l Lengths) Fixed() (n int, ok bool) { return int(l.Parameter[0]), l.Family == "" }

// Sampler draws lengths. It is not safe for concurrent use with one source.
type Sampler struct {
	Mean float64 // as asked for: of a normal, lognormal, skew-normal or Poisson distribution before min and max cut it
	draw func(*draw.Source) int64
}

// Draw returns the next length.
func (s Sampler) Draw(from *draw.Source) int { return int(s.draw(from)) }

// Sampler makes the draws. Buckets are those of the file, of family file.
func (l Lengths) Sampler(buckets []draw.Bucket) (Sampler, error) {
	a, b := l.Parameter[0], l.Parameter[1]
	switch l.Family {
	case "":
		return Sampler{a, func(*draw.Source) int64 { return int64(a) }}, nil
	case "uniform":
		r := draw.Range{Least: max(int64(a), l.Within.Least), Most: min(int64(b), l.Within.Most)}
		if r.Least > r.Most {
			return Sampler{}, errors.New("min and max must leave something of the distribution")
		}
		return Sampler{(a + b) / 2, r.Draw}, nil
	case "normal":
		d, err := draw.NewNormal(a, b, l.Within)
		return Sampler{a, d.Draw}, err
	case "lognormal":
		d, err := draw.LognormalOf(a, b, l.Within)
		return Sampler{a, d.Draw}, err
	case "skewnormal":
		d, err := draw.NewSkewNormal(a, b, l.Parameter[2], l.Within)
		return Sampler{a, d.Draw}, err
	case "poisson":
		d, err := draw.NewPoisson(a, l.Within)
		return Sampler{a, d.Draw}, err
	case "zipf":
		return l.zipf(a, int64(b))
	}
	return l.empirical(buckets)
}

// zipf gives length k the weight k^−s, from 1 to n.
func (l Lengths) zipf(s float64, n int64) (Sampler, error) {
	least, most := l.Within.Least, min(n, l.Within.Most)
	if least > most {
		return Sampler{}, errors.New("min and max must leave something of the distribution")
	}
	weights, mean, sum := make([]float64, most-least+1), 0.0, 0.0
	for i := range weights {
		k := float64(least + int64(i))
		weights[i] = math.Pow(k, -s)
		mean, sum = mean+k*weights[i], sum+weights[i]
	}
	c, err := draw.NewZipf(s, int(n))
	if err != nil {
		return Sampler{}, err
	}
	return Sampler{mean / sum, func(from *draw.Source) int64 {
		for {
			if k := int64(c.Draw(from)) + 1; k >= least && k <= most {
				return k
			}
		}
	}}, l.zipfFault(c, least, most)
}

func (l Lengths) zipfFault(c draw.Categorical, least, most int64) error {
	share := 0.0
	for k := least; k <= most; k++ {
		share += c.Share(int(k - 1))
	}
	if share < 0.001 {
		return fmt.Errorf("min and max must leave 0.001 of the distribution or more, they leave %.3g", share)
	}
	return nil
}

func (l Lengths) empirical(buckets []draw.Bucket) (Sampler, error) {
	var kept []draw.Bucket
	mean, sum := 0.0, 0.0
	for _, b := range buckets {
		if b.Least >= l.Within.Least && b.Most <= l.Within.Most {
			kept = append(kept, b)
			mean, sum = mean+float64(b.Least)*b.Weight, sum+b.Weight
		}
	}
	if sum == 0 {
		return Sampler{}, errors.New("min and max must leave some length of the file")
	}
	h, err := draw.NewHistogram(kept)
	return Sampler{mean / sum, h.Draw}, err
}
