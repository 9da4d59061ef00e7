package plan_test

import (
	"context"
	"math"
	"testing"
	"time"

	"tare/internal/plan"
)

// every process, every kind of rate, and a closed stage with think times.
func everyArrival(requests int64) []plan.LoadStage {
	return []plan.LoadStage{
		{Rate: 1000, Arrival: "constant", Requests: requests},
		{Rate: 1000, Arrival: "poisson", Requests: requests, RateTo: 5000},
		{Rate: 1000, Arrival: "gamma", Burstiness: 0.3, Requests: requests, Amplitude: 0.9, Period: 10 * time.Second, Phase: 0.7},
		{Rate: 1000, Arrival: "weibull", Burstiness: 0.5, Duration: 10 * time.Second, SpikeRate: 9000, SpikeAt: time.Second, SpikeWidth: time.Second},
		{Rate: 1000, Arrival: "mmpp", States: "10:200ms 1:700ms 0:1s", Requests: requests},
		{Rate: 1000, Arrival: "clients", Clients: "50:gamma:0.2 30:weibull:0.4 9:constant 1:poisson*30", Requests: requests, Amplitude: 1, Period: time.Hour},
		{Concurrency: 8, Requests: requests, ThinkTime: time.Second},
	}
}

// It pins a large plan, times and bodies. Run it on other architectures too: all must agree.
func TestALargePlanIsTheSameEverywhere(t *testing.T) {
	const (
		planID    = "e6a51bff1aa683d7ccf1d87a823a5df976d53425bcfe4a3e76e3f2bf83d82a2c"
		contentID = "f75b648a91251d5667eaeb554ddb3d1cfac87b64cb2d7f4dad694739b4515f24"
	)
	p := frozen(t, text{}, func(s *plan.Spec) { s.Load.Stages = everyArrival(15_000) })
	got, err := p.Identify(context.Background())
	if err != nil || got.PlanID != planID || got.ContentID != contentID || got.Requests < 100_000 {
		t.Errorf("got %+v, %v, want %q, %q of 100,000 requests or more", got, err, planID, contentID)
	}
}

func TestEveryKeyOfArrivalsIsPartOfThePlanID(t *testing.T) {
	base, _ := frozen(t, text{}, func(s *plan.Spec) { s.Load.Stages = everyArrival(10) }).Identify(context.Background())
	for name, change := range map[string]func(all []plan.LoadStage){
		"arrival":         func(all []plan.LoadStage) { all[1].Arrival = "constant" },
		"burstiness":      func(all []plan.LoadStage) { all[2].Burstiness = 0.31 },
		"amplitude":       func(all []plan.LoadStage) { all[2].Amplitude = 0.8 },
		"period":          func(all []plan.LoadStage) { all[2].Period++ },
		"phase":           func(all []plan.LoadStage) { all[2].Phase = 0.8 },
		"spike rate":      func(all []plan.LoadStage) { all[3].SpikeRate++ },
		"spike at":        func(all []plan.LoadStage) { all[3].SpikeAt++ },
		"spike width":     func(all []plan.LoadStage) { all[3].SpikeWidth++ },
		"states":          func(all []plan.LoadStage) { all[4].States = "10:200ms 1:700ms 0:2s" },
		"clients":         func(all []plan.LoadStage) { all[5].Clients = "50:gamma:0.2 30:weibull:0.4 9:constant 1:poisson*29" },
		"think time":      func(all []plan.LoadStage) { all[6].ThinkTime++ },
		"think process":   func(all []plan.LoadStage) { all[6].Think = "constant" },
		"burstiness of 1": func(all []plan.LoadStage) { all[2].Burstiness = 1 },
	} {
		all := everyArrival(10)
		change(all)
		got, err := frozen(t, text{}, func(s *plan.Spec) { s.Load.Stages = all }).Identify(context.Background())
		if err != nil || got.PlanID == base.PlanID {
			t.Errorf("%s: plan id is the same, error %v", name, err)
		}
	}
}

func TestAStageTakesWhatItDoesNotSayFromTheLoad(t *testing.T) {
	p := frozen(t, nil, func(s *plan.Spec) {
		s.Load.Arrival, s.Load.Burstiness, s.Load.States = "gamma", 0.25, "1:1s 0:1s"
		s.Load.Stages = []plan.LoadStage{
			{Rate: 10, Requests: 5}, {Rate: 10, Requests: 5, Burstiness: 4}, {Rate: 10, Requests: 5, Arrival: "constant"},
			{Rate: 10, Requests: 5, Arrival: "mmpp"},
		}
	})
	for i, want := range []string{"gamma, CV 2", "gamma, CV 0.5", "constant, CV 0", "mmpp"} {
		if got := p.Stages[i].Arrivals(); got != want {
			t.Errorf("stage %d: got %q, want %q", i+1, got, want)
		}
	}
}

func TestCourseAndPeakOfARate(t *testing.T) {
	p := frozen(t, nil, func(s *plan.Spec) {
		s.Load.Stages = append(everyArrival(10), plan.LoadStage{Rate: 10, Requests: 1, Arrival: "mmpp", States: "4:1s 0:3s"})
	})
	for i, want := range []struct {
		course string
		peak   float64
	}{
		{"1000/s", 1000}, {"1000 to 5000/s", 5000}, {"1000/s ± 90 % every 10s", 1900}, {"1000/s, 9000/s from 1s for 1s", 9000},
		{"1000/s", 1000 * 10 * 1.9 / 2.7}, {"1000/s ± 100 % every 1h", 2000}, {"0/s", 0}, {"10/s", 40},
	} {
		s := &p.Stages[i]
		if got := s.Course(); got != want.course || math.Abs(s.Peak()-want.peak) > 1e-5 {
			t.Errorf("stage %d: got %q, %v, want %q, %v", i+1, got, s.Peak(), want.course, want.peak)
		}
	}
}

func TestThinkTimesAreDrawnForEveryClosedRequest(t *testing.T) {
	p := frozen(t, nil, func(s *plan.Spec) {
		s.Load.Stages = []plan.LoadStage{
			{Concurrency: 2, Requests: 3, ThinkTime: time.Second, Think: "constant"}, {Concurrency: 2, Requests: 1000, ThinkTime: time.Second},
			{Concurrency: 2, Requests: 3}, {Rate: 1, Requests: 3},
		}
	})
	sum, seen := 0.0, map[time.Duration]bool{}
	made, _ := walk(p)
	for _, r := range made {
		switch want := []time.Duration{time.Second, -1, 0, 0}[r.Stage]; {
		case want >= 0 && r.Think != want:
			t.Errorf("request %d of stage %d: think time: got %v, want %v", r.Index, r.Stage, r.Think, want)
		case want < 0:
			sum += r.Think.Seconds()
			seen[r.Think] = true
		}
	}
	if mean := sum / 1000; math.Abs(mean-1) > 0.15 || len(seen) < 999 {
		t.Errorf("exponential: mean %.3f s of %d different ones, want 1 s of 1000", mean, len(seen))
	}
	if a, b := p.Begins(0)(0), p.Begins(0)(1); a == b || a < 0 || a >= time.Second {
		t.Errorf("constant: places begin after %v and %v, want different moments within 1s", a, b)
	}
	if got := p.Begins(2)(1); got != 0 {
		t.Errorf("without a think time: begins after %v, want 0", got)
	}
}
