package plan

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/plan/dataset"
	"tare/internal/plan/trace"
)

const maxClasses = 1000

func classPath(i int) string { return itemPath("workload.classes", i) }

func formatNames[T ~string](formats []T) (names []string) {
	for _, f := range formats {
		names = append(names, string(f))
	}
	return names
}

// profile gives temperature and top_p what the sampling profile says, where they are not given.
func (w *Workload) profile(present presence) {
	if w.Sampling != SamplingProduct {
		return
	}
	if !present("workload.temperature", nil) {
		w.Temperature = 0.7
	}
	if !present("workload.top_p", nil) {
		w.TopP = 0.95
	}
}

// replay makes a load that has a trace and says nothing of its own arrivals that of the trace.
func (l *Load) replay(w *Workload, present presence) {
	for _, key := range []string{"load.arrival", "load.rate", "load.concurrency", "load.stages"} {
		if present(key, nil) {
			return
		}
	}
	if w.Trace.File != "" {
		l.Arrival = ArrivalTrace
	}
}

// replayed says that requests fall due as in the trace.
func (l *Load) replayed() bool { return l.Arrival == ArrivalTrace }

// columns reads "prompt=question output=answer"; reason says why it could not.
func (d *Dataset) columns() (c dataset.Columns, reason string) {
	for _, word := range strings.Fields(d.Columns) {
		name, column, _ := strings.Cut(word, "=")
		to := map[string]*string{
			"id": &c.ID, "prompt": &c.Prompt, "system": &c.System, "messages": &c.Messages, "output": &c.Output,
			"output_tokens": &c.OutputTokens, "tools": &c.Tools,
		}[name]
		if to == nil || column == "" {
			return c, fmt.Sprintf("must be pairs of a use and a column, got %q", shortened(word))
		}
		*to = column
	}
	return c, ""
}

// attributes reads "tenant.id=X-Tenant"; reason says why it could not.
func (t *Trace) attributes() (list []trace.Attribute, reason string) {
	for _, word := range strings.Fields(t.Headers) {
		name, header, _ := strings.Cut(word, "=")
		if name == "" {
			return nil, fmt.Sprintf("must be pairs of an attribute and a header, got %q", shortened(word))
		}
		if reason := headerFault(header, name); reason != "" {
			return nil, reason
		}
		list = append(list, trace.Attribute{Name: name, Header: header})
	}
	return list, ""
}

// models reads "gpt-4=mine other=m"; reason says why it could not.
func (t *Trace) models() (models map[string]string, reason string) {
	for _, word := range strings.Fields(t.Models) {
		from, to, _ := strings.Cut(word, "=")
		if from == "" || to == "" {
			return nil, fmt.Sprintf("must be pairs of a recorded model and one of the server's, got %q", shortened(word))
		}
		if models == nil {
			models = map[string]string{}
		}
		models[from] = to
	}
	return models, ""
}

// workloadCheck gathers the faults of keys that do not go together.
type workloadCheck struct {
	work    *Workload
	present presence
	faults  Faults
}

func (c *workloadCheck) fault(key, reason, hint string) {
	c.faults = append(c.faults, Fault{Key: key, Reason: reason, Hint: hint})
}

// excludes refuses keys beside another one.
func (c *workloadCheck) excludes(key string, others ...string) {
	for _, other := range others {
		k, _ := find(specKeys, other)
		if c.present(other, k.field(&Spec{Workload: *c.work})) {
			c.fault(other, "does not go with "+key, "leave one of them out")
		}
	}
}

// needs refuses keys without another one.
func (c *workloadCheck) needs(key string, has bool, others ...string) {
	if has {
		return
	}
	for _, other := range others {
		k, _ := find(specKeys, other)
		if field := k.field(&Spec{Workload: *c.work}); k.loose && c.present(other, field) {
			c.fault(other, "needs "+key, "")
		}
	}
}

// workloadFaults checks that the keys of the workload go together.
func (s *Spec) workloadFaults(present presence) Faults {
	w := &s.Workload
	c := workloadCheck{work: w, present: present}
	c.text()
	c.sources()
	c.classes()
	c.conversation()
	if l := &s.Load; l.replayed() {
		c.replay(l)
	} else {
		c.needs("load.arrival trace", false, "workload.trace.scale", "workload.trace.thin")
	}
	return c.faults
}

