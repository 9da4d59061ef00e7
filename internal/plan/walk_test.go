package plan_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/internal/plan"
)

// text is an encoder that sends the bare prompt.
type text struct{}

func (text) AppendBody(dst []byte, r *plan.Request) []byte { return append(dst, r.Prompt...) }

// frozen makes a plan of the defaults, changed.
func frozen(t testing.TB, encode plan.Encoder, change func(*plan.Spec)) *plan.Plan {
	t.Helper()
	s := plan.Defaults()
	change(&s)
	p, err := plan.New(s, encode)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func stages(arrival string, stages ...plan.LoadStage) func(*plan.Spec) {
	return func(s *plan.Spec) { s.Load.Arrival, s.Load.Stages = arrival, stages }
}

// walk returns all requests of a plan, without their bodies, and the prompts.
func walk(p *plan.Plan) (requests []plan.Request, prompts []string) {
	w := p.Walk()
	var r plan.Request
	for w.Next(&r) {
		prompts = append(prompts, strings.Clone(r.Prompt))
		r.Body, r.Prompt = nil, ""
		requests = append(requests, r)
	}
	return requests, prompts
}

func TestCountsAreExactWhereTheyCanBe(t *testing.T) {
	for _, tc := range []struct {
		name     string
		change   func(*plan.Spec)
		requests []int64
		firsts   []int64
		walked   int
	}{
		{"rate and requests", func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 100, 1000 }, []int64{1000}, []int64{0}, 1000},
		{
			"constant by duration", stages("constant", plan.LoadStage{Rate: 10, Duration: 3 * time.Second}, plan.LoadStage{Rate: 2, RateTo: 4, Duration: time.Second}),
			[]int64{30, 3}, []int64{0, 30}, 33,
		},
		{
			"warm-up on top", func(s *plan.Spec) {
				s.Load.Arrival, s.Load.Rate, s.Load.Requests, s.Load.Warmup = "constant", 20, 1000, 5*time.Second
			},
			[]int64{100, 1000}, []int64{0, 100}, 1100,
		},
		{
			"random by duration", stages("poisson", plan.LoadStage{Rate: 10, Duration: 3 * time.Second}, plan.LoadStage{Concurrency: 2, Requests: 7}),
			[]int64{0, 7}, []int64{0, 1 << 32}, -1,
		},
	} {
		p := frozen(t, text{}, tc.change)
		var requests, firsts []int64
		for _, s := range p.Stages {
			requests, firsts = append(requests, s.Requests), append(firsts, s.First)
		}
		if !reflect.DeepEqual(requests, tc.requests) || !reflect.DeepEqual(firsts, tc.firsts) {
			t.Errorf("%s: requests and first indexes: got %v, %v, want %v, %v", tc.name, requests, firsts, tc.requests, tc.firsts)
		}
		made, _ := walk(p)
		if tc.walked >= 0 && len(made) != tc.walked {
			t.Errorf("%s: walked: got %d, want %d", tc.name, len(made), tc.walked)
		}
		if n, exact := p.Requests(); exact != (tc.walked >= 0) || exact && n != int64(tc.walked) {
			t.Errorf("%s: Requests: got %d, %v, want %d", tc.name, n, exact, tc.walked)
		}
	}
}

func TestWarmupIsOfTheFirstStagesKind(t *testing.T) {
	p := frozen(t, nil, func(s *plan.Spec) {
		s.Load.Warmup = 5 * time.Second
		s.Load.Stages = []plan.LoadStage{{Rate: 10, RateTo: 50, MaxInFlight: 4, Gap: time.Second, Requests: 9}, {Concurrency: 1, Requests: 1}}
	})
	w := p.Stages[0]
	if !w.Warmup || w.Name != "warmup" || w.Rate != 10 || w.RateTo != 10 || w.MaxInFlight != 4 || w.Gap != 0 || w.Duration != 5*time.Second {
		t.Errorf("warm-up: got %+v", w)
	}
	if m := p.Stages[1]; m.Warmup || m.Name != "stage 1" || m.Gap != time.Second || m.Requests != 9 {
		t.Errorf("first stage: got %+v", m)
	}
}

func TestRequestsComeInOrderAndPromptsDiffer(t *testing.T) {
	p := frozen(t, text{}, func(s *plan.Spec) {
		s.Load.Arrival, s.Load.Burstiness = "gamma", 0.3
		s.Load.Stages = []plan.LoadStage{{Rate: 500, Duration: time.Second}, {Concurrency: 3, Requests: 50}, {Rate: 100, RateTo: 900, Duration: time.Second}}
	})
	requests, prompts := walk(p)
	seen := map[string]bool{}
	for i, r := range requests {
		if seen[prompts[i]] {
			t.Errorf("request %d repeats a prompt", r.Index)
		}
		seen[prompts[i]] = true
		if i == 0 {
			continue
		}
		before := requests[i-1]
		inOrder := r.Stage == before.Stage && r.Index == before.Index+1 && r.Due >= before.Due
		if begins := r.Stage == before.Stage+1 && r.Index == p.Stages[r.Stage].First; !inOrder && !begins {
			t.Fatalf("request %+v comes after %+v", r, before)
		}
	}
	if mean := p.Stages[0].Expected + 50 + p.Stages[2].Expected; mean != 1050 || len(requests) < 900 || len(requests) > 1200 {
		t.Errorf("requests: got %d, expected %v, want about 1050", len(requests), mean)
	}
}

