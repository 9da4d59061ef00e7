package main

import (
	"fmt"
	"strconv"
	"strings"

	"tare/internal/plan"
	"tare/internal/record"
)

// spareFiles are open files besides connections: logs, timers, the terminal.
const spareFiles = 64

// demand is how many connections a plan needs at the same time.
type demand struct {
	sure     int64 // stated: closed-loop concurrency, dialled connections
	possible int64 // an open loop whose every request lasts until its time-out
}

func demandOf(p *plan.Plan) (d demand) {
	d.sure = int64(p.Spec.Client.Connections)
	for _, s := range p.Stages {
		switch {
		case s.Closed:
			d.sure = max(d.sure, int64(s.Concurrency))
		case s.MaxInFlight > 0:
			d.possible = max(d.possible, int64(min(s.Expected, float64(s.MaxInFlight))))
		default:
			d.possible = max(d.possible, int64(min(s.Expected, s.Peak()*p.Spec.Target.Timeout.Seconds())))
		}
	}
	return d
}

// limit is what the system allows of something that each connection takes one of.
type limit struct {
	name      string
	known     bool
	available int64 // connections
	remedy    string
}

// limitsOf lists the limits of this process. The Go runtime has already raised the soft limit of open files to the hard one.
func limitsOf(env record.Environment) []limit {
	return []limit{
		{
			name:      "open files (RLIMIT_NOFILE)",
			known:     env.OpenFiles > 0,
			available: max(0, int64(min(env.OpenFiles, 1<<40))-spareFiles),
			remedy:    "ulimit -n 1024 or more; where that is refused raise the hard limit: ulimit -Hn as root, LimitNOFILE= in a systemd unit, --ulimit nofile= for a container",
		},
		{
			name:      "local ports to one address (" + env.PortRange + ")",
			known:     portCount(env.PortRange) > 0,
			available: portCount(env.PortRange),
			remedy:    "widen the range: sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
		},
	}
}

// checkLimits holds a demand against the limits. What surely does not fit is an error, what may not fit a warning.
func checkLimits(d demand, limits []limit) (warnings []string, err error) {
	for _, l := range limits {
		switch {
		case !l.known:
		case l.available == 0:
			return nil, misused(fmt.Errorf("%s leave none for connections, %d are for other uses", l.name, spareFiles), l.remedy)
		case d.sure > l.available:
			return nil, misused(fmt.Errorf("%d connections are asked for, and %s allow %d", d.sure, l.name, l.available), l.remedy)
		case d.possible > l.available:
			warnings = append(warnings, fmt.Sprintf(
				"if replies last until the time-out, %d connections are open at once, and %s allow %d", d.possible, l.name, l.available))
		}
	}
	return warnings, nil
}

// portCount is the size of a range "32768-60999"; 0 when it is unknown.
func portCount(ports string) int64 {
	first, last, _ := strings.Cut(ports, "-")
	lo, errLo := strconv.ParseInt(first, 10, 64)
	hi, errHi := strconv.ParseInt(last, 10, 64)
	if errLo != nil || errHi != nil {
		return 0
	}
	return hi - lo + 1
}
