package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Template describes a JSON endpoint that no other name stands for: what its requests look like, and where its replies have
// what counts. Places in replies are JSON Pointers (RFC 6901), "/choices/0/delta/content".
type Template struct {
	Path        string // added to the base URL; empty where the URL is complete
	Body        string // JSON text with placeholders, {{prompt}}, in place of values
	Text        string // the answer
	Reasoning   string // empty for none; so are all others
	UsageInput  string // number of prompt tokens
	UsageCached string // number of those that came from a cache
	UsageOutput string // number of generated tokens, so far or in all
	Finish      string // finish reason, or a true that stands for one
	Error       string // what is there only if something went wrong
	Done        string // data of the event that ends a stream; "[DONE]" is known anyway
	Framing     string // one of the framings; empty for what the reply itself says, or the document that was asked for
	Cumulative  bool   // each event has the whole text so far
}

// How the replies of a template endpoint are taken apart.
const (
	FramingSSE      = "sse"
	FramingLines    = "ndjson"
	FramingDocument = "document"
)

// Placeholders of a template's body. Each stands in place of a JSON value, and is written as one.
const (
	PlacePrompt      = "prompt"      // a text; conversations in plain form
	PlaceMessages    = "messages"    // an array in OpenAI's form
	PlacePromptIDs   = "prompt_ids"  // an array of token ids
	PlaceModel       = "model"       // a text
	PlaceMaxTokens   = "max_tokens"  // a number
	PlaceTemperature = "temperature" // a number
	PlaceTopP        = "top_p"       // a number
	PlaceSeed        = "seed"        // a number
	PlaceStream      = "stream"      // true or false
	PlaceIgnoreEOS   = "ignore_eos"  // true or false
	PlaceTools       = "tools"       // an array in OpenAI's form, or null
	PlaceCacheSalt   = "cache_salt"  // a text, or null
	PlacePriority    = "priority"    // a number, 0 without any
)

var placeholders = []string{
	PlacePrompt, PlaceMessages, PlacePromptIDs, PlaceModel, PlaceMaxTokens, PlaceTemperature, PlaceTopP, PlaceSeed, PlaceStream, PlaceIgnoreEOS,
	PlaceTools, PlaceCacheSalt, PlacePriority,
}

// Segment is a stretch of a template's body: text as it stands, then the value of a placeholder. The last one has none.
type Segment struct{ Text, Place string }

// Segments cuts the body at its placeholders. What is left open counts as text.
func (t Template) Segments() (all []Segment) {
	rest := t.Body
	for {
		text, after, found := strings.Cut(rest, "{{")
		name, behind, closed := strings.Cut(after, "}}")
		if !found || !closed {
			return append(all, Segment{Text: rest})
		}
		all = append(all, Segment{text, strings.TrimSpace(name)})
		rest = behind
	}
}

// Has reports whether the body has a placeholder.
func (t Template) Has(place string) bool {
	return slices.ContainsFunc(t.Segments(), func(s Segment) bool { return s.Place == place })
}

// Samples reports whether the body says temperature and top_p, by a placeholder or in a text of its own.
func (t Template) Samples() bool {
	says := func(place string, members ...string) bool {
		return t.Has(place) || slices.ContainsFunc(members, func(name string) bool { return strings.Contains(t.Body, `"`+name+`"`) })
	}
	return says(PlaceTemperature, "temperature") && says(PlaceTopP, "top_p", "topP")
}

// Pointer takes a JSON Pointer apart: the names of members, and the numbers of elements, from the outside in.
func Pointer(text string) (names []string, err error) {
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("must be a JSON Pointer that begins with /, got %q", text)
	}
	for name := range strings.SplitSeq(text[1:], "/") {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(name); strings.Contains(rest, "~") {
			return nil, fmt.Errorf("must be a JSON Pointer, in which ~ is written ~0 and / within a name ~1, got %q", text)
		}
		names = append(names, strings.NewReplacer("~0", "~", "~1", "/").Replace(name))
	}
	return names, nil
}

// place is a pointer of a template, by the name of its key.
type place struct{ key, pointer string }

func (t Template) places() []place {
	return []place{
		{"text", t.Text}, {"reasoning", t.Reasoning}, {"usage_input", t.UsageInput}, {"usage_cached", t.UsageCached},
		{"usage_output", t.UsageOutput}, {"finish", t.Finish}, {"error", t.Error},
	}
}

const templateKey = "target.template."

// templateFaults checks that a template is there when it is spoken, whole, and only then.
func (t Target) templateFaults(present presence) (faults Faults) {
	if t.Endpoint != EndpointTemplate {
		for _, k := range specKeys {
			if strings.HasPrefix(k.name, templateKey) && present(k.name, k.field(&Spec{Target: t})) {
				faults = append(faults, Fault{
					Key: k.name, Reason: "goes with target.endpoint template only, which is " + t.Endpoint, Hint: "set target.endpoint: template",
				})
			}
		}
		return faults
	}
	for _, name := range []string{"body", "text"} {
		k, _ := find(specKeys, templateKey+name)
		if !present(k.name, k.field(&Spec{Target: t})) {
			faults = append(faults, Fault{Key: k.name, Reason: "is missing, and target.endpoint is template", Hint: k.hint})
		}
	}
	faults = append(faults, t.Template.bodyFaults()...)
	faults = append(faults, t.Template.placeFaults()...)
	return append(faults, t.framingFaults()...)
}

