package capacity_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/internal/judge/capacity"
	"tare/internal/judge/stats"
)

// invented is a server that carries a rate exactly, and answers in 0.1 s.
type invented struct {
	rate    float64
	keeps   float64                        // rate up to which its replies meet the objectives
	spoil   func(n int, t *capacity.Trial) // changes trial n, from 0
	plateau float64                        // of closed loops; the rate when 0
}

func (v *invented) trial(l capacity.Load, n int) capacity.Trial {
	t := capacity.Trial{Load: l, Valid: true, Took: l.Dwell, E2E: 0.1, E2EP99: 0.2, Varies: 0.5, InFlight: 2, Recovered: true, Judged: true}
	t.Planned = int64(max(l.Rate, 1)*l.Dwell.Seconds()) + 1
	if l.Requests > 0 {
		t.Planned = l.Requests
	}
	t.Completed, t.Good = t.Planned, t.Planned
	if l.Rate > v.keeps && v.keeps > 0 {
		t.Good = t.Planned / 2
	}
	rate := v.rate
	if l.InFlight > 0 && v.plateau > 0 {
		rate = v.plateau
	}
	t.Rate = capacity.Range{Value: rate, Low: rate * 0.99, High: rate * 1.01}
	if l.InFlight == 0 {
		t.State, t.Error = stats.Stable, l.Tolerance/4
		t.Rate.Value = min(l.Rate, v.rate)
		if over := 1 - v.rate/l.Rate; over > 0 {
			t.State, t.Shortfall, t.Error = stats.Overloaded, over, min(over/5, 0.01)
		}
	}
	if v.spoil != nil {
		v.spoil(n, &t)
	}
	return t
}

// find searches to the end.
func (v *invented) find(t *testing.T, c capacity.Config) (capacity.Answer, []capacity.Trial) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	var trials []capacity.Trial
	for {
		step := capacity.Next(c, trials)
		if step.Done {
			return step.Answer, trials
		}
		if len(trials) > c.MostTrials {
			t.Fatal("the search does not end")
		}
		trials = append(trials, v.trial(step.Load, len(trials)))
	}
}

func check(a capacity.Answer, id string) capacity.Check {
	for _, c := range a.Checks {
		if c.ID == id {
			return c
		}
	}
	return capacity.Check{}
}

func phases(trials []capacity.Trial) string {
	var order []string
	for _, t := range trials {
		if p := string(t.Load.Phase); len(order) == 0 || order[len(order)-1] != p {
			order = append(order, p)
		}
	}
	return strings.Join(order, " ")
}

func near(a capacity.Answer, rate, width float64) bool {
	return a.Stable.Known && a.Stable.Rate <= rate*(1+1e-9) && a.Stable.Rate >= rate/(1+width)*(1-1e-3)
}

func TestSearchGoesThroughItsPhases(t *testing.T) {
	a, trials := (&invented{rate: 37}).find(t, capacity.Defaults())
	if got, want := phases(trials), "baseline bracket refine confirm plateau curve overload"; got != want {
		t.Errorf("phases: got %s, want %s", got, want)
	}
	if !near(a, 37, 0.05) || !a.Valid || a.Stable.Above || a.Stable.High < 37 || a.Stable.Resolution > 0.0501 {
		t.Errorf("got %+v, want up to 5 %% below 37, and valid", a)
	}
	if math.Abs(a.Plateau.Rate-37) > 1e-9 || check(a, "K6").Outcome != capacity.Passed || check(a, "K1").Outcome != capacity.Passed {
		t.Errorf("got %+v", a)
	}
}

func TestSearchFindsAnyRate(t *testing.T) {
	for _, width := range []float64{0.01, 0.05, 0.2} {
		for rate := 0.3; rate < 5e4; rate *= 3.7 {
			c := capacity.Defaults()
			c.Width, c.Only, c.MostDwell = width, true, 1000*time.Hour
			if a, _ := (&invented{rate: rate}).find(t, c); !near(a, rate, width) || !a.Valid {
				t.Errorf("width %v: got %+v, want %v", width, a, rate)
			}
		}
	}
}

