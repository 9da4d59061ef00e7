package dataset

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"tare/internal/plan/input"
)

// text parts a plain text into prompts: lines, or pieces of so many tokens.
func (f *File) text(cut Cut) (iter.Seq2[input.Span, error], error) {
	f.parse = func(text []byte) (Row, *input.Fault) {
		if !utf8.Valid(text) {
			return Row{}, &input.Fault{Reason: "is not valid UTF-8"}
		}
		return Row{Turns: []Turn{{Role: User, Text: string(text)}}}, nil
	}
	if cut.Tokens <= 0 {
		return f.file.Lines(), nil
	}
	if cut.Counter == nil {
		return nil, input.Faults{{File: f.facts.Path, Reason: "cannot be cut into tokens without a tokenizer"}}
	}
	return f.pieces(cut), nil
}

// pieces yields the text in prompts that are as long as they can be within the tokens of cut.
func (f *File) pieces(cut Cut) iter.Seq2[input.Span, error] {
	return func(yield func(input.Span, error) bool) {
		window := make([]byte, min(int64(max(cut.Tokens*bytesOfToken, leastWindow)), input.MaxRow))
		offset, line := f.file.Start(), 1
		for number := int64(0); offset < f.file.Size(); {
			n := min(int64(len(window)), f.file.Size()-offset)
			if _, err := f.file.ReadAt(window[:n], offset); err != nil {
				yield(input.Span{}, err)
				return
			}
			text := window[:n]
			if blank := len(text) - len(bytes.TrimLeft(text, " \t\r\n")); blank > 0 {
				line += bytes.Count(text[:blank], []byte{'\n'})
				offset += int64(blank)
				continue
			}
			piece := text[:longest(text, offset+n == f.file.Size(), cut)]
			span := input.Span{Number: number, Line: line, Offset: offset, Text: bytes.TrimRight(piece, " \t\r\n")}
			if !yield(span, nil) {
				return
			}
			line += bytes.Count(piece, []byte{'\n'})
			offset += int64(len(piece))
			number++
		}
	}
}

const (
	bytesOfToken = 16 // no text of that many bytes a token is looked at beyond
	leastWindow  = 256
)

// longest finds by halving how many bytes of text, up to white space, have no more tokens than cut allows. It is never 0: a
// word that alone has more is one piece.
func longest(text []byte, last bool, cut Cut) int {
	ends := wordEnds(text, last)
	low, high := 0, len(ends)-1
	for low < high {
		middle := (low + high + 1) / 2
		if cut.Counter.Count(text[:ends[middle]]) <= cut.Tokens {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return ends[low]
}

// wordEnds returns where the words of text end; of the last one only if the text ends there.
func wordEnds(text []byte, last bool) (ends []int) {
	blank := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
	for i := 1; i < len(text); i++ {
		if blank(text[i]) && !blank(text[i-1]) {
			ends = append(ends, i)
		}
	}
	if !blank(text[len(text)-1]) && (last || len(ends) == 0) {
		ends = append(ends, wholeRunes(text, last))
	}
	return ends
}

// wholeRunes is the length of text without a rune that is cut off at its end.
func wholeRunes(text []byte, last bool) int {
	n := len(text)
	for i := 1; !last && i < utf8.UTFMax && i < n; i++ {
		if utf8.RuneStart(text[n-i]) {
			if !utf8.FullRune(text[n-i:]) {
				return n - i
			}
			break
		}
	}
	return n
}
