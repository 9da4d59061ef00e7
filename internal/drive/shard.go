package drive

import (
	"errors"
	"math"
	"syscall"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/drive/dialect"
	"tare/internal/record"
)

// shard is one sender's slice of the plan and the account of what became of it. It is not safe for concurrent use.
type shard struct {
	run   *run
	id    int
	clock *clock.Clock
	ring  *ring
	rec   recorder

	freed      agenda[struct{}] // moments at which a closed stage's next requests are due
	freedStage int
	blocked    record.Delay  // what held the first job up last
	blockedAt  time.Duration // and when

	keeps []keeping // by server

	turns  agenda[*later]  // later turns that are ready
	idle   []*later        // memory of others
	asking int             // later turns that are being made
	again  agenda[*flight] // that wait to be sent again
	stuck  []*flight       // memory of those that must wait on

	tally  tally
	duty   duty
	gauge  gauge
	window *window
	warmed int64         // connections dialled before the start
	step   time.Duration // largest step of the calendar clock
	usage  record.Loop   // of the whole run, once it is over
	spare  []*flight
	reader dialect.Reader // shared by all flights; nil where each needs its own
}

func newShard(r *run, id int) shard {
	return shard{
		run: r, id: id, clock: r.clock, ring: r.rings[id], rec: recorder{to: r.writer},
		freedStage: -1, blockedAt: math.MinInt64, window: &r.windows[id], keeps: make([]keeping, len(r.places)),
		duty: duty{slept: awake}, gauge: make(gauge, len(r.time.stages)),
	}
}

const (
	longestWait = time.Millisecond       // between two looks at what else there is to do
	pacerReach  = 100 * time.Microsecond // lateness that needs no cause
	turnDials   = 2                      // in one look at the schedule: more would starve the replies that free connections
	warmDials   = 64                     // at once, before the start
	houseEvery  = 100 * time.Millisecond // between rounds of housekeeping
	lingerFor   = time.Second            // for the end of a reply behind its end marker
)

// never is when to look at the schedule again while what comes next has no known time: at the next turn.
const never = time.Duration(math.MaxInt64)

// next is the first job of the slice and when it is due. It disposes of jobs whose time to be sent is over. j is nil while
// there is none ready; known is false while its due time depends on replies.
func (s *shard) next(now time.Duration) (j *job, due time.Duration, known bool) {
	s.collect(now)
	for {
		if at, t := s.turns.first(); t != nil && s.ended(&t.job, now) {
			continue
		} else if j = s.ring.first(); j == nil {
			if t == nil {
				return nil, 0, false
			}
			return &t.job, at, true
		} else if s.ended(j, now) {
			continue
		} else if due, known = s.due(j); t != nil && (!known || at < due) {
			return &t.job, at, true
		}
		return j, due, known
	}
}

// ended disposes of a job whose time to be sent is over.
func (s *shard) ended(j *job, now time.Duration) bool {
	switch {
	case s.run.stopped(now):
		s.drop(j, now)
	case s.run.time.expired(j.stage, now):
		s.strike(j, now)
	default:
		return false
	}
	return true
}

// taken gives up the job that next has returned, the turn of that number. Its session may have gone on to the feeder by then.
func (s *shard) taken(turn int) {
	if turn > 0 {
		s.turns.done()
	} else {
		s.ring.taken()
	}
}

// strike gives up a job that will not be sent, and its session.
func (s *shard) strike(j *job, now time.Duration) {
	visit, turn, later := j.visit, j.turn, j.later
	s.taken(turn)
	if visit != nil {
		s.forsake(visit, turn, later, now)
	}
}

func (s *shard) due(j *job) (at time.Duration, known bool) {
	start, ok := s.run.time.start(j.stage)
	if !ok {
		s.run.time.advance(s.clock.Now())
		return 0, false
	}
	stage := &s.run.time.stages[j.stage]
	if !stage.Closed {
		return start + j.due, true
	}
	if s.freedStage != j.stage {
		s.freedStage, s.freed = j.stage, agenda[struct{}]{}
		begin := s.run.plan.Begins(j.stage)
		for i := range s.share(stage.Concurrency) {
			s.free(start + begin(s.id+i*s.run.loops))
		}
	}
	at, _ = s.freed.first()
	return at, !s.freed.empty()
}

// full reports that the declared in-flight limit holds j back; coming requests have a connection dialled for them.
func (s *shard) full(j *job, now time.Duration, coming int) bool {
	limit := s.run.time.stages[j.stage].MaxInFlight
	if limit == 0 || s.tally.inFlight+int64(coming) < int64(s.share(limit)) {
		return false
	}
	s.blocked, s.blockedAt = record.DelayInFlightCap, now
	return true
}

// hold takes the first job, which is due, off the ring until there is a connection for it, and occupies its place.
func (s *shard) hold(j *job, due, now time.Duration) *flight {
	f := s.board(j, due, now, s.cause(j, due, now))
	f.retain(j.bytes)
	s.occupy(j, due)
	s.taken(j.turn)
	return f
}

// unconnected takes note that no connection was there for the first job. Of those open some may be resting. It reports
// whether another may be opened.
func (s *shard) unconnected(now time.Duration, open, resting int) bool {
	s.blocked, s.blockedAt = record.DelayNoConnection, now
	if open < s.run.linesPerLoop {
		return true
	}
	if resting == 0 {
		s.blocked = record.DelayFileLimit
	}
	return false
}

// share is this slice's part of a whole n.
func (s *shard) share(n int) int { return share(n, s.id, s.run.loops) }

