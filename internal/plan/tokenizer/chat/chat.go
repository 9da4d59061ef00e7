// Package chat renders a conversation with a model's chat template, as the server would before it counts tokens.
//
// Templates are Jinja, in the part of it that models' templates use, set up as Hugging Face's tokenizers do: trim_blocks,
// lstrip_blocks, break and continue, tojson as json.dumps writes it, values that a template cannot change. What a template uses
// beyond that is an error, when it is read if possible.
package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Template is a chat template. It is safe for concurrent use.
type Template struct {
	body     []statement
	BOS, EOS string // what the template's bos_token and eos_token are
}

// Conversation is what a template makes text of.
type Conversation struct {
	Messages json.RawMessage // as in the body of a request
	Tools    json.RawMessage // none if empty
	Extra    json.RawMessage // an object with further variables, chat_template_kwargs of a request; none if empty
	Generate bool            // the text ends where the assistant's answer begins
	Now      time.Time       // what strftime_now tells; a template that asks is refused if it is zero
}

// Parse reads a template. Faults name the line.
func Parse(source string) (t *Template, err error) {
	p := &parser{}
	defer catch(&err, func() int {
		if p.at < len(p.in) {
			return p.in[p.at].line
		}
		return 1
	})
	p.in = lex(source)
	body, _ := p.body()
	return &Template{body: body}, nil
}

// catch turns a failure into an error. Line tells where the work stands.
func catch(err *error, line func() int) {
	switch thrown := recover().(type) {
	case nil:
	case failure:
		if thrown.line == 0 {
			thrown.line = line()
		}
		*err = fmt.Errorf("chat template: line %d: %s", thrown.line, thrown.why)
	default:
		panic(thrown)
	}
}

// Load reads a template and its tokens from a tokenizer_config.json, or a template alone from any other file.
func Load(path string) (*Template, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read chat template: %w", err)
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
		BOS      json.RawMessage `json:"bos_token"`
		EOS      json.RawMessage `json:"eos_token"`
	}
	source := string(content)
	if json.Unmarshal(content, &config) == nil {
		if source, err = defaultTemplate(config.Template); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	t, err := Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.BOS, t.EOS = token(config.BOS), token(config.EOS)
	return t, nil
}

// defaultTemplate returns a file's only template, or the one of several that is called default.
func defaultTemplate(raw json.RawMessage) (string, error) {
	var source string
	if raw == nil {
		return "", fmt.Errorf("chat_template: missing")
	}
	if json.Unmarshal(raw, &source) == nil {
		return source, nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &several); err != nil {
		return "", fmt.Errorf("chat_template: %w", err)
	}
	for _, one := range several {
		if one.Name == "default" {
			return one.Template, nil
		}
	}
	return "", fmt.Errorf("chat_template: none of %d is called default", len(several))
}

// token reads "text" or {"content": "text"}.
func token(raw json.RawMessage) string {
	var object struct{ Content string }
	var text string
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
		text = object.Content
	}
	return text
}

// Append appends the text of a conversation to dst.
func (t *Template) Append(dst []byte, c Conversation) (out []byte, err error) {
	v, err := t.variables(c)
	if err != nil {
		return dst, err
	}
	out = dst
	r := &renderer{out: dst, left: mostPasses}
	defer catch(&err, func() int { return r.line })
	r.run(t.body, v)
	return r.out, nil
}

func (t *Template) variables(c Conversation) (*variables, error) {
	v := (&variables{}).inner()
	v.outer.values = map[string]any{
		"bos_token": t.BOS, "eos_token": t.EOS, "add_generation_prompt": c.Generate, "tools": nil, "documents": nil,
		"strftime_now": function(func(a given) any { return strftime(a.string(0, "format", ""), c.Now) }),
	}
	messages, err := decode(c.Messages)
	if err != nil {
		return nil, fmt.Errorf("chat template: messages: %w", err)
	}
	v.outer.values["messages"] = messages
	if len(c.Tools) > 0 {
		if v.outer.values["tools"], err = decode(c.Tools); err != nil {
			return nil, fmt.Errorf("chat template: tools: %w", err)
		}
	}
	if len(c.Extra) == 0 {
		return v, nil
	}
	extra, err := decode(c.Extra)
	object, ok := extra.(*dict)
	if err != nil || !ok {
		return nil, fmt.Errorf("chat template: extra variables are not an object (%v)", err)
	}
	for _, key := range object.keys {
		v.outer.values[text(key)] = object.values[key]
	}
	return v, nil
}

// strftime writes a time by the C library's letters.
func strftime(format string, now time.Time) string {
	if now.IsZero() {
		failHere("strftime_now: the template asks for the date, and the plan has none")
	}
	letters := map[byte]string{
		'd': "02", 'm': "01", 'Y': "2006", 'y': "06", 'B': "January", 'b': "Jan", 'H': "15", 'M': "04", 'S': "05", 'A': "Monday",
		'a': "Mon", 'I': "03", 'p': "PM", 'j': "002",
	}
	var out []byte
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out = append(out, format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			out = append(out, '%')
		} else if i < len(format) && letters[format[i]] != "" {
			out = now.AppendFormat(out, letters[format[i]])
		} else {
			failHere("strftime_now: format %q is not supported", format)
		}
	}
	return string(out)
}
