package record

import (
	"bufio"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func inspect(e *Environment) {
	group := cgroupDir()
	e.Kernel = line("/proc/sys/kernel/osrelease")
	e.CPU = field("/proc/cpuinfo", "model name")
	e.CPUs = max(1, min(e.CPUs, cpuQuota(group)))
	e.MemoryMiB = memoryMiB(group)
	e.OpenFiles = openFiles()
	e.PortRange = strings.ReplaceAll(line("/proc/sys/net/ipv4/ip_local_port_range"), "\t", "-")
	e.Clock = line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

// cgroupDir is where this process's cgroup (version 2) is seen; inside a container that is the root.
func cgroupDir() string {
	const root = "/sys/fs/cgroup"
	_, own, ok := strings.Cut(line("/proc/self/cgroup"), "0::")
	if !ok {
		return root
	}
	if _, err := os.Stat(path.Join(root, own, "cgroup.procs")); err != nil {
		return root
	}
	return path.Join(root, own)
}

// cpuQuota is the whole number of CPUs that the cgroup's bandwidth limit leaves.
func cpuQuota(group string) int {
	quota, period, _ := strings.Cut(line(path.Join(group, "cpu.max")), " ")
	if quota == "" {
		quota = line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
		period = line("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	}
	q, errQ := strconv.Atoi(quota)
	p, errP := strconv.Atoi(period)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return math.MaxInt
	}
	return q / p
}

// memoryMiB is the machine's memory or the cgroup's limit, whichever is less.
func memoryMiB(group string) int64 {
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	limit := line(path.Join(group, "memory.max"))
	if limit == "" {
		limit = line("/sys/fs/cgroup/memory/memory.limit_in_bytes")
	}
	if bytes, err := strconv.ParseInt(limit, 10, 64); err == nil && bytes > 0 {
		kib = min(kib, bytes>>10)
	}
	return kib >> 10
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
