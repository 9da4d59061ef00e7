package main

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"

	"tare/internal/plan"
)

//go:embed example.yaml
var exampleSpec string

func newSpec() *cobra.Command {
	c := &cobra.Command{
		Use:   "spec",
		Short: "Print the form of a spec file",
		Example: `  tare spec convert config.yml > spec.yaml
  tare spec example > spec.yaml
  tare spec schema > tare-spec.schema.json`,
	}
	c.AddCommand(newConvert(), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a spec file",
		Args:  cobra.NoArgs,
		RunE: verb(func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(plan.Schema())
			return err
		}),
	}, &cobra.Command{
		Use:   "example",
		Short: "Print a spec with every key, its default and its meaning",
		Args:  cobra.NoArgs,
		RunE: verb(func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), exampleSpec)
			return err
		}),
	})
	return c
}
