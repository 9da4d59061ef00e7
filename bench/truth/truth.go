// Package truth reads what the simulator wrote of each request it served.
package truth

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Request is what the simulator did with one request. Times are CLOCK_MONOTONIC, nanoseconds.
type Request struct {
	ID     string  `json:"request_id"`
	Stream bool    `json:"stream"`
	Recv   int64   `json:"recv_ns"`       // the kernel's receive stamp of the request; 0 without one
	First  int64   `json:"first_send_ns"` // just before the send of the first token; 0 without one
	Sends  []int64 `json:"send_ns"`       // just before the send of each token chunk
}

// Each gives visit every request of a truth file, in the order in which they ended. Errors name file and line.
func Each(file string, visit func(Request) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var q Request
		if err = json.Unmarshal(line, &q); err == nil {
			err = visit(q)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
}
