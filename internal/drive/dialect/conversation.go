package dialect

import (
	"encoding/base64"
	"strings"

	"tare/internal/plan"
)

// How each endpoint spells a conversation. A request without messages is a conversation of one message, the user's prompt.

func isSystem(m plan.Message) bool { return m.Role == "system" }

// appendPrompt appends the prompt as a JSON string. A conversation is written in plain form, for servers that complete texts: each
// message as its role, a colon and its text, an empty line between, and at the end the assistant's turn, "assistant:".
func appendPrompt(dst []byte, r *plan.Request) []byte {
	if len(r.Messages) == 0 {
		return appendString(dst, r.Prompt)
	}
	dst = append(dst, '"')
	for i := range r.Messages {
		m := spoken(r.Messages[i])
		dst = append(appendText(dst, m.Role), ": "...)
		dst = append(appendText(dst, m.Text), `\n\n`...)
	}
	return append(dst, `assistant:"`...)
}

func appendPromptOrIDs(dst []byte, r *plan.Request) []byte {
	if len(r.PromptIDs) > 0 {
		return appendIDs(dst, r.PromptIDs)
	}
	return appendPrompt(dst, r)
}

func appendSGLangPrompt(dst []byte, r *plan.Request) []byte {
	if len(r.PromptIDs) > 0 {
		return appendIDs(append(dst, `"input_ids":`...), r.PromptIDs)
	}
	return appendPrompt(append(dst, `"text":`...), r)
}

func appendMessages(dst []byte, r *plan.Request, images bool) []byte {
	if len(r.Messages) == 0 {
		return append(appendString(append(dst, `[{"role":"user","content":`...), r.Prompt), `}]`...)
	}
	dst = append(dst, '[')
	for i := range r.Messages {
		m := &r.Messages[i]
		switch dst = separated(dst, i); {
		case images && len(m.Media) > 0:
			dst = appendOpenAIParts(dst, m)
		case images:
			dst = appendWithTools(dst, m)
		default:
			said := spoken(*m)
			dst = appendMessage(dst, &said)
		}
	}
	return append(dst, ']')
}

// appendWithTools writes a message with the calls of tools that it makes, or the one that it answers, as OpenAI's chat has them.
func appendWithTools(dst []byte, m *plan.Message) []byte {
	dst = appendMessage(dst, m)
	if m.Calls != nil {
		dst = append(append(dst[:len(dst)-1], `,"tool_calls":`...), m.Calls...)
		dst = append(dst, '}')
	}
	if m.Answers != "" {
		dst = append(dst[:len(dst)-1], `,"tool_call_id":`...)
		dst = append(appendString(dst, m.Answers), '}')
	}
	return dst
}

// spoken is a message for endpoints that spell calls of tools otherwise: what a tool answers is said by the user, and calls without a
// text are the text.
func spoken(m plan.Message) plan.Message {
	if m.Role == "tool" {
		m.Role = "user"
	}
	if m.Text == "" && m.Calls != nil {
		m.Text = string(m.Calls)
	}
	return m
}

func appendMessage(dst []byte, m *plan.Message) []byte {
	dst = append(appendString(append(dst, `{"role":`...), m.Role), `,"content":`...)
	return append(appendString(dst, m.Text), '}')
}

// appendOpenAIParts writes a message as parts: its text, if it has any, and what is beside it, before the text or behind.
func appendOpenAIParts(dst []byte, m *plan.Message) []byte {
	dst = append(appendString(append(dst, `{"role":`...), m.Role), `,"content":[`...)
	media := func(first bool) {
		for i := range m.Media {
			if m.Media[i].First == first {
				dst = append(appendOpenAIMedium(dst, &m.Media[i]), ',')
			}
		}
	}
	media(true)
	if m.Text != "" {
		dst = append(appendString(append(dst, `{"type":"text","text":`...), m.Text), `},`...)
	}
	media(false)
	return append(dst[:len(dst)-1], `]}`...) // without the last comma
}

