//go:build !linux

package sim

import (
	"context"
	"time"
)

// socket is what the transport knows of a connection.
type socket struct {
	peer *peer
}

func portableClock() clock { return clock{base: time.Now()} }

func transport(ctx context.Context, cfg Config, ready func(addr string), build func(w wire) engine) error {
	return carryPortable(ctx, cfg, ready, build)
}
