package sim

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// batchSize is how many ended requests go to the truth in one hand-over; batches of them are all that is held.
const (
	batchSize = 256
	batches   = 32
)

// truth writes what happened to each request as JSON Lines, on a goroutine of its own. A core that is faster than the
// file for long waits for it: nothing is dropped, and memory is bounded.
type truth struct {
	full  chan []*stream
	empty chan []*stream // written batches; their streams are for the core to use again
	err   error          // of the first write that went wrong; read it after run has returned
}

func newTruth() *truth {
	t := &truth{full: make(chan []*stream, batches), empty: make(chan []*stream, batches)}
	for range batches {
		t.empty <- make([]*stream, 0, batchSize)
	}
	return t
}

// exchange takes a batch over and returns one that was written.
func (t *truth) exchange(batch []*stream) []*stream {
	written := <-t.empty
	t.full <- batch
	return written
}

// run writes until full is closed. After a fault it reads on and writes no more; onFault is called once.
func (t *truth) run(w io.Writer, onFault func(error)) {
	out := bufio.NewWriterSize(w, 1<<20)
	var line []byte
	for batch := range t.full {
		for _, s := range batch {
			line = s.appendTruth(line[:0])
			t.note(second(out.Write(line)), onFault)
		}
		if len(t.full) == 0 {
			t.note(out.Flush(), onFault)
		}
		t.empty <- batch
	}
	t.note(out.Flush(), onFault)
}

func second(_ int, err error) error { return err }

func (t *truth) note(err error, onFault func(error)) {
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("write truth: %w", err)
		onFault(t.err)
	}
}

// appendTruth writes the facts of one ended request as a line.
func (s *stream) appendTruth(b []byte) []byte {
	number := func(key string, n int64) {
		b = append(b, ',', '"')
		b = append(b, key...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, n, 10)
	}
	word := func(key, value string) {
		b = append(b, ',', '"')
		b = append(b, key...)
		b = append(b, `":`...)
		b = appendString(b, value)
	}
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, s.n, 10)
	word("request_id", string(s.id))
	number("remote_port", int64(s.port))
	word("outcome", s.outcome)
	word("fault", s.fault.String())
	number("status", int64(s.status))
	b = append(b, `,"stream":`...)
	b = strconv.AppendBool(b, s.ask.stream)
	number("prompt_tokens", int64(s.ask.prompt))
	number("cached_tokens", int64(s.cached))
	number("tokens", int64(s.tokens))
	number("recv_ns", s.recv)
	b = append(b, `,"recv_by_kernel":`...)
	b = strconv.AppendBool(b, s.stamped)
	if s.at != s.recv {
		number("arrived_ns", s.at)
	}
	number("preemptions", int64(s.batched.preempted))
	if s.admitted {
		number("queued_ns", s.start-s.recv)
	}
	if len(s.sends) > 0 {
		number("first_send_ns", s.sends[0])
	}
	b = append(b, `,"send_ns":[`...)
	for i, at := range s.sends {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, at, 10)
	}
	b = append(b, ']')
	number("end_ns", s.end)
	number("max_late_ns", s.late)
	number("blocked_sends", int64(s.blocked))
	return append(b, '}', '\n')
}
