// Command tare generates load for LLM inference servers, and measures the server and not itself.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit code. It is the only place that prints errors.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	e := asExit(err)
	if e.err != nil {
		fmt.Fprint(stderr, e.text())
	}
	return e.code
}