// occupy takes a place of a closed stage for j, which is about to be sent. A later turn has that of its session.
func (s *shard) occupy(j *job, due time.Duration) {
	switch {
	case j.turn > 0:
		s.run.time.fallen(j.stage, 1, due)
	case s.run.time.stages[j.stage].Closed:
		s.freed.done()
	}
	if s.run.time.byTime(j.stage) {
		s.run.time.planned[j.stage].Add(1)
	}
	if j.turn == 0 && j.visit != nil {
		s.setOut(j.visit, due)
	}
}

// free makes a place's next request due at a moment. With think times a reply that came later may be followed sooner.
func (s *shard) free(at time.Duration) { s.freed.add(at, 0, struct{}{}) }

// vacate has the next turn of f's session made. After the last one it gives a place of a closed stage free, its next request due
// when the think time after the reply is over, and opens the next stage when this was the last session of its own.
func (s *shard) vacate(f *flight, v verdict, now time.Duration) {
	if v.late {
		v.at = now
	}
	if !s.proceed(f, v, now) {
		s.over(f.x.Stage, v.at+f.think, now)
	}
}

// over takes note of the end of a session of a stage, whose place is free from a moment on.
func (s *shard) over(stage int, at, now time.Duration) {
	if stage == s.freedStage {
		s.free(at)
	}
	s.run.time.ended(stage, now)
}

// cause says why a request that is taken up now was not at its due time.
func (s *shard) cause(j *job, due, now time.Duration) record.Delay {
	switch {
	case s.blockedAt >= due:
		return s.blocked
	case now-due <= pacerReach:
		return record.DelayNone
	case j.made > due:
		return record.DelayNotPrepared
	}
	return record.DelayBusy
}

// drop records a job as not sent; the feeder does so for later turns.
func (s *shard) drop(j *job, now time.Duration) {
	if j.turn == 0 && !s.run.time.byTime(j.stage) {
		x := j.notSent(s.run.time)
		if s.blockedAt >= x.Due {
			x.Delay = s.blocked
		}
		s.rec.add(x, now)
	}
	s.strike(j, now)
}

// closedEarly is how many kept connections servers have closed soon after a reply.
func (s *shard) closedEarly() (n int64) {
	for i := range s.keeps {
		n += s.keeps[i].closed
	}
	return n
}

// ownLimit reports that a connection failed for want of something on this machine.
func ownLimit(err error) bool {
	for _, want := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// settle records a flight that has been closed.
func (s *shard) settle(f *flight) {
	s.tally.leave(f)
	s.rec.add(&f.x, s.clock.Now())
	s.tally.ended(&f.x)
	s.tally.odd.note(f)
	s.land(f)
	if f.recycle() {
		s.spare = append(s.spare, f)
	}
}

// land takes what f kept of its own work, and takes it off the gauge.
func (s *shard) land(f *flight) {
	s.duty.Reading.Merge(&f.reading)
	s.duty.Lag.Merge(&f.lag)
	s.duty.Merged += f.merged
	if _, written := f.x.FirstWrite.Get(); written {
		end, _ := f.x.End.Get()
		s.gauge.leave(f.x.Stage, end)
	}
}

// board begins the flight of a job: one that was kept for use again, or a new one.
func (s *shard) board(j *job, due, issued time.Duration, delay record.Delay) *flight {
	var f *flight
	if n := len(s.spare); n > 0 {
		f, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		f = newFlight(s.run, s.reader)
		if f.reader == nil {
			f.reader = s.run.dialect.NewReader()
		}
	}
	f.begin(j, due, issued, delay)
	return f
}

// wrote takes note of the first write of an attempt, on a connection that was there at ready.
func (s *shard) wrote(f *flight, ready, first time.Duration) {
	s.sending(f, ready)
	s.wroteAt(f, first)
}

// sending takes note of an attempt that is about to be written, on a connection that was there at ready.
func (s *shard) sending(f *flight, ready time.Duration) {
	s.tally.enter(f)
	if _, again := f.x.ConnReady.Get(); !again {
		f.x.ConnReady = record.At(ready)
		s.tally.sent++
	}
}

// wroteAt takes note of the moment of that write.
func (s *shard) wroteAt(f *flight, first time.Duration) {
	if _, again := f.x.FirstWrite.Get(); !again {
		f.x.FirstWrite = record.At(first)
		s.tally.slip.add(first - f.x.Due)
		s.gauge.enter(f.x.Stage, first)
	}
}

// idleHands reports that no more jobs will come.
func (s *shard) idleHands() bool { return s.run.feeder.done.Load() && s.ring.first() == nil }

// settleUp hands the last records over and closes the account, in which u is what the engine knows of itself.
func (s *shard) settleUp(u record.Loop) {
	s.rec.close()
	s.window.publish(&s.tally)
	t := &s.tally
	u.Sent, u.Reads, u.Events, u.Dials, u.DialsInRun, u.MaxInFlight = t.sent, t.reads, t.events, t.dials, t.dials-s.warmed, t.maxInFlight
	u.Mistyped, u.Packed, u.NotStreamed, u.ClosedEarly = t.odd.mistyped, t.odd.packed, t.odd.notStreamed, s.closedEarly()
	u.Echoed, u.Foreign = t.odd.echoed, t.odd.foreign
	u.Work, u.InFlightNs = s.duty.whole(), s.gauge.total()
	s.usage = u
}

func (s *shard) account() record.Loop     { return s.usage }
func (s *shard) clockStep() time.Duration { return s.step }