// bodyFaults finds placeholders that are none or stand where they cannot, and a body that is not JSON.
func (t Template) bodyFaults() (faults Faults) {
	if t.Body == "" {
		return nil
	}
	fault := func(reason, hint string) {
		faults = append(faults, Fault{Key: templateKey + "body", Reason: reason, Hint: hint})
	}
	var quote quotes
	for _, s := range t.Segments() {
		if quote.follow(s.Text); s.Place != "" && quote.inside {
			fault(fmt.Sprintf("has {{%s}} inside a string", s.Place), "leave the quotes out: values are written as JSON, with quotes where they need them")
		}
		switch {
		case s.Place == "" && strings.Contains(s.Text, "{{"):
			fault("has a {{ without its }}", `write \u007b for a brace that is meant literally`)
		case s.Place != "" && !slices.Contains(placeholders, s.Place):
			fault(fmt.Sprintf("has {{%s}}, which is no value", shortened(s.Place)), placeHint(s.Place))
		}
	}
	if len(faults) == 0 {
		if where := t.notJSON(); where != "" {
			fault("is not JSON with its values filled in: "+where, "")
		}
	}
	if !t.Has(PlacePrompt) && !t.Has(PlaceMessages) && !t.Has(PlacePromptIDs) {
		fault("has no prompt: all requests would be alike", "put {{prompt}}, {{messages}} or {{prompt_ids}} where the prompt goes")
	}
	return faults
}

func placeHint(name string) string {
	if best, ok := nearest(name, placeholders); ok {
		return meant + "{{" + best + "}}?"
	}
	return "the values are " + strings.Join(placeholders, ", ")
}

// notJSON says what is wrong with the body once its placeholders are filled in: with numbers as long as they are.
func (t Template) notJSON() string {
	var b strings.Builder
	rest := t.Body
	for {
		text, after, found := strings.Cut(rest, "{{")
		b.WriteString(text)
		if !found {
			break
		}
		name, behind, _ := strings.Cut(after, "}}")
		b.WriteString(strings.Repeat("1", len("{{}}")+len(name)))
		rest = behind
	}
	var value any
	err := json.Unmarshal([]byte(b.String()), &value)
	if err == nil {
		return ""
	}
	at := len(t.Body)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = min(max(0, int(syntax.Offset)-1), at)
	}
	line := strings.Count(t.Body[:at], "\n") + 1
	return fmt.Sprintf("line %d, column %d: %v", line, at-strings.LastIndexByte(t.Body[:at], '\n'), err)
}

// quotes follows a JSON text to know whether it is inside a string.
type quotes struct{ inside, escaped bool }

func (q *quotes) follow(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case q.escaped:
			q.escaped = false
		case c == '"':
			q.inside = !q.inside
		case c == '\\':
			q.escaped = q.inside
		}
	}
}

// placeFaults finds pointers that are none, and two of which one is the other or within it.
func (t Template) placeFaults() (faults Faults) {
	all := t.places()
	for i, p := range all {
		if p.pointer == "" {
			continue
		}
		if _, err := Pointer(p.pointer); err != nil {
			faults = append(faults, Fault{Key: templateKey + p.key, Reason: err.Error(), Hint: "write /choices/0/delta/content for {\"choices\":[{\"delta\":{\"content\":…}}]}"})
			continue
		}
		for _, q := range all[:i] {
			if q.pointer != "" && (within(p.pointer, q.pointer) || within(q.pointer, p.pointer)) {
				faults = append(faults, Fault{
					Key: templateKey + p.key, Reason: fmt.Sprintf("is %s, which overlaps %s%s, %s", p.pointer, templateKey, q.key, q.pointer), Hint: "each place can mean one thing",
				})
			}
		}
	}
	return faults
}

func within(inner, outer string) bool { return strings.HasPrefix(inner+"/", outer+"/") }

// framingFaults holds the framing to whether a stream is asked for.
func (t Target) framingFaults() Faults {
	framing := t.Template.Framing
	switch {
	case framing == "" || t.Stream != (framing == FramingDocument):
		return nil
	case t.Stream:
		return Faults{{Key: templateKey + "framing", Reason: "is document, but target.stream is true", Hint: "set target.stream: false, or leave framing out"}}
	}
	return Faults{{Key: templateKey + "framing", Reason: fmt.Sprintf("is %s, but target.stream is false", framing), Hint: "set target.stream: true, or leave framing out"}}
}

// pathFault says why the path cannot be that of a request.
func (t Template) pathFault() (reason, hint string) {
	if !strings.HasPrefix(t.Path, "/") || strings.ContainsAny(t.Path, " #") {
		return fmt.Sprintf("must begin with / and have neither spaces nor #, got %q", t.Path), ""
	}
	return "", ""
}
