package record

import (
	"encoding/binary"
	"slices"
	"time"
)

// Bits of an encoded exchange's flag word.
const (
	hasIssued = 1 << iota
	hasConnReady
	hasFirstWrite
	hasLastWrite
	hasHeaderAt
	hasEnd
	isReused
	isUsageKnown
	hasUsage
	hasSession
	hasPlanned
	isCachedKnown
	hasEnding
)

// Bits of an encoded event's tag: the kind below, three flags above it, and whether a token count follows.
const (
	kindMask   = 0x0f
	kindEscape = 0x0f // kind and flags follow as two bytes of their own
	flagShift  = 4
	flagMask   = 0x07
	hasTokens  = 0x80
)

const (
	lengthSize   = 4                                                   // bytes before each exchange that say how long it is
	fixedSize    = lengthSize + 4 + 24*binary.MaxVarintLen64           // more than an exchange without strings and events
	maxEventSize = 3 + binary.MaxVarintLen16 + 2*binary.MaxVarintLen64 // one event, in full
)

// AppendExchange appends x in the binary form of docs/rundir.md to dst. It allocates only to grow dst.
func AppendExchange(dst []byte, x *Exchange) []byte {
	start := len(dst)
	room := fixedSize + len(x.Class) + len(x.FinishReason) + len(x.Error) + maxEventSize*len(x.Events)
	dst = slices.Grow(dst, room)
	b := dst[start : start+room]
	n := putFacts(b, lengthSize, x)
	n = putEvents(b, n, x.Due, x.Events)
	if hasEndingOf(x) {
		n = putEnding(b, n, x)
	}
	binary.LittleEndian.PutUint32(b, uint32(n-lengthSize))
	return dst[:start+n]
}

// putFacts writes everything but the events to b from n on and returns where it ended.
func putFacts(b []byte, n int, x *Exchange) int {
	flags := flagsOf(x)
	binary.LittleEndian.PutUint16(b[n:], flags)
	b[n+2], b[n+3] = byte(x.Outcome), byte(x.Delay)
	n = putVarint(b, n+4, x.Index)
	n = putVarint(b, n, int64(x.Stage))
	if flags&hasSession != 0 {
		n = putVarint(b, n, x.Session-x.Index)
		n = putVarint(b, n, int64(x.Turn))
	}
	n = putVarint(b, n, int64(x.Due))
	n = putInstants(b, n, x)
	n = putVarint(b, n, int64(x.Status))
	n = putVarint(b, n, x.BytesIn)
	n = putVarint(b, n, int64(x.Reads))
	if flags&hasUsage != 0 {
		n = putVarint(b, n, int64(x.Usage.Input))
		n = putVarint(b, n, int64(x.Usage.Output))
		n = putVarint(b, n, int64(x.Usage.Cached))
	}
	if flags&hasPlanned != 0 {
		n = putVarint(b, n, int64(x.PlannedIn))
		n = putVarint(b, n, int64(x.PlannedOut))
	}
	n = putString(b, n, x.Class)
	n = putString(b, n, x.FinishReason)
	return putString(b, n, x.Error)
}

func flagsOf(x *Exchange) (flags uint16) {
	for i, at := range instantsOf(x) {
		if at.set {
			flags |= hasIssued << i
		}
	}
	if x.Reused {
		flags |= isReused
	}
	if x.Usage.Known {
		flags |= isUsageKnown
	}
	if x.Usage.Input|x.Usage.Output|x.Usage.Cached != 0 {
		flags |= hasUsage
	}
	if x.Usage.CachedKnown {
		flags |= isCachedKnown
	}
	if hasEndingOf(x) {
		flags |= hasEnding
	}
	if x.Session != x.Index || x.Turn != 0 {
		flags |= hasSession
	}
	if x.PlannedIn|x.PlannedOut != 0 {
		flags |= hasPlanned
	}
	return flags
}

// instantsOf lists x's moments in the order of their flag bits.
func instantsOf(x *Exchange) [6]*Instant {
	return [...]*Instant{&x.Issued, &x.ConnReady, &x.FirstWrite, &x.LastWrite, &x.HeaderAt, &x.End}
}

// putInstants writes each present moment as its distance from the one before.
func putInstants(b []byte, n int, x *Exchange) int {
	last := x.Due
	for _, at := range instantsOf(x) {
		if at.set {
			n = putVarint(b, n, int64(at.at-last))
			last = at.at
		}
	}
	return n
}

// putEvents writes the count, then of each event its tag, its kernel time since the event before, and how much the
// receive lag differs from that event's: events of one read cost three bytes.
func putEvents(b []byte, n int, origin time.Duration, events []Event) int {
	n = putUvarint(b, n, uint64(len(events)))
	last, lag := origin, time.Duration(0)
	for i := range events {
		e := &events[i]
		tag := byte(e.Kind)&kindMask | (byte(e.Flags)&flagMask)<<flagShift
		explicit := e.Tokens != impliedTokens(e.Flags)
		if explicit {
			tag |= hasTokens
		}
		if e.Kind >= kindEscape || e.Flags > flagMask {
			b[n], b[n+1], b[n+2] = tag&hasTokens|kindEscape, byte(e.Kind), byte(e.Flags)
			n += 3
		} else {
			b[n] = tag
			n++
		}
		if explicit {
			n = putUvarint(b, n, uint64(e.Tokens))
		}
		n = putVarint(b, n, int64(e.KernelAt-last))
		n = putVarint(b, n, int64(e.UserAt-e.KernelAt-lag))
		last, lag = e.KernelAt, e.UserAt-e.KernelAt
	}
	return n
}

// hasEndingOf reports whether x ended otherwise than most do: completed, at the first attempt.
func hasEndingOf(x *Exchange) bool {
	return x.Cause != CauseNone || x.Attempts != impliedAttempts(x) || x.RetryAfter != 0
}

// impliedAttempts is the number of attempts that is not spelled out.
func impliedAttempts(x *Exchange) int {
	if x.FirstWrite.set {
		return 1
	}
	return 0
}

func putEnding(b []byte, n int, x *Exchange) int {
	b[n] = byte(x.Cause)
	n = putVarint(b, n+1, int64(x.Attempts))
	return putVarint(b, n, int64(x.RetryAfter))
}

// impliedTokens is the token count that is not spelled out: the commonest for an event with these flags.
func impliedTokens(f Flags) uint16 {
	if f&FlagExact != 0 {
		return 1
	}
	return 0
}

func putString(b []byte, n int, s string) int {
	n = putUvarint(b, n, uint64(len(s)))
	return n + copy(b[n:], s)
}

// putVarint writes v so that small magnitudes of either sign are short.
func putVarint(b []byte, n int, v int64) int {
	return putUvarint(b, n, uint64(v)<<1^uint64(v>>63))
}

func putUvarint(b []byte, n int, v uint64) int {
	for v >= 0x80 {
		b[n] = byte(v) | 0x80
		v >>= 7
		n++
	}
	b[n] = byte(v)
	return n + 1
}
