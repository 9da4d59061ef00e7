package drive

import (
	"time"

	"tare/internal/record"
)

// recorder packs one sender's exchanges into blocks for the writer. It is not safe for concurrent use.
type recorder struct {
	to    *writer
	block []byte
	n     int
	since time.Duration // when the block was begun
}

const (
	blockBytes = 64 << 10
	spareBytes = 1 << 20                // of a block that is kept to be used again
	mostHeld   = 16 << 20               // of a block, before the sender waits for the disk rather than lose it
	blockAge   = 500 * time.Millisecond // a killed run loses what is younger
)

// add takes down x, which may be reused at once.
func (r *recorder) add(x *record.Exchange, now time.Duration) {
	if r.n == 0 {
		r.since = now
	}
	r.block = record.AppendExchange(r.block, x)
	r.n++
	if len(r.block) >= blockBytes {
		r.flush()
	}
}

// age hands over a block that has waited long enough.
func (r *recorder) age(now time.Duration) {
	if r.n > 0 && now-r.since >= blockAge {
		r.flush()
	}
}

// flush hands the block over unless the writer is behind; then the block goes on growing, up to a limit.
func (r *recorder) flush() {
	if len(r.block) >= mostHeld {
		r.to.blocks <- block{r.block, r.n}
		r.block, r.n = r.to.empty(), 0
		return
	}
	select {
	case r.to.blocks <- block{r.block, r.n}:
		r.block, r.n = r.to.empty(), 0
	default:
	}
}

// close hands over what is left, waiting for the writer.
func (r *recorder) close() {
	if r.n > 0 {
		r.to.blocks <- block{r.block, r.n}
		r.block, r.n = nil, 0
	}
}

type block struct {
	bytes []byte
	n     int
}

// writer puts blocks on disk in a goroutine of its own, so that no sender waits for a disk.
type writer struct {
	log    *record.Log
	blocks chan block
	spare  chan []byte
	told   func(block []byte, n int)
	err    error // first failure; read it after run has returned
}

func newWriter(log *record.Log, told func([]byte, int)) *writer {
	if told == nil {
		told = func([]byte, int) {}
	}
	return &writer{log: log, told: told, blocks: make(chan block, 64), spare: make(chan []byte, 64)}
}

// run writes blocks until the channel is closed. It calls failed once, at the first error, and goes on emptying.
func (w *writer) run(failed func(error)) {
	for b := range w.blocks {
		if w.err == nil {
			if w.err = w.log.WriteBlock(b.bytes, b.n); w.err != nil {
				failed(w.err)
			}
		}
		w.told(b.bytes, b.n)
		if cap(b.bytes) <= spareBytes {
			select {
			case w.spare <- b.bytes[:0]:
			default:
			}
		}
	}
}

func (w *writer) empty() []byte {
	select {
	case b := <-w.spare:
		return b
	default:
		return make([]byte, 0, blockBytes+blockBytes/4)
	}
}
