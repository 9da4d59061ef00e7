package verdict

import (
	"tare/internal/judge/stats"
	"tare/internal/record"
)

// Evidence is what the gates look at.
type Evidence struct {
	Stages    []Stage // the measured ones, warm-up left out
	Client    record.Client
	Admission *record.Admission // what a calibration said of the plan; nil without one
	Clock     record.Clock
	Loops     []record.Loop
	State     record.State
	CPUs      int // usable by the client's process; 0 when unknown

	Server      *Server         // nil where none was looked at
	Health      []record.Health // none in a run directory without the file
	Queues      []Queue         // of loops with a thread of their own and kernel stamps
	PlanIDs     record.PlanIDs
	Generator   *record.Generator // nil when it was not tested
	FixedLength bool              // replies were to go on to their planned length
	Workload    Workload

	Planned    int64 // requests of all stages, warm-up included
	Recorded   int64 // exchanges in the log, each index counted once
	Duplicates int64 // exchanges whose index had been seen before
	Excess     int64 // exchanges beyond their stage's planned number
	OpenEnded  bool  // how many requests a stage planned was never written, and Planned counts those recorded
}

// Killed reports whether the run never came to its end: what was in flight or still to be sent has no record.
func (e *Evidence) Killed() bool { return !e.State.Complete }

// idle reports whether the plan held no request.
func (e *Evidence) idle() bool { return e.Planned == 0 && e.Recorded == 0 && !e.OpenEnded }

// processors is how many processors the client's process could use at once; 0 when unknown.
func (e *Evidence) processors() int {
	if e.CPUs > 0 {
		return min(e.Client.GOMAXPROCS, e.CPUs)
	}
	return e.Client.GOMAXPROCS
}

// Interrupted reports whether the run was ended early on purpose.
func (e *Evidence) Interrupted() bool { return e.State.Cause != "" }

// Stage is the evidence of one measured stage. Distributions are in nanoseconds and never nil.
type Stage struct {
	Name string
	Open bool // requests follow a schedule
	Ramp bool // whose rate changes

	// Slip is FirstWrite − Due of the requests sent, less what the user or the server's side is answerable for: requests
	// held back by the declared in-flight limit are left out, and the time a connection took to be dialled is taken off.
	Slip *stats.Distribution
	// TTFT, E2E and ICL are those of completed requests from their send, uncorrected; Lag is that of stamped events.
	TTFT, E2E, ICL, Lag *stats.Distribution

	Due      int64 // requests the client was free to send: not held back by the limit
	InWindow int64 // of them, those that set out within the stage's window
	Capped   int64 // requests held back by the declared in-flight limit
	Barred   int64 // requests that waited for a connection the client's open-file limit did not allow

	NotSent       int64 // planned and never sent, other than through the limit
	NotSentCapped int64 // never sent since the limit held them to the end

	Attempted int64 // requests that were sent or that could not get a connection
	Failed    int64 // of them, those that did not complete

	DialNs       float64 // longest slip of a request that waited for a connection to be dialled
	Lengths      int64   // completed replies whose tokens the server counted and the plan had given
	OtherLengths int64   // of them, those of another length

	Arrivals   []Dispersion
	Correction Correction
	Balance    Balance
	Course     Course
	Drift      Drift
	Estimates  []Estimate // p50 and p99 of TTFT and E2E from due
}

// Queue is an event loop's mean wait and the model that comes nearest to it.
type Queue struct {
	WaitMs float64
	Fits   string
	Ratio  float64 // expected over measured
	Close  bool    // within a factor of two
}

// Dispersion is the index of dispersion of the counts in spans of one length.
type Dispersion struct {
	Span          string
	Planned, Sent float64
	Known         bool
}

// Correction is by what share latencies from due exceed those from send.
type Correction struct {
	Metric   string
	P50, P99 float64
	Known    bool
}

// Balance is the mean number in flight by gauge and by records, and the share by which they differ.
type Balance struct {
	Gauge, Records, Gap float64
	Known               bool
}

// Course is how the stage went over time.
type Course struct {
	Steady                  bool
	DeclaredNs, SuggestedNs float64
	WindowNs                float64
}

// Drift is the growth of the requests in flight over the window with its standard error, and their mean.
type Drift struct {
	Growth, Error, InFlight float64
	Known                   bool
}

// Estimate is a percentile over all planned requests.
type Estimate struct {
	Metric, Level string
	Effective     float64
	Withheld      string
	HalfWidth     float64 // of its 95 % interval, as a share
	HasWidth      bool
}
