package plan

import (
	"fmt"
	"strings"
)

// Fault is one mistake in a spec: where it is, what it is, and what to do.
type Fault struct {
	File   string // empty where the spec is not from a file
	Line   int    // from 1; 0 for the file as a whole
	Column int    // from 1
	Flag   string // the flag that gave the value, "--rate"; empty for a key of the file
	Key    string // "load.rate"; empty for a mistake in the form of the file
	Reason string // "must be above 0 requests/s, got -3"
	Hint   string // empty for none
}

// Error gives "file.yaml:12: load.rate: reason", or "--rate: reason", and the hint on a line of its own.
func (f Fault) Error() string {
	text := f.where() + f.Reason
	if f.Hint != "" {
		text += "\nhint: " + f.Hint
	}
	return text
}

func (f Fault) where() string {
	var b strings.Builder
	switch {
	case f.Flag != "":
		return f.Flag + f.inFlag() + ": "
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		b.WriteString(f.File + ": ")
	}
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	return b.String()
}

// inFlag says where in the value of a flag that is given more than once: " 2: rate" for a key of the second --stage.
func (f Fault) inFlag() string {
	var i int
	_, item, ok := strings.Cut(f.Key, "[")
	if _, err := fmt.Sscanf(item, "%d]", &i); !ok || err != nil {
		return ""
	}
	_, name, ok := strings.Cut(f.Key, "].")
	if !ok {
		return fmt.Sprintf(" %d", i+1)
	}
	return fmt.Sprintf(" %d: %s", i+1, name)
}

// Faults are all mistakes found in a spec, those of the file first and in its order. It is an error.
type Faults []Fault

// Error gives one fault after another, each on lines of its own.
func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, fault := range f {
		texts[i] = fault.Error()
	}
	return strings.Join(texts, "\n")
}

// nearest returns the candidate that text was most likely meant to be; ok is false if none is near.
func nearest(text string, candidates []string) (best string, ok bool) {
	text = strings.ToLower(strings.ReplaceAll(text, "-", "_"))
	least := max(1, min(len(text)/3, 3)) + 1
	for _, c := range candidates {
		if d := distance(text, c); d < least {
			best, least = c, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
