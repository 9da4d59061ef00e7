package main

import (
	"fmt"
	"slices"
	"testing"
)

func TestStepsSayWhichLoadsFollow(t *testing.T) {
	for text, want := range map[string]string{
		"5,10,20":           "[5 10 20]",
		"7":                 "[7]",
		"linear(5,50,10)":   "[5 10 15 20 25 30 35 40 45 50]",
		"geometric(1,64,7)": "[1 2 4 8 16 32 64]",
		"geometric(1,10,3)": "[1 3.16228 10]",
		"geometric(3)":      "[3 6 12 24]",
		"linear(3)":         "[3 6 9 12]",
	} {
		s := steps{flag: "rates", text: text}
		if err := s.read(false); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []float64
		for n := 0; n < 4 || !s.open; n++ {
			v, ok := s.at(n, false)
			if !ok {
				break
			}
			got = append(got, v)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
	}
	whole := steps{flag: "concurrencies", text: "geometric(1,4,5)"}
	if err := whole.read(true); err != nil || fmt.Sprint(whole.values) != "[1 2 3 4]" {
		t.Errorf("got %v (%v), want [1 2 3 4]", whole.values, err)
	}
	for _, text := range []string{"", "x", "1,-2", "0", "linear", "linear(", "linear(5,1,3)", "linear(1,5,1)", "geometric(1,2)", "cubic(1,2,3)", "1e400", "geometric(1,9,100)", "linear(1,5,2.5)"} {
		s := steps{flag: "rates", text: text}
		if err := s.read(false); err == nil {
			t.Errorf("%q: no fault", text)
		}
	}
}

func TestStepsAboveTheMostAreLeftOutAndNoneElse(t *testing.T) {
	s := steps{flag: "rates", text: "5,2000,10"}
	if err := s.read(false); err != nil {
		t.Fatal(err)
	}
	if left := s.within(1000); fmt.Sprint(left, s.values) != "[2000] [5 10]" {
		t.Errorf("got %v left out of %v, want 2000 alone", left, s.values)
	}
	endless := steps{flag: "rates", text: "geometric(5)"}
	if err := endless.read(false); err != nil || len(endless.within(1)) > 0 || len(endless.values) != 1 {
		t.Errorf("got %v (%v), want the first load", endless.values, err)
	}
}

func TestMixedStepsCoverAllAndLieApart(t *testing.T) {
	for count := 1; count <= 20; count++ {
		var places []int
		for n := range count {
			places = append(places, apart(n, count))
		}
		sorted := slices.Sorted(slices.Values(places))
		for i, place := range sorted {
			if place != i {
				t.Fatalf("%d: got %v, want each place once", count, places)
			}
		}
		if count == 8 && fmt.Sprint(places) != "[0 4 2 6 1 5 3 7]" {
			t.Errorf("got %v", places)
		}
	}
}
