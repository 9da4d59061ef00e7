package judge_test

import (
	"strings"
	"testing"
	"time"

	"tare/internal/judge/verdict"
	"tare/internal/record"
)

func TestGatesBlameWhoIsAnswerable(t *testing.T) {
	const ms = time.Millisecond
	late := func(slip time.Duration, why record.Delay) func(*record.Exchange) *record.Exchange {
		return func(x *record.Exchange) *record.Exchange { delay(x, slip, why); return x }
	}
	tests := []struct {
		name   string
		edit   func(*record.Manifest)
		change func(*record.Exchange) *record.Exchange
		gate   string
		level  verdict.Level
		class  verdict.Class
		hint   string
	}{
		{name: "slip within 1 % of TTFT or 0.2 ms", change: late(400*time.Microsecond, record.DelayBusy), gate: "C2", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "slip within 5 % of TTFT", change: late(2*ms, record.DelayBusy), gate: "C2", level: verdict.ValidLevel, class: verdict.Valid},
		{name: "slip above 5 % of TTFT", change: late(3*ms, record.DelayBusy), gate: "C2", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "the same slip by the declared limit", change: late(3*ms, record.DelayInFlightCap), gate: "C2", level: verdict.Unobservable, class: verdict.Valid},
		{name: "the limit moves half of all sends far out of the window", change: func(x *record.Exchange) *record.Exchange {
			if x.Index%2 == 0 {
				delay(x, 20*time.Second, record.DelayInFlightCap)
			}
			return x
		}, gate: "C4", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "requests the limit held to the end", change: func(x *record.Exchange) *record.Exchange {
			if x.Index > 900 {
				fail(x, record.NotSent, "")
				x.Delay = record.DelayInFlightCap
			}
			return x
		}, gate: "C5", level: verdict.Failed, class: verdict.InvalidWorkload},
		{name: "requests never taken up behind the limit", edit: func(m *record.Manifest) { m.Stages[1].MaxInFlight = 10 }, change: func(x *record.Exchange) *record.Exchange {
			if x.Index > 900 {
				fail(x, record.NotSent, "")
			}
			return x
		}, gate: "C4", level: verdict.CertifiedLevel, class: verdict.InvalidWorkload},
		{name: "a slow server", change: func(x *record.Exchange) *record.Exchange { reply(x, 30*time.Second); return x }, gate: "C4", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a server slow to accept", change: func(x *record.Exchange) *record.Exchange {
			delay(x, 3*time.Second, record.DelayNoConnection)
			x.Issued, x.ConnReady = record.At(x.Due), record.At(x.Due+3*time.Second)
			return x
		}, gate: "C3", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a busy client that dials late", change: func(x *record.Exchange) *record.Exchange {
			delay(x, 3*time.Second, record.DelayNoConnection)
			x.Issued = record.At(x.Due + 3*time.Second - ms)
			return x
		}, gate: "C3", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "a server that refuses connections", change: func(x *record.Exchange) *record.Exchange {
			if x.Index%2 == 0 {
				fail(x, record.ConnectFailed, "refused")
			}
			return x
		}, gate: "C4", level: verdict.CertifiedLevel, class: verdict.InvalidServer},
		{name: "waits for a connection the open-file limit did not allow", change: late(3*ms, record.DelayFileLimit), gate: "C2", level: verdict.Failed, class: verdict.InvalidClient, hint: "ulimit -n"},
		{name: "dials that failed for want of local ports", change: func(x *record.Exchange) *record.Exchange {
			if x.Index%2 == 0 {
				fail(x, record.ConnectFailed, "cannot assign requested address")
				x.Delay = record.DelayFileLimit
			}
			return x
		}, gate: "C5", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "a long wait of that kind", change: func(x *record.Exchange) *record.Exchange {
			if x.Index == 700 {
				delay(x, 51*ms, record.DelayFileLimit)
			}
			return x
		}, gate: "C3", level: verdict.Failed, class: verdict.InvalidClient, hint: "ulimit -n"},
		{name: "waits of that kind beyond the window", change: func(x *record.Exchange) *record.Exchange {
			if x.Index >= 1080 {
				delay(x, 300*ms, record.DelayFileLimit)
			}
			return x
		}, gate: "C4", level: verdict.Failed, class: verdict.InvalidClient, hint: "ulimit -n"},
		{name: "unsent for want of files, in a stage with a limit of its own", edit: func(m *record.Manifest) { m.Stages[1].MaxInFlight = 10 }, change: func(x *record.Exchange) *record.Exchange {
			if x.Index > 900 {
				fail(x, record.NotSent, "")
				x.Delay = record.DelayFileLimit
			}
			return x
		}, gate: "C5", level: verdict.Failed, class: verdict.InvalidClient, hint: "ulimit -n"},
		{name: "one long slip", change: func(x *record.Exchange) *record.Exchange {
			if x.Index == 700 {
				delay(x, 51*ms, record.DelayBusy)
			}
			return x
		}, gate: "C3", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "a client that sends 2 % after the window", change: func(x *record.Exchange) *record.Exchange {
			if x.Index >= 1080 {
				delay(x, 300*ms, record.DelayBusy)
			}
			return x
		}, gate: "C4", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "requests never sent", change: func(x *record.Exchange) *record.Exchange {
			if x.Index == 1099 {
				fail(x, record.NotSent, "")
			}
			return x
		}, gate: "C5", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "events read late", change: func(x *record.Exchange) *record.Exchange {
			for i := range x.Events {
				x.Events[i].UserAt += 2 * ms
			}
			return x
		}, gate: "C6", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "no kernel stamps", edit: func(m *record.Manifest) { m.Client.KernelStamps = false }, change: func(x *record.Exchange) *record.Exchange {
			for i := range x.Events {
				x.Events[i].Flags = 0
			}
			return x
		}, gate: "C6", level: verdict.Unobservable, class: verdict.Valid},
		{name: "a machine that was not calibrated", gate: "C1", level: verdict.Unobservable, class: verdict.Valid},
		{name: "closed loops on such a machine", edit: func(m *record.Manifest) { m.Stages[1].Kind = "closed" }, gate: "C1", level: verdict.NotApplicable, class: verdict.Valid},
		{name: "half of the capacity", edit: admitted(0.5, false), gate: "C1", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "most of the capacity", edit: admitted(0.7, false), gate: "C1", level: verdict.ValidLevel, class: verdict.Valid},
		{name: "too much of the capacity, allowed", edit: admitted(0.71, true), gate: "C1", level: verdict.Failed, class: verdict.InvalidClient, hint: "lower the rate"},
		{name: "a client that was slowed on purpose", edit: func(m *record.Manifest) { m.Client.BurdenNs = 1 }, gate: "C1", level: verdict.Failed, class: verdict.InvalidClient, hint: "tare bias"},
		{name: "a busy loop", edit: func(m *record.Manifest) { m.Loops[0].CPUNs = 8e9 }, gate: "C8", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "a loop that mostly spun", edit: func(m *record.Manifest) {
			m.Loops[0].CPUNs, m.Loops[0].SpunNs = 8e9, 5e9
		}, gate: "C8", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "loops without CPU time", edit: func(m *record.Manifest) { m.Loops = nil }, gate: "C8", level: verdict.Unobservable, class: verdict.Valid},
		{name: "a stepped clock", edit: func(m *record.Manifest) { m.Clock.MaxStepNs = -2e6 }, gate: "C12", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "a killed run's clock", edit: func(m *record.Manifest) { m.State = record.State{} }, gate: "C12", level: verdict.Unobservable, class: verdict.Valid},
		{name: "the process of loops without threads", edit: goroutines(1e3), gate: "C8", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a busy process", edit: goroutines(15e3), gate: "C8", level: verdict.Failed, class: verdict.InvalidClient},
		{name: "a busy process of which nothing is known", edit: goroutines(0), gate: "C8", level: verdict.Unobservable, class: verdict.Valid},
		{name: "a killed run's rate", edit: func(m *record.Manifest) { m.State = record.State{} }, gate: "C4", level: verdict.Unobservable, class: verdict.Valid},
		{name: "a killed run's unsent requests", edit: func(m *record.Manifest) { m.State = record.State{} }, gate: "C5", level: verdict.Unobservable, class: verdict.Valid},
		{name: "a killed run's errors", edit: func(m *record.Manifest) { m.State = record.State{} }, gate: "S5", level: verdict.Unobservable, class: verdict.Valid},
		{name: "a killed closed loop by time", edit: func(m *record.Manifest) {
			m.Stages[1].Kind, m.Stages[1].Planned, m.State = "closed", 0, record.State{}
		}, gate: "T1", level: verdict.Unobservable, class: verdict.Valid},
		{name: "errors of 0.5 %", change: func(x *record.Exchange) *record.Exchange {
			if x.Index%200 == 150 {
				fail(x, record.TimedOut, "")
			}
			return x
		}, gate: "S5", level: verdict.ValidLevel, class: verdict.Valid},
		{name: "nothing in the log", change: func(*record.Exchange) *record.Exchange { return nil }, gate: "T1", level: verdict.Failed, class: verdict.InvalidStats},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := twoStages()
			if tt.edit != nil {
				tt.edit(m)
			}
			s := summarize(t, m, requests(tt.change))
			if g := gate(t, s, tt.gate); g.Level != tt.level {
				t.Errorf("%s: got %s (%s), want %s", tt.gate, g.Level, g.Measured, tt.level)
			}
			if g := gate(t, s, tt.gate); !strings.Contains(g.Hint, tt.hint) {
				t.Errorf("%s: got hint %q, want %q in it", tt.gate, g.Hint, tt.hint)
			}
			if s.Verdict.Class != tt.class {
				t.Errorf("class: got %s (%s), want %s", s.Verdict.Class, s.Verdict.Reason, tt.class)
			}
		})
	}
}

