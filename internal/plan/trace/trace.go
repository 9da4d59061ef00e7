// Package trace reads recordings of real load: when requests came, how long they were, which of them belong together and
// what they had in common.
//
// Read gives one form for all formats. What a recording cannot say (time finer than its grid, text, ends of calls) is not
// made up, but for what Facts declares.
package trace

import (
	"encoding/json"
	"time"

	"tare/internal/plan/input"
)

// Format names the form of a recording.
type Format string

const (
	Azure    Format = "azure"    // Azure LLM 2023 and 2024, LMM 2025: CSV
	BurstGPT Format = "burstgpt" // CSV
	Mooncake Format = "mooncake" // JSON, one request a line, blocks of 512 tokens
	Bailian  Format = "bailian"  // Qwen-Bailian: JSON, one request a line, blocks of 16 tokens
	Weka     Format = "weka"     // agents: JSON, one conversation a file or a line, blocks of 64 tokens
	OTel     Format = "otel"     // OpenTelemetry GenAI spans: JSON, one trace a file or a line
	ServeGen Format = "servegen" // client models, not requests: Read draws what the clients send
)

// Formats returns the names of the formats that Read takes.
func Formats() []Format { return []Format{Azure, BurstGPT, Mooncake, Bailian, Weka, OTel, ServeGen} }

// Options say how a recording is read.
type Options struct {
	Format Format // empty: Detect

	From, Until time.Duration // keep requests of this part only, offsets from the first one; Until 0 is the end
	MaxRows     int           // more are an error; 0 is 10,000,000

	Sort      bool // sort times that are not in order; else they are an error
	KeepGrid  bool // leave times on the grid on which they were recorded; else they are spread over its cells
	Grid      time.Duration
	Seed      uint64        // of the spreading
	BlockSize int           // tokens that one block id stands for; 0 is the format's own
	Class     string        // span attribute that names a call's class; OTel alone
	Headers   []Attribute   // span attributes that requests have as headers; OTel alone
	MaxGap    time.Duration // longer recorded gaps within a session are cut to this; 0 keeps them
}

// Attribute is a span attribute and the header that it becomes.
type Attribute struct{ Name, Header string }

const defaultMaxRows = 10_000_000

// Trace is a recording. Rows are in the order of their times, those of one time in the order of the file; if Relative is
// true they are in the order of their sessions, and in each by time.
type Trace struct {
	Format Format
	Rows   []Row

	// Relative says that each session's times count from its own start: when sessions start the recording does not say.
	Relative bool

	BlockSize  int  // tokens that one of Row.Blocks stands for; 0 if there are none
	FullBlocks bool // only whole blocks are named; else the last one of a row may be partly filled

	Facts Facts
}

// Row is one request.
type Row struct {
	At           time.Duration // offset from the recording's first request, or from its session's start (Trace.Relative)
	InputTokens  int
	OutputTokens int
	Images       int

	Session int // requests of the same number belong together, from 0; a request without a session has one of its own
	Turn    int // within the session, from 0

	After  []int         // rows, by index, that end before this one can start; nil for none
	Gap    time.Duration // from the end of the last of them to this start; valid if HasGap
	HasGap bool
	Think  time.Duration // of the person or tool, as recorded; 0 if not
	Took   time.Duration // of the call, as recorded; 0 if not

	Blocks []uint64 // of the prompt, from its beginning: rows with equal first blocks have equal first tokens; not to be changed
	Class  string   // kind of request, as recorded
	Model  string   // as recorded
	Failed bool     // recorded as failed
	Header []byte   // lines "NAME: value" with their line ends, of Options.Headers; nil for none

	Call *Call // what was said; nil if the recording does not have it

	File int // index into Facts.Files
	Line int // in that file, from 1; 0 where it has no meaning
}

// Call is the recorded content of a request.
type Call struct {
	Messages  []Message
	Output    string          // recorded reply
	ToolCalls []string        // names of the tools that the reply calls
	Tools     json.RawMessage // tool definitions, as recorded; nil for none
	MaxTokens int             // asked for; 0 if not
}

// Message is one message of a prompt.
type Message struct {
	Role    string
	Text    string
	From    int // row, by index, whose output this message repeats; valid if HasFrom
	HasFrom bool

	Calls   json.RawMessage // of tools, that an assistant made: an array in OpenAI's form; nil for none
	Answers string          // id of the tool call that it answers; empty for none
}

// Source is one file that was read.
type Source struct {
	Path   string
	SHA256 string // of the file as it lies on the disk
	Bytes  int64
}

// Facts are what a reader of a report must know of a recording.
type Facts struct {
	Files    []Source
	Read     int64 // rows in the files
	Outside  int64 // good rows that are not within From and Until
	Refused  []input.Count
	Faults   input.Faults  // the first of each kind
	Unsorted int64         // rows whose time is before that of the row above; they were sorted
	Notes    []input.Count // peculiarities that were kept: rows by what is odd about them

	Span       time.Duration // from the first to the last request
	Rate       float64       // requests per second over the span; 0 for a span of 0
	Sessions   int
	Instants   int           // different times as recorded
	Grid       time.Duration // that all recorded times are multiples of, from the first; 0 if there is none of 100 ms or more
	Spread     string        // the draw stream by which times were spread over the cells of Grid; empty if they were not
	CutGaps    int64         // gaps that were cut to MaxGap
	MeanInput  float64       // tokens
	MeanOutput float64       // tokens
	Blocks     int64         // in all prompts
	Reused     int64         // of them, seen before in this order: hits of a prefix cache that forgets nothing
}
