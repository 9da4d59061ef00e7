package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// station is c servers with one queue, in order, simulated without a clock.
type station struct {
	servers int
	mean    float64                  // of a service, seconds
	draw    func(*rand.Rand) float64 // of mean 1
}

var services = map[string]func(*rand.Rand) float64{
	"constant":    func(*rand.Rand) float64 { return 1 },
	"exponential": func(r *rand.Rand) float64 { return r.ExpFloat64() },
	"lognormal":   func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64() - 0.5) },
}

var gaps = map[string]func(*rand.Rand) float64{
	"constant": func(*rand.Rand) float64 { return 1 },
	"poisson":  func(r *rand.Rand) float64 { return r.ExpFloat64() },
	"bursty": func(r *rand.Rand) float64 {
		if r.Float64() < 0.25 {
			return 3.1 * r.ExpFloat64()
		}
		return 0.3 * r.ExpFloat64()
	},
}

// course offers the station a load of n requests after a warm-up of warm of them.
func (st station) course(r *rand.Rand, rho float64, gap func(*rand.Rand) float64, warm, n int) *Course {
	rate := rho * float64(st.servers) / st.mean
	start, length := float64(warm)/rate, float64(n)/rate
	const bins = 200
	c := &Course{Width: length / bins, Due: make([]float64, bins), Ended: make([]float64, bins)}
	waits, counts := make([]float64, bins), make([]float64, bins)
	free := make([]float64, st.servers)
	bin := func(at float64) int { return int(math.Floor((at - start) / c.Width)) }
	at := 0.0
	for at < start+length {
		at += gap(r) / rate
		least := 0
		for i := range free {
			if free[i] < free[least] {
				least = i
			}
		}
		begin := max(at, free[least])
		free[least] = begin + st.mean*st.draw(r)
		if i := bin(at); i >= 0 && i < bins {
			c.Due[i]++
			c.Planned++
			waits[i] += begin - at
			counts[i]++
		}
		if i := bin(free[least]); i >= 0 && i < bins {
			c.Ended[i]++
		}
	}
	for i := range waits {
		if counts[i] > 0 {
			c.Waits = append(c.Waits, Wait{float64(i), waits[i] / counts[i]})
		}
	}
	return c
}

// told counts what the test says of stations at a share of their capacity.
func told(t *testing.T, runs int, servers int, service, gap string, rho float64) map[State]int {
	t.Helper()
	count := map[State]int{}
	st := station{servers, 1, services[service]}
	for i := range runs {
		s, ok := Assess(st.course(rand.New(rand.NewPCG(uint64(i), 7)), rho, gaps[gap], 2000, 5200))
		if !ok {
			t.Fatalf("%d servers, %s service, %s arrivals at %.2f: not assessed", servers, service, gap, rho)
		}
		state, _ := s.State(0.05)
		count[state]++
	}
	return count
}

// runsOf is how many runs a row of the table has: few, unless TARE_SEEDS asks for as many as docs/capacity.md shows.
func runsOf(few int) (n int, all bool) {
	if n, err := strconv.Atoi(os.Getenv("TARE_SEEDS")); err == nil {
		return n, true
	}
	return few, false
}

func TestStabilityKeepsItsErrorRates(t *testing.T) {
	runs, all := runsOf(25)
	loads := []float64{0.8, 0.95, 1, 1.05, 1.2}
	total := map[float64]map[State]int{}
	for _, rho := range loads {
		total[rho] = map[State]int{}
	}
	rows := 0
	for _, servers := range []int{1, 16, 64} {
		for _, service := range []string{"constant", "exponential", "lognormal"} {
			for _, gap := range []string{"constant", "poisson", "bursty"} {
				if !all && (servers == 64 || gap == "bursty") {
					continue
				}
				rows++
				line := fmt.Sprintf("| %d | %s | %s |", servers, service, gap)
				for _, rho := range loads {
					count := told(t, runs, servers, service, gap, rho)
					for state, n := range count {
						total[rho][state] += n
					}
					line += fmt.Sprintf(" %d / %d / %d |", count[Stable], count[Unclear], count[Overloaded])
				}
				if all {
					fmt.Println(line)
				}
			}
		}
	}
	most := func(rho float64, state State, share float64) {
		if n := total[rho][state]; float64(n) > share*float64(rows*runs) {
			t.Errorf("at %.2f of the capacity %d of %d called %s, want at most %.0f %%", rho, n, rows*runs, state, 100*share)
		}
	}
	most(0.8, Overloaded, 0)
	most(0.8, Unclear, 0.01)
	most(0.95, Overloaded, 0.01)
	most(1, Overloaded, 0.05)
	most(1.05, Stable, 0.2)
	most(1.2, Stable, 0)
	most(1.2, Unclear, 0.02)
}

