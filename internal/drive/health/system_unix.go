//go:build unix && !linux

package health

import (
	"syscall"

	"tare/internal/record"
)

// system is what can be had without a /proc: the process's own use.
type system struct {
	cpuMs float64
	known bool
}

func readSystem() system {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return system{}
	}
	return system{cpuMs: float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6, known: true}
}

func (s *system) since(earlier *system, h *record.Health) {
	if s.known && earlier.known {
		h.CPU = &record.Spent{Ms: s.cpuMs - earlier.cpuMs}
	}
}
