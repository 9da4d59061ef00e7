package verdict

import "fmt"

// limits are the most that a value may be: for the certified level, and for the gate to be passed at all.
type limits struct{ certified, valid float64 }

// The shares of a calibrated capacity that a plan may take: a run is warned of above the first, and refused above the second.
const (
	CapacityCertified = 0.5
	CapacityValid     = 0.7
)

// What the rules allow. Times are in ns unless they say otherwise, shares are fractions.
var (
	capacityLimits  = limits{CapacityCertified, CapacityValid}
	loopLimits      = limits{0.5, 0.7}
	coreLimits      = limits{0.7, 0.9}
	stealLimits     = limits{0.005, 0.02}
	throttleLimits  = limits{0, 0.01}
	queueLimits     = limits{0.01, 0.05}
	pauseLimits     = limits{0.25e6, 1e6}
	schedulerLimits = limits{0.5e6, 2e6}
	roomLimits      = limits{0.8, 0.95}
	resendLimits    = limits{0.001, 0.01}
	stepLimits      = limits{1e6, 1e6}
	lengthLimits    = limits{0.001, 0.001}
	promptLimits    = limits{0.001, 0.001}
	cacheLimits     = limits{0.02, 0.02}
	duplicateLimits = limits{0.001, 0.001}
	balanceLimits   = limits{0.001, 0.001}
	widthLimits     = limits{0.05, 0.1}
	errorLimits     = limits{0.001, 0.01}

	slipLimits    = budgets{budget{0.01, 0.2e6}, budget{0.05, 1e6}}
	longestLimits = budgets{budget{0.10, 10e6}, budget{0.10, 50e6}}
	lagLimits     = budgets{budget{0.02, 0.2e6}, budget{0.10, 1e6}}
	rateLimits    = budgets{budget{0.001, 1}, budget{0.01, 1}}    // requests
	arrivalLimits = budgets{budget{0.05, 0.05}, budget{0.2, 0.2}} // index of dispersion
	driftLimits   = budgets{budget{0.05, 1}, budget{0.5, 10}}     // requests
)

const (
	mattersNs     = 0.2e6 // a mean wait below it needs no explanation
	driftQuantile = 2.33  // standard errors: 99 %, one-sided
)

// grade grades a value that must not be above its limit.
func (l limits) grade(value float64) (Level, float64) {
	strain := value / l.valid
	switch {
	case value <= l.certified:
		return CertifiedLevel, strain
	case value <= l.valid:
		return ValidLevel, strain
	}
	return Failed, strain
}

// of makes limits on shares those on parts of a whole.
func (l limits) of(whole float64) limits { return limits{l.certified * whole, l.valid * whole} }

// rule spells the limits as the text of a rule does: "≤ 2 %; certified 0.5 %".
func (l limits) rule(spell func(float64) string) string {
	return "≤ " + spell(l.valid) + "; certified " + spell(l.certified)
}

// budget is a share of what a value is held against, with a floor.
type budget struct{ share, floor float64 }

func (b budget) of(reference float64) float64 { return max(b.share*reference, b.floor) }

// spell spells "max(5 %, 1 ms)".
func (b budget) spell(floor func(float64) string) string {
	return "max(" + percent(b.share) + ", " + floor(b.floor) + ")"
}

// budgets are limits that depend on what a value is held against.
type budgets struct{ certified, valid budget }

func (b budgets) at(reference float64) limits {
	return limits{b.certified.of(reference), b.valid.of(reference)}
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

func plain(v float64) string { return fmt.Sprintf("%g", v) }

func requests(n float64) string { return fmt.Sprintf("%g request", n) }

func ms(ns float64) string { return fmt.Sprintf("%g ms", ns/1e6) }

// SlipLimit is the most slip that C2 takes at a quantile at which the TTFT from send is so long; all in ns.
func SlipLimit(ttft float64) float64 { return slipLimits.at(ttft).valid }

// LongestSlipLimit is the longest slip that C3 takes with such a median of the TTFT from send.
func LongestSlipLimit(ttft float64) float64 { return longestLimits.at(ttft).valid }

// LagLimit is the most receive lag at p99 that C6 takes beside such a median of the ICL, or such a p99 of the TTFT.
func LagLimit(latency float64) float64 { return lagLimits.at(latency).valid }
