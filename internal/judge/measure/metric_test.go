package measure_test

import (
	"math"
	"testing"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// ms is a moment in milliseconds since the start of the run.
func ms(v float64) time.Duration { return time.Duration(v * 1e6) }

func event(at float64, k record.Kind) record.Event {
	return record.Event{KernelAt: ms(at), UserAt: ms(at) + 40*time.Microsecond, Kind: k, Flags: record.FlagStamped}
}

// merged marks an event as followed by more bytes in its read, which was stamped at.
func merged(at float64, k record.Kind) record.Event {
	e := event(at, k)
	e.Flags |= record.FlagMerged
	return e
}

func exactly(n uint16, e record.Event) record.Event {
	e.Tokens, e.Flags = n, e.Flags|record.FlagExact
	return e
}

// streamed is a completed exchange, due at 0, sent at 0, that ended with its last event.
func streamed(output int, events ...record.Event) *record.Exchange {
	return &record.Exchange{
		FirstWrite: record.At(0), End: record.At(events[len(events)-1].KernelAt), Status: 200, Events: events,
		Outcome: record.Completed, Usage: record.Usage{Known: output > 0, Input: 7, Output: output},
	}
}

// tally measures one metric over one exchange.
func tally(t *testing.T, name string, x *record.Exchange) (got *measure.Tally, defined bool) {
	t.Helper()
	var r measure.Reply
	r.Read(x)
	for _, m := range measure.Table() {
		if m.Name == name {
			got = new(measure.Tally)
			return got, m.Of(&r, got)
		}
	}
	t.Fatalf("no metric is called %s", name)
	return nil, false
}

// values lists n, least, mean and greatest value in milliseconds or tokens.
func values(d *stats.Distribution, unit measure.Unit) (n int64, least, mean, most float64) {
	lo, _ := d.Min()
	hi, _ := d.Max()
	m, _ := d.Mean()
	return d.N(), float64(lo) / unit.Scale(), m / unit.Scale(), float64(hi) / unit.Scale()
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6 }

// workedExample is one chat stream: role 5 · "A" 500 · "BC" in one event 520 · "D" 540 · finish 545 · usage 546 · [DONE] 550.
func workedExample() *record.Exchange {
	return streamed(4,
		event(5, record.KindRole), event(500, record.KindContent), event(520, record.KindContent), event(540, record.KindContent),
		event(545, record.KindFinish), event(546, record.KindUsage), event(550, record.KindTerminator))
}

func TestWorkedExampleOfTheDocumentation(t *testing.T) {
	tests := []struct {
		metric            string
		n                 int64
		least, mean, most float64
	}{
		{measure.FirstEvent, 1, 5, 5, 5},
		{measure.TTFT, 1, 500, 500, 500},
		{measure.FirstAnswer, 1, 500, 500, 500},
		{measure.ICL, 2, 20, 20, 20},
		{measure.Stall, 1, 20, 20, 20},
		{measure.TPOT, 1, 13.333333, 13.333333, 13.333333},
		{measure.NTPOT, 1, 137.5, 137.5, 137.5},
		{measure.E2E, 1, 550, 550, 550},
		{measure.OutputTokens, 1, 4, 4, 4},
		{measure.ReceiveLag, 7, 0.04, 0.04, 0.04},
	}
	for _, tt := range tests {
		got, defined := tally(t, tt.metric, workedExample())
		n, least, mean, most := values(got.Values(), measure.Milliseconds)
		if tt.metric == measure.OutputTokens {
			least, mean, most = least*1e6, mean*1e6, most*1e6
		}
		if !defined || n != tt.n || !near(least, tt.least) || !near(mean, tt.mean) || !near(most, tt.most) {
			t.Errorf("%s: got n %d, %v … %v … %v, want n %d, %v … %v … %v", tt.metric, n, least, mean, most, tt.n, tt.least, tt.mean, tt.most)
		}
		if got.Bounded != 0 {
			t.Errorf("%s: got %d bounded values, want 0", tt.metric, got.Bounded)
		}
	}
	if _, defined := tally(t, measure.ITL, workedExample()); defined {
		t.Error("ITL is defined although 3 events brought 4 tokens")
	}
}

func TestITLSharesAGapBetweenTheTokensOfItsEvent(t *testing.T) {
	x := workedExample()
	for i, n := range map[int]uint16{1: 1, 2: 2, 3: 1} {
		x.Events[i] = exactly(n, x.Events[i])
	}
	got, defined := tally(t, measure.ITL, x)
	n, least, mean, most := values(got.Values(), measure.Milliseconds)
	if !defined || n != 3 || least != 10 || !near(mean, 40.0/3) || most != 20 {
		t.Errorf("got n %d, %v … %v … %v, want the values 10, 10, 20", n, least, mean, most)
	}
}

func TestITLOfAsManyEventsAsTokensIsTheGap(t *testing.T) {
	got, defined := tally(t, measure.ITL, streamed(3, event(10, record.KindContent), event(15, record.KindReasoning), event(30, record.KindContent)))
	n, least, mean, most := values(got.Values(), measure.Milliseconds)
	if !defined || n != 2 || least != 5 || mean != 10 || most != 15 {
		t.Errorf("got n %d, %v … %v … %v, want the values 5 and 15", n, least, mean, most)
	}
}

func TestITLKeepsTheGapOfAnEventWithoutTokens(t *testing.T) {
	got, _ := tally(t, measure.ITL, streamed(3,
		exactly(1, event(10, record.KindContent)), exactly(0, event(20, record.KindContent)), exactly(2, event(30, record.KindContent))))
	n, least, _, most := values(got.Values(), measure.Milliseconds)
	if n != 2 || least != 10 || most != 10 {
		t.Errorf("got n %d, %v … %v, want 10 twice", n, least, most)
	}
}

func TestMergedGapsAreBoundedAndStayOutOfTheFigures(t *testing.T) {
	x := streamed(4, event(100, record.KindContent), merged(130, record.KindContent), event(130, record.KindContent), event(140, record.KindContent))
	got, defined := tally(t, measure.ICL, x)
	n, least, _, most := values(got.Values(), measure.Milliseconds)
	if !defined || n != 1 || least != 10 || most != 10 {
		t.Errorf("exact gaps: got n %d, %v … %v, want 10 once", n, least, most)
	}
	if got.Bounded != 2 {
		t.Errorf("bounded gaps: got %d, want 2", got.Bounded)
	}
	n, least, _, most = values(got.Lows(), measure.Milliseconds)
	if n != 3 || least != 0 || most != 10 {
		t.Errorf("lower bounds: got n %d, %v … %v, want 0, 0, 10", n, least, most)
	}
	n, least, _, most = values(got.Highs(), measure.Milliseconds)
	if n != 3 || least != 10 || most != 30 {
		t.Errorf("upper bounds: got n %d, %v … %v, want 10, 30, 30", n, least, most)
	}
}

func TestStallIsExactOnlyWhenNoBoundedGapCanBeLonger(t *testing.T) {
	tests := []struct {
		name        string
		last        float64 // arrival of the last event
		n, bounded  int64
		least, most float64 // of the bounds
	}{
		{"longest gap exact", 180, 1, 0, 50, 50},
		{"longest gap bounded", 140, 0, 1, 10, 30},
	}
	for _, tt := range tests {
		got, _ := tally(t, measure.Stall, streamed(4,
			event(100, record.KindContent), merged(130, record.KindContent), event(130, record.KindContent), event(tt.last, record.KindContent)))
		_, least, _, _ := values(got.Lows(), measure.Milliseconds)
		_, _, _, most := values(got.Highs(), measure.Milliseconds)
		if got.Values().N() != tt.n || got.Bounded != tt.bounded || least != tt.least || most != tt.most {
			t.Errorf("%s: got n %d, bounded %d, %v … %v, want n %d, bounded %d, %v … %v", tt.name, got.Values().N(), got.Bounded, least, most, tt.n, tt.bounded, tt.least, tt.most)
		}
	}
}

func TestMergedFirstTokenKeepsItsStampAndIsCounted(t *testing.T) {
	got, defined := tally(t, measure.TTFT, streamed(2, event(20, record.KindRole), merged(50, record.KindContent), event(50, record.KindContent)))
	_, stamp, _, _ := values(got.Values(), measure.Milliseconds)
	_, low, _, _ := values(got.Lows(), measure.Milliseconds)
	if !defined || stamp != 50 || low != 20 || got.Bounded != 1 {
		t.Errorf("got %v, at least %v, %d bounded; want 50, at least 20, 1 bounded", stamp, low, got.Bounded)
	}
}

func TestMetricsAreUndefinedRatherThanZero(t *testing.T) {
	document := &record.Exchange{FirstWrite: record.At(0), End: record.At(ms(80)), Outcome: record.Completed, Usage: record.Usage{Known: true, Output: 4}}
	one := streamed(1, event(10, record.KindContent), event(12, record.KindTerminator))
	uncounted := streamed(0, event(10, record.KindContent), event(20, record.KindContent))
	burst := streamed(9, event(10, record.KindContent), event(12, record.KindTerminator))
	tests := []struct {
		metric string
		reply  string
		x      *record.Exchange
		want   bool
	}{
		{measure.TTFT, "not streamed", document, false},
		{measure.ICL, "not streamed", document, false},
		{measure.TPOT, "not streamed", document, false},
		{measure.ReceiveLag, "not streamed", document, false},
		{measure.NTPOT, "not streamed", document, true},
		{measure.E2E, "not streamed", document, true},
		{measure.TPOT, "one token", one, false},
		{measure.ITL, "one token", one, false},
		{measure.ICL, "one token", one, false},
		{measure.Stall, "one token", one, false},
		{measure.TPOT, "no usage", uncounted, false},
		{measure.NTPOT, "no usage", uncounted, false},
		{measure.OutputTokens, "no usage", uncounted, false},
		{measure.InputTokens, "no usage", uncounted, false},
		{measure.ICL, "no usage", uncounted, true},
		{measure.TPOT, "all tokens in one event", burst, false},
		{measure.FirstAnswer, "reasoning only", streamed(2, event(10, record.KindReasoning), event(12, record.KindReasoning)), false},
		{measure.Connect, "warm connection", one, false},
	}
	for _, tt := range tests {
		got, defined := tally(t, tt.metric, tt.x)
		if defined != tt.want || (got.Values().N() > 0) != tt.want {
			t.Errorf("%s of a reply with %s: got defined %v with n %d, want %v", tt.metric, tt.reply, defined, got.Values().N(), tt.want)
		}
	}
}

func TestLatenciesCountFromSendAndFromDue(t *testing.T) {
	x := streamed(2, event(150, record.KindReasoning), event(170, record.KindContent), event(190, record.KindTerminator))
	x.Due, x.FirstWrite = ms(40), record.At(ms(100))
	want := map[string]float64{measure.Slip: 60, measure.TTFT: 50, measure.TTFTFromDue: 110, measure.FirstAnswer: 70, measure.E2E: 90, measure.E2EFromDue: 150}
	for metric, value := range want {
		got, _ := tally(t, metric, x)
		if _, least, _, _ := values(got.Values(), measure.Milliseconds); least != value {
			t.Errorf("%s: got %v ms, want %v ms", metric, least, value)
		}
	}
}

func TestRatiosHaveBothMeans(t *testing.T) {
	var r measure.Reply
	var sum measure.Tally
	for _, x := range []*record.Exchange{
		streamed(10, event(10, record.KindContent), event(100, record.KindTerminator)),
		streamed(2, event(10, record.KindContent), event(80, record.KindTerminator)),
	} {
		r.Read(x)
		for _, m := range measure.Table() {
			if m.Name == measure.NTPOT {
				m.Of(&r, &sum)
			}
		}
	}
	mean, _ := sum.Values().Mean()
	ratio, ok := sum.RatioOfMeans()
	if mean != 25e6 || !ok || ratio != 15e6 {
		t.Errorf("got mean of ratios %v and ratio of means %v, want 25 ms (10 and 40) and 15 ms (180 in 12)", mean/1e6, ratio/1e6)
	}
}

func TestTokensArriveWithTheirEvents(t *testing.T) {
	tests := []struct {
		name string
		x    *record.Exchange
		want []int64
	}{
		{"counted by the server per event", streamed(5, exactly(1, event(1, record.KindContent)), exactly(4, event(2, record.KindContent))), []int64{1, 4}},
		{"spread evenly", streamed(8, event(1, record.KindContent), event(2, record.KindContent), event(3, record.KindContent)), []int64{2, 3, 3}},
		{"not known", streamed(0, event(1, record.KindContent)), nil},
		{"at the end of a document", &record.Exchange{End: record.At(ms(9)), Usage: record.Usage{Known: true, Output: 6}}, []int64{6}},
	}
	for _, tt := range tests {
		var r measure.Reply
		r.Read(tt.x)
		var got []int64
		r.EachToken(func(_ time.Duration, n int64) { got = append(got, n) })
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func TestMergedReadsAreCountedOncePerRead(t *testing.T) {
	var r measure.Reply
	r.Read(streamed(6, merged(1, record.KindContent), merged(1, record.KindContent), event(1, record.KindContent), event(2, record.KindContent), merged(3, record.KindContent), event(3, record.KindContent)))
	if r.Merged != 3 || r.MergedReads != 2 {
		t.Errorf("got %d merged events in %d reads, want 3 in 2", r.Merged, r.MergedReads)
	}
}
