//go:build !linux || (!amd64 && !arm64)

package wire

import (
	"errors"
	"net"
	"time"
)

// HasStamps says whether this system stamps what a TCP connection receives.
const HasStamps = false

// Stamped is a TCP connection with receive stamps, which this system does not have.
type Stamped struct{ net.Conn }

// Stamping is not to be had on this system.
type Stamping struct{}

// KeepStamping is an error on this system.
func KeepStamping(time.Duration) (*Stamping, error) {
	return nil, errors.New("this system has no receive stamps")
}

// Close does nothing.
func (*Stamping) Close() {}

// Stamp is not to be had on this system.
func Stamp(net.Conn) (*Stamped, bool) { return nil, false }

// Quiet is always true.
func (*Stamped) Quiet() bool { return true }

// Reads is always 0.
func (*Stamped) Reads() int { return 0 }

// Last is always 0.
func (*Stamped) Last() int64 { return 0 }
