package chat

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexeme is one token of a template.
type lexeme struct {
	kind kind
	text string // of strings and text: what they mean
	line int
}

type kind uint8

const (
	lexText     kind = iota // outside of tags
	lexOpenExpr             // {{
	lexOpenTag              // {%
	lexClose                // }} or %}
	lexName
	lexString
	lexInteger
	lexFloat
	lexOperator
	lexEnd
)

// lexer cuts a template as Jinja does with trim_blocks and lstrip_blocks, which is how servers set it up.
type lexer struct {
	source string
	at     int
	line   int
	out    []lexeme
	trim   bool // the text that follows begins without its white space
	newl   bool // or without one line feed
}

// lex returns the tokens of a template.
func lex(source string) []lexeme {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	l := &lexer{source: strings.TrimSuffix(source, "\n"), line: 1}
	for l.at < len(l.source) {
		l.text()
	}
	l.emit(lexEnd, "")
	return l.out
}

func (l *lexer) emit(k kind, text string) { l.out = append(l.out, lexeme{k, text, l.line}) }

func (l *lexer) skip(n int) {
	l.line += strings.Count(l.source[l.at:l.at+n], "\n")
	l.at += n
}

func (l *lexer) starts(text string) bool { return strings.HasPrefix(l.source[l.at:], text) }

// text reads up to the next tag, and the tag.
func (l *lexer) text() {
	if l.trim {
		l.skip(len(l.source[l.at:]) - len(strings.TrimLeftFunc(l.source[l.at:], unicode.IsSpace)))
	} else if l.newl && l.starts("\n") {
		l.skip(1)
	}
	l.trim, l.newl = false, false
	begin := l.at
	length := len(l.source) - begin
	for _, open := range []string{"{{", "{%", "{#"} {
		if i := strings.Index(l.source[begin:], open); i >= 0 {
			length = min(length, i)
		}
	}
	text := l.source[begin : begin+length]
	tag := l.source[begin+length:]
	sign := ""
	if len(tag) > 2 && (tag[2] == '-' || tag[2] == '+') {
		sign = tag[2:3]
	}
	line := strings.LastIndexByte(text, '\n') + 1
	switch {
	case sign == "-":
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	case tag != "" && sign == "" && tag[1] != '{' && (line > 0 || begin == 0 || l.source[begin-1] == '\n') && strings.TrimFunc(text[line:], unicode.IsSpace) == "":
		text = text[:line]
	}
	if text != "" {
		l.emit(lexText, text)
	}
	l.skip(length)
	if tag != "" {
		l.tag(2 + len(sign))
	}
}

func (l *lexer) tag(open int) {
	kind := l.source[l.at+1]
	if kind == '#' {
		l.comment()
		return
	}
	if kind == '%' && l.raw() {
		return
	}
	l.skip(open)
	close := "}}"
	if kind == '%' {
		l.emit(lexOpenTag, "")
		close = "%}"
	} else {
		l.emit(lexOpenExpr, "")
	}
	depth := 0
	for {
		l.skip(len(l.source[l.at:]) - len(strings.TrimLeftFunc(l.source[l.at:], unicode.IsSpace)))
		switch {
		case l.at == len(l.source):
			fail(l.line, "a tag is not closed")
		case depth == 0 && l.closes(close):
			return
		}
		switch text := l.inner(); text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
	}
}

func (l *lexer) comment() {
	end := strings.Index(l.source[l.at+2:], "#}")
	if end < 0 {
		fail(l.line, "a comment is not closed")
	}
	inside := l.source[l.at+2 : l.at+2+end]
	l.trim, l.newl = strings.HasSuffix(inside, "-"), !strings.HasSuffix(inside, "+")
	l.skip(end + 4)
}

