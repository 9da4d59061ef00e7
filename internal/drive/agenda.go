package drive

import "time"

// agenda holds what is to be done later, in order of time: a heap. The zero value is empty.
type agenda[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	at    time.Duration
	index int64 // of the request: the order of what falls together
	what  T
}

func (e *entry[T]) before(o *entry[T]) bool {
	return e.at < o.at || e.at == o.at && e.index < o.index
}

func (a *agenda[T]) empty() bool { return len(a.entries) == 0 }

// first is when the first is due, and what it is; never while there is none.
func (a *agenda[T]) first() (at time.Duration, what T) {
	if len(a.entries) == 0 {
		return never, what
	}
	return a.entries[0].at, a.entries[0].what
}

func (a *agenda[T]) add(at time.Duration, index int64, what T) {
	a.entries = append(a.entries, entry[T]{at, index, what})
	h := a.entries
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// done strikes the first off.
func (a *agenda[T]) done() {
	h := a.entries
	n := len(h) - 1
	h[0] = h[n]
	h[n] = entry[T]{}
	h = h[:n]
	a.entries = h
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			return
		}
		if down+1 < n && h[down+1].before(&h[down]) {
			down++
		}
		if !h[down].before(&h[i]) {
			return
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}
