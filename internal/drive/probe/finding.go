// Package probe finds out what a server is and how it answers, with a handful of tiny requests.
//
// Its replies are read by the parser and the dialects of a run: what probe says is what a run will read.
package probe

import (
	"encoding/json"
	"math"
	"time"
)

// Schema names the form of a Finding in JSON.
const Schema = "tare.probe/v1"

// Finding is what a probe found out about a server. All text in it that came from the server has its secrets masked.
type Finding struct {
	Schema       string       `json:"schema"`
	URL          string       `json:"url"` // without secrets
	Reach        Reach        `json:"reach"`
	TLS          *TLS         `json:"tls,omitempty"` // nil for plain HTTP, or where it did not come so far
	HTTP         []string     `json:"http_versions"` // "HTTP/1.1" if anything was answered in it, "h2" if offered by ALPN
	Server       Server       `json:"server"`
	Models       []Model      `json:"models"`
	Model        string       `json:"model"` // that the endpoints were asked for; empty where none is known
	Endpoints    []Endpoint   `json:"endpoints"`
	KeepAlive    KeepAlive    `json:"keep_alive"`
	UnknownModel UnknownModel `json:"unknown_model"`
	Sent         Sent         `json:"sent"`
	Notes        []string     `json:"notes"`   // what a reader should know besides
	Failure      string       `json:"failure"` // why there is nothing to measure; empty if an endpoint answers
	Hint         string       `json:"hint"`    // what to do about the failure; may be empty
}

// Milliseconds is a span of time that JSON has in milliseconds.
type Milliseconds time.Duration

// MarshalJSON writes milliseconds to the microsecond.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(float64(m)/float64(time.Microsecond)) / 1000)
}

// Reach says whether connections can be made.
type Reach struct {
	Host      string       `json:"host"`
	Resolved  Milliseconds `json:"resolve_ms,omitzero"` // how long the name took; 0 where there was none to resolve
	Addresses []Address    `json:"addresses"`
	Used      string       `json:"used"` // the address that all further connections go to; empty if none answers
	RTT       RTT          `json:"rtt"`
}

// Address is one address of the server and whether it takes connections.
type Address struct {
	Address string       `json:"address"`
	Connect Milliseconds `json:"connect_ms,omitzero"`
	Error   string       `json:"error,omitempty"` // why not
}

// RTT is the round trip to the server and back, as the time that TCP connections to it took.
type RTT struct {
	Samples int          `json:"samples"`
	Min     Milliseconds `json:"min_ms"`
	Median  Milliseconds `json:"median_ms"`
}

// TLS is what the handshake and the server's certificate said.
type TLS struct {
	Version  string    `json:"version"`
	Cipher   string    `json:"cipher"`
	ALPN     string    `json:"alpn"` // what the server chose of h2 and http/1.1; empty for nothing
	Subject  string    `json:"subject"`
	Issuer   string    `json:"issuer"`
	Names    []string  `json:"names"` // that the certificate is for
	Expires  time.Time `json:"expires"`
	Verified bool      `json:"verified"`
	Fault    string    `json:"fault,omitempty"` // why it is not
}

// Server says what kind of server answers.
type Server struct {
	Kind     string   `json:"kind"`    // "vllm", "sglang", …; empty where nothing said so
	Version  string   `json:"version"` // as it says itself; empty if it does not
	Header   string   `json:"header"`  // the Server header; it may be that of something in front
	Evidence []string `json:"evidence"`
}

// Model is one model that the server lists.
type Model struct {
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
	Context int    `json:"context,omitempty"` // longest context, tokens; 0 where it is not told
}

// The states of an endpoint.
const (
	Answers   = "answers"
	Refuses   = "refuses"       // something is there, and did not answer the request
	Otherwise = "answers other" // with a status of 200, but not in this endpoint's language
	Absent    = "absent"
	Locked    = "needs a key"
	Silent    = "silent" // no reply in time, or the connection broke
	Untried   = "not tried"
)

