//go:build !linux

package health

import (
	"errors"
	"time"
)

// startTimer fails: Go's own timers are up to a millisecond late by themselves.
func startTimer(time.Duration) (timer, error) { return nil, errors.ErrUnsupported }
