package dataset

import (
	"bytes"
	"encoding/json"
	"strings"

	"tare/internal/plan/input"
)

// notJSON says what is wrong with a text that should be a JSON object.
func notJSON(text []byte, err error) *input.Fault {
	if err != nil && !json.Valid(text) {
		return &input.Fault{Reason: "is not valid JSON", Value: string(text)}
	}
	return &input.Fault{Reason: "must be a JSON object", Value: string(text)}
}

// parseShareGPT reads {"id", "conversations": [{"from", "value"}]}, or "conversation". All turns are kept, the reply that
// ends them too: a cut is a matter of Rules.
func parseShareGPT(text []byte) (Row, *input.Fault) {
	var row struct {
		ID            json.RawMessage `json:"id"`
		Conversations json.RawMessage `json:"conversations"`
		Conversation  json.RawMessage `json:"conversation"`
		Tools         json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(text, &row); err != nil {
		return Row{}, notJSON(text, err)
	}
	key, list := "conversations", row.Conversations
	if list == nil {
		key, list = "conversation", row.Conversation
	}
	if list == nil {
		return Row{}, &input.Fault{Key: "conversations", Reason: "is missing"}
	}
	turns, fault := parseTurns(key, list)
	if fault != nil {
		return Row{}, fault
	}
	tools, fault := parseTools("tools", row.Tools)
	if fault != nil {
		return Row{}, fault
	}
	id, _ := object{"id": row.ID}.text("id")
	return Row{ID: id, Turns: turns, Tools: tools}, nil
}

// parseTurns reads a list of messages: {role, content} or {from, value}.
func parseTurns(key string, list json.RawMessage) ([]Turn, *input.Fault) {
	var raw []struct {
		From    *string         `json:"from"`
		Value   json.RawMessage `json:"value"`
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(list, &raw); err != nil || raw == nil {
		return nil, &input.Fault{Key: key, Reason: "must be a list of turns", Value: string(list)}
	}
	if len(raw) == 0 {
		return nil, &input.Fault{Key: key, Reason: "has no turns"}
	}
	turns := make([]Turn, len(raw))
	for i, r := range raw {
		from, value := r.From, r.Value
		if from == nil {
			from = r.Role
		}
		if value == nil {
			value = r.Content
		}
		if from == nil {
			return nil, &input.Fault{Key: key, Reason: "has a turn of no role"}
		}
		said, ok := content(value)
		if !ok {
			return nil, &input.Fault{Key: key, Reason: "has a turn whose text is no text", Value: string(value)}
		}
		turns[i] = Turn{Role: role(*from), Text: said}
	}
	return turns, nil
}

// content reads a message's text: a string, null (of a message that only calls tools), or parts of which those of type
// text count.
func content(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return "", true
	}
	if len(raw) == 0 {
		return "", false
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), true
}

func parseTools(key string, raw json.RawMessage) (json.RawMessage, *input.Fault) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var list []json.RawMessage
	if text := ""; json.Unmarshal(raw, &text) == nil { // a list that was put into a string
		if text == "" {
			return nil, nil
		}
		raw = json.RawMessage(text)
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, &input.Fault{Key: key, Reason: "must be a list of tool definitions", Value: string(raw)}
	}
	return bytes.Clone(raw), nil
}

// row reads an object by the columns of m.
func (m mapping) row(o object) (Row, *input.Fault) {
	var row Row
	row.ID, _ = o.text(m.columns.ID)
	if fault := m.turns(o, &row); fault != nil {
		return Row{}, fault
	}
	if text, ok := o.text(m.columns.Output); ok {
		row.Output, row.HasOutput = text, true
	}
	if text, ok := o.text(m.columns.OutputTokens); ok {
		n, ok := input.Whole(text)
		if !ok {
			return Row{}, &input.Fault{Key: m.columns.OutputTokens, Reason: "must be a whole number of tokens", Value: text}
		}
		row.OutputTokens = n
	}
	raw, _ := o.at(m.columns.Tools)
	tools, fault := parseTools(m.columns.Tools, raw)
	if fault != nil {
		return Row{}, fault
	}
	row.Tools = tools
	return row, nil
}

