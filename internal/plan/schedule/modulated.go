package schedule

import (
	"math"
	"math/bits"
	"time"

	"tare/internal/plan/draw"
)

// State is one of the states of an MMPP.
type State struct {
	Weight  float64       // rate in this state, in proportion to the others'; may be 0
	Sojourn time.Duration // mean of the exponential time spent in it, in which LeastSojourn requests are expected or more
}

// LeastSojourn is how many requests must be expected in the mean sojourn: below it the process is Poisson for all that can be
// seen, and takes long to draw.
const LeastSojourn = 0.001

// modulated is a Poisson process whose rate is that of the state it is in. It starts in a state drawn by the time spent in
// each and goes from one to any other alike. It counts in units of the stage's mean rate: a sojourn is as long as so many
// requests are expected.
type modulated struct {
	gap, change *draw.Source
	first       int64
	states      []modulatedState

	state int
	sum   uint64
	end   uint64 // of the sojourn
}

type modulatedState struct {
	speed  uint64 // rate in units of the mean rate, in units of 2⁻³²
	length uint64 // mean sojourn in units of 2⁻³²
}

func newModulated(seed uint64, first int64, states []State, rate float64) *modulated {
	m := &modulated{gap: draw.New(seed, "gap"), change: draw.New(seed, "sojourn"), first: first, states: relative(states, rate)}
	lengths := make([]float64, len(states))
	for i, s := range states {
		lengths[i] = s.Sojourn.Seconds()
	}
	stationary, err := draw.NewCategorical(lengths)
	if err != nil {
		panic("schedule: states of an MMPP: " + err.Error())
	}
	m.change.Seek(uint64(first))
	m.state = stationary.Draw(m.change)
	m.sojourn()
	return m
}

// relative brings the states onto the mean rate.
func relative(states []State, rate float64) []modulatedState {
	var weighted, whole float64
	for _, s := range states {
		weighted += float64(s.Weight * s.Sojourn.Seconds())
		whole += s.Sojourn.Seconds()
	}
	list := make([]modulatedState, len(states))
	for i, s := range states {
		list[i] = modulatedState{
			speed:  uint64(math.Floor(float64(float64(s.Weight*whole)/weighted*(1<<unit)) + 0.5)),
			length: times(rate, s.Sojourn),
		}
	}
	return list
}

// Busiest returns the rate of the busiest state, in units of the mean rate.
func Busiest(states []State) (most float64) {
	for _, s := range relative(states, 1) {
		most = max(most, float64(s.speed)/(1<<unit))
	}
	return most
}

// sojourn draws how long the state lasts.
func (m *modulated) sojourn() {
	high, low := bits.Mul64(m.change.Exponential(), m.states[m.state].length)
	length := high<<excess | low>>48
	if high >= 1<<48 {
		length = math.MaxUint64
	}
	end, carry := bits.Add64(m.end, length, 0)
	if m.end = end; carry != 0 {
		m.end = math.MaxUint64
	}
}

// next spends an exponential amount of expected requests, at the speed of each state it comes through.
func (m *modulated) next(n int64) (sum uint64, ok bool) {
	m.gap.Seek(uint64(m.first + n))
	left := (m.gap.Exponential() + 1<<(excess-1)) >> excess
	for {
		speed := m.states[m.state].speed
		high, low := bits.Mul64(m.end-m.sum, speed)
		there := high<<unit | low>>unit
		switch {
		case high>>unit != 0 || left < there:
			passed, _ := bits.Div64(left>>unit, left<<unit, speed)
			m.sum += passed
			return m.sum, true
		case m.end == math.MaxUint64:
			return 0, false
		}
		left -= there
		m.sum = m.end
		m.leave()
	}
}

// leave goes to another state.
func (m *modulated) leave() {
	other := int(m.change.Below(uint64(len(m.states) - 1)))
	if other >= m.state {
		other++
	}
	m.state = other
	m.sojourn()
}