// even is a course of so many requests a bin of which some end.
func even(bins int, due, ended float64) *Course {
	c := &Course{Width: 0.1, Planned: int64(due * float64(bins))}
	for range bins {
		c.Due, c.Ended = append(c.Due, due), append(c.Ended, ended)
	}
	return c
}

func TestStabilityWeighsEachSign(t *testing.T) {
	rising := func(c *Course, slope float64) *Course {
		for i := range c.Due {
			c.Waits = append(c.Waits, Wait{float64(i), slope * float64(i) * c.Width})
		}
		return c
	}
	queueing := func(c *Course, step float64) *Course {
		var looks []float64
		for i := range 20 {
			looks = append(looks, step*float64(i))
		}
		c.Waiting = [][]float64{make([]float64, 20), looks} // of two servers, only one's grows
		return c
	}
	failing := func(c *Course, n int64) *Course { c.Failed = n; return c }
	for name, test := range map[string]struct {
		course *Course
		state  State
		why    string
	}{
		"even":                   {even(100, 10, 10), Stable, ""},
		"nothing ends":           {even(100, 10, 0), Overloaded, "the backlog grows"},
		"a tenth stands":         {even(100, 10, 9), Overloaded, "the backlog grows"},
		"a fiftieth stands":      {even(100, 100, 98), Stable, ""},
		"waits grow":             {rising(even(100, 10, 10), 0.1), Unclear, "the backlog stands, but waits grow"},
		"the queue grows":        {queueing(even(100, 10, 10), 5), Unclear, "the backlog stands, but the server's queue grows"},
		"the queue grows a bit":  {queueing(even(100, 10, 10), 0.5), Stable, ""},
		"a tenth fails":          {failing(even(100, 10, 10), 100), Overloaded, "requests fail"},
		"a few fail":             {failing(even(100, 1, 1), 2), Unclear, "some requests fail"},
		"one in a thousand":      {failing(even(100, 10, 10), 1), Stable, ""},
		"forty requests":         {even(100, 0.4, 0.4), Unclear, "too few requests"},
		"all fail, none waiting": {failing(even(100, 10, 10), 1000), Overloaded, "requests fail"},
	} {
		s, ok := Assess(test.course)
		if state, why := s.State(0.05); !ok || state != test.state || why != test.why {
			t.Errorf("%s: got %s (%s), want %s (%s)", name, state, why, test.state, test.why)
		}
	}
	if _, ok := Assess(even(49, 10, 10)); ok {
		t.Error("49 bins assessed, want none below 50")
	}
	if _, ok := Assess(even(100, 0, 0)); ok {
		t.Error("a stage without load assessed")
	}
}

func TestGrowthAllowsForWandering(t *testing.T) {
	over, n := 0, 400
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		net := make([]float64, 300)
		for i := range net {
			net[i] = r.NormFloat64()
		}
		g, ok := Grow(net)
		if !ok {
			t.Fatal("not told")
		}
		if math.Abs(g.Total) > 2.58*g.Error {
			over++
		}
	}
	if over > n/25 { // 1 % is meant
		t.Errorf("%d of %d random walks grow by more than 2.58 standard errors, want at most 4 %%", over, n)
	}
}
