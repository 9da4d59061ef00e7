package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// mark is the byte order mark that some editors put before UTF-8.
var mark = []byte("\xef\xbb\xbf")

// Span is one row of a file as it stands there. Text is valid until the next one is asked for.
type Span struct {
	Number int64 // from 0, blank lines not counted
	Line   int   // the row's first line, from 1
	Offset int64 // of the row's first byte, in the unpacked rows
	Text   []byte
	Fault  string // why the row cannot be read at all; empty for a good one
}

// reader walks over the rows and knows where it is.
type reader struct {
	*bufio.Reader
	offset int64
	line   int
}

func (f *File) reader(offset int64, line int) *reader {
	section := io.NewSectionReader(f.rows, offset, f.size-offset)
	return &reader{Reader: bufio.NewReaderSize(section, 256<<10), offset: offset, line: line}
}

// appendLine appends the next line with its end to dst, but not more than limit bytes in all; it reads past the rest.
func (r *reader) appendLine(dst []byte, limit int) (text []byte, whole bool, err error) {
	whole = true
	for {
		piece, err := r.ReadSlice('\n')
		r.offset += int64(len(piece))
		if len(dst)+len(piece) > limit {
			whole = false
		} else {
			dst = append(dst, piece...)
		}
		switch {
		case err == nil:
			r.line++
			return dst, whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return dst, whole, err
		}
	}
}

const tooLong = "must not be longer than 64 MiB"

// Lines yields the lines that are not blank, without their ends. An error of the disk ends them.
func (f *File) Lines() iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		r := f.reader(f.Start(), 1)
		var text []byte
		for number := int64(0); ; {
			span := Span{Number: number, Line: r.line, Offset: r.offset}
			var whole bool
			var err error
			text, whole, err = r.appendLine(text[:0], MaxRow)
			if err != nil && err != io.EOF {
				yield(Span{}, fmt.Errorf("read %s: %w", f.Path, err))
				return
			}
			span.Text = bytes.TrimRight(text, "\r\n")
			if !whole {
				span.Text, span.Fault = nil, tooLong
			}
			if !whole || len(bytes.TrimSpace(span.Text)) > 0 {
				number++
				if !yield(span, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// Records yields the records of a CSV file, without their last line end: a line, or more where a quoted field has line breaks.
// A quote that is never closed spoils its own line only.
func (f *File) Records(comma byte) iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		r := f.reader(f.Start(), 1)
		var text []byte
		for number := int64(0); ; {
			span := Span{Number: number, Line: r.line, Offset: r.offset}
			var whole bool
			var err error
			quotes := quoting{comma: comma}
			text, whole, err = r.appendLine(text[:0], MaxRow)
			after, line, length := r.offset, r.line, len(text)
			for whole && err == nil && quotes.open(text) {
				text, whole, err = r.appendLine(text, MaxRow)
			}
			if err != nil && err != io.EOF {
				yield(Span{}, fmt.Errorf("read %s: %w", f.Path, err))
				return
			}
			switch {
			case whole && quotes.open(text):
				span.Fault = "has a quote that is never closed"
			case !whole:
				span.Fault = tooLong
			}
			if span.Fault == tooLong && r.offset == after {
				text = text[:0]
			} else if span.Fault != "" && r.offset > after {
				r, err = f.reader(after, line), nil
				text = text[:length]
			}
			span.Text = bytes.TrimRight(text, "\r\n")
			if span.Fault != "" || len(bytes.TrimSpace(span.Text)) > 0 {
				number++
				if !yield(span, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// quoting follows the quotes of a CSV record as it grows.
type quoting struct {
	comma byte
	seen  int
	place place
}

type place int

const (
	fieldStart place = iota
	unquoted
	quoted
	closed // behind a quote that ended a field, or was the first of a doubled one
)

// open reports whether text, of which the part seen before has not changed, ends inside a quoted field.
func (q *quoting) open(text []byte) bool {
	for _, c := range text[q.seen:] {
		switch {
		case q.place == quoted && c == '"':
			q.place = closed
		case q.place == quoted:
		case c == q.comma || c == '\n':
			q.place = fieldStart
		case c == '"' && (q.place == fieldStart || q.place == closed):
			q.place = quoted
		default:
			q.place = unquoted
		}
	}
	q.seen = len(text)
	return q.place == quoted
}

// Elements yields the elements of the JSON array that the file is, each as its text. It finds their ends by brackets and
// strings alone, so that a bad element spoils itself only; one that lacks closing brackets spoils those after it.
func (f *File) Elements() iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		e := elements{reader: f.reader(f.Start(), 1)}
		if err := e.open(); err != nil {
			yield(Span{}, Fault{File: f.Path, Line: e.line, Reason: err.Error()})
			return
		}
		for number := int64(0); ; number++ {
			span, more, err := e.next()
			if err != nil {
				yield(Span{}, fmt.Errorf("read %s: %w", f.Path, err))
				return
			}
			if !more && len(span.Text) == 0 && span.Fault == "" {
				return
			}
			span.Number = number
			if !yield(span, nil) || !more {
				return
			}
		}
	}
}

type elements struct {
	*reader
	text []byte
}

func (e *elements) byte() (byte, error) {
	c, err := e.ReadByte()
	if err == nil {
		e.offset++
		if c == '\n' {
			e.line++
		}
	}
	return c, err
}

func (e *elements) open() error {
	for {
		c, err := e.byte()
		switch {
		case err != nil:
			return errors.New("must be a JSON array")
		case c == '[':
			return nil
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return errors.New("must be a JSON array")
		}
	}
}

// next returns the text up to the next comma or the array's end outside of brackets and strings; more is false at the end.
func (e *elements) next() (span Span, more bool, err error) {
	e.text = e.text[:0]
	var open []byte // brackets
	text, escaped, whole := false, false, true
	for {
		c, err := e.byte()
		if err == io.EOF {
			if len(e.text) == 0 {
				span.Line, span.Offset = e.line, e.offset
			}
			span.Text, span.Fault = bytes.TrimRight(e.text, " \t\r\n"), "ends within the array: the file is cut off"
			return span, false, nil
		}
		if err != nil {
			return span, false, err
		}
		switch {
		case text:
			text = escaped || c != '"'
			escaped = c == '\\' && !escaped
		case c == '"':
			text = true
		case c == '[' || c == '{':
			open = append(open, c)
		case len(open) == 0 && (c == ',' || c == ']'):
			if span.Text = bytes.TrimRight(e.text, " \t\r\n"); len(span.Text) == 0 {
				span.Line, span.Offset = e.line, e.offset-1
			}
			if !whole {
				span.Text, span.Fault = nil, tooLong
			}
			return span, c == ',', nil
		case c == ']' || c == '}':
			open = closing(open, c)
		}
		if len(e.text) == 0 {
			if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
				continue
			}
			span.Line, span.Offset = e.line, e.offset-1
		}
		if len(e.text) == MaxRow {
			whole = false
			continue
		}
		e.text = append(e.text, c)
	}
}

// closing takes off the bracket that c closes and those within it that were left open; none if there is no such bracket.
func closing(open []byte, c byte) []byte {
	opener := byte('[')
	if c == '}' {
		opener = '{'
	}
	if i := bytes.LastIndexByte(open, opener); i >= 0 {
		return open[:i]
	}
	return open
}
