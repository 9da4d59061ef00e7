package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Values are what Python would have: nil is None; bool, int64, float64 and string are themselves.
type (
	undefined struct{ what string }
	// markup is text that the template calls safe. What is added to it is escaped, as Python's markupsafe does.
	markup string
	list   struct {
		items []any
		tuple bool
		once  bool // a generator: it can be gone through once, and is true and has no length whatever is in it
	}
	// dict keeps the order in which its keys came.
	dict struct {
		keys   []any
		values map[any]any
	}
	namespace struct{ values map[string]any }
	function  func(a given) any
)

// given are the arguments of a call.
type given struct {
	positional []any
	names      []string
	named      []any
	line       int
}

func newDict() *dict { return &dict{values: map[any]any{}} }

func (d *dict) set(key, value any) {
	if _, ok := d.get(key); !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// get returns the value of a key. What Python cannot hash is no key.
func (d *dict) get(key any) (value any, ok bool) {
	switch key := key.(type) {
	case *list, *dict, *namespace, *passing, function:
		failHere("%s cannot be a key", kindOf(key))
	}
	value, ok = d.values[key]
	return value, ok
}

func (d *dict) items() *list {
	items := make([]any, len(d.keys))
	for i, key := range d.keys {
		items[i] = &list{items: []any{key, d.values[key]}, tuple: true}
	}
	return &list{items: items}
}

// decode reads JSON and keeps the order of keys.
func decode(content []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	value, err := decodeValue(d)
	if err == nil && d.More() {
		err = fmt.Errorf("more than one value")
	}
	return value, err
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		if n, err := token.Int64(); err == nil {
			return n, nil
		}
		if !strings.ContainsAny(token.String(), ".eE") {
			return nil, fmt.Errorf("number %s is out of range", token)
		}
		return token.Float64()
	case json.Delim:
		if token == '[' {
			return decodeList(d)
		}
		return decodeDict(d)
	}
	return token, nil
}

func decodeList(d *json.Decoder) (any, error) {
	l := &list{}
	for d.More() {
		item, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, item)
	}
	_, err := d.Token()
	return l, err
}

func decodeDict(d *json.Decoder) (any, error) {
	object := newDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		object.set(key, value)
	}
	_, err := d.Token()
	return object, err
}

// plain is a value without the mark of markup.
func plain(value any) any {
	if m, ok := value.(markup); ok {
		return string(m)
	}
	return value
}

func truth(value any) bool {
	switch value := plain(value).(type) {
	case nil, undefined:
		return false
	case bool:
		return value
	case int64:
		return value != 0
	case float64:
		return value != 0
	case string:
		return value != ""
	case *list:
		return value.once || len(value.items) > 0
	case *dict:
		return len(value.keys) > 0
	}
	return true
}

// text is what Python's str gives.
func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case markup:
		return string(value)
	case undefined:
		return ""
	}
	return repr(value)
}

// repr is what Python's repr gives.
func repr(value any) string {
	switch value := value.(type) {
	case nil:
		return "None"
	case bool:
		if value {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return reprFloat(value)
	case string:
		return reprString(value)
	case undefined:
		return "Undefined"
	case *list:
		value.refuseOnce("written")
		parts := make([]string, len(value.items))
		for i, item := range value.items {
			parts[i] = repr(item)
		}
		joined := strings.Join(parts, ", ")
		if !value.tuple {
			return "[" + joined + "]"
		}
		if len(parts) == 1 {
			joined += ","
		}
		return "(" + joined + ")"
	case *dict:
		parts := make([]string, len(value.keys))
		for i, key := range value.keys {
			parts[i] = repr(key) + ": " + repr(value.values[key])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	failHere("%T cannot be written", value)
	return ""
}

func reprFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func reprString(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	out := []byte{quote}
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r < ' ' || r == 0x7f || r > 0x7f && r <= 0xff && !unicode.IsPrint(r):
			out = fmt.Appendf(out, `\x%02x`, r)
		case r > 0xff && !unicode.IsPrint(r) && r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		case r > 0xffff && !unicode.IsPrint(r):
			out = fmt.Appendf(out, `\U%08x`, r)
		default:
			out = append(out, string(r)...)
		}
	}
	return string(append(out, quote))
}

// jsonStyle is how json.dumps is asked to write.
type jsonStyle struct {
	indent    string // "" for all on one line
	lines     bool
	item, key string
	sorted    bool
	ascii     bool
}

func (s jsonStyle) append(out []byte, value any, depth int) []byte {
	switch value := value.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, value)
	case int64:
		return strconv.AppendInt(out, value, 10)
	case float64:
		switch {
		case math.IsInf(value, 0):
			return append(out, strings.Replace(reprFloat(value), "inf", "Infinity", 1)...)
		case math.IsNaN(value):
			return append(out, "NaN"...)
		}
		return append(out, reprFloat(value)...)
	case string:
		return s.quote(out, value)
	case markup:
		return s.quote(out, string(value))
	case *list:
		value.refuseOnce("JSON")
		out = append(out, '[')
		for i, item := range value.items {
			out = s.append(s.separate(out, i, depth), item, depth+1)
		}
		return append(s.end(out, len(value.items), depth), ']')
	case *dict:
		keys := value.keys
		if s.sorted {
			keys = slices.Clone(keys)
			slices.SortFunc(keys, order)
		}
		out = append(out, '{')
		for i, key := range keys {
			out = s.quote(s.separate(out, i, depth), jsonKey(key))
			out = s.append(append(out, s.key...), value.values[key], depth+1)
		}
		return append(s.end(out, len(keys), depth), '}')
	}
	failHere("%s is not JSON", kindOf(value))
	return nil
}

