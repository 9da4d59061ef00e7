package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// truth is what the simulator did with one request, CLOCK_MONOTONIC ns.
type truth struct {
	recv  int64   // the kernel's receive stamp of the request
	sends []int64 // just before the send of each token chunk
}

// readTruths returns the truths by the request's index in the plan.
func readTruths(file string) (map[int64]truth, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	truths := map[int64]truth{}
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return truths, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err := addTruth(truths, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
}

func addTruth(truths map[int64]truth, line []byte) error {
	var t struct {
		ID    string  `json:"request_id"`
		Recv  int64   `json:"recv_ns"`
		Sends []int64 `json:"send_ns"`
	}
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	if t.Recv == 0 || t.ID == "" {
		return nil // not a request of a run
	}
	index, err := strconv.ParseInt(t.ID[strings.LastIndexByte(t.ID, '-')+1:], 10, 64)
	if err != nil {
		return fmt.Errorf("request id %q: does not end in an index", t.ID)
	}
	if _, twice := truths[index]; twice {
		return fmt.Errorf("request id %q: its index came before\nhint: use a truth file for one run only", t.ID)
	}
	truths[index] = truth{t.Recv, t.Sends}
	return nil
}
