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

// Bad requests come in clumps of a mean length, as they do when a queue builds up: a chain with two states. What requests are worth is measured
// of each step. Wald's bound holds for what is counted as independent; a correlation time that is underestimated costs something.
func TestSettledStepsKeepTheirErrorRatesWhenRequestsDepend(t *testing.T) {
	const runs, n = 300, 20_000
	for _, clump := range []float64{1, 5, 20} {
		test := stats.StepTest(0.99)
		for _, tt := range []struct {
			share float64
			wrong stats.Decision
		}{{test.Go, stats.NoGo}, {test.NoGo, stats.Go}} {
			wrong, right, naive := 0, 0, 0
			for seed := range uint64(runs) {
				s, good := clumped(seed, n, 1-tt.share, clump)
				if test.Decide(float64(good), float64(n-good)) == tt.wrong {
					naive++
				}
				switch decision, _ := test.Settle(good, s.Dependence()); decision {
				case tt.wrong:
					wrong++
				case stats.Undecided:
				default:
					right++
				}
			}
			t.Logf("share %g, clumps of %g: wrong %.3f, right %.3f, wrong if taken for independent %.3f", tt.share, clump, float64(wrong)/runs, float64(right)/runs, float64(naive)/runs)
			if clump == 20 && naive < runs*8/100 {
				t.Errorf("share %g, clumps of %g: got it wrong in %d of %d steps taken for independent: they do not depend enough for a test", tt.share, clump, naive, runs)
			}
			if wrong > runs*8/100 {
				t.Errorf("share %g, clumps of %g: got %s in %d of %d steps, want about 5 %% at most", tt.share, clump, tt.wrong, wrong, runs)
			}
			if right < runs/2 && clump < 20 { // 20,000 in clumps of 20 are worth 500, on which a test of 0.99 seldom decides
				t.Errorf("share %g, clumps of %g: got it right in %d of %d steps, want most", tt.share, clump, right, runs)
			}
		}
	}
}

// clumped is a series in which a share is bad, in clumps of a mean length.
func clumped(seed uint64, n int, bad, clump float64) (s *stats.Indicator, good int64) {
	rng := rand.New(rand.NewPCG(seed, uint64(clump)))
	s = new(stats.Indicator)
	start := bad / (1 - bad) / clump // chance that a clump begins after a good one
	isBad := rng.Float64() < bad
	for range n {
		s.Append(!isBad)
		if !isBad {
			good++
		}
		if isBad {
			isBad = rng.Float64() >= 1/clump
		} else {
			isBad = rng.Float64() < start
		}
	}
	return s, good
}

func TestSettleSaysNoMoreThanWasSeenOfAStepThatTurnsBad(t *testing.T) {
	test := stats.StepTest(0.99)
	for _, tt := range []struct {
		n, goodUntil int
		want         stats.Decision
		reason       stats.Reason
	}{
		{1000, 600, stats.NoGo, stats.TooLong}, {4, 4, stats.Undecided, stats.TooFew}, {4, 1, stats.NoGo, stats.TooFew}, {0, 0, stats.Undecided, stats.NoRequests},
		{1000, 1000, stats.Go, stats.Shown}, {100, 100, stats.Undecided, stats.TooFew}, {1000, 0, stats.NoGo, stats.Shown},
	} {
		s := new(stats.Indicator)
		for i := range tt.n {
			s.Append(i < tt.goodUntil)
		}
		if got, reason := test.Settle(s.Yes(), s.Dependence()); got != tt.want || reason != tt.reason {
			t.Errorf("good until %d of %d: got %s (%s), want %s (%s)", tt.goodUntil, tt.n, got, reason, tt.want, tt.reason)
		}
	}
}
