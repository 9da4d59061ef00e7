//go:build linux

// Peers runs one load generator at a time and writes down what it cost, and folds such lines into tables.
//
//	peers measure -tool wrk -profile closed -duration 10s -out lines.jsonl -- taskset -c 0 wrk -t1 -c64 -d10s URL
//	peers within -slip 1ms lines.jsonl      exit code 0 when the last line kept its rate and its slip
//	peers cost -tool tare-epoll -base net/http -most 0.6 lines.jsonl      exit code 0 when the CPU ratio holds
//	peers table lines.jsonl
//
// CPU time is taken from outside and in the same way for every tool: the process's CPU clock is read at 30 % and at 90 % of
// the duration, so that start-up, warm-up and reporting are in nobody's figure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("measure, within, cost or table is needed")
	}
	switch args[0] {
	case "measure":
		return measureCommand(args[1:])
	case "within":
		return withinCommand(args[1:])
	case "cost":
		return costCommand(args[1:])
	case "table":
		return tableCommand(args[1:])
	}
	return fmt.Errorf("unknown verb %q: want measure, within, cost or table", args[0])
}

func measureCommand(args []string) error {
	var m measurement
	var out string
	f := flag.NewFlagSet("measure", flag.ExitOnError)
	f.StringVar(&m.line.Tool, "tool", "", "tool's name in the table")
	f.StringVar(&m.format, "format", "", "whose output it is: tare, nethttp, k6, vegeta, wrk or hey")
	f.StringVar(&m.line.Profile, "profile", "", "profile's name in the table")
	f.Float64Var(&m.line.Asked, "asked", 0, "asked rate, requests per second; 0 for a closed loop")
	f.IntVar(&m.line.Tokens, "tokens", 0, "output tokens per request")
	f.IntVar(&m.line.Round, "round", 1, "number of the repetition")
	f.DurationVar(&m.duration, "duration", 10*time.Second, "how long the tool was told to send")
	f.IntVar(&m.server, "server", 0, "process id of the server, whose CPU time is read too")
	f.StringVar(&m.artefact, "artefact", "", "file or folder the tool leaves its results in, where it is not its output")
	f.StringVar(&out, "out", "lines.jsonl", "file to append the line to")
	f.Parse(args)
	if f.NArg() == 0 {
		return errors.New("measure: the command is missing")
	}
	m.measure(f.Args())
	return appendLine(out, m.line)
}

func withinCommand(args []string) error {
	f := flag.NewFlagSet("within", flag.ExitOnError)
	slip := f.Duration("slip", time.Millisecond, "most p99 slip")
	f.Parse(args)
	lines, err := readLines(f.Args())
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return errors.New("within: no line")
	}
	if !lines[len(lines)-1].within(*slip) {
		return errors.New("out of limits")
	}
	return nil
}

// costCommand holds a tool's CPU per request to a multiple of another tool's. Of several repetitions the lowest ratio counts:
// other work on the machine can only add to it.
func costCommand(args []string) error {
	f := flag.NewFlagSet("cost", flag.ExitOnError)
	tool := f.String("tool", "", "tool that is held")
	base := f.String("base", "", "tool it is held to")
	most := f.Float64("most", 1, "highest ratio of their CPU per request")
	f.Parse(args)
	lines, err := readLines(f.Args())
	if err != nil {
		return err
	}
	least, ok := leastRatio(lines, *tool, *base)
	switch {
	case !ok:
		return fmt.Errorf("cost: no repetition in which both %s and %s have a result", *tool, *base)
	case least > *most:
		return fmt.Errorf("cost: %s takes at least %.2f of %s's CPU per request, limit %.2f", *tool, least, *base, *most)
	}
	fmt.Printf("%s takes %.2f of %s's CPU per request, limit %.2f\n", *tool, least, *base, *most)
	return nil
}

func tableCommand(args []string) error {
	lines, err := readLines(args)
	if err != nil {
		return err
	}
	fmt.Print(table(lines))
	return nil
}
