package arch

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestSourcesKeepTheArchitecture(t *testing.T) {
	found, err := sources(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("sources found: got %d, want the module's", len(found))
	}
	for _, s := range found {
		for _, fault := range s.faults() {
			t.Error(fault)
		}
	}
}

// Every rule is broken once in a made-up file, and must be noticed.
func TestBreachesAreNoticed(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"internal/record/a.go", `package record; import "tare/internal/plan"`, "may not import internal/plan"},
		{"internal/judge/a.go", `package judge; import "tare/internal/drive"`, "may not import internal/drive"},
		{"internal/judge/a.go", `package judge; import "tare/internal/drive/clock"`, "may not import internal/drive/clock"},
		{"internal/report/a.go", `package report; import "tare/internal/plan"`, "may not import internal/plan"},
		{"internal/plan/a.go", `package plan; import "tare/internal/drive"`, "may not import internal/drive"},
		{"internal/sim/a.go", `package sim; import "tare/internal/record"`, "may not import internal/record"},
		{"internal/drive/a.go", `package drive; import "tare/internal/judge"`, "may not import internal/judge"},
		{"internal/report/a.go", `package report; import "net/http"`, "may not use net/http"},
		{"internal/judge/stats/a.go", `package stats; import "time"; var t = time.Now()`, "may not use time.Now"},
		{"internal/judge/a.go", `package judge; import clock "time"; var t = clock.Now()`, "may not use time.Now"},
		{"internal/judge/a.go", `package judge; func f() { go f() }`, "starts no goroutines"},
		{"internal/plan/a.go", `package plan; import "math/rand/v2"`, "may not use math/rand/v2"},
		{"internal/drive/a.go", `package drive; import "os"; func f() { os.Exit(1) }`, "may not use os.Exit"},
		{"internal/drive/a.go", `package drive; import "os"; var a = os.Args`, "may not use os.Args"},
		{"internal/drive/a.go", `package drive; import "os/signal"`, "may not use os/signal"},
		{"internal/drive/a.go", `package drive; import "time"; func f() { time.Sleep(1) }`, "may not use time.Sleep"},
		{"internal/drive/a.go", `package drive; import "C"`, "may not use C"},
		{"internal/drive/a.go", `package drive; func init() {}`, "init runs unasked"},
		{"internal/drive/util/a.go", `package util`, `folder named "util"`},
		{"internal/weather/a.go", `package weather`, "no row in the import table"},
	} {
		root := fstest.MapFS{c.name: {Data: []byte(c.text)}, "cmd/tare/main.go": {Data: []byte("package main")}}
		found, err := sources(root)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, s := range found {
			all = append(all, s.faults()...)
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\ngot  %q\nwant a fault with %q", c.name, c.text, got, c.want)
		}
	}
}

// The table of docs/architecture.md is that of the code, row by row.
func TestTheDocumentsTableIsTheCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Who may import whom\n")
	table, _, _ = strings.Cut(table, "\n## ")
	got := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			name = strings.Trim(name, " `")
			if _, twice := got[whole(name)]; twice {
				t.Errorf("%s: has two rows", name)
			}
			got[whole(name)] = named(cells[2])
		}
	}
	for name, want := range imports {
		if row, ok := got[name]; !ok || !slices.Equal(row, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the document has %v (%v), the code %v", name, row, ok, want)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s: is in the document only", name)
	}
}

func whole(name string) string {
	if name == "cmd/tare" {
		return name
	}
	return "internal/" + name
}

// named returns the packages of a cell, in which each has its last name only.
func named(cell string) []string {
	packages := []string{}
	cell, _, _ = strings.Cut(strings.TrimSpace(cell), ":")
	for word := range strings.SplitSeq(cell, ", ") {
		if word == "nothing" {
			continue
		}
		for name := range imports {
			if path.Base(name) == word {
				packages = append(packages, name)
			}
		}
	}
	return slices.Sorted(slices.Values(packages))
}

func TestAllowedUsesPass(t *testing.T) {
	root := fstest.MapFS{
		"cmd/tare/main.go":      {Data: []byte(`package main; import ("os"; "os/signal"; "tare/internal/drive"); func main() { os.Exit(1) }`)},
		"internal/judge/a.go":   {Data: []byte(`package judge; import ("time"; "tare/internal/record"); type d = time.Duration`)},
		"internal/a_test.go":    {Data: []byte(`package internal; import "tare/internal/everything"`)},
		"internal/drive/run.go": {Data: []byte(`package drive; func f() { go f() }`)},
	}
	found, err := sources(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		for _, fault := range s.faults() {
			t.Errorf("got fault %q, want none", fault)
		}
	}
}
