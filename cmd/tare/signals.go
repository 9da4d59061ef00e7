package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a run that was ended by a signal.
var errInterrupted = errors.New("interrupted")

// untilInterrupted is ctx until the process is asked to end. stop gives the signals back their usual effect.
func untilInterrupted(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// untilStdinCloses is ctx until stdin ends, and deaf to Ctrl-C: the process that holds the other end decides.
func untilStdinCloses(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithCancel(ctx)
	go func() { // nothing can end a read from stdin but its end: this lasts as long as the process may
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}

// interrupts follows the signals that end a run in two steps: the first cancels the context, so that nothing more is sent
// and what is in flight may end; the second closes cut, so that what is in flight is cut. Each is answered on notices.
func interrupts(parent context.Context, notices io.Writer) (ctx context.Context, cut <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	second, quit, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-signals:
			fmt.Fprintln(notices, "\ninterrupted: nothing more is sent, waiting for what is in flight; again to cut it")
			cancel(errInterrupted)
		case <-quit:
			return
		}
		select {
		case <-signals:
			fmt.Fprintln(notices, "\ninterrupted again: cutting what is in flight")
			close(second)
		case <-quit:
		}
	}()
	return ctx, second, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel(nil)
	}
}
