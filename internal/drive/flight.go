package drive

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
	"tare/internal/plan"
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
	cropped      bool   // it was larger
	encoding     string // of its body, if that is not undone
	packed       bool   // its body was in gzip
	location     string // of a redirect
	ids          string // start of every X-Request-Id
	echoed       bool   // its reply repeats the X-Request-Id of a request of this run
	foreign      bool   // and of another one

	think   time.Duration // before the next request in its place
	visit   *visit        // whose turn it is; nil for a lone request
	later   *later        // the turn; nil for a first one
	live    bool          // later turns need the text of the reply
	server  int           // it goes to
	began   time.Duration // first write of the first attempt
	sent    time.Duration // first write of this one
	spoken  bool          // a token has come
	tokenAt time.Duration // when we had the last one

	request []byte        // kept while it may have to be sent again
	lines   []byte        // headers of its own; engine http2
	counted bool          // it is one of those in flight
	fresh   bool          // of a flight that waits to be sent again: on a new connection
	waits   time.Duration // for a connection since; engine http2

	merged       int64        // events that were
	reading, lag record.Spans // kept here by the engines without loops

	armed time.Duration // moment of the read deadline; engine goroutine

	// Of engines goroutine and http2:
	lingers bool          // its end marker has come, the end of its reply not yet
	giveUp  time.Duration // and until when that is waited for
}

const (
	keepEvents  = 4096     // a flight with room for more events is not kept
	errorDoc    = 4 << 10  // of an error reply
	documentMax = 64 << 20 // of a reply that is not streamed
)

var errDocument = fmt.Errorf("document above %d MiB", documentMax>>20)

func newFlight(r *run, reader dialect.Reader) *flight {
	f := &flight{reader: reader, secrets: r.cfg.Secrets, live: r.plan.Live(), ids: r.cfg.RunID + "-"}
	f.resp.Expect(Framing(r.dialect))
	return f
}

// Framing is how replies of a dialect are taken apart, in the words of package wire.
func Framing(d dialect.Dialect) wire.Framing {
	switch d.Framing() {
	case plan.FramingSSE:
		return wire.AsEvents
	case plan.FramingLines:
		return wire.AsLines
	case plan.FramingDocument:
		return wire.AsDocument
	}
	return wire.ByType
}

// begin makes f ready for a job that is about to be written.
func (f *flight) begin(j *job, due, issued time.Duration, delay record.Delay) {
	f.x = record.Exchange{
		Index: j.index, Session: j.session, Turn: j.turn, Stage: j.stage, Due: due, Issued: record.At(issued), Delay: delay,
		Class: j.class, PlannedIn: j.in, PlannedOut: j.out, Events: f.x.Events[:0],
	}
	f.think, f.visit, f.later, f.server, f.request, f.counted = j.think, j.visit, j.later, j.server, f.request[:0], false
	f.lines = append(f.lines[:0], j.lines...)
	f.answer.Keep = f.live && f.visit != nil && j.turn+1 < f.visit.turns
	f.merged, f.reading, f.lag = 0, record.Spans{}, record.Spans{}
	f.await()
}

// await makes f ready for a reply.
func (f *flight) await() {
	f.resp.Reset(f)
	f.answer.Reset()
	f.doc, f.cropped, f.encoding, f.packed, f.location = f.doc[:0], false, "", false, ""
	f.spoken, f.lingers, f.fresh = false, false, false
	f.echoed, f.foreign = false, false
}

// depart begins an attempt, which is written now.
func (f *flight) depart(now time.Duration) {
	f.try()
	if _, again := f.x.FirstWrite.Get(); !again {
		f.began = now
	}
	f.sent = now
}

// try counts an attempt, and forgets what became of the one before. What is known of the first one's sending stays.
func (f *flight) try() {
	if f.x.Attempts++; f.x.Attempts == 1 {
		return
	}
	x := &f.x
	x.LastWrite, x.HeaderAt, x.End, x.Events = record.Instant{}, record.Instant{}, record.Instant{}, x.Events[:0]
	x.Outcome, x.Cause, x.Status, x.FinishReason, x.Error = 0, record.CauseNone, 0, "", ""
	x.Usage, x.BytesIn, x.Reads = record.Usage{}, 0, 0
	f.await()
}

// take feeds bytes that arrived at kernel and were read at user. done reports a complete reply.
func (f *flight) take(b []byte, kernel, user time.Duration, stamped bool) (done bool, err error) {
	f.kernel, f.user, f.stamped = kernel, user, stamped
	f.x.Reads++
	f.x.BytesIn += int64(len(b))
	before := len(f.x.Events)
	rest, done, err := f.resp.Feed(b)
	f.markMerged(before)
	switch {
	case err != nil:
	case f.cropped && f.x.Status == 200:
		err = errDocument
	case len(rest) > 0:
		err = errors.New("bytes after the end of the reply")
	}
	return done, err
}

// continueRead says that the bytes to be taken next came in the same read of the socket as those before, through a layer
// that gave them out in pieces: the stamp is later than the last event so far.
func (f *flight) continueRead() {
	if n := len(f.x.Events); n > 0 {
		f.x.Events[n-1].Flags |= record.FlagMerged
		f.merged++
	}
}

