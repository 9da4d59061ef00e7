package sim

// An engine decides what is sent and when; it never waits and never touches a socket. A transport drives it, on one
// goroutine: it hands in what arrives and calls advance when the time of next has come.
type engine interface {
	handler
	closed(c *conn)            // the client has gone, or the connection broke
	next() (at int64, ok bool) // when advance is wanted
	advance(now int64)         // does what is due, or the oldest part of it
	housekeep()                // called about ten times a second
	stop()                     // ends everything; called once, last
}

// A wire is the transport as an engine sees it. Times are nanoseconds on the monotonic clock.
type wire interface {
	now() int64
	send(c *conn, b []byte) (whole bool) // one send call; what the kernel does not take at once follows later, in order
	close(c *conn, how closing)          // after what was sent before; the engine hears no more of c
}

// closing is a way to end a connection.
type closing uint8

const (
	closeWhole closing = iota // at once, as a server does that is done with a connection
	closeDrain                // say the end, and read on until the client has closed, so that it can read the reply
	closeReset                // by RST: what was not delivered yet may be lost
)

// conn is one connection: what its engine and its reading know of it, and what its transport does.
type conn struct {
	port      int     // the client's
	at        int64   // receive stamp of the newest byte
	stamped   bool    // by the kernel
	in        []byte  // bytes of requests that cannot be taken yet
	need      int     // bytes of the request at the start of in, where its header is known
	proceeded bool    // 100 Continue was sent for it
	busy      bool    // a reply is owed
	cutting   bool    // feed is at work on it
	gone      bool    // closed by either side
	s         *stream // the request in service or waiting

	socket // the transport's
}

// timers is a heap of streams, earliest due first, and of equals the one that was set first.
type timers struct {
	heap []*stream
	set  uint64 // times set so far
}

func (t *timers) next() (at int64, ok bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].due, true
}

// add sets the timer of s to its due time.
func (t *timers) add(s *stream) {
	t.set++
	s.order = t.set
	t.heap = append(t.heap, s)
	t.up(len(t.heap)-1, s)
}

// remove takes the timer of s away, if it is set.
func (t *timers) remove(s *stream) {
	i := s.place - 1
	if i < 0 {
		return
	}
	s.place = 0
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if i == last {
		return
	}
	t.down(i, moved)
	if t.heap[i] == moved {
		t.up(i, moved)
	}
}

// pop takes the earliest stream whose time has come.
func (t *timers) pop(now int64) (*stream, bool) {
	if len(t.heap) == 0 || t.heap[0].due > now {
		return nil, false
	}
	s := t.heap[0]
	t.remove(s)
	return s, true
}

func (s *stream) before(o *stream) bool {
	return s.due < o.due || s.due == o.due && s.order < o.order
}

func (t *timers) put(i int, s *stream) {
	t.heap[i] = s
	s.place = i + 1
}

func (t *timers) up(i int, s *stream) {
	for i > 0 {
		parent := (i - 1) / 2
		if !s.before(t.heap[parent]) {
			break
		}
		t.put(i, t.heap[parent])
		i = parent
	}
	t.put(i, s)
}

func (t *timers) down(i int, s *stream) {
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			break
		}
		if child+1 < len(t.heap) && t.heap[child+1].before(t.heap[child]) {
			child++
		}
		if !t.heap[child].before(s) {
			break
		}
		t.put(i, t.heap[child])
		i = child
	}
	t.put(i, s)
}