func (c *workloadCheck) text() {
	w := c.work
	exact := w.Text != TextWords
	if known := slices.Contains([]string{TextMarkov, TextCorpus, TextRandom, TextIDs}, w.Text); known && w.Tokenizer == "" {
		c.fault("workload.text", w.Text+" needs workload.tokenizer", "set it to the model's tokenizer.json, or to embedded, which is no model's")
	}
	if w.TextFile != "" && w.Text != TextMarkov && w.Text != TextCorpus {
		c.fault("workload.text_file", "goes with workload.text markov or corpus only, which is "+w.Text, "")
	}
	if w.ChatTemplate != "" && (w.Tokenizer == "" || !exact || w.Text == TextIDs) {
		c.fault("workload.chat_template", "needs workload.tokenizer, and workload.text markov, corpus or random", "")
	}
	if w.Text == TextIDs {
		c.excludes("workload.text ids", "workload.system_tokens", "workload.images.count", "workload.videos.count", "workload.audio.count", "workload.conversation.system_tokens")
	}
	if p := w.Prefix; (p.Groups > 0) != (p.Tokens > 0) {
		c.fault("workload.prefix", "needs both groups and tokens", "")
	}
	c.needs("workload.prefix.groups", w.Prefix.Groups > 0, "workload.prefix.zipf")
	c.aligned("workload.prefix.tokens", w.Prefix.Tokens)
	if w.apart() {
		c.excludes("workload.cache "+w.Cache, "workload.prefix.groups", "workload.system_tokens")
	}
}

// apart says that no request is to find in a cache what another one left there.
func (w *Workload) apart() bool { return w.Cache == CacheCold || w.Cache == CacheSalted }

// conversation checks that sessions go with what their turns are made of.
func (c *workloadCheck) conversation() {
	talk := &c.work.Conversation
	if _, reason := talk.turns(); reason != "" {
		return
	}
	if talk.most() > 1 {
		c.excludes("workload.conversation.turns", "workload.dataset.file", "workload.trace.file", "workload.chat_template")
		if c.work.Text == TextIDs {
			c.fault("workload.text", "ids does not go with workload.conversation.turns", "a conversation is made of texts")
		}
		return
	}
	for name, given := range map[string]bool{"think_time": talk.ThinkTime != 0, "think_process": talk.Think != ""} {
		if given {
			c.fault("workload.conversation."+name, "goes with sessions of more than one turn only", "set workload.conversation.turns")
		}
	}
}

func (c *workloadCheck) aligned(key string, tokens int) {
	if b := c.work.Prefix.Block; b > 0 && tokens%b != 0 {
		c.fault(key, fmt.Sprintf("must be a multiple of workload.prefix.block, which is %d tokens, got %d", b, tokens),
			"what is behind the last whole block is not found in a cache")
	}
}

// sources checks that what is sent comes from one place.
func (c *workloadCheck) sources() {
	w := c.work
	synthetic := []string{
		"workload.system_tokens", "workload.conversation.system_tokens", "workload.prefix.groups", "workload.classes", "workload.text_file", "workload.chat_template",
	}
	if w.Dataset.File != "" {
		c.excludes("workload.dataset.file", append(synthetic, "workload.trace.file", "workload.images.count", "workload.videos.count", "workload.audio.count")...)
	}
	if w.Trace.File != "" {
		c.excludes("workload.trace.file", append(synthetic, "workload.images.count", "workload.videos.count", "workload.audio.count")...)
	}
	c.needs("workload.dataset.file", w.Dataset.File != "", "workload.dataset.format", "workload.dataset.preset", "workload.dataset.columns", "workload.dataset.template")
	c.needs("workload.trace.file", w.Trace.File != "", "workload.trace.format", "workload.trace.scale", "workload.trace.thin",
		"workload.trace.from", "workload.trace.until", "workload.trace.sort", "workload.trace.block", "workload.trace.grid", "workload.trace.keep_grid", "workload.trace.sessions", "workload.trace.models",
		"workload.trace.class", "workload.trace.headers")
	c.needs("workload.trace.sessions", w.Trace.Sessions, "workload.trace.pauses", "workload.trace.max_gap", "workload.trace.min_calls",
		"workload.trace.max_calls", "workload.trace.min_sessions")
	if w.Trace.MaxCalls > 0 && w.Trace.MaxCalls < w.Trace.MinCalls {
		c.fault("workload.trace.max_calls", "must not be below workload.trace.min_calls", "")
	}
	if w.Trace.Scale != 0 && w.Trace.Thin != 0 {
		c.fault("workload.trace.thin", "does not go with workload.trace.scale", "they make different loads: leave one of them out")
	}
	if w.Trace.Until != 0 && w.Trace.Until <= w.Trace.From {
		c.fault("workload.trace.until", "must be behind workload.trace.from", "")
	}
}

