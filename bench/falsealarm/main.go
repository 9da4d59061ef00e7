// Command falsealarm holds the gates on the client to simulated runs of which it is known whether the client was healthy: how often they
// accuse a healthy client before a server that is slow, overloaded, failing or slow to accept, and how often they see a client that is
// late by twice what they allow. Runs are made in virtual time and judged by internal/judge like any other; the same flags print
// the same tables, which stand in docs/verdict.md.
//
//	go run ./bench/falsealarm
//	go run ./bench/falsealarm --measured runs/quiet
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	runs := flag.Int("runs", 200, "simulated runs of each row")
	measured := flag.String("measured", "", "run directory of a healthy client, whose lateness is drawn from in place of the built-in one")
	table := flag.String("table", "", "one of alarms, power and steady alone")
	flag.Parse()
	tables := []struct {
		name string
		of   func(lateness, int) string
	}{{"alarms", alarms}, {"power", power}, {"steady", steady}}
	known := *table == ""
	for _, t := range tables {
		known = known || *table == t.name
	}
	if *runs < 1 || !known || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "falsealarm: needs at least 1 run, a table that is alarms, power or steady if any, and no arguments")
		os.Exit(2)
	}
	late := published
	if *measured != "" {
		var err error
		if late, err = measuredIn(*measured); err != nil {
			fmt.Fprintln(os.Stderr, "falsealarm:", err)
			os.Exit(1)
		}
	}
	for _, t := range tables {
		if *table == "" || *table == t.name {
			fmt.Println(t.of(late, *runs))
		}
	}
}
