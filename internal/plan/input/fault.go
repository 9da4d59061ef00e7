// Package input reads files of rows that others wrote. What is good is handed on row by row; what is bad is counted and named
// with its file and line, so that a user sees all mistakes of a file at once.
package input

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one mistake in a file: where it is, what it is, and what to do.
type Fault struct {
	File   string
	Line   int    // from 1; 0 for the file as a whole
	Row    int64  // from 1, in files that have no lines (Parquet); else 0
	Key    string // column or JSON key; empty for the row as a whole
	Reason string // always the same words for the same kind of mistake: faults are counted by key and reason
	Value  string // what stood there; empty where that says nothing
	Hint   string // empty for none
}

// Error gives "file.csv:12: ContextTokens: must be a whole number, got "x"", and the hint on a line of its own.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Row > 0 {
		fmt.Fprintf(&b, ": row %d", f.Row)
	}
	if f.Key != "" {
		b.WriteString(": " + f.Key)
	}
	b.WriteString(": " + f.Reason)
	if f.Value != "" {
		fmt.Fprintf(&b, ", got %s", short(f.Value))
	}
	if f.Hint != "" {
		b.WriteString("\nhint: " + f.Hint)
	}
	return b.String()
}

// shown is how much of a value a fault repeats, in bytes.
const shown = 60

func short(value string) string {
	if len(value) > shown {
		value = strings.ToValidUTF8(value[:shown], "") + "…"
	}
	return fmt.Sprintf("%q", value)
}

// Faults are the mistakes of one or more files. It is an error.
type Faults []Fault

// Error gives one fault after another, each on lines of its own.
func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, fault := range f {
		texts[i] = fault.Error()
	}
	return strings.Join(texts, "\n")
}

// Count says how often one kind of mistake was made.
type Count struct {
	Key    string
	Reason string
	Rows   int64
}

// Tally counts faults by kind and keeps the first few of each. Its memory does not grow with the faults. The zero value is empty.
type Tally struct {
	total    int64
	counts   []Count
	examples Faults
}

const (
	examplesOfKind = 3
	examplesInAll  = 24
)

// Add counts one fault.
func (t *Tally) Add(f Fault) {
	t.total++
	i := slices.IndexFunc(t.counts, func(c Count) bool { return c.Key == f.Key && c.Reason == f.Reason })
	if i < 0 {
		i = len(t.counts)
		t.counts = append(t.counts, Count{Key: f.Key, Reason: f.Reason})
	}
	t.counts[i].Rows++
	if t.counts[i].Rows <= examplesOfKind && len(t.examples) < examplesInAll {
		f.Value = strings.Clone(f.Value[:min(len(f.Value), shown+4)])
		t.examples = append(t.examples, f)
	}
}

// Total is how many faults were added.
func (t *Tally) Total() int64 { return t.total }

// Counts returns how often each kind of mistake was made, in the order in which they were met.
func (t *Tally) Counts() []Count { return slices.Clone(t.counts) }

// Examples returns the first faults of each kind, in the order in which they were met.
func (t *Tally) Examples() Faults { return slices.Clone(t.examples) }

// Err returns the examples as an error with a last line that counts what is not shown, nil if there are no faults.
func (t *Tally) Err(file string) error {
	if t.total == 0 {
		return nil
	}
	all := t.Examples()
	if rest := t.total - int64(len(all)); rest > 0 {
		all = append(all, Fault{File: file, Reason: fmt.Sprintf("%d more rows like these", rest)})
	}
	return all
}