// turns fills in what is said: the template, else the messages, else the prompt, behind the system text if there is one.
func (m mapping) turns(o object, row *Row) *input.Fault {
	if text, ok := o.text(m.columns.System); ok && text != "" {
		row.Turns = append(row.Turns, Turn{Role: System, Text: text})
	}
	if len(m.template) > 0 {
		text, missing := m.template.render(o.text)
		if missing != "" {
			return &input.Fault{Key: missing, Reason: "is missing"}
		}
		row.Turns = append(row.Turns, Turn{Role: User, Text: text})
		return nil
	}
	if list, ok := o.at(m.columns.Messages); ok {
		turns, fault := parseTurns(m.columns.Messages, list)
		if fault != nil {
			return fault
		}
		row.Turns = append(row.Turns, turns...)
		return nil
	}
	text, ok := o.text(m.columns.Prompt)
	if !ok || text == "" {
		return &input.Fault{Key: m.promptKey(), Reason: "is missing"}
	}
	row.Turns = append(row.Turns, Turn{Role: User, Text: text})
	return nil
}

func (m mapping) promptKey() string {
	if m.columns.Prompt != "" {
		return m.columns.Prompt
	}
	return m.columns.Messages
}

// parseBatch reads a line of an OpenAI batch.
func parseBatch(text []byte) (Row, *input.Fault) {
	var line struct {
		CustomID *string         `json:"custom_id"`
		Method   string          `json:"method"`
		URL      string          `json:"url"`
		Body     json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return Row{}, notJSON(text, err)
	}
	switch {
	case line.CustomID == nil || *line.CustomID == "":
		return Row{}, &input.Fault{Key: "custom_id", Reason: "is missing"}
	case line.Method != "POST":
		return Row{}, &input.Fault{Key: "method", Reason: "must be POST", Value: line.Method}
	case !strings.HasPrefix(line.URL, "/"):
		return Row{}, &input.Fault{Key: "url", Reason: "must be a path that begins with /", Value: line.URL}
	case len(line.Body) == 0:
		return Row{}, &input.Fault{Key: "body", Reason: "is missing"}
	}
	row, fault := parseBody(line.Body)
	if fault != nil {
		if fault.Key == "" {
			fault.Key = "body"
		}
		return Row{}, fault
	}
	row.ID, row.Method, row.URL = *line.CustomID, line.Method, line.URL
	return row, nil
}

// parseBody reads a request body, which is kept as it is, and what it says and asks for.
func parseBody(text []byte) (Row, *input.Fault) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
		Prompt   json.RawMessage `json:"prompt"`
		Input    json.RawMessage `json:"input"`
		Tools    json.RawMessage `json:"tools"`

		MaxTokens           int `json:"max_tokens"`
		MaxCompletionTokens int `json:"max_completion_tokens"`
		MaxOutputTokens     int `json:"max_output_tokens"`
	}
	if err := json.Unmarshal(text, &body); err != nil || bytes.HasPrefix(bytes.TrimSpace(text), []byte("null")) {
		return Row{}, notJSON(text, err)
	}
	row := Row{Body: bytes.Clone(text), OutputTokens: max(body.MaxTokens, body.MaxCompletionTokens, body.MaxOutputTokens, 0)}
	var fault *input.Fault
	switch {
	case body.Messages != nil:
		row.Turns, fault = parseTurns("messages", body.Messages)
	case body.Prompt != nil:
		row.Turns = textTurn(body.Prompt)
	case body.Input != nil:
		if row.Turns = textTurn(body.Input); row.Turns == nil {
			row.Turns, _ = parseTurns("input", body.Input)
		}
	default:
		fault = &input.Fault{Reason: "has none of messages, prompt and input"}
	}
	if fault == nil {
		row.Tools, fault = parseTools("tools", body.Tools)
	}
	return row, fault
}

// textTurn reads a prompt that is a string; token ids and lists have no turns, their body is sent all the same.
func textTurn(raw json.RawMessage) []Turn {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil
	}
	return []Turn{{Role: User, Text: text}}
}
