package drive

import (
	"fmt"
	"math/bits"
	"sync"
	"time"

	"tare/internal/record"
)

// tally counts one sender's work. The sender alone writes it; publish copies it for those who watch.
type tally struct {
	sent, done, failed int64
	inFlight           int64
	maxInFlight        int64
	tokens             int64 // token events
	reads, events      int64
	dials              int64
	odd                oddities
	slip, lag          spread
}

// ended takes in a finished exchange.
func (t *tally) ended(x *record.Exchange) {
	t.reads += int64(x.Reads)
	t.events += int64(len(x.Events))
	for i := range x.Events {
		e := &x.Events[i]
		if e.Kind.Token() {
			t.tokens++
		}
		if e.Flags&record.FlagStamped != 0 {
			t.lag.add(e.UserAt - e.KernelAt)
		}
	}
	if x.Outcome == record.Completed {
		t.done++
	} else {
		t.failed++
	}
}

// oddities counts replies that came otherwise than they should have, and were read nevertheless; and whose they say that they are.
type oddities struct {
	mistyped, packed, notStreamed int64
	echoed, foreign               int64 // repeat the X-Request-Id of a request of this run; of them, that of another one
}

func (o *oddities) note(f *flight) {
	if f.resp.Mistyped() {
		o.mistyped++
	}
	if f.packed {
		o.packed++
	}
	if f.answer.NotStreamed {
		o.notStreamed++
	}
	if f.echoed {
		o.echoed++
	}
	if f.foreign {
		o.foreign++
	}
}

// warnings says what was odd about the replies of a whole run.
func (o oddities) warnings() (all []string) {
	for _, c := range []struct {
		n    int64
		text string
	}{
		{o.mistyped, "%d replies were streams of events under another Content-Type: they were read as streams"},
		{o.packed, "%d replies came in gzip, which was not asked for: what packs a stream holds its events back"},
		{o.notStreamed, "%d replies came whole although streams were asked for: they have no time to first token"},
	} {
		if c.n > 0 {
			all = append(all, fmt.Sprintf(c.text, c.n))
		}
	}
	return all
}

// enter counts f among those in flight until it leaves, waits between its attempts included.
func (t *tally) enter(f *flight) {
	if !f.counted {
		f.counted = true
		t.inFlight++
		t.maxInFlight = max(t.maxInFlight, t.inFlight)
	}
}

func (t *tally) leave(f *flight) {
	if f.counted {
		f.counted = false
		t.inFlight--
	}
}

// spread is a coarse histogram for the live display: four buckets an octave, good to 12 %.
type spread [256]uint32

func (s *spread) add(d time.Duration) {
	u := uint64(max(d, 1))
	octave := bits.Len64(u)
	quarter := 0
	if octave > 2 {
		quarter = int(u>>(octave-3)) & 3
	}
	s[octave*4+quarter&255]++
}

func (s *spread) merge(o *spread) {
	for i := range s {
		s[i] += o[i]
	}
}

// quantile is the upper edge of the bucket that holds the q-quantile; 0 when nothing was added.
func (s *spread) quantile(q float64) time.Duration {
	var n uint64
	for _, c := range s {
		n += uint64(c)
	}
	want := uint64(q * float64(n))
	var seen uint64
	for i, c := range s {
		seen += uint64(c)
		if c > 0 && seen > want {
			octave, quarter := i/4, i%4
			if octave <= 2 {
				return time.Duration(1) << octave
			}
			return time.Duration(4+quarter+1) << (octave - 3)
		}
	}
	return 0
}

// window is a tally that others may look at.
type window struct {
	mu sync.Mutex
	t  tally
}

func (w *window) publish(t *tally) {
	w.mu.Lock()
	w.t = *t
	w.mu.Unlock()
}

func (w *window) look(into *tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	into.sent += w.t.sent
	into.done += w.t.done
	into.failed += w.t.failed
	into.inFlight += w.t.inFlight
	into.tokens += w.t.tokens
	into.slip.merge(&w.t.slip)
	into.lag.merge(&w.t.lag)
}
