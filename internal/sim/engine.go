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
