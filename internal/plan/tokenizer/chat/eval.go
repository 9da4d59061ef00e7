package chat

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// failure is why a template cannot be read or rendered. It is thrown inside the package only.
type failure struct {
	line int // 0 for where the renderer stands
	why  string
}

func fail(line int, format string, a ...any) { panic(failure{line, fmt.Sprintf(format, a...)}) }
func failHere(format string, a ...any)       { fail(0, format, a...) }

// renderer carries a template out.
type renderer struct {
	out   []byte
	line  int
	depth int
	left  int // loop passes that are left before the template counts as endless
}

const (
	deepest    = 200
	mostPasses = 1_000_000
	mostText   = 1 << 26 // bytes
	mostRange  = 100_000 // as in Jinja's sandbox
)

// variables are the names of a scope and of those around it.
type variables struct {
	outer  *variables
	values map[string]any
}

func (v *variables) inner() *variables { return &variables{outer: v} }

func (v *variables) set(name string, value any) {
	if v.values == nil {
		v.values = map[string]any{}
	}
	v.values[name] = value
}

func (v *variables) get(name string) any {
	for ; v != nil; v = v.outer {
		if value, ok := v.values[name]; ok {
			return value
		}
	}
	if value, ok := globals[name]; ok {
		return value
	}
	return undefined{fmt.Sprintf("%q", name)}
}

// flow says how a body was left.
type flow uint8

const (
	through flow = iota
	broken
	continued
)

func (r *renderer) run(body []statement, v *variables) flow {
	for _, s := range body {
		r.line = s.line
		if len(r.out) > mostText {
			failHere("the text is longer than %d bytes", mostText)
		}
		switch s := s.of.(type) {
		case output:
			if s.value == nil {
				r.out = append(r.out, s.text...)
			} else {
				r.out = append(r.out, text(r.eval(*s.value, v))...)
			}
		case branch:
			if f := r.branch(s, v); f != through {
				return f
			}
		case loop:
			r.loop(s, v)
		case assign:
			r.assign(s, v)
		case assignBlock:
			v.set(s.target, r.filtered(s.filters, s.body, v))
		case macroStatement:
			v.set(s.name, r.macro(s.name, s.names, s.defaults, s.body, v))
		case callBlock:
			r.callBlock(s, v)
		case filterBlock:
			r.out = append(r.out, text(r.filtered(s.filters, s.body, v))...)
		case scope:
			inner := v
			if len(s.names) > 0 {
				inner = v.inner()
			}
			for i, name := range s.names {
				inner.set(name, r.eval(s.values[i], v))
			}
			if f := r.run(s.body, inner); f != through {
				return f
			}
		case leave:
			if s.next {
				return continued
			}
			return broken
		}
	}
	return through
}

// capture returns what a body writes.
func (r *renderer) capture(body []statement, v *variables) string {
	kept := r.out
	r.out = nil
	r.run(body, v)
	written := string(r.out)
	r.out = kept
	return written
}

func (r *renderer) filtered(filters []filter, body []statement, v *variables) any {
	var value any = r.capture(body, v.inner())
	for _, f := range filters {
		value = applyFilter(f.name, value, r.given(f.arguments, v), r)
	}
	return value
}

func (r *renderer) branch(b branch, v *variables) flow {
	for i, when := range b.when {
		if truth(r.eval(when, v)) {
			return r.run(b.then[i], v)
		}
	}
	if len(b.then) > len(b.when) {
		return r.run(b.then[len(b.when)], v)
	}
	return through
}

