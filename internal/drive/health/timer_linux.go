package health

import (
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileTimer is a timer in the form of a file, so that Go's poller waits for it as it waits for sockets.
type fileTimer struct{ file *os.File }

func startTimer(every time.Duration) (timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	t := fileTimer{os.NewFile(uintptr(fd), "canary")}
	span := unix.NsecToTimespec(int64(every))
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: span, Value: span}, nil); err != nil {
		t.file.Close() // of no use now
		return nil, os.NewSyscallError("timerfd_settime", err)
	}
	return t, nil
}

func (t fileTimer) wait() (times int64, err error) {
	var b [8]byte
	if _, err := t.file.Read(b[:]); err != nil {
		return 0, err
	}
	return int64(binary.NativeEndian.Uint64(b[:])), nil
}

func (t fileTimer) close() error { return t.file.Close() }
