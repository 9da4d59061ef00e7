package clock

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// runQueue is the second number of the thread's schedstat: ns spent waiting for a processor.
func runQueue() time.Duration {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	ns, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
}
