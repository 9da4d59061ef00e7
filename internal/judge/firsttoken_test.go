package judge_test

import (
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/record"
)

func TestFirstTokensAreReadByEitherClock(t *testing.T) {
	m := twoStages()
	all := requests(func(x *record.Exchange) *record.Exchange {
		x.PlannedOut = 4
		switch {
		case x.Index < 100: // warm-up, which stays out
			reply(x, time.Second)
		case x.Index < 200:
			x.Events[0].Flags |= record.FlagMerged
		case x.Index < 300:
			fail(x, record.Reset, "")
		case x.Index < 400:
			x.PlannedOut = 1
			x.Events[0].Flags |= record.FlagMerged
		}
		return x
	})
	dir := judged(t, m, all, nil).Dir
	f, err := judge.ReadFirstTokens(dir)
	if err != nil {
		t.Fatal(err)
	}
	kernel, _ := f.Kernel.Max()
	user, _ := f.User.Min()
	if f.Kernel.N() != 900 || kernel != 50e6 || user != 50e6+20e3 || f.Merged != 100 {
		t.Errorf("got %d first tokens, %d ns by the kernel, %d by the user's clock, %d merged, want 900, 50e6, 50.02e6, 100", f.Kernel.N(), kernel, user, f.Merged)
	}
	if _, err := judge.ReadFirstTokens(t.TempDir()); err == nil {
		t.Error("no run: got no error")
	}
}