func jsonKey(key any) string {
	switch key := key.(type) {
	case string:
		return key
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(key)
	}
	return repr(key)
}

func (s jsonStyle) separate(out []byte, i, depth int) []byte {
	if i > 0 {
		out = append(out, s.item...)
	}
	if s.lines {
		out = append(append(out, '\n'), strings.Repeat(s.indent, depth+1)...)
	}
	return out
}

func (s jsonStyle) end(out []byte, count, depth int) []byte {
	if s.lines && count > 0 {
		out = append(append(out, '\n'), strings.Repeat(s.indent, depth)...)
	}
	return out
}

func (s jsonStyle) quote(out []byte, text string) []byte {
	out = append(out, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\b':
			out = append(out, `\b`...)
		case r == '\f':
			out = append(out, `\f`...)
		case r < ' ' || s.ascii && r >= 0x7f && r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		case s.ascii && r > 0xffff:
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}

// refuseOnce fails for a generator, of which Python would write no more than its address.
func (l *list) refuseOnce(what string) {
	if l.once {
		failHere("a filter's result that is no list yet cannot be %s", what)
	}
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "none"
	case undefined:
		return value.String()
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string, markup:
		return "a string"
	case *list:
		return "a list"
	case *dict:
		return "a mapping"
	case function:
		return "a function"
	}
	return "an object"
}

func (u undefined) String() string {
	if u.what == "" {
		return "something undefined"
	}
	return u.what + ", which is undefined"
}

// number gives a number's value in both forms.
func number(value any) (integer int64, float float64, whole, ok bool) {
	switch value := value.(type) {
	case bool:
		if value {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return value, float64(value), true, true
	case float64:
		return 0, value, false, true
	}
	return 0, 0, false, false
}

func equal(a, b any) bool {
	a, b = plain(a), plain(b)
	ai, af, aw, aok := number(a)
	bi, bf, bw, bok := number(b)
	if aok && bok {
		if aw && bw {
			return ai == bi
		}
		return af == bf
	}
	switch a := a.(type) {
	case *list:
		b, ok := b.(*list)
		return ok && a.tuple == b.tuple && slices.EqualFunc(a.items, b.items, equal)
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for _, key := range a.keys {
			if other, ok := b.values[key]; !ok || !equal(a.values[key], other) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	case function:
		return false
	}
	if _, ok := b.(function); ok {
		return false
	}
	return a == b
}

// order compares two values that Python can order.
func order(a, b any) int {
	a, b = plain(a), plain(b)
	_, af, _, aok := number(a)
	_, bf, _, bok := number(b)
	if aok && bok {
		switch {
		case af < bf:
			return -1
		case af > bf:
			return 1
		}
		return 0
	}
	if as, ok := a.(string); ok {
		if bs, ok := b.(string); ok {
			return strings.Compare(as, bs)
		}
	}
	if al, ok := a.(*list); ok {
		if bl, ok := b.(*list); ok {
			return slices.CompareFunc(al.items, bl.items, order)
		}
	}
	failHere("%s and %s have no order", kindOf(a), kindOf(b))
	return 0
}

// each returns the items of what can be iterated.
func each(value any) []any {
	switch value := plain(value).(type) {
	case *list:
		items := value.items
		if value.once {
			value.items = nil
		}
		return items
	case *dict:
		return value.keys
	case undefined:
		return nil
	case string:
		var items []any
		for _, r := range value {
			items = append(items, string(r))
		}
		return items
	}
	failHere("%s cannot be iterated", kindOf(value))
	return nil
}

func contains(in, value any) bool {
	in, value = plain(in), plain(value)
	switch in := in.(type) {
	case string:
		s, ok := value.(string)
		if !ok {
			failHere("%s cannot be in a string", kindOf(value))
		}
		return strings.Contains(in, s)
	case *dict:
		_, ok := in.get(value)
		return ok
	}
	return slices.ContainsFunc(each(in), func(item any) bool { return equal(item, value) })
}
