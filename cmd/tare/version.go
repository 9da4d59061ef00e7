package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/record"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which tare this is",
		Args:  cobra.NoArgs,
		RunE: verb(func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), toolLine())
			return err
		}),
	}
}

// toolLine names the program, its Go and its system.
func toolLine() string {
	t := record.ThisTool()
	return strings.Join(strings.Fields(fmt.Sprintf("tare %s %s %s %s/%s", t.Version, t.Revision, t.GoVersion, runtime.GOOS, runtime.GOARCH)), " ")
}