// admitted makes a run one whose plan takes so much of the machine's capacity.
func admitted(utilisation float64, allowed bool) func(*record.Manifest) {
	return func(m *record.Manifest) {
		m.Admission = &record.Admission{Utilisation: utilisation, Of: "events", AllowedBiased: allowed}
	}
}

// goroutines makes a run that of an engine whose two pacers have no thread of their own, with cpuMs of CPU time in 10 s.
func goroutines(cpuMs float64) func(*record.Manifest) {
	return func(m *record.Manifest) {
		m.Client.Engine, m.Client.GOMAXPROCS, m.Env.CPUs = "goroutine", 4, 2 // more threads than processors
		m.Loops = []record.Loop{{WallNs: 10e9}, {WallNs: 10e9}}
		m.State.CPUMs = cpuMs
	}
}

func TestTheWorstStageIsNamed(t *testing.T) {
	m := twoStages()
	m.Stages[0].Warmup = false
	s := summarize(t, m, requests(func(x *record.Exchange) *record.Exchange {
		if x.Stage == 0 {
			delay(x, 3*time.Millisecond, record.DelayBusy)
		}
		return x
	}))
	if g := gate(t, s, "C2"); g.Stage != "warmup" || g.Level != verdict.Failed {
		t.Errorf("got stage %q at level %s, want the first stage to have failed", g.Stage, g.Level)
	}
}

func TestWarmUpDoesNotEnterTheVerdict(t *testing.T) {
	s := summarize(t, twoStages(), requests(func(x *record.Exchange) *record.Exchange {
		if x.Stage == 0 {
			delay(x, 300*time.Millisecond, record.DelayBusy)
		}
		return x
	}))
	if s.Verdict.Class != verdict.Valid {
		t.Errorf("class: got %s (%s), want VALID", s.Verdict.Class, s.Verdict.Reason)
	}
}
