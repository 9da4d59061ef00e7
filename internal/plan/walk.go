package plan

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strconv"
	"time"

	"tare/internal/plan/schedule"
	"tare/internal/plan/store"
	"tare/internal/plan/workload"
)

// Request is one planned request. The walker owns all that its slices and texts hold but Class, Model and CacheSalt, and
// overwrites it with the next request.
type Request struct {
	Index  int64
	Stage  int           // index into Plan.Stages
	Due    time.Duration // intended send time, offset from the start of its stage; 0 in a closed stage
	Think  time.Duration // in a closed stage: time between the end of its session and the next request in its place
	Pause  time.Duration // of a later turn: time between the last end of what it comes after and it, or since its session's start
	Header []byte        // lines of the HTTP request's header that it alone has, each "NAME: value" and its line end; nil for none
	Body   []byte        // the HTTP request body, complete; nil where bodies are skipped

	Session int64  // identity of the conversation: the index of its first request, which the others follow
	Turn    int    // 0 for the first turn of a session
	Turns   int    // of the session, at least 1; Walker.Follow makes those behind the first
	Number  int64  // of the session in the plan, from 0
	Graph   *Graph // which turns wait for which; nil where there is one
	Class   string // tenant or request class; empty when the plan names none
	Model   string // instead of target.model: an adapter's name; empty for target.model

	// What is asked is Prompt alone, or PromptIDs alone, or Messages of which the last is the user's.
	Prompt    string    // text of the prompt; empty where bodies are skipped
	PromptIDs []uint32  // token ids, for endpoints that take them
	Messages  []Message // a conversation
	Tools     []byte    // JSON array of tool definitions in OpenAI's form; nil for none
	CacheSalt string    // keeps the server's prefix cache apart for each salt, where the endpoint has a word for it

	Prioritized bool // Priority is sent, be it 0
	Priority    int

	// SharedTokens of the prompt are those that requests with lower indexes begin with too, by the plan's own prefixes, the blocks of
	// a recording and the turns before: what a prefix cache that forgets nothing finds. What rows of a data set have in common, and
	// rows that are sent again, are not counted.
	SharedTokens int

	InputTokens  int // asked length of the prompt, tokens; 0 where nobody counted
	OutputTokens int // asked length of the answer, tokens
}

// Message is one turn of a conversation.
type Message struct {
	Role  string // system, user, assistant, or tool with Answers
	Text  string
	Media []Medium // beside the text

	Calls   []byte // of tools, that an assistant made: JSON array in OpenAI's form; nil for none
	Answers string // id of the tool call that it answers; empty for none
}

// Medium is a picture, a video or a sound that is sent within the body.
type Medium struct {
	MediaType string // image/png, image/jpeg, video/mp4 or audio/wav
	Bytes     []byte // the encoded file
	First     bool   // it stands before the text, where the endpoint leaves that open
}

// Features are what an endpoint has words for in a Request, besides a prompt as text and the asked length of the answer.
// What it has no word for would not be sent.
type Features struct {
	Model     bool // another model or adapter than the target's, for each request
	PromptIDs bool // token ids in place of text
	Messages  bool // conversations, though perhaps in plain form, as one text
	Images    bool // beside the text of a message
	Videos    bool
	Audio     bool
	Tools     bool
	CacheSalt bool
	Sampling  bool // temperature and top_p, in every body
	Priority  bool
}

// Encoder writes request bodies in one server's dialect.
type Encoder interface {
	// AppendBody appends the body of r's HTTP request to dst. It reads every field of r but Body, and keeps none.
	AppendBody(dst []byte, r *Request) []byte
}

// IDs are the SHA-256 hashes of a plan in lower-case hex. Equal ids mean the same load: the same bytes at the same times.
type IDs struct {
	PlanID    string // timing and structure
	ContentID string // request bodies; empty if some were skipped or there are none
	Requests  int64  // requests hashed
}

