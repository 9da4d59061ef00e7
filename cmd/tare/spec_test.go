package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tare/internal/plan"
)

func TestExampleNamesEveryKey(t *testing.T) {
	var schema any
	if err := json.Unmarshal(plan.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := propertyNames(schema)
	if len(keys) < 30 {
		t.Fatalf("keys in the schema: got %d, want all", len(keys))
	}
	for _, key := range keys {
		if !strings.Contains(exampleSpec, key+":") {
			t.Errorf("the example does not name %q", key)
		}
	}
}

// propertyNames lists the names in all "properties" of a JSON Schema.
func propertyNames(schema any) (names []string) {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			names = append(names, propertyNames(v)...)
		}
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for name := range properties {
				names = append(names, name)
			}
		}
		for _, v := range s {
			names = append(names, propertyNames(v)...)
		}
	}
	return names
}

func TestExampleShowsTheDefaults(t *testing.T) {
	var d plan.Draft
	d.Read("example.yaml", []byte(exampleSpec))
	got, err := d.Spec()
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Defaults()
	want.Target.URL, want.Target.Model = got.Target.URL, got.Target.Model
	want.Load.Stages, want.Load.Warmup = got.Load.Stages, got.Load.Warmup
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant the defaults\n%s", got, want)
	}
}

func TestEveryFlagSetsAKey(t *testing.T) {
	var schema any
	if err := json.Unmarshal(plan.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, f := range specFlags {
		node := schema
		for name := range strings.SplitSeq(f.key, ".") {
			section, _ := node.(map[string]any)
			properties, _ := section["properties"].(map[string]any)
			node = properties[name]
		}
		if node == nil {
			t.Errorf("--%s sets %s, which the schema does not know", f.name, f.key)
		}
	}
}
