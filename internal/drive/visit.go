package drive

import (
	"sync/atomic"
	"time"

	"tare/internal/plan"
	"tare/internal/record"
)

// visit is a session of more than one turn while it lasts. The feeder makes it; from then on its sender alone changes it, until it is
// over. Of replies the feeder reads those that the turn it makes follows from, which change no more.
type visit struct {
	of      plan.Origin
	think   time.Duration // between its end and the next request in its place
	server  int
	turns   int
	graph   *plan.Graph
	waits   []int32         // of each turn: how many of those it comes after have not ended
	from    []time.Duration // of each turn: when the last of them has ended so far
	gone    []bool          // of each turn: it has ended, or will not be sent
	left    int             // turns that are not gone
	replies [][]byte        // texts of the replies so far by turn, where the plan needs them
	kept    [][]byte        // memory of replies

	own  later // for one of its turns at a time
	lent bool
}

// later is a later turn of a visit, while feeder and sender hand it to each other. Whoever has it may change it.
type later struct {
	job
	at     time.Duration // when it is due; until it is made, from when its pause counts
	unmade bool          // it could not be made
	over   bool          // its visit is over, and it is no turn
	lost   record.Cause  // why it will not be sent; CauseNone where it is to be made
	next   *later        // in a stack
}

// stack hands later turns from one side to the other, without locks.
type stack struct{ top atomic.Pointer[later] }

func (s *stack) push(t *later) {
	for {
		t.next = s.top.Load()
		if s.top.CompareAndSwap(t.next, t) {
			return
		}
	}
}

// all takes all of them, linked by next.
func (s *stack) all() *later {
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
	n := r.Turns
	v.of, v.think, v.server, v.turns, v.graph, v.left = r.Origin(), r.Think, server, n, r.Graph, n
	v.waits, v.from, v.gone, v.replies = cleared(v.waits, n), cleared(v.from, n), cleared(v.gone, n), cleared(v.replies, n)
	for turn := range n {
		v.waits[turn] = int32(len(r.Graph.After(turn)))
	}
	return v
}

// cleared is room for n values, all of them zero.
func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// goodbye keeps a visit that is over for another session.
func (h *host) goodbye(v *visit) {
	h.open--
	v.own.spare()
	for i, b := range v.kept {
		if cap(b) > keepBytes {
			v.kept[i] = nil
		}
	}
	h.spare = append(h.spare, v)
}

// spare makes t ready for another turn, with its memory unless that is large.
func (t *later) spare() {
	if cap(t.bytes) > keepBytes {
		t.bytes = nil
	}
	*t = later{job: job{bytes: t.bytes, lines: t.lines}}
}

// serve makes the turns that senders wait for, and records those that will not be sent.
func (f *feeder) serve() {
	for _, r := range f.rings {
		for t := r.asked.all(); t != nil; {
			next := t.next
			switch {
			case t.over:
				f.visits.goodbye(t.visit)
			case t.lost != record.CauseNone:
				f.lose(t.of, t.turn, t.at, t.lost)
			default:
				f.follow(t)
				r.made.push(t)
			}
			t = next
		}
	}
	if f.rec.n > 0 {
		f.rec.age(f.clock.Now())
	}
}

// follow makes a turn ready.
func (f *feeder) follow(t *later) {
	r := &f.visits.turn
	t.unmade = !f.walk.Follow(r, t.of, t.turn, t.visit.replies)
	t.index, t.in, t.out, t.class = r.Index, r.InputTokens, r.OutputTokens, r.Class
	start, _ := f.time.start(t.stage)
	t.at += r.Pause
	t.due = t.at - start
	f.write(&t.job, r)
	t.made = f.clock.Now()
}

// lose records a later turn as not sent.
func (f *feeder) lose(of plan.Origin, turn int, due time.Duration, cause record.Cause) {
	r := &f.visits.turn
	f.walk.Sketch(r, of, turn)
	if cause == record.CauseSessionEnded && f.time.byTime(of.Stage) {
		f.time.planned[of.Stage].Add(1)
	}
	f.rec.add(&record.Exchange{
		Index: r.Index, Session: of.Session, Turn: turn, Stage: of.Stage, Class: r.Class, Due: due, PlannedIn: r.InputTokens, PlannedOut: r.OutputTokens,
		Outcome: record.NotSent, Cause: cause,
	}, f.clock.Now())
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
	for t := s.ring.made.all(); t != nil; {
		next := t.next
		s.asking--
		if !t.unmade {
			s.turns.add(t.at, t.index, t)
		} else if stage, think := t.stage, t.think; s.forsake(t.visit, t.turn, t, now) { // the feeder's again, for another session
			s.over(stage, now+think, now)
		}
		t = next
	}
}

// lookAgain is when to look for turns that are being made.
func (s *shard) lookAgain(now time.Duration) time.Duration {
	if s.asking > 0 {
		return now + s.run.turnsEvery
	}
	return never
}