// Walker makes a plan's requests one after another, in the order of their indexes, and hashes them as it goes.
// Its memory does not depend on the size of the plan, but for the prefix groups that were used and the ids of a recording's blocks.
// Plain words are made without allocating; what is made of files, and pictures, is not. It is not safe for concurrent use.
type Walker struct {
	plan     *Plan
	stage    int   // of the next request, if it has one more
	made     int64 // sessions of that stage
	before   int64 // sessions of the stages before
	index    int64 // of the next session's first request
	arrivals *schedule.Arrivals
	thinking []*schedule.Thinking // of the closed stages so far
	visits   *schedule.Visits     // nil where every session is a request
	turns    *content             // of later turns

	replay  *schedule.Replay
	content *content       // nil for plain words of one length
	text    *workload.Text // of plain words
	input   int            // their length
	output  int
	cache   CacheFacts
	said    BodyFacts
	repeats repeats
	prompt  []byte
	body    []byte
	header  []byte // of the request
	later   []byte // body of a later turn, or what it adds to its conversation
	skip    bool
	skipped bool // a hashed request had no body

	rows   *store.Reader // of a stored plan
	stored store.Row
	err    error

	structure hash.Hash
	bodies    hash.Hash
	row       [sha256.Size]byte
	hashed    int64
}

// Walk starts at the plan's first request.
func (p *Plan) Walk() *Walker {
	w := &Walker{plan: p, skip: p.bodiless(), structure: sha256.New(), bodies: sha256.New(), thinking: make([]*schedule.Thinking, len(p.Stages))}
	switch {
	case p.stored != nil:
	case p.plain():
		w.text = workload.NewText(p.Spec.Load.Seed)
		w.input, _ = p.Spec.Workload.InputTokens.Fixed()
		w.output, _ = p.Spec.Workload.OutputTokens.Fixed()
	default:
		w.content = p.material.content(p.Spec.Load.Seed)
		switch {
		case p.recorded != nil:
			w.turns = p.material.content(p.Spec.Load.Seed)
		case p.Converses():
			w.visits, w.turns = p.Spec.Workload.Conversation.sessions().Visits(p.Spec.Load.Seed), p.material.content(p.Spec.Load.Seed)
		}
	}
	w.structure.Write(p.appendStructure(nil))
	w.enter()
	return w
}

// SkipBodies makes the requests from here on without prompts and bodies, which takes a tenth of the time: to count them or
// to account for those that will not be sent. The walk then has no content id.
func (w *Walker) SkipBodies(skip bool) { w.skip = skip || w.plan.bodiless() }

func (p *Plan) bodiless() bool { return p.encode == nil && p.stored == nil }

// Next fills r with the next request, the first of its session; ok is false at the end of the plan. A closed stage that ends
// by duration has no end of its own: EndStage ends it.
func (w *Walker) Next(r *Request) (ok bool) {
	if w.plan.stored != nil {
		return w.nextStored(r)
	}
	for w.stage < len(w.plan.Stages) {
		s := &w.plan.Stages[w.stage]
		if due, ok := w.due(s); ok {
			if w.fill(r, s, due); w.err != nil {
				w.stage = len(w.plan.Stages)
				return false
			}
			w.made++
			w.index += int64(r.Turns)
			return true
		}
		w.EndStage()
	}
	return false
}

// EndStage makes Next go on with the first request of the next stage.
func (w *Walker) EndStage() {
	if w.stage == len(w.plan.Stages) {
		return
	}
	if s := &w.plan.Stages[w.stage]; s.counted() {
		w.before += w.made
	} else {
		w.before += s.Sessions // whatever the replies allow
	}
	w.stage++
	w.enter()
}

// enter starts the stage's schedule.
func (w *Walker) enter() {
	w.made = 0
	if w.stage == len(w.plan.Stages) {
		return
	}
	s := &w.plan.Stages[w.stage]
	w.index = s.First
	if s.Closed {
		w.thinking[w.stage] = s.think.Times(w.plan.Spec.Load.Seed)
		return
	}
	if s.trace != nil {
		w.replay = s.trace.Arrivals(w.plan.Spec.Load.Seed, s.First)
		return
	}
	w.arrivals = s.open.Arrivals(w.plan.Spec.Load.Seed, s.First)
}

