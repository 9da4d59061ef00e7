package dataset_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tare/internal/plan/dataset"
	"tare/internal/plan/input"
)

// FuzzOpen holds every reader to this: any file is either read, and then each good row can be read again and cut by every
// preset, or refused with faults. It never panics.
func FuzzOpen(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 4096)], uint8(i))
	}
	formats := append(dataset.Formats(), "")
	f.Fuzz(func(t *testing.T, text []byte, choice uint8) {
		path := filepath.Join(t.TempDir(), "rows")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		options := dataset.Options{Format: formats[int(choice)%len(formats)]}
		if choice >= 128 {
			options.Template, options.Cut = "{{question}} {{a.b}}", dataset.Cut{Tokens: int(choice) - 127, Counter: words{}}
		}
		file, err := dataset.Open(path, options)
		if err != nil {
			var faults input.Faults
			if fault := (input.Fault{}); !errors.As(err, &faults) && !errors.As(err, &fault) {
				t.Fatalf("got error %v, want faults", err)
			}
			return
		}
		defer file.Close()
		if facts := file.Facts(); int64(file.Len()) != facts.Good || facts.Good > facts.Rows {
			t.Fatalf("got %d rows of %d good of %d", file.Len(), facts.Good, facts.Rows)
		}
		for i := range file.Len() {
			if _, err := file.Row(i); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
		for _, name := range dataset.Presets() {
			rules, _ := dataset.Preset(name)
			s, err := dataset.Select(file, rules, 3, words{})
			if err != nil {
				continue
			}
			for i := range s.Picks {
				if _, err := s.Row(i); err != nil {
					t.Fatalf("%s: pick %d: %v", name, i, err)
				}
			}
		}
	})
}
