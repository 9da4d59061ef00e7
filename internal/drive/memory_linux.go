package drive

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// allMemory is how many bytes this process may have.
func allMemory() int64 {
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
	return total
}
