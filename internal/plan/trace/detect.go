package trace

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"tare/internal/plan/input"
)

// Detect tells the format of a recording by its header or by the keys of its first object; empty if it is none.
func Detect(file *input.File) Format {
	head := bytes.TrimSpace(file.Head(256 << 10))
	if len(head) > 0 && head[0] == '{' {
		return detectKeys(head)
	}
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	fields, err := input.Fields(bytes.TrimRight(line, "\r"), ',')
	if err != nil {
		return ""
	}
	has := func(name string) bool {
		return slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) == name })
	}
	switch {
	case has("TIMESTAMP") || has("ContextTokens") || has("GeneratedTokens"):
		return Azure
	case has("Timestamp") || has("Request tokens") || has("Response tokens"):
		return BurstGPT
	}
	return ""
}

func detectKeys(head []byte) Format {
	keys := topKeys(head)
	switch {
	case keys["chat_id"] || keys["parent_chat_id"]:
		return Bailian
	case keys["spans"]:
		return OTel
	case keys["requests"]:
		return Weka
	case keys["input_length"] || keys["output_length"] || keys["hash_ids"]:
		return Mooncake
	}
	return ""
}

// topKeys returns the keys of the first object in head, as far as head goes.
func topKeys(head []byte) map[string]bool {
	keys := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(head))
	if _, err := d.Token(); err != nil {
		return keys
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return keys
		}
		keys[name] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return keys
		}
	}
	return keys
}
