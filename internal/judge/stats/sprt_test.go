package stats_test

import (
	"math/rand/v2"
	"testing"

	"tare/internal/judge/stats"
)

// steps runs a test on many steps of load of which a share of requests is good, each until it is decided.
func steps(test stats.SPRT, share float64, runs int) (goes, noGoes, mean float64) {
	rng := rand.New(rand.NewPCG(1, uint64(share*1e6)))
	total := 0
	for range runs {
		good, bad := 0.0, 0.0
		decision := stats.Undecided
		for decision == stats.Undecided {
			if rng.Float64() < share {
				good++
			} else {
				bad++
			}
			decision = test.Decide(good, bad)
		}
		total += int(good + bad)
		if decision == stats.Go {
			goes++
		} else {
			noGoes++
		}
	}
	n := float64(runs)
	return goes / n, noGoes / n, float64(total) / n
}

// Wald's bounds: of either mistake no more than α/(1−β). A fraction of 4,000 is uncertain by 0.01 (three standard errors).
func TestSPRTKeepsItsErrorRates(t *testing.T) {
	const unsure = 0.01
	for _, target := range []float64{0.9, 0.99} {
		test := stats.StepTest(target)
		if _, wrong, _ := steps(test, test.Go, 4000); wrong > test.Alpha/(1-test.Beta)+unsure {
			t.Errorf("target %g: got no go in %g of the steps that reach it, want at most %g", target, wrong, test.Alpha)
		}
		if wrong, _, _ := steps(test, test.NoGo, 4000); wrong > test.Beta/(1-test.Alpha)+unsure {
			t.Errorf("target %g: got go in %g of the steps that miss it twice over, want at most %g", target, wrong, test.Beta)
		}
	}
}

// Wald's approximation of the mean number of requests, for 0.99 against 0.98. It leaves out by how much the last request overshoots, which
// is a fifth where few requests decide.
func TestSPRTTakesAsManyRequestsAsWaldSays(t *testing.T) {
	test := stats.StepTest(0.99)
	for share, want := range map[float64]float64{0.99: 850, 0.98: 680, 0.95: 106} {
		if _, _, mean := steps(test, share, 4000); mean < 0.95*want || mean > 1.25*want {
			t.Errorf("share %g: got %.0f requests in the mean, want about %.0f", share, mean, want)
		}
	}
}

// A good request adds −0.01015 and a bad one 0.693; 2.944 decides: 291 good ones in a row, or five bad ones.
func TestSPRTDecidesByTheRatio(t *testing.T) {
	test := stats.StepTest(0.99)
	for _, tt := range []struct {
		good, bad float64
		want      stats.Decision
	}{
		{0, 0, stats.Undecided}, {290, 0, stats.Undecided}, {291, 0, stats.Go}, {0, 4, stats.Undecided}, {0, 5, stats.NoGo}, {50, 5, stats.NoGo},
		{60, 5, stats.Undecided}, {988, 12, stats.Undecided}, {990, 10, stats.Go}, {980, 20, stats.NoGo},
	} {
		if got := test.Decide(tt.good, tt.bad); got != tt.want {
			t.Errorf("%g good, %g bad: got %s at %.3f, want %s", tt.good, tt.bad, got, test.Ratio(tt.good, tt.bad), tt.want)
		}
	}
}
