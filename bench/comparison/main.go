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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"

	"tare/bench/truth"
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
	truthFile := flag.String("truth", "", "the simulator's truth file")
	result := flag.String("result", "", "the tool's result file")
	fold := flag.Bool("table", false, "fold lines from standard input into a table")
	flag.Parse()
	var err error
	switch {
	case *fold:
		err = printTable(os.Stdin, os.Stdout)
	case *truthFile != "":
		err = compare(*truthFile, *result)
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
func compare(truthFile, result string) error {
	var l line
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	if err := l.fill(truthFile, result); err != nil {
		l.Fault = strings.TrimSpace(l.Fault + " " + err.Error())
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

func (l *line) fill(truthFile, result string) error {
	served, err := readServed(truthFile)
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
	first, last int64   // arrivals of requests, nanoseconds
	waits       []int64 // from a request's arrival to its first token, nanoseconds
}

func readServed(file string) (s served, err error) {
	err = truth.Each(file, func(q truth.Request) error {
		if !q.Stream || q.First == 0 {
			return nil
		}
		if s.count == 0 {
			s.first, s.last = q.Recv, q.Recv
		}
		s.count++
		s.first, s.last = min(s.first, q.Recv), max(s.last, q.Recv)
		s.waits = append(s.waits, q.First-q.Recv)
		return nil
	})
	return s, err
}

// rate is in requests per second, over the time from the first request to the last.
func (s *served) rate() float64 {
	if s.count < 2 {
		return 0
	}
	return float64(s.count-1) / (float64(s.last-s.first) / 1e9)
}

// ttft is what the server took to the first token.
func (s *served) ttft() times {
	ms := make([]float64, len(s.waits))
	for i, wait := range s.waits {
		ms[i] = float64(wait) / 1e6
	}
	return quantiles(ms)
}

// quantiles are of the nearest rank.
func quantiles(ms []float64) times {
	if len(ms) == 0 {
		return times{}
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[int(math.Ceil(q*float64(len(ms))))-1] }
	return times{P50: at(0.5), P99: at(0.99)}
}