func TestOneWrongVoteIsOverturned(t *testing.T) {
	c := capacity.Defaults()
	c.Only = true
	_, trials := (&invented{rate: 37}).find(t, c)
	for wrong := 1; wrong < len(trials); wrong++ {
		flip := func(n int, tr *capacity.Trial) {
			if n != wrong {
				return
			}
			if tr.State == stats.Stable {
				tr.State, tr.Shortfall = stats.Overloaded, 0.1
			} else {
				tr.State, tr.Shortfall = stats.Stable, 0
			}
		}
		if a, _ := (&invented{rate: 37, spoil: flip}).find(t, c); !near(a, 37, 0.05) {
			t.Errorf("trial %d (%s at %.4g) wrong: got %+v, want up to 5 %% below 37", wrong, trials[wrong].Load.Phase, trials[wrong].Load.Rate, a.Stable)
		}
	}
}

func TestInvalidTrialsAreRepeatedAndNeverCounted(t *testing.T) {
	c := capacity.Defaults()
	third := func(n int, tr *capacity.Trial) {
		if n%3 == 2 {
			tr.Valid, tr.Fault, tr.State = false, "C2 slip", stats.Overloaded
		}
	}
	a, trials := (&invented{rate: 37, spoil: third}).find(t, c)
	if !near(a, 37, 0.05) || !a.Valid {
		t.Errorf("got %+v, want up to 5 %% below 37", a)
	}
	for i := 2; i+1 < len(trials); i += 3 {
		if !equalLoads(trials[i].Load, trials[i+1].Load) {
			t.Errorf("trial %d was invalid, and not repeated: %+v, then %+v", i, trials[i].Load, trials[i+1].Load)
		}
	}
}

func equalLoads(a, b capacity.Load) bool {
	a.Number, b.Number = 0, 0
	return a == b
}

func TestClientThatCannotOfferIsGivenUp(t *testing.T) {
	limit := func(_ int, tr *capacity.Trial) {
		if tr.Load.Rate > 20 {
			tr.Valid, tr.Fault = false, "C2 slip"
		}
	}
	a, trials := (&invented{rate: 37, spoil: limit}).find(t, capacity.Defaults())
	if !a.Stable.Known || a.Stable.Rate > 20 || !a.Stable.Above || a.Valid || check(a, "K2").Outcome != capacity.Failed {
		t.Errorf("got %+v, want 20 or below, or more, and not valid for K2", a)
	}
	tries := map[float64]int{}
	for _, tr := range trials {
		if !tr.Valid {
			tries[tr.Load.Rate]++
		}
	}
	for rate, n := range tries {
		if n > capacity.Defaults().Repeats {
			t.Errorf("%v/s was tried %d times, want at most %d", rate, n, capacity.Defaults().Repeats)
		}
	}
}

func TestClientThatIsTooSlowFromTheStartIsAskedForLess(t *testing.T) {
	limit := func(_ int, tr *capacity.Trial) {
		if tr.Load.Rate > 3 { // the idle server answers in 0.1 s: the search begins at 10/s
			tr.Valid, tr.Fault = false, "C2 slip"
		}
	}
	a, trials := (&invented{rate: 37, spoil: limit}).find(t, capacity.Defaults())
	if !a.Stable.Known || a.Stable.Rate > 3 || a.Stable.Rate < 1.25 || !a.Stable.Above || a.Valid {
		t.Errorf("got %+v, want a rate that could be offered, or more, and not valid", a)
	}
	if len(trials) > 60 {
		t.Errorf("took %d trials", len(trials))
	}
}

func TestDeadAndFailingServersHaveNoCapacity(t *testing.T) {
	lognormalSlots := func(r *rand.Rand) machine { return &slots{count: 16, mean: 1, draw: exponential(r)} }
	spoiled := func(f faulty) func(*rand.Rand) machine {
		seen := 0 // what a server has seen it does not forget between trials
		return func(r *rand.Rand) machine {
			g := &faulty{share: f.share, after: f.after, storm: f.storm, seen: &seen, rand: r, machine: lognormalSlots(r)}
			return g
		}
	}
	for name, f := range map[string]faulty{
		"dead":                   {share: 1},
		"says nothing":           {after: -1}, // from the first on
		"dies after 40 requests": {after: 40},
		"429 to all":             {share: 1},
		"429 storm after 40":     {storm: 40},
		"5 % fail":               {share: 0.05},
		"half fails":             {share: 0.5},
	} {
		for seed := range uint64(3) {
			a, trials := search(capacity.Defaults(), known{name: name, fresh: spoiled(f)}, seed)
			if a.Stable.Known || a.Objective.Known || a.Valid || a.Reason == "" {
				t.Errorf("%s: got %+v, want no capacity, and why", name, a)
			}
			if len(trials) > 40 {
				t.Errorf("%s: took %d trials", name, len(trials))
			}
		}
	}
}

