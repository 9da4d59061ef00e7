package record

import (
	"encoding/json"
	"time"
)

// ManifestSchema names the manifest's format and version.
const ManifestSchema = "tare.manifest/v1"

// Manifest is what is known of a run besides its exchanges. It is written when the run starts, and again when it ends.
// Secrets never enter it.
type Manifest struct {
	Schema    string          `json:"schema"`
	Tool      Tool            `json:"tool"`
	Spec      json.RawMessage `json:"spec"` // the effective spec, without secrets
	Plan      PlanIDs         `json:"plan"`
	Generator *Generator      `json:"generator,omitempty"` // none in runs older than its self-test
	Workload  *Workload       `json:"workload,omitempty"`
	Stages    []Stage         `json:"stages"`
	Target    Target          `json:"target"`
	Client    Client          `json:"client"`
	Admission *Admission      `json:"admission,omitempty"` // none when the machine had not been calibrated for such a load
	Clock     Clock           `json:"clock"`
	Env       Environment     `json:"environment"`
	Loops     []Loop          `json:"loops,omitempty"` // written at the end, one per event loop or pacer
	State     State           `json:"state"`
	Warnings  []string        `json:"warnings,omitempty"`
}

// Tool identifies the program that made the run.
type Tool struct {
	Version      string `json:"version"`
	Revision     string `json:"revision,omitempty"`
	GoVersion    string `json:"go_version"`
	BinarySHA256 string `json:"binary_sha256,omitempty"`
}

// Workload is what was asked of the requests, beside the spec.
type Workload struct {
	MeanInput    float64 `json:"mean_input_tokens,omitempty"`  // asked mean length of a prompt; 0 where nobody counted
	MeanOutput   float64 `json:"mean_output_tokens,omitempty"` // asked mean length of an answer
	MeanTurns    float64 `json:"mean_turns,omitempty"`         // asked mean number of turns of a session; 0 where each is a request
	Cache        string  `json:"cache"`                        // what the server's prefix cache was to find: as-is, cold, salted, warm
	PromptTokens int64   `json:"prompt_tokens"`                // of all prompts that were made, warm-up left out; 0 where they are plain, or nobody counted
	SharedTokens int64   `json:"shared_tokens"`                // of them, that earlier prompts begin with too: what a cache that forgets nothing finds

	// Of the bodies that were made for first turns; 0 of none until the run's end.
	Bodies   int64 `json:"bodies"`
	Silent   int64 `json:"bodies_without_sampling"` // that leave temperature or top_p to the server
	Compared int64 `json:"bodies_compared"`         // with each other: all, or of many a sample by what they say
	Repeated int64 `json:"bodies_repeated"`         // of the compared, that say what one before said
}

// PlanIDs are the hashes of what was planned. They are empty until the whole plan has been walked.
type PlanIDs struct {
	PlanID    string `json:"plan_id,omitempty"`    // SHA-256 over timing and structure
	ContentID string `json:"content_id,omitempty"` // SHA-256 over the request bodies
	Requests  int64  `json:"requests"`             // requests the hashes cover
	Complete  bool   `json:"complete"`             // the hashes cover the whole plan
}

// Generator is what the self-test of what makes plans came to, before the run.
type Generator struct {
	SHA256 string `json:"sha256"` // over the requests of its plans
	Golden string `json:"golden"` // what it is with this version, on every machine
}

// Stage is one part of the load with its own rate or concurrency. Offsets are from the start of the run.
type Stage struct {
	Name        string  `json:"name"`
	Warmup      bool    `json:"warmup"` // left out of every total
	Kind        string  `json:"kind"`   // "open" or "closed"
	StartMs     float64 `json:"start_ms"`
	EndMs       float64 `json:"end_ms"`                  // end of the window in which requests fall due
	Arrivals    string  `json:"arrivals,omitempty"`      // asked, of an open stage: "10/s poisson, CV 1"
	Planned     int64   `json:"planned"`                 // requests; for a closed loop by duration, the requests issued
	RatePerS    float64 `json:"rate_per_s,omitempty"`    // asked mean at the start of an open stage
	RateToPerS  float64 `json:"rate_to_per_s,omitempty"` // asked rate at the end of a ramp
	Concurrency int     `json:"concurrency,omitempty"`   // requests in flight of a closed stage
	MaxInFlight int     `json:"max_in_flight,omitempty"` // declared admission limit of an open stage
}

