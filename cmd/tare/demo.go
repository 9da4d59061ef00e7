package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/judge"
	"tare/internal/plan"
)

// The demo's server can do demoSlots / (demoTTFT + (demoTokens-1) × demoGap) requests per second, and nothing is random about it.
const (
	demoSlots    = 8
	demoTokens   = 8
	demoTTFT     = 130 * time.Millisecond
	demoGap      = 10 * time.Millisecond
	demoCapacity = 40 // requests per second
	demoOverload = 60 // requests per second
)

func newDemo() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Measure a simulated server past its capacity, in half a minute",
		Long: `Start a simulated server that can do 40 requests/s, send it 20, 36 and 60 requests/s, and then 60 again through
8 connections, as a client does that waits for a free connection before it starts its stop-watch. Print the report, and what that
client would have hidden.`,
		Example: "  tare demo",
		Args:    cobra.NoArgs,
		RunE:    verb(func(c *cobra.Command, _ []string) error { return demo(c, out) }),
	}
	c.Flags().StringVar(&out, "out", "", "run `dir`ectory; a new one under ./runs when left out")
	return c
}

func demo(c *cobra.Command, out string) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server, err := startSim(ctx, self, c.ErrOrStderr(), "--slots", strconv.Itoa(demoSlots), "--ttft", demoTTFT.String(), "--gap", demoGap.String())
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	fmt.Fprintf(w, "A simulated server at %s: %d slots, 200 ms a request, so %d requests/s at most.\n\n", server.addr, demoSlots, demoCapacity)
	r, err := performDemo(ctx, demoSpec("http://"+server.addr, out), c.ErrOrStderr())
	if err := errors.Join(err, server.stop()); err != nil {
		return err
	}
	if err := printReport(w, r.dir, false); err != nil {
		return err
	}
	if !r.interrupted {
		fmt.Fprint(w, "\n"+demoLesson(r.summary))
	}
	return r.exit(runOptions{}, c.ErrOrStderr())
}

func performDemo(ctx context.Context, spec plan.Spec, stderr io.Writer) (finished, error) {
	l, err := newLoad(spec)
	if err != nil {
		return finished{}, err
	}
	return l.perform(ctx, newDisplay(stderr, l.plan), stderr)
}

// demoSpec is the load: below capacity, near it, past it, and past it through as many connections as the server has slots.
func demoSpec(url, out string) plan.Spec {
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Model, spec.Out = url, "sim", out
	spec.Load.Arrival = "poisson"
	spec.Load.Stages = []plan.LoadStage{
		{Name: "20/s", Rate: 20, Duration: 6 * time.Second},
		{Name: "36/s", Rate: 36, Duration: 6 * time.Second, Gap: time.Second},
		{Name: "60/s", Rate: demoOverload, Duration: 6 * time.Second, Gap: time.Second},
		{Name: "60/s, 8 connections", Rate: demoOverload, Duration: 6 * time.Second, Gap: 4 * time.Second, MaxInFlight: demoSlots},
	}
	spec.Workload.InputTokens, spec.Workload.OutputTokens = "32", plan.Lengths(strconv.Itoa(demoTokens))
	return spec
}

// simulator is this program in another process, as a server.
type simulator struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startSim starts a server by the program tare on a free port. It ends with stop, and when this process ends, however it ends.
func startSim(ctx context.Context, tare string, stderr io.Writer, flags ...string) (*simulator, error) {
	cmd := exec.CommandContext(ctx, tare, append([]string{"sim", "--addr", "127.0.0.1:0", "--attended"}, flags...)...)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	s := &simulator{cmd: cmd, stdin: stdin}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), listening)
	if readErr != nil || !ok {
		return nil, errors.Join(fmt.Errorf("start the simulator: it said %q instead of its address", line), s.stop())
	}
	s.addr = addr
	return s, nil
}

// stop ends the server and waits for it.
func (s *simulator) stop() error {
	s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	return nil
}

// demoLesson says what a client would have hidden that takes its time from the moment a connection is free.
func demoLesson(s *judge.Summary) string {
	if len(s.Stages) < 2 {
		return ""
	}
	open, limited := s.Stages[len(s.Stages)-2], s.Stages[len(s.Stages)-1]
	return fmt.Sprintf(`What a biased client would have hidden
  In the last stage requests wait in the client for one of %d connections. A client that starts its stop-watch when it
  sends reports a p99 of %s there: as if 60 requests/s were no trouble to a server that can do %d. Counted from the
  moment each request was due, p99 is %s: the queue has only moved from the server into the client. With as many
  connections as it takes, the stage before, the same load shows the same wait: %s, and %s even from send.
  Of %s requests/s that were due, %s were sent. A client that counts only what it sends calls that its load.
`, demoSlots, milliseconds(limited.Metrics["e2e_ms"].P99), demoCapacity, milliseconds(limited.Metrics["e2e_from_due_ms"].P99),
		milliseconds(open.Metrics["e2e_from_due_ms"].P99), milliseconds(open.Metrics["e2e_ms"].P99),
		rate(limited.PlannedRate), rate(limited.AchievedRate))
}

func milliseconds(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%.0f ms", v)
}

func rate(n judge.Number) string {
	v, ok := n.Get()
	if !ok {
		return "an unknown number of"
	}
	return fmt.Sprintf("%.0f", v)
}