func TestAnswerIsNoMoreThanWasShown(t *testing.T) {
	tests := map[string]struct {
		server invented
		change func(*capacity.Config)
		want   func(capacity.Answer) bool
	}{
		"the limit of rates is carried": {invented{rate: 500}, func(c *capacity.Config) { c.MostRate = 100 },
			func(a capacity.Answer) bool {
				return a.Stable.Above && math.Abs(a.Stable.Rate-100) < 1e-9 && a.Valid && check(a, "K1").Outcome == capacity.Unobservable
			}},
		"short trials": {invented{rate: 2}, func(c *capacity.Config) { c.MostDwell = time.Minute },
			func(a capacity.Answer) bool {
				return a.Stable.Resolution > 0.055 && check(a, "K3").Outcome == capacity.Failed && a.Valid
			}},
		"the plateau is below": {invented{rate: 37, plateau: 20}, nil,
			func(a capacity.Answer) bool { return !a.Valid && check(a, "K4").Outcome == capacity.Failed }},
		"the client is too weak": {invented{rate: 37}, func(c *capacity.Config) { c.ClientRequests = 60 },
			func(a capacity.Answer) bool { return !a.Valid && check(a, "K5").Outcome == capacity.Failed }},
		"the client is strong": {invented{rate: 37}, func(c *capacity.Config) { c.ClientRequests = 6000 },
			func(a capacity.Answer) bool { return a.Valid && check(a, "K5").Outcome == capacity.Passed }},
		"the time was short": {invented{rate: 37}, func(c *capacity.Config) { c.Time = 20 * time.Second },
			func(a capacity.Answer) bool { return a.Cut != "" }},
		"few trials": {invented{rate: 37}, func(c *capacity.Config) { c.MostTrials = 4 },
			func(a capacity.Answer) bool { return a.Cut != "" && !a.Valid }},
		"objectives met throughout": {invented{rate: 37}, func(c *capacity.Config) { c.Target = 0.99 },
			func(a capacity.Answer) bool { return math.Abs(a.Objective.Rate-a.Stable.Rate) < 1e-9 && a.Valid }},
		"objectives met up to 11": {invented{rate: 37, keeps: 11}, func(c *capacity.Config) { c.Target = 0.99 },
			func(a capacity.Answer) bool {
				return a.Objective.Rate <= 11 && a.Objective.Rate > 11/1.0501 && a.Objective.High > 11 && a.Valid
			}},
		"objectives met up to 5": {invented{rate: 37, keeps: 5}, func(c *capacity.Config) { c.Target = 0.99 },
			func(a capacity.Answer) bool { return a.Objective.Rate <= 5 && a.Objective.Rate > 5/1.0501 && a.Valid }},
		"objectives met nowhere": {invented{rate: 37, keeps: 1e-6}, func(c *capacity.Config) { c.Target = 0.99 },
			func(a capacity.Answer) bool { return !a.Objective.Known && a.Objective.Why != "" && a.Valid }},
	}
	for name, test := range tests {
		c := capacity.Defaults()
		if test.change != nil {
			test.change(&c)
		}
		if a, _ := test.server.find(t, c); !test.want(a) {
			t.Errorf("%s: got %+v", name, a)
		}
	}
}

func TestBiasedTrialsCountOnRequestOnly(t *testing.T) {
	spoil := func(_ int, tr *capacity.Trial) { tr.Valid, tr.Fault = false, "C2 slip" }
	c := capacity.Defaults()
	if a, _ := (&invented{rate: 37, spoil: spoil}).find(t, c); a.Stable.Known || !strings.Contains(a.Reason, "C2 slip") {
		t.Errorf("got %+v, want no capacity since no trial counts", a)
	}
	c.Biased = true
	if a, _ := (&invented{rate: 37, spoil: spoil}).find(t, c); !near(a, 37, 0.05) || a.Valid || check(a, "K2").Outcome != capacity.Failed {
		t.Errorf("got %+v, want up to 5 %% below 37, and not valid", a)
	}
}

