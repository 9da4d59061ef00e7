// Package judge makes every number of a run from its facts, and a verdict on the run itself.
//
// It reads records and nothing else: no clock, no network. The same run directory gives the same Summary, bit for bit.
package judge

import (
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// SummarySchema names the format of summary.json and its version.
const SummarySchema = "tare.summary/v1"

// Summary is what a run came to. Its JSON form is summary.json, described in docs/summary.md.
type Summary struct {
	Dir      string          `json:"-"` // the run directory as it was named; empty when the facts came from elsewhere
	Schema   string          `json:"schema"`
	Verdict  verdict.Verdict `json:"verdict"`
	spec     leaves          // what the run was asked for
	Run      Run             `json:"run"`
	Warnings []string        `json:"warnings"`
	Stages   []Part          `json:"stages"`
	Total    Part            `json:"total"`             // the measured stages together, warm-up left out
	Servers  []Server        `json:"servers,omitempty"` // of a target of several, in its order
	Server   *ServerSide     `json:"server,omitempty"`  // what they counted themselves; left out where none was looked at
	Workload Workload        `json:"workload"`
	SLO      *SLO            `json:"slo,omitempty"`     // left out where nothing is asked
	Classes  []Class         `json:"classes,omitempty"` // by name; left out where the plan names none
	Turns    []Turns         `json:"turns,omitempty"`   // of sessions, the first and the later ones; left out where every session is a request
}

// Workload sets what was asked of the requests next to what was planned and what the server counted, warm-up left out.
type Workload struct {
	AskedInput    Number `json:"asked_input_tokens"`   // means, tokens
	PlannedInput  Number `json:"planned_input_tokens"` // drawn
	CountedInput  Number `json:"counted_input_tokens"` // by the server, of replies with usage
	AskedOutput   Number `json:"asked_output_tokens"`
	PlannedOutput Number `json:"planned_output_tokens"`
	Cache         string `json:"cache,omitempty"`

	// What a prefix cache that forgets nothing would find of all prompts made, and what the server counted, of replies that say: tokens,
	// and fractions of the prompt tokens of either.
	ExpectedTokens Number `json:"expected_cached_tokens"`
	CachedTokens   Number `json:"cached_tokens"`
	Expected       Number `json:"expected_cached_share"`
	Cached         Number `json:"cached_share"`
}

// Class is what became of the requests of one class, warm-up left out.
type Class struct {
	Name       string      `json:"name"`
	Outcomes   Outcomes    `json:"outcomes"`
	Metrics    Metrics     `json:"metrics"`
	Objectives *Objectives `json:"objectives,omitempty"`
}

// Turns is what became of the first turns of sessions, of which there are as many as sessions, or of the later ones, warm-up left out.
type Turns struct {
	Turns    string   `json:"turns"` // first or later
	Outcomes Outcomes `json:"outcomes"`
	Cached   Number   `json:"cached_share"` // of prompt tokens, of replies that say
	Metrics  Metrics  `json:"metrics"`
}

// Server is what became of the requests that went to one of several servers, warm-up left out.
type Server struct {
	URL      string   `json:"url"`
	Outcomes Outcomes `json:"outcomes"`
}

// Run says what was run, on what and how it ended.
type Run struct {
	Target    record.Target      `json:"target"`
	Tool      record.Tool        `json:"tool"`
	Plan      record.PlanIDs     `json:"plan"`
	Client    record.Client      `json:"client"`
	Admission *record.Admission  `json:"admission,omitempty"` // the plan next to the machine's calibrated capacity; left out without one
	Env       record.Environment `json:"environment"`
	Start     string             `json:"start"`           // wall time of the run's start, RFC 3339; empty when unknown
	Complete  bool               `json:"complete"`        // the run came to its end and every record is there
	Cause     string             `json:"cause,omitempty"` // why it ended early
	EndMs     Number             `json:"end_ms"`          // last moment of the run, since its start
	CPUMs     Number             `json:"cpu_ms"`          // user and system time of the client's process
	GCCycles  int64              `json:"gc_cycles"`
	Dials     Number             `json:"dials_in_run"`    // connections made after the start; null where the run's end was not written
	Loops     []Loop             `json:"loops,omitempty"` // each sender as a queue; left out where the run's end was not written
}

// Part is the figures of one stage, or of all measured stages. Requests belong to the stage in which they fall due.
type Part struct {
	Name     string   `json:"name"`
	Warmup   bool     `json:"warmup"`
	Kind     string   `json:"kind"`     // open, closed, or mixed
	StartMs  float64  `json:"start_ms"` // window in which requests fall due, since the start of the run
	EndMs    float64  `json:"end_ms"`
	WindowMs float64  `json:"window_ms"` // length of the window; for the total the sum of the stages', without gaps between them
	Planned  int64    `json:"planned"`
	Sent     int64    `json:"sent"`       // requests whose first byte was written
	Missing  int64    `json:"unrecorded"` // planned requests without a record: a killed run
	Outcomes Outcomes `json:"outcomes"`   // with Missing, they add up to Planned
	Causes   []Cause  `json:"causes"`     // what the outcomes but the completed are made of
	Resent   Resent   `json:"resent"`
	Failures []Sample `json:"failures"` // what went wrong, most frequent first, at most three messages of each outcome
	Delays   Delays   `json:"delays"`

	PlannedRate   Number `json:"planned_rate_per_s"`   // requests due in the window
	AchievedRate  Number `json:"achieved_rate_per_s"`  // requests whose first byte was written in the window
	CompletedRate Number `json:"completed_rate_per_s"` // requests that completed in the window
	InputRate     Number `json:"input_tokens_per_s"`   // prompt tokens, cached ones included, of replies that began in the window
	OutputRate    Number `json:"output_tokens_per_s"`  // tokens that arrived in the window

	Arrivals Arrivals `json:"arrivals,omitzero"` // of a stage; the total has none

	Events  Events  `json:"events"`
	Metrics Metrics `json:"metrics"`

	AllPlanned map[string]Planned `json:"all_planned,omitempty"` // by metric, of a measured stage
	Objectives *Objectives        `json:"objectives,omitempty"`  // of a measured stage, and of the total
	Correction Correction         `json:"correction"`            // latencies from due over those from send
	Steadiness *Steadiness        `json:"steadiness,omitempty"`  // of a measured stage
}

// Arrivals sets how the requests of a stage came next to what was asked.
type Arrivals struct {
	Asked   string `json:"asked,omitempty"`  // of an open stage: "10/s poisson, CV 1"
	Planned Flow   `json:"planned,omitzero"` // due times of an open stage
	Sent    Flow   `json:"sent"`             // first writes, whenever they were
}

// Flow describes arrivals over the stage's window: the coefficient of variation of the gaps, and the index of
// dispersion of the counts, variance over mean, in spans of a second, ten seconds and a minute.
type Flow struct {
	Variation  Number `json:"gap_cv"`
	Second     Number `json:"idc_1s"`
	TenSeconds Number `json:"idc_10s"`
	Minute     Number `json:"idc_60s"`
}

// Outcomes counts requests by how they ended.
type Outcomes struct {
	Completed     int64 `json:"completed"`
	Empty         int64 `json:"empty"`
	Truncated     int64 `json:"truncated"`
	StreamError   int64 `json:"stream_error"`
	HTTPError     int64 `json:"http_error"`
	TimedOut      int64 `json:"timeout"`
	ConnectFailed int64 `json:"connect_failed"`
	Reset         int64 `json:"reset"`
	Cancelled     int64 `json:"cancelled"`
	NotSent       int64 `json:"not_sent"`
}

// Of returns the count of one outcome, in place.
func (o *Outcomes) Of(which record.Outcome) *int64 {
	switch which {
	case record.Completed:
		return &o.Completed
	case record.Empty:
		return &o.Empty
	case record.Truncated:
		return &o.Truncated
	case record.StreamError:
		return &o.StreamError
	case record.HTTPError:
		return &o.HTTPError
	case record.TimedOut:
		return &o.TimedOut
	case record.ConnectFailed:
		return &o.ConnectFailed
	case record.Reset:
		return &o.Reset
	case record.Cancelled:
		return &o.Cancelled
	case record.NotSent:
		return &o.NotSent
	}
	return nil
}

// Sum returns the number of requests with an outcome.
func (o *Outcomes) Sum() (n int64) {
	for _, which := range record.Outcomes {
		n += *o.Of(which)
	}
	return n
}

// Sample is one message of failed requests and how many had it. Messages that differ only in digits count as one.
type Sample struct {
	Outcome  string `json:"outcome"`
	Status   int    `json:"status,omitempty"`
	Message  string `json:"message"`
	Requests int64  `json:"requests"`
}

// Delays counts sent requests by the cause of their lateness.
type Delays struct {
	None         Delay `json:"none"`
	Busy         Delay `json:"busy"`
	NoConnection Delay `json:"no_connection"`
	InFlightCap  Delay `json:"in_flight_cap"`
	NotPrepared  Delay `json:"not_prepared"`
	FileLimit    Delay `json:"file_limit"`
}

// Delay is the requests with one cause.
type Delay struct {
	Requests int64  `json:"requests"`
	Longest  Number `json:"slip_max_ms"`
}

// Of returns the row of one cause, in place.
func (d *Delays) Of(which record.Delay) *Delay {
	switch which {
	case record.DelayNone:
		return &d.None
	case record.DelayBusy:
		return &d.Busy
	case record.DelayNoConnection:
		return &d.NoConnection
	case record.DelayInFlightCap:
		return &d.InFlightCap
	case record.DelayNotPrepared:
		return &d.NotPrepared
	case record.DelayFileLimit:
		return &d.FileLimit
	}
	return nil
}

// Events counts the server-sent events of sent requests.
type Events struct {
	All         int64 `json:"all"`
	Token       int64 `json:"token"`
	Stamped     int64 `json:"stamped"`      // arrival by the kernel's stamp
	Merged      int64 `json:"merged"`       // followed by more bytes in the same read: arrival bounded
	MergedReads int64 `json:"merged_reads"` // reads that held them
	Reads       int64 `json:"reads"`        // reads that delivered the replies
}

// Metrics are the figures of each metric by its name.
type Metrics map[string]Figures

// Figures describe one metric. Quantiles are by nearest rank; values without a sample are null in JSON.
type Figures struct {
	N         int64  `json:"n"`         // values in the figures
	Undefined int64  `json:"undefined"` // requests the metric is not defined for
	Mean      Number `json:"mean"`
	Min       Number `json:"min"`
	P1        Number `json:"p1"`
	P5        Number `json:"p5"`
	P10       Number `json:"p10"`
	P25       Number `json:"p25"`
	P50       Number `json:"p50"`
	P75       Number `json:"p75"`
	P90       Number `json:"p90"`
	P95       Number `json:"p95"`
	P99       Number `json:"p99"`
	P999      Number `json:"p99_9"`
	Max       Number `json:"max"`

	RatioOfMeans Number `json:"ratio_of_means,omitzero"` // of tpot_ms and ntpot_ms: the mean weighted by tokens
	Bounds       Bounds `json:"bounds,omitzero"`         // where merged reads left values uncertain
}

// Bounds say how far the uncertain values could move the figures: every true figure lies between the one of Low and that
// of High.
type Bounds struct {
	Bounded int64 `json:"bounded"` // values known by bounds only
	Low     Range `json:"low"`
	High    Range `json:"high"`
}

// Range is the figures at one end of the bounds.
type Range struct {
	Mean Number `json:"mean"`
	P50  Number `json:"p50"`
	P90  Number `json:"p90"`
	P99  Number `json:"p99"`
	Max  Number `json:"max"`
}
