package sim

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ask is what the body of a completion request asks for.
type ask struct {
	model      []byte // as the body spells it between its quotes; nil when absent
	stream     bool
	usage      bool   // stream_options.include_usage
	continuous bool   // stream_options.continuous_usage_stats
	tokens     int    // output tokens; 0 when absent
	prompt     int    // prompt tokens: words of all text, or the length of an id array
	prompted   bool   // there is a prompt, or there are messages
	marker     []byte // text between the first [[sim: and its ]]; nil when there is none
	salt       uint64 // identity of cache_salt; 0 when absent
	limited    bool   // tokens came from max_completion_tokens, which goes before max_tokens
}

// What a body can have against it, besides not being JSON.
var (
	errNotJSON  = errors.New("the body is not a JSON object")
	errPrompt   = errors.New("prompt must be a string, an array of one string, or an array of token ids")
	errMessages = errors.New("messages must be an array of objects with string or text-part content, and not empty")
	errTokens   = errors.New("max_tokens must be an integer from 1 to 1048576")
	errStream   = errors.New("stream and the fields of stream_options must be booleans")
	errChoices  = errors.New("n must be 1")
	errModel    = errors.New("model must be a string")
	errSalt     = errors.New("cache_salt must be a string, and not empty")
)

// maxDepth is how deep a body may nest.
const maxDepth = 256

// scanner reads one JSON body in one pass without building it. It is reused for its scratch memory.
type scanner struct {
	b       []byte
	i       int
	depth   int
	scratch []byte
	ask     ask
	chain   *chain // takes the tokens of the prompt; nil when nobody asks which they are
}

// scan reads a completion request; chat says whether messages or a prompt are wanted.
func (s *scanner) scan(body []byte, chat bool) (ask, error) {
	s.b, s.i, s.depth, s.ask = body, 0, 0, ask{}
	err := s.object(func(key []byte) error { return s.member(key, chat) })
	if err != nil {
		return ask{}, err
	}
	if s.space(); s.i != len(s.b) {
		return ask{}, errNotJSON
	}
	if s.chain != nil {
		s.chain.part(s.ask.salt)
	}
	if !s.ask.prompted {
		if chat {
			return ask{}, errMessages
		}
		return ask{}, errPrompt
	}
	return s.ask, nil
}

func (s *scanner) member(key []byte, chat bool) error {
	switch string(key) {
	case "model":
		return s.model()
	case "stream":
		return s.boolean(&s.ask.stream)
	case "stream_options":
		return s.options()
	case "max_tokens":
		return s.limit(false)
	case "max_completion_tokens":
		return s.limit(true)
	case "n":
		return s.choices()
	case "cache_salt":
		return s.salt()
	case "prompt":
		if !chat {
			return s.prompt()
		}
	case "messages":
		if chat {
			return s.messages()
		}
	}
	return s.skip()
}

func (s *scanner) model() error {
	if s.null() {
		s.ask.model = nil
		return nil
	}
	if s.peek() != '"' {
		return s.not(errModel)
	}
	raw, err := s.str()
	s.ask.model = raw
	return err
}

func (s *scanner) salt() error {
	if s.null() {
		s.ask.salt = 0
		return nil
	}
	if s.peek() != '"' {
		return s.not(errSalt)
	}
	raw, err := s.str()
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return errSalt
	}
	s.ask.salt = identity(s.decode(raw)) | 1
	return nil
}

// begin makes the prompt empty.
func (s *scanner) begin() {
	s.ask.prompt, s.ask.prompted = 0, false
	if s.chain != nil {
		s.chain.reset(s.chain.size)
	}
}

// id reads a token id of the prompt.
func (s *scanner) id() error {
	raw, err := s.number()
	if err == nil {
		s.ask.prompt++
		if s.chain != nil {
			s.chain.add(^identity(raw)) // an id is no word
		}
	}
	return err
}

