package drive_test

import (
	"strings"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
)

func TestABurdenTakesItsTimeAndIsOnRecord(t *testing.T) {
	if !drive.HasEpoll() {
		t.Skip("engine epoll does not run here")
	}
	const burden = 500 * time.Microsecond
	all, m := carry(t, t.Context(), drive.Config{Servers: at(serve(t, chat)), Engine: drive.EngineEpoll, Loops: 1, Burden: burden}, spec(plan.Load{Concurrency: 4, Requests: 20}))
	events := 0
	for _, x := range all {
		events += len(x.Events)
	}
	if least := time.Duration(events) * burden; events == 0 || time.Duration(m.Loops[0].WallNs) < least {
		t.Errorf("the loop took %v for %d events, want %v at least", time.Duration(m.Loops[0].WallNs), events, least)
	}
	if m.Client.BurdenNs != int64(burden) || len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "500µs") {
		t.Errorf("got burden %d ns and warnings %q, want it on record and one warning that names it", m.Client.BurdenNs, m.Warnings)
	}
}

func TestABurdenNeedsALoopOfItsOwn(t *testing.T) {
	cfg := drive.Config{Servers: at("127.0.0.1:1"), Engine: drive.EngineGoroutine, Burden: time.Microsecond}
	err := start(t, cfg, spec(plan.Load{Concurrency: 1, Requests: 1}))
	if err == nil || !strings.Contains(err.Error(), "needs engine epoll") {
		t.Errorf("got error %v, want a burden refused", err)
	}
}
