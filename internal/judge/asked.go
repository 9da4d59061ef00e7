package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// asked is what of the effective spec a verdict and objectives look at. Its keys are those of docs/spec.md.
type asked struct {
	SLO       []string `json:"slo"`
	SLOTarget float64  `json:"slo_target"`

	Target struct {
		Endpoint string `json:"endpoint"`
	} `json:"target"`
	Workload struct {
		IgnoreEOS    bool         `json:"ignore_eos"`
		Text         string       `json:"text"`
		TextFile     string       `json:"text_file"`
		Tokenizer    string       `json:"tokenizer"`
		ChatTemplate string       `json:"chat_template"`
		Tools        string       `json:"tools"`
		Cache        string       `json:"cache"`
		InputTokens  any          `json:"input_tokens"` // a number or a text
		OutputTokens any          `json:"output_tokens"`
		Classes      []askedClass `json:"classes"`
		Prefix       struct {
			Block int64 `json:"block"`
		} `json:"prefix"`
		Images struct {
			Count any `json:"count"` // a number or a distribution; so are those below
		} `json:"images"`
		Videos struct {
			Count any `json:"count"`
		} `json:"videos"`
		Audio struct {
			Count any `json:"count"`
		} `json:"audio"`
		Dataset struct {
			File   string `json:"file"`
			Preset string `json:"preset"`
			Turns  string `json:"turns"`
			Order  string `json:"order"`
		} `json:"dataset"`
		Trace struct {
			File string `json:"file"`
		} `json:"trace"`
		SHA256 map[string]string `json:"sha256"`
	} `json:"workload"`
}

type askedClass struct {
	Name         string   `json:"name"`
	InputTokens  any      `json:"input_tokens"`
	OutputTokens any      `json:"output_tokens"`
	SLO          []string `json:"slo"`
}

// leaves are the values of a spec, in JSON, by their keys.
type leaves map[string]string

func leavesOf(spec json.RawMessage) leaves {
	var tree any
	l := leaves{}
	if json.Unmarshal(spec, &tree) == nil {
		l.gather("", tree)
	}
	return l
}

func (l leaves) gather(key string, value any) {
	if branch, ok := value.(map[string]any); ok {
		for name, v := range branch {
			l.gather(strings.TrimPrefix(key+"."+name, "."), v)
		}
		return
	}
	text, _ := json.Marshal(value) // it has just been read
	l[key] = string(text)
}

// differs are the keys in which two specs are not the same load: all but the seed and the directory, in which replications differ.
func (l leaves) differs(from leaves) (keys []string) {
	all := maps.Clone(l)
	maps.Copy(all, from)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key != "load.seed" && key != "out" && l[key] != from[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// askedOf reads the manifest's spec. What is not there is not known: runs may be judged without.
func askedOf(m *record.Manifest) (a asked) {
	_ = json.Unmarshal(m.Spec, &a)
	return a
}

// files are those that the spec names, with the hashes it has.
func (a *asked) files() (all []verdict.File) {
	w := &a.Workload
	add := func(key, path string) {
		if path != "" {
			all = append(all, verdict.File{Key: key, SHA256: a.sum(key)})
		}
	}
	lengths := func(key string, value any) {
		if text, ok := value.(string); ok && strings.HasPrefix(strings.TrimSpace(text), "file(") {
			add(key, text)
		}
	}
	if w.Tokenizer != "embedded" {
		add("tokenizer", w.Tokenizer)
	}
	add("text_file", w.TextFile)
	add("chat_template", w.ChatTemplate)
	add("tools", w.Tools)
	add("dataset.file", w.Dataset.File)
	add("trace.file", w.Trace.File)
	if len(w.Classes) == 0 {
		lengths("input_tokens", w.InputTokens)
		lengths("output_tokens", w.OutputTokens)
	}
	for i, c := range w.Classes { // what a class does not say it has from the workload, and the file is its own
		lengths(fmt.Sprintf("classes[%d].input_tokens", i), cmp.Or(c.InputTokens, w.InputTokens))
		lengths(fmt.Sprintf("classes[%d].output_tokens", i), cmp.Or(c.OutputTokens, w.OutputTokens))
	}
	return all
}

// sum is the hash of the file that a key names; a trace in several files has one for each.
func (a *asked) sum(key string) string {
	for _, name := range []string{key, key + "[0]"} {
		if sum := a.Workload.SHA256[name]; sum != "" {
			return sum
		}
	}
	return ""
}

// rows says how rows of a data set are chosen and cut.
func (a *asked) rows() string {
	switch d := &a.Workload.Dataset; {
	case d.File == "":
		return ""
	case d.Preset != "":
		return "preset " + d.Preset
	default:
		return "turns " + d.Turns + ", order " + d.Order
	}
}

// unsure says why the planned lengths of prompts need not be those that the model counts; empty where they are said to be.
func (a *asked) unsure() string {
	w := &a.Workload
	switch {
	case w.Dataset.File != "":
		return "rows of a data set have templates of the server's around each message"
	case w.Tokenizer == "" || w.Text == "" || w.Text == "words":
		return "the plan counts words, not the model's tokens (workload.text, workload.tokenizer)"
	case w.Tokenizer == "embedded":
		return "the plan counts in the embedded tokenizer, which is no model's (workload.tokenizer)"
	case w.Images.Count != nil || w.Videos.Count != nil || w.Audio.Count != nil:
		return "pictures, videos and sounds count as well, as the server has it"
	case w.Trace.File != "":
		return "a recording may have messages, with templates of the server's around them"
	}
	return ""
}

// whole says that the planned lengths hold what a template of the server's adds.
func (a *asked) whole() bool { return a.Workload.ChatTemplate != "" || a.Workload.Text == "ids" }
