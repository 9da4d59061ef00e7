package bias_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/internal/judge/bias"
)

// law is a distribution of spans with its raw moments.
type law struct {
	name                string
	draw                func(*rand.Rand) float64
	mean, second, third float64
}

func (l law) service() bias.Service {
	return bias.Service{Mean: l.mean, Second: l.second, Third: l.third}
}
func (l law) moments() bias.Moments { return bias.Moments{Mean: l.mean, Second: l.second} }

func constant(m float64) law {
	return law{"constant", func(*rand.Rand) float64 { return m }, m, m * m, m * m * m}
}

func exponential(m float64) law {
	return law{"exponential", func(r *rand.Rand) float64 { return m * r.ExpFloat64() }, m, 2 * m * m, 6 * m * m * m}
}

// twoRates is exponential with one of two means: a loop that is stopped now and then.
func twoRates(share, short, long float64) law {
	moment := func(p int, factorial float64) float64 {
		return factorial * ((1-share)*math.Pow(short, float64(p)) + share*math.Pow(long, float64(p)))
	}
	return law{"two rates", func(r *rand.Rand) float64 {
		if r.Float64() < share {
			return long * r.ExpFloat64()
		}
		return short * r.ExpFloat64()
	}, moment(1, 1), moment(2, 2), moment(3, 6)}
}

func lognormal(m, sigma float64) law {
	mu := math.Log(m) - sigma*sigma/2
	moment := func(p float64) float64 { return math.Exp(p*mu + p*p*sigma*sigma/2) }
	return law{"lognormal", func(r *rand.Rand) float64 { return math.Exp(mu + sigma*r.NormFloat64()) }, moment(1), moment(2), moment(3)}
}

// uniform is uniform from 0 to twice its mean.
func uniform(m float64) law {
	return law{"uniform", func(r *rand.Rand) float64 { return 2 * m * r.Float64() }, m, 4 * m * m / 3, 2 * m * m * m}
}

// queue is one first-come first-served loop, told by events: it shares nothing with the package.
type queue struct {
	seed     uint64
	gap      law                  // between steps
	size     func(*rand.Rand) int // events in a step; nil for one
	spacing  float64              // between the events of a step
	service  law
	setup    law // when the loop is idle; no draw for none
	vacation law // taken again and again while the loop is idle; no draw for none
	events   int
}

// waits runs the queue and gives the waits of its events, the first twentieth left out.
func (q queue) waits() []float64 {
	r := rand.New(rand.NewPCG(q.seed, 17))
	waits := make([]float64, 0, q.events)
	clock, free := 0.0, 0.0
	for len(waits) < q.events {
		clock += q.gap.draw(r)
		n := 1
		if q.size != nil {
			n = q.size(r)
		}
		for i := range n {
			at := clock + float64(i)*q.spacing
			start := max(free, at)
			if at >= free {
				switch {
				case q.setup.draw != nil:
					start = at + q.setup.draw(r)
				case q.vacation.draw != nil:
					for start = free; start < at; {
						start += q.vacation.draw(r)
					}
				}
			}
			waits = append(waits, start-at)
			free = start + q.service.draw(r)
		}
	}
	return waits[len(waits)/20:]
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func model(t *testing.T, name string) bias.Model {
	t.Helper()
	for _, m := range bias.Models() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no model %q", name)
	return bias.Model{}
}

// within fails unless got is at most the tolerance, a share of want, away from want.
func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s: got %.5g, want %.5g ± %g %%", what, got, want, 100*tolerance)
	}
}

var services = []law{constant(1), exponential(1), uniform(1), lognormal(1, 0.8)}

// near is how far a simulated mean of 1.5 million events may be off.
func near(rho float64) float64 {
	switch {
	case rho > 0.9:
		return 0.10
	case rho > 0.8:
		return 0.05
	}
	return 0.03
}

