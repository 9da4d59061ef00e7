package tokenizer

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites a piece of text. It may return the piece itself, and never changes it.
type normalizer interface {
	normalize(piece []byte) []byte
}

// form is a normalization form of Unicode.
type form struct {
	form    norm.Form
	compose bool
}

// forms are the forms by name, by today's tables.
var forms = map[string]form{
	"NFC": {norm.NFC, true}, "NFD": {norm.NFD, false}, "NFKC": {norm.NFKC, true}, "NFKD": {norm.NFKD, false},
}

// olderForm is a form by the tables of the reference implementation for tokenizer.json, which knows fewer characters.
type olderForm struct{ form form }

// normalize takes the characters that the reference does not know for starters that stand for themselves.
func (f olderForm) normalize(piece []byte) []byte {
	at := bytes.IndexFunc(piece, isNotNormalized)
	if at < 0 {
		return f.form.normalize(piece)
	}
	var out []byte
	for ; at >= 0; at = bytes.IndexFunc(piece, isNotNormalized) {
		out = append(out, f.form.normalize(piece[:at])...)
		length := runeLength(piece[at:])
		out = append(out, piece[at:at+length]...)
		piece = piece[at+length:]
	}
	return append(out, f.form.normalize(piece)...)
}

func isNotNormalized(r rune) bool { return r >= utf8.RuneSelf && unicode.Is(notNormalized, r) }

func (f form) normalize(piece []byte) []byte {
	if f.form.QuickSpan(piece) == len(piece) {
		return piece
	}
	if longestMarks(piece) > streamSafe {
		return f.plain(piece)
	}
	return f.form.Bytes(piece)
}

// streamSafe is how many marks in a row the library leaves as they are. Beyond that it puts a character between them, which
// the standard does not ask for and other implementations do not do. A character can decompose into three marks.
const streamSafe = 30 / 3

// longestMarks returns the greatest number of characters in a row that are marks, or begin with one when decomposed.
func longestMarks(piece []byte) int {
	longest, run := 0, 0
	for len(piece) > 0 {
		properties := norm.NFKD.Properties(piece)
		if properties.CCC() != 0 || properties.TrailCCC() != 0 || properties.LeadCCC() != 0 {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
		piece = piece[max(properties.Size(), 1):]
	}
	return longest
}

// plain is the algorithm of the standard, for text with long runs of marks.
func (f form) plain(piece []byte) []byte {
	decomposed := f.decompose(piece)
	for begin := 0; begin < len(decomposed); {
		end := begin + 1
		for end < len(decomposed) && combiningClass(decomposed[end]) != 0 {
			end++
		}
		if combiningClass(decomposed[begin]) == 0 {
			begin++
		}
		slices.SortStableFunc(decomposed[begin:end], func(a, b rune) int { return int(combiningClass(a)) - int(combiningClass(b)) })
		begin = end
	}
	if f.compose {
		decomposed = composed(decomposed)
	}
	return []byte(string(decomposed))
}

func (f form) decompose(piece []byte) []rune {
	decomposing := norm.NFD
	if f.form == norm.NFKC || f.form == norm.NFKD {
		decomposing = norm.NFKD
	}
	var runes []rune
	for len(piece) > 0 {
		_, size := utf8.DecodeRune(piece)
		runes = append(runes, []rune(string(decomposing.Bytes(piece[:size])))...)
		piece = piece[size:]
	}
	return runes
}

func combiningClass(r rune) uint8 {
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// composed joins each starter with the marks behind it that are not blocked.
func composed(runes []rune) []rune {
	out := runes[:0]
	starter, last := -1, uint8(0)
	for _, r := range runes {
		class := combiningClass(r)
		if starter >= 0 && (last < class || len(out)-1 == starter) {
			if joined := []rune(norm.NFC.String(string([]rune{out[starter], r}))); len(joined) == 1 {
				out[starter] = joined[0]
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, r)
	}
	return out
}

// lowercase maps each character by itself.
type lowercase struct{}

func (lowercase) normalize(piece []byte) []byte {
	out := make([]byte, 0, len(piece))
	for len(piece) > 0 {
		r, size := utf8.DecodeRune(piece)
		if out = utf8.AppendRune(out, unicode.ToLower(r)); r == 'İ' {
			out = utf8.AppendRune(out, 0x307)
		}
		piece = piece[size:]
	}
	return out
}

// replace writes content for all that is found.
type replace struct {
	finder  finder
	content []byte
}

func (r replace) normalize(piece []byte) []byte {
	var out []byte
	at := 0
	for at < len(piece) {
		start, end := r.finder.find(piece, at)
		if start < 0 {
			break
		}
		out = append(append(out, piece[at:start]...), r.content...)
		at = end
	}
	if at == 0 {
		return piece
	}
	return append(out, piece[at:]...)
}

// prepend puts text before every piece.
type prepend []byte

func (p prepend) normalize(piece []byte) []byte {
	if len(piece) == 0 {
		return piece
	}
	return append(append(make([]byte, 0, len(p)+len(piece)), p...), piece...)
}

// strip takes white space away at the ends.
type strip struct{ left, right bool }

func (s strip) normalize(piece []byte) []byte {
	if s.left {
		piece = bytes.TrimLeftFunc(piece, unicode.IsSpace)
	}
	if s.right {
		piece = bytes.TrimRightFunc(piece, unicode.IsSpace)
	}
	return piece
}
