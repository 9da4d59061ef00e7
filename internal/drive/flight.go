package drive

import (
	"errors"
	"io"
	"time"

	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
	"tare/internal/record"
)

// flight is one exchange while it lasts: the facts so far and the parser of its reply. Flights are reused, with the memory
// their events and parser have grown to. It takes the parser's finds as a wire.Sink.
type flight struct {
	x       record.Exchange
	resp    wire.Response
	answer  dialect.Answer
	reader  dialect.Reader
	secrets []string // masked wherever a server echoes them

	kernel, user time.Duration // arrival of the bytes being fed, and when we had them
	stamped      bool
	doc          []byte // what is kept of such a reply
	encoding     string // of its body, if that is not undone
	packed       bool   // its body was in gzip

	think time.Duration // before the next request in its place

	// Of engine N:
	until   time.Time // end of the request's time
	lingers bool      // its end marker has come, the end of its reply not yet
}

const (
	keepEvents  = 4096     // a flight with room for more events is not kept
	errorDoc    = 4 << 10  // of an error reply
	documentMax = 64 << 20 // of a reply that is not streamed
)

// begin makes f ready for a job that is about to be written.
func (f *flight) begin(j *job, due, issued time.Duration, delay record.Delay) {
	f.x = record.Exchange{
		Index: j.index, Session: j.index, Stage: j.stage, Due: due, Issued: record.At(issued), Delay: delay,
		PlannedIn: j.in, PlannedOut: j.out, Events: f.x.Events[:0],
	}
	f.think = j.think
	f.resp.Reset(f)
	f.answer.Reset()
	f.doc, f.encoding, f.packed, f.lingers = f.doc[:0], "", false, false
}

// take feeds bytes that arrived at kernel and were read at user. done reports a complete reply.
func (f *flight) take(b []byte, kernel, user time.Duration, stamped bool) (done bool, err error) {
	f.kernel, f.user, f.stamped = kernel, user, stamped
	f.x.Reads++
	f.x.BytesIn += int64(len(b))
	before := len(f.x.Events)
	rest, done, err := f.resp.Feed(b)
	f.markMerged(before)
	if len(rest) > 0 && err == nil {
		err = errors.New("bytes after the end of the reply")
	}
	return done, err
}

// continueRead says that the bytes to be taken next came in the same read of the socket as those before, through a layer
// that gave them out in pieces: the stamp is later than the last event so far.
func (f *flight) continueRead() {
	if n := len(f.x.Events); n > 0 {
		f.x.Events[n-1].Flags |= record.FlagMerged
	}
}

// markMerged flags the events of the read just fed that other event bytes followed: the stamp is that of the last byte.
func (f *flight) markMerged(before int) {
	exact := len(f.x.Events) - 1
	if f.resp.Pending() {
		exact++
	}
	for i := before; i < exact; i++ {
		f.x.Events[i].Flags |= record.FlagMerged
	}
}

// Head takes note of the reply's header block.
func (f *flight) Head(h *wire.Head) {
	f.x.HeaderAt = record.At(f.kernel)
	f.x.Status = h.Status
	if f.packed = h.Unpacked; !h.Unpacked {
		f.encoding = h.Encoding
	}
}

// Event stamps one event and reads it.
//
// Note: events were once put aside and read when no socket had anything; with most of them known at a glance that only
// copied them.
func (f *flight) Event(name, data []byte) {
	i := f.stamp(record.KindOther)
	m, ok := f.reader.Glance(&f.answer, name, data)
	if !ok {
		m = f.reader.Read(&f.answer, name, data)
	}
	f.mean(i, m)
}

// Comment stamps a comment.
func (f *flight) Comment() { f.stamp(record.KindComment) }

// Body keeps a piece of a reply that is not streamed.
func (f *flight) Body(b []byte) {
	limit := documentMax
	if f.x.Status != 200 {
		limit = errorDoc
	}
	f.doc = append(f.doc, b[:min(len(b), limit-len(f.doc))]...)
}

func (f *flight) stamp(k record.Kind) (i int) {
	e := record.Event{KernelAt: f.kernel, UserAt: f.user, Kind: k}
	if f.stamped {
		e.Flags = record.FlagStamped
	}
	f.x.Events = append(f.x.Events, e)
	return len(f.x.Events) - 1
}

