package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "Load generator and benchmark for LLM inference servers",
		Long: `tare sends a planned load to an LLM inference server and reports what the server did,
with a verdict on how much of each number could be the client's own.

A run writes a directory of facts; every number is computed from that directory.`,
		Example: `  tare demo
  tare probe http://127.0.0.1:8000
  tare run http://127.0.0.1:8000 --model my-model --rate 10 --duration 60s
  tare sweep http://127.0.0.1:8000 --model my-model
  tare run -f spec.yaml --out runs/today
  tare report runs/today
  tare verify runs/today
  tare compare runs/before runs/after`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = toolLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newRun(), newSweep(), newPlan(), newCalibrate(), newBias(), newProbe(), newReport(), newVerify(), newCompare(), newSim(), newDemo(), newSpec(), newVersion(), newExitCodes())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if !c.Runnable() && c.HasSubCommands() {
			refuseOtherWords(c)
		}
	}
	return root
}

// refuseOtherWords lets a command that only groups others print its help, and take no word that names none of them.
func refuseOtherWords(c *cobra.Command) {
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

// newExitCodes is a page of help: "tare help exit-codes".
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  "tare ends with one of these codes:\n\n" + exitCodesHelp,
	}
}

// verb wraps a command's work so that an error without an exit code of its own ends with code 1.
func verb(work func(c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := work(c, args)
		if e := (*exit)(nil); err == nil || errors.As(err, &e) {
			return err
		}
		return failed(err)
	}
}
