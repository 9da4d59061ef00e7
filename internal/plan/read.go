package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Read takes the settings of a spec file. name is the file's, for faults, which Spec returns with all others. JSON is read
// too, being YAML.
func (d *Draft) Read(name string, data []byte) {
	d.name = name
	file, err := parse(data)
	if err != nil {
		d.syntaxFault(err)
		return
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.NullType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
	case 1:
		d.unreadable = !isMapping(bodies[0])
		d.section(bodies[0], "", "the file")
	default:
		d.unreadable = true
		d.fault(at(bodies[1]), "", "has more than one document", "keep one spec in a file")
	}
}

// parse reads YAML. Note: the parser panics on some broken input; here that is a fault like any other.
func parse(data []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("cannot be read as YAML")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

func isMapping(node ast.Node) bool {
	return node.Type() == ast.MappingType || node.Type() == ast.MappingValueType
}

func (d *Draft) syntaxFault(err error) {
	d.unreadable = true
	f := Fault{File: d.name, Reason: err.Error()}
	if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		f.Reason = "is not YAML: " + syntax.Message
		if syntax.Token != nil && syntax.Token.Position != nil {
			f.Line, f.Column = syntax.Token.Position.Line, syntax.Token.Position.Column
		}
	}
	d.faults = append(d.faults, f)
}

func at(node ast.Node) origin { return tokenAt(node.GetToken()) }

func tokenAt(t *token.Token) origin {
	if t == nil || t.Position == nil {
		return origin{}
	}
	return origin{line: t.Position.Line, column: t.Position.Column}
}

// pair is one key of a mapping and its value.
type pair struct {
	name  string
	at    origin
	value ast.Node
}

// pairs returns the entries of a mapping, without those whose key is no text or a second one of its name.
func (d *Draft) pairs(node ast.Node, prefix, what string) (list []pair) {
	var entries []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		d.fault(at(node), strings.TrimSuffix(prefix, "."), fmt.Sprintf("%s must have keys and values, got %s", what, shown(node)), "")
		return nil
	}
	lines := map[string]int{}
	for _, e := range entries {
		from := at(e.Key)
		name, _, ok := scalar(e.Key)
		if !ok {
			d.fault(from, strings.TrimSuffix(prefix, "."), "has a key that is "+shown(e.Key), "anchors, aliases and merges are not read")
			continue
		}
		if line, twice := lines[name]; twice {
			d.fault(from, prefix+name, fmt.Sprintf("is given twice, first on line %d", line), "")
			continue
		}
		lines[name] = from.line
		list = append(list, pair{name, from, e.Value})
	}
	return list
}

// section reads the keys below prefix, "" or "load.".
func (d *Draft) section(node ast.Node, prefix, what string) {
	for _, p := range d.pairs(node, prefix, what) {
		path := prefix + p.name
		k, known := find(specKeys, path)
		switch {
		case slices.Contains(mapKeys, path):
			d.texts(path, p)
		case path == "load.stages":
			readList(d, p, path, stageKeys, "the stage", "begin each stage with a dash")
		case path == "workload.classes":
			readList(d, p, path, classKeys, "the class", "begin each class with a dash")
		case known && isTexts(k.field(new(Spec))):
			d.entries(path, p)
		case known:
			d.value(path, p, k.field(new(Spec)))
		case isSection(path):
			d.file = append(d.file, setting{path: path, from: p.at})
			if p.value.Type() != ast.NullType {
				d.section(p.value, path+".", "the section")
			}
		default:
			d.fault(p.at, path, "is not a key", unknownHint(p.name, prefix, below(prefix)))
		}
	}
}

// texts reads a map of texts.
func (d *Draft) texts(path string, p pair) {
	_, what, _ := strings.Cut(path, ".")
	for _, h := range d.pairs(p.value, path+".", "the "+what) {
		text, _, ok := scalar(h.value)
		if !ok {
			d.fault(h.at, path+"."+h.name, "must be text, got "+kindOf(h.value), "")
			continue
		}
		d.file = append(d.file, setting{path + "." + h.name, text, h.at})
	}
}

// entries takes the texts of a list, or a single one.
func (d *Draft) entries(path string, p pair) {
	values := []ast.Node{p.value}
	if list, ok := p.value.(*ast.SequenceNode); ok {
		values = list.Values
	}
	d.file = append(d.file, setting{path: path, from: p.at})
	n := 0
	for _, value := range values {
		text, _, ok := scalar(value)
		if !ok {
			d.fault(at(value), path, "must be a list of texts, got "+kindOf(value), "")
			continue
		}
		for _, entry := range entriesOf(text) {
			d.file = append(d.file, setting{itemPath(path, n), entry, at(value)})
			n++
		}
	}
}

func readList[T any](d *Draft, p pair, name string, keys []key[T], what, hint string) {
	d.file = append(d.file, setting{path: name, from: p.at})
	list, ok := p.value.(*ast.SequenceNode)
	if !ok {
		d.fault(p.at, name, "must be a list, got "+shown(p.value), hint)
		return
	}
	for i, node := range list.Values {
		path := itemPath(name, i)
		d.file = append(d.file, setting{path: path, from: at(node)})
		for _, e := range d.pairs(node, path+".", what) {
			k, known := find(keys, e.name)
			if !known {
				d.fault(e.at, path+"."+e.name, "is not a key", unknownHint(e.name, "", names(keys)))
				continue
			}
			if field := k.field(new(T)); isTexts(field) {
				d.entries(path+"."+e.name, e)
			} else {
				d.value(path+"."+e.name, e, field)
			}
		}
	}
}

// value takes a scalar for a key whose value has the type of field.
func (d *Draft) value(path string, p pair, field any) {
	text, isText, ok := scalar(p.value)
	_, wantsText := field.(*string)
	switch {
	case p.value.Type() == ast.NullType:
		d.fault(p.at, path, "has no value", "leave the key out for its default")
	case !ok:
		d.fault(p.at, path, "must be a single value, got "+kindOf(p.value), "")
	case wantsText && !isText:
		d.fault(p.at, path, "must be text, got "+shown(p.value), "put it in quotes")
	default:
		d.file = append(d.file, setting{path, text, p.at})
	}
}

// scalar returns the text of a single value, and whether YAML takes it for text.
func scalar(node ast.Node) (text string, isText, ok bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true, true
	case *ast.LiteralNode:
		return n.Value.Value, true, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, false, true
	}
	return "", false, false
}

// shown names what a node is, and its value where that is short.
func shown(node ast.Node) string {
	if text, isText, ok := scalar(node); ok && !isText {
		return kindOf(node) + " " + shortened(text)
	}
	return kindOf(node)
}

// kindOf names what a node is.
func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number"
	case *ast.BoolNode:
		return "the truth value"
	case *ast.NullNode:
		return "nothing"
	}
	return "an anchor, alias or tag"
}

func isSection(path string) bool {
	_, ok := find(specKeys, path)
	return !ok && path != "" && len(below(path+".")) > 0
}

// below lists the names right below prefix, of keys and of sections.
func below(prefix string) (list []string) {
	for _, k := range specKeys {
		if rest, ok := strings.CutPrefix(k.name, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}
