package drive

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryLimit is the heap at which the garbage collector works all the same: half of what this process may have.
func memoryLimit() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return fallbackMemory
	}
	total := int64(uint64(s.Totalram) * uint64(s.Unit))
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			total = min(total, n)
		}
	}
	return total / 2
}
