package record

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// ManifestFile is the name of the manifest in a run directory.
const ManifestFile = "manifest.json"

// Write puts m into dir in one step: a reader sees the manifest before or the one after, never half of it.
func (m *Manifest) Write(dir string) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	f, err := os.CreateTemp(dir, ManifestFile+".*")
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	defer os.Remove(f.Name()) // finds nothing once renamed
	if err := fill(f, append(b, '\n')); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, ManifestFile)); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

func fill(f *os.File, b []byte) error {
	_, err := f.Write(b)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// ReadManifest reads the manifest in dir. Keys it does not know are left alone; another schema is refused.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", path, err)
	}
	if m.Schema != ManifestSchema {
		return nil, fmt.Errorf("read manifest %s: schema: must be %q, got %q", path, ManifestSchema, m.Schema)
	}
	return &m, nil
}