// It walks a plan whole and cut short: what both made must agree.
func TestARequestDoesNotDependOnItsWalk(t *testing.T) {
	change := stages("poisson", plan.LoadStage{Concurrency: 2, Duration: time.Second}, plan.LoadStage{Rate: 50, Requests: 20})
	one, other := frozen(t, text{}, change).Walk(), frozen(t, text{}, change).Walk()
	var a, b plan.Request
	for range 5 {
		one.Next(&a)
	}
	one.EndStage()
	other.EndStage()
	for range 20 {
		if !one.Next(&a) || !other.Next(&b) {
			t.Fatal("the second stage ended early")
		}
		if !reflect.DeepEqual(a, b) || a.Stage != 1 {
			t.Fatalf("got %+v and %+v", a, b)
		}
	}
	if one.Next(&a) {
		t.Errorf("after the end: got %+v", a)
	}
	if one.IDs() != other.IDs() {
		t.Errorf("ids: got %+v and %+v", one.IDs(), other.IDs())
	}
}

func TestBothLimitsEndAClosedStage(t *testing.T) {
	p := frozen(t, text{}, stages("poisson", plan.LoadStage{Concurrency: 2, Requests: 5, Duration: time.Second}, plan.LoadStage{Concurrency: 1, Requests: 1}))
	requests, _ := walk(p)
	if len(requests) != 6 || requests[5].Stage != 1 || requests[5].Index != 5 {
		t.Errorf("got %+v", requests)
	}
}

// It pins the ids. Run it with GOARCH=386 and GOAMD64=v3 too: all must agree.
func TestIDsAreTheSameEverywhere(t *testing.T) {
	for _, tc := range []struct {
		name, planID, contentID string
		change                  func(*plan.Spec)
	}{
		{
			"constant", "a3e200a2de5608fc0bf5d04dace1eb4b667f7ce17c08348a41f7232272d5ee6e",
			"44a05a8264ca22b2037e21f68f177dd760dca7825a77dfb8190e7a75485cf8e1",
			func(s *plan.Spec) { s.Load.Arrival, s.Load.Rate, s.Load.Requests = "constant", 333.3, 1000 },
		},
		{
			"poisson", "45e761fa58190fb1a7ec6ac272d4429e37d1aefc886e6c378f55e7aae8288fca",
			"81db2bd5115bd11f9e3c6558554059f7184b2f17c480a315c1c248233c5e11b7",
			func(s *plan.Spec) { s.Load.Rate, s.Load.Duration, s.Load.Warmup = 100, 10*time.Second, time.Second },
		},
		{
			"stages", "1d90707e8e74334f10a1690c87646ec2384c3c89af7211abf4c753f97acef1b2",
			"5648de1477bfdf16eedd15fc88c815418559327afcc5872524930861b78f807a",
			func(s *plan.Spec) {
				s.Load.Arrival, s.Load.Burstiness, s.Load.Seed = "gamma", 0.5, 7
				s.Load.Stages = []plan.LoadStage{
					{Rate: 10, RateTo: 100, Duration: 5 * time.Second}, {Concurrency: 4, Duration: time.Second},
					{Concurrency: 4, Requests: 10, Gap: time.Second},
				}
			},
		},
	} {
		got, err := frozen(t, text{}, tc.change).Identify(context.Background())
		if err != nil || got.PlanID != tc.planID || got.ContentID != tc.contentID {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", tc.name, got.PlanID, got.ContentID, err, tc.planID, tc.contentID)
		}
	}
}

func TestIDsTellPlansApart(t *testing.T) {
	base := func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 10, 20 }
	want, _ := frozen(t, text{}, base).Identify(context.Background())
	for name, change := range map[string]func(*plan.Spec){
		"seed":   func(s *plan.Spec) { s.Load.Seed = 2 },
		"rate":   func(s *plan.Spec) { s.Load.Rate = 11 },
		"output": func(s *plan.Spec) { s.Workload.OutputTokens = "33" },
		"limit":  func(s *plan.Spec) { s.Load.MaxInFlight = 3 },
		"drain":  func(s *plan.Spec) { s.Load.Drain = 3 },
	} {
		got, _ := frozen(t, text{}, func(s *plan.Spec) { base(s); change(s) }).Identify(context.Background())
		if same := name == "drain"; (got.PlanID == want.PlanID) != same {
			t.Errorf("%s: plan id is the same: %v, want %v", name, !same, same)
		}
		if same := name != "seed"; (got.ContentID == want.ContentID) != same {
			t.Errorf("%s: content id is the same: %v, want %v", name, !same, same)
		}
	}
}

