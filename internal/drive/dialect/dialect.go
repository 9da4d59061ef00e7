// Package dialect says what the bytes of a request and of its reply mean to one kind of server.
package dialect

import (
	"tare/internal/plan"
	"tare/internal/record"
)

// Dialect speaks one server's language: it writes request bodies and starts readers for replies.
type Dialect interface {
	plan.Encoder
	Path() string      // appended to a base URL: "/v1/chat/completions"
	NewReader() Reader // one for each event loop or connection; not safe for concurrent use
}

// Reader gives the events of replies their meaning. All data is valid only during the call.
type Reader interface {
	// Glance reads an event whose shape has been seen before, without parsing it; ok is false when it must go to Read.
	// It costs some 30 ns and never allocates.
	Glance(a *Answer, name, data []byte) (m Meaning, ok bool)
	// Read parses an event. Events of one reply must come in order, whichever of the two reads them.
	Read(a *Answer, name, data []byte) Meaning
	// ReadDocument parses a whole reply that was not streamed.
	ReadDocument(a *Answer, body []byte) Meaning
}

// Meaning is what one event carried.
type Meaning struct {
	Kind   record.Kind
	Tokens int  // generated tokens in it, where Exact
	Exact  bool // the server said how many tokens
}

// Answer gathers what the events of one reply said so far. Reset it before the next reply.
type Answer struct {
	Usage        record.Usage
	FinishReason string // first one seen; with several choices, that of the last to finish
	Terminated   bool   // the end marker came
	Error        string // the error object inside the reply, at most 4 KiB; empty for none
	Tokens       bool   // at least one token event, or a document with text
	Malformed    int    // events that could not be read

	choices  int // indexes seen
	finished int // of them, those with a finish reason
	counted  int // completion tokens in the last usage, for the difference
}

// Reset makes a ready for the next reply.
func (a *Answer) Reset() { *a = Answer{} }
