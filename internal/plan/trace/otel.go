package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"tare/internal/plan/input"
)

// otel reads traces of GenAI spans, one a file or one a line: {"trace_id", "spans": [{"span_id", "start_time", "end_time",
// "attributes"}]}. Every trace is a session. A call comes after those whose output or tool call its prompt repeats; where
// none is found, after the one that ended last before it. What was found is in the rows: it is not looked for again.
func (r *reading) otel(file *input.File) error { return r.documents(file, r.otelTrace) }

type otelSpan struct {
	ID         string                     `json:"span_id"`
	Name       string                     `json:"name"`
	Start      string                     `json:"start_time"`
	End        string                     `json:"end_time"`
	Attributes map[string]json.RawMessage `json:"attributes"`
	Status     json.RawMessage            `json:"status"`
}

// otelCall is a call with its place in time.
type otelCall struct {
	row        Row
	start, end int64    // nanoseconds since 1970
	toolIDs    []string // tool calls that the reply makes
	answers    []string // tool calls that the prompt answers
}

// maxSpans bounds the search for outputs within prompts, which looks at every pair of spans.
const maxSpans = 4096

func (r *reading) otelTrace(line int, text []byte) error {
	var raw struct {
		ID    string            `json:"trace_id"`
		Spans []json.RawMessage `json:"spans"`
	}
	if !r.unmarshal(line, text, &raw) {
		return nil
	}
	if raw.Spans == nil {
		r.refuse(line, "spans", "is missing", "")
		return nil
	}
	var calls []otelCall
	for i, text := range raw.Spans {
		var span otelSpan
		if i > 0 {
			r.trace.Facts.Read++
		}
		if !r.unmarshal(line, text, &span) {
			continue
		}
		if !span.calls() {
			r.note(line, "spans", "is not a call of a model: it is left out")
			continue
		}
		if call, ok := r.otelCall(line, span); ok {
			calls = append(calls, call)
		}
	}
	if len(calls) > maxSpans {
		r.refuse(line, "spans", "must not be more than 4096 calls", "")
		return nil
	}
	return r.otelKeep(calls, raw.ID)
}

// calls reports whether a span is a call of a text model.
func (s otelSpan) calls() bool {
	switch operation := s.text("gen_ai.operation.name"); operation {
	case "chat", "text_completion", "generate_content":
		return true
	case "":
	default:
		return false
	}
	for _, key := range []string{"gen_ai.input.messages", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"} {
		if _, ok := s.Attributes[key]; ok {
			return true
		}
	}
	return strings.HasPrefix(s.Name, "chat ")
}

// text returns an attribute: a string as it is, any other value as its JSON; empty if there is none.
func (s otelSpan) text(keys ...string) string {
	for _, key := range keys {
		raw, ok := s.Attributes[key]
		if !ok || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
		return string(raw)
	}
	return ""
}

