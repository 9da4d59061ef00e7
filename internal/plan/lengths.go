package plan

import (
	"strconv"
	"strings"

	"tare/internal/plan/workload"
)

// Lengths is how long prompts or answers are, as a user writes it: "128", or a distribution like "normal(512,128)".
type Lengths string

// Fixed returns the length, if all are alike.
func (l Lengths) Fixed() (tokens int, ok bool) {
	n, err := strconv.Atoi(string(l))
	return n, err == nil
}

// fault says why lengths cannot be drawn so, and what to do.
func (l Lengths) fault() (reason, hint string) {
	if _, err := workload.ParseLengths(string(l)); err != nil {
		return err.Error(), "write a number, " + strings.Join(workload.Families(), ", ")
	}
	return "", ""
}
