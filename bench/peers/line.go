//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// Line is one tool's result in one repetition. A value that could not be had is absent.
type Line struct {
	Profile string             `json:"profile"`
	Tool    string             `json:"tool"`
	Asked   float64            `json:"asked_per_s"`
	Tokens  int                `json:"tokens"`
	Round   int                `json:"round"`
	Fault   string             `json:"fault,omitempty"` // why there is no result
	Values  map[string]float64 `json:"values"`
}

// Names of values.
const (
	achieved    = "achieved_per_s"
	failed      = "failed"
	cpu         = "cpu_us_per_request"     // from outside, in the steady window
	ownCPU      = "own_cpu_us_per_request" // as the tool says
	serverCores = "server_cores"           // CPU time of the server per wall time in the window
	slipP50     = "slip_p50_ms"
	slipP99     = "slip_p99_ms"
	slipMax     = "slip_max_ms"
	memory      = "max_rss_mib"
)

// within reports whether the rate was reached within 2 %, without failures, at a p99 slip of at most slip.
func (l Line) within(slip time.Duration) bool {
	p99, ok := l.Values[slipP99]
	return ok && l.Fault == "" && l.Values[failed] == 0 && l.Values[achieved] >= 0.98*l.Asked &&
		p99 <= slip.Seconds()*1000
}

func appendLine(file string, l Line) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(l), f.Close())
}

func readLines(files []string) ([]Line, error) {
	var lines []Line
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		for n := 1; s.Scan(); n++ {
			var l Line
			if err := json.Unmarshal(s.Bytes(), &l); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n, err)
			}
			lines = append(lines, l)
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