// Endpoint is what came of asking one endpoint.
type Endpoint struct {
	Name       string     `json:"endpoint"`
	Path       string     `json:"path"`
	Model      string     `json:"model"` // that it was asked for
	State      string     `json:"state"`
	Why        string     `json:"why,omitempty"` // the evidence, where it does not answer
	Whole      *Exchange  `json:"whole,omitempty"`
	Streamed   *Exchange  `json:"streamed,omitempty"`
	Continuous *Exchange  `json:"continuous,omitempty"` // streamed, with token counts in every event asked for
	IDs        *Exchange  `json:"ids,omitempty"`        // streamed, with token ids asked for
	Buffering  *Buffering `json:"buffering,omitempty"`
}

// Exchange is one request and what came of it. Its times count from the end of the request's write.
type Exchange struct {
	Outcome      string       `json:"outcome"` // as in a run: completed, http_error, …
	Status       int          `json:"status"`  // 0 when no reply head came
	Evidence     string       `json:"evidence,omitempty"`
	FinishReason string       `json:"finish_reason"`
	Usage        *Usage       `json:"usage,omitempty"`
	TokenIDs     bool         `json:"token_ids"`        // generated tokens' ids came
	TokenEvents  int          `json:"token_events"`     // events with generated tokens
	Reasoning    int          `json:"reasoning_events"` // of them, those of reasoning
	Counted      int          `json:"counted"`          // of them, those whose number of tokens the server told
	NotStreamed  bool         `json:"not_streamed"`     // a document came where a stream was asked for
	Comments     int          `json:"comments"`
	Malformed    int          `json:"malformed"`
	Encoding     string       `json:"encoding,omitempty"`      // Content-Encoding, which was not asked for
	Mistyped     bool         `json:"mistyped"`                // a stream of events came under another Content-Type
	Header       Milliseconds `json:"header_ms,omitzero"`      // until the reply's header block
	FirstToken   Milliseconds `json:"first_token_ms,omitzero"` // 0 without token events
	End          Milliseconds `json:"end_ms"`

	kept     string // what became of the connection; empty where that was not looked at
	keep     string // the headers that speak of it
	arrivals []arrival
	read     bool // it completed
	packed   bool // the Encoding was undone
	location string
	body     string // of a whole reply, or of an error, with secrets masked
}

// Usage is the server's own token counts for one reply.
type Usage struct {
	Input  int  `json:"input"`
	Output int  `json:"output"`
	Cached int  `json:"cached"`
	Told   bool `json:"cached_told"` // the server gave a number of cached tokens, be it 0
}

// Buffering says whether something holds events back before they reach us.
type Buffering struct {
	Verdict string `json:"verdict"`
	How     string `json:"how"` // how that was decided
}

// The verdicts of Buffering.
const (
	AsMade  = "none"    // events arrive one by one
	Whole   = "whole"   // the stream is held back until its end
	Bursts  = "bursts"  // events come several at a time, with time between
	Unclear = "unclear" // this stream does not tell
)

// KeepAlive says what becomes of a connection behind a reply.
type KeepAlive struct {
	AfterWhole    string `json:"after_whole"`    // Kept, Closed, ClosedUnsaid; empty where it was not seen
	AfterStreamed string `json:"after_streamed"` // the same
	Header        string `json:"header"`         // Connection and Keep-Alive as the server sent them
}

// Unsaid reports that the server closes connections that by its replies may be used again: a request on one of them may be lost.
func (k KeepAlive) Unsaid() bool {
	return k.AfterWhole == ClosedUnsaid || k.AfterStreamed == ClosedUnsaid
}

// What becomes of a connection.
const (
	Kept         = "kept"
	Closed       = "closed"              // as the reply said
	ClosedUnsaid = "closed without word" // though by the reply it may carry another request
)

// UnknownModel is what the server says to a model that it does not have.
type UnknownModel struct {
	Endpoint string `json:"endpoint"` // that was asked; empty if none was
	Outcome  string `json:"outcome"`
	Status   int    `json:"status"`
	Shape    string `json:"shape"` // the members of the error: "error.message, error.type"; empty if it is no JSON object
	Evidence string `json:"evidence"`
}

// Sent counts what the probe did to the server.
type Sent struct {
	Connections int `json:"connections"`   // attempts
	Gets        int `json:"gets"`          // requests that cost no tokens
	Posts       int `json:"posts"`         // requests that may cost tokens
	Costly      int `json:"costly"`        // of them, those that were answered with tokens
	Input       int `json:"input_tokens"`  // of those, by the server's count
	Output      int `json:"output_tokens"` // the same
}
