// Package plan decides, before a run, what will be sent and when.
//
// A Spec is what the user wrote; New freezes it into a Plan. Every attribute of request n is a function of the seed, the
// attribute's name and n alone, so that any worker, in any order, makes the same request.
package plan

import (
	"context"
	"time"
)

// Plan is a frozen workload: the stages and, by walking it, every request.
type Plan struct {
	Spec   Spec // effective: defaults filled, validated
	Stages []Stage

	encode Encoder
}

// Stage is one resolved part of the load.
type Stage struct {
	Name   string
	Warmup bool // left out of the totals
	Closed bool // requests follow replies instead of a schedule

	// Gap is the idle time before the stage, after the stage before it has ended.
	Gap time.Duration
	// Duration is the window in which requests fall due. It is 0 for a closed stage that ends by count.
	Duration time.Duration
	// First is the index of the stage's first request, Requests how many there are; Requests is 0 for a closed stage that
	// ends by time, which reserves 2³² indexes.
	First    int64
	Requests int64

	Rate, RateTo float64 // requests per second at the start and the end of an open stage
	Concurrency  int     // requests in flight of a closed stage
	MaxInFlight  int     // declared admission limit of an open stage; 0 for none
}

// Request is one planned request. The walker owns Body and overwrites it with the next request.
type Request struct {
	Index int64
	Stage int           // index into Plan.Stages
	Due   time.Duration // intended send time, offset from the start of its stage; 0 in a closed stage
	Body  []byte        // the HTTP request body, complete

	Prompt       string // text of the prompt
	InputTokens  int    // asked length of the prompt, tokens
	OutputTokens int    // asked length of the answer, tokens
}

// Encoder writes request bodies in one server's dialect.
type Encoder interface {
	// AppendBody appends the body of r's HTTP request to dst. It reads every field of r but Body.
	AppendBody(dst []byte, r *Request) []byte
}

// IDs are the SHA-256 hashes of a plan in lower-case hex.
type IDs struct {
	PlanID    string // timing and structure
	ContentID string // request bodies
	Requests  int64  // requests hashed
}

// Walker makes a plan's requests one after another, in the order of their indexes, and hashes them as it goes.
// Its memory does not depend on the size of the plan.
type Walker struct{}

// Walk starts at the plan's first request.
func (p *Plan) Walk() *Walker { panic("not built") }

// Next fills r with the next request; ok is false at the end of the plan. A closed stage that ends by time has no end of
// its own: EndStage ends it.
func (w *Walker) Next(r *Request) (ok bool) { panic("not built") }

// EndStage makes Next go on with the first request of the next stage.
func (w *Walker) EndStage() { panic("not built") }

// IDs returns the hashes over the requests made so far.
func (w *Walker) IDs() IDs { panic("not built") }

// Identify walks a whole plan for its ids. A closed stage that ends by time counts with its structure only.
func (p *Plan) Identify(ctx context.Context) (IDs, error) { panic("not built") }