func TestObjectivesAreAskedTwiceAtBothEnds(t *testing.T) {
	c := capacity.Defaults()
	c.Target = 0.99
	v := &invented{rate: 37, keeps: 11}
	a, trials := v.find(t, c)
	for _, end := range []float64{a.Objective.Rate, a.Objective.High} {
		n := 0
		for _, tr := range trials {
			if p := tr.Load.Phase; (p == capacity.Objective || p == capacity.Curve) && math.Abs(tr.Load.Rate-end) < 1e-9 {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%v/s was tried %d times, want 2", end, n)
		}
	}
	// The second look may overturn the first.
	first := true
	v.spoil = func(_ int, tr *capacity.Trial) {
		if tr.Load.Phase == capacity.Objective && tr.Load.Rate < 11 && first {
			first, tr.Missed = false, true
		}
	}
	if b, _ := v.find(t, c); math.Abs(b.Objective.Rate-a.Objective.Rate) > 0.06*a.Objective.Rate {
		t.Errorf("got %+v, want about %v", b.Objective, a.Objective.Rate)
	}
}

func TestUnclearVotesDoNotCarry(t *testing.T) {
	vague := func(_ int, tr *capacity.Trial) {
		if tr.Load.Rate > 20 && tr.State == stats.Stable {
			tr.State = stats.Unclear
		}
	}
	c := capacity.Defaults()
	c.Only = true
	if a, _ := (&invented{rate: 37, spoil: vague}).find(t, c); !near(a, 20, 0.05) {
		t.Errorf("got %+v, want up to 5 %% below 20", a)
	}
}

func TestRecoveryCountsFromTheEndOfTheOverload(t *testing.T) {
	var dues, ends []float64
	for i := range 100 { // one a second, each for half a second; between 20 and 40 nothing ends
		at := float64(i)
		end := at + 0.5
		if at >= 20 && at < 40 {
			end = 40 + (at-20)*0.25
		}
		dues, ends = append(dues, at), append(ends, end)
	}
	after, ok := capacity.Recovery(dues, ends, 40, 100, 2)
	if !ok || after < 4 || after > 5 {
		t.Errorf("got %v s (%v), want the backlog of 20 gone after 4 to 5 s", after, ok)
	}
	if _, ok := capacity.Recovery(dues, ends[:25], 40, 100, 2); ok {
		t.Error("recovered although most of the requests never ended")
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	c := capacity.Config{Width: -1, LeastDwell: time.Second, Target: 1}
	err := c.Check()
	for _, word := range []string{"width", "rates", "concurrency", "dwell", "trials", "target"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want a fault of %s among all", err, word)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("0123456789"), uint8(3))
	f.Add([]byte{0, 255, 3, 128, 7, 7, 7, 9, 1, 2, 250}, uint8(200))
	f.Fuzz(func(t *testing.T, script []byte, bound uint8) {
		if len(script) == 0 {
			return
		}
		c := capacity.Defaults()
		c.LeastRate, c.MostRate, c.MostInFlight, c.Target = 0.1, 1+float64(bound), 1+int(bound), 0.9
		var trials []capacity.Trial
		for {
			step := capacity.Next(c, trials)
			if step.Done {
				return
			}
			l := step.Load
			if len(trials) >= c.MostTrials {
				t.Fatalf("%d trials, want at most %d", len(trials), c.MostTrials)
			}
			if l.InFlight == 0 && (l.Rate < c.LeastRate || l.Rate > c.MostRate) || l.InFlight > c.MostInFlight || l.Dwell > c.MostDwell || l.Dwell <= 0 || l.Then < 0 {
				t.Fatalf("outside of the limits: %+v", l)
			}
			trials = append(trials, scripted(l, script[len(trials)%len(script)], len(trials)))
		}
	})
}

// scripted is some outcome of a trial.
func scripted(l capacity.Load, b byte, n int) capacity.Trial {
	t := capacity.Trial{Load: l, Valid: b%7 != 0, E2E: float64(b) / 100, E2EP99: float64(b) / 30, Varies: float64(b % 5), Judged: b%2 == 0, Planned: int64(b) * 10, InFlight: float64(b)}
	t.Completed, t.Good = t.Planned*int64(b%4)/3, t.Planned*int64(b%3)/2
	t.Rate = capacity.Range{Value: float64(b) * float64(n)}
	t.State = []stats.State{stats.Stable, stats.Overloaded, stats.Unclear, ""}[int(b/3)%4]
	t.Shortfall, t.Error, t.Failed = float64(b)/256, float64(b%16)/100, float64(b%13)/100
	return t
}
