package judge_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// served are the looks at a server that counts requests as they end, and whose clock begins half a millisecond after the send:
// of each TTFT it waited 10 ms in a queue.
func served(all []*record.Exchange) (looks []record.ServerSample) {
	look := func(atMs float64, edge string) {
		at := time.Duration(atMs * 1e6)
		v := map[record.Quantity]float64{
			record.Running: 0, record.Waiting: 0, record.Requests: 40, record.PromptTokens: 400, record.OutputTokens: 80, record.Preemptions: 7, // of before
			record.ServerTTFT.Sum(): 90, record.ServerTTFT.Count(): 40, record.ServerE2E.Sum(): 900, record.ServerE2E.Count(): 40,
			record.QueueTime.Sum(): 5, record.QueueTime.Count(): 40,
		}
		for _, x := range all {
			sent, _ := x.FirstWrite.Get()
			end, _ := x.End.Get()
			if sent <= at && at < end {
				v[record.Running]++
			}
			if len(x.Events) > 0 && x.Events[0].KernelAt <= at {
				v[record.ServerTTFT.Sum()] += float64(x.Events[0].KernelAt-sent)/1e6 - 0.5
				v[record.ServerTTFT.Count()]++
				v[record.QueueTime.Sum()] += 10
				v[record.QueueTime.Count()]++
				v[record.PromptTokens] += float64(x.Usage.Input)
			}
			if x.Outcome == record.Completed && end <= at {
				v[record.Requests]++
				v[record.OutputTokens] += float64(x.Usage.Output)
				v[record.ServerE2E.Sum()] += float64(end-sent)/1e6 - 1
				v[record.ServerE2E.Count()]++
			}
		}
		looks = append(looks, record.ServerSample{AtMs: atMs, Source: "http://s/metrics", Kind: record.SourceServer, Edge: edge,
			Values: &record.ServerValues{Dialect: "vllm", Values: v, Finished: map[string]float64{"length": v[record.Requests]}}})
	}
	look(-20, record.EdgeBefore)
	look(1000, record.EdgeStage)
	for at := 2000.0; at <= 11000; at += 1000 {
		look(at, "")
	}
	look(11300, record.EdgeAfter)
	looks[0].Identity = &record.Identity{Models: []string{"m"}, Version: "1", RoundTrip: &record.RoundTrip{MinMs: 0.3, N: 1}}
	looks[len(looks)-1].Identity = &record.Identity{Models: []string{"m"}, Version: "1"}
	return looks
}

// from changes a quantity by so much in every look from a moment on.
func from(atMs float64, q record.Quantity, by float64) func([]record.ServerSample) []record.ServerSample {
	return func(looks []record.ServerSample) []record.ServerSample {
		for i := range looks {
			if looks[i].AtMs >= atMs {
				looks[i].Values.Values[q] += by
			}
		}
		return looks
	}
}

// without takes a quantity out of every look.
func without(all ...record.Quantity) func([]record.ServerSample) []record.ServerSample {
	return func(looks []record.ServerSample) []record.ServerSample {
		for i := range looks {
			for _, q := range all {
				delete(looks[i].Values.Values, q)
			}
		}
		return looks
	}
}

func last(looks []record.ServerSample) *record.ServerSample { return &looks[len(looks)-1] }

