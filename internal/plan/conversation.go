package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"tare/internal/plan/draw"
	"tare/internal/plan/schedule"
	"tare/internal/plan/workload"
)

// What the assistant has said in the history that a later turn sends.
const (
	HistoryLive     = "live"     // the replies that came
	HistoryRecorded = "recorded" // replies of the plan's own
)

// Conversation says that requests are turns of sessions, and what a user takes between them.
type Conversation struct {
	Turns     Lengths       `yaml:"turns"`         // of a session
	ThinkTime time.Duration `yaml:"think_time"`    // mean, from a reply to the next turn
	Think     string        `yaml:"think_process"` // constant or exponential, which it is if empty
	History   string        `yaml:"history"`       // HistoryLive or HistoryRecorded

	SystemTokens Lengths `yaml:"system_tokens"` // of a system message that each session has of its own; empty for none
}

const maxTurns = 1000

// turns reads how many turns a session has; reason says why it could not.
func (c *Conversation) turns() (l workload.Lengths, reason string) {
	if n, fixed := c.Turns.Fixed(); fixed && (n < 1 || n > maxTurns) {
		return l, fmt.Sprintf("must be within 1 and %d turns, got %d", maxTurns, n)
	}
	l, err := workload.ParseLengths(string(c.Turns))
	switch {
	case err != nil:
		return l, err.Error()
	case l.Family == "file":
		return l, "must not be a file"
	case l.Family == "uniform" && l.Parameter[1] > maxTurns:
		return l, fmt.Sprintf("must be at most %d turns, got %s", maxTurns, shortened(string(c.Turns)))
	}
	l.Within.Most = min(l.Within.Most, maxTurns)
	if _, err := l.Sampler(nil); err != nil {
		return l, err.Error()
	}
	return l, ""
}

// most is the largest number of turns that a session may have.
func (c *Conversation) most() int64 {
	l, _ := c.turns()
	switch n, fixed := l.Fixed(); {
	case fixed:
		return int64(n)
	case l.Family == "uniform":
		return min(int64(l.Parameter[1]), l.Within.Most)
	}
	return l.Within.Most
}

// turnsDrawn draws numbers of turns.
type turnsDrawn struct{ workload.Sampler }

func (d turnsDrawn) Draw(s *draw.Source) int64 { return int64(d.Sampler.Draw(s)) }

// sessions are those of all stages.
func (c *Conversation) sessions() schedule.Sessions {
	l, _ := c.turns()
	turns, _ := l.Sampler(nil)
	return schedule.Sessions{
		Turns: turnsDrawn{turns},
		Think: schedule.Think{Mean: c.ThinkTime, Exponential: c.ThinkTime > 0 && c.Think != ThinkConstant},
	}
}

// Converses says that sessions may have more than one turn.
func (p *Plan) Converses() bool { return p.mostTurns > 1 }

// Live says that later turns need the replies to those before.
func (p *Plan) Live() bool {
	return p.Converses() && p.Spec.Workload.Conversation.History == HistoryLive && (p.recorded == nil || p.recorded.quotes)
}

// Pause returns the mean time between a reply and the next turn of its session; 0 for recorded sessions, where some are short.
func (p *Plan) Pause() time.Duration { return p.Spec.Workload.Conversation.ThinkTime }

// converse counts a stage's requests by the turns of its sessions. Until then each session is a request. before is how many sessions the
// stages before have, less than 0 where that is not known.
func (p *Plan) converse(s *Stage, before int64) {
	s.Sessions = s.Requests
	switch {
	case p.recorded != nil:
		s.Expected *= p.recorded.mean()
		if s.Requests = 0; s.Sessions > 0 && before >= 0 {
			s.Requests = p.recorded.turns(before, s.Sessions)
			s.Expected = float64(s.Requests)
		}
		return
	case !p.Converses():
		return
	}
	s.Expected *= p.MeanTurns()
	l, _ := p.Spec.Workload.Conversation.turns()
	if n, fixed := l.Fixed(); fixed {
		s.Requests *= int64(n)
	} else {
		s.Requests = 0
	}
}

// MeanTurns returns the mean number of turns of a session; 0 where every session is a request.
func (p *Plan) MeanTurns() float64 {
	if !p.Converses() {
		return 0
	}
	if p.recorded != nil {
		return p.recorded.mean()
	}
	l, _ := p.Spec.Workload.Conversation.turns()
	turns, _ := l.Sampler(nil)
	return turns.Mean
}

// pace gives r the time before it, and that behind its session.
func (w *Walker) pace(r *Request) {
	if r.Turn > 0 && w.visits != nil {
		r.Pause = w.visits.Think(r.Index - 1)
	}
	if w.plan.Stages[r.Stage].Closed {
		r.Think = w.thinking[r.Stage].After(r.Session)
	}
}

// Sketch fills r with a later turn of a session that Next has begun, in any order, but for its messages and body. Due is 0:
// it follows from the reply before.
func (w *Walker) Sketch(r *Request, of Origin, turn int) {
	*r = Request{Index: of.Session, Stage: of.Stage, Session: of.Session, Number: of.Number}
	if w.plan.recorded != nil {
		session, again := w.plan.recorded.of(of.Number)
		r.Turn, r.Index = turn, of.Session+int64(turn)
		session.take(r)
		w.turns.retrace(r, int(session.rows[turn]), again)
		w.pace(r)
		return
	}
	r.Turns, r.Graph = int(w.visits.Turns(of.Session)), chain
	w.turns.shape(r, 0)
	for r.Turn < turn {
		w.turns.next(r)
	}
	w.pace(r)
}

