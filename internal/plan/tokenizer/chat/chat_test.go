package chat_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/plan/tokenizer/chat"
)

// conversation is one of testdata/conversations.json.
type conversation struct {
	Messages json.RawMessage
	Tools    json.RawMessage
	Extra    json.RawMessage
	Generate *bool
}

// rendered is what jinja2 makes of it: a text, or an error.
type rendered struct{ Text, Error string }

func TestTextsAreThoseOfJinja(t *testing.T) {
	if cases := checkFolder(t, "testdata"); cases < 100 {
		t.Errorf("got %d cases, want 100 at least", cases)
	}
}

// TestModelsTemplatesAreExact compares with templates that are not part of this repository; docs/tokenizers.md says how.
func TestModelsTemplatesAreExact(t *testing.T) {
	dir := os.Getenv("TARE_CHAT_TEMPLATES")
	if dir == "" {
		t.Skip("TARE_CHAT_TEMPLATES names no folder; see docs/tokenizers.md")
	}
	t.Logf("%d cases", checkFolder(t, dir))
}

func checkFolder(t *testing.T, dir string) (cases int) {
	t.Helper()
	conversations := read[[]conversation](t, "testdata/conversations.json")
	paths, _ := filepath.Glob(filepath.Join(dir, "*.jinja"))
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jinja"), func(t *testing.T) {
			template, err := chat.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			template.BOS, template.EOS = "<s>", "</s>"
			want := read[[]rendered](t, strings.TrimSuffix(path, ".jinja")+".golden.json")
			if len(want) != len(conversations) {
				t.Fatalf("got %d goldens, want %d", len(want), len(conversations))
			}
			for i, c := range conversations {
				cases++
				checkText(t, i, template, c, want[i])
			}
		})
	}
	return cases
}

func checkText(t *testing.T, i int, template *chat.Template, c conversation, want rendered) {
	t.Helper()
	got, err := template.Append(nil, chat.Conversation{
		Messages: c.Messages, Tools: c.Tools, Extra: c.Extra, Generate: c.Generate == nil || *c.Generate,
		Now: time.Date(2026, 11, 5, 13, 4, 9, 0, time.UTC),
	})
	switch {
	case (err != nil) != (want.Error != ""):
		t.Errorf("conversation %d: got error %v, want error %q", i, err, want.Error)
	case err == nil && string(got) != want.Text:
		at := 0
		for at < min(len(got), len(want.Text)) && got[at] == want.Text[at] {
			at++
		}
		from := max(at-40, 0)
		t.Errorf("conversation %d: differs at byte %d:\n got %.120q\nwant %.120q", i, at, got[from:], want.Text[from:])
	}
}

func read[T any](t *testing.T, path string) T {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := json.Unmarshal(content, &value); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

func TestWhatIsNotSupportedIsRefusedWithItsLine(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{% include 'x' %}":       `line 2: tag "include" is not supported`,
		"{% extends 'x' %}":          `line 1: tag "extends" is not supported`,
		"\n\n{{ x|wordwrap }}":       `line 3: filter "wordwrap" is not supported`,
		"{{ x is escaped }}":         `test "escaped" is not supported`,
		"{% for a in b recursive %}": "a recursive loop is not supported",
		"{{ f(*a) }}":                "unpacked arguments are not supported",
		"{{ x":                       "line 1: a tag is not closed",
		"{{ 'x }}":                   "a string is not closed",
		"{% if x %}\n\n":             `"endif" expected before the end`,
		"{# x":                       "a comment is not closed",
		"{{ 99999999999999999999 }}": "out of range",
		"{{ " + strings.Repeat("(", 999) + strings.Repeat(")", 999) + " }}": "nested more than",
		"{{ ! }}": `unexpected '!'`,
		"{{ , }}": `an expression expected, got ","`,
	} {
		_, err := chat.Parse(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", source, err, want)
		}
	}
}

func TestWhatServersRefuseIsRefused(t *testing.T) {
	for source, want := range map[string]string{
		"{{ raise_exception('no ' ~ 1) }}": "the template refuses: no 1",
		"\n{{ x.y }}":                      `line 2: "y" of "x", which is undefined`,
		"{{ [].append(1) }}":               "append changes a value, which servers forbid",
		"{{ {}.update({}) }}":              "update changes a value",
		"{{ strftime_now('%Y') }}":         "the plan has none",
		"{{ 'a' + 1 }}":                    "a string + a number has no meaning",
		"{{ 1 // 0 }}":                     "out of range",
		"{{ nothing() }}":                  "cannot be called",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "nested more than",
		"{{ range(1000000) }}":                            "more than 100000 numbers",
		strings.Repeat("{{ 'x' * 9999999 }}", 9):          "longer than",
		"{{ 'x' * 99999999 * 99999999 }}":                 "too long",
		"{{ {[1]: 2} }}":                                  "a list cannot be a key",
		"{{ {range: 2} }}":                                "a function cannot be a key",
		"{{ [1]|map('upper') }}":                          "no list yet",
		"{% set a, b = [1] %}":                            "1 values for 2 names",
		"{% macro m(a) %}{% endmacro %}{{ m(b=1) }}":      `macro m has no argument "b"`,
		"{{ ('a'|safe).strip() }}":                        "marked as safe is not supported",
		"{% for i in range(99999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}": "does not come to an end",
	} {
		template, err := chat.Parse(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		got, err := template.Append([]byte("kept"), chat.Conversation{Messages: json.RawMessage("[]")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", source, err, want)
		}
		if string(got) != "kept" {
			t.Errorf("%q: got %q, want what was there and no more", source, got)
		}
	}
}

func TestTemplateAndTokensAreReadFromTheConfig(t *testing.T) {
	for content, want := range map[string]string{
		`{"chat_template":"{{ bos_token }}|{{ eos_token }}","bos_token":"<b>","eos_token":{"content":"<e>"}}`: "<b>|<e>",
		`{"chat_template":[{"name":"tool_use","template":"no"},{"name":"default","template":"yes"}]}`:         "yes",
		`plain {{ add_generation_prompt }}`: "plain False",
	} {
		path := filepath.Join(t.TempDir(), "tokenizer_config.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		template, err := chat.Load(path)
		if err != nil {
			t.Errorf("%s: %v", content, err)
			continue
		}
		if got, err := template.Append(nil, chat.Conversation{Messages: json.RawMessage("[]")}); string(got) != want || err != nil {
			t.Errorf("%s: got %q (%v), want %q", content, got, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "tokenizer_config.json")
	if err := os.WriteFile(path, []byte(`{"bos_token":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := chat.Load(path); err == nil || !strings.Contains(err.Error(), "chat_template: missing") {
		t.Errorf("a config without a template: got %v", err)
	}
}

// FuzzTemplate looks for templates that end the program instead of giving an error.
func FuzzTemplate(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.jinja")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, source string) {
		template, err := chat.Parse(source)
		if err != nil {
			return
		}
		got, err := template.Append([]byte("a"), chat.Conversation{Messages: json.RawMessage(`[{"role":"user","content":"x"}]`), Generate: true})
		if err == nil && !strings.HasPrefix(string(got), "a") {
			t.Errorf("got %q, want what was there first", got)
		}
	})
}
