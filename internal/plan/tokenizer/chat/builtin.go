package chat

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// globals are the functions every template has. strftime_now stands with the conversation, since it asks for its time.
var globals = map[string]any{
	"raise_exception": function(func(a given) any {
		failHere("the template refuses: %s", text(a.at(0, "message", "")))
		return nil
	}),
	"namespace": function(func(a given) any {
		n := &namespace{map[string]any{}}
		for _, from := range a.positional {
			if d, ok := from.(*dict); ok {
				for key, value := range d.values {
					n.values[text(key)] = value
				}
			}
		}
		for i, name := range a.names {
			n.values[name] = a.named[i]
		}
		return n
	}),
	"dict": function(func(a given) any {
		d := newDict()
		for _, from := range a.positional {
			if from, ok := from.(*dict); ok {
				for _, key := range from.keys {
					d.set(key, from.values[key])
				}
			}
		}
		for i, name := range a.names {
			d.set(name, a.named[i])
		}
		return d
	}),
	"range": function(rangeOf),
}

func rangeOf(a given) any {
	from, to, by := int64(0), int64(0), int64(1)
	switch len(a.positional) {
	case 1:
		to = a.integer(0, "stop", 0)
	case 2, 3:
		from, to, by = a.integer(0, "start", 0), a.integer(1, "stop", 0), a.integer(2, "step", 1)
	}
	if by == 0 || len(a.positional) == 0 {
		failHere("range: no stop, or a step of 0")
	}
	l := &list{}
	for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
		if len(l.items) == mostRange {
			failHere("range: more than %d numbers", mostRange)
		}
		l.items = append(l.items, i)
	}
	return l
}

// at returns an argument by place or name.
func (a given) at(place int, name string, otherwise any) any {
	if place < len(a.positional) {
		return plain(a.positional[place])
	}
	if i := slices.Index(a.names, name); i >= 0 {
		return plain(a.named[i])
	}
	return otherwise
}

func (a given) integer(place int, name string, otherwise int64) int64 {
	i, _, whole, ok := number(a.at(place, name, otherwise))
	if !ok || !whole {
		failHere("argument %q is not a whole number", name)
	}
	return i
}

func (a given) string(place int, name, otherwise string) string {
	s, ok := a.at(place, name, otherwise).(string)
	if !ok {
		failHere("argument %q is not a string", name)
	}
	return s
}

// filters are the names of the filters; applyFilter is what they do.
var filters = strings.Fields("tojson from_json length count trim string default d join items upper lower safe dictsort list replace selectattr " +
	"rejectattr select reject indent map first last unique sort int float abs capitalize title reverse round escape e sum min max format attr")

func knownFilter(name string) bool { return slices.Contains(filters, name) }

func applyFilter(name string, value any, a given, r *renderer) any {
	if m, ok := value.(markup); ok {
		return markupFilter(name, m, a, r)
	}
	switch name {
	case "default", "d":
		_, missing := value.(undefined)
		if missing || truth(a.at(1, "boolean", false)) && !truth(value) {
			return a.at(0, "default_value", "")
		}
		return value
	case "tojson":
		return toJSON(value, a)
	case "string":
		return text(value)
	case "safe":
		return markup(text(value))
	case "escape", "e":
		return escaped(value)
	case "from_json":
		return fromJSON(text(value))
	case "trim":
		return trimmed(text(value), a.at(0, "chars", nil), true, true)
	case "upper":
		return strings.ToUpper(text(value))
	case "lower":
		return strings.ToLower(text(value))
	case "capitalize":
		return capitalized(text(value))
	case "title":
		return titled(text(value), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("-({[<", r) })
	case "replace":
		return replaced(text(value), text(a.at(0, "old", "")), text(a.at(1, "new", "")), a.at(2, "count", nil))
	case "indent":
		return indented(text(value), a)
	case "format":
		return percent(text(value), &list{items: a.positional, tuple: true})
	case "int", "float", "abs", "round":
		return numberFilter(name, value, a)
	case "attr":
		return getAttribute(value, a.string(0, "name", ""))
	}
	return applyListFilter(name, value, a, r)
}

