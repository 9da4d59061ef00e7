package capacity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/record"
)

// bench makes trials on simulated servers in virtual time and has them judged as runs are: by a judge.Ledger.
type bench struct {
	even  bool // the arrivals asked for are constant
	fresh func(r *rand.Rand) machine
	seed  uint64
	made  int
}

// patience is after how long a request is given up, in seconds.
const patience = 3600.0

type fate struct {
	due, first, end float64
	ok, ended       bool
}

// trial carries a load out on a fresh server.
func (b *bench) trial(l capacity.Load) capacity.Trial {
	b.made++
	r := rand.New(rand.NewPCG(b.seed, uint64(b.made)))
	m := b.fresh(r)
	var fates []fate
	if l.InFlight > 0 {
		fates = closed(m, l)
	} else {
		fates = opened(m, dues(l, r, b.even))
	}
	return b.judged(l, fates)
}

// dues are the due times of an open load.
func dues(l capacity.Load, r *rand.Rand, even bool) (all []float64) {
	span := (l.Warmup + l.Dwell).Seconds()
	at := 0.0
	draw := func(rate float64) float64 {
		if l.Even || even {
			return 1 / rate
		}
		return r.ExpFloat64() / rate
	}
	for at = draw(l.Rate); at < span; at += draw(l.Rate) {
		all = append(all, at)
	}
	for at = span + draw(max(l.Then, 1e-9)); at < l.Span().Seconds(); at += draw(l.Then) {
		all = append(all, at)
	}
	return all
}

func opened(m machine, dues []float64) []fate {
	fates := make([]fate, len(dues))
	i := 0
	for {
		at, busy := m.next()
		if i < len(dues) && (!busy || dues[i] <= at) {
			fates[i].due = dues[i]
			m.arrive(dues[i], i)
			i++
			continue
		}
		if !busy {
			return fates
		}
		m.happen(func(id int, first, at float64, ok bool) {
			fates[id].first, fates[id].end, fates[id].ok, fates[id].ended = first, at, ok, true
		})
	}
}

func closed(m machine, l capacity.Load) (fates []fate) {
	span := (l.Warmup + l.Dwell).Seconds()
	most := int(l.Requests)
	if most == 0 {
		most = math.MaxInt
	}
	send := func(at float64) {
		if at < span && len(fates) < most {
			fates = append(fates, fate{due: at})
			m.arrive(at, len(fates)-1)
		}
	}
	for range l.InFlight {
		send(0)
	}
	for {
		if _, busy := m.next(); !busy {
			return fates
		}
		m.happen(func(id int, first, at float64, ok bool) {
			fates[id].first, fates[id].end, fates[id].ok, fates[id].ended = first, at, ok, true
			send(at)
		})
	}
}

// judged has a load judged.
func (b *bench) judged(l capacity.Load, fates []fate) capacity.Trial {
	m := manifestOf(l)
	ledger, err := judge.Begin(m)
	if err != nil {
		panic(err)
	}
	last := 0.0
	for i := range fates {
		last = max(last, fates[i].end)
	}
	m.State.EndMs = last * 1e3
	for i := range fates {
		x := exchange(i, &fates[i], m)
		m.Stages[x.Stage].Planned++
		if err := ledger.Add(x); err != nil {
			panic(err)
		}
	}
	t := capacity.TrialOf(l, ledger.Finish(record.Tail{}))
	if l.Recovery > 0 {
		var dues, ends []float64
		for _, f := range fates {
			dues = append(dues, f.due)
			if f.ended {
				ends = append(ends, f.end)
			}
		}
		t.Recovery, t.Recovered = capacity.Recovery(dues, ends, (l.Warmup + l.Dwell).Seconds(), l.Span().Seconds(), l.Normal)
	}
	return t
}

func manifestOf(l capacity.Load) *record.Manifest {
	m := &record.Manifest{
		Schema: record.ManifestSchema, Target: record.Target{URL: "http://127.0.0.1:1", Model: "m", Endpoint: "openai-chat", Stream: true},
		Client: record.Client{Engine: "epoll", Loops: 1, KernelStamps: true}, State: record.State{Complete: true},
	}
	kind := "open"
	if l.InFlight > 0 {
		kind = "closed"
	}
	at := 0.0
	stage := func(name string, span time.Duration, rate float64) {
		if span > 0 {
			m.Stages = append(m.Stages, record.Stage{Name: name, Warmup: name == "warmup", Kind: kind, StartMs: at, EndMs: at + span.Seconds()*1e3, RatePerS: rate, Concurrency: l.InFlight})
			at += span.Seconds() * 1e3
		}
	}
	stage("warmup", l.Warmup, l.Rate)
	stage("load", l.Dwell, l.Rate)
	stage("recovery", l.Recovery, l.Then)
	return m
}

func exchange(i int, f *fate, m *record.Manifest) *record.Exchange {
	at := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	due := at(f.due)
	x := &record.Exchange{
		Index: int64(i), Session: int64(i), Due: due, Issued: record.At(due), ConnReady: record.At(due), FirstWrite: record.At(due), LastWrite: record.At(due),
		Outcome: record.Completed, Status: 200, FinishReason: "length", Reads: 1, Attempts: 1,
	}
	for s := range m.Stages {
		if f.due*1e3 >= m.Stages[s].StartMs {
			x.Stage = s
		}
	}
	switch {
	case !f.ended || f.end-f.due > patience:
		x.Outcome, x.Status, x.End = record.TimedOut, 0, record.At(at(f.due+patience))
	case !f.ok:
		x.Outcome, x.Status, x.End = record.HTTPError, 429, record.At(at(f.end))
	default:
		x.End = record.At(at(f.end))
		x.Events = []record.Event{{KernelAt: at(f.first), UserAt: at(f.first), Kind: record.KindContent, Flags: record.FlagStamped}}
	}
	return x
}

