package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a compiled regular expression of the dialect that tokenizers split text with: a backtracking matcher, so that
// look-ahead and possessive quantifiers mean what they mean to Oniguruma and fancy-regex. What it does not know it refuses.
//
// Note: the standard library's regexp has no look-ahead, and a general backtracking engine costs several times as much.
type pattern struct {
	first *node
}

// node is one step of a pattern: an atom, how often, and what follows.
type node struct {
	atom       atom
	class      *class    // atomClass
	branches   []*node   // atomGroup, atomAhead, atomNotAhead: alternatives, each of which ends at join
	join       *node     // atomGroup: where the alternatives go on
	least      int       // repetitions of a class; of a group 0 or 1
	most       int       // repetitions of a class, -1 for no limit; of a group 1
	possessive bool      // gives nothing back
	first      [256]bool // atomGroup: bytes that a branch may begin with
	next       *node
}

type atom uint8

const (
	atomClass atom = iota
	atomGroup
	atomAhead
	atomNotAhead
	atomEnd // the end of the text
	atomJoin
	atomAccept
)

// compile reads a regular expression.
func compile(source string) (*pattern, error) {
	r := &patternReader{rest: source, known: map[string]*class{}}
	accept := &node{atom: atomAccept}
	branches, err := r.alternatives(accept)
	if err == nil && r.rest != "" {
		err = fmt.Errorf("%q is not understood", r.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", source, err)
	}
	first := &node{atom: atomGroup, branches: branches, least: 1, most: 1}
	if err := first.prepare(); err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", source, err)
	}
	return &pattern{first: first}, nil
}

// match returns the end of the match that begins at from, or -1.
func (p *pattern) match(text []byte, from int) int { return p.first.match(text, from) }

// find returns the first match at or after from; start is -1 if there is none.
func (p *pattern) find(text []byte, from int) (start, end int) {
	for from < len(text) {
		if end := p.match(text, from); end > from {
			return from, end
		}
		from += runeLength(text[from:])
	}
	return -1, -1
}

func (n *node) match(text []byte, at int) int {
	for {
		switch n.atom {
		case atomAccept, atomJoin:
			if n.next == nil {
				return at
			}
			n = n.next
			continue
		case atomEnd:
			if at != len(text) {
				return -1
			}
			n = n.next
			continue
		case atomAhead, atomNotAhead:
			if n.anyBranch(text, at) >= 0 != (n.atom == atomAhead) {
				return -1
			}
			n = n.next
			continue
		case atomGroup:
			return n.matchGroup(text, at)
		}
		if n.most == 1 && n.least == 1 {
			length := n.class.match(text, at)
			if length == 0 {
				return -1
			}
			at += length
			n = n.next
			continue
		}
		return n.matchRun(text, at)
	}
}

// matchGroup tries the alternatives, each with all that follows.
func (n *node) matchGroup(text []byte, at int) int {
	if at < len(text) && n.first[text[at]] || at == len(text) {
		if end := n.anyBranch(text, at); end >= 0 {
			return end
		}
	}
	if n.least == 0 {
		return n.next.match(text, at)
	}
	return -1
}

func (n *node) anyBranch(text []byte, at int) int {
	for _, branch := range n.branches {
		if end := branch.match(text, at); end >= 0 {
			return end
		}
	}
	return -1
}

// matchRun takes as much of a class as there is, and gives back while what follows does not match.
func (n *node) matchRun(text []byte, at int) int {
	count, end := 0, at
	for count != n.most {
		length := n.class.match(text, end)
		if length == 0 {
			break
		}
		end += length
		count++
	}
	if count < n.least {
		return -1
	}
	if n.possessive || n.next.atom == atomAccept && n.next.next == nil {
		return n.next.match(text, end)
	}
	for {
		if reached := n.next.match(text, end); reached >= 0 {
			return reached
		}
		if count == n.least {
			return -1
		}
		_, size := utf8.DecodeLastRune(text[at:end])
		end -= size
		count--
	}
}

// prepare fills in what a group's branches begin with.
func (n *node) prepare() error {
	for ; n != nil; n = n.next {
		for _, branch := range n.branches {
			if err := branch.prepare(); err != nil {
				return err
			}
			for b := range n.first {
				n.first[b] = n.first[b] || branch.mayBeginWith(byte(b))
			}
		}
		if n.atom == atomJoin {
			return nil
		}
	}
	return nil
}