func TestServersAreHeldToTheRecords(t *testing.T) {
	timedOut := func(x *record.Exchange) *record.Exchange {
		if x.Index%300 == 250 { // three of them
			fail(x, record.TimedOut, "")
		}
		return x
	}
	var unstamped = func(m *record.Manifest) { m.Client.KernelStamps = false }
	type looks = []record.ServerSample
	for name, c := range map[string]struct {
		edit    func(*record.Manifest)
		request func(*record.Exchange) *record.Exchange
		change  func(looks) looks
		gate    string
		level   verdict.Level
		class   verdict.Class
		say     string
	}{
		"the same server":                   {gate: "S1", level: verdict.CertifiedLevel, class: verdict.Valid, say: "the same before and after"},
		"the same numbers":                  {gate: "S2", level: verdict.CertifiedLevel, class: verdict.Valid, say: "1100 requests, 8800 prompt tokens, 4400 output tokens"},
		"the same means":                    {gate: "S3", level: verdict.CertifiedLevel, class: verdict.Valid, say: "mean TTFT 50.0ms here, 49.5ms by the server, round trip 300µs: 200µs left (limit 2.00ms)"},
		"nothing odd":                       {gate: "S4", level: verdict.CertifiedLevel, class: verdict.Valid},
		"one more request, of another's":    {change: from(5000, record.Requests, 1), gate: "S2", level: verdict.Failed, class: verdict.InvalidServer, say: "1101 requests by the server, 1100 by the records"},
		"one request less":                  {change: from(5000, record.Requests, -1), gate: "S2", level: verdict.Failed, class: verdict.InvalidServer, say: "1099 requests by the server"},
		"one more token":                    {change: from(11300, record.OutputTokens, 1), gate: "S2", level: verdict.Failed, class: verdict.InvalidServer, say: "4401 output tokens"},
		"another's before the run":          {change: from(-20, record.Requests, 1000), gate: "S2", level: verdict.CertifiedLevel, class: verdict.Valid},
		"more than what is in flight hides": {change: from(1000, record.Requests, 18), gate: "S2", level: verdict.Failed, class: verdict.InvalidServer},
		"tokens that nobody counts":         {change: without(record.Requests, record.PromptTokens), gate: "S2", level: verdict.CertifiedLevel, class: verdict.Valid, say: "the same by both sides: 4400 output tokens"},
		"nothing that can be held": {change: without(record.Requests, record.PromptTokens, record.OutputTokens), gate: "S2", level: verdict.Unobservable, class: verdict.Valid,
			say: "counts neither requests nor tokens"},
		"given up, and counted all the same": {request: timedOut, change: from(11300, record.Requests, 3), gate: "S2", level: verdict.ValidLevel, class: verdict.Valid, say: "1100 requests by the server, 1097 to 1100 by the records"},
		"given up, and not counted":          {request: timedOut, gate: "S2", level: verdict.ValidLevel, class: verdict.Valid, say: "output tokens by the server, 4388 or more by the records"},
		"more than were given up":            {request: timedOut, change: from(11300, record.Requests, 4), gate: "S2", level: verdict.Failed, class: verdict.InvalidServer},
		"refused with 429, which nobody counts": {request: func(x *record.Exchange) *record.Exchange {
			if x.Index == 300 {
				fail(x, record.HTTPError, "")
				x.Status = 429
			}
			return x
		}, gate: "S2", level: verdict.CertifiedLevel, class: verdict.Valid, say: "1099 requests"},
		"what was found and what was computed": {change: func(all looks) looks {
			for i := range all {
				v := all[i].Values.Values
				v[record.CacheHits], v[record.ComputedInput] = v[record.PromptTokens]/4, v[record.PromptTokens]*3/4
			}
			return without(record.PromptTokens)(all)
		}, gate: "S2", level: verdict.CertifiedLevel, class: verdict.Valid, say: "8800 prompt tokens"},
		"a restart": {change: func(all looks) looks {
			for q := range all[6].Values.Values {
				if q.Counter() {
					all = from(6000, q, -all[6].Values.Values[q])(all)
				}
			}
			return all
		}, gate: "S1", level: verdict.Failed, class: verdict.InvalidServer, say: "began anew"},
		"another start of the process": {change: func(all looks) looks {
			return from(6000, record.ServerStart, 1)(from(-20, record.ServerStart, 1e9)(all))
		}, gate: "S2", level: verdict.Unobservable, class: verdict.InvalidServer},
		"another version":   {change: func(all looks) looks { last(all).Identity.Version = "2"; return all }, gate: "S1", level: verdict.Failed, class: verdict.InvalidServer, say: `version "1", then "2"`},
		"another model":     {change: func(all looks) looks { last(all).Identity.Models = []string{"m", "n"}; return all }, gate: "S1", level: verdict.Failed, class: verdict.InvalidServer, say: "models [m], then [m n]"},
		"another argument":  {change: func(all looks) looks { last(all).Identity.Settings = map[string]string{"tp_size": "2"}; return all }, gate: "S1", level: verdict.Failed, class: verdict.InvalidServer, say: `tp_size "", then "2"`},
		"nobody to ask":     {change: func(all looks) looks { all[0].Identity, last(all).Identity = nil, nil; return all }, gate: "S1", level: verdict.Unobservable, class: verdict.Valid},
		"no look behind it": {change: func(all looks) looks { last(all).Values, last(all).Reason = nil, "no answer within 2s"; return all }, gate: "S2", level: verdict.Unobservable, class: verdict.Valid},
		"a replica that fell silent": {change: func(all looks) looks { last(all).Values, last(all).Reason = nil, "connection refused"; return all }, gate: "S4", level: verdict.Failed, class: verdict.Valid,
			say: "no more told by http://s/metrics"},
		"a slow front end, seen with stamps":    {change: from(5000, record.ServerTTFT.Sum(), -1100*3), gate: "S3", level: verdict.Failed, class: verdict.Valid, say: "3.49ms left"},
		"the same without stamps":               {edit: unstamped, change: from(5000, record.ServerTTFT.Sum(), -1100*3), gate: "S3", level: verdict.Failed, class: verdict.InvalidClient},
		"a server slower than what it was seen": {change: from(11300, record.ServerTTFT.Sum(), 1100*4), gate: "S3", level: verdict.Failed, class: verdict.InvalidStats},
		"means of other replies":                {change: from(11300, record.ServerTTFT.Count(), 1), gate: "S3", level: verdict.CertifiedLevel, class: verdict.Valid, say: "mean E2E"},
		"no TTFT":                               {change: without(record.ServerTTFT.Sum()), gate: "S3", level: verdict.CertifiedLevel, class: verdict.Valid, say: "mean E2E 81.0ms here, 80.0ms by the server"},
		"no means":                              {change: without(record.ServerTTFT.Sum(), record.ServerE2E.Sum()), gate: "S3", level: verdict.Unobservable, class: verdict.Valid},
		"preemptions":                           {change: from(5000, record.Preemptions, 3), gate: "S4", level: verdict.Failed, class: verdict.Valid, say: "3 preemptions"},
		"preemptions before the run":            {change: from(-20, record.Preemptions, 3), gate: "S4", level: verdict.CertifiedLevel, class: verdict.Valid},
		"preemptions, and no look at the edge": {change: func(all looks) looks {
			all[1].Values, all[1].Reason = nil, "late"
			return from(5000, record.Preemptions, 3)(all)
		}, gate: "S4", level: verdict.Failed, class: verdict.Valid, say: "3 preemptions"},
		"a throttled GPU beside it": {change: func(all looks) looks {
			for i, edge := range []string{record.EdgeBefore, record.EdgeAfter} {
				all = append(all, record.ServerSample{AtMs: float64(i) * 11300, Source: "http://gpu", Kind: record.SourceExporter, Edge: edge,
					Values: &record.ServerValues{Dialect: "dcgm", Values: map[record.Quantity]float64{record.GPUThrottled: 100 + 2500*float64(i)}}})
			}
			return all
		}, gate: "S4", level: verdict.Failed, class: verdict.Valid, say: "clocks held down for 2.50ms"},
	} {
		m := twoStages()
		if c.edit != nil {
			c.edit(m)
		}
		all := requests(c.request)
		looks := served(all)
		if c.change != nil {
			looks = c.change(looks)
		}
		s, _ := examine(t, m, all, looks...)
		g := gate(t, s, c.gate)
		if g.Level != c.level || !strings.Contains(g.Measured, c.say) || s.Verdict.Class != c.class {
			t.Errorf("%s: got %s %s (%s), class %s (%s), want %s with %q, class %s", name, c.gate, g.Level, g.Measured, s.Verdict.Class, s.Verdict.Reason, c.level, c.say, c.class)
		}
	}
}

