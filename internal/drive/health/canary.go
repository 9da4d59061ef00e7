package health

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"tare/internal/drive/clock"
)

// canaryEvery is the time between two calls: no multiple of the steps in which servers emit.
const canaryEvery = 37 * time.Millisecond

// Canary waits for a timer of the kernel's as readers wait for replies: how late it takes it up is how late a reply would have been at
// that moment, by the client's and its machine's doing. It says nothing to any server.
type Canary struct {
	clock *clock.Clock
	timer timer
	next  time.Duration // when the timer is to go off next

	mu   sync.Mutex // shared with the sampler alone
	late []int64    // µs, since they were last taken
}

// timer goes off again and again.
type timer interface {
	wait() (times int64, err error) // until it has gone off since the last wait; os.ErrClosed when it is closed
	close() error
}

// NewCanary starts a timer. It fails where the system has none that can be waited for as a socket is.
func NewCanary(c *clock.Clock) (*Canary, error) {
	t, err := startTimer(canaryEvery)
	if err != nil {
		return nil, fmt.Errorf("start a canary: %w", err)
	}
	return &Canary{clock: c, timer: t, next: c.Now() + canaryEvery}, nil
}

// Sing listens until done is closed. It closes the timer.
func (c *Canary) Sing(done <-chan struct{}) error {
	var closing sync.WaitGroup
	var unclosed error
	heard := make(chan struct{})
	closing.Go(func() {
		select {
		case <-done:
		case <-heard:
		}
		unclosed = c.timer.close()
	})
	err := c.listen()
	close(heard)
	closing.Wait()
	return errors.Join(err, unclosed)
}

// listen takes down how late each call was heard. Those that came while nobody listened were heard with the last of them.
func (c *Canary) listen() error {
	for {
		times, err := c.timer.wait()
		if errors.Is(err, os.ErrClosed) {
			return nil
		} else if err != nil {
			return fmt.Errorf("canary: %w", err)
		}
		now := c.clock.Now()
		c.mu.Lock()
		for range times {
			c.late = append(c.late, max(now-c.next, 0).Microseconds())
			c.next += canaryEvery
		}
		c.mu.Unlock()
	}
}

// heard gives what was heard since it was last called, in µs.
func (c *Canary) heard() []int64 {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.late
	c.late = make([]int64, 0, len(late)+8)
	return late
}
