package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ServerFile is the name of the file in a run directory that holds one ServerSample a line.
const ServerFile = "server.jsonl"

// ServerSample is one look at what a server, or something beside it, tells of itself. A look that brought nothing says why: its
// values are null, never 0.
type ServerSample struct {
	AtMs   float64 `json:"at_ms"`          // moment it was asked for, since the start of the run; below 0 before it
	TookMs float64 `json:"took_ms"`        // until all of it was there
	Source string  `json:"source"`         // URL, without secrets
	Kind   string  `json:"kind"`           // one of the Source words
	Edge   string  `json:"edge,omitempty"` // one of the Edge words; empty for one between edges

	Reason   string        `json:"reason,omitempty"` // why there are no values
	Values   *ServerValues `json:"values"`
	Identity *Identity     `json:"identity,omitempty"` // of a server, before and after the run
}

// The kinds of sources.
const (
	SourceServer     = "server"     // a server under test, or what counts for it
	SourceExporter   = "exporter"   // something beside it, such as of a GPU
	SourcePrometheus = "prometheus" // a Prometheus server: at_ms is when that looked
)

// The edges that samples are taken at.
const (
	EdgeBefore = "before" // before anything was sent
	EdgeStage  = "stage"  // a stage began or ended
	EdgeAfter  = "after"  // everything had ended, and the server had come to rest if it did in time
)

// Identity is what a server says it is.
type Identity struct {
	Models    []string          `json:"models,omitempty"` // that it lists, sorted
	Version   string            `json:"version,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"` // its arguments, where it tells them
	RoundTrip *RoundTrip        `json:"round_trip,omitempty"`
}

// RoundTrip is the time that connections to a server took to be made: what the network adds to a request and its reply.
type RoundTrip struct {
	MinMs float64 `json:"min_ms"`
	N     int     `json:"n"`
}

// Write appends s to w as one line.
func (s *ServerSample) Write(w io.Writer) error { return writeLine(w, "server sample", s) }

// ReadServer reads the samples in dir; there are none in a run directory without the file.
func ReadServer(dir string) ([]ServerSample, error) { return readLines[ServerSample](dir, ServerFile) }

// writeLine appends a JSON document to w as one line.
func writeLine(w io.Writer, what string, document any) error {
	b, err := json.Marshal(document)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// readLines reads a file of JSON documents, one a line; there are none without the file. A line that a killed run left
// unfinished is left out.
func readLines[T any](dir, name string) (all []T, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		var one T
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("read %s line %d: %w", f.Name(), n, err)
		}
		all = append(all, one)
	}
}
