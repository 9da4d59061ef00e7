package main

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"tare/internal/judge"
	"tare/internal/record"
)

// The load: a warm-up and a stage of Poisson arrivals, at a rate that each run draws.
const (
	warmup      = 5 * time.Second
	window      = 30 * time.Second
	tokens      = 32
	leastRate   = 20.0 // requests per second
	mostRate    = 100.0
	sendService = 25 * time.Microsecond
	readService = 8 * time.Microsecond
)

// trouble is what is wrong with a client on purpose.
type trouble struct {
	send, read float64       // share of the sends, of the reads, that are late
	late       time.Duration // by so much
	once       bool          // one send only
	service    float64       // how much longer each service is; 0 for as long as it is
	leave      float64       // share of the requests that are never sent
	slow       float64       // requests set out so much later, each more than the one before: offsets are stretched by it
}

// item is something that a loop has to do: send a request, or read an event.
type item struct {
	at    time.Duration // when it is there
	x     *record.Exchange
	event int // -1 for the send
}

// agenda is a heap by time.
type agenda []item

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(item)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// client is an event loop with a thread of its own: it does one thing after another. What it wakes up for is late by as much as was measured;
// that delays nothing behind it, since what was measured has the delays of all that was behind something in it.
type client struct {
	rng    *rand.Rand
	late   lateness
	server server
	worse  trouble

	todo    agenda
	free    time.Duration // when it is done with what it does
	replay  time.Duration // likewise, of a loop that always needs as long to wake up as in the mean
	last    time.Duration // latest stamp
	step    int64
	loop    record.Loop
	records []*record.Exchange
	spared  bool // the one late send was made
}

// simulate makes a run and judges it.
func simulate(seed uint64, s server, late lateness, worse trouble) *judge.Summary {
	c := &client{rng: rand.New(rand.NewPCG(seed, 1)), late: late, server: s, worse: worse}
	rate := leastRate + (mostRate-leastRate)*c.rng.Float64()
	m := c.plan(rate)
	for c.todo.Len() > 0 {
		c.take(heap.Pop(&c.todo).(item))
	}
	c.loop.Work.Steps.Add(c.step)
	end := c.free
	for _, x := range c.records {
		if at, ok := x.End.Get(); ok {
			end = max(end, at)
		}
	}
	c.loop.WallNs = int64(end)
	m.Loops, m.State = []record.Loop{c.loop}, record.State{Complete: true, EndMs: float64(end) / 1e6, CPUMs: float64(c.loop.CPUNs) / 1e6}
	l, err := judge.Begin(m)
	if err != nil {
		panic(err) // the manifest is made here
	}
	for _, x := range c.records {
		if err := l.Add(x); err != nil {
			panic(err)
		}
	}
	return l.Finish(record.Tail{})
}

// plan makes the requests.
func (c *client) plan(rate float64) *record.Manifest {
	m := &record.Manifest{
		Schema: record.ManifestSchema,
		Stages: []record.Stage{
			{Name: "warmup", Warmup: true, Kind: "open", EndMs: warmup.Seconds() * 1e3, RatePerS: rate},
			{Name: "main", Kind: "open", StartMs: warmup.Seconds() * 1e3, EndMs: (warmup + window).Seconds() * 1e3, RatePerS: rate},
		},
		Target: record.Target{URL: "http://simulated", Model: "m", Endpoint: "openai-chat", Stream: true},
		Client: record.Client{Engine: "epoll", Loops: 1, GOMAXPROCS: 3, KernelStamps: true},
		Clock:  record.Clock{StartWall: time.Unix(0, 0).UTC(), StartMonotonicNs: 1},
		Env:    record.Environment{CPUs: 2},
	}
	c.loop.InFlightNs = make([]int64, len(m.Stages))
	gap := exponential(time.Duration(float64(time.Second) / rate))
	for due := gap(c.rng); due < warmup+window; due += gap(c.rng) {
		x := &record.Exchange{Index: int64(len(c.records)), Session: int64(len(c.records)), Due: due, PlannedOut: tokens}
		if due >= warmup {
			x.Stage = 1
		}
		m.Stages[x.Stage].Planned++
		c.records = append(c.records, x)
		if x.Stage == 1 && c.rng.Float64() < c.worse.leave {
			x.Outcome, x.Cause = record.NotSent, record.CauseNotSent
			continue
		}
		heap.Push(&c.todo, item{at: due + time.Duration(c.worse.slow*float64(due)), x: x, event: -1})
	}
	return m
}