// setOut begins the session of a first turn, which fell due at a moment: what counts from there is made.
func (s *shard) setOut(v *visit, due time.Duration) {
	for _, turn := range v.graph.Starts() {
		s.ask(v, int(turn), due)
	}
}

// proceed goes on with the session of f, which has ended: to the turns that waited for it alone, due a pause after its end, or to the
// session's end. It reports whether the session goes on. Of a turn that has not completed, those that come after it will not be sent.
func (s *shard) proceed(f *flight, end verdict, now time.Duration) bool {
	v, turn := f.visit, f.x.Turn
	if v == nil {
		return false
	}
	f.visit = nil
	s.giveBack(f.later)
	v.leave(turn)
	switch {
	case f.x.Outcome != record.Completed:
		s.loseBehind(v, turn, now, record.CauseSessionEnded)
	case s.run.stopped(now):
		s.loseBehind(v, turn, now, record.CauseNotSent)
	default:
		at, ok := f.x.End.Get()
		if !ok || end.late {
			at = end.at
		}
		if f.answer.Keep {
			v.keep(turn, f.answer.Text)
		}
		s.goOn(v, turn, at)
	}
	return !s.farewell(v)
}

// goOn has the turns made that waited for the last of those they come after, which ended at a moment.
func (s *shard) goOn(v *visit, turn int, at time.Duration) {
	for _, next := range v.graph.Then(turn) {
		if int(next) >= v.turns {
			continue
		}
		v.from[next] = max(v.from[next], at)
		if v.waits[next]--; v.waits[next] == 0 && !v.gone[next] {
			s.ask(v, int(next), v.from[next])
		}
	}
}

// ask has a turn made, whose pause counts from a moment.
func (s *shard) ask(v *visit, turn int, from time.Duration) {
	t := s.borrow(v)
	t.visit, t.of, t.stage, t.session, t.turn, t.think, t.server, t.at = v, v.of, v.of.Stage, v.of.Session, turn, v.think, v.server, from
	t.later = t
	s.asking++
	s.ring.asked.push(t)
}

// borrow finds memory for a later turn.
func (s *shard) borrow(v *visit) *later {
	if !v.lent {
		v.lent = true
		return &v.own
	}
	if n := len(s.idle); n > 0 {
		t := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return t
	}
	return new(later)
}

// giveBack is for a later turn that has ended, or will not be sent; nil for a first one.
func (s *shard) giveBack(t *later) {
	if t == nil {
		return
	}
	v := t.visit
	t.spare()
	if t == &v.own {
		v.lent = false
	} else {
		s.idle = append(s.idle, t)
	}
}

// keep takes down the text of the reply to a turn.
func (v *visit) keep(turn int, text []byte) {
	for len(v.kept) <= turn {
		v.kept = append(v.kept, nil)
	}
	v.kept[turn] = append(v.kept[turn][:0], text...)
	v.replies[turn] = v.kept[turn]
}

// leave takes note that a turn has ended, or will not be sent.
func (v *visit) leave(turn int) {
	v.gone[turn] = true
	v.left--
}

// forsake gives up a turn that will not be sent, and with it those that come after it; t is nil for a first turn, which its sender
// records itself. It reports whether the session is over.
func (s *shard) forsake(v *visit, turn int, t *later, now time.Duration) bool {
	if turn > 0 {
		s.giveBack(t)
		s.lose(v, turn, now, record.CauseNotSent)
		s.loseBehind(v, turn, now, record.CauseNotSent)
		return s.farewell(v)
	}
	v.leave(0)
	for next := 1; next < v.turns; next++ {
		s.lose(v, next, now, record.CauseNotSent)
	}
	return s.farewell(v)
}

// loseBehind gives up the turns that come after one, and those that come after these.
func (s *shard) loseBehind(v *visit, turn int, now time.Duration, cause record.Cause) {
	for turns := []int32{int32(turn)}; len(turns) > 0; {
		turn, turns = int(turns[len(turns)-1]), turns[:len(turns)-1]
		for _, next := range v.graph.Then(turn) {
			if int(next) < v.turns && !v.gone[next] {
				s.lose(v, int(next), now, cause)
				turns = append(turns, next)
			}
		}
	}
}

// lose has a turn recorded that will not be sent. Where the time of a stage that is as long as its replies allow is over, it was never
// planned; nor was it when the run is stopped.
func (s *shard) lose(v *visit, turn int, now time.Duration, cause record.Cause) {
	v.leave(turn)
	s.run.time.fallen(v.of.Stage, 1, now)
	if s.run.time.byTime(v.of.Stage) && (cause == record.CauseNotSent || s.run.time.expired(v.of.Stage, now)) {
		return
	}
	t := &later{at: now, lost: cause}
	t.of, t.turn = v.of, turn
	s.ring.asked.push(t)
}

// farewell gives a visit back of which no turn is left, and reports whether it has.
func (s *shard) farewell(v *visit) bool {
	if v.left > 0 {
		return false
	}
	v.own.visit, v.own.over = v, true
	s.ring.asked.push(&v.own)
	return true
}
