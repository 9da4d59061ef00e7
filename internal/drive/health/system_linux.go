package health

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/record"
)

// system is the kernel's counters as they stand at one moment; nil for what it does not tell.
type system struct {
	cores      []core
	cpu        *record.Spent
	runQueue   *record.Spent
	throttling *record.Throttling
	tcp        *record.TCP
	ports      *record.Room
	files      *record.Room
}

// core is one processor's time since boot, in ticks.
type core struct{ busy, steal, all int64 }

func readSystem() system {
	return system{
		cores: parseCores(read("/proc/stat")), cpu: readCPU(), runQueue: readRunQueue(), throttling: readThrottling(),
		tcp: parseTCP(read("/proc/net/snmp")), ports: readPorts(), files: readFiles(),
	}
}

// since fills in what happened from the earlier reading on.
func (s *system) since(earlier *system, h *record.Health) {
	if len(s.cores) == len(earlier.cores) {
		for i, c := range s.cores {
			h.Cores = append(h.Cores, c.since(earlier.cores[i]))
		}
	}
	h.CPU = spent(earlier.cpu, s.cpu)
	h.RunQueue = spent(earlier.runQueue, s.runQueue)
	if a, b := earlier.throttling, s.throttling; a != nil && b != nil {
		h.Throttling = &record.Throttling{Periods: b.Periods - a.Periods, Throttled: b.Throttled - a.Throttled, StoodMs: b.StoodMs - a.StoodMs}
	}
	if a, b := earlier.tcp, s.tcp; a != nil && b != nil {
		h.TCP = &record.TCP{Sent: b.Sent - a.Sent, Resents: b.Resents - a.Resents}
	}
	h.Ports, h.Files = s.ports, s.files
}

// spent is the difference of two readings. Threads that have ended take what they had waited with them.
func spent(earlier, now *record.Spent) *record.Spent {
	if earlier == nil || now == nil {
		return nil
	}
	return &record.Spent{Ms: max(now.Ms-earlier.Ms, 0)}
}

func (c core) since(earlier core) record.Core {
	all := float64(max(c.all-earlier.all, 1))
	return record.Core{Busy: float64(c.busy-earlier.busy) / all, Steal: float64(c.steal-earlier.steal) / all}
}

// parseCores reads /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal of each processor, in ticks.
func parseCores(text string) (all []core) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		var ticks [8]int64
		for i := range ticks {
			ticks[i], _ = strconv.ParseInt(fields[i+1], 10, 64)
		}
		c := core{steal: ticks[7]}
		for i, n := range ticks {
			c.all += n
			if i != 3 && i != 4 && i != 7 {
				c.busy += n
			}
		}
		all = append(all, c)
	}
	return all
}

func readCPU() *record.Spent {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return nil
	}
	return &record.Spent{Ms: float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6}
}

// readRunQueue adds up the second number of each thread's schedstat: ns spent waiting for a processor.
func readRunQueue() *record.Spent {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var waited *record.Spent
	for _, t := range tasks {
		fields := strings.Fields(read("/proc/self/task/" + t.Name() + "/schedstat"))
		if len(fields) < 2 {
			continue
		}
		if waited == nil {
			waited = new(record.Spent)
		}
		ns, _ := strconv.ParseInt(fields[1], 10, 64)
		waited.Ms += float64(ns) / 1e6
	}
	return waited
}

// readThrottling adds up the counters of the process's own control group and of those above it, each of which may have a limit.
func readThrottling() *record.Throttling {
	folders := record.ControlGroups("cpu")
	return throttlingIn(folders[0], folders[len(folders)-1])
}

// throttlingIn looks into the folders from own up to root. A group that has no limit has no counters, and stood for nothing; nil when no
// group could be read.
func throttlingIn(own, root string) (all *record.Throttling) {
	for at := own; ; at = filepath.Dir(at) {
		if text := read(filepath.Join(at, "cpu.stat")); text != "" {
			if all == nil {
				all = new(record.Throttling)
			}
			if t := parseThrottling(text); t != nil {
				all.Periods, all.Throttled, all.StoodMs = all.Periods+t.Periods, all.Throttled+t.Throttled, all.StoodMs+t.StoodMs
			}
		}
		if len(at) <= len(root) {
			return all
		}
	}
}

// parseThrottling reads a cpu.stat; nil when no CPU limit is accounted for in it.
func parseThrottling(text string) *record.Throttling {
	counts := map[string]int64{}
	for line := range strings.Lines(text) {
		if name, n, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			counts[name], _ = strconv.ParseInt(n, 10, 64)
		}
	}
	if _, ok := counts["nr_throttled"]; !ok {
		return nil
	}
	stood := float64(counts["throttled_usec"])/1e3 + float64(counts["throttled_time"])/1e6
	return &record.Throttling{Periods: counts["nr_periods"], Throttled: counts["nr_throttled"], StoodMs: stood}
}

// parseTCP reads /proc/net/snmp, in which a line of names comes before one of values.
func parseTCP(text string) *record.TCP {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		var t record.TCP
		for i := range min(len(names), len(fields)) {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			switch names[i] {
			case "OutSegs":
				t.Sent = n
			case "RetransSegs":
				t.Resents = n
			}
		}
		return &t
	}
	return nil
}

// readPorts takes every TCP socket for one with a local port out of the range: those to different servers may share one, so
// that there may be more room than it says.
func readPorts() *record.Room {
	used, ok := parseSockets(read("/proc/net/sockstat"))
	edges := strings.Fields(read("/proc/sys/net/ipv4/ip_local_port_range"))
	if !ok || len(edges) != 2 {
		return nil
	}
	low, _ := strconv.ParseInt(edges[0], 10, 64)
	high, _ := strconv.ParseInt(edges[1], 10, 64)
	return &record.Room{Used: used, Limit: high - low + 1}
}

func parseSockets(text string) (n int64, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TCP:" {
			continue
		}
		for i := 1; i+1 < len(fields); i += 2 {
			if fields[i] == "inuse" || fields[i] == "tw" {
				count, _ := strconv.ParseInt(fields[i+1], 10, 64)
				n += count
			}
		}
		return n, true
	}
	return 0, false
}

// readFiles counts descriptors by the size of their folder, as Linux 6.2 and later give it; else by listing it.
func readFiles() *record.Room {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return nil
	}
	info, err := os.Stat("/proc/self/fd")
	if err != nil {
		return nil
	}
	used := info.Size()
	if used == 0 {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return nil
		}
		used = int64(len(names))
	}
	return &record.Room{Used: used, Limit: int64(min(limit.Cur, 1<<62))}
}

// read gives a small file of the kernel, empty when there is none.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
