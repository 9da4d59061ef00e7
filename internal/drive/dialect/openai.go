package dialect

import (
	"strconv"
	"unicode/utf8"

	"tare/internal/plan"
)

// openAI is the dialect of OpenAI's chat and completions endpoints, which most servers speak.
type openAI struct {
	path     string
	streamed bool
	secrets  []string

	head  string // up to the prompt
	shut  string // closes what holds the prompt
	limit string // key of the asked length
	tail  string // options
	floor string // key of the asked length once more, as a minimum; empty for none
}

func newOpenAI(o Options, chat bool) *openAI {
	d := &openAI{streamed: o.Stream, secrets: o.Secrets, tail: options(o)}
	head := appendString([]byte(`{"model":`), o.Model)
	if chat {
		d.path = "/v1/chat/completions"
		d.head, d.shut = string(head)+`,"messages":[{"role":"user","content":`, `}]`
	} else {
		d.path = "/v1/completions"
		d.head = string(head) + `,"prompt":`
	}
	d.limit = `,"max_tokens":`
	if chat && o.MaxCompletionTokens {
		d.limit = `,"max_completion_tokens":`
	}
	if o.IgnoreEOS {
		d.floor = `,"min_tokens":`
	}
	return d
}

// options writes the part of a body that is the same for every request.
func options(o Options) string {
	b := strconv.AppendFloat([]byte(`,"temperature":`), o.Temperature, 'f', -1, 64)
	b = strconv.AppendFloat(append(b, `,"top_p":`...), o.TopP, 'f', -1, 64)
	b = strconv.AppendBool(append(b, `,"stream":`...), o.Stream)
	switch {
	case o.Stream && o.ContinuousUsage:
		b = append(b, `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`...)
	case o.Stream:
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if o.Seed != 0 {
		b = strconv.AppendUint(append(b, `,"seed":`...), o.Seed, 10)
	}
	if o.IgnoreEOS {
		b = append(b, `,"ignore_eos":true`...)
	}
	return string(b)
}

func (d *openAI) Path() string { return d.path }

func (d *openAI) NewReader() Reader {
	r := &openAIReader{eventReader{streamed: d.streamed, secrets: d.secrets}}
	r.grammar = r
	return r
}

// AppendBody writes the body of one request. An asked length of 0 sets the server no limit.
func (d *openAI) AppendBody(dst []byte, r *plan.Request) []byte {
	dst = appendString(append(dst, d.head...), r.Prompt)
	dst = append(dst, d.shut...)
	if r.OutputTokens > 0 {
		dst = strconv.AppendInt(append(dst, d.limit...), int64(r.OutputTokens), 10)
	}
	dst = append(dst, d.tail...)
	if r.OutputTokens > 0 && d.floor != "" {
		dst = strconv.AppendInt(append(dst, d.floor...), int64(r.OutputTokens), 10)
	}
	return append(dst, '}')
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as servers refuse them.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
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
	return append(append(dst, s[from:]...), '"')
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
