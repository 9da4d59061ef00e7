package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"tare/internal/plan/input"
)

// prepare chooses how the file is parted into rows and how a row is read.
func (f *File) prepare(format Format, options Options) (iter.Seq2[input.Span, error], error) {
	switch format {
	case ShareGPT:
		f.parse = parseShareGPT
		return f.objects(), nil
	case OpenAIBatch:
		f.parse = parseBatch
		return f.file.Lines(), nil
	case OpenAI:
		f.parse = parseBody
		return f.file.Lines(), nil
	case Text:
		return f.text(options.Cut)
	case JSON:
		return f.json(options)
	case CSV:
		return f.csv(options)
	case Parquet:
		return f.parquet(options)
	}
	return nil, input.Faults{{
		File: f.facts.Path, Reason: "has a format that is unknown", Value: string(format),
		Hint: "formats: " + strings.Join(names(Formats()), ", "),
	}}
}

// objects parts the file into JSON objects: the elements of an array, or one a line.
func (f *File) objects() iter.Seq2[input.Span, error] {
	if head := bytes.TrimSpace(f.file.Head(4096)); len(head) > 0 && head[0] == '[' {
		return f.file.Elements()
	}
	return f.file.Lines()
}

// mapping reads rows by their columns.
type mapping struct {
	columns  Columns
	template template
}

// newMapping settles which columns are read, and faults all that are missing.
func (f *File) newMapping(options Options, line int, has func(string) bool) (mapping, error) {
	m := mapping{columns: options.Columns}
	var faults input.Faults
	var err error
	if m.template, err = parseTemplate(options.Template); err != nil {
		faults = append(faults, input.Fault{File: f.facts.Path, Reason: err.Error(), Value: options.Template})
	}
	for _, column := range m.columns.resolve(has, m.template) {
		faults = append(faults, input.Fault{File: f.facts.Path, Line: line, Key: column, Reason: "is a column that the file does not have"})
	}
	if len(faults) == 0 && m.columns.Prompt == "" && m.columns.Messages == "" && len(m.template) == 0 {
		faults = append(faults, input.Fault{
			File: f.facts.Path, Line: line, Reason: "has no column for the prompt",
			Hint: "name one as the column prompt or messages, or give a template with {{column}}",
		})
	}
	if len(faults) > 0 {
		return m, faults
	}
	f.facts.Columns = m.columns
	return m, nil
}

// json settles the columns by the first object that can be read.
func (f *File) json(options Options) (iter.Seq2[input.Span, error], error) {
	first, line := object{}, 0
	for span, err := range f.objects() {
		if err != nil {
			return nil, faults(err)
		}
		if json.Unmarshal(span.Text, &first) == nil && len(first) > 0 {
			line = span.Line
			break
		}
		first = object{}
	}
	if len(first) == 0 {
		f.parse = func([]byte) (Row, *input.Fault) { return Row{}, &input.Fault{Reason: "must be a JSON object"} }
		return f.objects(), nil
	}
	m, err := f.newMapping(options, line, func(column string) bool {
		_, ok := first.at(column)
		return ok
	})
	f.parse = m.parseObject
	return f.objects(), err
}

func (m mapping) parseObject(text []byte) (Row, *input.Fault) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil || o == nil {
		return Row{}, notJSON(text, err)
	}
	return m.row(o)
}

// csv reads the header; the records behind it are rows.
func (f *File) csv(options Options) (iter.Seq2[input.Span, error], error) {
	comma := byte(',')
	if strings.Contains(filepath.Base(f.facts.Path), ".tsv") {
		comma = '\t'
	}
	var header []string
	line := 1
	for span, err := range f.file.Records(comma) {
		if err != nil {
			return nil, faults(err)
		}
		if header, err = input.Fields(span.Text, comma); err != nil || span.Fault != "" {
			return nil, input.Faults{{File: f.facts.Path, Line: span.Line, Reason: "has a header that cannot be read"}}
		}
		line = span.Line
		break
	}
	if header == nil {
		return nil, input.Faults{{File: f.facts.Path, Reason: "has no rows"}}
	}
	place, err := f.headerPlaces(header, line)
	if err != nil {
		return nil, err
	}
	m, err := f.newMapping(options, line, func(column string) bool { _, ok := place[column]; return ok })
	f.parse = func(text []byte) (Row, *input.Fault) { return m.parseRecord(text, comma, header) }
	return behindFirst(f.file.Records(comma)), err
}

func (f *File) headerPlaces(header []string, line int) (map[string]int, error) {
	place := map[string]int{}
	var twice input.Faults
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
		if _, ok := place[header[i]]; ok {
			twice = append(twice, input.Fault{File: f.facts.Path, Line: line, Key: header[i], Reason: "is the name of two columns"})
		}
		place[header[i]] = i
	}
	if len(twice) > 0 {
		return nil, twice
	}
	return place, nil
}

func (m mapping) parseRecord(text []byte, comma byte, header []string) (Row, *input.Fault) {
	fields, err := input.Fields(text, comma)
	if err != nil {
		return Row{}, &input.Fault{Reason: "must be one CSV record"}
	}
	if len(fields) != len(header) {
		return Row{}, &input.Fault{Reason: fmt.Sprintf("must have %d fields as the header has", len(header)), Value: fmt.Sprint(len(fields))}
	}
	o := make(object, len(header))
	for i, name := range header {
		if fields[i] != "" {
			o[name] = asJSON(fields[i])
		}
	}
	return m.row(o)
}

// asJSON keeps a list or an object that was put into a field as what it is, and quotes everything else.
func asJSON(field string) json.RawMessage {
	if strings.HasPrefix(field, "[{") && json.Valid([]byte(field)) {
		return json.RawMessage(field)
	}
	quoted, _ := json.Marshal(field) // a string always can be
	return quoted
}

// behindFirst leaves out the header, and numbers the rows behind it from 0.
func behindFirst(spans iter.Seq2[input.Span, error]) iter.Seq2[input.Span, error] {
	return func(yield func(input.Span, error) bool) {
		for span, err := range spans {
			if err == nil && span.Number == 0 {
				continue
			}
			span.Number--
			if !yield(span, err) {
				return
			}
		}
	}
}

// faults makes a list of the faults in an error that stops the reading.
func faults(err error) error {
	if one := (input.Fault{}); errors.As(err, &one) {
		return input.Faults{one}
	}
	return err
}
