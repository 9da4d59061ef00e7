package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is what the transport knows of a connection.
type socket struct {
	fd       int
	serial   int32   // tells this connection from earlier ones with the same descriptor
	out      []byte  // not yet taken by the kernel
	armed    bool    // EPOLLOUT is asked for
	draining bool    // our end is said; what comes is thrown away
	ending   bool    // to be closed once out is empty
	how      closing // then
	peer     *peer   // of the portable transport
}

// loop is one epoll loop on a thread of its own: it owns its connections and its engine, and shares nothing.
type loop struct {
	clock
	engine   engine
	hold     bool // keep the Go processor while waiting
	spin     bool // never wait
	stamped  bool // read with the kernel's receive stamps
	epoll    int
	wake     int     // eventfd: it is time to end
	listener int     // -1 on loops that are given their connections
	mates    []int   // epoll descriptors of all loops, this one's included: they get accepted connections in turn
	serial   int32   // of the connection accepted last
	full     bool    // out of descriptors: not accepting
	conns    []*conn // by descriptor
	released []int32 // serial of the connection that a descriptor had last
	offset   int64   // CLOCK_REALTIME minus CLOCK_MONOTONIC, nanoseconds
	kept     int64   // when the house was last kept
	events   [128]unix.EpollEvent
	in       []byte
	control  [128]byte
	iov      unix.Iovec
	msg      unix.Msghdr
	stopping *atomic.Bool
}

const (
	backlog   = 1 << 14
	houseTime = int64(100 * time.Millisecond)
	holdTime  = int64(time.Millisecond) // longest wait while the Go processor is held
	maxUnsent = 64 << 20                // bytes kept for a client that does not read; then it is cut off
)

// linuxClock counts as CLOCK_MONOTONIC does, and reads without a system call.
func linuxClock() clock {
	k := clock{base: time.Now()}
	best := int64(-1)
	for range 9 {
		var ts unix.Timespec
		before := int64(time.Since(k.base))
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			return k
		}
		took := int64(time.Since(k.base)) - before
		if best < 0 || took < best {
			best, k.mono = took, ts.Nano()-before-took/2
		}
	}
	return k
}

func portableClock() clock { return linuxClock() }

// transport runs cfg.Loops epoll loops on one listener.
func transport(ctx context.Context, cfg Config, ready func(addr string), build func(w wire) engine) error {
	listener, address, err := listen(cfg.Addr, !cfg.Null)
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stopping atomic.Bool
	loops, err := makeLoops(cfg, listener, &stopping, build)
	defer closeLoops(loops)
	if err != nil {
		return err
	}
	ready(address)
	var all sync.WaitGroup
	faults := make([]error, len(loops))
	for i, l := range loops {
		all.Go(func() {
			defer cancel()
			faults[i] = l.run()
		})
	}
	<-ctx.Done()
	stopping.Store(true)
	for _, l := range loops {
		unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	all.Wait()
	return errors.Join(faults...)
}

func makeLoops(cfg Config, listener int, stopping *atomic.Bool, build func(w wire) engine) (loops []*loop, err error) {
	k := linuxClock()
	hold := cfg.HoldCPU && runtime.GOMAXPROCS(0) > cfg.Loops // or nothing else would ever run
	for i := range cfg.Loops {
		l := &loop{clock: k, hold: hold, spin: cfg.Spin, stamped: !cfg.Null, listener: -1, stopping: stopping, in: make([]byte, 128<<10)}
		if i == 0 {
			l.listener = listener
		}
		l.engine = build(l)
		l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return loops, fmt.Errorf("create epoll: %w", err)
		}
		l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			unix.Close(l.epoll)
			return loops, fmt.Errorf("create eventfd: %w", err)
		}
		loops = append(loops, l)
		if err = l.watch(l.wake); err != nil {
			return loops, err
		}
	}
	for _, l := range loops {
		loops[0].mates = append(loops[0].mates, l.epoll)
	}
	return loops, loops[0].watch(listener)
}

func closeLoops(loops []*loop) {
	for _, l := range loops {
		unix.Close(l.epoll)
		unix.Close(l.wake)
	}
}

