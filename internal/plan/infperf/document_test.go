package infperf

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// row is the line of a key in docs/inference-perf.md.
func row(k key) string {
	about := k.about
	if k.hint != "" {
		about += "; " + k.hint
	}
	return fmt.Sprintf("| `%s` | %s | %s |", k.path, k.use, about)
}

func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/inference-perf.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"| key | | meaning here, or why not |", "| --- | --- | --- |"}
	for _, k := range keys {
		want = append(want, row(k))
	}
	if table := strings.Join(want, "\n"); !strings.Contains(string(page), table+"\n") {
		t.Errorf("docs/inference-perf.md: the table of keys is not this:\n%s", table)
	}
}

func TestEveryDataTypeIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/inference-perf.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dataTypes {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/inference-perf.md: no data type %s", name)
		}
	}
}
