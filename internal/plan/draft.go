package plan

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/objective"
)

// Draft gathers a spec from a file and flags, and remembers where each value came from. The zero value is an empty draft.
type Draft struct {
	name     string // of the file
	file     []setting
	flags    []setting
	stages   int // given by flags
	classes  int // given by flags
	required []string
	faults   Faults

	unreadable bool // the file has no settings to judge
	foreign    bool // it is another tool's, and was refused: what is missing may be what was refused
}

// setting is one key and its value as it was written.
type setting struct {
	path string // "load.stages[0].rate", "target.headers.NAME"
	text string
	from origin
}

// origin is where a setting was written.
type origin struct {
	line, column int
	flag         string
}

// Set gives a key a value by a flag, whatever the file says. The flag ("--rate") is named in faults. The key load.stages
// adds a stage, "rate=10,duration=30s"; target.headers adds a header, "NAME: VALUE"; other keys keep the value set last.
//
// A flag for rate, concurrency or a stage takes the place of the file's load: what would not go with it is left out.
func (d *Draft) Set(key, value, flag string) {
	from := origin{flag: flag}
	switch k, known := find(specKeys, key); {
	case known && isTexts(k.field(new(Spec))):
		d.setEntries(key, value, from)
	case key == "load.stages":
		setItem(d, key, &d.stages, stageKeys, value, "rate=10,duration=30s", from)
	case key == "workload.classes":
		setItem(d, key, &d.classes, classKeys, value, "name=gold,weight=2", from)
	case key == "target.headers":
		d.setHeader(value, from)
	case !known:
		d.fault(from, key, "is not a key", unknownHint(key, "", names(specKeys)))
	default:
		d.flags = append(d.flags, setting{key, value, from})
	}
}

func (d *Draft) setHeader(text string, from origin) {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		d.fault(from, "target.headers", "has no colon", "write NAME: VALUE")
		return
	}
	name = strings.TrimSpace(name)
	d.flags = append(d.flags, setting{"target.headers." + name, strings.TrimSpace(value), from})
}

// isTexts says that a key's value is a list of texts.
func isTexts(field any) bool { _, ok := field.(*[]string); return ok }

// entriesOf are the objectives in a text, or the text that is none.
func entriesOf(text string) []string {
	if list := objective.Split(text); len(list) > 0 {
		return list
	}
	return []string{text}
}

// setEntries adds texts to a list.
func (d *Draft) setEntries(path, text string, from origin) {
	n := 0
	for _, s := range d.flags {
		if strings.HasPrefix(s.path, path+"[") {
			n++
		}
	}
	for i, entry := range entriesOf(text) {
		d.flags = append(d.flags, setting{itemPath(path, n+i), entry, from})
	}
}

// setItem adds an item to a list, written as pairs.
func setItem[T any](d *Draft, list string, count *int, keys []key[T], text, example string, from origin) {
	path := itemPath(list, *count)
	*count++
	d.flags = append(d.flags, setting{path: path, from: from})
	for _, part := range parts(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		at := path + "." + name
		switch k, known := find(keys, name); {
		case !ok:
			d.fault(from, path, fmt.Sprintf("must be pairs like %s, got %q", example, part), "")
		case !known:
			d.fault(from, at, "is not a key", unknownHint(name, "", names(keys)))
		case slices.ContainsFunc(d.flags, func(s setting) bool { return s.path == at || s.path == itemPath(at, 0) }):
			d.fault(from, at, "is given twice", "")
		case isTexts(k.field(new(T))):
			d.setEntries(at, value, from)
		default:
			d.flags = append(d.flags, setting{at, value, from})
		}
	}
}

// parts cuts a text at its commas, but for those in brackets.
func parts(text string) (list []string) {
	depth, begin := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			list = append(list, text[begin:i])
			begin = i + 1
		}
	}
	return append(list, text[begin:])
}

// Require makes keys mandatory that may otherwise be missing: target.url and target.model for a run.
func (d *Draft) Require(keys ...string) { d.required = append(d.required, keys...) }

