package judge

import (
	"math"

	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// serverEvidence hands over what the gates on the servers look at.
func serverEvidence(s *ServerSide, client record.Client) *verdict.Server {
	if s == nil {
		return nil
	}
	e := &verdict.Server{Identified: s.Known, Changes: s.Changes, Stamped: client.KernelStamps}
	told := false
	for _, from := range s.Sources {
		e.Restarts += from.Resets
		if from.Kind == record.SourceExporter {
			continue
		}
		told = told || from.Dialect != ""
		if from.Dialect != "" && from.lost {
			e.Lost = append(e.Lost, from.URL)
		}
	}
	if !told && !s.Known && len(s.Changes) == 0 {
		return nil
	}
	if trip, known := s.Trip.Get(); known {
		e.RoundTripNs = trip * 1e6
	}
	e.ThrottledUs, _ = s.Throttled.Get()
	spans := s.spans()
	for _, t := range spans {
		e.Counts = append(e.Counts, t.compared()...)
		if n, known := t.Preemptions.Get(); known { // of the measured part where that is known, else of the run
			e.Preemptions, e.PreemptionsKnown = n, true
		}
	}
	e.Means, e.Why = means(spans)
	return e
}

// spans are the run and, where that is another, the measured part of it.
func (s *ServerSide) spans() []*BothSides {
	all := []*BothSides{&s.Run}
	if s.Total != nil {
		all = append(all, s.Total)
	}
	return all
}

func (t *BothSides) compared() (all []verdict.Compared) {
	for _, c := range []struct {
		what string
		of   Count
	}{{"requests", t.Requests}, {"prompt tokens", t.Prompt}, {"computed prompt tokens", t.Computed}, {"output tokens", t.Output}} {
		if _, ok := c.of.Holds(); !ok {
			continue
		}
		one := verdict.Compared{What: c.what, Span: t.Name, Server: c.of.Server.value, Least: c.of.Least.value, Most: math.Inf(1)}
		if most, closed := c.of.Most.Get(); closed {
			one.Most = most
		}
		all = append(all, one)
	}
	return all
}

// means are those of the measured part if the servers counted as many replies in it as came, else of the run; why says why there
// are none.
func means(spans []*BothSides) (all []verdict.Latency, why string) {
	why = "the server tells no mean of latencies"
	for i := len(spans) - 1; i >= 0; i-- {
		t := spans[i]
		if t.Reason != "" {
			why = t.Reason
			continue
		}
		for _, m := range []struct {
			metric string
			of     Means
		}{{"TTFT", t.TTFT}, {"E2E", t.E2E}} {
			n, counted := m.of.Counted.Get()
			if !counted || !m.of.Difference.defined {
				continue
			}
			if n != float64(m.of.N) {
				why = "the server's means are of other replies than those on record"
				continue
			}
			return []verdict.Latency{{Metric: m.metric, Span: t.Name, Client: m.of.Client.value * 1e6, Server: m.of.Server.value * 1e6}}, ""
		}
	}
	return nil, why
}
