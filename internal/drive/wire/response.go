// Package wire moves bytes and frames them: sockets with kernel receive stamps, HTTP/1.1 replies, server-sent events.
// It knows nothing of what the bytes mean.
package wire

// Response is an incremental parser of one HTTP/1.1 reply and the server-sent events in its body. Bytes are fed as they
// arrive, cut anywhere; only the moments of its calls to the Sink depend on the cuts. It allocates only while a partial
// line or event grows beyond any it has held before. The zero value must be Reset before use.
type Response struct{}

// Sink takes what a Response finds. Slices are valid only during the call.
type Sink interface {
	Head(h *Head)            // the header block is complete; 1xx replies are skipped
	Event(name, data []byte) // one server-sent event with data
	Comment()                // one comment line of an event stream
	Body(b []byte)           // a piece of a body that is not an event stream
}

// Head is what a reply's header block says.
type Head struct {
	Status      int
	EventStream bool   // Content-Type is text/event-stream
	Encoding    string // Content-Encoding when it is neither absent nor identity
	KeepAlive   bool   // the connection may be used again after this reply
	Length      int64  // body bytes announced; -1 when chunked or until close
	Location    string // of a redirect
	RetryAfter  string
}

// Reset prepares r for the next reply on a connection; found bytes go to s.
func (r *Response) Reset(s Sink) { panic("not built") }

// Feed takes the next bytes of the connection. done reports that the reply is complete; rest is what follows it.
// An error means that the peer does not speak HTTP/1.1; the connection is of no further use.
func (r *Response) Feed(b []byte) (rest []byte, done bool, err error) { panic("not built") }

// EOF tells r that the peer closed. It returns nil when the reply is thereby complete (a body that lasts until close),
// and io.ErrUnexpectedEOF when something is missing. A pending event without its blank line is dispatched.
func (r *Response) EOF() error { panic("not built") }

// Pending reports whether bytes of an unfinished event or document are held.
func (r *Response) Pending() bool { panic("not built") }

// Started reports whether any byte of the reply has come.
func (r *Response) Started() bool { panic("not built") }

// KeepAlive reports whether the connection may carry another request after a complete reply.
func (r *Response) KeepAlive() bool { panic("not built") }
