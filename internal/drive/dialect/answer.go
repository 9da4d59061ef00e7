package dialect

import (
	"math/bits"

	"tare/internal/record"
)

// Answer gathers what the events of one reply said so far. Reset it before the next reply.
type Answer struct {
	Usage        record.Usage
	FinishReason string // first one seen; with several choices, that of the last to finish
	Terminated   bool   // the end marker came, or the reply was a whole document
	NotStreamed  bool   // a document came where a stream was asked for
	Error        string // the error object inside the reply, at most 4 KiB, secrets masked; empty for none
	Unread       string // the first event that could not be read, at most 4 KiB, secrets masked; empty for none
	Tokens       bool   // at least one token event, or a document with text
	Malformed    int    // events that could not be read, or only by overlooking a raw control byte in a string

	seen      indexes // of choices
	finished  indexes // of them, those with a finish reason
	counted   int     // completion tokens in the last usage
	uncounted bool    // a token event since then did not say how many tokens it had
}

// Reset makes a ready for the next reply.
func (a *Answer) Reset() { *a = Answer{} }

// Outcome says how a reply ended that the client let come to its end. whole is false when the connection was closed
// before the body was complete. Time-outs, failed connects and cancellation are for the caller to know; a status of 0, no
// reply at all, is a reset.
//
// The end marker makes a reply complete even if the connection breaks right behind it.
func (a *Answer) Outcome(status int, whole bool) record.Outcome {
	switch {
	case status == 0:
		return record.Reset
	case status != 200:
		return record.HTTPError
	case a.Error != "":
		return record.StreamError
	case !a.Terminated && !(whole && a.allFinished()):
		return record.Truncated
	case !a.Tokens:
		return record.Empty
	}
	return record.Completed
}

// Evidence is the text to keep of a reply that went wrong: the error, or else the first event that could not be read.
func (a *Answer) Evidence() string {
	if a.Error != "" {
		return a.Error
	}
	return a.Unread
}

func (a *Answer) allFinished() bool { return a.seen.count() > 0 && a.seen == a.finished }

// finish notes finish reasons; a reason for an index that has one already is a repetition.
func (a *Answer) finish(done indexes, reason string) {
	if fresh := done.without(a.finished); fresh.count() > 0 {
		a.FinishReason = reason
		a.finished = a.finished.with(fresh)
	}
}

// count takes usage numbers, of which the last that is not zero holds, each by itself.
func (a *Answer) count(u record.Usage) {
	if u == (record.Usage{}) {
		return
	}
	a.Usage.Known = true
	a.Usage.Input = latest(a.Usage.Input, u.Input)
	a.Usage.Output = latest(a.Usage.Output, u.Output)
	a.Usage.Cached = latest(a.Usage.Cached, u.Cached)
}

func latest(old, n int) int {
	if n == 0 {
		return old
	}
	return n
}

// indexes is a set of choice indexes. Indexes from 127 on, more than any server offers, are taken as one.
type indexes [2]uint64

func (x *indexes) add(i int) {
	i = min(max(i, 0), 127)
	x[i/64] |= 1 << (i % 64)
}

func (x indexes) with(y indexes) indexes    { return indexes{x[0] | y[0], x[1] | y[1]} }
func (x indexes) without(y indexes) indexes { return indexes{x[0] &^ y[0], x[1] &^ y[1]} }
func (x indexes) count() int                { return bits.OnesCount64(x[0]) + bits.OnesCount64(x[1]) }