func (s *scanner) boolean(to *bool) error {
	switch s.peek() {
	case 't', 'f', 'n':
		*to = s.b[s.i] == 't'
		return s.skip()
	}
	return s.not(errStream)
}

func (s *scanner) options() error {
	s.ask.usage, s.ask.continuous = false, false
	if s.null() {
		return nil
	}
	if s.peek() != '{' {
		return s.not(errStream)
	}
	return s.object(func(key []byte) error {
		switch string(key) {
		case "include_usage":
			return s.boolean(&s.ask.usage)
		case "continuous_usage_stats":
			return s.boolean(&s.ask.continuous)
		}
		return s.skip()
	})
}

func (s *scanner) limit(completion bool) error {
	if s.null() {
		return nil
	}
	n, err := s.integer()
	if err != nil || n < 1 || n > maxTokens {
		return s.orNotJSON(err, errTokens)
	}
	if completion || !s.ask.limited {
		s.ask.tokens, s.ask.limited = n, completion
	}
	return nil
}

func (s *scanner) choices() error {
	if s.null() {
		return nil
	}
	n, err := s.integer()
	if err != nil || n != 1 {
		return s.orNotJSON(err, errChoices)
	}
	return nil
}

func (s *scanner) orNotJSON(err, otherwise error) error {
	if errors.Is(err, errNotJSON) {
		return err
	}
	return otherwise
}

// prompt reads a string, or an array of token ids, or one of these in an array.
func (s *scanner) prompt() error {
	s.begin()
	if s.null() {
		return nil
	}
	s.ask.prompted = true
	switch s.peek() {
	case '"':
		return s.text()
	case '[':
		return s.prompts(true)
	}
	return s.not(errPrompt)
}

// prompts reads an array of numbers, or, when nested is allowed, of exactly one string or array of numbers.
func (s *scanner) prompts(nested bool) error {
	whole, ids := 0, 0
	err := s.array(func() error {
		switch c := s.peek(); {
		case c == '"' && nested:
			whole++
			return s.text()
		case c == '[' && nested:
			whole++
			return s.prompts(false)
		case c == '-' || '0' <= c && c <= '9':
			ids++
			return s.id()
		}
		return s.not(errPrompt)
	})
	if err == nil && (whole > 1 || whole == 1 && ids > 0 || whole+ids == 0) {
		return errPrompt
	}
	return err
}

func (s *scanner) messages() error {
	s.begin()
	if s.null() {
		return nil
	}
	if s.peek() != '[' {
		return s.not(errMessages)
	}
	return s.array(func() error {
		s.ask.prompted = true
		if s.peek() != '{' {
			return s.not(errMessages)
		}
		return s.object(func(key []byte) error {
			if string(key) == "content" {
				return s.content()
			}
			return s.skip()
		})
	})
}

func (s *scanner) content() error {
	switch s.peek() {
	case '"':
		return s.text()
	case 'n':
		return s.skip()
	case '[':
		return s.array(func() error {
			if s.peek() != '{' {
				return s.not(errMessages)
			}
			return s.object(func(key []byte) error {
				if string(key) == "text" && s.peek() == '"' {
					return s.text()
				}
				return s.skip()
			})
		})
	}
	return s.not(errMessages)
}

// text counts the words of a string of the prompt, and looks for a marker in it.
func (s *scanner) text() error {
	raw, err := s.str()
	if err != nil {
		return err
	}
	text := s.decode(raw)
	s.ask.prompt += words(text, s.chain)
	if s.ask.marker == nil {
		s.ask.marker = marker(text)
	}
	return nil
}

