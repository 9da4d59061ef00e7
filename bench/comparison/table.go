package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tare/bench/spread"
)

// printTable folds lines into one row for each tool and rate, in the order in which they first come.
func printTable(in io.Reader, out io.Writer) error {
	type load struct {
		tool string
		rate float64
	}
	var order []load
	all := map[load][]line{}
	for d := json.NewDecoder(in); ; {
		var l line
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read lines: %w", err)
		}
		c := load{l.Tool, l.Asked}
		if all[c] == nil {
			order = append(order, c)
		}
		all[c] = append(all[c], l)
	}
	fmt.Fprintln(out, "| asked/s | tool | n | achieved/s | TTFT p50, reported − true (ms) | TTFT p99, reported − true (ms) | CPU ms/request |")
	fmt.Fprintln(out, "|---:|---|---:|---:|---:|---:|---:|")
	for _, c := range order {
		fmt.Fprintln(out, row(all[c]))
	}
	return nil
}

// row is min / median / max over the runs that gave a result, or the reason why none did.
func row(runs []line) string {
	good := slices.DeleteFunc(slices.Clone(runs), func(l line) bool { return l.Fault != "" })
	start := fmt.Sprintf("| %g | %s | %d |", runs[0].Asked, runs[0].Tool, len(good))
	if len(good) == 0 {
		return start + " failed: " + runs[0].Fault + " | | | |"
	}
	return start + " " + cell(good, func(l line) float64 { return l.Achieved }) +
		" | " + cell(good, func(l line) float64 { return l.TTFT.P50 - l.Truth.P50 }) +
		" | " + cell(good, func(l line) float64 { return l.TTFT.P99 - l.Truth.P99 }) +
		" | " + cell(good, func(l line) float64 { return 1000 * l.CPU / float64(max(l.Requests, 1)) }) + " |"
}

func cell(runs []line, of func(line) float64) string {
	values := make([]float64, len(runs))
	for i, l := range runs {
		values[i] = of(l)
	}
	least, middle, most := spread.Of(values)
	if len(values) == 1 {
		return figure(middle)
	}
	return figure(least) + " / " + figure(middle) + " / " + figure(most)
}

// figure has three significant digits.
func figure(x float64) string {
	text := strconv.FormatFloat(x, 'g', 3, 64)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	return text
}