// markupFilter applies a filter to text that is marked as safe. Some keep the mark.
func markupFilter(name string, m markup, a given, r *renderer) any {
	switch name {
	case "safe", "escape", "e":
		return m
	case "string", "trim", "upper", "lower", "indent", "capitalize", "title":
		return markup(text(applyFilter(name, string(m), a, r)))
	case "format", "replace", "attr":
		failHere("%s of text that is marked as safe is not supported", name)
	}
	return applyFilter(name, string(m), a, r)
}

func fromJSON(content string) any {
	value, err := decode([]byte(content))
	if err != nil {
		failHere("from_json: %v", err)
	}
	return value
}

func applyListFilter(name string, value any, a given, r *renderer) any {
	switch name {
	case "length", "count":
		return lengthOf(value)
	case "join":
		return joined(each(attributed(value, a.at(1, "attribute", nil))), text(a.at(0, "d", "")))
	case "items":
		switch value := value.(type) {
		case *dict:
			items := value.items()
			items.once = true
			return items
		case undefined:
			return &list{once: true}
		}
		failHere("items: %s is not a mapping", kindOf(value))
	case "list":
		return &list{items: slices.Clone(each(value))}
	case "reverse":
		if s, ok := value.(string); ok {
			return getSlice(s, nil, nil, int64(-1))
		}
		items := slices.Clone(each(value))
		slices.Reverse(items)
		return &list{items: items, once: true}
	case "first", "last":
		items := each(value)
		if len(items) == 0 {
			return undefined{"the " + name + " item of an empty list"}
		}
		if name == "first" {
			return items[0]
		}
		return items[len(items)-1]
	case "dictsort":
		return dictSorted(value, a)
	case "sort":
		return sorted(value, a)
	case "unique":
		return unique(value, a)
	case "min", "max":
		return extreme(name, value, a)
	case "sum":
		var sum any = a.at(1, "start", int64(0))
		for _, item := range each(attributed(value, a.at(0, "attribute", nil))) {
			sum = arithmetic("+", sum, item)
		}
		return sum
	case "map":
		return mapped(value, a, r)
	case "select", "reject", "selectattr", "rejectattr":
		return selected(name, value, a)
	}
	failHere("filter %q is not supported", name)
	return nil
}

func toJSON(value any, a given) any {
	style := jsonStyle{item: ", ", key: ": ", sorted: truth(a.at(3, "sort_keys", false)), ascii: truth(a.at(0, "ensure_ascii", false))}
	switch indent := a.at(1, "indent", nil).(type) {
	case int64:
		style.lines, style.indent, style.item = true, strings.Repeat(" ", int(min(max(indent, 0), 64))), ","
	case string:
		style.lines, style.indent, style.item = true, indent, ","
	}
	if separators, ok := a.at(2, "separators", nil).(*list); ok && len(separators.items) == 2 {
		style.item, style.key = text(separators.items[0]), text(separators.items[1])
	}
	return string(style.append(nil, value, 0))
}

func trimmed(s string, characters any, left, right bool) string {
	cut := unicode.IsSpace
	if set, ok := characters.(string); ok {
		cut = func(r rune) bool { return strings.ContainsRune(set, r) }
	} else {
		cut = func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f } // as Python has it
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func capitalized(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return strings.ToUpper(string(r)) + strings.ToLower(s[size:])
}

// titled begins each word with a capital letter; breaks says what words begin behind.
func titled(s string, breaks func(rune) bool) string {
	var out strings.Builder
	begin := true
	for _, r := range s {
		if begin {
			out.WriteString(strings.ToUpper(string(r)))
		} else {
			out.WriteString(strings.ToLower(string(r)))
		}
		begin = breaks(r)
	}
	return out.String()
}

func replaced(s, old, new string, count any) string {
	if count == nil {
		return strings.ReplaceAll(s, old, new)
	}
	n, _, _, _ := number(count)
	return strings.Replace(s, old, new, int(n))
}

func indented(s string, a given) string {
	by, ok := a.at(0, "width", int64(4)).(string)
	if !ok {
		by = strings.Repeat(" ", int(min(max(a.integer(0, "width", 4), 0), 1000)))
	}
	first, blank := truth(a.at(1, "first", false)), truth(a.at(2, "blank", false))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if (i > 0 || first) && (line != "" || blank || i == 0) {
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n")
}

func numberFilter(name string, value any, a given) any {
	integer, float, whole, ok := number(value)
	switch name {
	case "int":
		if s, isText := value.(string); isText {
			base := int(a.integer(1, "base", 10))
			if n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), base, 64); err == nil {
				return n
			}
			f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			float, ok = f, err == nil
		}
		switch {
		case !ok || math.IsNaN(float) || math.IsInf(float, 0):
			return a.at(0, "default", int64(0))
		case whole:
			return integer
		}
		return int64(float)
	case "float":
		if s, isText := value.(string); isText {
			f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			float, ok = f, err == nil
		}
		if !ok {
			return a.at(0, "default", float64(0))
		}
		return float
	}
	if !ok {
		failHere("%s: %s is not a number", name, kindOf(value))
	}
	if name == "abs" {
		if whole {
			return max(integer, -integer)
		}
		return math.Abs(float)
	}
	if a.string(1, "method", "common") != "common" {
		failHere("round: method %q is not supported", a.string(1, "method", ""))
	}
	if whole {
		return float
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(float, 'f', int(min(max(a.integer(0, "precision", 0), 0), 30)), 64), 64)
	if err != nil {
		failHere("round: %v", err)
	}
	return rounded
}

