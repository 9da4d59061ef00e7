// Comparison holds what load generators report to what the simulator says it did.
//
//	comparison -tool NAME -rate N -- COMMAND... > run
//	comparison -truth FILE -result FILE < run > line
//	comparison -table < lines
//
// The first form runs one tool. The second, when the simulator has ended and so has written all of its truth, adds what the
// tool reported and what was true. The third folds such lines into a table.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// line is one run of one tool.
type line struct {
	Tool     string  `json:"tool"`
	Asked    float64 `json:"asked_per_s"`
	Achieved float64 `json:"achieved_per_s"` // as the server saw its requests arrive
	Requests int     `json:"requests"`       // that the server saw
	CPU      float64 `json:"cpu_s"`          // user and system time of the tool and its children, start-up included
	TTFT     times   `json:"ttft_ms"`        // as the tool reports it
	Truth    times   `json:"truth_ms"`       // as the server did it
	Fault    string  `json:"fault,omitempty"`
}

// times are quantiles, milliseconds.
type times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func main() {
	tool := flag.String("tool", "", "name of the tool, which says how its result is read")
	rate := flag.Float64("rate", 0, "asked requests per second")
	truth := flag.String("truth", "", "the simulator's truth file")
	result := flag.String("result", "", "the tool's result file")
	fold := flag.Bool("table", false, "fold lines from standard input into a table")
	flag.Parse()
	var err error
	switch {
	case *fold:
		err = printTable(os.Stdin, os.Stdout)
	case *truth != "":
		err = compare(*truth, *result)
	default:
		err = carry(line{Tool: *tool, Asked: *rate}, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "comparison:", err)
		os.Exit(1)
	}
}

// carry runs the command and prints what it cost. A tool that fails has a line too, with the reason.
func carry(l line, command []string) error {
	if len(command) == 0 || l.Tool == "" {
		return errors.New("-tool and a command are needed")
	}
	c := exec.Command(command[0], command[1:]...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		l.Fault = err.Error()
	}
	if c.ProcessState != nil {
		l.CPU = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

// compare adds to a line what the tool reported and what was true.
func compare(truth, result string) error {
	var l line
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	if err := l.fill(truth, result); err != nil {
		l.Fault = strings.TrimSpace(l.Fault + " " + err.Error())
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

func (l *line) fill(truth, result string) error {
	served, err := readTruth(truth)
	if err != nil {
		return fmt.Errorf("read truth: %w", err)
	}
	l.Requests, l.Achieved, l.Truth = served.count, served.rate(), served.ttft()
	text, err := os.ReadFile(result)
	if err != nil {
		return err
	}
	l.TTFT, err = reported(l.Tool, text)
	return err
}

// served is what the simulator did.
type served struct {
	count       int
	first, last time.Duration   // arrivals of requests
	waits       []time.Duration // from a request's arrival to its first token
}

func readTruth(name string) (served, error) {
	f, err := os.Open(name)
	if err != nil {
		return served{}, err
	}
	defer f.Close()
	var s served
	lines := bufio.NewReader(f)
	for {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		var row struct {
			Stream bool          `json:"stream"`
			Recv   time.Duration `json:"recv_ns"`
			First  time.Duration `json:"first_send_ns"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return s, err
		}
		if row.Stream && row.First > 0 {
			s.add(row.Recv, row.First)
		}
	}
}

func (s *served) add(recv, first time.Duration) {
	if s.count == 0 {
		s.first, s.last = recv, recv
	}
	s.count++
	s.first, s.last = min(s.first, recv), max(s.last, recv)
	s.waits = append(s.waits, first-recv)
}

// rate is in requests per second, over the time from the first request to the last.
func (s *served) rate() float64 {
	if s.count < 2 {
		return 0
	}
	return float64(s.count-1) / (s.last - s.first).Seconds()
}