// listen opens the one listening socket. Its options pass on to the connections it accepts. It never shares its port.
func listen(addr string, stamped bool) (fd int, address string, err error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return -1, "", fmt.Errorf("listen: %w", err)
	}
	family, local := sockaddr(tcp)
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, "", fmt.Errorf("listen: socket: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	options := [][3]int{
		{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
	}
	if stamped {
		options = append(options, [3]int{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1})
	}
	for _, o := range options {
		if err = unix.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil {
			return -1, "", fmt.Errorf("listen: set option: %w", err)
		}
	}
	if err = unix.Bind(fd, local); err != nil {
		return -1, "", fmt.Errorf("listen on %s: %w", addr, err)
	}
	if err = unix.Listen(fd, backlog); err != nil {
		return -1, "", fmt.Errorf("listen on %s: %w", addr, err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return -1, "", fmt.Errorf("listen: read address: %w", err)
	}
	return fd, boundAddress(tcp, bound), nil
}

func sockaddr(a *net.TCPAddr) (family int, sa unix.Sockaddr) {
	if ip := a.IP.To4(); ip != nil {
		return unix.AF_INET, &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip)}
	}
	v6 := &unix.SockaddrInet6{Port: a.Port}
	copy(v6.Addr[:], a.IP.To16())
	return unix.AF_INET6, v6
}

func boundAddress(asked *net.TCPAddr, bound unix.Sockaddr) string {
	a := *asked
	a.Port = port(bound)
	return a.String()
}

func port(sa unix.Sockaddr) int {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return sa.Port
	case *unix.SockaddrInet6:
		return sa.Port
	}
	return 0
}

func (l *loop) watch(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watch descriptor: %w", err)
	}
	return nil
}

// run turns until it is told to stop.
func (l *loop) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	defer l.closeAll()
	defer l.engine.stop()
	for !l.stopping.Load() {
		now := l.now()
		l.engine.advance(now)
		if now-l.kept >= houseTime || l.kept == 0 {
			l.keepHouse(now)
		}
		n, err := l.wait()
		if err != nil {
			return err
		}
		for i := range n {
			l.turnTo(&l.events[i])
			if at, ok := l.engine.next(); ok {
				if now := l.now(); at <= now {
					l.engine.advance(now)
				}
			}
		}
	}
	return nil
}

func (l *loop) keepHouse(now int64) {
	l.kept = now
	l.offset = wallOffset(l.now)
	l.engine.housekeep()
}

// wait returns when a socket is ready, when the engine wants to advance, or when the house is to be kept.
func (l *loop) wait() (int, error) {
	now := l.now()
	span := l.kept + houseTime - now
	if at, ok := l.engine.next(); ok {
		span = min(span, at-now)
	}
	span = max(span, 0)
	switch {
	case l.spin:
		span = 0
	case l.hold:
		span = min(span, holdTime)
	}
	n, e := l.poll(&timespec{span / int64(time.Second), span % int64(time.Second)})
	switch e {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("wait for events (Linux 5.11 or newer is needed): %w", e)
}

// timespec is the kernel's, with 64 bits on every architecture.
type timespec struct{ sec, nsec int64 }

// poll waits at most for the given time. It gives the Go processor away meanwhile, unless told to hold it or not to wait.
func (l *loop) poll(timeout *timespec) (uintptr, syscall.Errno) {
	if l.hold || timeout.sec|timeout.nsec == 0 {
		n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])),
			uintptr(len(l.events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
		return n, e
	}
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])),
		uintptr(len(l.events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
	return n, e
}

func (l *loop) turnTo(e *unix.EpollEvent) {
	fd := int(e.Fd)
	switch {
	case fd == l.listener:
		l.accept()
		return
	case fd == l.wake:
		return
	}
	c, ok := l.conn(fd, e.Pad)
	if !ok {
		return
	}
	if e.Events&unix.EPOLLOUT != 0 && len(c.out) > 0 {
		l.flush(c)
		if l.conns[fd] != c {
			return
		}
	}
	if e.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		l.read(c)
	}
}

// accept takes the connections that wait, and deals them out in turn.
func (l *loop) accept() {
	for range 64 {
		fd, sa, err := unix.Accept4(l.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			l.full = true
			unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, l.listener, nil)
			return
		case unix.ECONNABORTED, unix.EINTR:
			continue
		default:
			return
		}
		l.serial = max(l.serial+1, 1)
		mate := l.mates[int(l.serial)%len(l.mates)]
		if mate == l.epoll {
			c, _ := l.conn(fd, l.serial)
			c.port = port(sa)
		}
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd), Pad: l.serial}
		unix.EpollCtl(mate, unix.EPOLL_CTL_ADD, fd, &e)
	}
}

