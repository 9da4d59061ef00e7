package drive_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// forgetful is a server that closes each connection behind so many replies, while it announces to keep it. The end of the
// connection comes in one segment with that of the reply.
func forgetful(t *testing.T, replies int) string {
	const body = sseToken + sseFinish + "data: [DONE]\n\n"
	return accept(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for left := replies - 1; left >= 0; left-- {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if left == 0 {
				cork(t, c)
			}
			fmt.Fprintf(c, "%sKeep-Alive: timeout=5, max=100\r\nContent-Length: %d\r\n\r\n%s", sseHead, len(body), body)
		}
		c.Close()
	})
}

// cork holds back what is written until the connection is closed.
func cork(t *testing.T, c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) })
	}
	if err != nil {
		t.Error(err)
	}
}

func TestServersThatDoNotKeepTheirConnectionsLoseNothing(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		for _, replies := range []int{1, 2} {
			all, m := carry(t, t.Context(), drive.Config{Servers: at(forgetful(t, replies)), Engine: engine, Connections: 4},
				spec(plan.Load{Stages: []plan.LoadStage{{Concurrency: 40, Requests: 400}, {Rate: 500, Requests: 100}}}))
			if n := outcomes(all); n["completed"] != 500 {
				t.Errorf("closed behind %d replies: outcomes %v, want 500 completed; first error %q", replies, n, firstError(all))
			}
			closed := int64(0)
			for _, l := range m.Loops {
				closed += l.ClosedEarly
			}
			if closed == 0 || len(m.Warnings) != 1 || !strings.HasPrefix(m.Warnings[0], fmt.Sprintf("servers closed %d connections within 50ms", closed)) {
				t.Errorf("closed behind %d replies: %d closed early, warnings %q, want a warning of them", replies, closed, m.Warnings)
			}
		}
	})
}

// Servers that close their connections only after more requests than it takes to be trusted lose one for each connection in
// use, and no more.
func TestServersThatStopKeepingTheirConnectionsLoseThoseOnce(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		all, _ := carry(t, t.Context(), drive.Config{Servers: at(forgetful(t, 60)), Engine: engine, Connections: 4, Loops: 1},
			spec(plan.Load{Concurrency: 4, Requests: 2000}))
		n := outcomes(all)
		if n["completed"] < 1996 || n["completed"]+n["reset"] != 2000 {
			t.Errorf("outcomes %v, want at least 1996 completed and else reset; first error %q", n, firstError(all))
		}
		for _, x := range all {
			if x.Outcome == record.Reset && x.Cause != record.CauseStale {
				t.Errorf("request %d: %q (%s), want stale_connection", x.Index, x.Cause, x.Error)
			}
		}
	})
}
