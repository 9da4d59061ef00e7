package stats

import "math"

// SPRT is Wald's sequential probability ratio test (1945) of a share: of the requests of one step of load that are good, say. It may be
// asked after every request, and stops as soon as the requests so far tell the two shares apart: earliest where they are clearly bad.
// It takes requests for independent; where they are not, give it what they are worth (Dependence).
type SPRT struct {
	Go, NoGo    float64 // the shares to tell apart, 0 < NoGo < Go < 1
	Alpha, Beta float64 // the chance of no go where the share is Go, and of go where it is NoGo
}

// Decision is what an SPRT says.
type Decision string

const (
	Undecided Decision = "undecided"
	Go        Decision = "go"
	NoGo      Decision = "no go"
)

// StepTest is the test of a step of load for a target in (0.5, 1): go where so many requests are good, no go where twice as many
// are bad as the target leaves, and 5 % of either mistake.
func StepTest(target float64) SPRT {
	return SPRT{Go: target, NoGo: 1 - 2*(1-target), Alpha: 0.05, Beta: 0.05}
}

// Ratio is the logarithm of the likelihood of so many good and bad requests under NoGo over that under Go: a good one adds
// ln(NoGo/Go), a bad one ln((1−NoGo)/(1−Go)). Their order does not matter.
func (t SPRT) Ratio(good, bad float64) float64 {
	return good*math.Log(t.NoGo/t.Go) + bad*math.Log((1-t.NoGo)/(1-t.Go))
}

// Settle decides a step that is over, of whose requests so many were good, for as many as they are worth; reason says why it is still
// undecided. Where the requests depend on each other too long to be counted, as those of an overloaded step do that began well, no more is
// said than what was seen: with a share of NoGo or less it is no go, with that reason.
func (t SPRT) Settle(good int64, d Dependence) (decision Decision, reason Reason) {
	bad := d.N - good
	switch {
	case d.N == 0:
		return Undecided, NoRequests
	case d.Cut && float64(good) <= t.NoGo*float64(d.N):
		return NoGo, d.Unknown()
	case d.Cut:
		return Undecided, d.Unknown()
	}
	worth := max(d.Time, 1)
	if decision = t.Decide(float64(good)/worth, float64(bad)/worth); decision == Undecided {
		reason = TooFew
	}
	return decision, reason
}

// Decide says what so many good and bad requests come to: no go from ln((1−Beta)/Alpha) up, go from ln(Beta/(1−Alpha)) down.
func (t SPRT) Decide(good, bad float64) Decision {
	switch r := t.Ratio(good, bad); {
	case r >= math.Log((1-t.Beta)/t.Alpha):
		return NoGo
	case r <= math.Log(t.Beta/(1-t.Alpha)):
		return Go
	}
	return Undecided
}