func (r *renderer) loop(l loop, v *variables) {
	items := each(r.eval(l.over, v))
	if l.condition != nil {
		var kept []any
		for _, item := range items {
			inner := v.inner()
			unpack(inner, l.targets, item)
			if truth(r.eval(*l.condition, inner)) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	if len(items) == 0 {
		r.run(l.otherwise, v.inner())
		return
	}
	for i, item := range items {
		if r.left--; r.left < 0 {
			failHere("the template does not come to an end")
		}
		inner := v.inner()
		unpack(inner, l.targets, item)
		inner.set("loop", &passing{items, i})
		if r.run(l.body, inner) == broken {
			return
		}
	}
}

func unpack(v *variables, targets []string, item any) {
	if len(targets) == 1 {
		v.set(targets[0], item)
		return
	}
	parts := each(item)
	if len(parts) != len(targets) {
		failHere("%d values for %d names", len(parts), len(targets))
	}
	for i, target := range targets {
		v.set(target, parts[i])
	}
}

// passing is what loop is inside a loop.
type passing struct {
	items []any
	at    int
}

func (p *passing) attribute(name string) any {
	n, at := int64(len(p.items)), int64(p.at)
	switch name {
	case "index":
		return at + 1
	case "index0":
		return at
	case "revindex":
		return n - at
	case "revindex0":
		return n - at - 1
	case "first":
		return at == 0
	case "last":
		return at == n-1
	case "length":
		return n
	case "depth":
		return int64(1)
	case "depth0":
		return int64(0)
	case "cycle":
		return function(p.cycle)
	case "previtem":
		if at > 0 {
			return p.items[at-1]
		}
	case "nextitem":
		if at+1 < n {
			return p.items[at+1]
		}
	case "changed":
		failHere("loop.changed is not supported")
	}
	return undefined{"loop." + name}
}

func (p *passing) cycle(a given) any {
	if len(a.positional) == 0 {
		failHere("loop.cycle: nothing to cycle through")
	}
	return a.positional[p.at%len(a.positional)]
}

func (r *renderer) assign(a assign, v *variables) {
	value := r.eval(a.value, v)
	if a.of == "" {
		unpack(v, a.targets, value)
		return
	}
	n, ok := v.get(a.of).(*namespace)
	if !ok {
		failHere("%q is not a namespace", a.of)
	}
	n.values[a.targets[0]] = value
}

func (r *renderer) macro(name string, names []string, defaults []*expr, body []statement, outer *variables) function {
	return func(a given) any {
		if r.depth++; r.depth > deepest {
			failHere("macro %s: calls are nested more than %d deep", name, deepest)
		}
		defer func() { r.depth-- }()
		v := outer.inner()
		if len(a.positional) > len(names) {
			failHere("macro %s takes %d arguments, got %d", name, len(names), len(a.positional))
		}
		for i, n := range a.names {
			if n == "caller" {
				v.set(n, a.named[i])
			} else if !slices.Contains(names, n) {
				failHere("macro %s has no argument %q", name, n)
			}
		}
		for i, n := range names {
			v.set(n, r.argument(a, i, n, defaults[i], v))
		}
		line := r.line
		written := r.capture(body, v)
		r.line = line
		return written
	}
}

func (r *renderer) argument(a given, i int, name string, otherwise *expr, v *variables) any {
	if i < len(a.positional) {
		return a.positional[i]
	}
	if at := slices.Index(a.names, name); at >= 0 {
		return a.named[at]
	}
	if otherwise != nil {
		return r.eval(*otherwise, v)
	}
	return undefined{fmt.Sprintf("argument %q", name)}
}

func (r *renderer) callBlock(c callBlock, v *variables) {
	of, ok := c.call.of.(call)
	if !ok {
		failHere("a call block calls nothing")
	}
	f, ok := r.eval(of.function, v).(function)
	if !ok {
		failHere("what a call block calls is not a macro")
	}
	a := r.given(of.arguments, v)
	a.names = append(a.names, "caller")
	a.named = append(a.named, r.macro("caller", c.names, make([]*expr, len(c.names)), c.body, v))
	r.out = append(r.out, text(f(a))...)
}

func (r *renderer) given(a arguments, v *variables) given {
	g := given{names: a.names, line: r.line}
	for _, e := range a.positional {
		g.positional = append(g.positional, r.eval(e, v))
	}
	for _, e := range a.named {
		g.named = append(g.named, r.eval(e, v))
	}
	g.names = slices.Clone(g.names)
	return g
}

func (r *renderer) eval(e expr, v *variables) any {
	r.line = e.line
	switch e := e.of.(type) {
	case literal:
		return e.value
	case name:
		return v.get(e.name)
	case listExpr:
		l := &list{tuple: e.tuple, items: make([]any, len(e.items))}
		for i, item := range e.items {
			l.items[i] = r.eval(item, v)
		}
		return l
	case dictExpr:
		d := newDict()
		for i, key := range e.keys {
			d.set(plain(r.eval(key, v)), r.eval(e.values[i], v))
		}
		return d
	case attribute:
		return getAttribute(r.eval(e.of, v), e.name)
	case subscript:
		return getItem(r.eval(e.of, v), r.eval(e.key, v))
	case slice:
		return getSlice(r.eval(e.of, v), r.eval(e.low, v), r.eval(e.high, v), r.eval(e.step, v))
	case call:
		return r.call(e, v)
	case filter:
		return applyFilter(e.name, r.eval(e.of, v), r.given(e.arguments, v), r)
	case test:
		return applyTest(e.name, r.eval(e.of, v), r.given(e.arguments, v)) != e.not
	case unary:
		return applyUnary(e.operator, r.eval(e.of, v))
	case binary:
		return r.binary(e, v)
	case compare:
		return r.compare(e, v)
	case conditional:
		if truth(r.eval(e.when, v)) {
			return r.eval(e.then, v)
		}
		return r.eval(e.otherwise, v)
	}
	failHere("%T cannot be evaluated", e.of)
	return nil
}

func (r *renderer) call(c call, v *variables) any {
	f := r.eval(c.function, v)
	a := r.given(c.arguments, v)
	r.line = a.line
	callee, ok := f.(function)
	if !ok {
		failHere("%s cannot be called", kindOf(f))
	}
	return callee(a)
}

func (r *renderer) binary(b binary, v *variables) any {
	left := r.eval(b.left, v)
	switch b.operator {
	case "and":
		if !truth(left) {
			return left
		}
		return r.eval(b.right, v)
	case "or":
		if truth(left) {
			return left
		}
		return r.eval(b.right, v)
	}
	right := r.eval(b.right, v)
	if b.operator == "~" {
		return text(left) + text(right)
	}
	return arithmetic(b.operator, left, right)
}

func (r *renderer) compare(c compare, v *variables) any {
	left := r.eval(c.first, v)
	for i, operator := range c.operators {
		right := r.eval(c.rest[i], v)
		var holds bool
		switch operator {
		case "==":
			holds = equal(left, right)
		case "!=":
			holds = !equal(left, right)
		case "in":
			holds = contains(right, left)
		case "not in":
			holds = !contains(right, left)
		case "<":
			holds = order(left, right) < 0
		case "<=":
			holds = order(left, right) <= 0
		case ">":
			holds = order(left, right) > 0
		case ">=":
			holds = order(left, right) >= 0
		}
		if !holds {
			return false
		}
		left = right
	}
	return true
}

func applyUnary(operator string, value any) any {
	if operator == "not" {
		return !truth(value)
	}
	integer, float, whole, ok := number(value)
	if !ok {
		failHere("%s is not a number", kindOf(value))
	}
	if operator == "-" {
		integer, float = -integer, -float
	}
	if whole {
		return integer
	}
	return float
}

func arithmetic(operator string, left, right any) any {
	if sum, ok := addMarkup(operator, left, right); ok {
		return sum
	}
	left, right = plain(left), plain(right)
	li, lf, lw, lok := number(left)
	ri, rf, rw, rok := number(right)
	if lok && rok {
		if lw && rw {
			return integers(operator, li, ri)
		}
		return floats(operator, lf, rf)
	}
	switch l := left.(type) {
	case string:
		if r, ok := right.(string); ok && operator == "+" {
			return l + r
		}
		if operator == "*" && rw {
			return strings.Repeat(l, repeats(len(l), ri))
		}
		if operator == "%" {
			return percent(l, right)
		}
	case *list:
		if r, ok := right.(*list); ok && operator == "+" && l.tuple == r.tuple && !l.once && !r.once {
			return &list{items: append(slices.Clone(l.items), r.items...), tuple: l.tuple}
		}
		if operator == "*" && rw {
			return &list{items: slices.Repeat(l.items, repeats(len(l.items), ri)), tuple: l.tuple}
		}
	}
	failHere("%s %s %s has no meaning", kindOf(left), operator, kindOf(right))
	return nil
}

// addMarkup adds text to markup, escaped unless it is markup itself.
func addMarkup(operator string, left, right any) (any, bool) {
	_, leftSafe := left.(markup)
	_, rightSafe := right.(markup)
	_, leftText := left.(string)
	_, rightText := right.(string)
	if operator != "+" || !leftSafe && !rightSafe || !leftSafe && !leftText || !rightSafe && !rightText {
		return nil, false
	}
	return escaped(left) + escaped(right), true
}

func escaped(value any) markup {
	if m, ok := value.(markup); ok {
		return m
	}
	return markup(html.EscapeString(text(value)))
}

func repeats(length int, count int64) int {
	if count > 0 && int64(length) > (1<<24)/count {
		failHere("repeated %d times is too long", count)
	}
	return int(max(count, 0))
}

func integers(operator string, a, b int64) any {
	switch operator {
	case "+":
		if sum := a + b; (sum > a) == (b > 0) {
			return sum
		}
	case "-":
		if difference := a - b; (difference < a) == (b > 0) {
			return difference
		}
	case "*":
		if product := a * b; a == 0 || product/a == b && !(a == -1 && b == math.MinInt64) {
			return product
		}
	case "/":
		if b != 0 {
			return float64(a) / float64(b)
		}
	case "//", "%":
		if b == 0 {
			break
		}
		quotient, rest := a/b, a%b
		if rest != 0 && (rest < 0) != (b < 0) {
			quotient, rest = quotient-1, rest+b
		}
		if operator == "//" {
			return quotient
		}
		return rest
	case "**":
		if b < 0 {
			return math.Pow(float64(a), float64(b))
		}
		result := int64(1)
		for range b {
			if a != 0 && (result*a)/a != result {
				failHere("%d ** %d is out of range", a, b)
			}
			result *= a
		}
		return result
	}
	failHere("%d %s %d is out of range", a, operator, b)
	return nil
}

func floats(operator string, a, b float64) any {
	switch operator {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	if b == 0 {
		failHere("division by zero")
	}
	switch operator {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	return a - b*math.Floor(a/b)
}

func getAttribute(of any, name string) any {
	switch of := of.(type) {
	case undefined:
		failHere("%q of %s", name, kindOf(of))
	case markup:
		failHere("%q of text that is marked as safe is not supported", name)
	case *passing:
		return of.attribute(name)
	case *namespace:
		if value, ok := of.values[name]; ok {
			return value
		}
		return undefined{fmt.Sprintf("%q", name)}
	}
	if method := methodOf(of, name); method != nil {
		return method
	}
	if d, ok := of.(*dict); ok {
		if value, ok := d.values[name]; ok {
			return value
		}
	}
	return undefined{fmt.Sprintf("%q", name)}
}

func getItem(of, key any) any {
	of, key = plain(of), plain(key)
	missing := undefined{fmt.Sprintf("item %.40s", repr(key))}
	switch of := of.(type) {
	case undefined:
		failHere("item %.40s of %s", repr(key), kindOf(of))
	case *dict:
		if value, ok := of.get(key); ok {
			return value
		}
	case *list:
		of.refuseOnce("indexed")
		if i, _, whole, ok := number(key); ok && whole {
			if i < 0 {
				i += int64(len(of.items))
			}
			if i >= 0 && i < int64(len(of.items)) {
				return of.items[i]
			}
			return missing
		}
	case string:
		if i, _, whole, ok := number(key); ok && whole {
			if i < 0 {
				i += int64(utf8.RuneCountInString(of))
			}
			for _, r := range of {
				if i == 0 {
					return string(r)
				}
				i--
			}
			return missing
		}
	}
	if name, ok := key.(string); ok {
		return getAttribute(of, name)
	}
	return missing
}

func getSlice(of, low, high, step any) any {
	var items []any
	of = plain(of)
	switch of := of.(type) {
	case *list:
		of.refuseOnce("sliced")
		items = of.items
	case string:
		items = each(of)
	default:
		failHere("%s cannot be sliced", kindOf(of))
	}
	by := bound(step, 1)
	if by == 0 {
		failHere("a slice goes on by 0")
	}
	n := int64(len(items))
	var kept []any
	from, to := int64(0), n
	if by < 0 {
		from, to = n-1, -1
	}
	from, to = clampBound(low, from, n, by), clampBound(high, to, n, by)
	for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
		kept = append(kept, items[i])
	}
	if l, ok := of.(*list); ok {
		return &list{items: kept, tuple: l.tuple}
	}
	var s strings.Builder
	for _, item := range kept {
		s.WriteString(item.(string))
	}
	return s.String()
}

func bound(value any, otherwise int64) int64 {
	if value == nil {
		return otherwise
	}
	i, _, whole, ok := number(value)
	if !ok || !whole {
		failHere("a slice's bound is %s", kindOf(value))
	}
	return i
}

// clampBound brings a bound of a slice into the range of what is sliced.
func clampBound(value any, otherwise, n, by int64) int64 {
	if value == nil {
		return otherwise
	}
	i := bound(value, 0)
	if i < 0 {
		i += n
	}
	if by < 0 {
		return max(min(i, n-1), -1)
	}
	return max(min(i, n), 0)
}