func (c *workloadCheck) classes() {
	seen := map[string]bool{}
	for i, class := range c.work.Classes {
		switch {
		case class.Name == "":
			c.fault(classPath(i), "needs a name", "")
		case seen[class.Name]:
			c.fault(classPath(i)+".name", fmt.Sprintf("is the name of another class too: %q", class.Name), "")
		}
		seen[class.Name] = true
		if class = c.work.inherit(class); (class.PrefixGroups > 0) != (class.PrefixTokens > 0) {
			c.fault(classPath(i), "needs both prefix_groups and prefix_tokens", "")
		}
		c.aligned(classPath(i)+".prefix_tokens", class.PrefixTokens)
		if c.work.apart() && class.PrefixGroups > 0 {
			c.fault(classPath(i)+".prefix_groups", "does not go with workload.cache "+c.work.Cache, "leave one of them out")
		}
	}
	if len(c.work.Classes) > maxClasses {
		c.fault("workload.classes", fmt.Sprintf("must have at most %d classes, got %d", maxClasses, len(c.work.Classes)), "")
	}
}

// inherit returns a class with the workload's keys where it has none of its own.
func (w *Workload) inherit(c Class) Class {
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.InputTokens == "" {
		c.InputTokens = w.InputTokens
	}
	if c.OutputTokens == "" {
		c.OutputTokens = w.OutputTokens
	}
	if c.PrefixGroups == 0 {
		c.PrefixGroups = w.Prefix.Groups
	}
	if c.PrefixTokens == 0 {
		c.PrefixTokens = w.Prefix.Tokens
	}
	return c
}

// replay checks the load of a trace.
func (c *workloadCheck) replay(l *Load) {
	if c.work.Trace.File == "" {
		c.fault("load.arrival", "trace needs workload.trace.file", "")
	}
	const hint = "the trace has the times: set workload.trace.scale or thin for another rate, or load.arrival for other times"
	for _, k := range []struct {
		key   string
		field any
	}{{"load.rate", &l.Rate}, {"load.concurrency", &l.Concurrency}, {"load.stages", &l.Stages}, {"load.warmup", &l.Warmup}} {
		if c.present(k.key, k.field) && given(k.field) {
			c.fault(k.key, "does not go with load.arrival trace", hint)
		}
	}
}

// Needs says what of the workload an endpoint has no word for.
func (s Spec) Needs(has Features) (faults Faults) {
	w := &s.Workload
	need := func(wanted, has bool, key, what string) {
		if wanted && !has {
			faults = append(faults, Fault{Key: key, Reason: fmt.Sprintf("endpoint %s has no word for %s", s.Target.Endpoint, what), Hint: "leave it out, or set another target.endpoint"})
		}
	}
	need(w.Text == TextIDs, has.PromptIDs, "workload.text", "token ids as a prompt")
	need(w.Trace.Models != "", has.Model, "workload.trace.models", "a model in each request")
	need(w.Tools != "", has.Tools, "workload.tools", "tools")
	need(w.Images.Count != "", has.Images, "workload.images.count", "images")
	need(w.Videos.Count != "", has.Videos, "workload.videos.count", "videos")
	need(w.Audio.Count != "", has.Audio, "workload.audio.count", "sounds")
	need(w.Cache == CacheSalted, has.CacheSalt, "workload.cache", "a cache salt")
	need(w.SystemTokens > 0, has.Messages, "workload.system_tokens", "conversations")
	need(w.Conversation.SystemTokens != "", has.Messages, "workload.conversation.system_tokens", "conversations")
	need(w.Conversation.most() > 1, has.Messages, "workload.conversation.turns", "conversations")
	need(w.Dataset.File != "", has.Messages, "workload.dataset.file", "conversations")
	for i, c := range w.Classes {
		need(c.Model != "", has.Model, classPath(i)+".model", "a model in each request")
		need(c.Priority != 0, has.Priority, classPath(i)+".priority", "a priority")
	}
	return faults
}