func lengthOf(value any) any {
	switch value := value.(type) {
	case string:
		return int64(utf8.RuneCountInString(value))
	case *list:
		value.refuseOnce("counted")
		return int64(len(value.items))
	case *dict:
		return int64(len(value.keys))
	case undefined:
		return int64(0)
	}
	failHere("%s has no length", kindOf(value))
	return nil
}

func joined(items []any, by string) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = text(item)
	}
	return strings.Join(parts, by)
}

// attributed returns the items' attribute, or the items if none is named.
func attributed(value, attribute any) any {
	if attribute == nil {
		return value
	}
	l := &list{}
	for _, item := range each(value) {
		l.items = append(l.items, path(item, attribute))
	}
	return l
}

// path follows "a.b.0" from an item.
func path(item, attribute any) any {
	if _, ok := attribute.(string); !ok {
		return getItem(item, attribute)
	}
	for part := range strings.SplitSeq(attribute.(string), ".") {
		var key any = part
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = n
		}
		item = getItem(item, key)
	}
	return item
}

// folded is a value as sorting compares it.
func folded(value any, sensitive bool) any {
	if s, ok := value.(string); ok && !sensitive {
		return strings.ToLower(s)
	}
	return value
}

func dictSorted(value any, a given) any {
	d, ok := value.(*dict)
	if !ok {
		failHere("dictsort: %s is not a mapping", kindOf(value))
	}
	sensitive, by := truth(a.at(0, "case_sensitive", false)), 0
	if a.string(1, "by", "key") == "value" {
		by = 1
	}
	return sortedBy(d.items().items, truth(a.at(2, "reverse", false)), func(item any) any { return folded(item.(*list).items[by], sensitive) })
}

func sorted(value any, a given) any {
	sensitive, attribute := truth(a.at(1, "case_sensitive", false)), a.at(2, "attribute", nil)
	return sortedBy(each(value), truth(a.at(0, "reverse", false)), func(item any) any {
		if attribute != nil {
			item = path(item, attribute)
		}
		return folded(item, sensitive)
	})
}

func sortedBy(items []any, reverse bool, key func(any) any) any {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b any) int {
		if reverse {
			a, b = b, a
		}
		return order(key(a), key(b))
	})
	return &list{items: items}
}

func unique(value any, a given) any {
	sensitive, attribute := truth(a.at(0, "case_sensitive", false)), a.at(1, "attribute", nil)
	var seen []any
	l := &list{once: true}
	for _, item := range each(value) {
		key := item
		if attribute != nil {
			key = path(item, attribute)
		}
		if key = folded(key, sensitive); !slices.ContainsFunc(seen, func(other any) bool { return equal(key, other) }) {
			seen = append(seen, key)
			l.items = append(l.items, item)
		}
	}
	return l
}

