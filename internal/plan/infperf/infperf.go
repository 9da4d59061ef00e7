// Package infperf reads a config of inference-perf and says in the words of our spec what it asks for. What cannot be had is
// refused by name, all of it at once; what has no effect on the load is noted. docs/inference-perf.md has every key.
package infperf

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/plan"
)

// Around is what the reader cannot know from the config alone.
type Around struct {
	Exists func(path string) bool // whether there is a file or folder of that name
	Time   string                 // for {timestamp}; empty for none, which leaves such a path out
}

// Config is what a config comes to.
type Config struct {
	Settings []plan.Setting
	Notes    []plan.Fault // what is accepted and is not as there: no mistakes
	Faults   plan.Faults
}

// Detect says that a file is such a config, by its sections. A file that cannot be read is none.
func Detect(data []byte) bool {
	root, _ := parse("", data)
	if root == nil {
		return false
	}
	ours := func(e entry) bool { return slices.Contains([]string{"target", "workload", "client", "out"}, e.name) }
	theirs := func(e entry) bool {
		return e.name != "load" && slices.Contains(below(""), e.name)
	}
	return slices.ContainsFunc(root.keys, theirs) && !slices.ContainsFunc(root.keys, ours)
}

// Read reads a config; name is the file's.
func Read(name string, data []byte, around Around) Config {
	c := converter{name: name, around: around}
	c.root, c.Faults = parse(name, data)
	if c.root != nil {
		c.walk(c.root, "")
		c.target()
		c.workload()
		c.load()
		c.answers()
		c.storage()
		c.goodput()
		c.metrics()
	}
	c.note(nil, "", "temperature 0 and top_p 1 are sent, which inference-perf leaves to the server")
	slices.SortStableFunc(c.Notes, func(a, b plan.Fault) int { return a.Line - b.Line })
	return c.Config
}

// converter gathers what a config comes to.
type converter struct {
	Config
	name   string
	around Around
	root   *node
}

// get returns the value at a path of names; nil where it is not given.
func (c *converter) get(path string) *node {
	n := c.root
	for name := range strings.SplitSeq(path, ".") {
		n = n.child(name)
	}
	return n
}

// text returns the single value at a path, or what stands for it if it is not given.
func (c *converter) text(path, otherwise string) string {
	if n := c.get(path); n != nil && n.single {
		return n.text
	}
	return otherwise
}

// set gives a key of our spec a value that stands at a node; nil for none.
func (c *converter) set(key, value string, at *node) {
	s := plan.Setting{Key: key, Value: value}
	if at != nil {
		s.Line, s.Column = at.line, at.column
	}
	c.Settings = append(c.Settings, s)
}

// pass gives our key the value of theirs, if it is given.
func (c *converter) pass(key, path string) {
	if n := c.get(path); n != nil && n.single && n.text != "" {
		c.set(key, n.text, n)
	}
}

func (c *converter) at(n *node, path, reason, hint string) plan.Fault {
	f := plan.Fault{File: c.name, Key: path, Reason: reason, Hint: hint}
	if n != nil {
		f.Line, f.Column = n.line, n.column
	}
	return f
}

func (c *converter) fault(n *node, path, reason, hint string) {
	c.Faults = append(c.Faults, c.at(n, path, reason, hint))
}

func (c *converter) note(n *node, path, text string) {
	c.Notes = append(c.Notes, c.at(n, path, text, ""))
}

// walk meets every key with the table.
func (c *converter) walk(n *node, path string) {
	for i, item := range n.list {
		if item != nil {
			c.item(item, item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	for _, e := range n.keys {
		c.item(e.at, e.node, join(path, e.name))
	}
}

func (c *converter) item(at, value *node, path string) {
	k, inside := find(path)
	if k == nil && !inside && !strings.HasSuffix(path, "]") {
		c.fault(at, path, "is not a key of inference-perf", "the keys here are "+strings.Join(below(parent(path)), ", "))
		return
	}
	if value == nil {
		return
	}
	switch {
	case k == nil && value.isList != isList(path):
		c.fault(at, path, map[bool]string{true: "must be a list", false: "must have keys and values"}[isList(path)], "")
	case k == nil && value.single:
		c.fault(at, path, "must have keys and values", "")
	case k == nil:
		c.walk(value, path)
	case k.use == works && !k.open && !value.single:
		c.fault(at, path, "must be a single value", "")
	case k.use == refused && !value.idle():
		c.fault(at, path, "is refused: "+k.about, k.hint)
	case k.use == idle && !value.single && !k.open:
		c.fault(at, path, "must be a single value", "")
	case k.use == idle:
		c.note(at, path, "has no effect: "+k.about)
	}
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i]
	}
	return ""
}

// choice meets a value that must be one of a few.
func (c *converter) choice(path, otherwise string, values ...string) string {
	v := c.text(path, otherwise)
	if !slices.Contains(values, v) {
		c.fault(c.get(path), path, fmt.Sprintf("must be one of %s, got %q", strings.Join(values, ", "), v), "")
		return ""
	}
	return v
}

// truth reads a value that is true or false.
func (c *converter) truth(path string, otherwise bool) bool {
	n := c.get(path)
	if n == nil || !n.single {
		return otherwise
	}
	switch strings.ToLower(n.text) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	c.fault(n, path, fmt.Sprintf("must be true or false, got %q", n.text), "")
	return otherwise
}
