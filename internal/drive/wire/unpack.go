package wire

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
)

// unpacker undoes gzip as its bytes arrive: what a piece makes known is passed on before the next one is asked for. Memory is that
// of gzip and one buffer, whatever the bytes unpack to. An unpacker that is not fed to its end must be stopped.
//
// The decoder pulls and the connection pushes, so the decoder runs as a coroutine, which goes on when it is fed and waits
// when it has used everything up.
type unpacker struct {
	in    []byte // fed and not yet used
	last  bool   // nothing more will be fed
	over  bool   // the decoder has returned
	err   error  // why, if not at its end
	next  func() (struct{}, bool)
	close func()
}

const unpacked = 16 << 10 // bytes passed on at a time

var errStopped = errors.New("stopped")

func newUnpacker(emit func([]byte) error) *unpacker {
	u := &unpacker{}
	u.next, u.close = iter.Pull(func(wait func(struct{}) bool) {
		if err := unpack(&feed{u, wait}, emit); err != nil {
			u.err = fmt.Errorf("gzip-encoded body: %w", err)
		}
	})
	return u
}

func unpack(from io.Reader, emit func([]byte) error) error {
	z, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	buf := make([]byte, unpacked)
	for {
		n, err := z.Read(buf)
		if n > 0 {
			if err := emit(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// feed takes the next bytes.
func (u *unpacker) feed(b []byte) error {
	u.in = b
	u.resume()
	return u.err
}

// end takes the end of the bytes.
func (u *unpacker) end() error {
	u.last = true
	u.resume()
	u.stop()
	return u.err
}

func (u *unpacker) resume() {
	if _, more := u.next(); !more {
		u.over = true
	}
}

// stop gives up what the decoder holds.
func (u *unpacker) stop() {
	if !u.over {
		u.over = true
		u.close()
	}
}

// feed is what the decoder reads from.
type feed struct {
	u    *unpacker
	wait func(struct{}) bool
}

func (f *feed) Read(p []byte) (n int, err error) {
	for len(f.u.in) == 0 {
		if f.u.last {
			return 0, io.EOF
		}
		if !f.wait(struct{}{}) {
			return 0, errStopped
		}
	}
	n = copy(p, f.u.in)
	f.u.in = f.u.in[n:]
	return n, nil
}
