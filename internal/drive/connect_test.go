package drive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"tare/internal/record"
)

func TestFailuresToConnectAreClassed(t *testing.T) {
	dialled := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, c := range []struct {
		err  error
		want record.Cause
	}{
		{dialled(syscall.ECONNREFUSED), record.CauseRefused},
		{dialled(syscall.EHOSTUNREACH), record.CauseUnreachable},
		{dialled(syscall.ENETUNREACH), record.CauseUnreachable},
		{dialled(syscall.ENETDOWN), record.CauseUnreachable},
		{dialled(syscall.EHOSTDOWN), record.CauseUnreachable},
		{dialled(syscall.ETIMEDOUT), record.CauseConnectTimeout},
		{dialled(context.DeadlineExceeded), record.CauseConnectTimeout},
		{dialled(os.ErrDeadlineExceeded), record.CauseConnectTimeout},
		{unanswered(time.Second), record.CauseConnectTimeout},
		{handshakeError{context.DeadlineExceeded}, record.CauseConnectTimeout}, // the handshake is part of the connection
		{handshakeError{errors.New("unknown authority")}, record.CauseTLS},
		{dialled(syscall.EMFILE), record.CauseFileLimit},
		{dialled(syscall.ENFILE), record.CauseFileLimit},
		{dialled(syscall.EADDRNOTAVAIL), record.CauseFileLimit},
		{dialled(syscall.ENOBUFS), record.CauseFileLimit},
		{dialled(syscall.ENOMEM), record.CauseFileLimit},
		{fmt.Errorf("dial: %w", errClosedAtOnce), record.CauseClosedAtOnce},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nowhere"}}, record.CauseDNS},
		{errors.New("odd"), record.CauseUnconnected},
	} {
		if got := connectCause(c.err); got != c.want || got.Outcome() != record.ConnectFailed {
			t.Errorf("%v: got %q, %v, want %q, connect_failed", c.err, got, got.Outcome(), c.want)
		}
	}
}
