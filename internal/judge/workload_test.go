package judge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tare/internal/judge"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
	"tare/internal/record"
)

func TestTheWorkloadIsHeldAgainstWhatTheServerCounted(t *testing.T) {
	const exact = `{"workload":{"text":"random","tokenizer":"model.json","prefix":{"block":4},"sha256":{"tokenizer":"00"}}}`
	counts := func(tokens func(i int64) int) func(*record.Exchange) *record.Exchange {
		return func(x *record.Exchange) *record.Exchange {
			x.PlannedIn, x.Usage.Input = 8, tokens(x.Index)
			return x
		}
	}
	template := counts(func(int64) int { return 13 })
	uneven := counts(func(i int64) int { return 8 + int(i%2) })
	cached := func(n int) func(*record.Exchange) *record.Exchange {
		return func(x *record.Exchange) *record.Exchange {
			x.Usage.Cached, x.Usage.CachedKnown = n, true
			return x
		}
	}
	for _, c := range []struct {
		name, spec string
		workload   record.Workload
		change     func(*record.Exchange) *record.Exchange
		gate       string
		level      verdict.Level
		class      verdict.Class
		measured   string
	}{
		{name: "no self-test", gate: "W2", level: verdict.Unobservable, class: verdict.Valid},
		{name: "no file", gate: "W3", level: verdict.NotApplicable, class: verdict.Valid},
		{name: "a file with its hash", spec: exact, gate: "W3", level: verdict.CertifiedLevel, class: verdict.Valid, measured: "1 files"},
		{name: "a file without", spec: `{"workload":{"dataset":{"file":"a.json"}}}`, gate: "W3", level: verdict.Failed, class: verdict.InvalidWorkload, measured: "dataset.file"},
		{name: "lengths of a class from the workload's file", spec: `{"workload":{"input_tokens":"file(a.csv)","classes":[{"name":"a"}],"sha256":{"classes[0].input_tokens":"00"}}}`, gate: "W3", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a trace in two files", spec: `{"workload":{"trace":{"file":"dir"},"sha256":{"trace.file[0]":"00","trace.file[1]":"01"}}}`, gate: "W3", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a tokenizer of ours", spec: `{"workload":{"tokenizer":"embedded"}}`, gate: "W3", level: verdict.NotApplicable, class: verdict.Valid},

		{name: "no planned lengths", gate: "W5", level: verdict.Unobservable, class: verdict.Valid},
		{name: "the planned lengths", change: counts(func(int64) int { return 8 }), gate: "W5", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a template that adds as much to each", spec: exact, change: template, gate: "W5", level: verdict.CertifiedLevel, class: verdict.Valid, measured: "and 5 of the template's"},
		{name: "one that was planned for", spec: `{"workload":{"text":"random","tokenizer":"embedded-not","chat_template":"t","sha256":{"tokenizer":"0","chat_template":"0"}}}`, change: template, gate: "W5", level: verdict.Failed, class: verdict.InvalidWorkload, measured: "+5 tokens"},
		{name: "fewer than planned", spec: exact, change: counts(func(int64) int { return 7 }), gate: "W5", level: verdict.Failed, class: verdict.InvalidWorkload, measured: "-1 tokens"},
		{name: "another tokenizer", spec: exact, change: uneven, gate: "W5", level: verdict.Failed, class: verdict.InvalidWorkload, measured: "550 of 1100"},
		{name: "words are no tokens", change: uneven, gate: "W5", level: verdict.Unobservable, class: verdict.Valid, measured: "counts words"},
		{name: "one in 1100", spec: exact, change: counts(func(i int64) int { return 8 + int(i/1099) }), gate: "W5", level: verdict.CertifiedLevel, class: verdict.Valid, measured: "1 of 1100"},
		{name: "later turns hold replies", spec: exact, change: func(x *record.Exchange) *record.Exchange {
			x.PlannedIn, x.Turn = 8, int(x.Index%2)
			x.Usage.Input += 3 * x.Turn
			return x
		}, gate: "W5", level: verdict.CertifiedLevel, class: verdict.Valid, measured: "of 550"},

		{name: "a server that does not tell", gate: "W7", level: verdict.Unobservable, class: verdict.Valid},
		{name: "prompts of their own", workload: record.Workload{Cache: "as-is", MeanInput: 8}, change: cached(0), gate: "W7", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "nobody counted", workload: record.Workload{Cache: "as-is"}, change: cached(0), gate: "W7", level: verdict.Unobservable, class: verdict.Valid},
		{name: "half is in common", workload: record.Workload{Cache: "as-is", PromptTokens: 100, SharedTokens: 50}, change: cached(4), gate: "W7", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a forgetful server", workload: record.Workload{Cache: "as-is", PromptTokens: 100, SharedTokens: 50}, change: cached(1), gate: "W7", level: verdict.Failed, class: verdict.Valid, measured: "12.5 %"},
		{name: "a cold cache that is not", workload: record.Workload{Cache: "cold"}, change: cached(4), gate: "W7", level: verdict.Failed, class: verdict.InvalidWorkload, measured: "50 %"},
		{name: "a warm cache", spec: exact, workload: record.Workload{Cache: "warm"}, change: cached(4), gate: "W7", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a warm cache of smaller blocks", spec: exact, workload: record.Workload{Cache: "warm"}, change: cached(7), gate: "W7", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a warm cache that is not", spec: exact, workload: record.Workload{Cache: "warm"}, change: cached(0), gate: "W7", level: verdict.Failed, class: verdict.InvalidWorkload},

		{name: "bodies nobody counted", gate: "W8", level: verdict.Unobservable, class: verdict.Valid},
		{name: "bodies that say all", workload: record.Workload{Bodies: 1100}, gate: "W8", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "a body that leaves it to the server", workload: record.Workload{Bodies: 1100, Silent: 1}, gate: "W8", level: verdict.Failed, class: verdict.Valid},

		{name: "bodies of their own", workload: record.Workload{Compared: 1100, Repeated: 1}, gate: "W9", level: verdict.CertifiedLevel, class: verdict.Valid},
		{name: "bodies that come again", workload: record.Workload{Compared: 1100, Repeated: 2}, gate: "W9", level: verdict.Failed, class: verdict.Valid},
		{name: "rows that come again", spec: `{"workload":{"dataset":{"file":"a.json"},"sha256":{"dataset.file":"00"}}}`, workload: record.Workload{Compared: 1100, Repeated: 2}, gate: "W9", level: verdict.NotApplicable, class: verdict.Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := twoStages()
			worked(m)
			if m.Spec = []byte(c.spec); c.spec == "" {
				m.Spec = []byte("{}")
			}
			if c.workload != (record.Workload{}) {
				m.Workload = &c.workload
			}
			s := judged(t, m, requests(c.change), healthy(nil))
			if g := gate(t, s, c.gate); g.Level != c.level || !strings.Contains(g.Measured, c.measured) {
				t.Errorf("%s: got %s (%s), want %s with %q", c.gate, g.Level, g.Measured, c.level, c.measured)
			}
			if s.Verdict.Class != c.class {
				t.Errorf("class: got %s (%s), want %s", s.Verdict.Class, s.Verdict.Reason, c.class)
			}
		})
	}
}

func TestAGeneratorThatMakesOtherPlansCondemnsTheRun(t *testing.T) {
	for sum, want := range map[string]verdict.Class{"abc": verdict.Valid, "abd": verdict.InvalidWorkload} {
		m := twoStages()
		m.Generator = &record.Generator{SHA256: sum, Golden: "abc"}
		if s := judged(t, m, requests(nil), nil); s.Verdict.Class != want {
			t.Errorf("%s: got %s (%s), want %s", sum, s.Verdict.Class, s.Verdict.Reason, want)
		}
	}
}

func TestRepliesOfOtherRequestsCondemnTheRun(t *testing.T) {
	for _, c := range []struct {
		echoed, foreign int64
		level           verdict.Level
		class           verdict.Class
	}{{0, 0, verdict.Unobservable, verdict.Valid}, {1100, 0, verdict.CertifiedLevel, verdict.Valid}, {1100, 1, verdict.Failed, verdict.InvalidStats}} {
		m := twoStages()
		m.Loops[0].Echoed, m.Loops[0].Foreign = c.echoed, c.foreign
		s := judged(t, m, requests(nil), nil)
		if g := gate(t, s, "W9a"); g.Level != c.level || s.Verdict.Class != c.class || g.Untold != (c.echoed == 0) {
			t.Errorf("%d of %d: got %s (untold %v) and %s, want %s and %s", c.foreign, c.echoed, g.Level, g.Untold, s.Verdict.Class, c.level, c.class)
		}
	}
}

func TestRunsOfOtherSpecsAreNoReplications(t *testing.T) {
	run := func(spec string) *judge.Summary {
		m := twoStages()
		m.Spec = []byte(spec)
		return judged(t, m, requests(nil), nil)
	}
	first := run(`{"load":{"seed":1,"rate":5},"out":"a","workload":{"cache":"cold"}}`)
	next := run(`{"load":{"seed":2,"rate":5},"out":"b","workload":{"cache":"cold"}}`)
	other := run(`{"load":{"seed":3,"rate":5},"workload":{"cache":"warm"}}`)
	if v := judge.Replicated("", []*judge.Summary{first, next}).Verdict; v.Class != verdict.Valid {
		t.Errorf("two seeds: got %s (%s), want VALID", v.Class, v.Reason)
	}
	if v := judge.Replicated("", []*judge.Summary{first, next, other}).Verdict; v.Class != verdict.InvalidStats || !strings.Contains(v.Reason, "run 3 differs from the first in workload.cache") {
		t.Errorf("another cache: got %s (%s), want INVALID-STATS with the key", v.Class, v.Reason)
	}
}

// The keys that the verdict reads are those that specs are written in.
func TestEveryFileThatASpecNamesIsAskedForItsHash(t *testing.T) {
	spec := plan.Defaults()
	w := &spec.Workload
	w.Tokenizer, w.TextFile, w.ChatTemplate, w.Tools, w.Dataset.File, w.Trace.File = "a", "b", "c", "d", "e", "f"
	w.InputTokens, w.OutputTokens = "file(g)", "file(h)"
	for classes, want := range map[int]string{
		0: "no hash of tokenizer, text_file, chat_template, tools, dataset.file, trace.file, input_tokens, output_tokens",
		1: "no hash of tokenizer, text_file, chat_template, tools, dataset.file, trace.file, classes[0].input_tokens, classes[0].output_tokens",
	} {
		w.Classes = make([]plan.Class, classes)
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		m := twoStages()
		m.Spec = text
		if g := gate(t, judged(t, m, requests(nil), nil), "W3"); g.Measured != want {
			t.Errorf("%d classes: got %q, want %q", classes, g.Measured, want)
		}
	}
}
