package dialect

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor walks one JSON text, checking it as it goes: a single pass without copies or allocation. After a fault every
// call comes to nothing, so that only the end needs to ask.
//
// Note: gjson took over twice the time for a token event, as it checks in a pass of its own, and allocates for every
// string with an escape. An event is walked over for each token received.
type cursor struct {
	b     []byte
	at    int
	depth int
	first bool // the container entered last has given no element yet
	bad   bool // not JSON
	raw   bool // a control byte stood bare in a string, which was read nevertheless
}

const maxDepth = 256

func (c *cursor) fail() { c.bad, c.at = true, len(c.b) }

// peek skips blanks and returns the byte then at hand, 0 at the end.
func (c *cursor) peek() byte {
	for ; c.at < len(c.b); c.at++ {
		if b := c.b[c.at]; b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return b
		}
	}
	return 0
}

// ended reports whether nothing but blanks is left, and everything was JSON.
func (c *cursor) ended() bool {
	c.peek()
	return !c.bad && c.at == len(c.b)
}

// enter opens an object or array if that is what comes next.
func (c *cursor) enter(opening byte) bool {
	if c.peek() != opening {
		return false
	}
	c.at++
	c.first = true
	if c.depth++; c.depth > maxDepth {
		c.fail()
	}
	return true
}

// more reports whether another element follows in the container entered; its end is passed.
func (c *cursor) more(closing byte) bool {
	b := c.peek()
	switch {
	case b == closing:
		c.at++
		c.depth--
		c.first = false
		return false
	case c.first && b != 0:
		c.first = false
		return true
	case b == ',':
		c.at++
		return true
	}
	c.fail()
	return false
}

// key reads an object's next key, without its quotes and with its escapes as they stand.
func (c *cursor) key() []byte {
	k := c.str()
	if c.peek() != ':' {
		c.fail()
		return nil
	}
	c.at++
	return k
}

// str reads a string and returns what stands between its quotes.
func (c *cursor) str() []byte {
	if c.peek() != '"' {
		c.fail()
		return nil
	}
	from := c.at + 1
	end, raw := stringEnd(c.b, from)
	if end < 0 {
		c.fail()
		return nil
	}
	c.raw = c.raw || raw
	c.at = end + 1
	return c.b[from:end]
}

// stringEnd finds the closing quote of a string whose first byte is at from, -1 when there is none or an escape is
// wrong. raw reports control bytes on the way.
func stringEnd(b []byte, from int) (end int, raw bool) {
	for at := from; ; {
		at = plainEnd(b, at)
		switch {
		case at >= len(b):
			return -1, raw
		case b[at] == '"':
			return at, raw
		case b[at] != '\\':
			raw = true
			at++
		default:
			if at = escapeEnd(b, at+1); at < 0 {
				return -1, raw
			}
		}
	}
}

// escapeEnd returns where the escape ends whose letter is at at, -1 when it is none.
func escapeEnd(b []byte, at int) int {
	if at >= len(b) {
		return -1
	}
	switch b[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 1
	case 'u':
		if len(b)-at > 4 && isHex(b[at+1]) && isHex(b[at+2]) && isHex(b[at+3]) && isHex(b[at+4]) {
			return at + 5
		}
	}
	return -1
}

// appendPlain appends what a string of JSON says, whose escapes are right. Half a surrogate pair says U+FFFD.
func appendPlain(dst, s []byte) []byte {
	for {
		at := bytes.IndexByte(s, '\\')
		if at < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:at]...)
		s = s[at+1:]
		switch c := s[0]; c {
		case 'u':
			r := hexRune(s[1:])
			s = s[5:]
			if utf16.IsSurrogate(r) && len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				if pair := utf16.DecodeRune(r, hexRune(s[2:])); pair != utf8.RuneError {
					r, s = pair, s[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, c)
		}
		s = s[1:]
	}
}

