package main

import (
	"errors"
	"strings"
)

// The exit codes. Others script against them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitObjective   = 3
	exitVerdict     = 4
	exitInterrupted = 130
)

const exitCodesHelp = `  0    done
  1    failed: something inside, or no request completed
  2    usage: a flag or the spec is wrong
  3    an objective was missed, with --fail-on-slo, or a regression was found
  4    the verdict is below VALID, with --strict
  130  interrupted; the report covers what was measured`

// exit is an error that knows its exit code. Without an err there is nothing more to say.
type exit struct {
	code int
	err  error
	hint string // what to do about it; may be empty
}

func (e *exit) Error() string {
	if e.err == nil {
		return "exit"
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// text is what the user reads: every line of the error, then the hint.
func (e *exit) text() string {
	var b strings.Builder
	for line := range strings.Lines(e.err.Error()) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, " ") {
			b.WriteString("tare: ")
		}
		b.WriteString(line + "\n")
	}
	if e.hint != "" {
		b.WriteString("hint: " + e.hint + "\n")
	}
	return b.String()
}

// failed makes err end the program with code 1.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{code: exitFailed, err: err}
}

// misused makes err end the program with code 2. An err that knows its code and hint already keeps them.
func misused(err error, hint string) error {
	if _, ok := errors.AsType[*exit](err); ok || err == nil {
		return err
	}
	return &exit{code: exitUsage, err: err, hint: hint}
}

// asExit finds the exit in err. An error without one comes from the parser of the command line, before any verb began.
func asExit(err error) *exit {
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	return &exit{code: exitUsage, err: err, hint: "tare help lists the commands, tare help COMMAND its flags"}
}
