package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Serve listens on cfg.Addr, calls ready with the address it got, and serves until ctx ends. It returns when all its
// goroutines have ended and the truth is written. The error is nil when it was ended by ctx.
func Serve(ctx context.Context, cfg Config, ready func(addr string)) error {
	if cfg.TLS != nil {
		return serve(ctx, cfg, ready, carryPortable)
	}
	return serve(ctx, cfg, ready, transport)
}

// carry is a transport: it listens, and drives engines until ctx ends.
type carry func(ctx context.Context, cfg Config, ready func(addr string), build func(w wire) engine) error

func serve(ctx context.Context, cfg Config, ready func(addr string), carry carry) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	if cfg.Null {
		return carry(ctx, cfg, ready, func(w wire) engine { return newNull(cfg, w) })
	}
	if cfg.TruthFile == "" {
		return carry(ctx, cfg, ready, func(w wire) engine { return newCore(cfg, w, nil, wallOffset(w.now)) })
	}
	return serveWithTruth(ctx, cfg, ready, carry)
}

func serveWithTruth(ctx context.Context, cfg Config, ready func(addr string), carry carry) error {
	file, err := os.Create(cfg.TruthFile)
	if err != nil {
		return fmt.Errorf("create truth: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := newTruth()
	var writer sync.WaitGroup
	writer.Go(func() { t.run(file, func(error) { cancel() }) })
	err = carry(ctx, cfg, ready, func(w wire) engine { return newCore(cfg, w, t, wallOffset(w.now)) })
	close(t.full)
	writer.Wait()
	return errors.Join(err, t.err, file.Close())
}

// clock reads monotonic time. On Linux it counts as CLOCK_MONOTONIC does, elsewhere from the start of the server.
type clock struct {
	base time.Time
	mono int64 // nanoseconds at base
}

func (k *clock) now() int64 { return k.mono + int64(time.Since(k.base)) }

// wallOffset is wall-clock nanoseconds minus those of now: of five samples the one taken in the shortest time.
func wallOffset(now func() int64) (offset int64) {
	best := int64(-1)
	for range 5 {
		before := now()
		wall := time.Now().UnixNano()
		took := now() - before
		if best < 0 || took < best {
			best, offset = took, wall-before-took/2
		}
	}
	return offset
}