// take does one thing: at once behind the one before, or when the loop has woken up.
func (c *client) take(it item) {
	start, slept := max(it.at, c.free), it.at >= c.free
	service := time.Duration(c.rng.ExpFloat64() * float64(readService))
	if it.event < 0 {
		service = time.Duration(c.rng.ExpFloat64() * float64(sendService))
	}
	if c.worse.service > 0 {
		service = time.Duration(float64(service) * c.worse.service)
	}
	c.free = start + service
	if slept {
		start += c.late.draw(c.rng)
	}
	if it.event < 0 {
		start += c.lateSend(it.x)
	}
	c.loop.CPUNs += int64(service)
	if it.event < 0 {
		c.send(it.x, start)
		c.loop.Sent++
		c.loop.Work.Sending.Add(service)
		c.replay = max(c.replay, start) + service
		return
	}
	c.read(it, start, service, slept)
}

// lateSend is how much later than it would be a send is made.
func (c *client) lateSend(x *record.Exchange) time.Duration {
	switch {
	case c.worse.once:
		if c.spared || x.Stage == 0 {
			return 0
		}
		c.spared = true
		return c.worse.late
	case c.worse.send > 0 && c.rng.Float64() < c.worse.send:
		return c.worse.late
	}
	return 0
}

func (c *client) send(x *record.Exchange, at time.Duration) {
	x.Issued, x.ConnReady, x.Attempts = record.At(at), record.At(at), 1
	if c.server.accept > 0 && c.rng.Float64() < c.server.accept {
		at += 100*time.Millisecond + time.Duration(c.rng.Int64N(int64(2900*time.Millisecond)))
		x.ConnReady, x.Delay = record.At(at), record.DelayNoConnection
	}
	x.FirstWrite, x.LastWrite = record.At(at), record.At(at)
	moments, outcome := c.server.answer(c.rng, at, tokens)
	x.Outcome, x.Status = outcome, 200
	switch outcome {
	case record.Completed:
		x.FinishReason, x.Usage = "length", record.Usage{Known: true, Input: 128, Output: tokens}
	case record.HTTPError:
		x.Status, x.Cause = 503, record.CauseRateLimited
		x.End = record.At(moments[0])
		c.loop.InFlightNs[x.Stage] += int64(moments[0] - at)
		return
	}
	for i, moment := range moments {
		heap.Push(&c.todo, item{at: moment, x: x, event: i})
	}
	x.Events = make([]record.Event, len(moments))
	x.Reads = len(moments)
}

// read takes in an event, and accounts for it as a sender does.
func (c *client) read(it item, start, service time.Duration, slept bool) {
	w := &c.loop.Work
	w.Reading.Add(service)
	w.Waiting.Add(start - it.at)
	if slept {
		w.Waking.Add(start - it.at)
	}
	if it.event >= 0 && c.loop.Reads > 0 {
		gap := it.at - c.last
		if w.Gaps.Add(gap); gap <= record.StepGap {
			w.Within.Add(gap)
			c.step++
		} else {
			w.Steps.Add(c.step)
			c.step = 1
		}
	} else {
		c.step = 1
	}
	c.last = it.at
	begin := c.replay
	if it.at >= c.replay {
		begin = it.at + time.Duration(w.Waking.Sum/float64(max(w.Waking.N, 1))*1e9)
	}
	w.Replayed.Add(begin - it.at)
	c.replay = begin + service
	c.loop.Reads++
	c.loop.Events++
	done := start + service
	if c.worse.read > 0 && c.rng.Float64() < c.worse.read {
		done += c.worse.late
	}
	w.Lag.Add(done - it.at)
	it.x.Events[it.event] = record.Event{KernelAt: it.at, UserAt: done, Kind: record.KindContent, Flags: record.FlagStamped}
	if it.event == len(it.x.Events)-1 {
		it.x.End = record.At(done)
		sent, _ := it.x.FirstWrite.Get()
		c.loop.InFlightNs[it.x.Stage] += int64(done - sent)
	}
}
