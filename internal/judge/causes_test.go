package judge_test

import (
	"testing"
	"time"

	"tare/internal/record"
)

// troubled is the run with four kinds of failures among its measured requests, some of them sent again.
func troubled(x *record.Exchange) *record.Exchange {
	switch {
	case x.Index < 100:
	case x.Index%100 < 30:
		fail(x, record.HTTPError, "busy")
		x.Status, x.Cause, x.RetryAfter = 429, record.CauseRateLimited, time.Duration(x.Index%100)*time.Millisecond
	case x.Index%100 < 37:
		fail(x, record.HTTPError, "redirect to http://elsewhere/")
		x.Status, x.Cause = 307, record.CauseRedirect
	case x.Index%100 == 40:
		fail(x, record.NotSent, "")
		x.Cause = record.CauseNotSent
	case x.Index%100 == 41:
		x.Attempts = 3
	case x.Index%100 == 42:
		fail(x, record.HTTPError, "busy")
		x.Status, x.Cause, x.Attempts = 429, record.CauseRateLimited, 2
	}
	return x
}

func TestCausesAddUpToTheirOutcomes(t *testing.T) {
	s := summarize(t, twoStages(), requests(troubled))
	sums := map[string]int64{}
	for _, c := range s.Total.Causes {
		sums[c.Outcome] += c.Requests
	}
	for _, o := range record.Outcomes {
		if want := *s.Total.Outcomes.Of(o); o != record.Completed && sums[o.String()] != want {
			t.Errorf("%v: causes of %d requests, want %d", o, sums[o.String()], want)
		}
	}
	if len(s.Total.Causes) != 3 {
		t.Fatalf("got causes %+v, want rate_limited, redirect and not_sent", s.Total.Causes)
	}
	limited, redirect := s.Total.Causes[0], s.Total.Causes[1]
	if limited.Cause != "rate_limited" || limited.Requests != 310 || limited.Status != 429 || limited.Example != "busy" {
		t.Errorf("got %+v, want 310 rate_limited of status 429", limited)
	}
	number(t, "longest Retry-After", limited.RetryAfter, 29)
	if redirect.Cause != "redirect" || redirect.Requests != 70 || redirect.Example != "redirect to http://elsewhere/" {
		t.Errorf("got %+v, want 70 redirects", redirect)
	}
}

func TestWhatWasSentAgainIsCounted(t *testing.T) {
	s := summarize(t, twoStages(), requests(troubled))
	if r := s.Total.Resent; r.Requests != 20 || r.Attempts != 30 || r.Completed != 10 {
		t.Errorf("got %+v, want 20 requests, 30 further attempts, 10 completed", r)
	}
}

func TestConnectionsMadeInTheRunAreSummed(t *testing.T) {
	m := twoStages()
	m.Loops = []record.Loop{{WallNs: 10e9, CPUNs: 1e9, Dials: 40, DialsInRun: 8}, {WallNs: 10e9, CPUNs: 1e9, Dials: 33, DialsInRun: 1}}
	number(t, "dials in the run", summarize(t, m, requests(nil)).Run.Dials, 9)
}
