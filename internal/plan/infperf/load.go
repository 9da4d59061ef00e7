package infperf

import (
	"fmt"
	"math"
	"strconv"
)

// load says when requests are sent.
func (c *converter) load() {
	c.seed()
	c.adapters()
	if n := c.get("load.trace"); !n.idle() && c.text("load.type", "constant") != "trace_replay" {
		c.note(n, "load.trace", "has no effect without load.type trace_replay")
	}
	kind := c.choice("load.type", "constant", "constant", "poisson", "trace_replay", "concurrent", "trace_session_replay")
	if n := c.get("load.sweep"); !n.idle() {
		c.sweep(kind)
		return
	}
	switch kind {
	case "constant":
		c.note(c.get("load.type"), "load.type", "constant is poisson here, as its gaps are random there (CV 1); --arrival constant makes them equal")
		c.rates()
	case "poisson":
		c.rates()
	case "concurrent":
		if n := c.get("load.worker_max_concurrency"); !n.idle() {
			c.note(n, "load.worker_max_concurrency", "has no effect on a concurrent load")
		}
		c.levels()
	case "trace_replay":
		c.replay()
	case "trace_session_replay":
		c.sessionStages()
	}
}

func (c *converter) seed() {
	for _, path := range []string{"load.base_seed", "data." + c.text("data.type", "mock") + ".seed"} {
		if n := c.get(path); n != nil {
			c.set("load.seed", n.text, n)
			return
		}
	}
	if c.text("data.type", "") == "conversation_replay" {
		c.set("load.seed", "42", nil)
	}
}

// adapters are classes that differ by their model.
func (c *converter) adapters() {
	const path = "load.lora_traffic_split"
	n := c.get(path)
	if n.idle() {
		return
	}
	sum := 0.0
	for i, a := range n.list {
		name, split := a.child("name"), a.child("split")
		at := fmt.Sprintf("%s[%d]", path, i)
		v, ok := split.number()
		if name == nil || !name.single || !ok {
			c.fault(a, at, "needs a name and a split", "")
			continue
		}
		sum += v
		class := fmt.Sprintf("workload.classes[%d].", i)
		c.set(class+"name", name.text, name)
		c.set(class+"model", name.text, name)
		c.set(class+"weight", split.text, split)
	}
	if math.Abs(sum-1) > 1e-6 {
		c.fault(n, path, fmt.Sprintf("the splits must add up to 1, got %v", sum), "")
	}
}

// stages calls make for every stage, with its place in both forms, and keeps the interval between them.
func (c *converter) stages(make func(stage *node, theirs, ours string)) {
	const path = "load.stages"
	n := c.get(path)
	if n.idle() || !n.isList {
		c.fault(n, path, "must be a list of stages, and is none", "")
		return
	}
	gap := c.interval()
	for i, stage := range n.list {
		theirs, ours := fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("load.stages[%d].", i)
		if stage == nil || !stage.isMap {
			c.fault(n, theirs, "must have keys and values", "")
			continue
		}
		make(stage, theirs, ours)
		if i > 0 {
			c.set(ours+"gap", gap, c.get("load.interval"))
		}
	}
}

// rates are open stages of exactly rate × duration requests.
func (c *converter) rates() {
	c.set("load.arrival", "poisson", c.get("load.type"))
	limit := c.limit()
	c.stages(func(stage *node, theirs, ours string) {
		rate, ok := c.positive(stage, theirs, "rate")
		duration, both := c.positive(stage, theirs, "duration")
		if !ok || !both {
			return
		}
		n := math.Floor(rate * duration)
		if n < 1 {
			c.fault(stage, theirs, fmt.Sprintf("has no request: rate × duration is %v", rate*duration), "")
			return
		}
		requests, whole := c.conversationsOf(n, stage, theirs+".duration")
		if !whole {
			return
		}
		c.set(ours+"rate", strconv.FormatFloat(rate*requests/n, 'f', -1, 64), stage.child("rate"))
		c.set(ours+"requests", strconv.FormatFloat(requests, 'f', 0, 64), stage.child("duration"))
		if limit > 0 {
			c.set(ours+"max_in_flight", strconv.Itoa(limit), c.get("load.worker_max_concurrency"))
		}
	})
}

// sweep is closed stages, from one request in flight to many: what the last ones get done is what the server bears. There, a burst is
// sent first, and open stages follow of rates up to what it is taken to say.
func (c *converter) sweep(kind string) {
	const path = "load.sweep"
	n := c.get(path)
	if kind != "constant" && kind != "poisson" {
		c.fault(n, path, "does not go with load.type "+kind, "leave it out")
		return
	}
	form := c.choice(path+".type", "", "geometric", "linear")
	stages, ok := c.countAt(n, path, "num_stages", 5)
	seconds, both := c.countAt(n, path, "stage_duration", 180)
	if form == "" || !ok || !both {
		return
	}
	most := 128.0
	if limit := c.limit(); limit > 0 {
		most = float64(limit)
	}
	level := 0.0
	for i := range int(stages) {
		part := 1.0
		if stages > 1 {
			part = float64(i) / (stages - 1)
		}
		next := math.Round(1 + part*(most-1))
		if form == "geometric" {
			next = math.Round(math.Pow(most, part))
		}
		level = max(level+1, next)
		stage := fmt.Sprintf("load.stages[%d].", i)
		c.set(stage+"concurrency", whole(level), n)
		c.set(stage+"duration", whole(seconds)+"s", n)
		if i > 0 {
			c.set(stage+"gap", c.interval(), c.get("load.interval"))
		}
	}
	c.note(n, path, fmt.Sprintf("is %v closed stages, from 1 to %v requests in flight: no rate is searched for, the last ones show what the server bears", stages, level))
}

