package dataset

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"tare/internal/plan/input"
)

// Format names the form of a data set.
type Format string

const (
	ShareGPT    Format = "sharegpt"     // {"id", "conversations": [{"from", "value"}]}, in one array or one a line
	JSON        Format = "json"         // objects with columns of any name, in one array or one a line
	CSV         Format = "csv"          // comma separated, the first record names the columns; tabs if the name ends in .tsv
	Parquet     Format = "parquet"      // Apache Parquet, nested columns too
	OpenAIBatch Format = "openai-batch" // {"custom_id", "method", "url", "body"}, one a line
	OpenAI      Format = "openai"       // a request body, one a line
	Text        Format = "text"         // prompts in plain text
)

// Formats returns the names of all formats.
func Formats() []Format { return []Format{ShareGPT, JSON, CSV, Parquet, OpenAIBatch, OpenAI, Text} }

// Detect tells the format of a file by its first bytes and its name. Request bodies (OpenAI) are never assumed.
func Detect(file *input.File) Format {
	head := bytes.TrimSpace(file.Head(64 << 10))
	name := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(file.Path, ".gz"), ".zst"))
	switch ext := filepath.Ext(name); {
	case bytes.HasPrefix(head, []byte("PAR1")), ext == ".parquet":
		return Parquet
	case ext == ".csv" || ext == ".tsv":
		return CSV
	case ext == ".txt" || ext == ".md":
		return Text
	case len(head) > 0 && (head[0] == '{' || head[0] == '['):
		return detectJSON(head)
	}
	return Text
}

// detectJSON looks at the keys of the first object.
func detectJSON(head []byte) Format {
	keys := firstKeys(head)
	switch {
	case keys["custom_id"] && keys["body"]:
		return OpenAIBatch
	case keys["conversations"] || keys["conversation"]:
		return ShareGPT
	}
	return JSON
}

// firstKeys returns the keys of the first object in head, as far as head goes.
func firstKeys(head []byte) map[string]bool {
	keys := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(head))
	for depth, key := 0, true; ; {
		token, err := d.Token()
		if err != nil {
			return keys
		}
		object := depth == 1
		switch t := token.(type) {
		case json.Delim:
			switch {
			case t == '[' && depth == 0 && len(keys) == 0:
				continue // the array that holds the objects
			case t == '{' || t == '[':
				depth++
				object = false
			default:
				if depth--; depth <= 0 {
					return keys
				}
				object = depth == 1
				key = !object || key
			}
			if object {
				key = true
			}
			continue
		case string:
			if object && key {
				keys[t] = true
				key = false
				continue
			}
		}
		if object {
			key = true
		}
	}
}