// appendOpenAIMedium writes a picture or a video as a data URL, which is how vLLM and SGLang take videos too, and a sound by its format.
func appendOpenAIMedium(dst []byte, m *plan.Medium) []byte {
	kind, format, _ := strings.Cut(m.MediaType, "/")
	if kind == "audio" {
		dst = append(dst, `{"type":"input_audio","input_audio":{"data":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, m.Bytes), `","format":`...)
		return append(appendString(dst, format), `}}`...)
	}
	dst = append(append(append(dst, `{"type":"`...), kind...), `_url","`...)
	dst = append(append(append(dst, kind...), `_url":{"url":"data:`...), m.MediaType...)
	return append(base64.StdEncoding.AppendEncode(append(dst, `;base64,`...), m.Bytes), `"}}`...)
}

func appendResponsesInput(dst []byte, r *plan.Request) []byte {
	if len(r.Messages) == 0 {
		return appendString(dst, r.Prompt)
	}
	dst = append(dst, '[')
	for i := range r.Messages {
		m := spoken(r.Messages[i])
		dst = appendMessage(separated(dst, i), &m)
	}
	return append(dst, ']')
}

func appendAnthropicMessages(dst []byte, r *plan.Request) []byte {
	if len(r.Messages) == 0 {
		return appendMessages(dst, r, false)
	}
	dst = append(dst, '[')
	n := 0
	for i := range r.Messages {
		if m := spoken(r.Messages[i]); !isSystem(m) {
			dst = appendAnthropicMessage(separated(dst, n), &m)
			n++
		}
	}
	return append(dst, ']')
}

// appendAnthropicMessage puts images before the text, as the server's makers advise.
func appendAnthropicMessage(dst []byte, m *plan.Message) []byte {
	if len(m.Media) == 0 {
		return appendMessage(dst, m)
	}
	dst = append(appendString(append(dst, `{"role":`...), m.Role), `,"content":[`...)
	for i := range m.Media {
		dst = append(separated(dst, i), `{"type":"image","source":{"type":"base64","media_type":`...)
		dst = append(appendString(dst, m.Media[i].MediaType), `,"data":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, m.Media[i].Bytes), `"}}`...)
	}
	if m.Text != "" {
		dst = append(appendString(append(dst, `,{"type":"text","text":`...), m.Text), '}')
	}
	return append(dst, `]}`...)
}

func appendGeminiContents(dst []byte, r *plan.Request) []byte {
	if len(r.Messages) == 0 {
		return append(appendString(append(dst, `[{"role":"user","parts":[{"text":`...), r.Prompt), `}]}]`...)
	}
	dst = append(dst, '[')
	n := 0
	for i := range r.Messages {
		if m := spoken(r.Messages[i]); !isSystem(m) {
			dst = appendGeminiContent(separated(dst, n), &m)
			n++
		}
	}
	return append(dst, ']')
}

// appendGeminiContent calls the assistant what the server calls it, the model.
func appendGeminiContent(dst []byte, m *plan.Message) []byte {
	role := m.Role
	if role == "assistant" {
		role = "model"
	}
	dst = append(appendString(append(dst, `{"role":`...), role), `,"parts":[`...)
	for i := range m.Media {
		dst = append(separated(dst, i), `{"inlineData":{"mimeType":`...)
		dst = append(appendString(dst, m.Media[i].MediaType), `,"data":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, m.Media[i].Bytes), `"}}`...)
	}
	if m.Text != "" || len(m.Media) == 0 {
		dst = append(separated(dst, len(m.Media)), `{"text":`...)
		dst = append(appendString(dst, m.Text), '}')
	}
	return append(dst, `]}`...)
}

// appendSystem appends an array of what the system says, each text in an object that opens as given.
func appendSystem(dst []byte, r *plan.Request, open string) []byte {
	dst = append(dst, '[')
	n := 0
	for i := range r.Messages {
		if m := &r.Messages[i]; isSystem(*m) {
			dst = append(appendString(append(separated(dst, n), open...), m.Text), '}')
			n++
		}
	}
	return append(dst, ']')
}

// separated puts a comma before every element of an array but the first.
func separated(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}