// Target is where the load went.
type Target struct {
	URL      string   `json:"url"`               // as it was given, without user info or secret query values
	Servers  []string `json:"servers,omitempty"` // its URLs; ServerOf says which of them a session went to
	Model    string   `json:"model"`
	Endpoint string   `json:"endpoint"`
	Stream   bool     `json:"stream"`
	HTTP     string   `json:"http,omitempty"`     // version, "1.1" or "2"
	Insecure bool     `json:"insecure,omitempty"` // its certificate was not checked
}

// Client is how the load was sent.
type Client struct {
	Engine       string `json:"engine"` // "epoll", "goroutine" or "http2"
	Loops        int    `json:"loops"`
	GOMAXPROCS   int    `json:"gomaxprocs"`
	KernelStamps bool   `json:"kernel_stamps"`
	SpinNs       int64  `json:"spin_ns"`
	BurdenNs     int64  `json:"burden_ns,omitempty"` // busy work added to each event on purpose
	Connections  int    `json:"connections"`         // dialled before the start
}

// Admission is what a calibration said of the plan before the run.
type Admission struct {
	Calibrated    time.Time `json:"calibrated"`               // when the capacity was measured
	Utilisation   float64   `json:"utilisation"`              // busiest of the plan's rates over the machine's capacity, 1 is full
	Of            string    `json:"of"`                       // whose share that is: "requests", "events" or "streams"
	AllowedBiased bool      `json:"allowed_biased,omitempty"` // it was above the limit, and the run was wanted all the same
}

// Clock ties the run's time to the world's. Offset 0 is the start of the run.
type Clock struct {
	StartWall        time.Time `json:"start_wall"`
	StartMonotonicNs int64     `json:"start_monotonic_ns"` // CLOCK_MONOTONIC at offset 0; 0 where the system has none
	MaxStepNs        int64     `json:"max_step_ns"`        // largest change of REALTIME minus MONOTONIC seen between two samples
}

// Environment describes the client's machine.
type Environment struct {
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	Kernel    string `json:"kernel,omitempty"`
	CPU       string `json:"cpu,omitempty"`
	CPUs      int    `json:"cpus"` // usable by this process
	MemoryMiB int64  `json:"memory_mib,omitempty"`
	OpenFiles uint64 `json:"open_files_limit,omitempty"`
	PortRange string `json:"local_port_range,omitempty"`
	Clock     string `json:"clocksource,omitempty"`
}

// Loop is one sender's own account of its work.
type Loop struct {
	WallNs      int64 `json:"wall_ns"`
	CPUNs       int64 `json:"cpu_ns"`       // CPU time of the loop's thread
	SpunNs      int64 `json:"spun_ns"`      // of it, what was spent looking out for a due time that was near
	RunQueueNs  int64 `json:"run_queue_ns"` // time its thread was runnable but not running
	Sent        int64 `json:"sent"`
	Reads       int64 `json:"reads"`
	Events      int64 `json:"events"`
	Dials       int64 `json:"dials"`                  // connections made
	DialsInRun  int64 `json:"dials_in_run"`           // of them, after the start
	ClosedEarly int64 `json:"closed_early,omitempty"` // kept connections that servers closed within 50 ms of a reply that had not said so
	Preempted   int64 `json:"involuntary_switches"`
	MaxInFlight int64 `json:"max_in_flight"`
	Mistyped    int64 `json:"mistyped_replies,omitempty"`     // read as streams of events although their Content-Type is another
	Packed      int64 `json:"gzip_replies,omitempty"`         // in gzip, which was not asked for
	NotStreamed int64 `json:"not_streamed_replies,omitempty"` // documents where a stream was asked for
	Echoed      int64 `json:"echoed_ids,omitempty"`           // replies that repeat the X-Request-Id of a request of this run
	Foreign     int64 `json:"foreign_ids,omitempty"`          // of them, that of another request than the one that they answer

	Work       Work    `json:"work"`
	InFlightNs []int64 `json:"in_flight_ns"` // request-ns in flight of each stage's requests, by a gauge that this sender kept
}

// State says how a run stands.
type State struct {
	Complete bool    `json:"complete"`        // the run came to its end and everything is written
	Cause    string  `json:"cause,omitempty"` // why it ended early
	EndMs    float64 `json:"end_ms"`          // last moment of the run
	CPUMs    float64 `json:"cpu_ms"`          // user and system time of the whole process since the start of the run
	GCCycles int64   `json:"gc_cycles"`       // garbage collections between start and end of the run
}
