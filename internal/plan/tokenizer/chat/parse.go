package chat

import (
	"slices"
	"strconv"
)

// The expressions of a template.
type (
	literal  struct{ value any }
	name     struct{ name string }
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr  struct{ keys, values []expr }
	attribute struct {
		of   expr
		name string
	}
	subscript struct{ of, key expr }
	slice     struct {
		of              expr
		low, high, step expr
	}
	call struct {
		function expr
		arguments
	}
	filter struct {
		of   expr // nil in a filter block
		name string
		arguments
	}
	test struct {
		of   expr
		name string
		not  bool
		arguments
	}
	unary struct {
		operator string
		of       expr
	}
	binary struct {
		operator    string
		left, right expr
	}
	compare struct {
		first     expr
		operators []string
		rest      []expr
	}
	conditional struct{ when, then, otherwise expr }
	arguments   struct {
		positional []expr
		names      []string
		named      []expr
	}
)

// expr is an expression, and where it stands.
type expr struct {
	of   any
	line int
}

// The statements of a template.
type (
	output struct {
		text  string
		value *expr
	}
	branch struct {
		when []expr
		then [][]statement
	} // one more then than when for else
	loop struct {
		targets   []string
		over      expr
		condition *expr
		recursive bool
		body      []statement
		otherwise []statement
	}
	assign struct {
		targets []string
		of      string // targets are attributes of this namespace
		value   expr
	}
	assignBlock struct {
		target  string
		filters []filter
		body    []statement
	}
	macroStatement struct {
		name     string
		names    []string
		defaults []*expr
		body     []statement
	}
	callBlock struct {
		names []string
		call  expr
		body  []statement
	}
	filterBlock struct {
		filters []filter
		body    []statement
	}
	scope struct {
		names  []string
		values []expr
		body   []statement
	}
	leave struct{ next bool } // break, or continue
)

type statement struct {
	of   any
	line int
}

type parser struct {
	in    []lexeme
	at    int
	depth int // expressions and bodies that are open
}

// enter counts what is open; the returned function counts it off again.
func (p *parser) enter() func() {
	if p.depth++; p.depth > deepest {
		fail(p.now().line, "nested more than %d deep", deepest)
	}
	return func() { p.depth-- }
}

func (p *parser) now() lexeme { return p.in[p.at] }

func (p *parser) next() lexeme {
	now := p.in[p.at]
	if now.kind != lexEnd {
		p.at++
	}
	return now
}

func (p *parser) is(k kind, text string) bool { return p.now().kind == k && p.now().text == text }
func (p *parser) operator(text string) bool   { return p.accept(lexOperator, text) }
func (p *parser) word(text string) bool       { return p.accept(lexName, text) }

