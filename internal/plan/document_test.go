package plan

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// row is the line of a key in docs/spec.md.
func row[T any](k *key[T], defaults *T) string {
	kind, standard := "text", ""
	field := k.field(defaults)
	switch field.(type) {
	case *bool:
		kind = "true, false"
	case *float64, *int, *int64, *uint64:
		kind = "number"
		if k.unit != "" {
			kind = k.unit
		}
	case *time.Duration:
		kind = "duration"
	case *map[string]string:
		kind = "map"
	case *Lengths:
		kind = "tokens, or a distribution"
	case *[]LoadStage, *[]Class, *[]string:
		kind = "list"
	}
	if k.oneOf != nil {
		kind = strings.Join(k.oneOf, ", ")
	}
	if !k.loose {
		standard = "`" + strings.Trim(scalarText(field), `"`) + "`"
	}
	if k.loose && given(field) {
		standard = "`" + strings.Trim(scalarText(field), `"`) + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |", k.name, kind, standard, k.about)
}

func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := Defaults()
	var rows []string
	for i := range specKeys {
		rows = append(rows, row(&specKeys[i], &defaults))
	}
	for i := range stageKeys {
		rows = append(rows, row(&stageKeys[i], new(LoadStage)))
	}
	for i := range classKeys {
		rows = append(rows, row(&classKeys[i], new(Class)))
	}
	for _, want := range rows {
		if !strings.Contains(string(page), want+"\n") {
			t.Errorf("docs/spec.md: missing line:\n%s", want)
		}
	}
}

// TestExampleOfTheDocumentationIsValid reads the first YAML block of the page.
func TestExampleOfTheDocumentationIsValid(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	var d Draft
	d.Read("docs/spec.md", []byte(example))
	d.Require("target.url", "target.model")
	if _, err := d.Spec(); err != nil || example == "" {
		t.Errorf("got %v for:\n%s", err, example)
	}
}