// conn is the connection with descriptor fd, made when it is first seen. ok is false when it has been closed since the
// event was fetched.
func (l *loop) conn(fd int, serial int32) (c *conn, ok bool) {
	for fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*conn, len(l.conns)+256)...)
		l.released = append(l.released, make([]int32, len(l.conns)-len(l.released))...)
	}
	if l.released[fd] == serial {
		return nil, false
	}
	if l.conns[fd] == nil {
		l.conns[fd] = &conn{socket: socket{fd: fd, serial: serial}}
	}
	return l.conns[fd], l.conns[fd].serial == serial
}

// read takes what has come, once: epoll tells again when there is more.
func (l *loop) read(c *conn) {
	n, at, stamped, err := l.receive(c.fd)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
	case err != 0 || n == 0:
		l.drop(c)
	case c.draining || c.gone:
	default:
		c.at, c.stamped = at, stamped
		feed(l.engine, c, l.in[:n])
	}
}

// receive reads once and tells when the newest byte had arrived.
func (l *loop) receive(fd int) (n int, at int64, stamped bool, err syscall.Errno) {
	if !l.stamped {
		r, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&l.in[0])), uintptr(len(l.in)), unix.MSG_DONTWAIT, 0, 0)
		return int(r), l.now(), false, e
	}
	l.iov.Base = &l.in[0]
	l.iov.SetLen(len(l.in))
	l.msg.Iov = &l.iov
	l.msg.SetIovlen(1)
	l.msg.Control = &l.control[0]
	l.msg.SetControllen(len(l.control))
	r, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&l.msg)), unix.MSG_DONTWAIT)
	if e != 0 {
		return 0, 0, false, e
	}
	at, stamped = l.stamp()
	return int(r), at, stamped, 0
}

// stamp is the kernel's receive stamp beside the newest read, or the time now when there is none.
func (l *loop) stamp() (at int64, stamped bool) {
	now := l.now()
	header := (*unix.Cmsghdr)(unsafe.Pointer(&l.control[0]))
	if int(l.msg.Controllen) < unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{}))) ||
		header.Level != unix.SOL_SOCKET || header.Type != unix.SCM_TIMESTAMPNS {
		return now, false
	}
	ts := (*unix.Timespec)(unsafe.Pointer(&l.control[unix.CmsgLen(0)]))
	return min(ts.Nano()-l.offset, now), true
}

// drop ends a connection that the client has closed, or that broke.
func (l *loop) drop(c *conn) {
	if !c.gone {
		l.engine.closed(c)
	}
	l.release(c, closeWhole)
}

// release closes the descriptor.
func (l *loop) release(c *conn, how closing) {
	if how == closeReset {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
	}
	l.conns[c.fd], l.released[c.fd] = nil, c.serial
	c.out = nil
	unix.Close(c.fd)
	if l.full {
		l.full = l.watch(l.listener) != nil
	}
}

func (l *loop) closeAll() {
	for _, c := range l.conns {
		if c != nil {
			unix.Close(c.fd)
		}
	}
}

// send makes one send call, unless earlier bytes wait. A broken connection is noticed by the read that epoll then calls for.
func (l *loop) send(c *conn, b []byte) bool {
	if len(c.out) > maxUnsent {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
		return false
	}
	if len(c.out) > 0 {
		c.out = append(c.out, b...)
		return false
	}
	n := push(c.fd, b)
	if n == len(b) {
		return true
	}
	c.out = append(c.out, b[n:]...)
	l.arm(c, true)
	return false
}

// push sends what the kernel takes at once. On an error other than a full buffer it claims to have sent all.
func push(fd int, b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0:
		return int(n)
	case unix.EAGAIN, unix.EINTR:
		return 0
	}
	return len(b)
}

func (l *loop) arm(c *conn, on bool) {
	if c.armed == on {
		return
	}
	c.armed = on
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd), Pad: c.serial}
	if on {
		e.Events |= unix.EPOLLOUT
	}
	unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, c.fd, &e)
}

// flush sends what has waited.
func (l *loop) flush(c *conn) {
	n := push(c.fd, c.out)
	c.out = append(c.out[:0], c.out[n:]...)
	if len(c.out) > 0 {
		return
	}
	c.out = nil
	l.arm(c, false)
	if c.ending {
		l.shut(c)
	}
}

// close ends c when all has been sent; a reset does not wait.
func (l *loop) close(c *conn, how closing) {
	c.ending, c.how = true, how
	if len(c.out) == 0 || how == closeReset {
		l.shut(c)
	}
}

func (l *loop) shut(c *conn) {
	if c.how == closeDrain {
		c.draining = true
		unix.Shutdown(c.fd, unix.SHUT_WR)
		return
	}
	l.release(c, c.how)
}
