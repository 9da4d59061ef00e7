package stats

import (
	"math"
	"testing"
)

// The values are scipy's betainc, t.ppf and norm.ppf.
func TestSpecialFunctionsAgreeWithScipy(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"beta(2, 3, 0.4)", beta(2, 3, 0.4), 0.5248},
		{"beta(½, ½, 0.1)", beta(0.5, 0.5, 0.1), 0.20483276469913345},
		{"beta(50, 1, 0.97)", beta(50, 1, 0.97), 0.21806537534740728},
		{"beta(1e5, 1e3, 0.99)", beta(1e5, 1e3, 0.99), 0.3717821455135547},
		{"beta(3e6, 2e4, 0.9934)", beta(3e6, 2e4, 0.9934), 0.684614759805688},
		{"binomial(5, 10, ½)", binomial(5, 10, 0.5), 0.623046875},
		{"binomial(20, 3304, 0.01)", binomial(20, 3304, 0.01), 0.009989016505348624},
		{"binomial(9900, 10000, 0.99)", binomial(9900, 10_000, 0.99), 0.5134992717167584},
		{"student(0.975, 1)", student(0.975, 1), 12.706204736174694},
		{"student(0.975, 19)", student(0.975, 19), 2.0930240544083087},
		{"student(0.995, 3)", student(0.995, 3), 5.840909309733355},
		{"student(0.975, 1000)", student(0.975, 1000), 1.9623390808264083},
		{"normal(0.975)", normal(0.975), 1.959963984540054},
		{"normalBelow(-1.96)", normalBelow(-1.959963984540054), 0.025},
	} {
		if math.Abs(tt.got-tt.want) > 1e-8*tt.want {
			t.Errorf("%s: got %.12g, want %.12g", tt.name, tt.got, tt.want)
		}
	}
	for name, got := range map[string]float64{"below 0": binomial(-1, 5, 0.5), "x = 0": beta(2, 3, 0)} {
		if got != 0 {
			t.Errorf("%s: got %v, want 0", name, got)
		}
	}
	for name, got := range map[string]float64{"all of them": binomial(5, 5, 0.5), "x = 1": beta(2, 3, 1)} {
		if got != 1 {
			t.Errorf("%s: got %v, want 1", name, got)
		}
	}
}