func (f *flight) mean(i int, m dialect.Meaning) {
	e := &f.x.Events[i]
	e.Kind = m.Kind
	if m.Exact {
		e.Flags |= record.FlagExact
		e.Tokens = uint16(min(m.Tokens, 1<<16-1))
	}
}

// verdict is how the bytes of a flight ended.
type verdict struct {
	outcome record.Outcome // 0: the dialect decides from what was read
	whole   bool           // the reply was complete
	at      time.Duration
	late    bool // the connection was waited for after at
	err     string
}

// close settles the outcome.
func (f *flight) close(v verdict) {
	if !f.resp.Framed() && f.x.Status == 200 && v.outcome == 0 && v.whole && f.encoding == "" {
		f.reader.ReadDocument(&f.answer, f.doc)
	}
	f.resp.Release()
	x := &f.x
	x.End = record.At(v.at)
	if at, ok := f.terminator(); ok {
		x.End = record.At(at)
	}
	cut := v.outcome == record.TimedOut || v.outcome == record.Reset || v.outcome == record.Cancelled
	if cut && f.answer.Terminated {
		v.outcome, v.whole = 0, true // all that was asked for had come
	}
	x.Usage = f.answer.Usage
	x.FinishReason = f.answer.FinishReason
	x.Outcome, x.Error = v.outcome, v.err
	if x.Outcome == 0 {
		x.Outcome = f.answer.Outcome(x.Status, v.whole)
	}
	switch {
	case x.Outcome == record.Completed:
		x.Error = ""
	case x.Error == "":
		x.Error = f.complaint()
	}
	if x.Error != "" {
		x.Error = dialect.Mask(x.Error, f.secrets...)
	}
}

// complaint is what the server said, or what is missing, when the exchange did not complete.
func (f *flight) complaint() string {
	switch f.x.Outcome {
	case record.StreamError:
		return f.answer.Evidence()
	case record.HTTPError:
		return string(f.doc[:min(len(f.doc), errorDoc)])
	case record.Truncated:
		if f.encoding != "" {
			return "the reply is encoded as " + f.encoding + ", which was not asked for"
		}
		return "the reply ended before its end marker"
	case record.Empty:
		return "the reply held no token"
	}
	return ""
}

// terminator is the arrival of the reply's end marker.
func (f *flight) terminator() (time.Duration, bool) {
	for i := len(f.x.Events) - 1; i >= 0; i-- {
		if f.x.Events[i].Kind == record.KindTerminator {
			return f.x.Events[i].KernelAt, true
		}
	}
	return 0, false
}

// recycle makes f fit to be kept for another exchange; it reports whether it is worth keeping.
func (f *flight) recycle() bool {
	if cap(f.doc) > keepBytes {
		f.doc = nil
	}
	return cap(f.x.Events) <= keepEvents
}

// peerClosed says how the flight ends when the server has closed the connection.
func (f *flight) peerClosed(at time.Duration) verdict {
	err := f.resp.EOF()
	switch {
	case err == nil:
		return verdict{whole: true, at: at}
	case !f.resp.Started() && f.x.Reused:
		return verdict{outcome: record.Reset, at: at, err: "the server closed the kept connection as the request was sent"}
	case !f.resp.Started():
		return verdict{outcome: record.Reset, at: at, err: "the server closed the connection without a reply"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return verdict{at: at, err: "the server closed the connection within the reply"}
	}
	return verdict{at: at, err: err.Error()}
}

// broken says how the flight ends when its bytes are no HTTP reply.
func (f *flight) broken(err error) verdict {
	v := verdict{at: f.user, err: "read reply: " + err.Error()}
	if f.x.Status == 0 {
		v.outcome = record.HTTPError
	} else {
		v.outcome = record.StreamError
	}
	return v
}

// stale reports that a flight that ended as v was lost to a connection that its server no longer wanted to keep.
func (f *flight) stale(v verdict) bool {
	return v.outcome == record.Reset && f.x.Reused && !f.resp.Started()
}

// unwritten says how the flight ends when its request could not be written.
func unwritten(at time.Duration, err error) verdict {
	return verdict{outcome: record.Reset, at: at, err: "write request: " + err.Error()}
}
