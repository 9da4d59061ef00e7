//go:build linux && (amd64 || arm64)

package wire

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// HasStamps says whether this system stamps what a TCP connection receives.
const HasStamps = true

// Stamped is a TCP connection that keeps the kernel's receive stamp of its last read.
type Stamped struct {
	net.Conn
	raw   syscall.RawConn
	in    *Inbox
	into  []byte
	n     int
	err   error
	last  int64
	reads int
	recv  func(fd uintptr) bool // made once: a read allocates nothing
}

// Stamp turns receive stamps on for c. ok is false when c is no TCP connection, or the kernel refuses.
func Stamp(c net.Conn) (s *Stamped, ok bool) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, false
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = Socket(fd).StampReceives() }); err != nil || set != nil {
		return nil, false
	}
	s = &Stamped{Conn: c, raw: raw, in: newAddressed()}
	s.recv = func(fd uintptr) bool {
		n, stamp, err := s.in.receiveInto(Socket(fd), s.into)
		if err == unix.EAGAIN || err == unix.EINTR {
			return false
		}
		s.n, s.last, s.err = n, stamp, err
		s.reads++
		return true
	}
	return s, true
}

// Read reads as any connection does; Last then tells when the last byte of b had arrived.
func (s *Stamped) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.into = b
	if err := s.raw.Read(s.recv); err != nil {
		return 0, err
	}
	if s.err != nil {
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: s.RemoteAddr(), Err: s.err}
	}
	if s.n == 0 {
		return 0, io.EOF
	}
	return s.n, nil
}

// Quiet reports that nothing is there to be read, and that the peer has not closed, whether or not a Read is under way.
func (s *Stamped) Quiet() (quiet bool) {
	err := s.raw.Control(func(fd uintptr) { quiet = Socket(fd).Quiet() })
	return err == nil && quiet
}

// Reads counts the reads of the socket. While it stays the same, a layer above has given out bytes of one read.
func (s *Stamped) Reads() int { return s.reads }

// Last is the arrival of the last byte read, in ns since 1970; 0 when the kernel did not say.
func (s *Stamped) Last() int64 { return s.last }