func (n *node) mayBeginWith(b byte) bool {
	switch n.atom {
	case atomClass:
		return b >= utf8.RuneSelf || n.class.ascii[b] || n.least == 0 && n.next.mayBeginWith(b)
	case atomGroup:
		for _, branch := range n.branches {
			if branch.mayBeginWith(b) {
				return true
			}
		}
		return n.least == 0 && n.next.mayBeginWith(b)
	}
	return true
}

// patternReader parses. Nodes are made from the end to the beginning of a sequence, since each knows what follows it.
type patternReader struct {
	rest  string
	fold  bool              // (?i: is open
	known map[string]*class // by how they are written
}

func (r *patternReader) alternatives(end *node) ([]*node, error) {
	var branches []*node
	for {
		branch, err := r.sequence(end)
		if err != nil {
			return nil, err
		}
		branches = append(branches, branch)
		if !strings.HasPrefix(r.rest, "|") {
			return branches, nil
		}
		r.rest = r.rest[1:]
	}
}

func (r *patternReader) sequence(end *node) (*node, error) {
	var steps []*node
	for r.rest != "" && r.rest[0] != '|' && r.rest[0] != ')' {
		step, err := r.step()
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	for i := len(steps) - 1; i >= 0; i-- {
		steps[i].next = end
		if steps[i].join != nil {
			steps[i].join.next = end
		}
		end = steps[i]
	}
	return end, nil
}

func (r *patternReader) step() (*node, error) {
	var step *node
	switch {
	case strings.HasPrefix(r.rest, "("):
		group, err := r.group()
		if err != nil {
			return nil, err
		}
		step = group
	case strings.HasPrefix(r.rest, "$"):
		r.rest = r.rest[1:]
		return &node{atom: atomEnd}, nil
	case strings.ContainsAny(r.rest[:1], "^*+?{"):
		return nil, fmt.Errorf("%q is not understood", r.rest)
	default:
		class, err := r.class()
		if err != nil {
			return nil, err
		}
		step = &node{atom: atomClass, class: class}
	}
	return step, r.quantifier(step)
}

func (r *patternReader) quantifier(step *node) error {
	step.least, step.most = 1, 1
	given := r.rest
	switch {
	case strings.HasPrefix(r.rest, "?"):
		step.least = 0
		r.rest = r.rest[1:]
	case strings.HasPrefix(r.rest, "*"):
		step.least, step.most = 0, -1
		r.rest = r.rest[1:]
	case strings.HasPrefix(r.rest, "+"):
		step.most = -1
		r.rest = r.rest[1:]
	case strings.HasPrefix(r.rest, "{"):
		if err := r.bounds(step); err != nil {
			return err
		}
	default:
		return nil
	}
	if strings.HasPrefix(r.rest, "?") {
		return fmt.Errorf("lazy quantifier %q is not supported", given)
	}
	if strings.HasPrefix(r.rest, "+") {
		step.possessive = true
		r.rest = r.rest[1:]
	}
	if step.atom != atomClass && (step.most != 1 || step.possessive || step.atom != atomGroup) {
		return fmt.Errorf("a repeated group before %q is not supported", given)
	}
	return nil
}

// bounds reads {n}, {n,} or {n,m}.
func (r *patternReader) bounds(step *node) error {
	inside, rest, closed := strings.Cut(r.rest[1:], "}")
	low, high, ranged := strings.Cut(inside, ",")
	least, err := strconv.ParseUint(low, 10, 16)
	if !closed || err != nil {
		return fmt.Errorf("quantifier %q is not understood", r.rest)
	}
	step.least, step.most = int(least), int(least)
	if ranged && high == "" {
		step.most = -1
	} else if ranged {
		most, err := strconv.ParseUint(high, 10, 16)
		if err != nil || most < least {
			return fmt.Errorf("quantifier %q is not understood", r.rest)
		}
		step.most = int(most)
	}
	r.rest = rest
	return nil
}

// group reads (…), (?:…), (?i:…), (?=…) and (?!…).
func (r *patternReader) group() (*node, error) {
	step, fold := &node{atom: atomGroup}, r.fold
	switch {
	case strings.HasPrefix(r.rest, "(?:"):
		r.rest = r.rest[3:]
	case strings.HasPrefix(r.rest, "(?i:"):
		r.rest, r.fold = r.rest[4:], true
	case strings.HasPrefix(r.rest, "(?="):
		r.rest, step.atom = r.rest[3:], atomAhead
	case strings.HasPrefix(r.rest, "(?!"):
		r.rest, step.atom = r.rest[3:], atomNotAhead
	case strings.HasPrefix(r.rest, "(?"):
		return nil, fmt.Errorf("group %q is not supported", r.rest)
	default:
		r.rest = r.rest[1:]
	}
	end := &node{atom: atomJoin}
	if step.atom == atomGroup {
		step.join = end
	}
	branches, err := r.alternatives(end)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(r.rest, ")") {
		return nil, fmt.Errorf("a group is not closed before %q", r.rest)
	}
	r.rest, r.fold = r.rest[1:], fold
	step.branches = branches
	return step, nil
}

// class reads one character, an escape, or a class in brackets.
func (r *patternReader) class() (*class, error) {
	var in func(rune) bool
	var err error
	given := r.rest
	single := rune(-1)
	switch {
	case strings.HasPrefix(r.rest, "["):
		r.rest = r.rest[1:]
		in, err = r.bracket()
	case strings.HasPrefix(r.rest, "."):
		r.rest = r.rest[1:]
		in = func(c rune) bool { return c != '\n' }
	case strings.HasPrefix(r.rest, `\`):
		in, single, err = r.escape()
	default:
		single = r.rune()
	}
	if err != nil {
		return nil, err
	}
	if in == nil {
		return newCharacter(single, r.fold), nil
	}
	if r.fold {
		return newClass(folded(in)), nil
	}
	key := given[:len(given)-len(r.rest)]
	if r.known[key] == nil {
		r.known[key] = newClass(in)
	}
	return r.known[key], nil
}

func (r *patternReader) rune() rune {
	c, size := utf8.DecodeRuneInString(r.rest)
	r.rest = r.rest[size:]
	return c
}

func only(c rune) func(rune) bool { return func(other rune) bool { return other == c } }

// folded is the class whatever the case.
func folded(in func(rune) bool) func(rune) bool {
	return func(c rune) bool {
		if in(c) {
			return true
		}
		for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
			if in(other) {
				return true
			}
		}
		return false
	}
}

// bracket reads the inside of a class and its closing bracket; && is an intersection.
func (r *patternReader) bracket() (func(rune) bool, error) {
	negated := strings.HasPrefix(r.rest, "^")
	if negated {
		r.rest = r.rest[1:]
	}
	var parts []func(rune) bool
	var whole func(rune) bool
	for {
		switch {
		case r.rest == "":
			return nil, fmt.Errorf("a class is not closed")
		case r.rest[0] == ']' && (len(parts) > 0 || whole != nil):
			r.rest = r.rest[1:]
			in := both(whole, anyOf(parts))
			if negated {
				return func(c rune) bool { return !in(c) }, nil
			}
			return in, nil
		case strings.HasPrefix(r.rest, "&&"):
			r.rest = r.rest[2:]
			whole, parts = both(whole, anyOf(parts)), nil
		default:
			part, err := r.member()
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
}

func anyOf(parts []func(rune) bool) func(rune) bool {
	return func(c rune) bool {
		for _, in := range parts {
			if in(c) {
				return true
			}
		}
		return false
	}
}

func both(one, other func(rune) bool) func(rune) bool {
	if one == nil {
		return other
	}
	return func(c rune) bool { return one(c) && other(c) }
}

// member reads one member of a class: a nested class, an escape, a character, or a range.
func (r *patternReader) member() (func(rune) bool, error) {
	if strings.HasPrefix(r.rest, "[:") {
		return nil, fmt.Errorf("class %q is not supported", r.rest)
	}
	if strings.HasPrefix(r.rest, "[") {
		r.rest = r.rest[1:]
		return r.bracket()
	}
	low, in, err := r.end()
	if err != nil || in != nil {
		return in, err
	}
	if !strings.HasPrefix(r.rest, "-") || strings.HasPrefix(r.rest, "-]") {
		return only(low), nil
	}
	r.rest = r.rest[1:]
	high, in, err := r.end()
	if err != nil {
		return nil, err
	}
	if in != nil || high < low {
		return nil, fmt.Errorf("a range is not understood before %q", r.rest)
	}
	return func(c rune) bool { return low <= c && c <= high }, nil
}

// end reads one end of a range, or a class escape.
func (r *patternReader) end() (rune, func(rune) bool, error) {
	if r.rest == "" {
		return 0, nil, fmt.Errorf("a class is not closed")
	}
	if r.rest[0] != '\\' {
		return r.rune(), nil, nil
	}
	in, single, err := r.escape()
	return single, in, err
}

// escape reads a class escape, or a character written as an escape.
func (r *patternReader) escape() (func(rune) bool, rune, error) {
	if len(r.rest) < 2 {
		return nil, 0, fmt.Errorf(`a lone \ ends the expression`)
	}
	given := r.rest
	r.rest = r.rest[1:]
	switch c := r.rune(); c {
	case 's':
		return unicode.IsSpace, 0, nil
	case 'S':
		return func(c rune) bool { return !unicode.IsSpace(c) }, 0, nil
	case 'd':
		return isDigit, 0, nil
	case 'D':
		return func(c rune) bool { return !isDigit(c) }, 0, nil
	case 'w':
		return inWord, 0, nil
	case 'W':
		return func(c rune) bool { return !inWord(c) }, 0, nil
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 't':
		return nil, '\t', nil
	case 'f':
		return nil, '\f', nil
	case 'v':
		return nil, '\v', nil
	case 'p', 'P':
		in, err := r.property(c == 'P')
		return in, 0, err
	case 'x', 'u':
		single, err := r.hex(c)
		return nil, single, err
	default:
		if c < utf8.RuneSelf && !inWord(c) {
			return nil, c, nil
		}
	}
	return nil, 0, fmt.Errorf("escape %q is not supported", given)
}

// property reads {L}, {^L}, {Han} or L after \p.
func (r *patternReader) property(negated bool) (func(rune) bool, error) {
	var name string
	if strings.HasPrefix(r.rest, "{") {
		inside, rest, closed := strings.Cut(r.rest[1:], "}")
		if !closed {
			return nil, fmt.Errorf("property %q is not closed", r.rest)
		}
		name, r.rest = inside, rest
	} else if r.rest != "" {
		name = string(r.rune())
	}
	if strings.HasPrefix(name, "^") {
		name, negated = name[1:], !negated
	}
	table, ok := unicode.Categories[name]
	if !ok {
		table, ok = unicode.Scripts[name]
	}
	if !ok {
		return nil, fmt.Errorf("property %q is not known", name)
	}
	more := newer[name]
	return func(c rune) bool { return (unicode.Is(table, c) || more != nil && unicode.Is(more, c)) != negated }, nil
}

// hex reads xHH, x{H…} and uHHHH.
func (r *patternReader) hex(kind rune) (rune, error) {
	digits := ""
	switch {
	case strings.HasPrefix(r.rest, "{"):
		inside, rest, _ := strings.Cut(r.rest[1:], "}")
		digits, r.rest = inside, rest
	case kind == 'x' && len(r.rest) >= 2:
		digits, r.rest = r.rest[:2], r.rest[2:]
	case kind == 'u' && len(r.rest) >= 4:
		digits, r.rest = r.rest[:4], r.rest[4:]
	}
	value, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || value > unicode.MaxRune {
		return 0, fmt.Errorf("escape before %q is not understood", r.rest)
	}
	return rune(value), nil
}

// inWord says whether c is of \w as Oniguruma has it: letters, marks, numbers and connectors.
func inWord(c rune) bool {
	return unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.Pc) || unicode.In(c, newer["L"], newer["M"], newer["N"])
}

func isDigit(c rune) bool { return unicode.IsDigit(c) || unicode.Is(newer["Nd"], c) }

// class is a set of characters, as a table where most text is.
type class struct {
	ascii  [utf8.RuneSelf]bool
	lower  []uint64 // a bit for each character below lowerEnd; nil for a single character
	beyond func(rune) bool
}

const lowerEnd = 1 << 16

func newClass(in func(rune) bool) *class {
	c := &class{lower: make([]uint64, lowerEnd/64), beyond: in}
	for r := range rune(lowerEnd) {
		if in(r) {
			c.lower[r/64] |= 1 << (r % 64)
		}
	}
	for r := range c.ascii {
		c.ascii[r] = in(rune(r))
	}
	return c
}

// newCharacter is the class of one character, in every case if fold is set.
func newCharacter(single rune, fold bool) *class {
	in := only(single)
	if fold {
		in = folded(in)
	}
	c := &class{beyond: in}
	for r := range c.ascii {
		c.ascii[r] = in(rune(r))
	}
	return c
}

// match returns the length in bytes of the character at at if it is in the class, and 0 if not.
func (c *class) match(text []byte, at int) int {
	if at >= len(text) {
		return 0
	}
	if b := text[at]; b < utf8.RuneSelf {
		if c.ascii[b] {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRune(text[at:])
	if r < lowerEnd && c.lower != nil {
		return size * int(c.lower[r/64]>>(r%64)&1)
	}
	if c.beyond(r) {
		return size
	}
	return 0
}

func runeLength(text []byte) int {
	if text[0] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRune(text)
	return size
}