func (w *Walker) due(s *Stage) (due time.Duration, ok bool) {
	if s.trace != nil {
		if w.made == s.Sessions {
			return 0, false
		}
		return w.replay.Next()
	}
	if !s.Closed {
		return w.arrivals.Next()
	}
	most := s.Sessions
	if most == 0 {
		most = reserved
	}
	return 0, w.made < most
}

func (w *Walker) fill(r *Request, s *Stage, due time.Duration) {
	*r = Request{
		Index: w.index, Session: w.index, Number: w.before + w.made, Turns: 1, Stage: w.stage, Due: due,
		InputTokens: w.input, OutputTokens: w.output,
	}
	if w.visits != nil {
		r.Turns, r.Graph = int(w.visits.Turns(r.Session)), chain
	}
	w.pace(r)
	switch {
	case w.plan.recorded != nil:
		r.Number = int64(w.rowOf(s))
		session, again := w.plan.recorded.of(r.Number)
		session.take(r)
		w.content.retrace(r, int(session.rows[0]), again)
		w.look(r)
	case w.content != nil:
		w.content.shape(r, w.rowOf(s))
		w.look(r)
	}
	if !w.skip {
		w.write(r)
		w.address(r)
	}
	if s.counted() {
		w.hash(r)
	}
	switch {
	case r.Turns == 1:
	case w.plan.recorded != nil:
		w.foreseeRecorded(r, s.counted())
	default:
		w.foresee(r, s.counted())
	}
}

// address gives r the header that names its session, if there is one.
func (w *Walker) address(r *Request) {
	name := w.plan.Spec.Target.SessionHeader
	if name == "" {
		return
	}
	w.header = append(append(append(w.header[:0], r.Header...), name...), ": tare-"...)
	w.header = strconv.AppendInt(w.header, r.Session, 10)
	w.header = append(w.header, "\r\n"...)
	r.Header = w.header
}

// rowOf is which row of a trace or data set, or which recorded session, the next request is made of: the one that its time is from, or the next one.
func (w *Walker) rowOf(s *Stage) int {
	if s.trace != nil {
		return w.replay.Row()
	}
	return int(w.before + w.made)
}

// write makes the prompt and the body.
func (w *Walker) write(r *Request) {
	if w.content == nil {
		w.prompt = w.text.Append(w.prompt[:0], uint64(r.Index), r.InputTokens)
		r.Prompt = textOf(w.prompt)
	} else if err := w.content.write(r); err != nil {
		w.err = fmt.Errorf("make request %d: %w", r.Index, err)
		return
	}
	w.said.Made++
	if r.Body != nil {
		w.said.heed(r.Body)
		return
	}
	w.body = w.plan.encode.AppendBody(w.body[:0], r)
	r.Body = w.body
}

// CacheFacts say what a prefix cache that forgets nothing would find, of the requests made so far. Those of a warm-up fill it, and
// are not counted.
type CacheFacts struct {
	Prompt int64 // tokens of all prompts
	Shared int64 // of them, those that earlier requests begin with too
}

// look counts what a cache would find of r.
func (w *Walker) look(r *Request) {
	if w.plan.Stages[r.Stage].Warmup {
		return
	}
	w.cache.Prompt += int64(r.InputTokens)
	w.cache.Shared += int64(r.SharedTokens)
}

// Cache returns what a prefix cache that forgets nothing would find.
func (w *Walker) Cache() CacheFacts { return w.cache }

func (w *Walker) hash(r *Request) {
	w.hashed++
	binary.BigEndian.PutUint64(w.row[0:], uint64(r.Index))
	binary.BigEndian.PutUint32(w.row[8:], uint32(r.Stage))
	binary.BigEndian.PutUint64(w.row[12:], uint64(r.Due))
	binary.BigEndian.PutUint32(w.row[20:], uint32(r.InputTokens))
	binary.BigEndian.PutUint32(w.row[24:], uint32(r.OutputTokens))
	w.structure.Write(w.row[:28])
	if w.skip {
		w.skipped = true
		return
	}
	sum := sha256.Sum256(r.Body)
	w.repeats.add(binary.BigEndian.Uint64(sum[:]))
	w.bodies.Write(append(w.row[:0], sum[:]...))
}