// Spec returns the effective spec: what was given, and the default of every other key. The error is Faults, all there are.
func (d *Draft) Spec() (Spec, error) {
	if d.unreadable {
		return Spec{}, d.faults
	}
	spec := Defaults()
	faults := slices.Clone(d.faults)
	origins := map[string]origin{}
	for _, f := range faults { // a key that could not be read is not missing too
		from := origin{f.Line, f.Column, f.Flag}
		origins[f.Key] = from
		note(origins, setting{path: f.Key, from: from})
	}
	for _, s := range d.effective() {
		origins[s.path] = s.from
		note(origins, s)
		if reason := spec.assign(s.path, s.text); reason != "" {
			faults = append(faults, d.located(Fault{Key: s.path, Reason: reason}, origins))
		}
	}
	present := func(path string, _ any) bool { _, ok := origins[path]; return ok }
	spec.Workload.profile(present)
	spec.Load.replay(&spec.Workload, present)
	if !present("load.drain", nil) {
		spec.Load.Drain = spec.Target.Timeout
	}
	if !present("target.api_key_env", nil) {
		spec.Target.APIKeyEnv = keyVariable(spec.Target.Endpoint)
	}
	for _, path := range d.required {
		const hint = "give it by its flag, or in a spec file"
		if !present(path, nil) {
			faults = append(faults, Fault{File: d.name, Key: path, Reason: "is missing", Hint: hint})
		} else if k, _ := find(specKeys, path); !faults.at(path) && !given(k.field(&spec)) {
			faults = append(faults, d.located(Fault{Key: path, Reason: "must not be empty", Hint: hint}, origins))
		}
	}
	faults = append(faults, d.headerFaults()...)
	unread := faults
	for _, f := range spec.check(present) {
		if d.foreign && !d.has(f.Key) {
			continue
		}
		if f = d.located(f, origins); !unread.cover(f) && !unread.explain(f) {
			faults = append(faults, f)
		}
	}
	if len(faults) > 0 {
		faults.sort()
		return Spec{}, faults
	}
	return spec, nil
}

// has says that a key was given a value, and not just something below it.
func (d *Draft) has(path string) bool {
	return slices.ContainsFunc(d.effective(), func(s setting) bool { return s.path == path })
}

// note records that the sections, lists and maps around a setting are given too.
func note(origins map[string]origin, s setting) {
	for path := s.path; ; {
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return
		}
		path = path[:i]
		if _, ok := origins[path]; !ok {
			origins[path] = s.from
		}
	}
}

// effective returns the file's settings that no flag replaces, and then the flags.
func (d *Draft) effective() []setting {
	replaced := func(s setting) bool {
		return slices.ContainsFunc(d.flags, func(f setting) bool { return replaces(f.path, s.path) })
	}
	return append(slices.DeleteFunc(slices.Clone(d.file), replaced), d.flags...)
}

// replaces says that a flag for one key leaves no room for the file's other.
func replaces(flag, file string) bool {
	stages := strings.HasPrefix(file, "load.stages")
	switch {
	case strings.HasPrefix(flag, "load.stages"):
		return stages || slices.Contains(shortForms, file)
	case strings.HasPrefix(flag, "slo["):
		return strings.HasPrefix(file, "slo[")
	case strings.HasPrefix(flag, "workload.classes"):
		return strings.HasPrefix(file, "workload.classes")
	case flag == "load.rate":
		return stages || file == flag || file == "load.concurrency" || strings.HasPrefix(file, "load.think_")
	case flag == "load.concurrency":
		return stages || file == flag || file == "load.rate" || file == "load.max_in_flight"
	case strings.HasPrefix(flag, "target.headers."):
		return strings.EqualFold(flag, file)
	}
	return flag == file
}

// assign gives the key at path its value; reason says why it could not.
func (s *Spec) assign(path, text string) (reason string) {
	for _, m := range mapKeys {
		name, ok := strings.CutPrefix(path, m+".")
		if !ok {
			continue
		}
		k, _ := find(specKeys, m)
		values := k.field(s).(*map[string]string)
		if *values == nil {
			*values = map[string]string{}
		}
		(*values)[name] = text
		return ""
	}
	if rest, ok := strings.CutPrefix(path, "load.stages["); ok {
		return assignItem(&s.Load.Stages, stageKeys, rest, text)
	}
	if rest, ok := strings.CutPrefix(path, "workload.classes["); ok {
		return assignItem(&s.Workload.Classes, classKeys, rest, text)
	}
	if k, ok := find(specKeys, listOf(path)); ok && listOf(path) != path {
		return assign(k.field(s), text)
	}
	if k, ok := find(specKeys, path); ok && !isTexts(k.field(s)) && !slices.Contains(mapKeys, path) && !slices.Contains(listKeys, path) {
		return assign(k.field(s), text)
	}
	return ""
}

// mapKeys are the keys whose value is a map of texts, listKeys those whose value is a list.
var (
	mapKeys  = []string{"target.headers", "workload.sha256"}
	listKeys = []string{"load.stages", "workload.classes"}
)

