//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how much longer than its duration a tool may take.
const grace = 30 * time.Second

type measurement struct {
	line     Line
	format   string
	duration time.Duration
	server   int
	artefact string
}

// measure runs a command and fills in the line; what goes wrong is its fault.
func (m *measurement) measure(command []string) {
	m.line.Values = map[string]float64{}
	output, window, err := m.watch(command)
	if err != nil {
		m.line.Fault = err.Error()
		return
	}
	if err := m.line.read(m.format, output, m.artefact); err != nil {
		m.line.Fault = fmt.Sprintf("read results of %s: %v", m.line.Tool, err)
		return
	}
	if requests := m.line.Values[achieved] * window.wall.Seconds(); requests > 0 && window.wall > 0 {
		m.line.Values[cpu] = float64(window.tool.Nanoseconds()) / 1000 / requests
	}
	if m.server != 0 && window.wall > 0 {
		m.line.Values[serverCores] = window.server.Seconds() / window.wall.Seconds()
	}
}

// window is the CPU time used between two moments.
type window struct{ wall, tool, server time.Duration }

// watch runs a command to its end, or kills it when that is long overdue.
func (m *measurement) watch(command []string) ([]byte, window, error) {
	runtime.LockOSThread() // Pdeathsig follows the thread
	defer runtime.UnlockOSThread()
	var output, complaint bytes.Buffer
	c := exec.Command(command[0], command[1:]...)
	c.Stdout, c.Stderr = &output, &complaint
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, window{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()

	var (
		w     window
		begin = time.After(m.duration * 3 / 10)
		end   = time.After(m.duration * 9 / 10)
		late  = time.After(m.duration + grace)
		from  moment
	)
	for {
		select {
		case <-begin:
			from = m.moment(c.Process.Pid)
		case <-end:
			w = m.moment(c.Process.Pid).since(from)
		case <-late:
			c.Process.Kill()
			<-ended
			return nil, w, fmt.Errorf("killed %v after its time", grace)
		case err := <-ended:
			if err != nil {
				return nil, w, fmt.Errorf("%w: %s", err, tail(complaint.Bytes()))
			}
			if w.tool == 0 {
				return nil, w, errors.New("ended before its time")
			}
			m.line.Values[memory] = float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
			return output.Bytes(), w, nil
		}
	}
}

// moment is a reading of the clocks.
type moment struct {
	at           time.Time
	tool, server time.Duration
}

func (m *measurement) moment(tool int) moment {
	return moment{time.Now(), cpuTime(tool), cpuTime(m.server)}
}

func (m moment) since(from moment) window {
	return window{m.at.Sub(from.at), m.tool - from.tool, m.server - from.server}
}

// cpuTime returns the CPU time of a process; 0 for one that is not there.
func cpuTime(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	const schedClock = 2 // CPUCLOCK_SCHED, in the low bits of a process's clock id
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// tail returns the end of what a tool complained.
func tail(b []byte) []byte {
	b = bytes.TrimSpace(b)
	return b[max(0, len(b)-300):]
}
