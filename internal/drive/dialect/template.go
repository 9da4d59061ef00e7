package dialect

import (
	"encoding/json"
	"errors"
	"strconv"

	"tare/internal/plan"
)

// newTemplate returns the dialect of an endpoint that the spec describes.
func newTemplate(o Options) (*endpoint, error) {
	t := o.Template
	if t.Body == "" || t.Text == "" {
		return nil, errors.New("endpoint template: needs target.template.body and target.template.text")
	}
	places, err := placesOf(t)
	if err != nil {
		return nil, err
	}
	framing := t.Framing
	if framing == "" && !o.Stream {
		framing = plan.FramingDocument
	}
	return &endpoint{
		path: t.Path, framing: framing, form: formOf(o, templateParts(o)...),
		accepts: plan.Features{
			Model: t.Has(plan.PlaceModel), PromptIDs: t.Has(plan.PlacePromptIDs), Messages: t.Has(plan.PlacePrompt) || t.Has(plan.PlaceMessages),
			Images: t.Has(plan.PlaceMessages), Sampling: t.Samples(), Tools: t.Has(plan.PlaceTools), CacheSalt: t.Has(plan.PlaceCacheSalt), Priority: t.Has(plan.PlacePriority),
		},
		read: func() Reader {
			r := &templateReader{eventReader: eventReader{streamed: o.Stream, repeats: t.Cumulative, secrets: o.Secrets, marker: t.Done}, places: places, heartText: t.Text,
				cumulative: t.Cumulative, endless: t.Finish == "" && t.Done == ""}
			r.grammar = r
			return r
		},
	}, nil
}

// templateParts makes parts of a template's body.
func templateParts(o Options) (parts []part) {
	text := ""
	for _, s := range o.Template.Segments() {
		text += s.Text
		v, fixed := placeValue(s.Place, o)
		if text += fixed; v != noValue {
			parts, text = append(parts, part{text, v}), ""
		}
	}
	return append(parts, part{text, noValue})
}

// placeValue is what stands in a template's place: a value of each request, or a text that is the same in all.
func placeValue(name string, o Options) (v value, fixed string) {
	switch name {
	case plan.PlacePrompt:
		return promptText, ""
	case plan.PlaceMessages:
		return openAIMessages, ""
	case plan.PlacePromptIDs:
		return tokenIDs, ""
	case plan.PlaceModel:
		return modelName, ""
	case plan.PlaceMaxTokens:
		return anyLength, ""
	case plan.PlaceTools:
		return toolsOrNull, ""
	case plan.PlaceCacheSalt:
		return saltOrNull, ""
	case plan.PlacePriority:
		return anyPriority, ""
	case plan.PlaceTemperature:
		return noValue, strconv.FormatFloat(o.Temperature, 'f', -1, 64)
	case plan.PlaceTopP:
		return noValue, strconv.FormatFloat(o.TopP, 'f', -1, 64)
	case plan.PlaceSeed:
		return noValue, strconv.FormatUint(o.Seed, 10)
	case plan.PlaceStream:
		return noValue, truth(o.Stream)
	case plan.PlaceIgnoreEOS:
		return noValue, truth(o.IgnoreEOS)
	}
	return noValue, ""
}

// templateReader reads what stands in the places that a template names.
type templateReader struct {
	eventReader
	places     *spot
	heartText  string // place of the text
	cumulative bool   // texts are whole so far
	endless    bool   // nothing marks the last event: every one may be it, and the end of the body says that it was

	before  growth // than the event
	now     growth
	counted bool // the event has the number of tokens
}

// growth is how far an answer has grown.
type growth struct {
	tokens        int
	said, thought int // bytes of JSON of the text and of the reasoning, where events repeat them
}

// spot is a place in replies, or one on the way to others.
type spot struct {
	name   string // of a member
	number int    // of an element; -1 if the name is none
	means  meansOf
	within []*spot
}

// meansOf is what stands in a place.
type meansOf uint8

const (
	meansNothing meansOf = iota
	meansText
	meansReasoning
	meansInput
	meansCached
	meansOutput
	meansFinish
	meansError
)

