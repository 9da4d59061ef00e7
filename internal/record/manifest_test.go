package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestManifestReadsAsWritten(t *testing.T) {
	dir := t.TempDir()
	want := &Manifest{
		Schema: ManifestSchema, Tool: ThisTool(), Spec: json.RawMessage(`{"target": 1}`),
		Plan:   PlanIDs{PlanID: "ab", Requests: 3, Complete: true},
		Stages: []Stage{{Name: "10/s", Kind: "open", EndMs: 1000, Planned: 3, RatePerS: 10}},
		Clock:  Clock{StartWall: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}, Env: Environ(), State: State{Complete: true},
	}
	for range 2 { // the second write replaces the first
		if err := want.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	got.Spec, want.Spec = compact(t, got.Spec), compact(t, want.Spec)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("manifest differs\ngot  %+v\nwant %+v", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files in the directory: got %v, want the manifest alone", left)
	}
}

func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(v)
	return b
}

func TestManifestOfAnotherSchemaIsRefused(t *testing.T) {
	for content, want := range map[string]string{
		`{"schema": "tare.manifest/v2"}`: `got "tare.manifest/v2"`,
		`{}`:                             `got ""`,
		`{`:                              "unexpected end",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", content, err, want)
		}
	}
}

func TestManifestWithNewKeysStillReads(t *testing.T) {
	dir := t.TempDir()
	content := `{"schema": "tare.manifest/v1", "state": {"complete": true, "mood": 1}, "weather": "fair"}`
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(dir)
	if err != nil || !m.State.Complete {
		t.Errorf("got %+v, error %v, want a complete run", m, err)
	}
}

func TestEnvironKnowsTheMachine(t *testing.T) {
	e := Environ()
	if e.CPUs < 1 || e.CPUs > runtime.NumCPU() {
		t.Errorf("cpus: got %d, want 1 to %d", e.CPUs, runtime.NumCPU())
	}
	if runtime.GOOS != "linux" {
		return
	}
	if e.Kernel == "" || e.MemoryMiB < 1 || e.OpenFiles < 1 || !strings.Contains(e.PortRange, "-") {
		t.Errorf("got %+v, want kernel, memory, open files and port range", e)
	}
}

func TestBinaryHashIsSHA256(t *testing.T) {
	sum, err := BinarySHA256()
	if err != nil || len(sum) != 64 {
		t.Errorf("got %q, error %v, want 64 hex digits", sum, err)
	}
}

func TestOutcomesHaveDistinctNames(t *testing.T) {
	seen := map[string]bool{"unknown": true}
	for _, o := range Outcomes {
		if seen[o.String()] {
			t.Errorf("outcome %d: name %q is unknown or taken", o, o)
		}
		seen[o.String()] = true
	}
	if len(Outcomes) != int(NotSent) {
		t.Errorf("outcomes listed: got %d, want %d", len(Outcomes), NotSent)
	}
}
