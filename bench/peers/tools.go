//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// read takes a tool's results out of its output or of what it left in artefact.
func (l *Line) read(format string, output []byte, artefact string) error {
	switch format {
	case "tare":
		return l.readTare(artefact)
	case "nethttp":
		return l.readNetHTTP(output)
	case "k6":
		return l.readK6(artefact)
	case "vegeta":
		return l.readVegeta(artefact)
	case "wrk":
		return l.readWrk(output)
	case "hey":
		return l.readHey(output)
	}
	return fmt.Errorf("unknown format %q", format)
}

// slips are the quantiles in which tare and the reference client report slip, ms.
type slips struct{ P50, P99, Max *float64 }

func (l *Line) setSlip(s slips) {
	for name, v := range map[string]*float64{slipP50: s.P50, slipP99: s.P99, slipMax: s.Max} {
		if v != nil {
			l.Values[name] = *v
		}
	}
}

// readTare reads a run directory.
func (l *Line) readTare(dir string) error {
	var summary struct {
		Total struct {
			Planned  float64
			Sent     float64
			Outcomes map[string]float64
			Achieved float64 `json:"completed_rate_per_s"`
			Metrics  struct {
				Slip slips `json:"slip_ms"`
			}
		}
	}
	var manifest struct {
		State struct {
			CPUMs float64 `json:"cpu_ms"`
		}
		Loops []struct {
			Sent float64
		}
	}
	err := errors.Join(readJSON(filepath.Join(dir, "summary.json"), &summary), readJSON(filepath.Join(dir, "manifest.json"), &manifest))
	if err != nil {
		return err
	}
	t := summary.Total
	l.Values[achieved] = t.Achieved
	l.Values[failed] = t.Planned - t.Outcomes["completed"]
	l.setSlip(t.Metrics.Slip)
	sent := 0.0
	for _, loop := range manifest.Loops {
		sent += loop.Sent
	}
	if sent > 0 {
		l.Values[ownCPU] = manifest.State.CPUMs * 1000 / sent
	}
	return nil
}

// readNetHTTP reads the reference client's line.
func (l *Line) readNetHTTP(output []byte) error {
	var s struct {
		Planned, Sent, Failed float64
		Achieved              float64 `json:"achieved_per_s"`
		CPU                   float64 `json:"cpu_us_per_request"`
		Slip                  slips   `json:"slip_ms"`
	}
	if err := json.Unmarshal(output, &s); err != nil {
		return err
	}
	l.Values[achieved], l.Values[ownCPU] = s.Achieved, s.CPU
	l.Values[failed] = s.Failed + s.Planned - s.Sent
	l.setSlip(s.Slip)
	return nil
}

// readK6 reads the file of --summary-export. Its failed requests are those it sent in vain and those it dropped.
func (l *Line) readK6(file string) error {
	var s struct {
		Metrics struct {
			Requests struct{ Rate, Count float64 } `json:"http_reqs"`
			Failed   struct{ Passes float64 }      `json:"http_req_failed"`
			Dropped  struct{ Count float64 }       `json:"dropped_iterations"`
		}
	}
	if err := readJSON(file, &s); err != nil {
		return err
	}
	if s.Metrics.Requests.Count == 0 {
		return errors.New("no requests in it")
	}
	l.Values[achieved] = s.Metrics.Requests.Rate * (1 - s.Metrics.Failed.Passes/s.Metrics.Requests.Count)
	l.Values[failed] = s.Metrics.Failed.Passes + s.Metrics.Dropped.Count
	return nil
}

// readVegeta reads the results that vegeta attack wrote.
func (l *Line) readVegeta(file string) error {
	encoded, err := exec.Command("vegeta", "encode", "-to", "json", file).Output()
	if err != nil {
		return fmt.Errorf("vegeta encode: %w", err)
	}
	return l.readHits(bytes.NewReader(encoded))
}

// readHits reads vegeta's results as JSON. Vegeta does not report slip: it is rebuilt from its time stamps against the
// even schedule it was asked for, shifted so that the smallest is 0, which flatters it.
func (l *Line) readHits(r io.Reader) error {
	var sent []time.Time
	bad := 0
	for d := json.NewDecoder(r); d.More(); {
		var hit struct {
			Seq       int
			Code      int
			Timestamp time.Time
		}
		if err := d.Decode(&hit); err != nil {
			return err
		}
		if hit.Code != 200 {
			bad++
		}
		sent = append(sent, hit.Timestamp)
	}
	if len(sent) < 2 {
		return errors.New("no results")
	}
	slices.SortFunc(sent, time.Time.Compare)
	l.Values[achieved] = float64(len(sent)-1-bad) / sent[len(sent)-1].Sub(sent[0]).Seconds()
	l.Values[failed] = float64(bad)
	l.slipFromEven(sent)
	return nil
}

// slipFromEven sets slip against an even schedule. A fifth of the requests is taken for warm-up.
func (l *Line) slipFromEven(sent []time.Time) {
	late := make([]float64, 0, len(sent))
	for i, t := range sent {
		if i >= len(sent)/5 {
			late = append(late, t.Sub(sent[0]).Seconds()*1000-float64(i)*1000/l.Asked)
		}
	}
	slices.Sort(late)
	at := func(q float64) float64 { return late[int(q*float64(len(late)-1)+0.5)] - late[0] }
	l.Values[slipP50], l.Values[slipP99], l.Values[slipMax] = at(0.5), at(0.99), at(1)
}

var (
	wrkRate   = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkErrors = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkStatus = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	heyRate   = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	heyStatus = regexp.MustCompile(`\[(\d+)\]\s+(\d+) responses`)
	heyErrors = regexp.MustCompile(`(?m)^\s+\[(\d+)\]\s+(?:Post|Get) `)
)

func (l *Line) readWrk(output []byte) error {
	if err := l.rateFrom(wrkRate, output); err != nil {
		return err
	}
	l.Values[failed] = 0
	for _, found := range [][][]byte{wrkErrors.FindSubmatch(output), wrkStatus.FindSubmatch(output)} {
		for _, n := range found[min(1, len(found)):] {
			l.Values[failed] += number(n)
		}
	}
	return nil
}

func (l *Line) readHey(output []byte) error {
	if err := l.rateFrom(heyRate, output); err != nil {
		return err
	}
	l.Values[failed] = 0
	for _, found := range heyStatus.FindAllSubmatch(output, -1) {
		if !bytes.Equal(found[1], []byte("200")) {
			l.Values[failed] += number(found[2])
		}
	}
	for _, found := range heyErrors.FindAllSubmatch(output, -1) {
		l.Values[failed] += number(found[1])
	}
	return nil
}

func (l *Line) rateFrom(pattern *regexp.Regexp, output []byte) error {
	found := pattern.FindSubmatch(output)
	if found == nil {
		return errors.New("no rate in its output")
	}
	l.Values[achieved] = number(found[1])
	return nil
}

// number reads digits that a pattern has matched.
func number(b []byte) float64 {
	n, _ := strconv.ParseFloat(string(b), 64)
	return n
}

func readJSON(file string, v any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