// worked keeps account of a read by an engine whose readers work side by side: the bytes were there at f.user, and read at
// done.
func (f *flight) worked(done time.Duration) {
	f.reading.Add(done - f.user)
	if f.stamped {
		f.lag.Add(f.user - f.kernel)
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
	f.merged += int64(max(exact-before, 0))
}

// Head takes note of the reply's header block.
func (f *flight) Head(h *wire.Head) {
	f.x.HeaderAt = record.At(f.kernel)
	f.x.Status = h.Status
	f.location = h.Location
	ours, own := wire.Echo(h.RequestID, f.ids, f.x.Index)
	f.echoed, f.foreign = ours, ours && !own
	if f.packed = h.Unpacked; !h.Unpacked {
		f.encoding = h.Encoding
	}
	if h.Status == 429 || h.Status == 503 {
		f.x.RetryAfter = retryAfter(h.RetryAfter, time.Now())
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
	room := limit - len(f.doc)
	f.cropped = f.cropped || len(b) > room
	f.doc = append(f.doc, b[:min(len(b), room)]...)
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
	if m.Kind.Token() {
		f.spoken, f.tokenAt = true, f.user
	}
	if m.Exact {
		e.Flags |= record.FlagExact
		e.Tokens = uint16(min(m.Tokens, 1<<16-1))
	}
}

// verdict is how the bytes of a flight ended.
type verdict struct {
	cause record.Cause // CauseNone: what was read decides
	whole bool         // the reply was complete
	at    time.Duration
	late  bool // the connection was waited for after at
	err   string
}

// close settles the outcome.
func (f *flight) close(v verdict) {
	if !f.resp.Framed() && f.x.Status == 200 && v.cause == record.CauseNone && v.whole && f.encoding == "" {
		f.reader.ReadDocument(&f.answer, f.doc)
	}
	f.resp.Release()
	x := &f.x
	x.End = record.At(v.at)
	if at, ok := f.terminator(); ok {
		x.End = record.At(at)
	}
	if cut := v.cause.Outcome(); f.answer.Terminated && (cut == record.TimedOut || cut == record.Reset || cut == record.Cancelled) {
		v.cause, v.whole, v.err = record.CauseNone, true, "" // all that was asked for had come
	}
	x.Usage = f.answer.Usage
	x.FinishReason = f.answer.FinishReason
	x.Cause, x.Error = v.cause, v.err
	if x.Cause == record.CauseNone {
		x.Cause = f.cause(v.whole)
	}
	x.Outcome = x.Cause.Outcome()
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

// cause is the class of an end that follows from what was read.
func (f *flight) cause(whole bool) record.Cause {
	switch f.answer.Outcome(f.x.Status, whole) {
	case record.Empty:
		return record.CauseEmpty
	case record.Truncated:
		return f.cutCause(whole)
	case record.StreamError:
		return f.answer.Fault
	case record.HTTPError:
		return statusCause(f.x.Status)
	case record.Reset:
		return record.CauseConnectionLost
	}
	return record.CauseNone
}

func (f *flight) cutCause(whole bool) record.Cause {
	switch {
	case !whole:
		return record.CauseEOFBody
	case f.encoding != "":
		return record.CauseEncoded
	}
	return record.CauseEOFClean
}

func statusCause(status int) record.Cause {
	switch {
	case status == 429 || status == 503:
		return record.CauseRateLimited
	case 300 <= status && status < 400:
		return record.CauseRedirect
	}
	return record.CauseHTTPStatus
}

// complaint is what the server said, or what is missing, when the exchange did not complete.
func (f *flight) complaint() string {
	said := string(f.doc[:min(len(f.doc), errorDoc)])
	switch f.x.Cause {
	case record.CauseEmpty:
		return "the reply held no token"
	case record.CauseEncoded:
		return "the reply is encoded as " + f.encoding + ", which was not asked for"
	case record.CauseEOFClean:
		if f.answer.Unread != "" {
			return "the reply ended before its end marker; not readable was: " + f.answer.Unread
		}
		return "the reply ended before its end marker"
	case record.CauseRedirect:
		return strings.TrimSpace("redirect to " + f.location + " " + said)
	}
	switch f.x.Outcome {
	case record.StreamError:
		return f.answer.Evidence()
	case record.HTTPError:
		return said
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
	if cap(f.answer.Text) > keepBytes {
		f.answer.Text = nil
	}
	if cap(f.request) > keepBytes {
		f.request = nil
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
		return verdict{cause: record.CauseStale, at: at, err: "the server closed the kept connection as the request was sent"}
	case !f.resp.Started():
		return verdict{cause: record.CauseUnanswered, at: at, err: "the server closed the connection without a reply"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return verdict{at: at, err: "the server closed the connection within the reply"}
	}
	return verdict{at: at, err: err.Error()}
}

// broken says how the flight ends when its bytes are no HTTP reply.
func (f *flight) broken(err error) verdict {
	v := verdict{cause: record.CauseMalformed, at: f.user, err: "read reply: " + err.Error()}
	switch {
	case f.x.Status == 0:
		v.cause = record.CauseNotHTTP
	case errors.Is(err, wire.ErrTooLong) || errors.Is(err, wire.ErrTooMany) || errors.Is(err, errDocument):
		v.cause = record.CauseTooLarge
	}
	return v
}

// snapped says how the flight ends when its connection broke while doing something. Without a byte of a reply on a kept
// connection it was lost because the server no longer wanted to keep that.
func (f *flight) snapped(at time.Duration, doing string, err error) verdict {
	v := verdict{cause: record.CauseConnectionLost, at: at, err: doing + ": " + err.Error()}
	if f.x.Reused && !f.resp.Started() {
		v.cause = record.CauseStale
	}
	return v
}
