// Package store writes the requests of a plan to a file and reads them back: one JSON object a line, compressed with Zstandard.
package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// Row is one request.
type Row struct {
	Index        int64         `json:"index"`
	Stage        int           `json:"stage"`
	Due          time.Duration `json:"due_ns"` // from the start of the stage
	Think        time.Duration `json:"think_ns,omitempty"`
	Session      int64         `json:"session"`
	Turn         int           `json:"turn,omitempty"`
	Class        string        `json:"class,omitempty"`
	Model        string        `json:"model,omitempty"`
	InputTokens  int           `json:"input_tokens"`
	SharedTokens int           `json:"shared_tokens,omitempty"` // of them, that rows before begin with too
	OutputTokens int           `json:"output_tokens"`
	Body         string        `json:"body"` // of the HTTP request, byte for byte
}

// Writer writes rows. Its memory does not grow with their number.
type Writer struct {
	zip  *zstd.Encoder
	json *json.Encoder
}

// NewWriter returns a writer to w, which is the caller's to close.
func NewWriter(w io.Writer) (*Writer, error) {
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	e := json.NewEncoder(zip)
	e.SetEscapeHTML(false)
	return &Writer{zip, e}, nil
}

// Write appends a row. A body that is not UTF-8 is refused, since JSON would change it.
func (w *Writer) Write(r *Row) error {
	if !utf8.ValidString(r.Body) {
		return fmt.Errorf("write request %d: the body is not UTF-8", r.Index)
	}
	return w.json.Encode(r)
}

// Close writes what is left. The file is whole after it only.
func (w *Writer) Close() error { return w.zip.Close() }

// longestRow bounds a line, so that a broken file does not take all memory.
const longestRow = 256 << 20

// Reader reads rows. Its memory does not grow with their number.
type Reader struct {
	file  io.Closer
	zip   *zstd.Decoder
	lines *bufio.Scanner
	line  int
}

// NewReader reads from a file, which Close closes.
func NewReader(file io.ReadCloser) (*Reader, error) {
	zip, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	lines := bufio.NewScanner(zip)
	lines.Buffer(make([]byte, 0, 64<<10), longestRow)
	return &Reader{file: file, zip: zip, lines: lines}, nil
}

// Next reads a row; the error is io.EOF after the last one.
func (r *Reader) Next(row *Row) error {
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return fmt.Errorf("line %d: %w", r.line+1, err)
		}
		return io.EOF
	}
	r.line++
	*row = Row{}
	if err := json.Unmarshal(r.lines.Bytes(), row); err != nil {
		return fmt.Errorf("line %d: %w", r.line, err)
	}
	return nil
}

// Close closes the file.
func (r *Reader) Close() error {
	r.zip.Close()
	return r.file.Close()
}
