package drive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"tare/internal/record"
)

// connecting names a server and why no connection to it could be had.
func (r *run) connecting(server int, cause error) string {
	return fmt.Sprintf("connect to %s: %v", r.places[server].text, cause)
}

// errClosedAtOnce says that a new connection was gone before it could be used.
var errClosedAtOnce = errors.New("the server closed the connection at once")

// unanswered says that a connection did not come about in time.
type unanswered time.Duration

func (u unanswered) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(u)) }

// handshakeError is why TLS could not be agreed on.
type handshakeError struct{ err error }

func (h handshakeError) Error() string { return h.err.Error() }
func (h handshakeError) Unwrap() error { return h.err }

// connectCause is the class of a failure to connect.
func connectCause(err error) record.Cause {
	among := func(list ...error) bool {
		for _, want := range list {
			if errors.Is(err, want) {
				return true
			}
		}
		return false
	}
	_, slow := errors.AsType[unanswered](err)
	_, unnamed := errors.AsType[*net.DNSError](err)
	_, unsafe := errors.AsType[handshakeError](err)
	switch {
	case ownLimit(err):
		return record.CauseFileLimit
	case among(errClosedAtOnce):
		return record.CauseClosedAtOnce
	case unnamed:
		return record.CauseDNS
	case slow || among(context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT):
		return record.CauseConnectTimeout
	case unsafe:
		return record.CauseTLS
	case among(syscall.ECONNREFUSED):
		return record.CauseRefused
	case among(syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN):
		return record.CauseUnreachable
	}
	return record.CauseUnconnected
}
