package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/internal/record"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tare": main})
}

// Each file in testdata is a claim about a verb, with the command lines that show it.
// $TRACES is the folder of recorded loads, $DATASETS that of data sets.
func TestScripts(t *testing.T) {
	traces, err := filepath.Abs("../../internal/plan/trace/testdata")
	if err != nil {
		t.Fatal(err)
	}
	datasets, err := filepath.Abs("../../internal/plan/dataset/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TRACES", traces)
			e.Setenv("DATASETS", datasets)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "simulate": simulate, "interrupt": interrupt, "lines": lines, "await": written,
		},
	})
}

// exits runs a command and holds it to an exit code: exits 2 tare run.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	sameCode(ts, ts.Exec(args[1], args[2:]...), args[0])
}

func sameCode(ts *testscript.TestScript, err error, want string) {
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code: got %d, want %s", got, want)
	}
}

// simulate starts a simulated server for the rest of the script and puts its URL into $SIM, its address into $ADDRESS: simulate --ttft 5ms.
func simulate(ts *testscript.TestScript, neg bool, args []string) {
	tare, err := exec.LookPath("tare")
	ts.Check(err)
	s, err := startSim(context.Background(), tare, io.Discard, args...)
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.stop()) })
	ts.Setenv("SIM", "http://"+s.addr)
	ts.Setenv("SECURE_SIM", "https://"+s.addr)
	ts.Setenv("ADDRESS", s.addr)
}

// lines counts the lines of the last stdout: lines 20.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if got := strconv.Itoa(strings.Count(ts.ReadFile("stdout"), "\n")); got != args[0] {
		ts.Fatalf("lines of stdout: got %s, want %s", got, args[0])
	}
}

// interrupt starts a run into the directory out, sends it signals once it is under way, and holds it to an exit code:
// interrupt out INT 130 tare run. A single signal waits for the first records. Of two, the first waits for the start only, and
// the second for the answer to the first.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: interrupt DIR SIGNAL[,SIGNAL] CODE COMMAND...")
	}
	dir, signals := ts.MkAbs(args[0]), strings.Split(args[1], ",")
	tare, err := exec.LookPath(args[3])
	ts.Check(err)
	cmd := exec.Command(tare, args[4:]...)
	cmd.Dir, cmd.Stdout = ts.MkAbs("."), ts.Stdout()
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { cmd.Process.Kill() })
	said := bufio.NewReader(stderr)
	for i, name := range signals {
		switch {
		case i > 0:
			hear(ts, said, "interrupted")
		case len(signals) == 1:
			await(ts, filepath.Join(dir, record.ExchangesFile), 100)
		default:
			await(ts, filepath.Join(dir, record.ManifestFile), 1)
		}
		ts.Check(cmd.Process.Signal(map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}[name]))
	}
	io.Copy(io.Discard, said)
	sameCode(ts, cmd.Wait(), args[2])
}

// hear reads lines until one begins with word.
func hear(ts *testscript.TestScript, from *bufio.Reader, word string) {
	for {
		line, err := from.ReadString('\n')
		ts.Check(err)
		if strings.HasPrefix(line, word) {
			return
		}
	}
}

// written waits for a command in the background to have written to a file: await out/server.jsonl.
func written(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	await(ts, ts.MkAbs(args[0]), 1)
}

// await waits for another process to have written a file of at least size bytes.
func await(ts *testscript.TestScript, path string, size int64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		if info, err := os.Stat(path); err == nil && info.Size() >= size {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			ts.Fatalf("%s did not come to be", path)
		}
	}
}
