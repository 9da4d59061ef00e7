package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/internal/plan/input"
)

// table reads a CSV file by the names of its columns.
type table struct {
	*reading
	file    *input.File
	columns []string // that are read
	places  []int    // of the columns; -1 for one that may be missing and is
	width   int
}

// open reads the header; all columns that are missing are named at once.
func (r *reading) open(file *input.File, needed, optional []string) (*table, error) {
	t := &table{reading: r, file: file, columns: append(slices.Clone(needed), optional...)}
	for span, err := range file.Records(',') {
		if err != nil {
			return nil, err
		}
		header, err := input.Fields(span.Text, ',')
		if err != nil || span.Fault != "" {
			return nil, input.Fault{File: file.Path, Line: span.Line, Reason: "has a header that cannot be read"}
		}
		t.width = len(header)
		for i := range header {
			header[i] = strings.TrimSpace(header[i])
		}
		var missing input.Faults
		for i, column := range t.columns {
			place := slices.Index(header, column)
			if place < 0 && i < len(needed) {
				missing = append(missing, input.Fault{File: file.Path, Line: span.Line, Key: column, Reason: "is a column that the file does not have"})
			}
			t.places = append(t.places, place)
		}
		if len(missing) > 0 {
			return nil, missing
		}
		return t, nil
	}
	return nil, input.Fault{File: file.Path, Reason: "is empty"}
}

// each calls do with the columns of every row; a column that the file does not have is empty.
func (t *table) each(do func(line int, values []string) error) error {
	values := make([]string, len(t.columns))
	for span, err := range t.file.Records(',') {
		if err != nil {
			return err
		}
		if span.Number == 0 {
			continue
		}
		t.trace.Facts.Read++
		fields, err := input.Fields(span.Text, ',')
		switch {
		case span.Fault != "":
			t.refuse(span.Line, "", span.Fault, "")
			continue
		case err != nil:
			t.refuse(span.Line, "", "must be one CSV record", string(span.Text))
			continue
		case len(fields) != t.width:
			t.refuse(span.Line, "", fmt.Sprintf("must have %d fields as the header has", t.width), string(span.Text))
			continue
		}
		for i, place := range t.places {
			if place >= 0 {
				values[i] = fields[place]
			}
		}
		if err := do(span.Line, values); err != nil {
			return err
		}
	}
	return nil
}

const (
	notTokens = "must be a whole number of tokens"
	notTime   = "must be a time"
)

// tokens reads several counts of tokens; all that are bad are counted.
func (t *table) tokens(line int, values []string, places ...int) (counts []int, ok bool) {
	ok = true
	for _, place := range places {
		n, good := input.Whole(values[place])
		if !good {
			t.refuse(line, t.columns[place], notTokens, values[place])
			ok = false
		}
		counts = append(counts, n)
	}
	return counts, ok
}

// azure reads the Azure traces. 2023 has seven digits of a second, no zone and CRLF; 2024 has an offset and leaves the
// fraction out where it is zero; LMM 2025 adds the number of images.
func (r *reading) azure(file *input.File) error {
	t, err := r.open(file, []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, []string{"NumImages"})
	if err != nil {
		return err
	}
	return t.each(func(line int, v []string) error {
		counts, good := t.tokens(line, v, 1, 2)
		images := 0
		if v[3] != "" {
			n, ok := input.Whole(v[3])
			if !ok {
				t.refuse(line, "NumImages", "must be a whole number of images", v[3])
				good = false
			}
			images = n
		}
		clock, ok := input.Clock(v[0])
		if !ok {
			t.refuse(line, "TIMESTAMP", notTime, v[0])
			good = false
		}
		if !good {
			return nil
		}
		r.sorted(line, "TIMESTAMP", clock, v[0])
		_, kept, err := r.add(clock, Row{InputTokens: counts[0], OutputTokens: counts[1], Images: images, Line: line})
		if kept {
			r.trace.Rows[len(r.trace.Rows)-1].Session = r.session("")
		}
		return err
	})
}

// burst reads BurstGPT. Times are seconds since its collection began, on a grid of one; a reply of no tokens is a failure.
// The first release has neither sessions nor durations.
func (r *reading) burst(file *input.File) error {
	t, err := r.open(file, []string{"Timestamp", "Model", "Request tokens", "Response tokens", "Log Type"},
		[]string{"Session ID", "Elapsed time", "Total tokens"})
	if err != nil {
		return err
	}
	last := map[int]int{} // the last row of a session
	return t.each(func(line int, v []string) error {
		counts, good := t.tokens(line, v, 2, 3)
		at, ok := input.Decimal(v[0], time.Second)
		if !ok || at < 0 {
			t.refuse(line, "Timestamp", notTime, v[0])
			good = false
		}
		took := time.Duration(0)
		if v[6] != "" {
			if took, ok = input.Decimal(v[6], time.Second); !ok || took < 0 {
				t.refuse(line, "Elapsed time", notTime, v[6])
				good = false
			}
		}
		if !good {
			return nil
		}
		r.sorted(line, "Timestamp", int64(at), v[0])
		if counts[1] == 0 {
			t.refuse(line, "Response tokens", "is 0: the request failed when it was recorded", "")
			return nil
		}
		if total, ok := input.Whole(v[7]); v[7] != "" && (!ok || total != counts[0]+counts[1]) {
			r.note(line, "Total tokens", "is not the sum of request and response tokens")
		}
		index, kept, err := r.add(int64(at), Row{
			InputTokens: counts[0], OutputTokens: counts[1], Took: took, Model: r.intern(v[1]), Class: r.intern(v[4]), Line: line,
		})
		if kept {
			r.follow(index, strings.TrimSpace(v[5]), last)
		}
		return err
	})
}

// follow makes row index the next turn of the session of that name; an empty name is none. last holds the last row of each.
func (r *reading) follow(index int, name string, last map[int]int) {
	row := &r.trace.Rows[index]
	session := r.session(name)
	row.Session = session
	if name == "" {
		return
	}
	if before, ok := last[session]; ok {
		row.Turn = r.trace.Rows[before].Turn + 1
		row.After = []int{before}
		if took := r.trace.Rows[before].Took; took > 0 {
			r.gap(row, time.Duration(r.clocks[index]-later(r.clocks[before], took)))
		}
	}
	last[session] = index
}
