package record_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tare/internal/record"
)

func TestHealthComesBackAndATornLineDoesNot(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, record.HealthFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []record.Health{
		{AtMs: 1000, SpanMs: 1000, Cores: []record.Core{{Busy: 0.5, Steal: 0.25}}, CPU: &record.Spent{Ms: 3}, Files: &record.Room{Used: 5, Limit: 9}},
		{AtMs: 1500, SpanMs: 500, ClockStep: 0.5},
	}
	for i := range want {
		if err := want[i].Write(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString(`{"at_ms": 20`); err != nil {
		t.Fatal(err)
	}
	got, err := record.ReadHealth(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := record.ReadHealth(t.TempDir()); got != nil || err != nil {
		t.Errorf("without a file: got %+v, %v, want none", got, err)
	}
}
