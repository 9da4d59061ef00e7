package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// YAML returns the spec as a file, without secrets. Reading it gives the same spec, but for masked values, which are not
// accepted.
func (s Spec) YAML() []byte {
	s = s.Masked()
	var b bytes.Buffer
	var open []string // sections
	for _, k := range specKeys {
		field := k.field(&s)
		if k.loose && !given(field) {
			continue
		}
		path := strings.Split(k.name, ".")
		name, within := path[len(path)-1], path[:len(path)-1]
		writeSections(&b, open, within)
		open = within
		indent := strings.Repeat("  ", len(within))
		switch v := field.(type) {
		case *map[string]string:
			writeMap(&b, name, *v)
		case *[]LoadStage:
			writeList(&b, name, stageKeys, *v)
		case *[]Class:
			writeList(&b, name, classKeys, *v)
		default:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, name, scalarText(field))
		}
	}
	return b.Bytes()
}

// writeSections begins those of the sections around a key that are not open yet.
func writeSections(b *bytes.Buffer, open, within []string) {
	same := 0
	for same < min(len(open), len(within)) && open[same] == within[same] {
		same++
	}
	for i := same; i < len(within); i++ {
		fmt.Fprintf(b, "%s%s:\n", strings.Repeat("  ", i), within[i])
	}
}

func writeMap(b *bytes.Buffer, name string, values map[string]string) {
	fmt.Fprintf(b, "  %s:\n", name)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(b, "    %s: %s\n", strconv.Quote(name), strconv.Quote(values[name]))
	}
}

func writeList[T any](b *bytes.Buffer, name string, keys []key[T], list []T) {
	fmt.Fprintf(b, "  %s:\n", name)
	for i := range list {
		lead := "    - "
		for _, k := range keys {
			if field := k.field(&list[i]); given(field) {
				fmt.Fprintf(b, "%s%s: %s\n", lead, k.name, scalarText(field))
				lead = "      "
			}
		}
	}
}

// scalarText writes a value as YAML, on one line.
func scalarText(field any) string {
	switch v := scalarValue(field).(type) {
	case string:
		if _, ok := field.(*time.Duration); ok {
			return v
		}
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []string:
		quoted := make([]string, len(v))
		for i, text := range v {
			quoted[i] = strconv.Quote(text)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

// scalarValue returns a value that is no map and no list of items as JSON has it: durations are texts like "1m30s".
func scalarValue(field any) any {
	switch v := field.(type) {
	case *string:
		return *v
	case *Lengths:
		if n, ok := v.Fixed(); ok {
			return n
		}
		return string(*v)
	case *[]string:
		return *v
	case *bool:
		return *v
	case *float64:
		return *v
	case *int:
		return *v
	case *int64:
		return *v
	case *uint64:
		return *v
	case *time.Duration:
		return durationText(*v)
	}
	panic(fmt.Sprintf("plan: no printer for a key of type %T", field))
}

// durationText writes 2m0s as 2m and 1h0m0s as 1h.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalJSON returns the spec with the keys of the file, without secrets.
func (s Spec) MarshalJSON() ([]byte, error) {
	s = s.Masked()
	root := map[string]any{}
	for _, k := range specKeys {
		field := k.field(&s)
		if k.loose && !given(field) {
			continue
		}
		to, path := root, strings.Split(k.name, ".")
		for _, section := range path[:len(path)-1] {
			if to[section] == nil {
				to[section] = map[string]any{}
			}
			to = to[section].(map[string]any)
		}
		to[path[len(path)-1]] = jsonValue(field)
	}
	return json.Marshal(root)
}

func jsonValue(field any) any {
	switch v := field.(type) {
	case *map[string]string:
		return *v
	case *[]LoadStage:
		return jsonList(stageKeys, *v)
	case *[]Class:
		return jsonList(classKeys, *v)
	}
	return scalarValue(field)
}

func jsonList[T any](keys []key[T], list []T) []map[string]any {
	values := make([]map[string]any, len(list))
	for i := range list {
		values[i] = map[string]any{}
		for _, k := range keys {
			if field := k.field(&list[i]); given(field) {
				values[i][k.name] = scalarValue(field)
			}
		}
	}
	return values
}

// String returns the spec as YAML, without secrets.
func (s Spec) String() string { return string(s.YAML()) }

// GoString is String: no form of printing shows secrets.
func (s Spec) GoString() string { return s.String() }

// String returns the target without secrets.
func (t Target) String() string {
	type plain Target
	return fmt.Sprintf("%+v", plain(t.masked()))
}

// GoString is String: no form of printing shows secrets.
func (t Target) GoString() string { return t.String() }
