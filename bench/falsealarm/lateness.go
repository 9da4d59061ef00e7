package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tare/internal/record"
)

// lateness is how late an idle loop wakes up, as quantiles: level q by late. Between them it is interpolated in log(1−q) and log(late).
type lateness []struct {
	beyond float64 // 1−q, falling
	late   time.Duration
}

// published is the slip of docs/accuracy.md at 1,000 requests/s, of 60,126 requests: p50, p99 and the longest.
var published = lateness{{1, 200 * time.Nanosecond}, {0.5, 4400 * time.Nanosecond}, {0.01, 203 * time.Microsecond}, {1.0 / 60126, 7700 * time.Microsecond}}

func (l lateness) draw(r *rand.Rand) time.Duration { return l.at(1 - r.Float64()) }

func (l lateness) at(beyond float64) time.Duration {
	for i := 1; i < len(l); i++ {
		if a, b := l[i-1], l[i]; beyond >= b.beyond {
			share := math.Log(a.beyond/beyond) / math.Log(a.beyond/b.beyond)
			return time.Duration(float64(a.late) * math.Pow(float64(b.late)/float64(a.late), share))
		}
	}
	return l[len(l)-1].late // nothing longer was ever seen
}

// measuredIn is the lateness of a run: how late its requests were sent that had a connection, and its stamped events read.
func measuredIn(dir string) (lateness, error) {
	var all []time.Duration
	_, err := record.ReadLog(dir, func(x *record.Exchange) error {
		if sent, ok := x.FirstWrite.Get(); ok && x.Delay != record.DelayNoConnection && x.Delay != record.DelayInFlightCap {
			all = append(all, sent-x.Due)
		}
		for i := range x.Events {
			if e := &x.Events[i]; e.Flags&record.FlagStamped != 0 {
				all = append(all, e.UserAt-e.KernelAt)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(all) < 1000 {
		return nil, fmt.Errorf("%s has %d sends and stamped events, too few for a distribution: want 1000", dir, len(all))
	}
	slices.Sort(all)
	var l lateness
	n := float64(len(all))
	for beyond := 1.0; beyond > 1/n; beyond *= 0.9 {
		l = append(l, lateness{{beyond, max(all[int((1-beyond)*n)], time.Nanosecond)}}...)
	}
	return append(l, lateness{{1 / n, all[len(all)-1]}}...), nil
}