func placesOf(t plan.Template) (*spot, error) {
	root := &spot{}
	for _, p := range []struct {
		pointer string
		means   meansOf
	}{
		{t.Text, meansText}, {t.Reasoning, meansReasoning}, {t.UsageInput, meansInput}, {t.UsageCached, meansCached},
		{t.UsageOutput, meansOutput}, {t.Finish, meansFinish}, {t.Error, meansError},
	} {
		if p.pointer == "" {
			continue
		}
		names, err := plan.Pointer(p.pointer)
		if err != nil {
			return nil, err
		}
		at := root
		for _, name := range names {
			at = at.step(name)
		}
		at.means = p.means
	}
	return root, nil
}

// step returns the spot of a name within s, which it makes if need be.
func (s *spot) step(name string) *spot {
	for _, w := range s.within {
		if w.name == name {
			return w
		}
	}
	w := &spot{name: name, number: -1}
	if n, err := strconv.Atoi(name); err == nil && strconv.Itoa(n) == name {
		w.number = n
	}
	s.within = append(s.within, w)
	return w
}

// member returns the spot of a key, whose escapes are as they stand; nil for none.
func (s *spot) member(key []byte) *spot {
	for _, w := range s.within {
		if string(key) == w.name {
			return w
		}
	}
	for _, c := range key {
		if c == '\\' {
			return s.escaped(key)
		}
	}
	return nil
}

func (s *spot) escaped(key []byte) *spot {
	var plain string
	if json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &plain) != nil {
		return nil
	}
	for _, w := range s.within {
		if plain == w.name {
			return w
		}
	}
	return nil
}

func (s *spot) element(n int) *spot {
	for _, w := range s.within {
		if w.number == n {
			return w
		}
	}
	return nil
}

func (r *templateReader) heart() string { return r.heartText }

func (r *templateReader) Read(a *Answer, name, data []byte) Meaning {
	r.before = growth{a.counted, a.said, a.thought}
	r.now = r.before
	m := r.eventReader.Read(a, name, data)
	if r.cumulative {
		a.said, a.thought = r.now.said, r.now.thought
	}
	return m
}

func (r *templateReader) object(_ []byte, document bool) {
	r.counted = false
	r.members(r.places)
	e := &r.e
	if r.cumulative && !document {
		r.repeated()
	}
	if e.answer || e.token() {
		e.seen.add(0)
	}
	if r.endless && e.answer {
		e.done.add(0)
	}
}

// repeated takes an event for one of tokens only if the answer has grown with it: in tokens, where they are counted.
func (r *templateReader) repeated() {
	e := &r.e
	e.stateful = true
	e.reasoning = r.now.thought > r.before.thought
	e.text = r.now.said > r.before.said
	if r.counted {
		grown := e.usage.Output > r.before.tokens
		e.reasoning = grown && e.reasoning
		e.text = grown && (e.text || !e.reasoning)
	}
}

func (r *templateReader) members(s *spot) {
	c := &r.c
	for c.more('}') {
		r.visit(s.member(c.key()))
	}
}

// visit reads the value at a spot, nil for one of no interest.
func (r *templateReader) visit(s *spot) {
	c := &r.c
	switch {
	case s == nil:
		c.skip()
	case s.means != meansNothing:
		r.take(s.means)
	case c.enter('{'):
		r.members(s)
	case c.enter('['):
		for n := 0; c.more(']'); n++ {
			r.visit(s.element(n))
		}
	default:
		c.skip()
	}
}

func (r *templateReader) take(m meansOf) {
	c, e := &r.c, &r.e
	switch m {
	case meansText:
		e.answer = c.peek() == '"' || c.peek() == '[' || e.answer
		r.now.said = r.text(&e.text)
	case meansReasoning:
		r.now.thought = r.text(&e.reasoning)
	case meansInput:
		e.usage.Input = c.integer()
	case meansCached:
		r.cached()
	case meansOutput:
		e.usage.Output, r.counted = c.integer(), true
	case meansFinish:
		r.finish()
	case meansError:
		e.fault = c.given() || e.fault
	}
}

// text reads a text and returns its length in bytes of JSON.
func (r *templateReader) text(found *bool) int {
	r.c.peek()
	from := r.c.at
	r.words(found)
	return r.c.at - from
}

// finish reads a finish reason: a text, or anything that is given and stands for one.
func (r *templateReader) finish() {
	c, e := &r.c, &r.e
	var reason []byte
	if c.peek() == '"' {
		reason = c.str()
	} else if from := c.at; c.given() {
		reason = c.b[from:c.at]
	}
	if len(reason) > 0 && string(reason) != "null" {
		e.reason = reason
		e.done.add(0)
	}
}