func extreme(name string, value any, a given) any {
	sensitive, attribute := truth(a.at(0, "case_sensitive", false)), a.at(1, "attribute", nil)
	key := func(item any) any {
		if attribute != nil {
			item = path(item, attribute)
		}
		return folded(item, sensitive)
	}
	var best any = undefined{"the " + name + " of an empty list"}
	for i, item := range each(value) {
		if sign := 0; i > 0 {
			if sign = order(key(item), key(best)); name == "min" && sign >= 0 || name == "max" && sign <= 0 {
				continue
			}
		}
		best = item
	}
	return best
}

func mapped(value any, a given, r *renderer) any {
	l := &list{once: true}
	named := given{names: a.names, named: a.named}
	attribute, otherwise := named.at(0, "attribute", nil), named.at(0, "default", nil)
	if !truth(value) {
		return l
	}
	if attribute == nil && (len(a.positional) == 0 || !knownFilter(text(a.positional[0]))) {
		failHere("map: filter %q is not supported", text(a.at(0, "filter", "")))
	}
	for _, item := range each(value) {
		if attribute == nil {
			l.items = append(l.items, applyFilter(text(a.positional[0]), item, given{a.positional[1:], a.names, a.named, a.line}, r))
			continue
		}
		found := path(item, attribute)
		if _, missing := found.(undefined); missing && otherwise != nil {
			found = otherwise
		}
		l.items = append(l.items, found)
	}
	return l
}

func selected(name string, value any, a given) any {
	l := &list{once: true}
	if !truth(value) {
		return l
	}
	byAttribute := strings.HasSuffix(name, "attr")
	want := strings.HasPrefix(name, "select")
	rest := a.positional
	var attribute any
	if byAttribute {
		if len(rest) == 0 {
			failHere("%s: no attribute is named", name)
		}
		attribute, rest = rest[0], rest[1:]
	}
	for _, item := range each(value) {
		of := item
		if byAttribute {
			of = path(item, attribute)
		}
		holds := truth(of)
		if len(rest) > 0 {
			if !slices.Contains(tests, text(rest[0])) {
				failHere("%s: test %q is not supported", name, text(rest[0]))
			}
			holds = applyTest(text(rest[0]), of, given{positional: rest[1:]})
		}
		if holds == want {
			l.items = append(l.items, item)
		}
	}
	return l
}

// tests are the names of the tests; applyTest is what they do.
var tests = strings.Fields("defined undefined none string mapping iterable sequence number integer float boolean true false callable odd even " +
	"divisibleby eq equalto == ne != lt lessthan < le <= gt greaterthan > ge >= in sameas lower upper")

func applyTest(name string, value any, a given) bool {
	value = plain(value)
	_, isUndefined := value.(undefined)
	_, isText := value.(string)
	_, isList := value.(*list)
	_, isDict := value.(*dict)
	switch name {
	case "defined":
		return !isUndefined
	case "undefined":
		return isUndefined
	case "none":
		return value == nil
	case "string":
		return isText
	case "mapping":
		return isDict
	case "sequence":
		return isText || isList && !value.(*list).once || isDict || isUndefined
	case "iterable":
		return isText || isList || isDict || isUndefined
	case "callable":
		_, ok := value.(function)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "true":
		return value == true
	case "false":
		return value == false
	case "integer":
		_, ok := value.(int64)
		return ok
	case "float":
		_, ok := value.(float64)
		return ok
	case "number":
		_, _, _, ok := number(value)
		return ok
	case "lower":
		s := text(value)
		return s == strings.ToLower(s) && s != strings.ToUpper(s)
	case "upper":
		s := text(value)
		return s == strings.ToUpper(s) && s != strings.ToLower(s)
	case "odd":
		return equal(arithmetic("%", value, int64(2)), int64(1))
	case "even":
		return equal(arithmetic("%", value, int64(2)), int64(0))
	}
	other := a.at(0, "other", undefined{"the test's argument"})
	switch name {
	case "divisibleby":
		return equal(arithmetic("%", value, other), int64(0))
	case "eq", "equalto", "==":
		return equal(value, other)
	case "ne", "!=":
		return !equal(value, other)
	case "sameas":
		return kindOf(value) == kindOf(other) && equal(value, other)
	case "lt", "lessthan", "<":
		return order(value, other) < 0
	case "le", "<=":
		return order(value, other) <= 0
	case "gt", "greaterthan", ">":
		return order(value, other) > 0
	case "ge", ">=":
		return order(value, other) >= 0
	case "in":
		return contains(other, value)
	}
	failHere("test %q is not supported", name)
	return false
}