func TestACounterThatAppearsBeganAtNothing(t *testing.T) {
	all := requests(nil)
	looks := served(all)
	for q := range looks[0].Values.Values {
		if q.Counter() {
			looks = from(-20, q, -looks[0].Values.Values[q])(looks)
		}
	}
	fresh := record.ServerSample{AtMs: -20, Source: "http://s/metrics", Kind: record.SourceServer, Edge: record.EdgeBefore, Values: &record.ServerValues{Values: map[record.Quantity]float64{}}}
	fresh.Identity = looks[0].Identity
	looks[0] = fresh
	idle := []record.ServerSample{fresh, fresh} // a replica that nothing was sent to
	idle[0].Source, idle[1].Source, idle[1].AtMs, idle[1].Edge = "http://t/metrics", "http://t/metrics", 11300, record.EdgeAfter
	s, _ := examine(t, twoStages(), all, append(looks, idle...)...)
	if g := gate(t, s, "S2"); g.Level != verdict.CertifiedLevel || !strings.Contains(g.Measured, "1100 requests") {
		t.Errorf("got %s (%s), want all requests counted from nothing", g.Level, g.Measured)
	}
}

func TestARunWithoutLooksAtServersSaysSo(t *testing.T) {
	s := summarize(t, twoStages(), requests(nil))
	for _, id := range []string{"S1", "S2", "S3", "S4"} {
		if g := gate(t, s, id); g.Level != verdict.Unobservable || !g.Untold || !g.Advisory {
			t.Errorf("%s: got %+v, want what no server told", id, g)
		}
	}
	if s.Server != nil || s.Verdict.Class != verdict.Valid || strings.Contains(s.Verdict.Reason, "S2") {
		t.Errorf("got %v, %s (%s), want a run that is not blamed for it", s.Server, s.Verdict.Class, s.Verdict.Reason)
	}
}

