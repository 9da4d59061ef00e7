package main

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// steps are loads one after another: "5,10,20", "linear(5,50,10)", "geometric(1,64,7)", or without an end "linear(5)", "geometric(1)".
type steps struct {
	flag   string
	text   string
	values []float64
	open   bool // it goes on for ever
	factor bool // by the factor of 2, else by the difference of the first to 0
}

// mostSteps bounds a sweep that has no end of its own.
const mostSteps = 64

func (s *steps) Set(text string) error { s.text = text; return nil } // all mistakes are reported together, later

func (s *steps) String() string { return s.text }

func (s *steps) Type() string { return "STEPS" }

// read reads the text. Whole values differ: of two that round to the same one is left out.
func (s *steps) read(whole bool) error {
	s.values, s.open = nil, false
	name, inside, isSeries := strings.Cut(s.text, "(")
	if !isSeries {
		name, inside = "", s.text+")"
	}
	inside, closed := strings.CutSuffix(inside, ")")
	numbers, err := numbersOf(inside)
	switch {
	case err != nil || !closed || !slices.Contains([]string{"", "linear", "geometric"}, name):
		return s.fault("must be loads like 5,10,20, or linear(5,50,10), geometric(1,64,7), linear(5), geometric(1)")
	case name == "":
		s.values = numbers
	case len(numbers) == 1:
		s.values, s.open, s.factor = numbers, true, name == "geometric"
	case len(numbers) != 3 || numbers[0] >= numbers[1] || numbers[2] < 2 || numbers[2] > mostSteps || numbers[2] != math.Trunc(numbers[2]):
		return s.fault(fmt.Sprintf("%s needs from, a greater to, and 2 to %d steps", name, mostSteps))
	default:
		s.values = series(numbers[0], numbers[1], int(numbers[2]), name == "geometric")
	}
	if whole {
		for i := range s.values {
			s.values[i] = math.Round(s.values[i])
		}
		s.values = slices.Compact(s.values)
	}
	if slices.ContainsFunc(s.values, func(v float64) bool { return whole && v < 1 }) {
		return s.fault("must be at least 1")
	}
	if len(s.values) > mostSteps {
		return s.fault(fmt.Sprintf("must be at most %d loads", mostSteps))
	}
	return nil
}

// within leaves out the loads above the most, and returns them. Those without an end are not looked at.
func (s *steps) within(most float64) (left []float64) {
	if s.open {
		return nil
	}
	s.values = slices.DeleteFunc(s.values, func(v float64) bool {
		if v > most {
			left = append(left, v)
		}
		return v > most
	})
	return left
}

func (s *steps) fault(reason string) error {
	return fmt.Errorf("--%s: %s, got %q", s.flag, reason, s.text)
}

func numbersOf(text string) (all []float64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, errors.New("not a number above 0")
		}
		all = append(all, v)
	}
	return all, nil
}

// series are n loads from one to another, by equal differences or equal factors, in six digits.
func series(from, to float64, n int, factor bool) (all []float64) {
	for i := range n {
		part := float64(i) / float64(n-1)
		v := from + (to-from)*part
		if factor {
			v = from * math.Pow(to/from, part)
		}
		if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64); err == nil {
			v = short
		}
		all = append(all, v)
	}
	return all
}

// at is load n; mixed, in an order in which neighbours lie far apart. ok is false beyond the last.
func (s *steps) at(n int, mixed bool) (v float64, ok bool) {
	switch {
	case s.open && n < mostSteps && s.factor:
		return s.values[0] * math.Pow(2, float64(n)), true
	case s.open:
		return s.values[0] * float64(n+1), n < mostSteps
	case n >= len(s.values):
		return 0, false
	case mixed:
		return s.values[apart(n, len(s.values))], true
	}
	return s.values[n], true
}

// apart is place n of 0 to count−1 in the order of their bits read backwards: 0 4 2 6 1 5 3 7.
func apart(n, count int) int {
	width := bits.Len(uint(count - 1))
	for i := range 1 << width {
		place := int(bits.Reverse32(uint32(i)) >> (32 - width))
		if place >= count {
			continue
		}
		if n == 0 {
			return place
		}
		n--
	}
	return count - 1
}