// raw reads {% raw %} … {% endraw %}.
func (l *lexer) raw() bool {
	word := func(at int, name string) int { // the length of a tag of that name, or 0
		tag, _, ok := strings.Cut(l.source[at:], "%}")
		if !ok || !strings.HasPrefix(tag, "{%") || strings.Trim(tag[2:], "-+ \n\t") != name {
			return 0
		}
		return len(tag) + 2
	}
	open := word(l.at, "raw")
	if open == 0 {
		return false
	}
	l.skip(open)
	begin := l.at
	for l.at < len(l.source) {
		if close := word(l.at, "endraw"); close > 0 {
			l.emit(lexText, l.source[begin:l.at])
			l.skip(close)
			l.newl = true
			return true
		}
		l.skip(1)
	}
	fail(l.line, "raw is not closed")
	return false
}

func (l *lexer) closes(close string) bool {
	sign := ""
	if l.starts("-" + close) {
		sign = "-"
	} else if l.starts("+" + close) {
		sign = "+"
	} else if !l.starts(close) {
		return false
	}
	l.skip(len(sign) + 2)
	l.emit(lexClose, "")
	l.trim, l.newl = sign == "-", sign == "" && close == "%}"
	return true
}

// operators are ordered so that longer ones come first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// inner reads one token inside a tag and returns it if it is an operator.
func (l *lexer) inner() string {
	rest := l.source[l.at:]
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\'' || r == '"':
		l.quoted(byte(r))
		return ""
	case r >= '0' && r <= '9':
		l.number()
		return ""
	case r == '_' || unicode.IsLetter(r):
		length := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if length < 0 {
			length = len(rest)
		}
		l.emit(lexName, rest[:length])
		l.skip(length)
		return ""
	}
	for _, operator := range operators {
		if l.starts(operator) {
			l.emit(lexOperator, operator)
			l.skip(len(operator))
			return operator
		}
	}
	fail(l.line, "unexpected %q", r)
	return ""
}

func (l *lexer) number() {
	rest := l.source[l.at:]
	digits := func(from int) int {
		for from < len(rest) && (rest[from] >= '0' && rest[from] <= '9' || rest[from] == '_') {
			from++
		}
		return from
	}
	end, kind := digits(0), lexInteger
	if end+1 < len(rest) && rest[end] == '.' && rest[end+1] >= '0' && rest[end+1] <= '9' {
		end, kind = digits(end+1), lexFloat
	}
	if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
		after := end + 1
		if after < len(rest) && (rest[after] == '-' || rest[after] == '+') {
			after++
		}
		if e := digits(after); e > after {
			end, kind = e, lexFloat
		}
	}
	l.emit(kind, strings.ReplaceAll(rest[:end], "_", ""))
	l.skip(end)
}

// quoted reads a string with Python's escapes.
func (l *lexer) quoted(quote byte) {
	var text strings.Builder
	for at := l.at + 1; at < len(l.source); {
		switch c := l.source[at]; {
		case c == quote:
			l.emit(lexString, text.String())
			l.skip(at + 1 - l.at)
			return
		case c == '\\' && at+1 < len(l.source):
			at += l.escape(&text, l.source[at:])
		default:
			text.WriteByte(c)
			at++
		}
	}
	fail(l.line, "a string is not closed")
}

// escape writes what an escape means and returns its length.
func (l *lexer) escape(text *strings.Builder, rest string) int {
	simple := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", '\n': ""}
	if meaning, ok := simple[rest[1]]; ok {
		text.WriteString(meaning)
		return 2
	}
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]; digits > 0 && len(rest) >= 2+digits {
		if value, err := strconv.ParseUint(rest[2:2+digits], 16, 32); err == nil && value <= unicode.MaxRune {
			text.WriteRune(rune(value))
			return 2 + digits
		}
		fail(l.line, "escape %q is not understood", rest[:2+digits])
	}
	if rest[1] >= '0' && rest[1] <= '7' {
		end := 1
		for end < len(rest) && end < 4 && rest[end] >= '0' && rest[end] <= '7' {
			end++
		}
		value, _ := strconv.ParseUint(rest[1:end], 8, 32)
		text.WriteRune(rune(value))
		return end
	}
	text.WriteByte('\\')
	return 1
}
