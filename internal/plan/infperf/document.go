package infperf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tare/internal/plan"
)

// node is a value of the config and where it stands.
type node struct {
	line, column int
	text         string  // of a single value, as written
	single       bool    // it is a single value
	bare         bool    // a number, true or false, and no text in quotes
	list         []*node // of a list
	isList       bool
	keys         []entry // of keys and values, in their order
	isMap        bool
}

type entry struct {
	name string
	at   *node // the key's place
	node *node
}

// child returns the value of a key; nil where it is not given, or null.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.keys {
		if e.name == name {
			return e.node
		}
	}
	return nil
}

// parse reads the config; a nil node is an empty one.
func parse(name string, data []byte) (root *node, faults plan.Faults) {
	file, err := parseYAML(data)
	if err != nil {
		f := plan.Fault{File: name, Reason: err.Error()}
		if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			f.Reason = "is not YAML: " + syntax.Message
			if syntax.Token != nil && syntax.Token.Position != nil {
				f.Line, f.Column = syntax.Token.Position.Line, syntax.Token.Position.Column
			}
		}
		return nil, plan.Faults{f}
	}
	r := reader{name: name, anchors: map[string]*node{}}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		n := r.read(doc.Body, "")
		if root != nil && n != nil {
			r.fault(doc.Body, "", "has more than one document")
			continue
		}
		root = n
	}
	if root != nil && !root.isMap {
		r.faults = append(r.faults, plan.Fault{File: name, Line: root.line, Reason: "must have keys and values"})
		root = nil
	}
	return root, r.faults
}

// parseYAML reads YAML. Note: the parser panics on some broken input; here that is an error like any other.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("cannot be read as YAML")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

// reader makes nodes of YAML, with anchors put in place.
type reader struct {
	name    string
	anchors map[string]*node
	faults  plan.Faults
}

func (r *reader) fault(at ast.Node, path, reason string) {
	f := plan.Fault{File: r.name, Key: path, Reason: reason}
	if t := at.GetToken(); t != nil && t.Position != nil {
		f.Line, f.Column = t.Position.Line, t.Position.Column
	}
	r.faults = append(r.faults, f)
}

func (r *reader) read(from ast.Node, path string) *node {
	n := place(from)
	switch v := from.(type) {
	case *ast.NullNode:
		return nil
	case *ast.MappingNode:
		r.entries(n, v.Values, path)
	case *ast.MappingValueNode:
		r.entries(n, []*ast.MappingValueNode{v}, path)
	case *ast.SequenceNode:
		n.isList = true
		for i, value := range v.Values {
			n.list = append(n.list, r.read(value, fmt.Sprintf("%s[%d]", path, i)))
		}
	case *ast.AnchorNode:
		value := r.read(v.Value, path)
		r.anchors[v.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		name := v.Value.GetToken().Value
		value, known := r.anchors[name]
		if !known {
			r.fault(from, path, "stands for the anchor "+name+", which is not before it")
		}
		return value
	default:
		switch from.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			n.bare = true
		}
		if n.text, n.single = scalar(from); !n.single {
			r.fault(from, path, "is a tag or another thing that is not read")
			return nil
		}
	}
	return n
}

func (r *reader) entries(n *node, values []*ast.MappingValueNode, path string) {
	n.isMap = true
	lines := map[string]int{}
	for _, v := range values {
		name, ok := scalar(v.Key)
		at := join(path, name)
		switch {
		case !ok:
			r.fault(v.Key, path, "has a key that is no text")
			continue
		case lines[name] > 0:
			r.fault(v.Key, at, fmt.Sprintf("is given twice, first on line %d", lines[name]))
			continue
		}
		key := place(v.Key)
		lines[name] = key.line
		value := r.read(v.Value, at)
		if value != nil && value.single {
			value.line, value.column = key.line, key.column
		}
		n.keys = append(n.keys, entry{name, key, value})
	}
}

func place(from ast.Node) *node {
	n := new(node)
	if t := from.GetToken(); t != nil && t.Position != nil {
		n.line, n.column = t.Position.Line, t.Position.Column
	}
	return n
}

func scalar(from ast.Node) (text string, ok bool) {
	switch v := from.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value, true
	}
	return "", false
}

// number reads a single value as a number; ok is false where it is none.
func (n *node) number() (v float64, ok bool) {
	if n == nil || !n.single {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(n.text), 64)
	return v, err == nil
}

// jsonOr is a value as JSON, or what stands for one that is not given.
func (n *node) jsonOr(otherwise string) []byte {
	if n == nil {
		return []byte(otherwise)
	}
	return n.json(nil)
}

// json writes a value as JSON.
func (n *node) json(dst []byte) []byte {
	quote := func(text string) []byte {
		quoted, _ := json.Marshal(text) // text always can be
		return quoted
	}
	switch {
	case n == nil:
		return append(dst, "null"...)
	case n.isList:
		dst = append(dst, '[')
		for i, item := range n.list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.json(dst)
		}
		return append(dst, ']')
	case n.isMap:
		dst = append(dst, '{')
		for i, e := range n.keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.node.json(append(append(dst, quote(e.name)...), ':'))
		}
		return append(dst, '}')
	case n.bare && json.Valid([]byte(strings.ToLower(n.text))):
		return append(dst, strings.ToLower(n.text)...)
	}
	return append(dst, quote(n.text)...)
}

// idle says that a value is one that a config dumped with all its keys has for nothing: null, false, 0, an empty text or list.
func (n *node) idle() bool {
	if n == nil {
		return true
	}
	if v, ok := n.number(); ok && v == 0 {
		return true
	}
	return n.single && (n.text == "" || strings.EqualFold(n.text, "false")) || n.isList && len(n.list) == 0 || n.isMap && len(n.keys) == 0
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
