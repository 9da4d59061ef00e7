// Accuracy compares what a run recorded with what the simulator says it did.
//
//	accuracy -truth truth.jsonl RUNDIR
//
// Both must have run on one machine, whose monotonic clock they share. It prints differences, recorded minus true, in
// microseconds: two loopback transits and whatever the client adds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	truth := flag.String("truth", "", "truth file of the simulator (tare sim --truth)")
	flag.Parse()
	if err := run(*truth, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(truthFile string, args []string) error {
	if truthFile == "" || len(args) != 1 {
		return errors.New("-truth FILE and one run directory are needed")
	}
	truths, err := readTruths(truthFile)
	if err != nil {
		return fmt.Errorf("read truth: %w", err)
	}
	c := comparison{truths: truths}
	if err := c.read(args[0]); err != nil {
		return err
	}
	fmt.Print(c.table())
	return nil
}
