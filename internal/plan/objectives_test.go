package plan_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"tare/internal/plan"
)

func TestEveryFaultOfAnObjectiveIsReportedWithItsLine(t *testing.T) {
	d := draft(enough + `slo:
  - ttft.p99 < 500ms
  - tfft < 1s
  - tpot < 50
  - ttft.p99 < 500ms
  - e2e > 3s
  - [nested]
workload:
  classes:
    - name: gold
      slo: [latency < 1s]
    - name: free
      slo: "icl<5ms tpot.p101<1s"
`)
	d.Set("slo_target", "0.3", "--slo-target")
	wantLines(t, "faults", faultsOf(t, d),
		`spec.yaml:6: slo[1]: "tfft" is not a metric`,
		`spec.yaml:7: slo[2]: the limit has no unit: 50`,
		`spec.yaml:8: slo[3]: is given twice: ttft.p99<500ms`,
		`spec.yaml:9: slo[4]: must have < or <=, got ">"`,
		`spec.yaml:10: slo: must be a list of texts, got a list`,
		`spec.yaml:14: workload.classes[0].slo[0]: "latency" is not a metric`,
		`spec.yaml:16: workload.classes[1].slo[0]: icl cannot be an objective`,
		`spec.yaml:16: workload.classes[1].slo[1]: "p101" is none of p50 to p99.99, and not mean`,
		`--slo-target: must be above 0.5, got 0.3`,
	)
	_, err := d.Spec()
	for _, hint := range []string{"did you mean ttft?", "write a time like 50ms", "the metrics are ttft, ttft_from_due"} {
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("want %q in:\n%v", hint, err)
		}
	}
}

func TestObjectivesWithinAReplyNeedAStream(t *testing.T) {
	d := draft(enough + "target: {stream: false}\nslo: [ttft<1s, ntpot<50ms, e2e.p95<3s]\n")
	wantLines(t, "faults", faultsOf(t, d), "spec.yaml:5: slo[0]: ttft<1s asks for times within a reply, and replies are not streamed")
}

func TestObjectivesByFlagsTakeThePlaceOfTheFiles(t *testing.T) {
	d := draft(enough + "slo: [ttft < 1s, e2e < 9s]\nslo_target: 0.9\n")
	d.Set("slo", "tpot < 50ms", "--slo")
	d.Set("slo", "ttft.p99<2s,error_rate<1%", "--slo")
	d.Set("workload.classes", "name=gold,slo=ttft < 100ms e2e<1s,priority=-2", "--class")
	spec, err := d.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"tpot<50ms", "ttft.p99<2s", "error_rate<1%"}; !reflect.DeepEqual(spec.SLO, want) || spec.SLOTarget != 0.9 {
		t.Errorf("got %q, target %g, want %q, 0.9", spec.SLO, spec.SLOTarget, want)
	}
	gold := spec.Workload.Classes[0]
	if want := []string{"ttft<100ms", "e2e<1s"}; !reflect.DeepEqual(gold.SLO, want) || gold.Priority != -2 {
		t.Errorf("class: got %q, priority %d, want %q, -2", gold.SLO, gold.Priority, want)
	}
	again, err := draft(string(spec.YAML())).Spec()
	if err != nil || !reflect.DeepEqual(again, spec) {
		t.Errorf("read again: got %v, %v, want the same spec from\n%s", again, err, spec.YAML())
	}
}

func TestAFlagNamesTheObjectiveThatIsWrong(t *testing.T) {
	d := draft(enough)
	d.Set("slo", "tpot<50ms", "--slo")
	d.Set("slo", "ttfft<1s", "--slo")
	d.Set("workload.classes", "name=gold,slo=x<1s", "--class")
	wantLines(t, "faults", faultsOf(t, d), `--slo 2: "ttfft" is not a metric`, `--class 1: slo[0]: "x" is not a metric`)
}

func TestObjectivesChangeNothingThatIsSent(t *testing.T) {
	ids := func(change func(*plan.Class)) plan.IDs {
		p := asked(t, 50, func(w *plan.Workload) {
			w.Classes = []plan.Class{{Name: "gold"}, {Name: "free", Weight: 3}}
			change(&w.Classes[0])
		})
		ids, err := p.Identify(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	plain := ids(func(*plan.Class) {})
	if got := ids(func(c *plan.Class) { c.SLO = []string{"ttft<1s"} }); got != plain {
		t.Errorf("with an objective: got %+v, want %+v", got, plain)
	}
	if got := ids(func(c *plan.Class) { c.Priority = 1 }); got.PlanID == plain.PlanID {
		t.Error("with a priority: got the same plan id")
	}
}

// TestPrioritiesAreSentForEveryClassOnceOneHasOne looks at what is asked of the encoder.
func TestPrioritiesAreSentForEveryClassOnceOneHasOne(t *testing.T) {
	for _, priority := range []int{0, -5} {
		p := asked(t, 60, func(w *plan.Workload) { w.Classes = []plan.Class{{Name: "gold", Priority: priority}, {Name: "free"}} })
		for _, r := range made(t, p) {
			want := 0
			if r.Class == "gold" {
				want = priority
			}
			if r.Priority != want || r.Prioritized != (priority != 0) {
				t.Fatalf("class %s: got priority %d, sent %v, want %d, %v", r.Class, r.Priority, r.Prioritized, want, priority != 0)
			}
		}
	}
}

func TestAPriorityNeedsAWordOfTheEndpoint(t *testing.T) {
	spec := plan.Defaults()
	spec.Target.Endpoint = plan.EndpointTGI
	spec.Workload.Classes = []plan.Class{{Name: "gold"}, {Name: "free", Priority: 1}}
	faults := spec.Needs(plan.Features{Model: true})
	if len(faults) != 1 || faults[0].Key != "workload.classes[1].priority" || faults[0].Reason != "endpoint tgi has no word for a priority" {
		t.Errorf("got %v, want the priority refused", faults)
	}
}
