//go:build linux && (amd64 || arm64)

package wire

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is a non-blocking stream socket outside of Go's network poller, for callers that run their own epoll.
// Its calls cannot block and keep the goroutine's processor.
type Socket int

// Connect opens a socket and starts connecting it to addr. Once epoll reports it writable, Err tells how that went.
func Connect(addr netip.AddrPort) (Socket, error) {
	family, to := sockaddr(addr)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS && err != unix.EINTR {
		unix.Close(fd)
		return -1, err
	}
	return Socket(fd), nil
}

// ConnectUnix opens a socket and connects it to the one at path, as far as Connect does.
func ConnectUnix(path string) (Socket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if err == unix.EAGAIN { // never in progress, unlike TCP
		err = errors.New("the server's queue of connections is full")
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return Socket(fd), nil
}

func sockaddr(addr netip.AddrPort) (family int, to unix.Sockaddr) {
	ip := addr.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.As4()}
	}
	to6 := &unix.SockaddrInet6{Port: int(addr.Port()), Addr: ip.As16()}
	if zone, err := net.InterfaceByName(ip.Zone()); err == nil {
		to6.ZoneId = uint32(zone.Index)
	} else if n, err := strconv.ParseUint(ip.Zone(), 10, 32); err == nil {
		to6.ZoneId = uint32(n)
	}
	return unix.AF_INET6, to6
}

// StampReceives asks the kernel to stamp what arrives from now on.
func (s Socket) StampReceives() error {
	return unix.SetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
}

// Err is the error of a connection attempt, or nil when it succeeded.
func (s Socket) Err() error {
	n, err := unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if n != 0 {
		return unix.Errno(n)
	}
	return nil
}

// Close closes the socket.
func (s Socket) Close() { unix.Close(int(s)) }

// Send writes as much of b as the kernel takes at once; n may be less than len(b), and err EAGAIN.
func (s Socket) Send(b []byte) (n int, err error) {
	r, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(r), nil
}

// Quiet reports that nothing has come and that the peer has not closed, without waiting.
func (s Socket) Quiet() bool {
	var b [1]byte
	_, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s), uintptr(unsafe.Pointer(&b)), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return e == unix.EAGAIN
}

// Inbox is a reusable place for received bytes and their stamp. It must not be copied or moved once used.
type Inbox struct {
	buf []byte
	iov unix.Iovec
	msg unix.Msghdr
	ctl [128]byte
}

// NewInbox makes an inbox for reads of up to size bytes.
func NewInbox(size int) *Inbox {
	in := newAddressed()
	in.buf = make([]byte, size)
	return in
}

// newAddressed makes an inbox without room of its own.
func newAddressed() *Inbox {
	in := new(Inbox)
	in.msg.Iov = &in.iov
	in.msg.SetIovlen(1)
	in.msg.Control = &in.ctl[0]
	return in
}

// Receive reads what has come, without waiting. b is valid until the next call; it is empty at the end of the stream.
// stamp is when its last byte arrived, in ns since 1970, or 0 when the kernel did not say.
func (in *Inbox) Receive(s Socket) (b []byte, stamp int64, err error) {
	n, stamp, err := in.receiveInto(s, in.buf)
	return in.buf[:n], stamp, err
}

func (in *Inbox) receiveInto(s Socket, buf []byte) (n int, stamp int64, err error) {
	in.iov.Base = &buf[0]
	in.iov.SetLen(len(buf))
	in.msg.SetControllen(len(in.ctl))
	r, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s), uintptr(unsafe.Pointer(&in.msg)), unix.MSG_DONTWAIT)
	if e != 0 {
		return 0, 0, e
	}
	return int(r), receiveStamp(in.ctl[:in.msg.Controllen]), nil
}

// receiveStamp finds the software receive stamp among a message's control data.
func receiveStamp(ctl []byte) int64 {
	const header = 16 // cmsghdr on 64-bit systems: length, level, type
	for len(ctl) >= header {
		size := int(binary.NativeEndian.Uint64(ctl))
		level := int32(binary.NativeEndian.Uint32(ctl[8:]))
		kind := int32(binary.NativeEndian.Uint32(ctl[12:]))
		if size < header || size > len(ctl) {
			return 0
		}
		if level == unix.SOL_SOCKET && kind == unix.SO_TIMESTAMPING && size >= header+16 {
			sec := int64(binary.NativeEndian.Uint64(ctl[header:]))
			nsec := int64(binary.NativeEndian.Uint64(ctl[header+8:]))
			return sec*1e9 + nsec
		}
		ctl = ctl[min(len(ctl), (size+7)&^7):]
	}
	return 0
}
