package drive

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"tare/internal/record"
)

const (
	firstBackoff = 100 * time.Millisecond // before the second attempt, doubled before each further one
	mostBackoff  = 10 * time.Second
	mostAfter    = 24 * time.Hour // of a Retry-After
)

// retryAfter reads a Retry-After header: seconds, "250ms" or a date. It is 0 where there is none, or none that can be read.
func retryAfter(text string, now time.Time) time.Duration {
	if ms, found := strings.CutSuffix(text, "ms"); found {
		return afterUnits(ms, time.Millisecond)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), mostAfter)
	}
	return afterUnits(text, time.Second)
}

func afterUnits(text string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0
	}
	return time.Duration(min(n, float64(mostAfter/unit)) * float64(unit))
}

// backoff is the wait after so many attempts.
func backoff(attempts int) time.Duration {
	wait := firstBackoff
	for range attempts - 1 {
		wait = min(2*wait, mostBackoff)
	}
	return wait
}

// pause is how long a flight that has failed waits before it may be sent again; ok is false when that would not be the
// same request: part of a reply has come, or the server has refused it for what it is.
func (f *flight) pause() (wait time.Duration, ok bool) {
	x := &f.x
	switch {
	case x.Cause == record.CauseStale:
		return 0, true
	case x.Cause == record.CauseRateLimited && x.RetryAfter > 0:
		return x.RetryAfter, true
	case x.Cause == record.CauseRateLimited, x.Outcome == record.ConnectFailed:
		return backoff(x.Attempts), true
	case x.Outcome == record.Reset:
		_, headed := x.HeaderAt.Get()
		return backoff(x.Attempts), !headed
	}
	return 0, false
}

// retain keeps the bytes of a request, unless it has them.
func (f *flight) retain(request []byte) {
	if len(f.request) == 0 {
		f.request = append(f.request, request...)
	}
}

// keep retains a request that may have to be sent again.
func (s *shard) keep(f *flight, request []byte) {
	if s.run.cfg.Retries > 0 {
		f.retain(request)
	}
}

// conclude records a flight that has been closed as v says, unless it is to be sent again.
func (s *shard) conclude(f *flight, v verdict, now time.Duration) {
	if s.postpone(f, now) {
		return
	}
	s.vacate(f, v, now)
	s.settle(f)
}

// postpone puts a flight that has been closed aside to be sent again. It keeps its place among those in flight. It reports
// false when that was its last attempt, or the run or its time would be over by then.
func (s *shard) postpone(f *flight, now time.Duration) bool {
	if f.x.Attempts > s.run.cfg.Retries || s.run.stopped(now) {
		return false
	}
	wait, ok := f.pause()
	if _, written := f.x.FirstWrite.Get(); !ok || written && now+wait >= f.began+s.run.cfg.Timeout {
		return false
	}
	f.fresh = f.x.Cause == record.CauseStale
	s.tally.enter(f)
	s.again.add(now+wait, f.x.Index, f)
	return true
}

// resendDue gives send what has waited long enough; send reports false when f must wait on. Once the run is stopped nothing
// is sent again, and every failure is final.
func (s *shard) resendDue(now time.Duration, send func(f *flight, now time.Duration) bool) {
	for !s.again.empty() {
		at, f := s.again.first()
		stopped := s.run.stopped(now)
		if at > now && !stopped {
			break
		}
		s.again.done()
		switch {
		case stopped:
			s.withdraw(f, now)
		case !send(f, now):
			s.stuck = append(s.stuck, f)
		}
	}
	for _, f := range s.stuck {
		s.again.add(now, f.x.Index, f)
	}
	clear(s.stuck)
	s.stuck = s.stuck[:0]
}

// withdraw records a flight that will not be tried again, since the run has been stopped.
func (s *shard) withdraw(f *flight, now time.Duration) {
	if f.x.Attempts > 0 {
		s.vacate(f, verdict{at: now}, now)
		s.settle(f)
		return
	}
	if f.visit != nil {
		v := f.visit
		f.visit = nil
		s.giveBack(f.later)
		v.leave(f.x.Turn)
		s.loseBehind(v, f.x.Turn, now, record.CauseNotSent)
		s.farewell(v)
	}
	f.x.Issued, f.x.Outcome, f.x.Cause = record.Instant{}, record.NotSent, record.CauseNotSent
	s.rec.add(&f.x, now)
}

// refused ends an attempt for which no connection could be had.
func (s *shard) refused(f *flight, cause error) {
	now := s.clock.Now()
	if ownLimit(cause) {
		f.x.Delay = record.DelayFileLimit
	}
	f.try()
	v := verdict{cause: connectCause(cause), at: now, err: unreached{s.run.places[f.server].text, cause}.Error()}
	f.close(v)
	s.conclude(f, v, now)
}
