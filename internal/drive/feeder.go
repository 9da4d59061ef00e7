package drive

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/drive/wire"
	"tare/internal/plan"
	"tare/internal/record"
)

// feeder walks the plan ahead of time and makes each request's bytes ready in the ring of the sender that will write it.
type feeder struct {
	clock *clock.Clock
	time  *timeline
	walk  *plan.Walker
	rings []*ring
	posts []wire.Post // one for each server
	bare  bool        // only the bodies are made ready
	rec   recorder

	converses  bool // sessions may have turns
	visits     host
	turnsEvery time.Duration // between two looks for turns to make

	timers bool // wait with Go's timers

	done atomic.Bool // nothing more will come
	turn int         // ring whose turn it is
	ids  plan.IDs    // of the requests walked; set when done
	all  bool        // they are the whole plan
	err  error       // why the plan could not be read to its end
}

// fill keeps the rings filled until the plan ends or ctx does. What is then left of the plan is recorded as not sent.
func (f *feeder) fill(ctx context.Context) {
	defer f.done.Store(true)
	sleep := f.sleeper()
	var r plan.Request
	stage, last := 0, time.Duration(0)
	for f.walk.Next(&r) {
		for ; stage < r.Stage; stage++ {
			f.time.walked(stage, last)
			last = 0
		}
		last = r.Due
		j := f.await(ctx, sleep, r.Stage)
		if ctx.Err() != nil {
			f.rest(&r)
			f.walk.SkipBodies(false) // visits may go on for a moment
			break
		}
		if j == nil {
			f.walk.EndStage()
			continue
		}
		f.ready(j, &r)
		f.serve()
	}
	for ; stage < len(f.time.stages); stage++ {
		f.time.walked(stage, last)
		last = 0
	}
	for f.serve(); f.visits.open > 0; f.serve() {
		sleep(f.clock.Now() + f.turnsEvery)
	}
	f.err = errors.Join(f.walk.Err(), f.walk.Close())
	f.ids, f.all = f.walk.IDs(), ctx.Err() == nil && f.err == nil
	f.rec.close()
}

// await finds room for a request of the stage. It returns nil when the stage's time is over, or ctx's.
func (f *feeder) await(ctx context.Context, sleep func(until time.Duration), stage int) *job {
	for ctx.Err() == nil {
		now := f.clock.Now()
		if f.time.expired(stage, now) {
			return nil
		}
		if j := f.room(f.time.stages[stage].Closed); j != nil {
			return j
		}
		f.serve()
		sleep(now + f.pause())
	}
	return nil
}

// pause is how long the feeder may sleep.
func (f *feeder) pause() time.Duration {
	if f.visits.open > 0 {
		return f.turnsEvery
	}
	return refillEvery
}

// refillEvery is the time between two looks for room in the rings.
const refillEvery = time.Millisecond

// sleeper gives the way the feeder waits. A thread that sleeps by itself spares the senders the switches between threads
// that a Go timer would cost.
func (f *feeder) sleeper() func(until time.Duration) {
	if f.timers {
		return f.clock.Sleep
	}
	return clock.LockBackground(f.clock).Sleep
}

// room gives the next slot: in turn for an open stage, wherever there is one for a closed stage.
func (f *feeder) room(anywhere bool) *job {
	tries := 1
	if anywhere {
		tries = len(f.rings)
	}
	for range tries {
		if j := f.rings[f.turn].slot(); j != nil {
			return j
		}
		if anywhere {
			f.turn = (f.turn + 1) % len(f.rings)
		}
	}
	return nil
}

func (f *feeder) ready(j *job, r *plan.Request) {
	server := record.ServerOf(r.Session, len(f.posts), f.converses)
	*j = job{
		index: r.Index, session: r.Session, stage: r.Stage, due: r.Due, think: r.Think, in: r.InputTokens, out: r.OutputTokens,
		class: r.Class, server: server, bytes: j.bytes, lines: j.lines,
	}
	if r.Turns > 1 {
		j.visit = f.visits.welcome(r, server)
		f.time.came(r.Stage, r.Turns-1)
	}
	f.write(j, r)
	j.made = f.clock.Now()
	if !f.time.byTime(r.Stage) {
		f.time.planned[r.Stage].Add(int64(r.Turns))
	}
	f.rings[f.turn].filled()
	f.turn = (f.turn + 1) % len(f.rings)
}

// write makes what is written for a job.
func (f *feeder) write(j *job, r *plan.Request) {
	if f.bare {
		j.bytes, j.lines = append(j.bytes[:0], r.Body...), append(j.lines[:0], r.Header...)
		return
	}
	j.bytes = f.posts[j.server].Append(j.bytes[:0], j.index, r.Header, r.Body)
}

// rest records r and all requests behind it as not sent. Requests of a stage that ends by time were never planned.
func (f *feeder) rest(r *plan.Request) {
	f.walk.SkipBodies(true)
	for ok := true; ok; ok = f.walk.Next(r) {
		if f.time.byTime(r.Stage) {
			f.walk.EndStage()
			continue
		}
		f.time.planned[r.Stage].Add(int64(r.Turns))
		j := job{index: r.Index, session: r.Session, stage: r.Stage, due: r.Due, in: r.InputTokens, out: r.OutputTokens, class: r.Class}
		x := j.notSent(f.time)
		f.rec.add(x, f.clock.Now())
		if r.Turns > 1 {
			of, turns := r.Origin(), r.Turns
			for turn := 1; turn < turns; turn++ {
				f.lose(of, turn, x.Due, record.CauseNotSent)
			}
		}
	}
}

// notSent is the record of a job that was never written.
func (j *job) notSent(t *timeline) *record.Exchange {
	at, ok := t.start(j.stage)
	if !ok {
		at = 0
	}
	return &record.Exchange{
		Index: j.index, Session: j.session, Turn: j.turn, Stage: j.stage, Due: at + j.due,
		Class: j.class, PlannedIn: j.in, PlannedOut: j.out, Outcome: record.NotSent, Cause: record.CauseNotSent,
	}
}
