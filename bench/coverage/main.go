// Command coverage measures how often the intervals of internal/judge/stats hold the truth, next to intervals that take requests for
// independent. It simulates queues whose quantiles are known and prints the table of docs/statistics.md; the same flags print
// the same table.
//
//	go run ./bench/coverage
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	runs := flag.Int("runs", 1000, "simulated runs of each row")
	truth := flag.Int("truth", 40_000_000, "requests of the simulation that tells the true quantiles where no formula does")
	flag.Parse()
	if *runs < 5 || *truth < 1000 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "coverage: needs at least 5 runs and 1000 requests for the truth, and no arguments")
		os.Exit(2)
	}
	fmt.Println(heading)
	for _, law := range []law{exponential, lognormal} {
		for _, rho := range []float64{0.3, 0.5, 0.8} {
			exact := law.truth(rho, *truth)
			for _, n := range []int{5_000, 30_000, 100_000} {
				for _, row := range study(law, rho, n, *runs, exact) {
					fmt.Println(row)
				}
			}
		}
	}
}
