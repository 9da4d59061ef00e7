package plan

// Setting is one key of the spec and its value, as the file of another tool has it.
type Setting struct {
	Key          string // "load.stages[0].rate"
	Value        string
	Line, Column int // from 1; 0 for what the file does not say and implies
}

// Take takes what the file of another tool comes to, in place of Read: settings, and the mistakes found in it. What the file was
// refused for is not missed as a key of the spec too.
func (d *Draft) Take(name string, settings []Setting, faults Faults) {
	d.name = name
	for _, s := range settings {
		d.file = append(d.file, setting{s.Key, s.Value, origin{line: s.Line, column: s.Column}})
	}
	d.faults = append(d.faults, faults...)
	d.foreign = len(faults) > 0
}
