package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Difference is a place at which two JSON documents are not the same.
type Difference struct {
	Path string `json:"path"` // "total.metrics.ttft_ms.p50", "stages[0].name"; empty for the documents as a whole
	A    string `json:"a"`    // the value in the first document as compact JSON; empty where it has none
	B    string `json:"b"`
}

// Differences lists where two JSON documents are not the same, in the order of their paths. Numbers are the same when they are
// written the same. An object or a list that only one of them has is one difference.
func Differences(a, b []byte) ([]Difference, error) {
	x, err := document(a)
	if err != nil {
		return nil, err
	}
	y, err := document(b)
	if err != nil {
		return nil, err
	}
	var found differences
	found.compare("", x, y)
	return found, nil
}

func document(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

type differences []Difference

func (d *differences) compare(path string, x, y any) {
	if a, ok := x.(map[string]any); ok {
		if b, ok := y.(map[string]any); ok {
			d.objects(path, a, b)
			return
		}
	}
	if a, ok := x.([]any); ok {
		if b, ok := y.([]any); ok {
			d.lists(path, a, b)
			return
		}
	}
	if a, b := valueText(x), valueText(y); a != b {
		*d = append(*d, Difference{path, a, b})
	}
}

func (d *differences) objects(path string, a, b map[string]any) {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		at := key
		if path != "" {
			at = path + "." + key
		}
		d.compare(at, has(a, key), has(b, key))
	}
}

func (d *differences) lists(path string, a, b []any) {
	for i := range max(len(a), len(b)) {
		d.compare(fmt.Sprintf("%s[%d]", path, i), nth(a, i), nth(b, i))
	}
}

// missing stands for a value that one document does not have.
type missing struct{}

func has(object map[string]any, key string) any {
	if v, ok := object[key]; ok {
		return v
	}
	return missing{}
}

func nth(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return missing{}
}

func valueText(v any) string {
	if _, ok := v.(missing); ok {
		return ""
	}
	text, _ := json.Marshal(v) // what was decoded can be encoded
	return string(text)
}
