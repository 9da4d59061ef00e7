package dialect

import (
	"math/bits"
	"unicode/utf8"

	"tare/internal/record"
)

// Answer gathers what the events of one reply said so far. Reset it before the next reply.
type Answer struct {
	Usage        record.Usage
	FinishReason string       // first one seen; with several choices, that of the last to finish
	Terminated   bool         // the end marker came, or the reply was a whole document
	NotStreamed  bool         // a document came where a stream was asked for
	Fault        record.Cause // the class of Error; CauseNone without one
	Error        string       // the error object inside the reply, at most 4 KiB, secrets masked; empty for none
	Unread       string       // the first event that could not be read, at most 4 KiB, secrets masked; empty for none
	Tokens       bool         // at least one token event, or a document with text
	Malformed    int          // events that could not be read, or only by overlooking a raw control byte in a string

	Keep bool   // Text is wanted: every event is then parsed, none known at a glance
	Text []byte // with Keep: the answer so far, without reasoning and calls of tools, at most MaxText; its memory is used again

	seen      indexes // of choices
	finished  indexes // of them, those with a finish reason
	counted   int     // completion tokens in the last usage
	pieces    pieces  // of usage, so far
	said      int     // bytes of the text so far, where events repeat it
	thought   int     // bytes of the reasoning so far
	uncounted bool    // a token event since then did not say how many tokens it had
}

// MaxText is the length, in bytes, at which the kept text of an answer is cut.
const MaxText = 4 << 20

// Reset makes a ready for the next reply, of which Keep says as much as before.
func (a *Answer) Reset() { *a = Answer{Keep: a.Keep, Text: a.Text[:0]} }

// say adds strings of JSON, with their escapes, to the kept text, or puts them in its place.
func (a *Answer) say(said [][]byte, anew bool) {
	if anew && len(said) > 0 {
		a.Text = a.Text[:0]
	}
	for _, s := range said {
		a.Text = appendPlain(a.Text, s)
	}
	if len(a.Text) > MaxText {
		n := MaxText
		for n > MaxText-utf8.UTFMax && !utf8.RuneStart(a.Text[n]) {
			n--
		}
		a.Text = a.Text[:n]
	}
}

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

// refuse takes the error of a reply; the first one holds.
func (a *Answer) refuse(fault record.Cause, text string) {
	if a.Error == "" {
		a.Fault, a.Error = fault, text
	}
}

// Evidence is the text to keep of a reply that went wrong: the error, or else the first event that could not be read.
func (a *Answer) Evidence() string {
	if a.Error != "" {
		return a.Error
	}
	return a.Unread
}

func (a *Answer) allFinished() bool { return a.seen.count() > 0 && a.seen == a.finished }

// finish notes finish reasons; a reason for an index that has one already is a repetition, unless it is to replace it.
func (a *Answer) finish(done indexes, reason string, again bool) {
	if fresh := done.without(a.finished); fresh.count() > 0 || again {
		a.FinishReason = reason
		a.finished = a.finished.with(fresh)
	}
}

// count takes usage numbers, of which the last that is not zero holds, each by itself.
func (a *Answer) count(u record.Usage) {
	if !told(u) {
		return
	}
	a.Usage.Known = true
	a.Usage.CachedKnown = a.Usage.CachedKnown || u.CachedKnown
	a.Usage.Input = latest(a.Usage.Input, u.Input)
	a.Usage.Output = latest(a.Usage.Output, u.Output)
	a.Usage.Cached = latest(a.Usage.Cached, u.Cached)
}

// told reports whether usage has a number other than 0: some servers send zeros until they know.
func told(u record.Usage) bool { return u.Input|u.Output|u.Cached != 0 }

// pieces are token counts that a server gives in parts to be added up.
type pieces struct {
	uncached, written, read int // of the prompt: neither written to nor read from the cache, or either
	said, thought           int // of the answer
}

// total takes the pieces that an event gave, of which the last that is not zero holds, and adds the sums of those so far
// to u.
func (p *pieces) total(u record.Usage, given pieces) record.Usage {
	if given == (pieces{}) {
		return u
	}
	p.uncached, p.written, p.read = latest(p.uncached, given.uncached), latest(p.written, given.written), latest(p.read, given.read)
	p.said, p.thought = latest(p.said, given.said), latest(p.thought, given.thought)
	u.Input += p.uncached + p.written + p.read
	u.Cached += p.read
	u.Output += p.said + p.thought
	return u
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