func TestPollaczekKhinchineIsTheSimulatedMean(t *testing.T) {
	for _, s := range services {
		for i, rho := range []float64{0.3, 0.5, 0.7, 0.9, 0.95} {
			q := queue{seed: uint64(i), gap: exponential(1 / rho), service: s, events: 1_500_000}
			got, ok := model(t, "p-k").Mean(bias.Load{Rate: rho, Loops: 1, Service: s.service(), Variation: 1})
			if !ok {
				t.Errorf("%s at ρ = %g: no mean", s.name, rho)
			}
			within(t, s.name, got, mean(q.waits()), near(rho))
		}
	}
}

func TestSetupAndVacationAreTheSimulatedMeans(t *testing.T) {
	for i, rho := range []float64{0.3, 0.6, 0.9} {
		for _, away := range []law{constant(0.8), exponential(1.5), uniform(3)} {
			load := bias.Load{Rate: rho, Loops: 1, Service: exponential(1).service(), Variation: 1}
			load.Setup = away.moments()
			q := queue{seed: uint64(10 + i), gap: exponential(1 / rho), service: exponential(1), setup: away, events: 1_500_000}
			got, _ := model(t, "p-k + setup").Mean(load)
			within(t, "setup "+away.name, got, mean(q.waits()), near(rho))

			load.Setup, load.Vacation = bias.Moments{}, away.moments()
			q.setup, q.vacation = law{}, away
			got, _ = model(t, "p-k + vacation").Mean(load)
			within(t, "vacation "+away.name, got, mean(q.waits()), near(rho))
		}
	}
}

func TestBatchPoissonIsTheSimulatedMean(t *testing.T) {
	sizes := []struct {
		name string
		draw func(*rand.Rand) int
		step bias.Step
	}{
		{"four each", func(*rand.Rand) int { return 4 }, bias.Step{Mean: 4, Pairs: 12}},
		{"one to nine", func(r *rand.Rand) int { return 1 + r.IntN(9) }, bias.Step{Mean: 5, Pairs: 80.0 / 3}},
	}
	for i, rho := range []float64{0.3, 0.6, 0.9} {
		for _, x := range sizes {
			for _, d := range []law{{}, constant(2)} {
				q := queue{seed: uint64(20 + i), gap: exponential(x.step.Mean / rho), size: x.draw, service: exponential(1), setup: d, events: 2_000_000}
				load := bias.Load{Rate: rho, Loops: 1, Service: exponential(1).service(), Step: x.step, Setup: d.moments()}
				got, _ := model(t, "m^x/g/1").Mean(load)
				within(t, x.name, got, mean(q.waits()), near(rho))
			}
		}
	}
}

// Kingman's form is exact for Poisson arrivals and close to the truth for other independent gaps as ρ nears 1.
func TestKingmanHoldsForIndependentGaps(t *testing.T) {
	tests := []struct {
		gap       func(m float64) law
		variation float64
		rho       float64
		tolerance float64
	}{
		{exponential, 1, 0.5, 0.03},
		{uniform, 1.0 / 3, 0.9, 0.10},
		{uniform, 1.0 / 3, 0.5, 0.35},
		{func(m float64) law { return twoRates(0.1, m/2, 5.5*m) }, 5.5, 0.95, 0.15},
		{func(m float64) law { return twoRates(0.1, m/2, 5.5*m) }, 5.5, 0.5, 0.6},
	}
	for i, tt := range tests {
		gap := tt.gap(1 / tt.rho)
		got := gap.second/(gap.mean*gap.mean) - 1
		within(t, "c_a² of the test's own gaps", got, tt.variation, 0.01)
		q := queue{seed: uint64(30 + i), gap: gap, service: exponential(1), events: 2_000_000}
		load := bias.Load{Rate: tt.rho, Loops: 1, Service: exponential(1).service(), Variation: tt.variation}
		w, _ := model(t, "kingman").Mean(load)
		within(t, "kingman with gaps "+gap.name, w, mean(q.waits()), tt.tolerance)
	}
}

