//go:build linux

package main

import (
	"runtime/metrics"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what the process has consumed so far.
type usage struct {
	cpu     time.Duration // user and system
	objects uint64        // allocated
	bytes   uint64        // allocated
}

func usageNow() usage {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return usage{
		cpu:     time.Duration(u.Utime.Nano() + u.Stime.Nano()),
		objects: samples[0].Value.Uint64(),
		bytes:   samples[1].Value.Uint64(),
	}
}

// summary is the line printed. All but the totals is of the steady window.
type summary struct {
	Tool     string  `json:"tool"`
	AskedPS  float64 `json:"asked_per_s,omitempty"`
	Conc     int     `json:"concurrency,omitempty"`
	Planned  int     `json:"planned"`
	Sent     int     `json:"sent"`
	Failed   int     `json:"failed"`
	WindowS  float64 `json:"window_s"`
	RatePS   float64 `json:"achieved_per_s"` // completed in the window
	TokensPS float64 `json:"tokens_per_s"`   // of the requests completed in the window
	CPUUs    float64 `json:"cpu_us_per_request"`
	Allocs   float64 `json:"allocs_per_request"`
	AllocB   float64 `json:"alloc_bytes_per_request"`
	InFlight int64   `json:"in_flight_at_end"`
	SlipMs   *dist   `json:"slip_ms,omitempty"` // of the requests due in the window
	TTFTMs   *dist   `json:"ttft_ms,omitempty"`
	E2EMs    *dist   `json:"e2e_ms,omitempty"`
}

type dist struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func summarize(l load, o options) summary {
	s := summary{
		Tool: "net/http", AskedPS: o.rate, Conc: o.concurrency,
		Planned: l.planned, Sent: len(l.replies), InFlight: l.inFlight, WindowS: (l.to - l.from).Seconds(),
	}
	if o.json {
		s.Tool = "net/http+json"
	}
	var slip, ttft, e2e []time.Duration
	completed, tokens := 0, 0
	for _, r := range l.replies {
		if r.due >= l.from && o.rate > 0 && r.sent > 0 {
			slip = append(slip, r.sent-r.due)
		}
		if !r.ok {
			s.Failed++
			continue
		}
		if r.end >= l.from && r.end < l.to {
			completed++
			tokens += int(r.tokens)
		}
		if r.due >= l.from {
			ttft = append(ttft, r.first-r.sent)
			e2e = append(e2e, r.last-r.sent)
		}
	}
	s.RatePS, s.TokensPS = float64(completed)/s.WindowS, float64(tokens)/s.WindowS
	if n := float64(completed); n > 0 {
		s.CPUUs = float64((l.after.cpu - l.before.cpu).Microseconds()) / n
		s.Allocs = float64(l.after.objects-l.before.objects) / n
		s.AllocB = float64(l.after.bytes-l.before.bytes) / n
	}
	s.SlipMs, s.TTFTMs, s.E2EMs = distribution(slip), distribution(ttft), distribution(e2e)
	return s
}

// distribution returns nil for an empty sample.
func distribution(d []time.Duration) *dist {
	if len(d) == 0 {
		return nil
	}
	slices.Sort(d)
	at := func(q float64) float64 { return d[int(q*float64(len(d)-1)+0.5)].Seconds() * 1000 }
	return &dist{N: len(d), P50: at(0.5), P99: at(0.99), Max: at(1)}
}