// methodOf returns a method of a value, or nil.
func methodOf(of any, name string) any {
	switch of := of.(type) {
	case string:
		return stringMethod(of, name)
	case *dict:
		return dictMethod(of, name)
	case *list:
		return listMethod(of, name)
	}
	return nil
}

func dictMethod(d *dict, name string) any {
	switch name {
	case "items":
		return function(func(given) any { return d.items() })
	case "keys":
		return function(func(given) any { return &list{items: slices.Clone(d.keys)} })
	case "values":
		return function(func(given) any {
			l := &list{}
			for _, key := range d.keys {
				l.items = append(l.items, d.values[key])
			}
			return l
		})
	case "get":
		return function(func(a given) any {
			if value, ok := d.get(a.at(0, "key", nil)); ok {
				return value
			}
			return a.at(1, "default", nil)
		})
	case "copy":
		return function(func(given) any {
			c := newDict()
			for _, key := range d.keys {
				c.set(key, d.values[key])
			}
			return c
		})
	case "pop", "update", "setdefault", "clear", "popitem":
		return refused(name)
	}
	return nil
}

func listMethod(l *list, name string) any {
	switch name {
	case "index":
		return function(func(a given) any {
			for i, item := range l.items {
				if equal(item, a.at(0, "value", nil)) {
					return int64(i)
				}
			}
			failHere("index: the value is not in the list")
			return nil
		})
	case "count":
		return function(func(a given) any {
			count := int64(0)
			for _, item := range l.items {
				if equal(item, a.at(0, "value", nil)) {
					count++
				}
			}
			return count
		})
	case "append", "extend", "insert", "pop", "remove", "reverse", "sort", "clear":
		if !l.tuple {
			return refused(name)
		}
	}
	return nil
}

// refused is a method that changes a value, which the servers' sandbox forbids.
func refused(name string) function {
	return func(given) any {
		failHere("%s changes a value, which servers forbid", name)
		return nil
	}
}

func stringMethod(s, name string) any {
	switch name {
	case "strip", "lstrip", "rstrip":
		return function(func(a given) any { return trimmed(s, a.at(0, "chars", nil), name != "rstrip", name != "lstrip") })
	case "upper":
		return function(func(given) any { return strings.ToUpper(s) })
	case "lower", "casefold":
		return function(func(given) any { return strings.ToLower(s) })
	case "capitalize":
		return function(func(given) any { return capitalized(s) })
	case "title":
		return function(func(given) any { return titled(s, func(r rune) bool { return !unicode.IsLetter(r) }) })
	case "startswith", "endswith":
		return function(func(a given) any { return affixed(s, a.at(0, "prefix", nil), name == "startswith") })
	case "replace":
		return function(func(a given) any {
			return replaced(s, a.string(0, "old", ""), a.string(1, "new", ""), a.at(2, "count", nil))
		})
	case "split", "rsplit":
		return function(func(a given) any { return split(s, a, name == "rsplit") })
	case "splitlines":
		return function(func(given) any { return splitLines(s) })
	case "join":
		return function(func(a given) any { return joined(each(a.at(0, "iterable", &list{})), s) })
	case "find", "rfind":
		return function(func(a given) any { return find(s, a.string(0, "sub", ""), name == "rfind") })
	case "count":
		return function(func(a given) any { return int64(strings.Count(s, a.string(0, "sub", ""))) })
	case "removeprefix":
		return function(func(a given) any { return strings.TrimPrefix(s, a.string(0, "prefix", "")) })
	case "removesuffix":
		return function(func(a given) any { return strings.TrimSuffix(s, a.string(0, "suffix", "")) })
	case "isdigit", "isdecimal", "isnumeric":
		return function(func(given) any {
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
		})
	case "isalpha":
		return function(func(given) any {
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
		})
	case "isspace":
		return function(func(given) any { return s != "" && strings.TrimFunc(s, unicode.IsSpace) == "" })
	case "isupper":
		return function(func(given) any { return applyTest("upper", s, given{}) })
	case "islower":
		return function(func(given) any { return applyTest("lower", s, given{}) })
	case "format":
		return function(func(a given) any { return braces(s, a) })
	}
	return nil
}