func marker(text []byte) []byte {
	_, after, found := bytes.Cut(text, []byte("[[sim:"))
	if !found {
		return nil
	}
	inner, _, found := bytes.Cut(after, []byte("]]"))
	if !found || len(inner) > 64 {
		return nil
	}
	return append([]byte{}, inner...)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek is the first byte of the next value or sign; 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// null steps over a null, if the next value is one.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") == nil }

// not is err when the next value is well formed, of whatever type.
func (s *scanner) not(err error) error {
	if bad := s.skip(); bad != nil {
		return bad
	}
	return err
}

func (s *scanner) object(member func(key []byte) error) error {
	return s.group('{', '}', func() error {
		if s.peek() != '"' {
			return errNotJSON
		}
		raw, err := s.str()
		if err != nil {
			return err
		}
		key := s.decode(raw)
		if s.peek() != ':' {
			return errNotJSON
		}
		s.i++
		return member(key)
	})
}

func (s *scanner) array(element func() error) error { return s.group('[', ']', element) }

func (s *scanner) group(open, end byte, item func() error) error {
	if s.peek() != open || s.depth == maxDepth {
		return errNotJSON
	}
	s.i++
	s.depth++
	for first := true; ; first = false {
		next := s.peek()
		if first && next == end {
			break
		}
		if err := item(); err != nil {
			return err
		}
		if next = s.peek(); next == end {
			break
		}
		if next != ',' {
			return errNotJSON
		}
		s.i++
	}
	s.i++
	s.depth--
	return nil
}

// skip steps over any value.
func (s *scanner) skip() error {
	switch s.peek() {
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, err := s.str()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	_, err := s.number()
	return err
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.b[s.i:], []byte(word)) {
		return errNotJSON
	}
	s.i += len(word)
	return nil
}

// integer reads a number that must be whole and small.
func (s *scanner) integer() (int, error) {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, s.not(errTokens)
	}
	raw, err := s.number()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(raw))
}

func (s *scanner) number() ([]byte, error) {
	start := s.i
	s.accept("-")
	if !s.accept("0") && !s.digits() {
		return nil, errNotJSON
	}
	if s.accept(".") && !s.digits() {
		return nil, errNotJSON
	}
	if s.accept("eE") {
		s.accept("+-")
		if !s.digits() {
			return nil, errNotJSON
		}
	}
	return s.b[start:s.i], nil
}

func (s *scanner) accept(set string) bool {
	if s.i < len(s.b) && bytes.IndexByte([]byte(set), s.b[s.i]) >= 0 {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// str reads a string and returns what stands between its quotes.
func (s *scanner) str() ([]byte, error) {
	s.i++
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], nil
		case c == '\\':
			if !s.escape() {
				return nil, errNotJSON
			}
		case c < ' ':
			return nil, errNotJSON
		default:
			s.i++
		}
	}
	return nil, errNotJSON
}

// escape steps over one escape sequence.
func (s *scanner) escape() bool {
	if s.i+1 >= len(s.b) {
		return false
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return true
	case 'u':
		_, ok := hex4(s.b[s.i+2:])
		s.i += 6
		return ok
	}
	return false
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 + rune(c)
	}
	return r, true
}

// decode resolves the escapes of a string that str has read. The result is valid until the next call.
func (s *scanner) decode(raw []byte) []byte {
	next := bytes.IndexByte(raw, '\\')
	if next < 0 {
		return raw
	}
	out := s.scratch[:0]
	for next >= 0 {
		out = append(out, raw[:next]...)
		raw = raw[next:]
		if raw[1] == 'u' {
			var r rune
			r, raw = decodeUnicode(raw)
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, unescaped(raw[1]))
			raw = raw[2:]
		}
		next = bytes.IndexByte(raw, '\\')
	}
	s.scratch = append(out, raw...)
	return s.scratch
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// decodeUnicode reads a \u escape, or two that are one character.
func decodeUnicode(raw []byte) (rune, []byte) {
	r, _ := hex4(raw[2:])
	raw = raw[6:]
	if !utf16.IsSurrogate(r) {
		return r, raw
	}
	if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		low, _ := hex4(raw[2:])
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, raw[6:]
		}
	}
	return utf8.RuneError, raw
}
