package record

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// errMalformed says that bytes are not an encoded exchange.
var errMalformed = errors.New("malformed exchange")

// DecodeExchange fills x with the exchange at the start of src and returns what follows it. Every field of x is overwritten;
// its Events slice and its strings are used again where they fit, so x must not be kept by reference from call to call.
// Memory is bounded by the length of src, whatever it holds. On an error x is undefined.
func DecodeExchange(src []byte, x *Exchange) (rest []byte, err error) {
	if len(src) < lengthSize {
		return nil, errMalformed
	}
	size := uint64(binary.LittleEndian.Uint32(src))
	if size > uint64(len(src)-lengthSize) {
		return nil, errMalformed
	}
	end := lengthSize + int(size)
	c := cursor{b: src[lengthSize:end]}
	flags := c.facts(x)
	c.events(x)
	c.ending(x, flags)
	if c.bad {
		return nil, errMalformed
	}
	return src[end:], nil
}

// cursor reads values off the front of b. After a fault every value is zero and bad stays set.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) facts(x *Exchange) (flags uint16) {
	head := c.take(4)
	if c.bad {
		return 0
	}
	flags = binary.LittleEndian.Uint16(head)
	x.Outcome, x.Delay = Outcome(head[2]), Delay(head[3])
	x.Reused = flags&isReused != 0
	x.Usage = Usage{Known: flags&isUsageKnown != 0, CachedKnown: flags&isCachedKnown != 0}
	x.Index = c.varint()
	x.Stage = int(c.varint())
	x.Session, x.Turn = x.Index, 0
	if flags&hasSession != 0 {
		x.Session = x.Index + c.varint()
		x.Turn = int(c.varint())
	}
	x.Due = time.Duration(c.varint())
	c.instants(x, flags)
	x.Status = int(c.varint())
	x.BytesIn = c.varint()
	x.Reads = int(c.varint())
	if flags&hasUsage != 0 {
		x.Usage.Input = int(c.varint())
		x.Usage.Output = int(c.varint())
		x.Usage.Cached = int(c.varint())
	}
	x.PlannedIn, x.PlannedOut = 0, 0
	if flags&hasPlanned != 0 {
		x.PlannedIn = int(c.varint())
		x.PlannedOut = int(c.varint())
	}
	x.Class = c.text(x.Class)
	x.FinishReason = c.text(x.FinishReason)
	x.Error = c.text(x.Error)
	return flags
}

// ending reads how x ended, for records that say so.
func (c *cursor) ending(x *Exchange, flags uint16) {
	x.Cause, x.Attempts, x.RetryAfter = CauseNone, impliedAttempts(x), 0
	if flags&hasEnding != 0 {
		x.Cause = Cause(c.byte())
		x.Attempts = int(c.varint())
		x.RetryAfter = time.Duration(c.varint())
	}
}

func (c *cursor) instants(x *Exchange, flags uint16) {
	last := x.Due
	for i, at := range instantsOf(x) {
		*at = Instant{}
		if flags&(hasIssued<<i) != 0 {
			last += time.Duration(c.varint())
			*at = At(last)
		}
	}
}

// minEventSize is the length of the shortest encoded event; it bounds the events that bytes can hold.
const minEventSize = 3

func (c *cursor) events(x *Exchange) {
	count := c.uvarint()
	if c.bad || count > uint64(len(c.b)/minEventSize) {
		c.bad = true
		return
	}
	x.Events = slices.Grow(x.Events[:0], int(count))[:count]
	last, lag := x.Due, time.Duration(0)
	for i := range x.Events {
		e := &x.Events[i]
		c.tag(e)
		last += time.Duration(c.varint())
		lag += time.Duration(c.varint())
		e.KernelAt, e.UserAt = last, last+lag
	}
}

func (c *cursor) tag(e *Event) {
	tag := c.byte()
	e.Kind, e.Flags = Kind(tag&kindMask), Flags(tag>>flagShift&flagMask)
	if tag&kindMask == kindEscape {
		e.Kind, e.Flags = Kind(c.byte()), Flags(c.byte())
	}
	e.Tokens = impliedTokens(e.Flags)
	if tag&hasTokens != 0 {
		e.Tokens = uint16(c.uvarint())
	}
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	head := c.b[:n]
	c.b = c.b[n:]
	return head
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// text returns the next string: old itself when it is the same, so that repeated words cost nothing.
func (c *cursor) text(old string) string {
	if b := c.take(c.uvarint()); string(b) != old {
		return string(b)
	}
	return old
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}
