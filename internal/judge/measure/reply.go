package measure

import (
	"time"

	"tare/internal/record"
)

// Reply is one exchange prepared for measuring: the moments that metrics ask for and the tokens of each event. Read fills
// it and may be called again for the next exchange; the exchange must not change in between.
type Reply struct {
	*record.Exchange

	Sent   time.Duration // first write, since the start of the run; meaningful with WasSent
	Finish time.Duration // end of the reply, since the start of the run; meaningful with Ended

	WasSent, Ended bool

	FirstEvent  Arrival // first event other than a comment
	FirstToken  Arrival // first token event
	FirstAnswer Arrival // first token event outside of the reasoning
	LastToken   Arrival // last token event

	Tokens      []Token // token events in order
	Output      int64   // output tokens by the server's count; meaningful with OutputKnown
	OutputKnown bool
	PerEvent    bool  // Token.Count is known for every token event
	Merged      int64 // events that were merged in a read
	MergedReads int64 // reads that merged them
	Stamped     int64 // events whose arrival the kernel stamped
}

// Arrival is when an event arrived: at At by its stamp, in truth within [Low, At]. The two are equal unless later bytes came
// in the same read.
type Arrival struct {
	Low, At time.Duration
	Known   bool // the event came at all
}

// Exact reports whether the stamp is the arrival.
func (a Arrival) Exact() bool { return a.Known && a.Low == a.At }

// Token is a token event.
type Token struct {
	Arrival
	Count int64 // generated tokens in it; meaningful with Reply.PerEvent
	exact bool  // the server said how many
}

// Read prepares x.
func (r *Reply) Read(x *record.Exchange) {
	*r = Reply{Exchange: x, Tokens: r.Tokens[:0]}
	r.Sent, r.WasSent = x.FirstWrite.Get()
	r.Finish, r.Ended = x.End.Get()
	r.readEvents()
	r.countTokens()
}

// readEvents walks the events. The lower bound of a merged arrival is the stamp of the last read before its own that
// completed an event; for the first such read it is the send, before which no reply can come.
func (r *Reply) readEvents() {
	read, before := r.Sent, r.Sent // stamps of the current read and of the one before it
	lastMerged := time.Duration(-1)
	for i := range r.Events {
		e := &r.Events[i]
		if e.KernelAt != read {
			read, before = e.KernelAt, read
		}
		at := Arrival{Low: e.KernelAt, At: e.KernelAt, Known: true}
		if e.Flags&record.FlagMerged != 0 {
			at.Low = min(before, e.KernelAt)
			r.Merged++
			if e.UserAt != lastMerged {
				r.MergedReads++
				lastMerged = e.UserAt
			}
		}
		if e.Flags&record.FlagStamped != 0 {
			r.Stamped++
		}
		r.note(e, at)
	}
}

func (r *Reply) note(e *record.Event, at Arrival) {
	if e.Kind != record.KindComment && !r.FirstEvent.Known {
		r.FirstEvent = at
	}
	if !e.Kind.Token() {
		return
	}
	if !r.FirstToken.Known {
		r.FirstToken = at
	}
	if e.Kind.Answer() && !r.FirstAnswer.Known {
		r.FirstAnswer = at
	}
	r.LastToken = at
	r.Tokens = append(r.Tokens, Token{Arrival: at, Count: int64(e.Tokens), exact: e.Flags&record.FlagExact != 0})
}

// countTokens settles how many tokens came in all and in each event. As many token events as the server counted tokens
// means one token each, since an event without a token is no token event.
func (r *Reply) countTokens() {
	sum, exact := int64(0), len(r.Tokens) > 0
	for _, t := range r.Tokens {
		sum += t.Count
		exact = exact && t.exact
	}
	switch {
	case r.Usage.Known:
		r.Output, r.OutputKnown = int64(r.Usage.Output), true
	case exact:
		r.Output, r.OutputKnown = sum, true
	}
	r.PerEvent = exact
	if !exact && r.OutputKnown && len(r.Tokens) > 0 && r.Output == int64(len(r.Tokens)) {
		r.PerEvent = true
		for i := range r.Tokens {
			r.Tokens[i].Count = 1
		}
	}
}

// firstTokens is the number of tokens in the first token event where it is known, else 1.
func (r *Reply) firstTokens() int64 {
	if r.PerEvent || r.Tokens[0].exact {
		return r.Tokens[0].Count
	}
	return 1
}

// Begun returns when the reply began: at its first token, or at its end where it had none.
func (r *Reply) Begun() (at time.Duration, ok bool) {
	if r.FirstToken.Known {
		return r.FirstToken.At, true
	}
	return r.Finish, r.Ended
}

// EachToken gives yield every moment at which output tokens arrived and how many, whatever the reply's outcome. Where the
// tokens of single events are not known, the reply's count is spread evenly over its token events, in whole tokens; a reply
// without events has them all at its end. It gives nothing where the count is unknown.
func (r *Reply) EachToken(yield func(at time.Duration, tokens int64)) {
	events := int64(len(r.Tokens))
	switch {
	case events > 0 && r.PerEvent:
		for _, t := range r.Tokens {
			yield(t.At, t.Count)
		}
	case events > 0 && r.OutputKnown:
		for i, t := range r.Tokens {
			yield(t.At, r.Output*int64(i+1)/events-r.Output*int64(i)/events)
		}
	case events == 0 && r.OutputKnown && r.Ended:
		yield(r.Finish, r.Output)
	}
}
