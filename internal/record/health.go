package record

import "io"

// HealthFile is the name of the file in a run directory that holds one Health a line.
const HealthFile = "health.jsonl"

// Health is how the client and its machine fared over one span of a run, a second as a rule. What the system does not tell is
// left out, never 0.
type Health struct {
	AtMs   float64 `json:"at_ms"`   // end of the span, since the start of the run
	SpanMs float64 `json:"span_ms"` // its length

	Cores      []Core      `json:"cores,omitempty"`      // of the machine
	CPU        *Spent      `json:"cpu,omitempty"`        // user and system time of the client
	RunQueue   *Spent      `json:"run_queue,omitempty"`  // the client's threads were runnable and not running, all together
	Throttling *Throttling `json:"throttling,omitempty"` // by a CPU limit of the client's control group
	TCP        *TCP        `json:"tcp,omitempty"`        // of the network namespace
	Ports      *Room       `json:"ports,omitempty"`      // local ports of TCP connections, against the range for outgoing ones
	Files      *Room       `json:"files,omitempty"`      // descriptors of the client, against its limit

	Pauses    Delays  `json:"gc_pauses"`         // in which the collector stopped every goroutine
	Scheduler Delays  `json:"scheduler_latency"` // of goroutines: runnable, and not running
	ClockStep float64 `json:"clock_step_ms"`     // of the wall clock against the monotonic one

	Canary []int64 `json:"canary_us,omitempty"` // how late each call of a timer of the kernel's was heard by a goroutine that waits as readers do
}

// Core is how one processor spent the span, as fractions of it.
type Core struct {
	Busy  float64 `json:"busy"`  // by whomever on this machine, without what was stolen
	Steal float64 `json:"steal"` // by others of the same host
}

// Spent is time spent in the span.
type Spent struct {
	Ms float64 `json:"ms"`
}

// Throttling counts the periods of a CPU limit.
type Throttling struct {
	Periods   int64   `json:"periods"`
	Throttled int64   `json:"throttled"` // in which the limit was reached
	StoodMs   float64 `json:"stood_ms"`  // time lost by it
}

// TCP counts segments.
type TCP struct {
	Sent    int64 `json:"sent"`
	Resents int64 `json:"resent"`
}

// Room is how many of a limited thing are in use.
type Room struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Delays describes delays that the runtime counts in buckets: quantiles are upper ends of theirs.
type Delays struct {
	N     int64   `json:"n"`
	P99Ms float64 `json:"p99_ms"`
	MaxMs float64 `json:"max_ms"`
}

// Write appends h to w as one line.
func (h *Health) Write(w io.Writer) error { return writeLine(w, "health", h) }

// ReadHealth reads the samples in dir; there are none in a run directory without the file.
func ReadHealth(dir string) ([]Health, error) { return readLines[Health](dir, HealthFile) }
