package compare_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"tare/internal/judge/stats"
)

// power is the chance that n runs against n come to a p of at most level, by the mass of each U.
func power(n int, mass []float64, level float64) float64 {
	most := critical(n, level)
	if most < 0 {
		return 0
	}
	rejected := 0.0
	for u, m := range mass {
		if u <= most || n*n-u <= most {
			rejected += m
		}
	}
	return rejected
}

// critical is the greatest U that is rejected at a level, -1 for none.
func critical(n int, level float64) int {
	most := -1
	for u := 0; u <= n*n/2; u++ {
		a, b := samples(n, u)
		if t, _ := stats.MannWhitney(b, a); t.P > level {
			return most
		}
		most = u
	}
	return most
}

// samples are n values and n others of which exactly u pairs have b above a.
func samples(n, u int) (a, b []float64) {
	for i := range n {
		a = append(a, float64(i)+0.5)
		below := min(u, n)
		b = append(b, float64(below)-float64(i+1)/1000)
		u -= below
	}
	return a, b
}

// orders gives, for each U, the chance that b is above a in so many pairs, of normal quantities whose means are shift standard deviations
// apart. It sweeps both densities from low to high and keeps the mass of each (runs of A seen, runs of B seen, pairs with B above A): a
// differential equation, solved by Runge and Kutta.
func orders(n int, shift float64) []float64 {
	const steps = 250
	low, high := -8.0, 8+shift
	h := (high - low) / steps
	type state = [][][]float64 // by runs of A seen, runs of B seen, U
	fresh := func() state {
		s := make(state, n+1)
		for i := range s {
			s[i] = make([][]float64, n+1)
			for j := range s[i] {
				s[i][j] = make([]float64, n*n+1)
			}
		}
		return s
	}
	density := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
	slope := func(at state, f, g float64, into state) {
		for i := range at {
			for j := range at[i] {
				for u := range at[i][j] {
					into[i][j][u] = 0
					if i > 0 {
						into[i][j][u] += float64(n-i+1) * f * at[i-1][j][u]
					}
					if j > 0 && u >= i {
						into[i][j][u] += float64(n-j+1) * g * at[i][j-1][u-i]
					}
				}
			}
		}
	}
	now, k1, k2, k3, k4, tmp := fresh(), fresh(), fresh(), fresh(), fresh(), fresh()
	now[0][0][0] = 1
	step := func(k state, by float64) {
		for i := range now {
			for j := range now[i] {
				for u := range now[i][j] {
					tmp[i][j][u] = now[i][j][u] + by*k[i][j][u]
				}
			}
		}
	}
	for s := range steps {
		x := low + float64(s)*h
		slope(now, density(x), density(x-shift), k1)
		step(k1, h/2)
		slope(tmp, density(x+h/2), density(x+h/2-shift), k2)
		step(k2, h/2)
		slope(tmp, density(x+h/2), density(x+h/2-shift), k3)
		step(k3, h)
		slope(tmp, density(x+h), density(x+h-shift), k4)
		for i := range now {
			for j := range now[i] {
				for u := range now[i][j] {
					now[i][j][u] += h / 6 * (k1[i][j][u] + 2*k2[i][j][u] + 2*k3[i][j][u] + k4[i][j][u])
				}
			}
		}
	}
	return now[n][n]
}

func TestPowerIsThatOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	shifts := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 5}
	for _, n := range []int{4, 5, 6, 8} {
		var mass [][]float64
		for _, shift := range shifts {
			mass = append(mass, orders(n, shift))
		}
		for _, tests := range []int{1, 6} {
			cells := []string{fmt.Sprintf("%d against %d", n, n), fmt.Sprint(tests)}
			for i := range shifts {
				cells = append(cells, fmt.Sprintf("%.1f %%", 100*power(n, mass[i], 0.05/float64(tests))))
			}
			if row := "| " + strings.Join(cells, " | ") + " |"; !strings.Contains(string(text), row) {
				t.Errorf("docs/compare.md has not the row\n%s", row)
			}
		}
	}
}

func TestPowerWithoutADifferenceIsTheLevelOfTheTest(t *testing.T) {
	for n, want := range map[int]float64{4: 2.0 / 70, 5: 8.0 / 252} { // U 0; U 0, 1 and 2, which 1, 1 and 2 orders have
		if got := power(n, orders(n, 0), 0.05); math.Abs(got-want) > 1e-5 {
			t.Errorf("%d against %d: got %v, want %v", n, n, got, want)
		}
	}
}