// hexRune reads four digits.
func hexRune(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case c <= '9':
			r = r<<4 + rune(c-'0')
		default:
			r = r<<4 + rune(c|0x20-'a') + 10
		}
	}
	return r
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// plainEnd returns the position of the next quote, backslash or control byte, eight bytes at a time.
func plainEnd(b []byte, at int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(b); at += 8 {
		x := binary.LittleEndian.Uint64(b[at:])
		quote, slash := x^ones*'"', x^ones*'\\'
		if m := ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & high; m != 0 {
			return at + bits.TrailingZeros64(m)/8
		}
	}
	for ; at < len(b); at++ {
		if b[at] == '"' || b[at] == '\\' || b[at] < ' ' {
			break
		}
	}
	return at
}

// number reads a number and returns its text.
func (c *cursor) number() []byte {
	c.peek()
	end := numberEnd(c.b, c.at)
	if end < 0 {
		c.fail()
		return nil
	}
	n := c.b[c.at:end]
	c.at = end
	return n
}

// numberEnd returns where the number at at ends, -1 when there is none.
func numberEnd(b []byte, at int) int {
	if at < len(b) && b[at] == '-' {
		at++
	}
	end := digitsEnd(b, at)
	if end == at || b[at] == '0' && end > at+1 {
		return -1
	}
	if end < len(b) && b[end] == '.' {
		if at, end = end+1, digitsEnd(b, end+1); end == at {
			return -1
		}
	}
	if end < len(b) && (b[end] == 'e' || b[end] == 'E') {
		at = end + 1
		if at < len(b) && (b[at] == '+' || b[at] == '-') {
			at++
		}
		if end = digitsEnd(b, at); end == at {
			return -1
		}
	}
	return end
}

func digitsEnd(b []byte, at int) int {
	for at < len(b) && '0' <= b[at] && b[at] <= '9' {
		at++
	}
	return at
}

// integer reads a count and gives its whole part, 0 for a negative one. Anything but a number is passed over as 0.
func (c *cursor) integer() int {
	if !isNumber(c.peek()) {
		c.skip()
		return 0
	}
	n := 0
	for _, d := range c.number() {
		if d < '0' || d > '9' || n > math.MaxInt32 {
			break
		}
		n = n*10 + int(d-'0')
	}
	return n
}

// isNumber reports whether a number begins with b.
func isNumber(b byte) bool { return b == '-' || '0' <= b && b <= '9' }

// text reads a string; anything else is passed over as an empty one.
func (c *cursor) text() []byte {
	if c.peek() != '"' {
		c.skip()
		return nil
	}
	return c.str()
}

// given passes a value and reports whether it says anything: it is not null, false, 0 or an empty string.
func (c *cursor) given() bool {
	switch c.peek() {
	case 'n', 'f':
		c.skip()
		return false
	case '"':
		return len(c.str()) > 0
	}
	from := c.at
	c.skip()
	return !c.bad && string(c.b[from:c.at]) != "0"
}

// elements passes a value and gives the number of its elements, 0 if it is no array.
func (c *cursor) elements() (n int) {
	if !c.enter('[') {
		c.skip()
		return 0
	}
	for c.more(']') {
		c.skip()
		n++
	}
	return n
}

// verbatim passes over one value and returns it as it stands.
func (c *cursor) verbatim() []byte {
	c.peek()
	from := c.at
	if c.skip(); c.bad {
		return nil
	}
	return c.b[from:c.at]
}

func (c *cursor) word(w string) {
	if len(c.b)-c.at < len(w) || string(c.b[c.at:c.at+len(w)]) != w {
		c.fail()
		return
	}
	c.at += len(w)
}

// skip passes over one value.
func (c *cursor) skip() {
	switch c.peek() {
	case '"':
		c.str()
	case '{':
		for c.enter('{'); c.more('}'); c.skip() {
			c.key()
		}
	case '[':
		for c.enter('['); c.more(']'); c.skip() {
		}
	case 't':
		c.word("true")
	case 'f':
		c.word("false")
	case 'n':
		c.word("null")
	default:
		c.number()
	}
}