func (r *reading) otelCall(line int, span otelSpan) (call otelCall, ok bool) {
	ok = true
	for _, at := range []struct {
		key, text string
		into      *int64
	}{{"start_time", span.Start, &call.start}, {"end_time", span.End, &call.end}} {
		clock, good := input.Clock(at.text)
		if !good {
			r.refuse(line, at.key, notTime, at.text)
			ok = false
		}
		*at.into = clock
	}
	if ok && call.end < call.start {
		r.refuse(line, "end_time", "must not be before start_time", span.End)
		ok = false
	}
	in, inOK := r.otelCount(line, span, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
	out, outOK := r.otelCount(line, span, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
	most, mostOK := r.otelCount(line, span, "gen_ai.request.max_tokens")
	messages, answers, said := otelMessages(span.text("gen_ai.input.messages"))
	if !said {
		r.refuse(line, "gen_ai.input.messages", "must be a list of messages", span.text("gen_ai.input.messages"))
	}
	if !ok || !inOK || !outOK || !mostOK || !said {
		return call, false
	}
	c := &Call{Messages: messages, MaxTokens: most, Output: span.text("gen_ai.output.text")}
	call.answers = answers
	output, ids, tools := otelOutput(span.text("gen_ai.output.messages"))
	if c.Output == "" {
		c.Output = output
	}
	c.ToolCalls, call.toolIDs = tools, ids
	if tools := span.text("gen_ai.tool.definitions"); json.Valid([]byte(tools)) && strings.HasPrefix(tools, "[") {
		c.Tools = json.RawMessage(tools)
	}
	header, headerOK := r.otelHeader(line, span)
	if !headerOK {
		return call, false
	}
	class := ""
	if r.options.Class != "" {
		class = r.intern(span.text(r.options.Class))
	}
	call.row = Row{
		Class: class, Header: header,
		InputTokens: in, OutputTokens: out, Took: time.Duration(call.end - call.start), Failed: failed(span.Status),
		Model: r.intern(span.text("gen_ai.request.model", "gen_ai.response.model")), Call: c, Line: line,
	}
	return call, true
}

// otelHeader makes lines of a request's header of a span's attributes. One that is not there makes none.
func (r *reading) otelHeader(line int, span otelSpan) (header []byte, ok bool) {
	for _, a := range r.options.Headers {
		value := strings.TrimSpace(span.text(a.Name))
		switch {
		case strings.ContainsFunc(value, unicode.IsControl):
			r.refuse(line, a.Name, "must not have control characters: it is to be a header", value)
			return nil, false
		case value != "":
			header = fmt.Appendf(header, "%s: %s\r\n", a.Header, value)
		}
	}
	return header, true
}

// otelCount reads a count of tokens; one that is not there is 0.
func (r *reading) otelCount(line int, span otelSpan, keys ...string) (int, bool) {
	text := span.text(keys...)
	if text == "" {
		return 0, true
	}
	n, ok := input.Whole(text)
	if !ok {
		r.refuse(line, keys[0], notTokens, text)
	}
	return n, ok
}

func failed(status json.RawMessage) bool {
	return bytes.Contains(bytes.ToUpper(status), []byte("ERROR"))
}

// otelPart is a part of a message as the conventions have it, or of the API that was called.
type otelPart struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`

	Arguments json.RawMessage `json:"arguments"`
	Response  json.RawMessage `json:"response"`
}

type otelMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Parts      []otelPart      `json:"parts"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []toolCall      `json:"tool_calls"`
}

// toolCall is a call of a tool in OpenAI's form.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// calls are those of tools that a message makes, in OpenAI's form; nil for none.
func (m otelMessage) calls() json.RawMessage {
	all := m.ToolCalls
	for _, p := range m.Parts {
		if p.Type == "tool_call" {
			c := toolCall{ID: p.ID}
			c.Function.Name, c.Function.Arguments = p.Name, textOrJSON(p.Arguments)
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		all[i].Type = "function"
	}
	text, _ := json.Marshal(all) // texts always can be
	return text
}

// textOrJSON is a text, or any other value as JSON; empty for none.
func textOrJSON(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// text joins what a message says.
func (m otelMessage) text() string {
	var b strings.Builder
	var text string
	var parts []otelPart
	if json.Unmarshal(m.Content, &text) == nil {
		b.WriteString(text)
	} else if json.Unmarshal(m.Content, &parts) == nil {
		for _, p := range parts {
			b.WriteString(p.Text)
		}
	}
	for _, p := range m.Parts {
		if p.Type == "text" && json.Unmarshal(p.Content, &text) == nil {
			b.WriteString(text)
		}
		b.WriteString(p.Text)
		if p.Type == "tool_call_response" {
			b.WriteString(textOrJSON(p.Response))
		}
	}
	return b.String()
}

// otelMessages reads a prompt, and which tool calls it answers. No text at all is a prompt of no messages.
func otelMessages(text string) (messages []Message, answers []string, ok bool) {
	if text == "" {
		return nil, nil, true
	}
	var list []otelMessage
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil, nil, false
	}
	for _, m := range list {
		said := Message{Role: m.Role, Text: m.text(), Calls: m.calls(), Answers: m.ToolCallID}
		if m.ToolCallID != "" {
			answers = append(answers, m.ToolCallID)
		}
		for _, p := range m.Parts {
			if p.Type == "tool_call_response" && p.ID != "" {
				answers, said.Answers = append(answers, p.ID), p.ID
			}
		}
		messages = append(messages, said)
	}
	return messages, answers, true
}

// otelOutput reads a reply, and the tools that it calls.
func otelOutput(text string) (output string, ids, tools []string) {
	var list []otelMessage
	if json.Unmarshal([]byte(text), &list) != nil {
		return "", nil, nil
	}
	for _, m := range list {
		output += m.text()
		for _, c := range m.ToolCalls {
			ids, tools = append(ids, c.ID), append(tools, c.Function.Name)
		}
		for _, p := range m.Parts {
			if p.Type == "tool_call" {
				ids, tools = append(ids, p.ID), append(tools, p.Name)
			}
		}
	}
	return output, ids, tools
}

// otelKeep puts a trace's calls in order of time and ties each to what it comes after.
func (r *reading) otelKeep(calls []otelCall, id string) error {
	if len(calls) == 0 {
		return nil
	}
	slices.SortStableFunc(calls, func(a, b otelCall) int { return cmp.Compare(a.start, b.start) })
	session := r.session(id)
	index := make([]int, len(calls)) // of the row of each call; -1 for one outside of the window
	turn := r.turns[session]
	for i := range calls {
		call := &calls[i]
		call.row.Session, call.row.Turn = session, turn
		at, kept, err := r.add(call.start, call.row)
		if err != nil {
			return err
		}
		if index[i] = -1; !kept {
			continue
		}
		index[i] = at
		turn++
		r.tie(&r.trace.Rows[at], calls, i, index)
	}
	r.turns[session] = turn
	return nil
}

// leastQuote is the shortest output that is looked for inside of other texts, in bytes: short ones occur by chance.
const leastQuote = 24

// tie finds what call i comes after among the calls before it.
func (r *reading) tie(row *Row, calls []otelCall, i int, index []int) {
	call := calls[i]
	var after []int
	latest := -1
	for j := range calls[:i] {
		before := calls[j]
		if before.end > call.start || index[j] < 0 {
			continue
		}
		if latest < 0 || before.end >= calls[latest].end {
			latest = j
		}
		if call.repeats(before, index[j]) {
			after = append(after, j)
		}
	}
	if after == nil && latest >= 0 {
		after = []int{latest}
	}
	end := int64(0)
	for _, j := range after {
		row.After = append(row.After, index[j])
		end = max(end, calls[j].end)
	}
	if after != nil {
		r.gap(row, time.Duration(call.start-end))
	}
}

// repeats reports whether the prompt has the output of an earlier call, or answers a tool call of it, and marks the message.
func (c otelCall) repeats(before otelCall, row int) (yes bool) {
	output := strings.TrimSpace(before.row.Call.Output)
	for i := range c.row.Call.Messages {
		m := &c.row.Call.Messages[i]
		switch {
		case output == "":
		case m.Role == "assistant" && strings.TrimSpace(m.Text) == output:
			if !m.HasFrom || m.From < row {
				m.From, m.HasFrom = row, true
			}
			yes = true
		case len(output) >= leastQuote && strings.Contains(m.Text, output):
			yes = true
		}
	}
	for _, id := range before.toolIDs {
		yes = yes || id != "" && slices.Contains(c.answers, id)
	}
	return yes
}