func TestBatchDrainIsTheSimulatedMeanOfEngineSteps(t *testing.T) {
	const x, spacing = 200, 0.5
	for i, rho := range []float64{0.3, 0.6, 0.8} {
		for _, s := range []law{constant(1), exponential(1), lognormal(1, 0.8)} {
			q := queue{seed: uint64(40 + i), gap: constant(x / rho), size: func(*rand.Rand) int { return x }, spacing: spacing, service: s, events: 1_000_000}
			load := bias.Load{Rate: rho, Loops: 1, Service: s.service(), Step: bias.Step{Mean: x, Pairs: x * (x - 1)}, Spacing: spacing}
			got, _ := model(t, "batch drain").Mean(load)
			within(t, s.name, got, mean(q.waits()), 0.05)

			pk, _ := model(t, "p-k").Mean(load)
			if pk > got/5 {
				t.Errorf("p-k at ρ = %g: got %.3g, want it far below the %.3g of the steps", rho, pk, got)
			}
		}
	}
}

func TestLoopsShareTheLoad(t *testing.T) {
	l := bias.Load{Rate: 3.2, Loops: 4, Service: exponential(1).service(), Variation: 1, Step: bias.Step{Mean: 400, Pairs: 400 * 399}, Spacing: 0.1}
	within(t, "ρ = λ/(kμ)", l.Utilisation(), 0.8, 1e-12)
	one := bias.Load{Rate: 0.8, Loops: 1, Service: exponential(1).service()}
	for _, name := range []string{"p-k", "kingman"} {
		one.Variation = 1
		got, _ := model(t, name).Mean(l)
		want, _ := model(t, name).Mean(one)
		within(t, name, got, want, 1e-12)
	}
	got, _ := model(t, "batch drain").Mean(l)
	within(t, "batch drain over four loops", got, 399.0/4/2*(1-0.4), 1e-12)

	// Each of the events goes to one of two loops by chance; only one loop is simulated.
	r := rand.New(rand.NewPCG(50, 1))
	half := queue{seed: 50, gap: exponential(6 / 1.4), service: exponential(1), events: 1_500_000, size: func(*rand.Rand) int {
		n := 0
		for range 6 {
			n += r.IntN(2)
		}
		return n
	}}
	two := bias.Load{Rate: 1.4, Loops: 2, Service: exponential(1).service(), Step: bias.Step{Mean: 6, Pairs: 30}}
	got, _ = model(t, "m^x/g/1").Mean(two)
	within(t, "steps of six over two loops", got, mean(half.waits()), 0.03)
}

func TestSpreadHoldsSecondMomentAndTail(t *testing.T) {
	for i, rho := range []float64{0.3, 0.5, 0.8} {
		for _, s := range services {
			waits := queue{seed: uint64(60 + i), gap: exponential(1 / rho), service: s, events: 1_500_000}.waits()
			spread, ok := bias.Wait(bias.Load{Rate: rho, Loops: 1, Service: s.service()})
			if !ok {
				t.Fatal("no spread")
			}
			squares := 0.0
			for _, w := range waits {
				squares += w * w
			}
			within(t, "E[W²] "+s.name, spread.Second, squares/float64(len(waits)), 0.08)

			slices.Sort(waits)
			tolerance := map[string]float64{"exponential": 0.1, "constant": 0.35, "uniform": 0.30, "lognormal": 0.30}[s.name]
			for _, q := range []float64{0.9, 0.99, 0.999} {
				sim := waits[int(q*float64(len(waits)))]
				got, _ := spread.Quantile(q)
				within(t, "tail "+s.name, got, sim, tolerance)
				if bound, _ := spread.Cantelli(q); bound < sim {
					t.Errorf("Cantelli of %s at ρ = %g, q = %g: got %.4g, below the simulated %.4g", s.name, rho, q, bound, sim)
				}
				within(t, "P(W > quantile)", spread.Beyond(got), 1-q, 1e-9)
			}
		}
	}
}

// Rare long services are where the exponential tail must not be trusted; the comment of Beyond says so.
func TestTailOfRareStopsIsLongerThanPredicted(t *testing.T) {
	s := twoRates(0.01, 0.7, 30.7)
	waits := queue{seed: 70, gap: exponential(10), service: s, events: 1_500_000}.waits()
	slices.Sort(waits)
	spread, _ := bias.Wait(bias.Load{Rate: 0.1 / s.mean, Loops: 1, Service: s.service()})
	got, _ := spread.Quantile(0.999)
	if sim := waits[int(0.999*float64(len(waits)))]; got > 0.8*sim {
		t.Errorf("p99.9: got %.4g, want it well below the simulated %.4g", got, sim)
	}
}

