package draw

import (
	"math"
	"math/big"
	"testing"
)

func TestMinusLogIsExactToTwoBits(t *testing.T) {
	us := []uint64{1, 2, 3, halfRoot - 1, halfRoot, halfRoot + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	s := New(1, "log")
	for range 10_000 {
		us = append(us, max(1, s.Uint64()>>(s.Below(64))))
	}
	for _, u := range us {
		f, _ := new(big.Float).SetUint64(u).Float64()
		want := (64*math.Ln2 - math.Log(f)) * One
		if u > 1<<63 {
			want = -math.Log1p(-float64(-u)/math.Exp2(64)) * One
		}
		if got := float64(minusLog(u)); math.Abs(got-want) > 4 {
			t.Errorf("-ln(%#x/2⁶⁴): got %.0f, want %.2f units of 2⁻⁴⁸", u, got, want)
		}
	}
}
