package drive

import "time"

// Progress is how a run stands while it goes on.
type Progress struct {
	At       time.Duration // since the start of the run
	End      time.Duration // when the last stage is expected to end; 0 when that depends on replies
	Stage    string        // the stage under way
	Planned  int64         // requests made ready so far
	Sent     int64
	InFlight int64
	Done     int64 // completed
	Failed   int64 // ended otherwise

	// Of the time since the last report:
	RatePerS   float64 // requests sent
	TokensPerS float64 // token events of requests that ended
	SlipP99    time.Duration
	LagP99     time.Duration
}

const watchEvery = 250 * time.Millisecond

// progress sums the senders' published counts up; last holds the counts of the call before.
func (r *run) progress(last *tally) Progress {
	var t tally
	for i := range r.windows {
		r.windows[i].look(&t)
	}
	now := r.clock.Now()
	p := Progress{At: now, Sent: t.sent, InFlight: t.inFlight, Done: t.done, Failed: t.failed}
	p.End = r.expectedEnd()
	for i := range r.time.stages {
		p.Planned += r.time.planned[i].Load()
		if at, ok := r.time.start(i); ok && at <= now {
			p.Stage = r.time.stages[i].Name
		}
	}
	p.RatePerS = float64(t.sent-last.sent) / watchEvery.Seconds()
	p.TokensPerS = float64(t.tokens-last.tokens) / watchEvery.Seconds()
	p.SlipP99 = t.slip.since(&last.slip).quantile(0.99)
	p.LagP99 = t.lag.since(&last.lag).quantile(0.99)
	*last = t
	return p
}

func (r *run) expectedEnd() time.Duration {
	if over := r.time.over.Load(); over != notYet {
		return time.Duration(over)
	}
	var sum time.Duration
	for _, s := range r.time.stages {
		if s.Duration == 0 {
			return 0
		}
		sum += s.Gap + s.Duration
	}
	return sum
}

// since is what came into s after it was as earlier says.
func (s *spread) since(earlier *spread) *spread {
	d := *s
	for i := range d {
		d[i] -= earlier[i]
	}
	return &d
}
