package drive

import (
	"sync/atomic"
	"time"

	"tare/internal/plan"
)

// job is a planned request made ready to be written.
type job struct {
	index   int64
	session int64
	turn    int         // of its session
	visit   *visit      // that it is of; nil for a lone request
	of      plan.Origin // of a later turn
	later   *later      // that it is; nil for a first turn
	stage   int
	due     time.Duration // from the start of its stage
	think   time.Duration // between the end of its session and the next request in its place
	in, out int           // planned tokens
	class   string        // of the request
	server  int           // it goes to
	lines   []byte        // headers of its own; engine http2, where bytes has the body alone
	made    time.Duration // when it was ready
	bytes   []byte        // the whole HTTP request; its memory stays with the ring, or the visit
}

// ring hands jobs from the feeder to one sender, without locks: one side fills, the other takes.
type ring struct {
	jobs []job
	_    [64]byte
	head atomic.Int64 // next to take; written by the sender only
	_    [64]byte
	tail atomic.Int64 // next to fill; written by the feeder only
	_    [64]byte
	held atomic.Int64 // bytes of the jobs between head and tail

	asked stack // later turns that are to be made or recorded, and visits that are over: from the sender
	made  stack // later turns that are ready: from the feeder
}

const (
	ringJobs  = 1 << 12              // a power of two
	ringBytes = 64 << 20             // of requests made ready, for each sender
	keepBytes = ringBytes / ringJobs // a job's buffer larger than this is not kept for the next
)

func newRing() *ring { return &ring{jobs: make([]job, ringJobs)} }

// slot is the next job to fill, or nil while the ring is full. Call filled when it is ready.
func (r *ring) slot() *job {
	tail := r.tail.Load()
	if tail-r.head.Load() == ringJobs || r.held.Load() > ringBytes {
		return nil
	}
	return &r.jobs[tail&(ringJobs-1)]
}

func (r *ring) filled() {
	tail := r.tail.Load()
	r.held.Add(int64(len(r.jobs[tail&(ringJobs-1)].bytes)))
	r.tail.Store(tail + 1)
}

// first is the next job to send, or nil while there is none ready. It stays valid until taken.
func (r *ring) first() *job {
	head := r.head.Load()
	if head == r.tail.Load() {
		return nil
	}
	return &r.jobs[head&(ringJobs-1)]
}

func (r *ring) taken() {
	head := r.head.Load()
	j := &r.jobs[head&(ringJobs-1)]
	r.held.Add(-int64(len(j.bytes)))
	if cap(j.bytes) > keepBytes {
		j.bytes = nil
	}
	r.head.Store(head + 1)
}