// assignItem gives a key of a list's item its value; rest is "0].rate", or "0]" for the item itself.
func assignItem[T any](list *[]T, keys []key[T], rest, text string) (reason string) {
	var i int
	if _, err := fmt.Sscanf(rest, "%d]", &i); err != nil {
		return err.Error()
	}
	for len(*list) <= i {
		*list = append(*list, *new(T))
	}
	_, name, _ := strings.Cut(rest, "].")
	if k, ok := find(keys, listOf(name)); ok && isTexts(k.field(&(*list)[i])) == (listOf(name) != name) {
		return assign(k.field(&(*list)[i]), text)
	}
	return ""
}

// listOf is the path of the list that a path names an entry of, "slo" of "slo[1]"; another path stays as it is.
func listOf(path string) string {
	if i := strings.LastIndexByte(path, '['); i > 0 && strings.HasSuffix(path, "]") {
		return path[:i]
	}
	return path
}

// fault records a mistake found while reading.
func (d *Draft) fault(from origin, path, reason, hint string) {
	f := Fault{Key: path, Reason: reason, Hint: hint}
	d.faults = append(d.faults, d.located(f, map[string]origin{path: from}))
}

// located returns f with the place of its key, or of the nearest section around it.
func (d *Draft) located(f Fault, origins map[string]origin) Fault {
	for path := f.Key; ; {
		if from, ok := origins[path]; ok {
			// A section is not at the flag that set one of its keys.
			if from.flag == "" || path == f.Key && !isSection(path) {
				f.Flag, f.Line, f.Column = from.flag, from.line, from.column
				break
			}
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	if f.Flag == "" {
		f.File = d.name
	}
	return f
}

// cover says that the setting that made g has a fault already.
func (f Faults) cover(g Fault) bool {
	return slices.ContainsFunc(f, func(f Fault) bool { return f.Key == g.Key && f.Line == g.Line && f.Flag == g.Flag })
}

// at says that the key at path has a fault already.
func (f Faults) at(path string) bool {
	return slices.ContainsFunc(f, func(f Fault) bool { return f.Key == path })
}

// explain says that g misses keys of a stage or the load, and one of them may be there, misspelled.
func (f Faults) explain(g Fault) bool {
	misses := g.Key == "load" || strings.HasPrefix(g.Key, "load.stages") && strings.HasSuffix(g.Key, "]")
	return misses && slices.ContainsFunc(f, func(f Fault) bool {
		return strings.HasPrefix(f.Key, g.Key+".") && strings.HasPrefix(f.Hint, meant)
	})
}

// headerFaults finds headers whose names differ in case only, or not at all.
func (d *Draft) headerFaults() (faults Faults) {
	first := map[string]setting{}
	for _, s := range d.effective() {
		name, ok := strings.CutPrefix(s.path, "target.headers.")
		if !ok {
			continue
		}
		if before, twice := first[strings.ToLower(name)]; twice {
			f := Fault{Key: s.path, Reason: name + " is given twice, first as " + before.place(), Hint: "leave one of them out"}
			faults = append(faults, d.located(f, map[string]origin{s.path: s.from}))
			continue
		}
		first[strings.ToLower(name)] = s
	}
	return faults
}

// place names a header and where it was given.
func (s setting) place() string {
	name := strings.TrimPrefix(s.path, "target.headers.")
	if s.from.flag != "" {
		return name + " by an earlier " + s.from.flag
	}
	return fmt.Sprintf("%s on line %d", name, s.from.line)
}

// sort puts the file's faults before the flags', in the order of their places.
func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		if flags := flag(a.Flag != "") - flag(b.Flag != ""); flags != 0 {
			return int(flags)
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// names lists the names of keys.
func names[T any](keys []key[T]) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.name
	}
	return all
}

// meant begins the hint that names the key a misspelled one was probably meant to be.
const meant = "did you mean "

// unknownHint says which key was meant by name below prefix, if that can be guessed.
func unknownHint(name, prefix string, candidates []string) string {
	if best, ok := nearest(name, candidates); ok {
		return meant + prefix + best + "?"
	}
	for _, k := range specKeys {
		if section, last, ok := strings.Cut(k.name, "."); ok && last == strings.ReplaceAll(name, "-", "_") && section+"." != prefix {
			return meant + k.name + "?"
		}
	}
	if len(candidates) <= 20 {
		return "the keys here are " + strings.Join(candidates, ", ")
	}
	return ""
}
