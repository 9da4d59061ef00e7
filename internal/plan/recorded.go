package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/plan/trace"
)

// What lies between the calls of a recorded session.
const (
	PausesRecorded = "recorded" // the time from the end of what a call comes after to its start
	PausesThink    = "think"    // the think time of the person or tool alone, as recorded
	PausesNone     = "none"
)

// recorded are the sessions of a recording, in the order in which they began.
type recorded struct {
	trace    *trace.Trace
	sessions []recordedSession
	turn     []int32 // of each row, within its session
	until    []int64 // turns of the sessions up to each one, itself included
	most     int     // turns of the longest one
	quotes   bool    // some message repeats an earlier reply
}

type recordedSession struct {
	rows   []int32 // in the order of time
	pauses []time.Duration
	graph  *Graph
}

// newRecorded gathers the sessions of a recording. Those that have fewer or more calls than the spec allows are left out.
func newRecorded(t *trace.Trace, w *Trace) (r *recorded, left int) {
	r = &recorded{trace: t, turn: make([]int32, len(t.Rows))}
	byNumber := map[int][]int32{}
	var order []int
	for i := range t.Rows {
		n := t.Rows[i].Session
		if _, known := byNumber[n]; !known {
			order = append(order, n)
		}
		byNumber[n] = append(byNumber[n], int32(i))
	}
	total := int64(0)
	for _, n := range order {
		rows := byNumber[n]
		if len(rows) < w.MinCalls || w.MaxCalls > 0 && len(rows) > w.MaxCalls {
			left++
			continue
		}
		total += int64(len(rows))
		r.until = append(r.until, total)
		r.most = max(r.most, len(rows))
		r.sessions = append(r.sessions, r.session(rows, w))
	}
	return r, left
}

func (r *recorded) session(rows []int32, w *Trace) recordedSession {
	slices.SortStableFunc(rows, func(a, b int32) int { return cmp.Compare(r.trace.Rows[a].At, r.trace.Rows[b].At) })
	for turn, row := range rows {
		r.turn[row] = int32(turn)
	}
	after := make([][]int32, len(rows))
	s := recordedSession{rows: rows, pauses: make([]time.Duration, len(rows))}
	for turn, row := range rows {
		for _, before := range r.trace.Rows[row].After {
			if t := &r.trace.Rows[before]; t.Session == r.trace.Rows[row].Session && int(r.turn[before]) < turn {
				after[turn] = append(after[turn], r.turn[before])
			}
		}
		slices.Sort(after[turn])
		if turn > 0 {
			s.pauses[turn] = r.pause(row, rows[0], w)
		}
		r.quotes = r.quotes || r.trace.Rows[row].Call != nil && slices.ContainsFunc(r.trace.Rows[row].Call.Messages, func(m trace.Message) bool { return m.HasFrom })
	}
	s.graph = newGraph(after)
	return s
}

// pause is the time before a row. Where no end was recorded it is that from start to start; where it comes after none, that from the
// start of its session.
func (r *recorded) pause(row, first int32, w *Trace) time.Duration {
	x := &r.trace.Rows[row]
	since := r.trace.Rows[first].At
	for _, before := range x.After {
		since = max(since, r.trace.Rows[before].At)
	}
	switch gap := max(0, x.At-since); {
	case w.Pauses == PausesNone:
		return 0
	case w.Pauses == PausesThink && len(x.After) > 0:
		return x.Think
	case x.HasGap:
		return x.Gap
	case w.MaxGap > 0 && len(x.After) > 0:
		return min(gap, w.MaxGap)
	default:
		return gap
	}
}

// of returns the recorded session that the plan's session of a number is, and how often it has been used before.
func (r *recorded) of(number int64) (s *recordedSession, again uint64) {
	n := int64(len(r.sessions))
	return &r.sessions[number%n], uint64(number / n)
}

// turns returns how many turns n sessions have from a number on.
func (r *recorded) turns(from, n int64) int64 { return r.before(from+n) - r.before(from) }

// before is how many turns the sessions before a number have.
func (r *recorded) before(number int64) int64 {
	n, whole := int64(len(r.sessions)), r.until[len(r.until)-1]
	sum := number / n * whole
	if rest := number % n; rest > 0 {
		sum += r.until[rest-1]
	}
	return sum
}

// mean is the mean number of turns of a session.
func (r *recorded) mean() float64 { return float64(r.until[len(r.until)-1]) / float64(len(r.sessions)) }

// take gives r the turn's place among the turns of its session, and the time before it.
func (s *recordedSession) take(r *Request) {
	r.Turns, r.Graph, r.Pause = len(s.rows), s.graph, s.pauses[r.Turn]
}

// foreseeRecorded takes the later turns of a recorded session into what a cache would find and, if they count, into the hashes. What
// they say follows from the file, whose hash is in the structure, and from what is put down here.
func (w *Walker) foreseeRecorded(first *Request, counted bool) {
	s, again := w.plan.recorded.of(first.Number)
	r := *first
	for r.Turn+1 < r.Turns {
		r.Turn++
		r.Index++
		s.take(&r)
		r.SharedTokens = 0
		w.content.retrace(&r, int(s.rows[r.Turn]), again)
		w.look(&r)
		if !counted {
			continue
		}
		w.hashed++
		row := binary.BigEndian.AppendUint64(w.row[:0], uint64(r.Index))
		row = binary.BigEndian.AppendUint32(row, uint32(r.Turn))
		row = binary.BigEndian.AppendUint64(row, uint64(r.Pause))
		row = binary.BigEndian.AppendUint32(row, uint32(r.InputTokens))
		w.structure.Write(binary.BigEndian.AppendUint32(row, uint32(r.OutputTokens)))
		for _, before := range r.Graph.After(r.Turn) {
			w.structure.Write(binary.BigEndian.AppendUint32(w.row[:0], uint32(before)))
		}
		if !w.skip {
			said := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(w.row[:0], uint64(s.rows[r.Turn])), again))
			w.bodies.Write(append(w.row[:0], said[:]...))
		}
	}
}

// retrace makes r a call of a recording, used again for so manyth time.
func (c *content) retrace(r *Request, row int, again uint64) {
	c.row, c.again = row, again
	c.traced(r)
	if c.m.work.Cache == CacheSalted {
		r.CacheSalt = fmt.Sprintf("tare-%d", r.Session)
	}
}

// block is the number of the text of a recorded block. A session that is used again has blocks of its own.
func (c *content) block(id uint64) uint64 {
	if c.again > 0 {
		id = (id ^ c.again<<40) * 0x9e3779b97f4a7c15
		id ^= id >> 29
	}
	return id & math.MaxInt64
}

// rest gives a stage of recorded sessions that says nothing of its end as many as there are left.
func (r *recorded) rest(w *Trace, used int64) int64 {
	return max(1, max(int64(len(r.sessions)), int64(w.MinSessions))-used)
}

// gather finds the sessions of the recording if they are to be sent whole.
func (p *Plan) gather() (faults Faults) {
	w := &p.Spec.Workload.Trace
	t := p.material.trace
	if t == nil || !w.Sessions {
		return nil
	}
	r, left := newRecorded(t, w)
	if left > 0 {
		p.material.notes = append(p.material.notes, fmt.Sprintf("%s: %d of %d sessions left out: they have fewer or more calls than asked for", w.File, left, left+len(r.sessions)))
	}
	if len(r.sessions) == 0 {
		return Faults{{Key: "workload.trace.min_calls", Reason: fmt.Sprintf("leaves no session of %s", w.File)}}
	}
	p.recorded, p.mostTurns, p.material.turnOf = r, int64(r.most), r.turn
	return nil
}
