package export

import (
	"encoding/json"
	"math"
	"testing"
)

// The oracle is NumPy 2: percentile with its default method, std with its default degrees of freedom.
func TestStatisticsAreNumPys(t *testing.T) {
	values := sample{0.3, 1.7, 2.2, 5.5, 9.1, 4.4, 0.9}
	sorted := values.sorted()
	for p, want := range map[float64]float64{0.1: 0.3036, 1: 0.33599999999999997, 25: 1.3, 50: 2.2, 90: 6.940000000000001, 99: 8.883999999999999, 99.9: 9.078400000000002} {
		if got := sorted.percentile(p); math.Abs(got-want) > 1e-14 {
			t.Errorf("p%v: got %v, want %v", p, got, want)
		}
	}
	if got := values.std(); math.Abs(got-2.880405300279381) > 1e-14 {
		t.Errorf("std: got %v", got)
	}
	if got := (sample{4}).percentile(99); got != 4 {
		t.Errorf("of one value: got %v", got)
	}
}

func TestObjectsKeepTheirOrder(t *testing.T) {
	got, err := json.Marshal(object{{"z", 1}, {"a", object{{"y", nil}, {"<b>", []int{}}}}})
	if want := `{"z":1,"a":{"y":null,"<b>":[]}}`; err != nil || string(got) != want && string(got) != `{"z":1,"a":{"y":null,"\u003cb\u003e":[]}}` {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