func TestWhatIsInFlightAtAnEdgeIsLeftOpen(t *testing.T) {
	all := requests(nil)
	s, _ := examine(t, twoStages(), all, served(all)...)
	run, part := &s.Server.Run, s.Server.Total
	if part == nil || run.InFlightAtEdges != 0 || !run.Requests.Exact() {
		t.Fatalf("got run %+v and part %v, want the run without anything in flight", run, part)
	}
	// Due every 10 ms, 81 ms each: 101 were sent at 1 s, and 82 had ended a tenth of a second before.
	if part.InFlightAtEdges != 101-82 {
		t.Errorf("got %d requests in flight at the edge, want 19", part.InFlightAtEdges)
	}
	if holds, ok := part.Requests.Holds(); !holds || !ok || part.Requests.Exact() {
		t.Errorf("got %+v, want bounds around the server's number", part.Requests)
	}
	number(t, "server's requests from the edge on", part.Requests.Server, 1008)
	if part.PerToken != (judge.PerToken{}) {
		t.Errorf("got %+v, want no parts of other requests' tokens", part.PerToken)
	}
}

func TestDrainedEdgesMakeStagesExact(t *testing.T) {
	m := twoStages()
	m.Stages[1].StartMs, m.Stages[1].EndMs = 2000, 11000
	all := requests(func(x *record.Exchange) *record.Exchange {
		if x.Stage == 1 && x.Index < 200 {
			return nil // a gap of a second behind the warm-up
		}
		return x
	})
	m.Stages[1].Planned = 900
	looks := served(all)
	looks[2].Edge, looks[2].AtMs = record.EdgeStage, looks[2].AtMs-20
	s, _ := examine(t, m, all, looks...)
	part := s.Server.Total
	if part == nil || part.InFlightAtEdges != 0 || !part.Requests.Exact() {
		t.Fatalf("got %+v, want nothing in flight at an edge behind a gap", part)
	}
	number(t, "requests", part.Requests.Server, 900)
	if g := gate(t, s, "S3"); !strings.Contains(g.Measured, "mean TTFT") || g.Stage != "measured" {
		t.Errorf("got %+v, want the means of the measured part", g)
	}
}

func TestTimePerOutputTokenIsTakenApart(t *testing.T) {
	all := requests(nil)
	s, _ := examine(t, twoStages(), all, served(all)...)
	p := s.Server.Run.PerToken // four tokens each; E2E 81 ms, of which the server saw 80: 10 in the queue, 39.5 to the first token
	for name, c := range map[string]struct {
		got  judge.Number
		want float64
	}{
		"client": {p.Client, 81.0 / 4}, "queue": {p.Queue, 10.0 / 4}, "prefill": {p.Prefill, 39.5 / 4}, "decode": {p.Decode, 30.5 / 4}, "outside": {p.Outside, 1.0 / 4},
	} {
		near(t, name, valueOf(c.got), c.want)
	}
	if !p.Derived {
		t.Error("parts that are differences are not called so")
	}
	m := s.Server.Run
	near(t, "in flight here", valueOf(m.InFlight.Client), valueOf(m.InFlight.Running))
	near(t, "in flight", valueOf(m.InFlight.Client), (9*10+8)/11.0)
	near(t, "queue", valueOf(m.Queue), 10)
	if want := map[string]float64{"length": 1100}; !maps.Equal(m.Finished, want) {
		t.Errorf("finished: got %v, want %v", m.Finished, want)
	}
}

func TestReplicasAreAddedUp(t *testing.T) {
	all := requests(nil)
	var halves [2][]*record.Exchange
	for _, x := range all {
		halves[x.Index%2] = append(halves[x.Index%2], x)
	}
	one, two := served(halves[0]), served(halves[1])
	for i := range two {
		two[i].Source, two[i].AtMs = "http://t/metrics", two[i].AtMs+1
	}
	s, _ := examine(t, twoStages(), all, slices.Concat(one, two)...)
	number(t, "requests", s.Server.Run.Requests.Server, 1100)
	if g := gate(t, s, "S2"); g.Level != verdict.CertifiedLevel {
		t.Errorf("got %s (%s), want both replicas together to have all requests", g.Level, g.Measured)
	}
	near(t, "running on both", valueOf(s.Server.Run.InFlight.Running), (9*10+8)/11.0)
	s, _ = examine(t, twoStages(), all, one...)
	if g := gate(t, s, "S2"); g.Level != verdict.Failed {
		t.Errorf("one replica: got %s (%s), want the other's requests to be missed", g.Level, g.Measured)
	}
}
