package record

import (
	"bufio"
	"cmp"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func inspect(e *Environment) {
	e.Kernel = line("/proc/sys/kernel/osrelease")
	e.CPU = field("/proc/cpuinfo", "model name")
	e.CPUs = max(1, min(e.CPUs, cpuQuota()))
	e.MemoryMiB = memoryMiB()
	e.OpenFiles = openFiles()
	e.PortRange = strings.ReplaceAll(line("/proc/sys/net/ipv4/ip_local_port_range"), "\t", "-")
	e.Clock = line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

// cpuQuota is the whole number of CPUs that the control group's bandwidth limit leaves.
func cpuQuota() int {
	groups := ControlGroups("cpu")
	quota, period, _ := strings.Cut(told(groups, "cpu.max"), " ")
	if quota == "" {
		quota, period = told(groups, "cpu.cfs_quota_us"), told(groups, "cpu.cfs_period_us")
	}
	q, errQ := strconv.Atoi(quota)
	p, errP := strconv.Atoi(period)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return math.MaxInt
	}
	return q / p
}

// memoryMiB is the machine's memory or the control group's limit, whichever is less.
func memoryMiB() int64 {
	groups := ControlGroups("memory")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	limit := cmp.Or(told(groups, "memory.max"), told(groups, "memory.limit_in_bytes"))
	if bytes, err := strconv.ParseInt(limit, 10, 64); err == nil && bytes > 0 {
		kib = min(kib, bytes>>10)
	}
	return kib >> 10
}

// told is the first line of the file of that name in the first of the folders that has it.
func told(folders []string, name string) (text string) {
	for _, at := range folders {
		text = cmp.Or(text, line(path.Join(at, name)))
	}
	return text
}

func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// line is the first line of a file, empty when it cannot be read.
func line(path string) string {
	b, _ := os.ReadFile(path)
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

// field is the value of the first line "name: value" of a file.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
