package drive

import (
	"fmt"
	"time"

	"tare/internal/record"
)

// limits are the time-outs of a request by phase; 0 is none. The total counts from the first attempt's first write, the
// others from the attempt's own.
type limits struct{ header, firstToken, token, total time.Duration }

func limitsOf(cfg *Config) limits {
	return limits{header: cfg.HeaderTimeout, firstToken: cfg.FirstTokenTimeout, token: cfg.TokenTimeout, total: cfg.Timeout}
}

// least is the shortest of the time-outs: no request, whatever happens to it, is overdue sooner than that from now.
func (l *limits) least() time.Duration {
	least := l.total
	for _, d := range [...]time.Duration{l.header, l.firstToken, l.token} {
		if d > 0 {
			least = min(least, d)
		}
	}
	return least
}

// text is the evidence of a time-out.
func (l *limits) text(c record.Cause) string {
	switch c {
	case record.CauseTimeoutHeaders:
		return fmt.Sprintf("no end of the header within %v (header_timeout)", l.header)
	case record.CauseTimeoutFirstToken:
		return fmt.Sprintf("no token within %v (first_token_timeout)", l.firstToken)
	case record.CauseTimeoutBetweenTokens:
		return fmt.Sprintf("no further token within %v (token_timeout)", l.token)
	}
	return fmt.Sprintf("no end of the reply within %v (timeout)", l.total)
}

// patience is until when f may stay in the phase it is in, and what it has run into by then. Where two time-outs fall
// together it is that of the phase.
func (f *flight) patience(l *limits) (until time.Duration, cause record.Cause) {
	until = never
	apply := func(limit, since time.Duration, c record.Cause) {
		if limit > 0 && since+limit < until {
			until, cause = since+limit, c
		}
	}
	status := f.x.Status
	switch {
	case f.answer.Terminated:
	case f.spoken:
		apply(l.token, f.tokenAt, record.CauseTimeoutBetweenTokens)
	case status == 0:
		apply(l.header, f.sent, record.CauseTimeoutHeaders)
		apply(l.firstToken, f.sent, record.CauseTimeoutFirstToken)
	case status == 200:
		apply(l.firstToken, f.sent, record.CauseTimeoutFirstToken)
	}
	apply(l.total, f.began, record.CauseTimeoutTotal)
	return until, cause
}

// overdue says how f ends, which is out of patience.
func (f *flight) overdue(l *limits, at time.Duration) verdict {
	_, cause := f.patience(l)
	return verdict{cause: cause, at: at, err: l.text(cause)}
}

// linger limits the wait for the end of a reply whose end marker has come.
func (f *flight) linger(now time.Duration) {
	if f.answer.Terminated && !f.lingers {
		f.lingers, f.giveUp = true, now+lingerFor
	}
}
