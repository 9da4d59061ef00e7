package tokenizer

import (
	"bytes"
	"unicode"
)

// splitter cuts a piece of text into parts. First says that the piece stands at the beginning of the text.
type splitter interface {
	split(piece []byte, first bool, each func(part []byte))
}

// finder finds the delimiters of a split: the first at or after from, or start -1.
type finder interface {
	find(text []byte, from int) (start, end int)
}

// literal finds a string.
type literal []byte

func (l literal) find(text []byte, from int) (start, end int) {
	if at := bytes.Index(text[from:], l); at >= 0 && len(l) > 0 {
		return from + at, from + at + len(l)
	}
	return -1, -1
}

// behavior is what becomes of a delimiter.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

var behaviors = map[string]behavior{
	"removed": removed, "isolated": isolated, "mergedwithprevious": mergedWithPrevious, "mergedwithnext": mergedWithNext,
	"contiguous": contiguous, "merged_with_previous": mergedWithPrevious, "merged_with_next": mergedWithNext,
}

// divider splits at delimiters.
type divider struct {
	finder   finder
	behavior behavior
	invert   bool // the delimiters are what the finder does not find
}

func (d divider) split(piece []byte, _ bool, each func(part []byte)) {
	pending := 0 // begin of what the next part begins with
	after := false
	d.spans(piece, func(start, end int, delimiter bool) {
		switch d.behavior {
		case isolated:
			each(piece[start:end])
		case removed:
			if !delimiter {
				each(piece[start:end])
			}
		case contiguous:
			if start > 0 && delimiter != after {
				each(piece[pending:start])
				pending = start
			}
			after = delimiter
		case mergedWithPrevious:
			if start > pending && (!delimiter || after) {
				each(piece[pending:start])
				pending = start
			}
			after = delimiter
		case mergedWithNext:
			if start > pending && (delimiter || !after) {
				each(piece[pending:start])
				pending = start
			}
			after = delimiter
		}
	})
	if d.behavior != isolated && d.behavior != removed && pending < len(piece) {
		each(piece[pending:])
	}
}

// spans passes on the delimiters and what is between them, in turn.
func (d divider) spans(piece []byte, each func(start, end int, delimiter bool)) {
	at := 0
	for at < len(piece) {
		start, end := d.finder.find(piece, at)
		if start < 0 {
			break
		}
		if at < start {
			each(at, start, d.invert)
		}
		each(start, end, !d.invert)
		at = end
	}
	if at < len(piece) {
		each(at, len(piece), d.invert)
	}
}

// characters finds single characters of a kind.
type characters func(rune) bool

func (c characters) find(text []byte, from int) (start, end int) {
	at := bytes.IndexFunc(text[from:], c)
	if at < 0 {
		return -1, -1
	}
	return from + at, from + at + runeLength(text[from+at:])
}

func isPunctuation(r rune) bool {
	return unicode.IsPunct(r) || r < 128 && (unicode.IsSymbol(r))
}

// spacePrefix puts a space before a piece that does not begin with one.
type spacePrefix struct{}

func (spacePrefix) split(piece []byte, _ bool, each func(part []byte)) {
	if len(piece) > 0 && piece[0] != ' ' {
		piece = append([]byte{' '}, piece...)
	}
	each(piece)
}

// metaspace writes spaces as another character and splits before it.
type metaspace struct {
	replacement []byte
	prepend     prependScheme
	divide      bool
}

type prependScheme string

const (
	prependAlways prependScheme = "always"
	prependFirst  prependScheme = "first"
	prependNever  prependScheme = "never"
)

func (m metaspace) split(piece []byte, first bool, each func(part []byte)) {
	piece = bytes.ReplaceAll(piece, []byte{' '}, m.replacement)
	if !bytes.HasPrefix(piece, m.replacement) && (m.prepend == prependAlways || m.prepend == prependFirst && first) {
		piece = append(append([]byte(nil), m.replacement...), piece...)
	}
	if !m.divide {
		each(piece)
		return
	}
	divider{finder: literal(m.replacement), behavior: mergedWithNext}.split(piece, first, each)
}
