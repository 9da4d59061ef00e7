package main

import (
	"fmt"
	"strconv"
	"strings"

	"tare/bench/truth"
)

// readTruths returns the requests of runs in a truth file by their index in the plan.
func readTruths(file string) (map[int64]truth.Request, error) {
	all := map[int64]truth.Request{}
	err := truth.Each(file, func(q truth.Request) error {
		if q.Recv == 0 || q.ID == "" {
			return nil // not a request of a run
		}
		index, err := strconv.ParseInt(q.ID[strings.LastIndexByte(q.ID, '-')+1:], 10, 64)
		if err != nil {
			return fmt.Errorf("request id %q: does not end in an index", q.ID)
		}
		if _, twice := all[index]; twice {
			return fmt.Errorf("request id %q: its index came before\nhint: use a truth file for one run only", q.ID)
		}
		all[index] = q
		return nil
	})
	return all, err
}