func TestSpreadBelowItsFirstWait(t *testing.T) {
	s, _ := bias.Wait(bias.Load{Rate: 0.3, Loops: 1, Service: exponential(1).service()})
	for q, want := range map[float64]float64{0: 0, 0.5: 0, 0.7: 0} {
		if got, ok := s.Quantile(q); !ok || got != want {
			t.Errorf("quantile %g: got %v %v, want %v", q, got, ok, want)
		}
	}
	if got := s.Beyond(-1); got != 1 {
		t.Errorf("P(W > −1): got %v, want 1", got)
	}
	if got := s.Beyond(0); got != 0.3 {
		t.Errorf("P(W > 0): got %v, want ρ = 0.3", got)
	}
	for _, q := range []float64{1, -0.1, math.NaN()} {
		if v, ok := s.Quantile(q); ok {
			t.Errorf("quantile %g: got %v, want none", q, v)
		}
		if v, ok := s.Cantelli(q); ok {
			t.Errorf("Cantelli at %g: got %v, want none", q, v)
		}
	}
}

func TestUnboundedAndSenselessLoadsHaveNoMean(t *testing.T) {
	good := bias.Load{Rate: 0.9, Loops: 1, Service: exponential(1).service(), Variation: 1}
	change := func(f func(*bias.Load)) bias.Load { l := good; f(&l); return l }
	for name, l := range map[string]bias.Load{
		"ρ = 1":            change(func(l *bias.Load) { l.Rate = 1 }),
		"ρ above 1":        change(func(l *bias.Load) { l.Rate = 7 }),
		"ρ = 1 over loops": change(func(l *bias.Load) { l.Rate, l.Loops = 4, 4 }),
		"no events":        change(func(l *bias.Load) { l.Rate = 0 }),
		"no service":       change(func(l *bias.Load) { l.Service.Mean = 0 }),
		"NaN":              change(func(l *bias.Load) { l.Variation = math.NaN() }),
		"infinite":         change(func(l *bias.Load) { l.Service.Third = math.Inf(1) }),
		"negative":         change(func(l *bias.Load) { l.Step.Pairs = -1 }),
		"zero":             {},
	} {
		for _, m := range bias.Models() {
			if w, ok := m.Mean(l); ok || w != 0 {
				t.Errorf("%s, %s: got %v %v, want none", name, m.Name, w, ok)
			}
		}
		if s, ok := bias.Wait(l); ok {
			t.Errorf("%s: got a spread %v, want none", name, s)
		}
	}
	for _, m := range bias.Models() {
		if w, ok := m.Mean(good); !ok || math.IsNaN(w) || math.IsInf(w, 0) {
			t.Errorf("%s: got %v %v, want a mean", m.Name, w, ok)
		}
	}
}

func TestServiceOfChecksItsSums(t *testing.T) {
	s, ok := bias.ServiceOf(4, 8, 20, 56)
	if !ok || s != (bias.Service{Mean: 2, Second: 5, Third: 14}) {
		t.Errorf("got %v %v, want moments 2, 5, 14", s, ok)
	}
	within(t, "c_s²", s.Variation(), 0.25, 1e-12)
	if s, ok := bias.ServiceOf(3, 0.3, 0.03, 0.003); !ok || s.Variation() > 1e-12 {
		t.Errorf("a constant: got %v %v, want c_s² = 0", s, ok)
	}
	for name, sums := range map[string][3]float64{
		"second too small": {8, 15, 56}, "third too small": {8, 20, 40}, "none": {0, 0, 0}, "negative": {-8, 20, 56},
	} {
		if s, ok := bias.ServiceOf(4, sums[0], sums[1], sums[2]); ok {
			t.Errorf("%s: got %v, want none", name, s)
		}
	}
	if _, ok := bias.ServiceOf(0, 1, 1, 1); ok {
		t.Error("moments of nothing are ok")
	}
}
