package infperf

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// recorded are sessions of a recording, each call of which waits for those that it came after.
func (c *converter) recorded(kind string) {
	section := "data." + kind
	if c.text("load.type", "constant") != "trace_session_replay" {
		c.fault(c.get("data.type"), "data.type", kind+" needs load.type trace_session_replay", "")
	}
	c.files(section, strings.TrimSuffix(kind, "_trace_replay"))
	c.models(section)
	c.pass("workload.trace.min_sessions", section+".duplicate_sessions_target")
	if n := c.get(section + ".inject_random_session_id"); n != nil && c.truth(section+".inject_random_session_id", false) {
		c.set("workload.cache", "cold", n)
	}
	if kind == "otel_trace_replay" {
		c.spans(section)
	} else {
		c.agents(section)
	}
	c.words("random")
}

// files are those of a recording: a folder, a file, or a pattern.
func (c *converter) files(section, format string) {
	found := func(n *node) {
		c.set("workload.trace.file", n.text, n)
		c.set("workload.trace.format", format, c.get("data.type"))
		c.set("workload.trace.sessions", "true", c.get("data.type"))
	}
	folder, files := c.get(section+".trace_directory"), c.get(section+".trace_files")
	switch {
	case !folder.idle() && !files.idle():
		c.fault(files, section+".trace_files", "does not go with trace_directory", "leave one of them out")
	case !folder.idle():
		found(folder)
	case files.idle():
		if c.get(section + ".hf_dataset_path").idle() {
			c.fault(c.get("data.type"), section, "needs trace_directory or trace_files", "")
		}
	case !files.isList || len(files.list) != 1 || files.list[0] == nil || !files.list[0].single:
		c.fault(files, section+".trace_files", "must be a list of one file or pattern", "put several into a folder, and set trace_directory")
	default:
		found(files.list[0])
	}
}

// models say what recorded models are called here.
func (c *converter) models(section string) {
	static := c.get(section + ".static_model_name")
	switch {
	case !c.truth(section+".use_static_model", false):
		c.pairs("workload.trace.models", section+".model_mapping")
	case static.idle():
		c.fault(c.get(section+".use_static_model"), section+".static_model_name", "is missing: use_static_model needs it", "")
	default:
		c.set("target.model", static.text, static)
	}
}

// pairs writes a map as pairs.
func (c *converter) pairs(key, path string) {
	n := c.get(path)
	if n.idle() {
		return
	}
	var words []string
	for _, e := range n.keys {
		if e.node == nil || !e.node.single || strings.ContainsAny(e.name+e.node.text, " \t=") {
			c.fault(e.at, path+"."+e.name, "must be a text, and both without spaces and =", "")
			continue
		}
		words = append(words, e.name+"="+e.node.text)
	}
	if len(words) > 0 {
		c.set(key, strings.Join(words, " "), n)
	}
}

// spans are calls of OpenTelemetry's.
func (c *converter) spans(section string) {
	c.filter(section + ".filter")
	output := c.get(section + ".default_max_tokens")
	if output == nil {
		c.set("workload.output_tokens", "1000", nil)
	} else {
		c.set("workload.output_tokens", output.text, output)
	}
	c.longestGap(section+".max_wait_ms", 15000, 1e-3)
	if !c.truth(section+".include_errors", true) {
		c.fault(c.get(section+".include_errors"), section+".include_errors", "must be true: calls that failed when they were recorded are not left out", "")
	}
	history := "live"
	if c.truth(section+".disable_output_substitution", false) {
		history = "recorded"
	}
	c.set("workload.conversation.history", history, c.get(section+".disable_output_substitution"))
	c.pairs("workload.trace.headers", section+".attribute_to_header_map")
	labels := c.get(section + ".attribute_to_label_map")
	switch {
	case labels.idle():
	case !labels.isMap || len(labels.keys) > 1:
		c.fault(labels, section+".attribute_to_label_map", "must be one attribute: a request has one class", "keep the one by which you compare")
	default:
		c.set("workload.trace.class", labels.keys[0].name, labels)
	}
}

// counts is the one form of a filter that is understood: how many spans a trace has.
var counts = regexp.MustCompile(`^lambda (\w+): *len\((\w+)\[['"]spans['"]\]\) *(>=|<=|==|>|<) *(\d{1,6})$`)

func (c *converter) filter(path string) {
	n := c.get(path)
	if n.idle() {
		return
	}
	m := counts.FindStringSubmatch(strings.TrimSpace(n.text))
	if m == nil || m[1] != m[2] {
		c.fault(n, path, "is refused: no Python is run", "write lambda x: len(x['spans']) > N, or put the files that are meant into a folder")
		return
	}
	least, most := 0, 0
	switch number, _ := strconv.Atoi(m[4]); m[3] {
	case ">":
		least = number + 1
	case ">=":
		least = number
	case "<":
		most = number - 1
	case "<=":
		most = number
	default:
		least, most = number, number
	}
	if least > 0 {
		c.set("workload.trace.min_calls", strconv.Itoa(least), n)
	}
	if m[3] != ">" && m[3] != ">=" {
		c.set("workload.trace.max_calls", strconv.Itoa(most), n)
	}
	c.note(n, path, "counts the calls of models among the spans")
}

// longestGap cuts pauses to a number of units, in seconds.
func (c *converter) longestGap(path string, otherwise, unit float64) {
	v, ok := otherwise, true
	if n := c.get(path); n != nil {
		if v, ok = n.number(); !ok || v <= 0 || v*unit > 1e9 {
			c.fault(n, path, fmt.Sprintf("must be a number above 0, got %q", n.text), "")
			return
		}
	}
	c.set("workload.trace.max_gap", plain(math.Round(v*unit*1e9)/1e9)+"s", c.get(path))
}

// agents are conversations of agents, of which the lengths and the blocks are recorded.
func (c *converter) agents(section string) {
	gap, wait := section+".trace_idle_gap_cap_seconds", section+".max_wait_ms"
	longest, ok := c.get(gap).number()
	if !ok {
		longest = 60
	}
	if v, ok := c.get(wait).number(); ok && v < longest*1000 {
		c.longestGap(wait, 0, 1e-3)
	} else {
		c.longestGap(gap, 60, 1)
	}
	switch none, think := c.truth(section+".ignore_trace_delays", false), c.truth(section+".use_think_time_only", false); {
	case none:
		c.set("workload.trace.pauses", "none", c.get(section+".ignore_trace_delays"))
	case think:
		c.set("workload.trace.pauses", "think", c.get(section+".use_think_time_only"))
	}
	if n := c.get(section + ".default_block_size"); n != nil && n.text != "64" {
		c.fault(n, section+".default_block_size", fmt.Sprintf("must be 64, got %q", n.text), "workload.trace.block sets another size for all files")
	}
}
