// Package record holds the facts of a run: what was planned, sent and received, and when. Nothing in it is derived but
// Work.Replayed, which only the loop that saw the reads can work out.
package record

import "time"

// Exchange is the facts of one planned request, from due time to end. Exactly one is recorded per planned request.
// Every time is an offset from the start of the run on the run's monotonic clock.
type Exchange struct {
	Index   int64  // identity of the request in the plan, unique in the run
	Stage   int    // index into Manifest.Stages
	Session int64  // identity of the conversation; equal to Index for a lone request
	Turn    int    // 0 for the first turn of a session
	Class   string // tenant or request class; empty when the plan names none

	Due        time.Duration // intended send time; in a closed loop the arrival of the reply that freed the slot
	Issued     Instant       // the pacer took the request up
	ConnReady  Instant       // a connection was there to write on
	FirstWrite Instant       // read just before the first write to the socket
	LastWrite  Instant       // the last byte of the request was accepted by the kernel
	HeaderAt   Instant       // the reply's header block was complete
	End        Instant       // the reply was over: terminator, end of body, error or time-out
	Reused     bool          // the connection had carried an earlier request
	Delay      Delay         // why FirstWrite came after Due

	Events []Event // in order of arrival; empty for a reply that was not streamed

	Outcome      Outcome
	Cause        Cause         // the class of Outcome; CauseNone when it completed
	Attempts     int           // how often it was tried: 1 unless it was sent again, 0 when it was not sent
	RetryAfter   time.Duration // wait that the last refusal asked for (Retry-After); 0 when none did
	Status       int           // HTTP status; 0 when no reply head arrived
	FinishReason string        // as the server spelled it; empty when none came
	Usage        Usage
	PlannedIn    int    // input tokens asked of the workload
	PlannedOut   int    // output tokens asked of the server
	BytesIn      int64  // bytes of the reply read from the socket
	Reads        int    // reads that delivered them
	Error        string // what went wrong, at most 4 KiB, without secrets; empty when nothing did
}

// Usage is the server's own token counts for one reply.
type Usage struct {
	Known       bool // the server reported usage
	Input       int  // prompt tokens, cached ones included
	Output      int  // completion tokens, reasoning included
	Cached      int  // prompt tokens served from a prefix cache
	CachedKnown bool // the server reported cached tokens: 0 of them is a count, not an absence
}

// Event is one server-sent event as it reached us. It holds no pointers, so that bulk storage is not scanned.
type Event struct {
	KernelAt time.Duration // the kernel's receive stamp of the read that completed the event; equal to UserAt without FlagStamped
	UserAt   time.Duration // the moment after that read returned
	Tokens   uint16        // generated tokens in the event; meaningful with FlagExact
	Kind     Kind
	Flags    Flags
}

// Flags qualify an Event.
type Flags uint8

const (
	FlagStamped Flags = 1 << iota // KernelAt is the kernel's
	FlagMerged                    // later bytes arrived in the same read: KernelAt is an upper bound, the previous read's stamp the lower
	FlagExact                     // Tokens is known from the server, not assumed
)

// Kind says what an event carried.
type Kind uint8

const (
	KindOther      Kind = iota // understood, carries nothing a metric needs
	KindRole                   // opens the answer; no token
	KindContent                // answer text: a token event
	KindReasoning              // reasoning text: a token event
	KindTool                   // tool call name or arguments: a token event
	KindUsage                  // token counts only
	KindFinish                 // a finish reason without text
	KindTerminator             // the dialect's end marker, [DONE]
	KindComment                // a keep-alive comment
	KindError                  // an error object inside the stream
	KindMalformed              // not readable as the dialect's event
)

// Token reports whether an event of this kind carries generated tokens.
func (k Kind) Token() bool { return k == KindContent || k == KindReasoning || k == KindTool }

// Answer reports whether an event of this kind carries tokens of the answer proper, reasoning excluded.
func (k Kind) Answer() bool { return k == KindContent || k == KindTool }

// Delay names the cause of a late send, as the sender knew it.
type Delay uint8

const (
	DelayNone         Delay = iota // taken up at its due time, within the pacer's resolution
	DelayBusy                      // the sender was still at other work
	DelayNoConnection              // no idle connection: one had to be dialled
	DelayInFlightCap               // held back by the declared in-flight limit
	DelayNotPrepared               // the request's bytes were not ready
	DelayFileLimit                 // no idle connection, and this client may not open another: open files, local ports, memory
)

// Outcome is how a planned request ended. The zero value is not an outcome.
type Outcome uint8

const (
	Completed     Outcome = iota + 1 // a finish reason or terminator, at least one token, and no error
	Empty                            // well ended, but without any token
	Truncated                        // the stream ended before its end marker
	StreamError                      // an error object inside a reply with status 200
	HTTPError                        // a status other than 200
	TimedOut                         // the request's time was over
	ConnectFailed                    // no connection could be had
	Reset                            // the connection broke
	Cancelled                        // cut by us after it was sent: interrupted, or past the drain limit
	NotSent                          // planned, never sent
)

// Outcomes lists every outcome in its order of reporting.
var Outcomes = [...]Outcome{Completed, Empty, Truncated, StreamError, HTTPError, TimedOut, ConnectFailed, Reset, Cancelled, NotSent}

// String gives the outcome's name in files: completed, stream_error, …
func (o Outcome) String() string {
	switch o {
	case Completed:
		return "completed"
	case Empty:
		return "empty"
	case Truncated:
		return "truncated"
	case StreamError:
		return "stream_error"
	case HTTPError:
		return "http_error"
	case TimedOut:
		return "timeout"
	case ConnectFailed:
		return "connect_failed"
	case Reset:
		return "reset"
	case Cancelled:
		return "cancelled"
	case NotSent:
		return "not_sent"
	}
	return "unknown"
}

// Instant is a moment of the run, or the absence of one. The zero value is absent.
type Instant struct {
	at  time.Duration
	set bool
}

// At makes a present Instant from an offset since the start of the run.
func At(d time.Duration) Instant { return Instant{at: d, set: true} }

// Get returns the offset since the start of the run; ok is false when the moment never came.
func (i Instant) Get() (d time.Duration, ok bool) { return i.at, i.set }