// IDs returns the hashes over the requests made so far. A closed stage that ends by duration has a part in them with its
// structure only, since the number of its requests is the server's.
func (w *Walker) IDs() IDs {
	ids := IDs{PlanID: hex.EncodeToString(w.structure.Sum(nil)), Requests: w.hashed}
	if w.hashed > 0 && !w.skipped {
		ids.ContentID = hex.EncodeToString(w.bodies.Sum(nil))
	}
	return ids
}

// Identify walks a whole plan for its ids, as a run that is carried out to its end finds them.
func (p *Plan) Identify(ctx context.Context) (IDs, error) {
	return p.EachKnown(ctx, func(*Request) error { return nil })
}

// EachKnown gives visit every request that is the same in every run, and returns their ids: not those of a closed stage that
// may end by its time. Later turns of sessions have no due time and no body, which follow from replies. The request is the walker's and changes after visit.
func (p *Plan) EachKnown(ctx context.Context, visit func(*Request) error) (IDs, error) {
	w := p.Walk()
	defer w.Close()
	var r Request
	for n := 0; w.Next(&r); n++ {
		switch {
		case n%1024 == 0 && ctx.Err() != nil:
			return IDs{}, context.Cause(ctx)
		case !p.Stages[r.Stage].counted():
			w.EndStage()
			continue
		}
		for err := visit(&r); r.Turn+1 < r.Turns || err != nil; err = visit(&r) {
			if err != nil {
				return IDs{}, err
			}
			if w.plan.recorded != nil {
				w.Sketch(&r, r.Origin(), r.Turn+1)
				continue
			}
			w.turns.next(&r)
			w.pace(&r)
		}
	}
	return w.IDs(), w.Err()
}

// structureVersion opens the canonical form of a plan. A change of the form changes it.
const structureVersion = "tare.plan/v1\n"

// appendStructure appends the canonical form of what does not belong to one request: the version, the seed, the process of
// arrivals and its shape, the asked lengths, and every stage. Numbers are big-endian and 8 bytes wide, rates IEEE 754. One
// row of 28 bytes for each request follows it: index (8), stage (4), due in nanoseconds (8), asked input and output tokens
// (4 each). Behind it come the later turns of its session, in 28 bytes: index (8), turn (4), the time since what it comes after (8),
// lengths (4 each); in recorded sessions the turns that it comes after, 4 bytes each. To the content a later turn gives the hash of what it adds to the conversation, not that of its body. Names of stages have no part: they change nothing that is sent.
func (p *Plan) appendStructure(dst []byte) []byte {
	put := func(values ...uint64) {
		for _, v := range values {
			dst = binary.BigEndian.AppendUint64(dst, v)
		}
	}
	load, work := &p.Spec.Load, &p.Spec.Workload
	dst = append(dst, structureVersion...)
	input, plainInput := work.InputTokens.Fixed()
	output, plainOutput := work.OutputTokens.Fixed()
	put(load.Seed, uint64(process(load.Arrival)), math.Float64bits(load.Burstiness), flag(plainInput)*uint64(input),
		flag(plainOutput)*uint64(output), uint64(len(p.Stages)))
	for i := range p.Stages {
		s := &p.Stages[i]
		put(flag(s.Warmup), flag(s.Closed), uint64(s.Gap), uint64(s.Duration), uint64(s.First), uint64(s.Requests),
			uint64(s.open.Window), uint64(s.open.Limit), math.Float64bits(s.Rate), math.Float64bits(s.RateTo),
			uint64(s.Concurrency), uint64(s.MaxInFlight))
		dst = s.appendArrivals(dst, load)
	}
	if !p.plain() {
		dst = append(append(dst, 'w'), p.Spec.Workload.canonical()...)
	}
	return dst
}

func flag(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}