// search looks for the capacity of a server.
func search(c capacity.Config, s known, seed uint64) (capacity.Answer, []capacity.Trial) {
	b := &bench{fresh: s.fresh, seed: seed, even: strings.HasSuffix(s.name, "constant arrivals")}
	var trials []capacity.Trial
	for {
		step := capacity.Next(c, trials)
		if step.Done {
			return step.Answer, trials
		}
		trials = append(trials, b.trial(step.Load))
	}
}

func constant(*rand.Rand) func() float64      { return func() float64 { return 1 } }
func exponential(r *rand.Rand) func() float64 { return r.ExpFloat64 }
func lognormal(r *rand.Rand) func() float64 {
	return func() float64 { return math.Exp(r.NormFloat64() - 0.5) }
}

type known struct {
	name  string
	rate  float64 // requests per second that it can do
	fresh func(*rand.Rand) machine
}

func ofSlots(count int, mean float64, draw func(*rand.Rand) func() float64) func(*rand.Rand) machine {
	return func(r *rand.Rand) machine { return &slots{count: count, mean: mean, draw: draw(r)} }
}

// servers are those with a known capacity.
var servers = []known{
	{"1 slot, constant 0.1 s", 10, ofSlots(1, 0.1, constant)},
	{"1 slot, exponential 0.1 s", 10, ofSlots(1, 0.1, exponential)},
	{"64 slots, constant 5 s", 12.8, ofSlots(64, 5, constant)},
	{"256 slots, constant 10 s", 25.6, ofSlots(256, 10, constant)},
	{"64 slots, exponential 5 s", 12.8, ofSlots(64, 5, exponential)},
	{"16 slots, lognormal (σ 1) 4 s", 4, ofSlots(16, 4, lognormal)},
	{"256 slots, lognormal (σ 1) 10 s", 25.6, ofSlots(256, 10, lognormal)},
	{"1,000 slots, exponential 2 s", 500, ofSlots(1000, 2, exponential)},
	{"token bucket, 20/s, burst 10, random arrivals", bucketRate(20, 10), ofBucket},
	{"token bucket, 20/s, burst 10, constant arrivals", 20, ofBucket},
	{"flat line: all at once, 25/s together", 25, func(r *rand.Rand) machine { return &shared{alone: 0.4, most: 10, draw: exponential(r)} }},
	{"degrading: from 400 waiting on slower, to half", 8, func(r *rand.Rand) machine {
		return &slots{count: 16, mean: 2, draw: exponential(r), slower: 400}
	}},
	{"continuous batching, 32 sequences, lognormal tokens", 32 / (100 * 0.042), func(r *rand.Rand) machine {
		tokens := lognormal(r)
		return &batching{most: 32, base: 0.010, each: 0.001, tokens: func() float64 { return 100 * tokens() }}
	}},
	{"16 slots, exponential 2 s, 429 beyond 200 waiting", 8, func(r *rand.Rand) machine {
		return &slots{count: 16, mean: 2, draw: exponential(r), limit: 200}
	}},
}

func ofBucket(*rand.Rand) machine { return &bucket{rate: 20, burst: 10, tokens: 10, service: 0.2} }

// bucketRate is the rate of random arrivals of which a token bucket refuses as many as may fail, by a long simulation.
func bucketRate(rate, burst float64) float64 {
	refused := func(at float64) float64 {
		r := rand.New(rand.NewPCG(1, 1))
		const n = 1_000_000
		tokens, bad := burst, 0
		for range n {
			if tokens = min(tokens+r.ExpFloat64()/at*rate, burst); tokens < 1 {
				bad++
				continue
			}
			tokens--
		}
		return float64(bad) / n
	}
	low, high := rate/2, rate*2
	for range 20 {
		if mid := (low + high) / 2; refused(mid) > 0.01 {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}

func seedsOf(few int) (n int, all bool) {
	if n, err := strconv.Atoi(os.Getenv("TARE_SEEDS")); err == nil {
		return n, true
	}
	return few, false
}

func virtual() capacity.Config {
	c := capacity.Defaults()
	c.MostDwell = 4 * time.Hour
	return c
}

func TestCapacityOfKnownServers(t *testing.T) {
	seeds, all := seedsOf(1)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			began := time.Now()
			within, trials, load := 0, 0, time.Duration(0)
			worst, resolution := 0.0, 0.0
			c := virtual()
			if !all {
				c.Width = 0.1 // a quarter of the requests
			}
			for seed := range seeds {
				a, ts := search(c, s, uint64(seed))
				trials += len(ts)
				for i := range ts {
					load += ts[i].Took
				}
				off := a.Stable.Rate/s.rate - 1
				if !a.Valid {
					t.Logf("seed %d: not valid: %s", seed, a.Reason)
					continue
				}
				if a.Stable.Known && math.Abs(off) <= a.Stable.Resolution+1e-9 {
					within++
				} else {
					t.Logf("seed %d: %+v", seed, a)
				}
				if math.Abs(off) > math.Abs(worst) {
					worst = off
				}
				resolution = max(resolution, a.Stable.Resolution)
			}
			if all {
				fmt.Printf("| %s | %.4g | %d of %d | %+.1f %% | %.1f %% | %d | %v | %v |\n", s.name, s.rate, within, seeds, 100*worst, 100*resolution,
					trials/seeds, (load / time.Duration(seeds)).Round(time.Second), (time.Since(began) / time.Duration(seeds)).Round(10*time.Millisecond))
			}
			if within*20 < seeds*19 {
				t.Errorf("within the resolution in %d of %d searches, want 19 of 20", within, seeds)
			}
		})
	}
}
