package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one way for a request to fail, and how often it does.
type Fault struct {
	kind   faultKind
	status int           // of faultStatus
	delay  time.Duration // of faultSlowHeaders
	rate   float64       // fraction of requests
}

type faultKind uint8

const (
	noFault faultKind = iota
	faultStatus
	faultStreamError
	faultTruncate
	faultCut
	faultReset
	faultStall
	faultSlowHeaders
	faultEmpty
	faultCloseAfterReply
	faultSilent
	faultNoToken
	faultHTML
	faultRedirect
)

var faultNames = [...]string{"", "status", "stream-error", "truncate", "cut", "reset", "stall", "slow-headers", "empty", "close-after-reply",
	"silent", "no-token", "html", "redirect"}

// ParseFault reads one fault and its rate: status=503:0.05, reset:0.01, slow-headers=2s:0.1.
func ParseFault(s string) (Fault, error) {
	what, rate, ok := strings.Cut(s, ":")
	if !ok {
		return Fault{}, fmt.Errorf("fault %q: no rate\nhint: %s:0.01 strikes one request in a hundred", s, s)
	}
	f, err := parseMarker(what)
	if err != nil {
		return Fault{}, err
	}
	f.rate, err = strconv.ParseFloat(rate, 64)
	if err != nil || !(f.rate >= 0 && f.rate <= 1) {
		return Fault{}, fmt.Errorf("fault %q: rate must be a fraction from 0 to 1, got %q", s, rate)
	}
	return f, nil
}

// parseMarker reads a fault without a rate, as it stands in a prompt between [[sim: and ]].
func parseMarker(s string) (Fault, error) {
	name, value, valued := strings.Cut(s, "=")
	f := Fault{kind: faultKind(max(slices.Index(faultNames[1:], name)+1, 0))}
	var err error
	switch {
	case f.kind == noFault:
		err = fmt.Errorf("unknown")
	case f.kind == faultStatus:
		f.status, err = strconv.Atoi(value)
		if err != nil || f.status < 400 || f.status > 599 {
			err = fmt.Errorf("status must be from 400 to 599, got %q", value)
		}
	case f.kind == faultSlowHeaders:
		f.delay, err = time.ParseDuration(value)
		if err != nil || f.delay <= 0 || f.delay > 24*time.Hour {
			err = fmt.Errorf("delay must be above 0 and at most 24h, got %q", value)
		}
	case valued:
		err = fmt.Errorf("takes no value")
	}
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w\nhint: status=503, slow-headers=2s, %s", s, err, strings.Join(plainFaults(), ", "))
	}
	return f, nil
}

// plainFaults names the faults that take no value.
func plainFaults() (names []string) {
	for kind, name := range faultNames {
		if k := faultKind(kind); k != noFault && k != faultStatus && k != faultSlowHeaders {
			names = append(names, name)
		}
	}
	return names
}

// String gives f as a prompt marker spells it; empty for no fault.
func (f Fault) String() string {
	switch f.kind {
	case faultStatus:
		return "status=" + strconv.Itoa(f.status)
	case faultSlowHeaders:
		return "slow-headers=" + f.delay.String()
	}
	return faultNames[f.kind]
}

// Faults is a list of faults that exclude each other: one request meets one at most. It is a repeatable flag value.
type Faults []Fault

// Set appends the parsed s.
func (fs *Faults) Set(s string) error {
	f, err := ParseFault(s)
	if err == nil {
		*fs = append(*fs, f)
	}
	return err
}

// Type names the flag's value in help texts.
func (fs *Faults) Type() string { return "fault:rate" }

// String lists the faults with their rates.
func (fs Faults) String() string {
	var list []string
	for _, f := range fs {
		list = append(list, f.String()+":"+strconv.FormatFloat(f.rate, 'g', -1, 64))
	}
	return strings.Join(list, ",")
}

func (fs Faults) validate() []error {
	sum := 0.0
	for _, f := range fs {
		sum += f.rate
	}
	if sum > 1+1e-9 {
		return []error{fmt.Errorf("fault: rates must add up to at most 1, got %g", sum)}
	}
	return nil
}

// pick is the fault of the request whose draw is u.
func (fs Faults) pick(u float64) Fault {
	for _, f := range fs {
		if u < f.rate {
			return f
		}
		u -= f.rate
	}
	return Fault{}
}
