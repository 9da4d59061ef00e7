package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/bench/truth"
	"tare/internal/record"
)

const start = 1_000_000_000_000 // CLOCK_MONOTONIC ns at the run's offset 0

// reply is a completed exchange due and sent at 1 ms, with token events that the kernel and then the user saw.
func reply(index int64, events ...record.Event) *record.Exchange {
	x := &record.Exchange{Index: index, Due: time.Millisecond, Outcome: record.Completed, Events: events}
	x.FirstWrite = record.At(time.Millisecond + 5*time.Microsecond)
	return x
}

func content(kernel, lag time.Duration, flags record.Flags) record.Event {
	return record.Event{KernelAt: kernel, UserAt: kernel + lag, Kind: record.KindContent, Flags: flags | record.FlagStamped}
}

func TestDifferencesAreRecordedMinusTrue(t *testing.T) {
	us, ms := time.Microsecond, time.Millisecond
	c := comparison{start: start, truths: map[int64]truth.Request{7: {
		Recv:  start + int64(ms+20*us),
		Sends: []int64{start + int64(51*ms), start + int64(61*ms), start + int64(71*ms)},
	}}}
	c.exchange(reply(7,
		record.Event{Kind: record.KindRole, KernelAt: 50 * ms},
		content(51*ms+8*us, 30*us, 0),
		content(61*ms+9*us, 10*us, 0),
		content(71*ms+9*us, 10*us, record.FlagMerged),
		record.Event{Kind: record.KindUsage, KernelAt: 80 * ms},
	))
	for _, row := range []struct {
		name string
		got  []int64
		want []time.Duration
	}{
		{"TTFT kernel", c.ttftKernel, []time.Duration{23 * us}},
		{"TTFT separate", c.ttftSeparate, []time.Duration{23 * us}},
		{"TTFT user", c.ttftUser, []time.Duration{53 * us}},
		{"gap kernel", c.gapKernel, []time.Duration{1 * us, 0}},
		{"gap separate", c.gapSeparate, []time.Duration{1 * us}},
		{"gap user", c.gapUser, []time.Duration{-19 * us, 0}},
		{"wire slip", c.wireSlip, []time.Duration{20 * us}},
		{"own slip", c.ownSlip, []time.Duration{5 * us}},
		{"travel", c.requestTravel, []time.Duration{15 * us}},
	} {
		if len(row.got) != len(row.want) {
			t.Errorf("%s: got %v, want %v", row.name, row.got, row.want)
			continue
		}
		for i := range row.want {
			if time.Duration(row.got[i]) != row.want[i] {
				t.Errorf("%s: got %v, want %v", row.name, row.got, row.want)
			}
		}
	}
}

func TestWhatCannotBeComparedIsCounted(t *testing.T) {
	c := comparison{
		start:  start,
		warmup: []bool{true, false},
		truths: map[int64]truth.Request{1: {Recv: start, Sends: []int64{start}}, 2: {Recv: start, Sends: []int64{start, start}}},
	}
	in := func(stage int, x *record.Exchange) *record.Exchange { x.Stage = stage; return x }
	cut := in(1, reply(1, content(1, 0, 0)))
	cut.Outcome = record.Truncated
	for _, x := range []*record.Exchange{
		in(0, reply(1, content(1, 0, 0))), // warm-up
		in(1, reply(2, content(1, 0, 0))), // one token event, two in the truth
		in(1, reply(3, content(1, 0, 0))), // not in the truth
		cut,
		in(1, reply(1, content(1, 0, 0))),
	} {
		c.exchange(x)
	}
	want := "1 requests compared; left out: 1 not completed, 1 not in the truth, 1 with another number of token events."
	if got, _, _ := strings.Cut(c.table(), "\n"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// written is a truth file of these lines.
func written(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "truth.jsonl")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTruthIsKeyedByTheIndexAfterTheLastDash(t *testing.T) {
	truths, err := readTruths(written(t,
		`{"request_id":"run-a-1-42","recv_ns":5,"send_ns":[6,7]}`,
		`{"request_id":"","recv_ns":5,"send_ns":[6,7]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := truths[42]; len(truths) != 1 || got.Recv != 5 || len(got.Sends) != 2 {
		t.Errorf("got %v, want index 42 only, received at 5, two sends", truths)
	}
	for _, line := range []string{
		`{"request_id":"other-42","recv_ns":9,"send_ns":[]}`, // twice
		`{"request_id":"curl","recv_ns":9,"send_ns":[]}`,
	} {
		if _, err := readTruths(written(t, `{"request_id":"run-a-1-42","recv_ns":5,"send_ns":[6,7]}`, line)); err == nil {
			t.Errorf("%s: no error, want one", line)
		}
	}
}
