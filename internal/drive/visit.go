package drive

import (
	"sync/atomic"
	"time"

	"tare/internal/plan"
	"tare/internal/record"
)

// visit is a session of more than one turn while it lasts. Feeder and sender hand it to each other, and whoever has it may
// change it. Its job is the next turn, or the one under way; that of the first turn is in the ring.
type visit struct {
	job
	at      time.Duration // when the turn is due
	turns   int
	replies [][]byte // texts of the replies so far, where the plan needs them
	kept    [][]byte // memory of replies

	unmade bool         // the turn could not be made
	over   bool         // no further turn is to be made
	lost   record.Cause // why those from turn on will not be sent; CauseNone where they were never planned, or there are none
	next   *visit       // in a stack
}

// stack hands visits from one side to the other, without locks.
type stack struct{ top atomic.Pointer[visit] }

func (s *stack) push(v *visit) {
	for {
		v.next = s.top.Load()
		if s.top.CompareAndSwap(v.next, v) {
			return
		}
	}
}

// all takes all visits, linked by next.
func (s *stack) all() *visit {
	if s.top.Load() == nil {
		return nil
	}
	return s.top.Swap(nil)
}

// host makes the turns of visits, on the feeder's thread.
type host struct {
	open  int // visits
	spare []*visit
	turn  plan.Request
}

// welcome begins the visit of a session whose first turn is r.
func (h *host) welcome(r *plan.Request, server int) *visit {
	var v *visit
	if n := len(h.spare); n > 0 {
		v, h.spare = h.spare[n-1], h.spare[:n-1]
	} else {
		v = &visit{}
	}
	h.open++
	v.job = job{session: r.Session, stage: r.Stage, think: r.Think, server: server, bytes: v.bytes, lines: v.lines}
	v.visit, v.turns, v.replies, v.over, v.lost = v, r.Turns, v.replies[:0], false, record.CauseNone
	return v
}

// goodbye keeps a visit that is over for another session.
func (h *host) goodbye(v *visit) {
	h.open--
	if cap(v.bytes) > keepBytes {
		v.bytes = nil
	}
	for i, b := range v.kept {
		if cap(b) > keepBytes {
			v.kept[i] = nil
		}
	}
	h.spare = append(h.spare, v)
}

// serve makes the turns that senders wait for, and records those that will not be sent.
func (f *feeder) serve() {
	for _, r := range f.rings {
		for v := r.asked.all(); v != nil; {
			next := v.next
			if v.over {
				f.bid(v)
			} else {
				f.follow(v)
				r.made.push(v)
			}
			v = next
		}
	}
	if f.rec.n > 0 {
		f.rec.age(f.clock.Now())
	}
}

// follow makes a visit's turn ready.
func (f *feeder) follow(v *visit) {
	r := &f.visits.turn
	v.unmade = !f.walk.Follow(r, v.stage, v.session, v.turn, v.replies)
	v.index, v.pause, v.in, v.out, v.class = r.Index, r.Pause, r.InputTokens, r.OutputTokens, r.Class
	f.write(&v.job, r)
	v.made = f.clock.Now()
}

// bid ends a visit.
func (f *feeder) bid(v *visit) {
	if v.lost != record.CauseNone {
		f.lose(v.stage, v.session, v.turn, v.turns, v.at, v.lost)
	}
	f.visits.goodbye(v)
}

// lose records the turns of a session from one on as not sent.
func (f *feeder) lose(stage int, session int64, from, turns int, due time.Duration, cause record.Cause) {
	r := &f.visits.turn
	for turn := from; turn < turns; turn++ {
		f.walk.Sketch(r, stage, session, turn)
		if cause == record.CauseSessionEnded && f.time.byTime(stage) {
			f.time.planned[stage].Add(1)
		}
		f.rec.add(&record.Exchange{
			Index: r.Index, Session: session, Turn: turn, Stage: stage, Class: r.Class, Due: due, PlannedIn: r.InputTokens, PlannedOut: r.OutputTokens,
			Outcome: record.NotSent, Cause: cause,
		}, f.clock.Now())
	}
}

// madeEvery is the time between two looks for turns that were asked for, and for those that were made. A turn that follows a
// reply at once is late by as much, and by the making.
const madeEvery = 100 * time.Microsecond

// turnsEvery is the same where pauses are so long that few turns are late even so.
func turnsEvery(p *plan.Plan) time.Duration {
	if p.Pause() >= time.Second {
		return refillEvery
	}
	return madeEvery
}

// collect takes the turns that have been made into the agenda.
func (s *shard) collect(now time.Duration) {
	for v := s.ring.made.all(); v != nil; {
		next := v.next
		s.asking--
		if v.unmade {
			stage, at := v.stage, now+v.think
			s.leave(v, v.turn, now, record.CauseNotSent)
			s.over(stage, at, now)
		} else {
			s.turns.add(v.at, v.index, v)
		}
		v = next
	}
}

// lookAgain is when to look for turns that are being made.
func (s *shard) lookAgain(now time.Duration) time.Duration {
	if s.asking > 0 {
		return now + s.run.turnsEvery
	}
	return never
}

// proceed goes on with the session of f, which has ended: to its next turn, due a think time after the end of the reply, or to
// its end. It reports whether there is a next turn.
func (s *shard) proceed(f *flight, v verdict, now time.Duration) bool {
	visit := f.visit
	f.visit = nil
	switch next := f.x.Turn + 1; {
	case visit == nil:
		return false
	case f.x.Outcome != record.Completed:
		s.leave(visit, next, now, record.CauseSessionEnded)
		return false
	case next == visit.turns:
		s.leave(visit, next, now, record.CauseNone)
		return false
	case s.run.stopped(now):
		s.leave(visit, next, now, record.CauseNotSent)
		return false
	}
	s.ask(visit, f, v)
	return true
}

// ask has the turn behind that of f made.
func (s *shard) ask(v *visit, f *flight, end verdict) {
	at, ok := f.x.End.Get()
	if !ok || end.late {
		at = end.at
	}
	start, _ := s.run.time.start(v.stage)
	v.turn = f.x.Turn + 1
	v.at = at + f.toNext
	v.due = v.at - start
	if f.answer.Keep {
		v.keep(f.answer.Text)
	}
	s.asking++
	s.ring.asked.push(v)
}

// keep takes down the text of a reply.
func (v *visit) keep(text []byte) {
	n := len(v.replies)
	if n == len(v.kept) {
		v.kept = append(v.kept, nil)
	}
	v.kept[n] = append(v.kept[n][:0], text...)
	v.replies = v.kept[:n+1]
}

// leave ends a visit, of which the turns from one on, at least 1, will not be sent. Where the time of a stage that is as long as
// its replies allow is over, they were never planned; nor were they when the run is stopped.
func (s *shard) leave(v *visit, from int, now time.Duration, cause record.Cause) {
	if s.run.time.byTime(v.stage) && (cause == record.CauseNotSent || s.run.time.expired(v.stage, now)) {
		cause = record.CauseNone
	}
	if from < v.turns {
		s.run.time.fallen(v.stage, v.turns-from, now)
	}
	v.turn, v.at, v.over, v.lost = from, now, true, cause
	s.ring.asked.push(v)
}
