package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"tare/internal/record"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which tare this is",
		Args:  cobra.NoArgs,
		RunE: verb(func(c *cobra.Command, _ []string) error {
			t := record.ThisTool()
			fmt.Fprintf(c.OutOrStdout(), "tare %s", t.Version)
			if t.Revision != "" {
				fmt.Fprintf(c.OutOrStdout(), " %s", t.Revision)
			}
			fmt.Fprintf(c.OutOrStdout(), " %s %s/%s\n", t.GoVersion, runtime.GOOS, runtime.GOARCH)
			return nil
		}),
	}
}
