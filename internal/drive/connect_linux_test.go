package drive_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// crowded is an address whose queue of connections is as short as can be, and that takes none of them.
func crowded(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// The kernel makes one connection to a server that takes none; the others do not come about.
func TestConnectionsThatDoNotComeAboutAreGivenUp(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		cfg := drive.Config{Servers: at(crowded(t)), Engine: engine, NoReuse: true, ConnectTimeout: 300 * time.Millisecond, Timeout: 10 * time.Second, Drain: time.Second}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 50, Requests: 10}))
		late := 0
		for _, x := range all {
			if x.Cause == record.CauseConnectTimeout {
				late++
				due, _ := x.Issued.Get()
				if end, _ := x.End.Get(); x.Outcome != record.ConnectFailed || x.Delay != record.DelayNoConnection || end-due < cfg.ConnectTimeout {
					t.Errorf("request %d: %v, delay %v, given up after %v; want connect_failed, no_connection, at least %v", x.Index, x.Outcome, x.Delay, end-due, cfg.ConnectTimeout)
				}
			}
		}
		if n := outcomes(all); late < 8 || late+n["cancelled"]+n["timeout"] != 10 {
			t.Errorf("%d given up, outcomes %v; want at least 8 and else sent and unanswered; first error %q", late, n, firstError(all))
		}
	})
}

// What this client may not open is its own fault, and named so.
func TestWhatTheClientMayNotOpenIsItsOwnLimit(t *testing.T) {
	cfg := drive.Config{Engine: drive.EngineGoroutine, Servers: at("pipe"), Connections: 1, Loops: 1, Dial: dialOnce(syscall.EMFILE)}
	all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 100, Requests: 4}))
	if last := all[len(all)-1]; last.Cause != record.CauseFileLimit || last.Delay != record.DelayFileLimit {
		t.Errorf("got cause %q, delay %v (%s), want file_limit for both", last.Cause, last.Delay, last.Error)
	}
}
