package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"

	"tare/internal/plan/input"
)

// rowBatch is how many rows of a Parquet file are decoded at a time.
const rowBatch = 64

// parquet writes the rows as JSON, one a line, into a temporary file, which is then read like any other. Note: a Parquet file
// cannot be read at a row without decoding much of the rows before it, and a plan reads rows in any order.
func (f *File) parquet(options Options) (iter.Seq2[input.Span, error], error) {
	plain, err := os.CreateTemp("", "tare-rows-*")
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", f.facts.Path, err)
	}
	remove := os.Remove(plain.Name()) != nil // some systems keep a file that is open
	f.rows = plain
	f.close = func() error {
		err := errors.Join(plain.Close(), f.file.Close())
		if remove {
			err = errors.Join(err, os.Remove(plain.Name()))
		}
		return err
	}
	table, err := spread(f.file, plain)
	if err != nil {
		return nil, err
	}
	m, err := f.newMapping(options, 0, table.has)
	f.parse = m.parseObject
	return table.spans(plain), err
}

// table is a Parquet file of which every row has been written out.
type table struct {
	columns map[string]bool // the top ones by name, nested ones with dots
	ends    []int64         // of the rows, in the file written
}

func (t table) has(column string) bool { return t.columns[column] }

func (t table) spans(rows io.ReaderAt) iter.Seq2[input.Span, error] {
	return func(yield func(input.Span, error) bool) {
		var text []byte
		start := int64(0)
		for i, end := range t.ends {
			length := end - start
			text = slices.Grow(text[:0], int(min(length, input.MaxRow)))[:min(length, input.MaxRow)]
			if _, err := rows.ReadAt(text, start); err != nil {
				yield(input.Span{}, fmt.Errorf("read unpacked rows: %w", err))
				return
			}
			span := input.Span{Number: int64(i), Offset: start, Text: bytes.TrimSuffix(text, []byte{'\n'})}
			switch {
			case length > input.MaxRow:
				span.Text, span.Fault = nil, "must not be longer than 64 MiB"
			case len(span.Text) == 0:
				span.Fault = "holds a value that is not one of JSON"
			}
			if !yield(span, nil) {
				return
			}
			start = end
		}
	}
}

// spread decodes all rows of a Parquet file and writes them to w. The library panics on some broken files: that is their fault.
func spread(file *input.File, w io.Writer) (t table, err error) {
	broken := func(reason any) error {
		return input.Faults{{
			File: file.Path, Reason: fmt.Sprintf("is not a whole Parquet file: %v", reason),
			Hint: "its end is missing if it was not copied completely: compare its size and SHA-256",
		}}
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			err = broken(panicked)
		}
	}()
	if file.Size() < 12 {
		return t, broken("too short")
	}
	p, err := parquet.OpenFile(file, file.Size())
	if err != nil {
		return t, broken(err)
	}
	t.columns = map[string]bool{}
	for _, field := range p.Schema().Fields() {
		t.addColumns("", field)
	}
	if err := t.write(p, w); err != nil {
		return t, broken(err)
	}
	return t, nil
}

func (t *table) addColumns(before string, field parquet.Field) {
	name := before + field.Name()
	t.columns[name] = true
	if field.Leaf() || field.Repeated() || field.Type().LogicalType() != nil {
		return
	}
	for _, inner := range field.Fields() {
		t.addColumns(name+".", inner)
	}
}

func (t *table) write(p *parquet.File, w io.Writer) error {
	out := &written{w: bufio.NewWriterSize(w, 256<<10)}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	r := parquet.NewGenericReader[any](p)
	defer r.Close()
	rows := make([]any, rowBatch)
	for {
		clear(rows)
		n, err := r.Read(rows)
		for _, row := range rows[:n] {
			if encoder.Encode(row) != nil { // a number that is none, for instance
				out.Write([]byte{'\n'})
			}
			t.ends = append(t.ends, out.n)
		}
		switch {
		case err == io.EOF && int64(len(t.ends)) == p.NumRows():
			return out.w.Flush()
		case err == io.EOF:
			return fmt.Errorf("%d of %d rows", len(t.ends), p.NumRows())
		case err != nil:
			return err
		case n == 0:
			return io.ErrNoProgress
		}
	}
}

// written counts what has been written.
type written struct {
	w *bufio.Writer
	n int64
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.n += int64(n)
	return n, err
}
