package dialect

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"tare/internal/plan"
)

// form writes the bodies of one endpoint's requests: text that is the same in all of them and, between, what a request
// says. It is made once, and written without allocation but for room.
type form struct {
	parts []part
	model string // JSON string of the target's model
}

// part is a text and the value behind it.
type part struct {
	text  string
	value value
}

// value names something that a request says. Some may be absent; then the text before it is left out too.
type value uint8

const (
	noValue           value = iota // the text alone
	modelName                      // the request's model, or else the target's
	otherModel                     // the request's model; absent without one
	promptText                     // the prompt, or a conversation in plain form
	promptOrIDs                    // token ids, or else as promptText
	sglangPrompt                   // the member input_ids, or else text
	openAIMessages                 // a conversation as an array of messages; a prompt is one of the user's
	textMessages                   // the same without images
	responsesInput                 // the prompt, or a conversation as an array of messages
	anthropicMessages              // a conversation without what the system says
	anthropicSystem                // what the system says, as text blocks; absent when it says nothing
	geminiContents                 // a conversation without what the system says
	geminiSystem                   // what the system says, as parts; absent when it says nothing
	tokenIDs                       // token ids as an array
	outputTokens                   // asked length of the answer; absent when there is none
	openAITools                    // definitions of tools as they are given; absent without any
	responsesTools                 // each of them without its envelope
	anthropicTools                 // each of them as a name, a description and an input_schema
	cacheSalt                      // absent without one
	anyLength                      // asked length of the answer, be it 0
	toolsOrNull                    // as openAITools, null without any
	saltOrNull                     // null without one
	priority                       // absent where no class has one
	anyPriority                    // 0 there
)

// AppendBody writes the body of one request. An asked length of 0 sets the server no limit.
func (f *form) AppendBody(dst []byte, r *plan.Request) []byte {
	for i := range f.parts {
		if p := &f.parts[i]; p.value.given(r) {
			dst = f.appendValue(append(dst, p.text...), p.value, r)
		}
	}
	return dst
}

// given reports whether the request says anything for a value that may be absent.
func (v value) given(r *plan.Request) bool {
	switch v {
	case otherModel:
		return r.Model != ""
	case anthropicSystem, geminiSystem:
		return slices.ContainsFunc(r.Messages, isSystem)
	case outputTokens:
		return r.OutputTokens > 0
	case openAITools, responsesTools, anthropicTools:
		return len(r.Tools) > 0
	case cacheSalt:
		return r.CacheSalt != ""
	case priority:
		return r.Prioritized
	}
	return true
}

func (f *form) appendValue(dst []byte, v value, r *plan.Request) []byte {
	switch v {
	case modelName:
		if r.Model == "" {
			return append(dst, f.model...)
		}
		return appendString(dst, r.Model)
	case otherModel:
		return appendString(dst, r.Model)
	case promptText:
		return appendPrompt(dst, r)
	case promptOrIDs:
		return appendPromptOrIDs(dst, r)
	case sglangPrompt:
		return appendSGLangPrompt(dst, r)
	case openAIMessages:
		return appendMessages(dst, r, true)
	case textMessages:
		return appendMessages(dst, r, false)
	case responsesInput:
		return appendResponsesInput(dst, r)
	case anthropicMessages:
		return appendAnthropicMessages(dst, r)
	case anthropicSystem:
		return appendSystem(dst, r, `{"type":"text","text":`)
	case geminiContents:
		return appendGeminiContents(dst, r)
	case geminiSystem:
		return append(appendSystem(dst, r, `{"text":`), '}')
	case tokenIDs:
		return appendIDs(dst, r.PromptIDs)
	case outputTokens, anyLength:
		return strconv.AppendInt(dst, int64(r.OutputTokens), 10)
	case openAITools:
		return append(dst, r.Tools...)
	case toolsOrNull:
		if len(r.Tools) == 0 {
			return append(dst, "null"...)
		}
		return append(dst, r.Tools...)
	case responsesTools:
		return appendTools(dst, r.Tools, appendResponsesTool)
	case anthropicTools:
		return appendTools(dst, r.Tools, appendAnthropicTool)
	case saltOrNull:
		if r.CacheSalt == "" {
			return append(dst, "null"...)
		}
		return appendString(dst, r.CacheSalt)
	case cacheSalt:
		return appendString(dst, r.CacheSalt)
	case priority, anyPriority:
		return strconv.AppendInt(dst, int64(r.Priority), 10)
	}
	return dst
}

func appendIDs(dst []byte, ids []uint32) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(id), 10)
	}
	return append(dst, ']')
}

// sampling writes temperature and top_p, the same in nearly every server's words.
func sampling(o Options) string {
	b := strconv.AppendFloat([]byte(`"temperature":`), o.Temperature, 'f', -1, 64)
	return string(strconv.AppendFloat(append(b, `,"top_p":`...), o.TopP, 'f', -1, 64))
}

// seeding writes the seed under the name that the server gives it, with a comma before it; nothing if there is none.
func seeding(o Options, name string) string {
	if o.Seed == 0 {
		return ""
	}
	return `,"` + name + `":` + strconv.FormatUint(o.Seed, 10)
}

// ignoringEOS asks to go on past an end of sequence, with a comma before it, if that is wished.
func ignoringEOS(o Options) string {
	if !o.IgnoreEOS {
		return ""
	}
	return `,"ignore_eos":true`
}

// fixed is the asked length once more as the least one, if answers of a fixed length are wished.
func fixed(o Options, text string) part {
	if !o.IgnoreEOS {
		return part{}
	}
	return part{text, outputTokens}
}

func truth(b bool) string { return strconv.FormatBool(b) }

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as servers refuse them.
func appendString(dst []byte, s string) []byte {
	return append(appendText(append(dst, '"'), s), '"')
}

// appendText appends what stands between the quotes of s as a JSON string.
func appendText(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if escapes[c] == 0 {
				i++
				continue
			}
			dst = appendEscape(append(dst, s[from:i]...), c)
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
			from = i + 1
		}
		i += n
	}
	return append(dst, s[from:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	if e := escapes[c]; e != 'u' {
		return append(dst, '\\', e)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// escapes has the letter of an ASCII byte's escape, 0 for a byte that stands for itself.
var escapes = [utf8.RuneSelf]byte{
	0: 'u', 1: 'u', 2: 'u', 3: 'u', 4: 'u', 5: 'u', 6: 'u', 7: 'u', '\b': 'b', '\t': 't', '\n': 'n', 11: 'u', '\f': 'f', '\r': 'r', 14: 'u', 15: 'u',
	16: 'u', 17: 'u', 18: 'u', 19: 'u', 20: 'u', 21: 'u', 22: 'u', 23: 'u', 24: 'u', 25: 'u', 26: 'u', 27: 'u', 28: 'u', 29: 'u', 30: 'u', 31: 'u',
	'"': '"', '\\': '\\',
}
