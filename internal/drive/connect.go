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

// unreached names a server once, and says why no connection to it could be had: errors of the network name it, too.
type unreached struct {
	server string // its address
	cause  error
}

func (u unreached) Error() string {
	cause := u.cause
	if op, ok := errors.AsType[*net.OpError](cause); ok && op.Op == "dial" {
		cause = op.Err
	}
	return fmt.Sprintf("connect to %s: %v", u.server, cause)
}

func (u unreached) Unwrap() error { return u.cause }

// errClosedAtOnce says that a new connection was gone before it could be used.
var errClosedAtOnce = errors.New("the server closed the connection at once")

// unanswered says that a connection did not come about in time.
type unanswered time.Duration

func (u unanswered) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(u)) }

// handshakeError is why TLS could not be agreed on.
type handshakeError struct{ err error }

func (h handshakeError) Error() string { return h.err.Error() }
func (h handshakeError) Unwrap() error { return h.err }

// refusal is how a server ends a TLS session that it does not want: in TLS 1.3 for a missing certificate, behind the
// handshake as the client sees it. It is nil for any other error.
func refusal(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return handshakeError{fmt.Errorf("the server refused the TLS session: %w", op.Err)}
	}
	return nil
}

// shutOut says how a flight ends whose server has refused the TLS session.
func shutOut(at time.Duration, err error) verdict {
	return verdict{cause: record.CauseTLS, at: at, err: refusal(err).Error()}
}

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
