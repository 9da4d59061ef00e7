package record

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func inspect(e *Environment) {
	e.Kernel, _ = unix.Sysctl("kern.osrelease")
	e.CPU, _ = unix.Sysctl("machdep.cpu.brand_string")
	if bytes, err := unix.SysctlUint64("hw.memsize"); err == nil {
		e.MemoryMiB = int64(bytes >> 20)
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		e.OpenFiles = limit.Cur
	}
	first, err1 := unix.SysctlUint32("net.inet.ip.portrange.first")
	last, err2 := unix.SysctlUint32("net.inet.ip.portrange.last")
	if err1 == nil && err2 == nil {
		e.PortRange = fmt.Sprintf("%d-%d", first, last)
	}
}
