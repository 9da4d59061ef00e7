package spread

import "testing"

func TestTheMedianOfTwoIsBetweenThem(t *testing.T) {
	for _, c := range []struct {
		values              []float64
		least, median, most float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{4, 1}, 1, 2.5, 4},
		{[]float64{9, 1, 2}, 1, 2, 9},
	} {
		if least, median, most := Of(c.values); least != c.least || median != c.median || most != c.most {
			t.Errorf("%v: got %v, %v, %v; want %v, %v, %v", c.values, least, median, most, c.least, c.median, c.most)
		}
	}
}
