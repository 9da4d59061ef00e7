package record

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// typical is a streamed reply of n tokens, 10 ms apart, as a run records it.
func typical(index int64, n int) *Exchange {
	due := time.Duration(index) * time.Millisecond
	x := &Exchange{
		Index: index, Stage: 1, Session: index, Due: due,
		Issued: At(due + 20_000), ConnReady: At(due + 20_000), FirstWrite: At(due + 21_000), LastWrite: At(due + 30_000),
		HeaderAt: At(due + 50_000_000), Reused: true,
		Outcome: Completed, Attempts: 1, Status: 200, FinishReason: "length",
		Usage:     Usage{Known: true, Input: 512, Output: n},
		PlannedIn: 512, PlannedOut: n, BytesIn: 8000, Reads: n,
	}
	for i := range n {
		at := due + 50_000_000 + time.Duration(i)*10_000_000 + time.Duration(i*7919%1000)*1000
		x.Events = append(x.Events, Event{
			KernelAt: at, UserAt: at + 30_000 + time.Duration(i*104729%20_000), Kind: KindContent, Tokens: 1, Flags: FlagStamped | FlagExact,
		})
	}
	x.End = At(x.Events[n-1].UserAt + 5000)
	return x
}

// anything is an exchange with extreme and random values in every field.
func anything(r *rand.Rand) *Exchange {
	number := func() int64 { return int64(r.Uint64()) >> r.IntN(64) }
	instant := func() Instant {
		if r.IntN(3) == 0 {
			return Instant{}
		}
		return At(time.Duration(number()))
	}
	text := func() string { return strings.Repeat("é\x00\xff", r.IntN(4)) }
	x := &Exchange{
		Index: number(), Stage: int(number()), Session: number(), Turn: int(number()), Class: text(),
		Due: time.Duration(number()), Issued: instant(), ConnReady: instant(), FirstWrite: instant(), LastWrite: instant(),
		HeaderAt: instant(), End: instant(), Reused: r.IntN(2) == 0, Delay: Delay(r.Uint32()),
		Outcome: Outcome(r.Uint32()), Status: int(number()), FinishReason: text(),
		Usage:     Usage{Known: r.IntN(2) == 0, CachedKnown: r.IntN(2) == 0, Input: int(number()), Output: int(number()), Cached: int(number())},
		PlannedIn: int(number()), PlannedOut: int(number()), BytesIn: number(), Reads: int(number()), Error: text(),
		Cause: Cause(r.Uint32()), Attempts: int(number()), RetryAfter: time.Duration(number()),
	}
	for range r.IntN(20) {
		x.Events = append(x.Events, Event{
			KernelAt: time.Duration(number()), UserAt: time.Duration(number()),
			Tokens: uint16(r.Uint32()) >> r.IntN(16), Kind: Kind(r.Uint32()) >> r.IntN(8), Flags: Flags(r.Uint32()) >> r.IntN(8),
		})
	}
	return x
}

func TestDecodeGivesBackEveryField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var got Exchange
	for range 5000 {
		want := anything(r)
		b := AppendExchange(nil, want)
		rest, err := DecodeExchange(append(b, "rest"...), &got)
		if err != nil || string(rest) != "rest" {
			t.Fatalf("decode: rest %q, error %v, want %q and none", rest, err, "rest")
		}
		sameExchange(t, &got, want)
	}
}

func sameExchange(t *testing.T, got, want *Exchange) {
	t.Helper()
	g, w := *got, *want
	if len(g.Events) == 0 && len(w.Events) == 0 {
		g.Events, w.Events = nil, nil
	}
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("exchange differs\ngot  %+v\nwant %+v", g, w)
	}
}

// A field added to Exchange must enter the format, or this fails: a zero left by the coder would go unseen.
func TestEveryFieldOfAnExchangeIsExercised(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var seen Exchange
	for range 100 {
		var got Exchange
		if _, err := DecodeExchange(AppendExchange(nil, anything(r)), &got); err != nil {
			t.Fatal(err)
		}
		g, s := reflect.ValueOf(got), reflect.ValueOf(&seen).Elem()
		for i := range g.NumField() {
			if f := g.Type().Field(i); !g.Field(i).IsZero() {
				s.FieldByIndex(f.Index).Set(g.Field(i))
			}
		}
	}
	v := reflect.ValueOf(seen)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("field %s never came back with a value", v.Type().Field(i).Name)
		}
	}
}

func TestAStreamedTokenTakesAtMostNineBytes(t *testing.T) {
	with, without := len(AppendExchange(nil, typical(1e6, 1001))), len(AppendExchange(nil, typical(1e6, 1)))
	if got := float64(with-without) / 1000; got > 9 {
		t.Errorf("bytes per event: got %.2f, want at most 9", got)
	}
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	x := typical(1, 64)
	b := AppendExchange(nil, x)
	if got := testing.AllocsPerRun(100, func() { b = AppendExchange(b[:0], x) }); got != 0 {
		t.Errorf("allocations per encoded exchange: got %v, want 0", got)
	}
}

func TestDecodingOfLikeExchangesDoesNotAllocate(t *testing.T) {
	b := AppendExchange(nil, typical(1, 64))
	var x Exchange
	if got := testing.AllocsPerRun(100, func() {
		if _, err := DecodeExchange(b, &x); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("allocations per decoded exchange: got %v, want 0", got)
	}
}

// hostile is an exchange that claims more events than any memory holds.
func hostile() []byte {
	b := AppendExchange(nil, &Exchange{Index: 1})
	b = binary.AppendUvarint(b[:len(b)-1], 1<<40)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func TestClaimedEventsAreHeldAgainstTheBytes(t *testing.T) {
	var x Exchange
	if _, err := DecodeExchange(hostile(), &x); err == nil || cap(x.Events) != 0 {
		t.Errorf("got error %v and room for %d events, want an error and none", err, cap(x.Events))
	}
}

func FuzzDecodeExchange(f *testing.F) {
	f.Add(AppendExchange(nil, typical(1, 3)))
	f.Add(hostile())
	f.Add(AppendExchange(nil, anything(rand.New(rand.NewPCG(1, 1)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, again Exchange
		if _, err := DecodeExchange(b, &x); err != nil {
			return
		}
		if limit := 2*len(b) + 64; cap(x.Events) > limit {
			t.Errorf("room for %d events from %d bytes, want at most %d", cap(x.Events), len(b), limit)
		}
		if _, err := DecodeExchange(AppendExchange(nil, &x), &again); err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		sameExchange(t, &again, &x)
	})
}

func BenchmarkAppendExchange(b *testing.B) {
	x := typical(1e6, 1000)
	buf := AppendExchange(nil, x)
	for b.Loop() {
		buf = AppendExchange(buf[:0], x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
}

func BenchmarkDecodeExchange(b *testing.B) {
	buf := AppendExchange(nil, typical(1e6, 1000))
	var x Exchange
	for b.Loop() {
		if _, err := DecodeExchange(buf, &x); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
}
