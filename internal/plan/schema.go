package plan

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// Schema returns the JSON Schema of a spec file, for editors that complete and check.
func Schema() []byte {
	defaults := Defaults()
	root := object("Spec of a tare run.")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "tare spec"
	for i := range specKeys {
		k := &specKeys[i]
		to, path := root, strings.Split(k.name, ".")
		for n := range len(path) - 1 {
			to = subsection(to, path[n], strings.Join(path[:n+1], "."))
		}
		to["properties"].(map[string]any)[path[len(path)-1]] = property(k, &defaults)
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("plan: schema: " + err.Error())
	}
	return append(text, '\n')
}

// sectionTexts says what each section is about.
var sectionTexts = map[string]string{
	"target.template":       "What endpoint template is.",
	"target":                "Which server, and how to speak to it.",
	"load":                  "When requests are sent.",
	"workload":              "What is sent.",
	"workload.prefix":       "What prompts have in common.",
	"workload.conversation": "Requests that are turns of sessions.",
	"workload.images":       "Pictures beside the prompt.",
	"workload.videos":       "Videos beside the prompt.",
	"workload.audio":        "Sounds beside the prompt.",
	"workload.dataset":      "Conversations and prompts from a file.",
	"workload.trace":        "A recording of real load.",
	"client":                "How this machine carries the plan out.",
	"server_metrics":        "Where the servers' own numbers are to be had.",
}

func object(about string) map[string]any {
	return map[string]any{
		"type": "object", "description": about, "properties": map[string]any{}, "additionalProperties": false,
	}
}

func subsection(of map[string]any, name, path string) map[string]any {
	properties := of["properties"].(map[string]any)
	if properties[name] == nil {
		properties[name] = object(sectionTexts[path])
	}
	return properties[name].(map[string]any)
}

// property describes one key; defaults holds its default.
func property[T any](k *key[T], defaults *T) map[string]any {
	p := map[string]any{"description": k.describe(defaults)}
	field := k.field(defaults)
	switch field.(type) {
	case *string:
		p["type"] = "string"
		if k.oneOf != nil {
			p["enum"] = k.oneOf
		}
	case *Lengths:
		p["type"] = []string{"integer", "string"}
	case *bool:
		p["type"] = "boolean"
	case *float64:
		p["type"] = "number"
		k.bounds(p)
	case *int, *int64, *uint64:
		p["type"] = "integer"
		k.bounds(p)
	case *time.Duration:
		p["type"] = "string"
		p["pattern"] = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
	case *[]string:
		p["type"] = []string{"array", "string"}
		p["items"] = map[string]any{"type": "string", "description": "One of them."}
	case *map[string]string:
		p["type"] = "object"
		p["additionalProperties"] = map[string]any{"type": []string{"string", "number", "boolean"}}
	case *[]LoadStage:
		p["type"], p["minItems"], p["maxItems"] = "array", 1, maxStages
		p["items"] = itemSchema("One part of the load: a rate or a concurrency, and a duration, a number of requests, or both.", stageKeys)
	case *[]Class:
		p["type"], p["minItems"], p["maxItems"] = "array", 1, maxClasses
		p["items"] = itemSchema("One kind of requests, drawn by its weight.", classKeys)
	}
	if !k.loose {
		p["default"] = scalarValue(field)
	}
	return p
}

func (k *key[T]) bounds(p map[string]any) {
	if k.above {
		p["exclusiveMinimum"] = k.least
	} else {
		p["minimum"] = k.least
	}
	if k.most < math.MaxUint64 {
		p["maximum"] = k.most
	}
}

func itemSchema[T any](about string, keys []key[T]) map[string]any {
	s := object(about)
	for i := range keys {
		s["properties"].(map[string]any)[keys[i].name] = property(&keys[i], new(T))
	}
	return s
}

// describe says what the key means, its unit and its default.
func (k *key[T]) describe(defaults *T) string {
	text := k.about
	switch k.field(defaults).(type) {
	case *time.Duration:
		text += " A duration like 30s or 1m30s."
	case *float64, *int, *int64:
		if k.unit != "" {
			text += " In " + k.unit + "."
		}
	}
	if k.loose {
		return text
	}
	return text + " Default: " + scalarText(k.field(defaults)) + "."
}
