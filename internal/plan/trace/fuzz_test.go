package trace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tare/internal/plan/input"
	"tare/internal/plan/trace"
)

// FuzzRead holds every reader to this: any file is refused with faults, or gives rows in order of which each comes after
// earlier ones only, at most as many as asked for. It never panics.
func FuzzRead(f *testing.F) {
	for i, pattern := range []string{"azure*", "burst*", "moon*", "bail*", "weka*", "otel*", "weka/*"} {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil {
				f.Add(text, uint8(i))
			}
		}
	}
	formats := append(trace.Formats(), "")
	f.Fuzz(func(t *testing.T, text []byte, choice uint8) {
		path := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		options := trace.Options{Format: formats[int(choice)%len(formats)], Sort: choice >= 128, MaxRows: 100}
		if choice&64 != 0 {
			options.From, options.Until, options.MaxGap = 1, 1<<40, 1000
		}
		got, err := trace.Read(path, options)
		if err != nil {
			if faults := (input.Faults{}); !errors.As(err, &faults) {
				t.Fatalf("got error %v, want faults", err)
			}
			return
		}
		if len(got.Rows) == 0 || len(got.Rows) > 100 {
			t.Fatalf("got %d rows, want 1 to 100", len(got.Rows))
		}
		for i, row := range got.Rows {
			if row.At < 0 || i > 0 && !got.Relative && row.At < got.Rows[i-1].At {
				t.Fatalf("row %d: got %v after %v", i, row.At, got.Rows[max(i-1, 0)].At)
			}
			for _, before := range row.After {
				if before < 0 || before >= i {
					t.Fatalf("row %d: comes after row %d, want an earlier one", i, before)
				}
			}
			if row.Gap < 0 || row.Session < 0 || row.Turn < 0 {
				t.Fatalf("row %d: got %+v", i, row)
			}
		}
	})
}

// FuzzClients holds the reader of client models to never panic and never run what it reads.
func FuzzClients(f *testing.F) {
	f.Add([]byte("0,1,1,Gamma,1,1\n"), []byte(`{"0": {"input_tokens": "{1: 0.5, 2: 0.5}"}}`))
	f.Add([]byte("0,1,1,Weibull,1e9,.5"), []byte(`{"0": {"x": "{1:2,}", "y": "{}"}}`))
	f.Fuzz(func(t *testing.T, windows, lengths []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{"chunk-0-trace.csv": windows, "chunk-0-dataset.json": lengths} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		clients, err := trace.ReadClients(dir)
		if err != nil {
			if faults := (input.Faults{}); !errors.As(err, &faults) {
				t.Fatalf("got error %v, want faults", err)
			}
			return
		}
		for _, w := range clients.Clients[0].Windows {
			if !(w.Rate >= 0 && w.Shape >= 0 && w.Scale >= 0) || w.Rate > 0 && (w.Shape == 0 || w.Scale == 0) {
				t.Fatalf("got a window of %+v", w)
			}
		}
	})
}
