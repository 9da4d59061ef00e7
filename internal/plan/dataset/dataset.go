package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"tare/internal/plan/input"
)

// Options say how a file is read.
type Options struct {
	Format   Format  // empty: Detect
	Columns  Columns // of JSON, CSV and Parquet
	Template string  // the prompt of JSON, CSV and Parquet, "{{title}}\n\n{{text}}"; empty: the column Prompt
	Cut      Cut     // of plain text
}

// Cut says what of a plain text is one prompt.
type Cut struct {
	Tokens  int     // 0: every line that is not blank; else pieces of at most so many tokens, cut at white space
	Counter Counter // counts them; needed if Tokens is above 0
}

// Facts are what a reader of a report must know of a data set.
type Facts struct {
	Path    string
	SHA256  string // of the file as it lies on the disk
	Bytes   int64  // of the file as it lies on the disk
	Format  Format
	Columns Columns        // as they were used; empty for formats that have none
	Rows    int64          // in the file
	Good    int64          // rows that can be used
	Refused []input.Count  // why the others cannot
	Faults  input.Faults   // the first of each kind
	Roles   map[string]int // roles of turns that are none of ours, passed on as they are, by how often
}

// File is a data set, open for reading row by row. It holds 24 bytes for each good row and nothing of the text.
// It is not safe for concurrent use.
type File struct {
	file  *input.File
	rows  io.ReaderAt
	close func() error
	index []place
	facts Facts
	parse parser
	buf   []byte
}

// place is where a good row stands.
type place struct {
	offset int64
	length uint32
	number uint32
	line   uint32
	turns  uint32 // with the recorded output
}

// parser turns the text of one row into a Row; it owns the words of its faults.
type parser func(text []byte) (Row, *input.Fault)

// Open reads the whole file once: it counts and names the bad rows and remembers where the good ones are. It is an error,
// of type input.Faults, if no row is good, if a column that was asked for is missing, or if the file as a whole is broken.
func Open(path string, options Options) (*File, error) {
	file, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, rows: file, close: file.Close}
	if err := f.read(options); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the file and removes what was unpacked from it.
func (f *File) Close() error { return f.close() }

// Facts says what was read.
func (f *File) Facts() Facts { return f.facts }

// Len is the number of good rows.
func (f *File) Len() int { return len(f.index) }

// Row reads good row i, from 0, again. What it returns is the caller's.
func (f *File) Row(i int) (Row, error) {
	p := f.index[i]
	f.buf = slices.Grow(f.buf[:0], int(p.length))[:p.length]
	if _, err := f.rows.ReadAt(f.buf, p.offset); err != nil {
		return Row{}, fmt.Errorf("read row %d of %s: %w", p.number+1, f.facts.Path, err)
	}
	row, fault := f.parse(f.buf)
	if fault != nil {
		return Row{}, fmt.Errorf("row %d of %s has changed: %s", p.number+1, f.facts.Path, fault.Reason)
	}
	row.Number, row.Line = int64(p.number), int(p.line)
	return row, nil
}

func (f *File) read(options Options) error {
	format := options.Format
	if format == "" {
		format = Detect(f.file)
	}
	f.facts = Facts{Path: f.file.Path, SHA256: f.file.SHA256, Bytes: f.file.Bytes, Format: format, Roles: map[string]int{}}
	spans, err := f.prepare(format, options)
	if err != nil {
		return err
	}
	return f.fill(spans, format)
}

// fill reads all rows and keeps the places of the good ones.
func (f *File) fill(spans iter.Seq2[input.Span, error], format Format) error {
	var bad input.Tally
	seen := map[[8]byte]struct{}{}
	for span, err := range spans {
		var broken input.Fault
		switch {
		case errors.As(err, &broken):
			bad.Add(broken)
			continue
		case err != nil:
			return err
		case f.facts.Rows >= maxRows:
			return input.Fault{File: f.facts.Path, Reason: "must not have more than 2^32 rows"}
		}
		f.facts.Rows++
		row, fault := f.check(span)
		if fault == nil && format == OpenAIBatch {
			fault = unique(seen, row.ID)
		}
		if fault != nil {
			fault.File = f.facts.Path
			if fault.Line = span.Line; span.Line == 0 {
				fault.Row = span.Number + 1
			}
			bad.Add(*fault)
			continue
		}
		f.noteRoles(row)
		turns := len(row.Turns)
		if row.HasOutput {
			turns++
		}
		f.index = append(f.index, place{
			offset: span.Offset, length: uint32(len(span.Text)), number: uint32(span.Number), line: uint32(span.Line), turns: uint32(turns),
		})
	}
	f.facts.Good = int64(len(f.index))
	f.facts.Refused, f.facts.Faults = bad.Counts(), bad.Examples()
	return f.usable(&bad)
}

const maxRows = 1<<32 - 1

func (f *File) usable(bad *input.Tally) error {
	if len(f.index) > 0 {
		return nil
	}
	if bad.Total() == 0 {
		return input.Faults{{File: f.facts.Path, Reason: "has no rows"}}
	}
	faults := bad.Err(f.facts.Path).(input.Faults)
	return append(faults, input.Fault{
		File: f.facts.Path, Reason: fmt.Sprintf("has no row that can be used as %s", f.facts.Format),
		Hint: "formats: " + strings.Join(names(Formats()), ", "),
	})
}

func names[T ~string](all []T) []string {
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = string(t)
	}
	return texts
}

func (f *File) check(span input.Span) (Row, *input.Fault) {
	if span.Fault != "" {
		return Row{}, &input.Fault{Reason: span.Fault}
	}
	return f.parse(span.Text)
}

func unique(seen map[[8]byte]struct{}, id string) *input.Fault {
	sum := sha256.Sum256([]byte(id))
	key := [8]byte(sum[:8])
	if _, ok := seen[key]; ok {
		return &input.Fault{Key: "custom_id", Reason: "must not occur twice", Value: id}
	}
	seen[key] = struct{}{}
	return nil
}

// maxRoles bounds what a file of nonsense can make us remember.
const maxRoles = 32

func (f *File) noteRoles(row Row) {
	for _, turn := range row.Turns {
		switch turn.Role {
		case User, Assistant, System, Tool, "developer":
			continue
		}
		name := turn.Role[:min(len(turn.Role), 64)]
		if _, known := f.facts.Roles[name]; known || len(f.facts.Roles) < maxRoles {
			f.facts.Roles[name]++
		}
	}
}
