//go:build !linux || (!amd64 && !arm64)

package drive

import (
	"context"
	"errors"
	"time"
)

// loop stands for engine epoll, which this system does not have.
type loop struct{ shard }

var errNoEpoll = errors.New("engine epoll needs Linux on amd64 or arm64")

func epollWorks() error { return errNoEpoll }

func newLoop(*run, int) (*loop, error) { return nil, errNoEpoll }

func (l *loop) warm(context.Context, []int, time.Duration) error { return errNoEpoll }
func (l *loop) carry()                                           {}
func (l *loop) close()                                           {}