// countAt reads a whole number of 1 or more and at most 1000, which a section may leave out.
func (c *converter) countAt(n *node, path, name string, otherwise float64) (v float64, ok bool) {
	child := n.child(name)
	if child == nil {
		return otherwise, true
	}
	if v, ok = child.number(); !ok || v < 1 || v != math.Trunc(v) || v > 1e6 || name == "num_stages" && v > 1000 {
		c.fault(child, path+"."+name, fmt.Sprintf("must be a whole number of 1 or more, got %q", child.text), "")
		return 0, false
	}
	return v, true
}

// interval is the time between two stages.
func (c *converter) interval() string {
	n := c.get("load.interval")
	if n == nil {
		return "1s"
	}
	if gap, ok := c.seconds(n, "load.interval"); ok {
		return gap
	}
	return "0s" // said already
}

// limit is the admission limit of a load with rates; 0 for none.
func (c *converter) limit() int {
	const path = "load.worker_max_concurrency"
	n := c.get(path)
	if n.idle() {
		return 0
	}
	each, ok := n.number()
	workers, known := c.get("load.num_workers").number()
	switch {
	case !ok || each < 1 || each != math.Trunc(each):
		c.fault(n, path, "must be a whole number of 1 or more", "")
	case !known || workers < 1:
		c.note(n, path, "is no limit, as load.num_workers is not given: --max-in-flight N sets one")
	default:
		c.note(n, path, fmt.Sprintf("at most %v requests are in flight, and the wait for that counts in latencies from due", workers*each))
		return int(workers * each)
	}
	return 0
}

// levels are closed stages.
func (c *converter) levels() {
	c.stages(func(stage *node, theirs, ours string) {
		n, ok := c.positive(stage, theirs, "num_requests")
		level, both := c.positive(stage, theirs, "concurrency_level")
		if !ok || !both {
			return
		}
		if requests, whole := c.conversationsOf(n, stage, theirs+".num_requests"); whole {
			c.set(ours+"concurrency", strconv.FormatFloat(level, 'f', -1, 64), stage.child("concurrency_level"))
			c.set(ours+"requests", strconv.FormatFloat(requests, 'f', -1, 64), stage.child("num_requests"))
		}
	})
}

// sessionStages are stages of recorded sessions.
func (c *converter) sessionStages() {
	if kind := c.text("data.type", "mock"); kind != "otel_trace_replay" && kind != "weka_trace_replay" {
		c.fault(c.get("load.type"), "load.type", "trace_session_replay needs data.type otel_trace_replay or weka_trace_replay", "")
		return
	}
	c.stages(func(stage *node, theirs, ours string) {
		level, ok := stage.child("concurrent_sessions").number()
		if !ok || level < 0 || level != math.Trunc(level) {
			c.fault(stage, theirs+".concurrent_sessions", "must be a whole number of 0 or more", "")
			return
		}
		timeout := stage.child("timeout")
		if level > 0 {
			c.set(ours+"concurrency", whole(level), stage.child("concurrent_sessions"))
		} else {
			c.set(ours+"rate", "1000000", stage.child("concurrent_sessions"))
			c.set(ours+"arrival", "constant", stage.child("concurrent_sessions"))
			if !timeout.idle() {
				c.note(timeout, theirs+".timeout", "has no effect where all sessions begin at once")
				timeout = nil
			}
		}
		if n := stage.child("num_sessions"); !n.idle() {
			c.set(ours+"requests", n.text, n)
		}
		if d, ok := "", false; !timeout.idle() {
			if d, ok = c.seconds(timeout, theirs+".timeout"); ok {
				c.set(ours+"duration", d, timeout)
			}
		}
		if n := stage.child("session_rate"); !n.idle() {
			if level == 0 {
				c.note(n, theirs+".session_rate", "has no effect where all sessions begin at once")
				return
			}
			c.set(ours+"start_rate", n.text, n)
			c.note(n, theirs+".session_rate", "holds for the first sessions: each later one begins as soon as another has ended")
		}
	})
}

// positive reads a number above 0 that a stage must have.
func (c *converter) positive(stage *node, path, name string) (v float64, ok bool) {
	n := stage.child(name)
	if n == nil {
		c.fault(stage, path, "needs "+name, "")
		return 0, false
	}
	if v, ok = n.number(); !ok || v <= 0 || v > 1e12 {
		c.fault(n, path+"."+name, fmt.Sprintf("must be a number above 0, got %q", n.text), "")
		return 0, false
	}
	return v, true
}

// replay sends at a trace's times.
func (c *converter) replay() {
	times, lengths := c.get("load.trace.file"), c.get("data.trace.file")
	switch {
	case times == nil:
		c.fault(c.get("load.type"), "load.trace.file", "is missing: trace_replay needs a trace", "")
	case lengths == nil:
		c.fault(times, "load.trace.file", "gives the times only, and a trace has its lengths too here", "set data.trace to the same file")
	case lengths.text != times.text:
		c.fault(lengths, "data.trace.file", "must be load.trace.file, "+times.text+": a trace has times and lengths", "")
	default:
		c.format("load.trace.format")
		if limit := c.limit(); limit > 0 {
			c.set("load.max_in_flight", strconv.Itoa(limit), c.get("load.worker_max_concurrency"))
		}
		if n := c.get("load.stages"); !n.idle() {
			c.note(n, "load.stages", "has no effect: the trace has the times")
		}
	}
}

// format checks the one format of traces.
func (c *converter) format(path string) { c.choice(path, "AzurePublicDataset", "AzurePublicDataset") }