func (p *parser) accept(k kind, text string) bool {
	if p.is(k, text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(k kind, text string) {
	if !p.accept(k, text) {
		fail(p.now().line, "%q expected, got %q", text, p.now().text)
	}
}

func (p *parser) name() string {
	if p.now().kind != lexName {
		fail(p.now().line, "a name expected, got %q", p.now().text)
	}
	return p.next().text
}

func (p *parser) close() {
	if p.now().kind != lexClose {
		fail(p.now().line, "end of tag expected, got %q", p.now().text)
	}
	p.at++
}

// body reads statements up to a tag of one of the names, and that tag's name.
func (p *parser) body(ends ...string) ([]statement, string) {
	defer p.enter()()
	var body []statement
	for {
		now := p.next()
		switch now.kind {
		case lexText:
			body = append(body, statement{output{text: now.text}, now.line})
		case lexOpenExpr:
			value := p.tuple()
			p.close()
			body = append(body, statement{output{value: &value}, now.line})
		case lexOpenTag:
			tag := p.name()
			if slices.Contains(ends, tag) {
				return body, tag
			}
			if s := p.statement(tag, now.line); s != nil {
				body = append(body, statement{s, now.line})
			}
		default:
			if len(ends) > 0 {
				fail(now.line, "%q expected before the end", ends[len(ends)-1])
			}
			return body, ""
		}
	}
}

func (p *parser) block(end string) []statement {
	p.close()
	body, _ := p.body(end)
	p.close()
	return body
}

func (p *parser) statement(tag string, line int) any {
	switch tag {
	case "if":
		return p.branch()
	case "for":
		return p.loop()
	case "set":
		return p.assign()
	case "macro":
		return p.macro()
	case "call":
		var names []string
		if p.operator("(") {
			names, _ = p.parameters()
		}
		of := p.expression()
		return callBlock{names, of, p.block("endcall")}
	case "filter":
		filters := []filter{p.filter(nil)}
		for p.operator("|") {
			filters = append(filters, p.filter(nil))
		}
		return filterBlock{filters, p.block("endfilter")}
	case "generation": // marks what the assistant says, for training
		return scope{body: p.block("endgeneration")}
	case "with":
		var s scope
		for p.now().kind != lexClose {
			s.names = append(s.names, p.name())
			p.expect(lexOperator, "=")
			s.values = append(s.values, p.expression())
			p.operator(",")
		}
		s.body = p.block("endwith")
		return s
	case "break", "continue":
		p.close()
		return leave{tag == "continue"}
	}
	fail(line, "tag %q is not supported", tag)
	return nil
}

func (p *parser) branch() any {
	var b branch
	for {
		b.when = append(b.when, p.tuple())
		p.close()
		body, end := p.body("elif", "else", "endif")
		b.then = append(b.then, body)
		switch end {
		case "elif":
			continue
		case "else":
			p.close()
			body, _ := p.body("endif")
			b.then = append(b.then, body)
		}
		p.close()
		return b
	}
}

func (p *parser) loop() any {
	l := loop{targets: p.targets()}
	p.expect(lexName, "in")
	l.over = p.disjunctionTuple()
	if p.word("if") {
		condition := p.expression()
		l.condition = &condition
	}
	if p.word("recursive") {
		l.recursive = true
		fail(p.now().line, "a recursive loop is not supported")
	}
	p.close()
	body, end := p.body("else", "endfor")
	if l.body = body; end == "else" {
		p.close()
		l.otherwise, _ = p.body("endfor")
	}
	p.close()
	return l
}

func (p *parser) targets() []string {
	parenthesized := p.operator("(")
	targets := []string{p.name()}
	for p.operator(",") {
		targets = append(targets, p.name())
	}
	if parenthesized {
		p.expect(lexOperator, ")")
	}
	return targets
}

func (p *parser) assign() any {
	line := p.now().line
	var a assign
	if a.targets = p.targets(); len(a.targets) == 1 && p.operator(".") {
		a.of, a.targets[0] = a.targets[0], p.name()
	}
	if p.operator("=") {
		a.value = p.tuple()
		p.close()
		return a
	}
	if a.of != "" || len(a.targets) != 1 {
		fail(line, `"=" expected`)
	}
	b := assignBlock{target: a.targets[0]}
	for p.operator("|") {
		b.filters = append(b.filters, p.filter(nil))
	}
	b.body = p.block("endset")
	return b
}

func (p *parser) macro() any {
	m := macroStatement{name: p.name()}
	p.expect(lexOperator, "(")
	m.names, m.defaults = p.parameters()
	m.body = p.block("endmacro")
	return m
}

// parameters reads the names and defaults of a macro, and the closing parenthesis.
func (p *parser) parameters() (names []string, defaults []*expr) {
	for !p.operator(")") {
		names = append(names, p.name())
		var value *expr
		if p.operator("=") {
			e := p.expression()
			value = &e
		}
		defaults = append(defaults, value)
		if !p.is(lexOperator, ")") {
			p.expect(lexOperator, ",")
		}
	}
	return names, defaults
}

// tuple reads an expression, or several with commas between them.
func (p *parser) tuple() expr { return p.several(p.expression) }

// disjunctionTuple is a tuple of expressions that do not take an if with them.
func (p *parser) disjunctionTuple() expr { return p.several(p.disjunction) }

func (p *parser) several(read func() expr) expr {
	first := read()
	if !p.is(lexOperator, ",") {
		return first
	}
	items := []expr{first}
	for p.operator(",") {
		if p.now().kind == lexClose || p.is(lexOperator, ")") {
			break
		}
		items = append(items, read())
	}
	return expr{listExpr{items, true}, first.line}
}

func (p *parser) expression() expr {
	then := p.disjunction()
	for p.word("if") {
		when := p.disjunction()
		otherwise := expr{literal{undefined{}}, then.line}
		if p.word("else") {
			otherwise = p.expression()
		}
		then = expr{conditional{when, then, otherwise}, then.line}
	}
	return then
}

func (p *parser) disjunction() expr {
	return p.chain(func() expr { return p.chain(p.negation, lexName, "and") }, lexName, "or")
}

// chain reads operands of operators of the same rank, the left one first.
func (p *parser) chain(operand func() expr, k kind, operators ...string) expr {
	left := operand()
	for p.now().kind == k && slices.Contains(operators, p.now().text) {
		operator := p.next().text
		left = expr{binary{operator, left, operand()}, left.line}
	}
	return left
}

func (p *parser) negation() expr {
	defer p.enter()()
	line := p.now().line
	if p.word("not") {
		return expr{unary{"not", p.negation()}, line}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	c := compare{first: p.sum()}
	for {
		now := p.now()
		switch {
		case now.kind == lexOperator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, now.text), p.is(lexName, "in"):
			c.operators = append(c.operators, p.next().text)
		case p.is(lexName, "not") && p.in[p.at+1].kind == lexName && p.in[p.at+1].text == "in":
			p.at += 2
			c.operators = append(c.operators, "not in")
		default:
			if len(c.operators) == 0 {
				return c.first
			}
			return expr{c, c.first.line}
		}
		c.rest = append(c.rest, p.sum())
	}
}

func (p *parser) sum() expr     { return p.chain(p.joined, lexOperator, "+", "-") }
func (p *parser) joined() expr  { return p.chain(p.product, lexOperator, "~") }
func (p *parser) product() expr { return p.chain(p.power, lexOperator, "*", "/", "//", "%") }
func (p *parser) power() expr {
	return p.chain(func() expr { return p.unary(true) }, lexOperator, "**")
}

func (p *parser) unary(filters bool) expr {
	defer p.enter()()
	line := p.now().line
	var e expr
	switch {
	case p.operator("-"):
		e = expr{unary{"-", p.unary(false)}, line}
	case p.operator("+"):
		e = expr{unary{"+", p.unary(false)}, line}
	default:
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() expr {
	now := p.next()
	at := func(of any) expr { return expr{of, now.line} }
	switch now.kind {
	case lexName:
		switch now.text {
		case "true", "True":
			return at(literal{true})
		case "false", "False":
			return at(literal{false})
		case "none", "None":
			return at(literal{nil})
		}
		return at(name{now.text})
	case lexString:
		text := now.text
		for p.now().kind == lexString {
			text += p.next().text
		}
		return at(literal{text})
	case lexInteger:
		n, err := strconv.ParseInt(now.text, 10, 64)
		if err != nil {
			fail(now.line, "number %s is out of range", now.text)
		}
		return at(literal{n})
	case lexFloat:
		f, err := strconv.ParseFloat(now.text, 64)
		if err != nil {
			fail(now.line, "number %s is out of range", now.text)
		}
		return at(literal{f})
	case lexOperator:
		switch now.text {
		case "(":
			if p.operator(")") {
				return at(listExpr{tuple: true})
			}
			e := p.tuple()
			p.expect(lexOperator, ")")
			return e
		case "[":
			return at(listExpr{items: p.list("]")})
		case "{":
			return at(p.dict())
		}
	}
	fail(now.line, "an expression expected, got %q", now.text)
	return expr{}
}

func (p *parser) list(end string) []expr {
	var items []expr
	for !p.operator(end) {
		items = append(items, p.expression())
		if !p.is(lexOperator, end) {
			p.expect(lexOperator, ",")
		}
	}
	return items
}

func (p *parser) dict() dictExpr {
	var d dictExpr
	for !p.operator("}") {
		d.keys = append(d.keys, p.expression())
		p.expect(lexOperator, ":")
		d.values = append(d.values, p.expression())
		if !p.is(lexOperator, "}") {
			p.expect(lexOperator, ",")
		}
	}
	return d
}

func (p *parser) postfix(e expr) expr {
	for {
		line := p.now().line
		switch {
		case p.operator("."):
			if now := p.next(); now.kind == lexName {
				e = expr{attribute{e, now.text}, line}
			} else if now.kind == lexInteger {
				n, _ := strconv.ParseInt(now.text, 10, 64)
				e = expr{subscript{e, expr{literal{n}, line}}, line}
			} else {
				fail(line, "a name expected, got %q", now.text)
			}
		case p.operator("["):
			e = expr{p.subscript(e), line}
		case p.operator("("):
			e = expr{call{e, p.arguments()}, line}
		default:
			return e
		}
	}
}

// subscript reads a key or a slice, and the closing bracket.
func (p *parser) subscript(of expr) any {
	none := expr{literal{nil}, of.line}
	bounds := []expr{none, none, none}
	colons := 0
	for !p.operator("]") {
		if p.operator(":") {
			if colons++; colons > 2 {
				fail(of.line, "a slice has three parts at most")
			}
			continue
		}
		bounds[colons] = p.expression()
		if !p.is(lexOperator, "]") && !p.is(lexOperator, ":") {
			fail(p.now().line, `"]" expected, got %q`, p.now().text)
		}
	}
	if colons == 0 {
		return subscript{of, bounds[0]}
	}
	return slice{of, bounds[0], bounds[1], bounds[2]}
}

func (p *parser) arguments() arguments {
	var a arguments
	for !p.operator(")") {
		if p.operator("*") || p.operator("**") {
			fail(p.now().line, "unpacked arguments are not supported")
		}
		if p.now().kind == lexName && p.in[p.at+1].kind == lexOperator && p.in[p.at+1].text == "=" {
			a.names = append(a.names, p.name())
			p.at++
			a.named = append(a.named, p.expression())
		} else {
			a.positional = append(a.positional, p.expression())
		}
		if !p.is(lexOperator, ")") {
			p.expect(lexOperator, ",")
		}
	}
	return a
}

func (p *parser) filters(e expr) expr {
	for {
		line := p.now().line
		switch {
		case p.operator("|"):
			e = expr{p.filter(&e), line}
		case p.word("is"):
			e = expr{p.test(e), line}
		case p.is(lexOperator, "("):
			e = p.postfix(e)
		default:
			return e
		}
	}
}

func (p *parser) filter(of *expr) filter {
	line := p.now().line
	f := filter{name: p.name()}
	if of != nil {
		f.of = *of
	}
	if !knownFilter(f.name) {
		fail(line, "filter %q is not supported", f.name)
	}
	if p.operator("(") {
		f.arguments = p.arguments()
	}
	return f
}

func (p *parser) test(of expr) test {
	line := p.now().line
	t := test{of: of, not: p.word("not"), name: p.name()}
	if !slices.Contains(tests, t.name) {
		fail(line, "test %q is not supported", t.name)
	}
	now := p.now()
	switch {
	case p.operator("("):
		t.arguments = p.arguments()
	case now.kind == lexString, now.kind == lexInteger, now.kind == lexFloat, p.is(lexOperator, "["), p.is(lexOperator, "{"),
		now.kind == lexName && !slices.Contains([]string{"else", "or", "and", "if", "is", "not", "in"}, now.text):
		t.positional = []expr{p.postfix(p.primary())}
	}
	return t
}