func TestContentIDHashesTheBodies(t *testing.T) {
	p := frozen(t, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 10, 20 })
	_, prompts := walk(p)
	h := sha256.New()
	for _, body := range prompts {
		sum := sha256.Sum256([]byte(body))
		h.Write(sum[:])
	}
	got, _ := p.Identify(context.Background())
	if want := hex.EncodeToString(h.Sum(nil)); got.ContentID != want || got.Requests != 20 {
		t.Errorf("got %+v, want content id %s of 20", got, want)
	}
}

func TestWalkWithoutBodiesHasTheSamePlanIDAndNoContentID(t *testing.T) {
	p := frozen(t, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 10, 20 })
	want, _ := p.Identify(context.Background())
	w := p.Walk()
	var r plan.Request
	for i := 0; w.Next(&r); i++ {
		w.SkipBodies(i >= 4)
		if hasBody := r.Body != nil && r.Prompt != ""; hasBody != (i <= 4) {
			t.Errorf("request %d has a body: %v", i, hasBody)
		}
	}
	if got := w.IDs(); got.PlanID != want.PlanID || got.ContentID != "" || got.Requests != 20 {
		t.Errorf("got %+v, want plan id %s and no content id", got, want.PlanID)
	}
}

func TestIdentifyStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := fmt.Errorf("interrupted")
	cancel(cause)
	p := frozen(t, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 10, 20 })
	if _, err := p.Identify(ctx); err != cause {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestAPlanWithoutAMeasuredRequestIsEmpty(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*plan.Spec)
		want   bool
	}{
		{"none falls due", stages("poisson", plan.LoadStage{Rate: 0.001, Duration: time.Second}), true},
		{"in the warm-up only", func(s *plan.Spec) {
			s.Load.Rate, s.Load.Duration, s.Load.Warmup = 5, time.Nanosecond, 10*time.Second
		}, true},
		{"in the second stage", stages("poisson", plan.LoadStage{Rate: 0.001, Duration: time.Second}, plan.LoadStage{Concurrency: 1, Requests: 1}), false},
		{"closed by duration", stages("poisson", plan.LoadStage{Concurrency: 1, Duration: time.Second}), false},
	} {
		if got := frozen(t, text{}, tc.change).Empty(); got != tc.want {
			t.Errorf("%s: empty: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestNewReportsAllFaults(t *testing.T) {
	s := plan.Defaults()
	s.Load.Rate, s.Workload.TopP = -1, 2
	_, err := plan.New(s, text{})
	faults, ok := err.(plan.Faults)
	if !ok || len(faults) != 3 {
		t.Errorf("got %v, want faults of top_p, rate and the missing end", err)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	w := frozen(t, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 1000, 100_000 }).Walk()
	var r plan.Request
	w.Next(&r)
	if got := testing.AllocsPerRun(1000, func() { w.Next(&r) }); got != 0 {
		t.Errorf("allocations per request: got %v, want 0", got)
	}
}

func benchmarkNext(b *testing.B, skip bool) {
	w := frozen(b, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 1000, int64(b.N) }).Walk()
	w.SkipBodies(skip)
	b.ReportAllocs()
	b.ResetTimer()
	var r plan.Request
	for w.Next(&r) {
	}
}

func BenchmarkNext(b *testing.B) { benchmarkNext(b, false) }

func BenchmarkNextWithoutBody(b *testing.B) { benchmarkNext(b, true) }

// Planning is off the hot path, but must keep ahead of it: requests with prompts of 8192 tokens each, bodies and hashes included.
func BenchmarkPlanningOf8kPrompts(b *testing.B) {
	for _, source := range []string{plan.TextWords, plan.TextMarkov, plan.TextCorpus, plan.TextRandom, plan.TextIDs} {
		b.Run(source, func(b *testing.B) {
			w := frozen(b, text{}, func(s *plan.Spec) {
				s.Load.Rate, s.Load.Requests = 1000, int64(b.N)
				s.Workload.InputTokens, s.Workload.Text = "8192", source
				if source != plan.TextWords {
					s.Workload.Tokenizer = plan.TokenizerEmbedded
				}
			}).Walk()
			b.ResetTimer()
			for r := new(plan.Request); w.Next(r); {
			}
			if w.Err() != nil {
				b.Fatal(w.Err())
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(8192*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

func BenchmarkNewOfAMillion(b *testing.B) {
	for range b.N {
		frozen(b, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 1000, 1_000_000 }).Walk()
	}
}

func TestOnlyKnownRequestsAreGivenOut(t *testing.T) {
	s := plan.Defaults()
	s.Load.Stages = []plan.LoadStage{{Rate: 10, Requests: 2}, {Concurrency: 1, Duration: time.Second}, {Concurrency: 1, Requests: 3}}
	p, err := plan.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var stages []int
	ids, err := p.EachKnown(t.Context(), func(r *plan.Request) error {
		stages = append(stages, r.Stage)
		return nil
	})
	if got := fmt.Sprint(stages); err != nil || got != "[0 0 2 2 2]" || ids.Requests != 5 {
		t.Errorf("requests of stages %s, %d hashed, error %v, want [0 0 2 2 2] and 5", got, ids.Requests, err)
	}
}
