package dataset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Columns says which column holds what. A name with dots leads into nested objects: "meta.question". An empty name is
// looked for among the usual ones, once, in the file's header or first good row; Facts.Columns says what was found.
type Columns struct {
	ID           string
	Prompt       string // text of a single user turn
	System       string // text of a system turn before it
	Messages     string // a list of {role, content} or {from, value}; goes before Prompt
	Output       string // recorded reply
	OutputTokens string // recorded length of the reply
	Tools        string // a list of tool definitions
}

// slot ties a field of Columns to its name in faults and its usual columns, the likeliest first.
type slot struct {
	name  string
	field func(*Columns) *string
	usual []string
}

func slots() []slot {
	return []slot{
		{"id", func(c *Columns) *string { return &c.ID }, []string{"id", "custom_id", "conversation_id"}},
		{"prompt", func(c *Columns) *string { return &c.Prompt }, []string{"prompt", "question", "instruction", "text", "input", "article"}},
		{"system", func(c *Columns) *string { return &c.System }, []string{"system", "system_prompt"}},
		{"messages", func(c *Columns) *string { return &c.Messages }, []string{"messages", "conversations", "conversation"}},
		{"output", func(c *Columns) *string { return &c.Output }, []string{"output", "response", "completion", "answer", "highlights"}},
		{"output_tokens", func(c *Columns) *string { return &c.OutputTokens }, []string{"output_tokens", "output_len", "max_tokens"}},
		{"tools", func(c *Columns) *string { return &c.Tools }, []string{"tools"}},
	}
}

// resolve fills in the usual names for what was left empty, and returns the asked names that the file does not have.
func (c *Columns) resolve(has func(column string) bool, template template) (missing []string) {
	for _, s := range slots() {
		field := s.field(c)
		switch {
		case *field != "" && !has(*field):
			missing = append(missing, *field)
		case *field != "":
		case s.name == "prompt" && len(template) > 0:
		default:
			if i := slices.IndexFunc(s.usual, has); i >= 0 {
				*field = s.usual[i]
			}
		}
	}
	for _, part := range template {
		if part.column != "" && !has(part.column) && !slices.Contains(missing, part.column) {
			missing = append(missing, part.column)
		}
	}
	return missing
}

// template is a prompt with places for columns.
type template []part

type part struct {
	text   string
	column string // empty for text
}

// parseTemplate reads "Q: {{question}}". Braces that are not doubled stand for themselves.
func parseTemplate(text string) (template, error) {
	var t template
	for text != "" {
		head, rest, ok := strings.Cut(text, "{{")
		if head != "" {
			t = append(t, part{text: head})
		}
		if !ok {
			return t, nil
		}
		column, after, ok := strings.Cut(rest, "}}")
		if column = strings.TrimSpace(column); !ok || column == "" {
			return nil, fmt.Errorf("template: has no column name and }} after {{")
		}
		t = append(t, part{column: column})
		text = after
	}
	return t, nil
}

// render fills in the columns.
func (t template) render(get func(column string) (string, bool)) (text string, missing string) {
	var b strings.Builder
	for _, p := range t {
		if p.column == "" {
			b.WriteString(p.text)
			continue
		}
		value, ok := get(p.column)
		if !ok {
			return "", p.column
		}
		b.WriteString(value)
	}
	return b.String(), ""
}

// object is one row by its columns; the values are JSON.
type object map[string]json.RawMessage

// at follows a name with dots; a column of that very name goes before.
func (o object) at(name string) (json.RawMessage, bool) {
	if name == "" {
		return nil, false
	}
	if v, ok := o[name]; ok {
		return v, string(v) != "null"
	}
	head, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil, false
	}
	var inner object
	if json.Unmarshal(o[head], &inner) != nil {
		return nil, false
	}
	return inner.at(rest)
}

// text returns a string as it is and any other value as its JSON.
func (o object) text(name string) (string, bool) {
	v, ok := o.at(name)
	if !ok {
		return "", false
	}
	var s string
	if v[0] == '"' && json.Unmarshal(v, &s) == nil {
		return s, true
	}
	return string(v), true
}
