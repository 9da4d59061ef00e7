package sim

// timing is a model of time: it decides when requests are served and when their tokens are due, and nothing else. The server
// on the wire and the Model in virtual time run the same one. Times are nanoseconds.
type timing interface {
	arrive(q *sequence) refusal     // with its at, prompt and max set; a status of 0 refuses nothing
	leave(q *sequence, at int64)    // it has ended, or its client has gone: its place is free from then on
	next() (at int64, ok bool)      // when advance is wanted
	advance(now int64)              // does what is due, or the oldest part of it
	load() load                     // what is going on now
	population(prompt, max int) int // requests that keep it busy without a pause; 0 when nothing limits it
	capacity(prompt, max int) (perSecond float64, ok bool)
}

// audience hears of what a timing decides. A token's audience may let the request leave.
type audience interface {
	began(q *sequence)        // its service has begun, at start
	resumed(q *sequence)      // its hold is over
	token(q *sequence, n int) // n more tokens were due at due; tokens and chunks count them already
}

// load is what a server is doing at a moment.
type load struct {
	running, waiting int     // requests
	kv               float64 // fraction of the KV memory that requests hold
	preemptions      uint64  // so far
}

// sequence is one request as a timing sees it.
type sequence struct {
	owner    *stream // of the server on the wire
	n        uint64  // arrival number, from 0
	draws    draws
	at       int64 // when it arrived
	hold     int64 // a delay of its own that comes before its prompt is computed
	prompt   int   // tokens
	max      int   // output tokens it will have
	tokens   int   // output tokens so far
	chunks   int
	text     chain // the prompt and what was said, where there is a prefix cache
	cached   int   // prompt tokens that the prefix cache had
	start    int64 // when its service began
	admitted bool  // it has begun
	due      int64 // of what comes next; in its audience, of what is there
	phase    phase
	order    uint64
	place    int // 1 + index in the heap of timers; 0 when not in it
	batched  batched
}

type phase uint8

const (
	phaseOut     phase = iota // not in service, and not waiting for it
	phaseQueued               // waits
	phaseBooked               // waits, and its start is known
	phaseHolding              // in service, and its hold is not over
	phaseTokens               // in service: a chunk is next
	phaseStalled              // in service, and nothing will come
)

// advanceAtMost is how many due events one call of advance handles, so that reading is never put off for long.
const advanceAtMost = 128

// newTiming makes the timing that the config asks for.
func newTiming(cfg Config, to audience) timing {
	if cfg.Batching {
		return newBatch(cfg, to)
	}
	return newSlots(cfg, to)
}
