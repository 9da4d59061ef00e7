package verdict

import (
	"fmt"
	"math"
	"strings"
)

// Server is what the servers counted themselves, next to what the records say.
type Server struct {
	Identified bool     // they said what they are, before and after
	Changes    []string // of that
	Restarts   int      // their counters began anew
	Lost       []string // of several, those that told no more

	Counts []Compared // of requests and tokens
	Means  []Latency  // of the narrowest span in which both sides have the same requests; TTFT, or E2E where there is none
	Why    string     // why there are no means

	RoundTripNs float64 // 0 when unknown
	Stamped     bool    // arrivals are the kernel's, and no delay of the client's is in them

	Preemptions, ThrottledUs float64
	PreemptionsKnown         bool
}

// Compared is a number by the servers and the bounds that the records set to it. Of a closed one Least is Most.
type Compared struct {
	What, Span  string
	Server      float64
	Least, Most float64 // Most is infinite where replies do not say
}

// Latency is a mean by both sides, ns.
type Latency struct {
	Metric, Span   string
	Client, Server float64
}

var explainLimits = budget{0.02, 2e6} // of the client's mean, and at least ns

// unasked is the finding where no server told anything.
func unasked(e *Evidence) (f []finding, missing bool) {
	if e.Server != nil {
		return nil, false
	}
	return mute("no server was looked at"), true
}

func mute(why string) []finding {
	return []finding{{level: Unobservable, advisory: true, untold: true, measured: why, hint: "server_metrics.urls names the page that has it, if there is one"}}
}

func identity(e *Evidence) []finding {
	if f, missing := unasked(e); missing {
		return f
	}
	s := e.Server
	switch {
	case s.Restarts > 0:
		return []finding{{level: Failed, measured: "a server began anew during the run: its counters went back"}}
	case len(s.Changes) > 0:
		return []finding{{level: Failed, measured: strings.Join(s.Changes, "; ")}}
	case !s.Identified:
		return mute("the server does not say what it is")
	}
	return []finding{{level: CertifiedLevel, measured: "the same before and after"}}
}

func reconciled(e *Evidence) (all []finding) {
	if f, missing := unasked(e); missing {
		return f
	}
	var exact, within []string
	for _, c := range e.Server.Counts {
		switch {
		case c.Server < c.Least || c.Server > c.Most:
			all = append(all, finding{stage: c.Span, level: Failed, strain: c.off(), measured: c.text()})
		case c.Least == c.Most:
			exact = append(exact, fmt.Sprintf("%.0f %s", c.Server, c.What))
		default:
			within = append(within, c.text())
		}
	}
	switch {
	case len(all) > 0:
		return all
	case len(exact) > 0:
		return []finding{{level: CertifiedLevel, measured: "the same by both sides: " + strings.Join(exact, ", ")}}
	case len(within) > 0:
		return []finding{{level: ValidLevel, measured: "within what the records leave open: " + strings.Join(within, ", ")}}
	}
	return mute("the server counts neither requests nor tokens, or was not looked at to the end")
}

// off is how far the server's number is outside of its bounds.
func (c Compared) off() float64 { return math.Max(c.Least-c.Server, c.Server-c.Most) }

func (c Compared) text() string {
	ours := fmt.Sprintf("%.0f", c.Least)
	switch {
	case math.IsInf(c.Most, 1):
		ours += " or more"
	case c.Most != c.Least:
		ours += fmt.Sprintf(" to %.0f", c.Most)
	}
	return fmt.Sprintf("%.0f %s by the server, %s by the records", c.Server, c.What, ours)
}

// explained holds the difference of means against what the network takes. With the kernel's stamps none of the rest can be the
// client's: then it says where the server's own clock begins, and condemns nobody. A reply cannot come before it was made.
func explained(e *Evidence) (all []finding) {
	if f, missing := unasked(e); missing {
		return f
	}
	s := e.Server
	for _, m := range s.Means {
		off := m.Client - m.Server - s.RoundTripNs
		limit := explainLimits.of(m.Client)
		f := finding{stage: m.Span, level: CertifiedLevel, strain: math.Abs(off) / limit,
			measured: fmt.Sprintf("mean %s %s here, %s by the server, round trip %s: %s left (limit %s)", m.Metric, span(m.Client), span(m.Server), span(s.RoundTripNs), span(off), span(limit))}
		switch {
		case math.Abs(off) <= limit:
		case off < 0:
			f.level, f.blames, f.hint = Failed, InvalidStats, "the server counted other requests than these, or its clock is not to be trusted"
		default:
			f.level, f.advisory = Failed, s.Stamped
			if s.Stamped {
				f.hint = "by the kernel's stamps it is not the client: the server's front end, before its own clock begins, or a proxy"
			}
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return mute(s.Why)
	}
	return all
}

func steadyServer(e *Evidence) []finding {
	if f, missing := unasked(e); missing {
		return f
	}
	s := e.Server
	var odd []string
	note := func(when bool, format string, args ...any) {
		if when {
			odd = append(odd, fmt.Sprintf(format, args...))
		}
	}
	note(s.Preemptions > 0, "%.0f preemptions", s.Preemptions)
	note(s.Restarts > 0, "%d restarts", s.Restarts)
	note(len(s.Lost) > 0, "no more told by %s", strings.Join(s.Lost, ", "))
	note(s.ThrottledUs > 0, "clocks held down for %s", span(s.ThrottledUs*1e3))
	switch {
	case len(odd) > 0:
		return []finding{{level: Failed, measured: strings.Join(odd, ", ")}}
	case !s.PreemptionsKnown:
		return mute("the server does not tell of preemptions")
	}
	return []finding{{level: CertifiedLevel, measured: "no preemption, no restart"}}
}

// serverRules are the gates on what the servers tell.
func serverRules() []rule {
	return []rule{
		{"S1", "identity", "what the servers say they are is the same before and after the run, and none began anew",
			"nobody may change or restart the server during a run", InvalidServer, identity},
		{"S2", "counts", "requests and tokens by the servers' metrics = those of the records; where requests are in flight at an edge, within what that leaves open",
			"somebody else used the server, something in between repeats or answers requests, or a replica was not looked at (server_metrics.urls)", InvalidServer, reconciled},
		{"S3", "means", "mean TTFT (E2E where there is none) less the servers' own, less a round trip ≤ " + explainLimits.spell(ms),
			"something between the client's socket and the server's clock takes time: the client, a proxy, the server's front end", InvalidClient, explained},
		{"S4", "steady server", "no preemption, no restart, no replica lost, no throttled GPU", "the latencies hold the server's own upsets: a lower rate, more memory for its cache", "", steadyServer},
	}
}
