package plan_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/internal/plan"
)

// shelf keeps a stored plan in memory, and counts open files.
type shelf struct {
	bytes.Buffer
	opened, closed int
}

func (s *shelf) open() (io.ReadCloser, error) {
	s.opened++
	return &volume{Reader: bytes.NewReader(s.Bytes()), of: s}, nil
}

type volume struct {
	io.Reader
	of *shelf
}

func (v *volume) Close() error { v.of.closed++; return nil }

func stored(t testing.TB, p *plan.Plan) (*shelf, plan.IDs) {
	t.Helper()
	s := new(shelf)
	ids, err := p.Store(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return s, ids
}

// reopened is the plan of the same spec whose requests are stored.
func reopened(t testing.TB, p *plan.Plan, open func() (io.ReadCloser, error)) *plan.Plan {
	t.Helper()
	q, err := plan.Stored(p.Spec, open)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAStoredPlanIsTheSameRequests(t *testing.T) {
	p := frozen(t, text{}, func(s *plan.Spec) { s.Load.Stages = everyArrival(200) })
	s, ids := stored(t, p)
	bare := reopened(t, p, s.open)
	got, err := bare.Identify(context.Background())
	want, _ := p.Identify(context.Background())
	if err != nil || got != want || ids != want {
		t.Errorf("ids: got %+v, %v, stored as %+v, want %+v", got, err, ids, want)
	}
	made, kept := p.Walk(), bare.Walk()
	var a, b plan.Request
	for n := 0; made.Next(&a); n++ {
		if !kept.Next(&b) {
			t.Fatalf("the stored plan ends after %d requests, %v", n, kept.Err())
		}
		a.Prompt = ""
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("got %+v, want %+v", b, a)
		}
	}
	if kept.Next(&b) || kept.Err() != nil {
		t.Errorf("after the end: got %+v, %v", b, kept.Err())
	}
	kept.Close()
	if s.opened != s.closed || s.opened == 0 {
		t.Errorf("files: %d opened, %d closed", s.opened, s.closed)
	}
	if kept.Next(&b) {
		t.Error("a closed walk goes on")
	}
}

func TestAnEndedStageOfAStoredPlanIsSkipped(t *testing.T) {
	p := frozen(t, text{}, stages("poisson", plan.LoadStage{Concurrency: 2, Requests: 50}, plan.LoadStage{Rate: 5, Requests: 2}))
	s, _ := stored(t, p)
	w := reopened(t, p, s.open).Walk()
	var r plan.Request
	w.Next(&r)
	w.EndStage()
	if !w.Next(&r) || r.Stage != 1 || r.Index != 50 {
		t.Errorf("got %+v, want request 50 of the second stage", r)
	}
}

func TestABrokenStoredPlanIsAnError(t *testing.T) {
	p := frozen(t, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 10, 500 })
	s, ids := stored(t, p)
	whole := bytes.Clone(s.Bytes())
	s.Truncate(len(whole) / 2)
	if _, err := reopened(t, p, s.open).Identify(context.Background()); err == nil {
		t.Error("cut in half: got no error")
	}
	missing := errors.New("no such file")
	if _, err := reopened(t, p, func() (io.ReadCloser, error) { return nil, missing }).Identify(context.Background()); !errors.Is(err, missing) {
		t.Errorf("missing: got %v", err)
	}
	other, _ := stored(t, frozen(t, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests, s.Load.Seed = 10, 500, 2 }))
	if got, err := reopened(t, p, other.open).Identify(context.Background()); err != nil || got.PlanID == ids.PlanID || got.ContentID == ids.ContentID {
		t.Errorf("another plan's requests: got %+v, %v, want other ids than %+v", got, err, ids)
	}
}

func TestAPlanThatRepliesDecideCannotBeStored(t *testing.T) {
	p := frozen(t, text{}, stages("poisson", plan.LoadStage{Concurrency: 2, Duration: time.Second}))
	if _, err := p.Store(context.Background(), io.Discard); err == nil || !strings.Contains(err.Error(), "load.stages[0]: is a closed loop") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAStoredPlanDecidesMayNotDiffer(t *testing.T) {
	spec := func(change func(*plan.Spec)) plan.Spec {
		s := plan.Defaults()
		s.Target.Model, s.Load.Rate, s.Load.Requests = "m", 1, 5
		change(&s)
		return s
	}
	base := spec(func(*plan.Spec) {})
	for name, change := range map[string]func(*plan.Spec){
		"load.rate":            func(s *plan.Spec) { s.Load.Rate = 2 },
		"load.stages":          func(s *plan.Spec) { s.Load.Stages = []plan.LoadStage{{Rate: 3, Requests: 1}} },
		"workload.temperature": func(s *plan.Spec) { s.Workload.Temperature = 1 },
		"target.model":         func(s *plan.Spec) { s.Target.Model = "n" },
		"target.stream":        func(s *plan.Spec) { s.Target.Stream = false },
		"":                     func(s *plan.Spec) { s.Target.URL, s.Load.Drain, s.Out, s.Client.Loops = "http://h", 1, "x", 3 },
	} {
		faults := spec(change).Differ(base)
		if name == "" && len(faults) != 0 || name != "" && (len(faults) != 1 || faults[0].Key != name) {
			t.Errorf("%q: got %v", name, faults)
		}
	}
	secret := spec(func(s *plan.Spec) {
		s.Target.URL, s.Target.Headers, s.Out = "http://u:p@h", map[string]string{"Authorization": "secret"}, "x"
	})
	if got := string(secret.Portable().YAML()); strings.Contains(got, "secret") || strings.Contains(got, "h\n") || strings.Contains(got, "***") || secret.Portable().Out != "" {
		t.Errorf("portable: got\n%s", got)
	}
}

func BenchmarkStore(b *testing.B) {
	p := frozen(b, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 1000, int64(b.N) })
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := p.Store(context.Background(), io.Discard); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkNextStored(b *testing.B) {
	p := frozen(b, text{}, func(s *plan.Spec) { s.Load.Rate, s.Load.Requests = 1000, int64(b.N) })
	s, _ := stored(b, p)
	w := reopened(b, p, s.open).Walk()
	b.ReportAllocs()
	b.ResetTimer()
	var r plan.Request
	for w.Next(&r) {
	}
}
