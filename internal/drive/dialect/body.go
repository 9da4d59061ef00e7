package dialect

import (
	"strconv"
	"unicode/utf8"

	"tare/internal/plan"
)

// body writes request bodies, of which only the prompt and the asked length differ.
type body struct {
	head  string // up to the prompt
	shut  string // closes what holds the prompt
	limit string // key of the asked length
	tail  string // options
	floor string // key of the asked length once more, as a minimum; empty for none
}

// AppendBody writes the body of one request. An asked length of 0 sets the server no limit.
func (b *body) AppendBody(dst []byte, r *plan.Request) []byte {
	dst = appendString(append(dst, b.head...), r.Prompt)
	dst = append(dst, b.shut...)
	if r.OutputTokens > 0 {
		dst = strconv.AppendInt(append(dst, b.limit...), int64(r.OutputTokens), 10)
	}
	dst = append(dst, b.tail...)
	if r.OutputTokens > 0 && b.floor != "" {
		dst = strconv.AppendInt(append(dst, b.floor...), int64(r.OutputTokens), 10)
	}
	return append(dst, '}')
}

// commonSampling writes what nearly every server calls by the same names.
func commonSampling(o Options) string {
	b := strconv.AppendFloat([]byte(`,"temperature":`), o.Temperature, 'f', -1, 64)
	b = strconv.AppendFloat(append(b, `,"top_p":`...), o.TopP, 'f', -1, 64)
	return string(strconv.AppendBool(append(b, `,"stream":`...), o.Stream))
}

// appendWishes appends what only some servers know, where it was asked for.
func appendWishes(b []byte, o Options) []byte {
	if o.Seed != 0 {
		b = strconv.AppendUint(append(b, `,"seed":`...), o.Seed, 10)
	}
	if o.IgnoreEOS {
		b = append(b, `,"ignore_eos":true`...)
	}
	return b
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as servers refuse them.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if escapes[c] == 0 {
				i++
				continue
			}
			dst = appendEscape(append(dst, s[from:i]...), c)
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
			from = i + 1
		}
		i += n
	}
	return append(append(dst, s[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	if e := escapes[c]; e != 'u' {
		return append(dst, '\\', e)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// escapes has the letter of an ASCII byte's escape, 0 for a byte that stands for itself.
var escapes = [utf8.RuneSelf]byte{
	0: 'u', 1: 'u', 2: 'u', 3: 'u', 4: 'u', 5: 'u', 6: 'u', 7: 'u', '\b': 'b', '\t': 't', '\n': 'n', 11: 'u', '\f': 'f', '\r': 'r', 14: 'u', 15: 'u',
	16: 'u', 17: 'u', 18: 'u', 19: 'u', 20: 'u', 21: 'u', 22: 'u', 23: 'u', 24: 'u', 25: 'u', 26: 'u', 27: 'u', 28: 'u', 29: 'u', 30: 'u', 31: 'u',
	'"': '"', '\\': '\\',
}
