package drive

import (
	"math"
	"time"

	"golang.org/x/sys/windows"
)

// processCPU is the user and system time this process has used.
func processCPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	const tick = 100 // ns
	ticks := func(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(tick * (ticks(kernel) + ticks(user)))
}

// openFiles is how many handles this process may have: practically no limit.
func openFiles() int { return math.MaxInt32 }
