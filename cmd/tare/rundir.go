package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tare/internal/record"
)

// createRunDir makes the directory of a new run: the one that was asked for, or a new one under ./runs.
func createRunDir(asked string, now time.Time) (dir string, err error) {
	dir = asked
	if dir == "" {
		dir = filepath.Join("runs", now.UTC().Format("20060102T150405Z")+"-"+shortID())
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", misused(fmt.Errorf("out: create run directory: %w", err), "--out names the directory")
	}
	for _, name := range []string{record.ManifestFile, record.ExchangesFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return "", misused(fmt.Errorf("out: %s already holds a run", dir), "name another directory, or leave --out away for a new one under ./runs")
		}
	}
	return dir, nil
}

// abandonRunDir removes what a run left that never started, so that the next try finds the place free.
func abandonRunDir(dir string) error {
	if err := os.Remove(filepath.Join(dir, record.ExchangesFile)); err != nil {
		return fmt.Errorf("clear run directory: %w", err)
	}
	for _, name := range []string{record.HealthFile, record.ServerFile} {
		_ = os.Remove(filepath.Join(dir, name)) // need not be there
	}
	os.Remove(dir) // stays when it holds something else
	return nil
}

func shortID() string {
	var b [3]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
