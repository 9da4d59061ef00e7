package health

import (
	"os"
	"path/filepath"
	"testing"

	"tare/internal/record"
)

func TestCoresShareTheirTime(t *testing.T) {
	before := parseCores("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\nintr 1 2\n")
	after := parseCores("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 120 10 110 830 10 5 5 10 0 0\nintr 1 2\n")
	if len(before) != 1 || len(after) != 1 {
		t.Fatalf("got %d and %d cores, want 1", len(before), len(after))
	}
	if got, want := after[0].since(before[0]), (record.Core{Busy: 0.5, Steal: 0.1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCountersAreRead(t *testing.T) {
	tcp := parseTCP("Ip: A\nIp: 1\nTcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 5 70 3\nUdp: OutSegs\nUdp: 9\n")
	if tcp == nil || *tcp != (record.TCP{Sent: 70, Resents: 3}) {
		t.Errorf("TCP: got %+v, want 70 sent, 3 again", tcp)
	}
	if n, ok := parseSockets("sockets: used 13\nTCP: inuse 4 orphan 0 tw 6 alloc 1 mem 0\n"); n != 10 || !ok {
		t.Errorf("sockets: got %d, %v, want 10", n, ok)
	}
	two := parseThrottling("usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 1500\n")
	one := parseThrottling("nr_periods 10\nnr_throttled 3\nthrottled_time 1500000\n")
	want := record.Throttling{Periods: 10, Throttled: 3, StoodMs: 1.5}
	if two == nil || one == nil || *two != want || *one != want {
		t.Errorf("throttling: got %+v and %+v, want %+v", two, one, want)
	}
}

func TestLimitsOfAllControlGroupsAboveCount(t *testing.T) {
	root := t.TempDir()
	own := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := throttlingIn(own, root); got != nil {
		t.Errorf("nothing to read: got %+v, want nil", got)
	}
	write := func(dir, text string) {
		if err := os.WriteFile(filepath.Join(dir, "cpu.stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(root, "usage_usec 5\n")
	if got := throttlingIn(own, root); got == nil || *got != (record.Throttling{}) {
		t.Errorf("no limit: got %+v, want zeros", got)
	}
	write(own, "nr_periods 10\nnr_throttled 3\nthrottled_usec 1500\n")
	write(filepath.Dir(own), "nr_periods 10\nnr_throttled 1\nthrottled_usec 500\n")
	if got := throttlingIn(own, root); got == nil || *got != (record.Throttling{Periods: 20, Throttled: 4, StoodMs: 2}) {
		t.Errorf("two limits: got %+v, want both", got)
	}
}

func TestWhatTheKernelDoesNotTellIsLeftOut(t *testing.T) {
	if parseTCP("") != nil || parseThrottling("usage_usec 5\n") != nil {
		t.Error("got counters from files that have none")
	}
	if _, ok := parseSockets(""); ok {
		t.Error("got sockets from a file that has none")
	}
	var h record.Health
	(&system{}).since(&system{cpu: &record.Spent{}}, &h)
	if h.CPU != nil || h.RunQueue != nil || h.Throttling != nil || h.TCP != nil || h.Cores != nil || h.Files != nil {
		t.Errorf("got %+v, want nothing", h)
	}
}

func TestThisMachineTellsSomething(t *testing.T) {
	s := readSystem()
	if s.cpu == nil || len(s.cores) == 0 || s.files == nil || s.files.Used < 3 || s.files.Used > s.files.Limit {
		t.Errorf("got CPU %v, %d cores, files %+v, want all of them", s.cpu, len(s.cores), s.files)
	}
}
