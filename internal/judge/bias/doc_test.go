package bias_test

import (
	"os"
	"strings"
	"testing"

	"tare/internal/judge/bias"
)

func TestDocumentationHasEveryModelAndFormula(t *testing.T) {
	text, err := os.ReadFile("../../../docs/bias.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range bias.Models() {
		row := "| `" + m.Name + "` | " + m.Formula
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/bias.md has no row that begins %q", row)
		}
	}
}