func affixed(s string, with any, prefix bool) bool {
	options := []any{with}
	if l, ok := with.(*list); ok && l.tuple {
		options = l.items
	}
	return slices.ContainsFunc(options, func(option any) bool {
		o, ok := option.(string)
		if !ok {
			failHere("startswith or endswith of %s", kindOf(option))
		}
		return prefix && strings.HasPrefix(s, o) || !prefix && strings.HasSuffix(s, o)
	})
}

func split(s string, a given, fromRight bool) any {
	most := int(a.integer(1, "maxsplit", -1))
	l := &list{}
	separator := a.at(0, "sep", nil)
	if separator == nil {
		if fromRight && most >= 0 {
			failHere("rsplit at white space with a limit is not supported")
		}
		for s = trimmed(s, nil, true, false); s != ""; s = trimmed(s, nil, true, false) {
			end := strings.IndexFunc(s, unicode.IsSpace)
			if most >= 0 && len(l.items) == most || end < 0 {
				end = len(trimmed(s, nil, false, end < 0))
				l.items = append(l.items, s[:end])
				break
			}
			l.items = append(l.items, s[:end])
			s = s[end:]
		}
		return l
	}
	by, ok := separator.(string)
	if !ok || by == "" {
		failHere("split: the separator is %s", kindOf(separator))
	}
	parts := strings.Split(s, by)
	if most >= 0 && len(parts) > most+1 {
		if cut := len(parts) - most; fromRight {
			parts = append([]string{strings.Join(parts[:cut], by)}, parts[cut:]...)
		} else {
			parts = append(parts[:most:most], strings.Join(parts[most:], by))
		}
	}
	for _, part := range parts {
		l.items = append(l.items, part)
	}
	return l
}

func splitLines(s string) any {
	l := &list{}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		l.items = append(l.items, line)
	}
	if s == "" {
		l.items = nil
	}
	return l
}

func find(s, sub string, last bool) any {
	at := strings.Index(s, sub)
	if last {
		at = strings.LastIndex(s, sub)
	}
	if at < 0 {
		return int64(-1)
	}
	return int64(utf8.RuneCountInString(s[:at]))
}

// percent is the % operator of strings, for %s, %d, %r and %%.
func percent(s string, of any) string {
	values := []any{of}
	if l, ok := of.(*list); ok && l.tuple {
		values = l.items
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		out.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "%") {
			out.WriteByte('%')
			s = after[1:]
			continue
		}
		if after == "" || !strings.Contains("sdr", after[:1]) || len(values) == 0 {
			failHere("format %q is not supported, or has too few values", "%"+after)
		}
		switch after[0] {
		case 'r':
			out.WriteString(repr(values[0]))
		case 'd':
			if _, _, whole, _ := number(values[0]); !whole {
				failHere("%%d of %s is not supported", kindOf(values[0]))
			}
			out.WriteString(text(values[0]))
		default:
			out.WriteString(text(values[0]))
		}
		s, values = after[1:], values[1:]
	}
	if len(values) > 0 {
		failHere("format: %d values are not used", len(values))
	}
	return out.String()
}

// braces is str.format for {}, {0} and {name}.
func braces(s string, a given) string {
	var out strings.Builder
	next := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			out.WriteString(s)
			break
		}
		out.WriteString(s[:at])
		if strings.HasPrefix(s[at+1:], s[at:at+1]) {
			out.WriteByte(s[at])
			s = s[at+2:]
			continue
		}
		inside, rest, closed := strings.Cut(s[at+1:], "}")
		if s[at] == '}' || !closed || strings.ContainsAny(inside, ":!.[") {
			failHere("format %q is not supported", s[at:])
		}
		place, err := strconv.Atoi(inside)
		if inside == "" {
			place, err = next, nil
			next++
		}
		if err != nil {
			place = len(a.positional)
		}
		value := a.at(place, inside, undefined{})
		if _, missing := value.(undefined); missing {
			failHere("format: %s has no value", fmt.Sprintf("{%s}", inside))
		}
		out.WriteString(text(value))
		s = rest
	}
	return out.String()
}