// Follow fills r as Sketch does, with messages and body, which stand until it or Next is called again. With a live history replies are
// the texts of the replies so far, by turn: of those that it comes after, and of those that these come after; otherwise they are not
// read. When it reports false the request cannot be made, and Err says why.
func (w *Walker) Follow(r *Request, of Origin, turn int, replies [][]byte) (ok bool) {
	w.Sketch(r, of, turn)
	if w.skip {
		return true
	}
	if !w.plan.Live() {
		replies = nil
	}
	err := error(nil)
	if w.plan.recorded != nil {
		err = w.turns.recall(r, replies)
	} else {
		err = w.turns.converse(r, replies)
	}
	if err != nil {
		w.err = fmt.Errorf("make request %d: %w", r.Index, err)
		return false
	}
	w.later = w.plan.encode.AppendBody(w.later[:0], r)
	r.Body = w.later
	w.address(r)
	return true
}

// foresee takes the later turns of a session into what a cache would find and, if they count, into the hashes: for each its
// structure, and the text that it adds to the conversation, which is the user's message, with the recorded reply before it.
func (w *Walker) foresee(first *Request, counted bool) {
	r := *first
	for r.Turn+1 < r.Turns {
		pause := w.visits.Think(r.Index)
		said := r.OutputTokens
		w.turns.next(&r)
		w.look(&r)
		if !counted {
			continue
		}
		w.hashed++
		binary.BigEndian.PutUint64(w.row[0:], uint64(r.Index))
		binary.BigEndian.PutUint32(w.row[8:], uint32(r.Turn))
		binary.BigEndian.PutUint64(w.row[12:], uint64(pause))
		binary.BigEndian.PutUint32(w.row[20:], uint32(r.InputTokens))
		binary.BigEndian.PutUint32(w.row[24:], uint32(r.OutputTokens))
		w.structure.Write(w.row[:28])
		if w.skip {
			continue
		}
		added, err := w.later[:0], error(nil)
		if !w.plan.Live() {
			added, err = w.turns.reply(added, &r, said)
			added = append(added, 0)
		}
		if err == nil {
			added, err = w.turns.question(added, &r)
		}
		if err != nil {
			w.err = fmt.Errorf("make request %d: %w", r.Index, err)
			return
		}
		w.later = added
		sum := sha256.Sum256(added)
		w.bodies.Write(append(w.row[:0], sum[:]...))
	}
}

// next makes r the turn behind it, with its lengths. A cache that forgets nothing has the prompt before, and the reply to it where
// that is what comes next, but for the reply's last token, from which nothing was computed; what is left of a block is not found.
func (c *content) next(r *Request) {
	before, said := r.InputTokens, r.OutputTokens
	r.Turn++
	r.Index++
	r.Due, r.Pause, r.Prompt, r.Messages, r.Body = 0, 0, "", nil, nil
	c.drawn(r)
	r.SharedTokens = before
	if c.m.work.Conversation.History == HistoryLive {
		r.SharedTokens += said - 1
	}
	r.SharedTokens -= r.SharedTokens % c.m.work.Prefix.Block
	r.InputTokens += before + said
}

// question appends what the user says in a later turn.
func (c *content) question(dst []byte, r *Request) ([]byte, error) {
	alone := Request{Index: r.Index, Session: r.Session}
	c.drawn(&alone)
	return c.own.write(dst, uint64(r.Index), alone.InputTokens, false)
}

// reply appends what a recorded assistant said before a turn. Its text has the number of no request.
func (c *content) reply(dst []byte, r *Request, tokens int) ([]byte, error) {
	return c.own.write(dst, ^uint64(r.Index-1), tokens, false)
}

// converse gives a later turn the messages of its session so far. Without replies those are recorded ones.
func (c *content) converse(r *Request, replies [][]byte) (err error) {
	at := &c.at
	*at = Request{Index: r.Session, Session: r.Session}
	c.shape(at, 0)
	if err := c.write(at); err != nil {
		return err
	}
	r.Tools, r.CacheSalt = at.Tools, at.CacheSalt
	c.spoken, c.ends = c.spoken[:0], c.ends[:0]
	for at.Turn < r.Turn {
		said := at.OutputTokens
		c.next(at)
		if replies == nil {
			if c.spoken, err = c.reply(c.spoken, at, said); err != nil {
				return err
			}
			c.ends = append(c.ends, len(c.spoken))
		}
		if c.spoken, err = c.question(c.spoken, at); err != nil {
			return err
		}
		c.ends = append(c.ends, len(c.spoken))
	}
	from, n := 0, 0
	next := func() string {
		text := c.spoken[from:c.ends[n]]
		from, n = c.ends[n], n+1
		return textOf(text)
	}
	for turn := range r.Turn {
		if replies == nil {
			c.talk = append(c.talk, Message{Role: "assistant", Text: next()})
		} else {
			c.talk = append(c.talk, Message{Role: "assistant", Text: textOf(replies[turn])})
		}
		c.talk = append(c.talk, Message{Role: "user", Text: next()})
	}
	r.Messages = c.talk
	return nil
}

func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
