package drive_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"tare/internal/drive"
	"tare/internal/plan"
)

// Every engine names the session of each request in its header, also of later turns.
func TestRequestsNameTheirSession(t *testing.T) {
	var lock sync.Mutex
	named := map[string]int{}
	h := func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		named[r.Header.Get("X-Session")]++
		lock.Unlock()
		chat(w, r)
	}
	s := conversing(plan.Load{Concurrency: 2, Requests: 3}, plan.Conversation{Turns: "2"})
	s.Target.SessionHeader = "X-Session"
	check := func(t *testing.T, cfg drive.Config) {
		t.Helper()
		clear(named)
		all, _ := carry(t, t.Context(), cfg, s)
		if n := outcomes(all)["completed"]; n != 6 || len(named) != 3 || named["tare-0"] != 2 || named["tare-2"] != 2 || named["tare-4"] != 2 {
			t.Errorf("%d completed, sessions named %v, want 6 of three sessions, two each", n, named)
		}
	}
	for _, engine := range []string{drive.EngineAuto, drive.EngineGoroutine} {
		check(t, drive.Config{Engine: engine, Servers: at(serve(t, h))})
	}
	overHTTP2(t, 0, h, func(t *testing.T, cfg drive.Config, _ *atomic.Int64) { check(t, cfg) })
}
