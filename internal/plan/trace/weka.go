package trace

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"tare/internal/plan/input"
)

// wekaRequest is a call, or a sub-agent that makes calls of its own.
type wekaRequest struct {
	T        figure          `json:"t"`
	Type     string          `json:"type"`
	Model    string          `json:"model"`
	In       figure          `json:"in"`
	Out      figure          `json:"out"`
	Blocks   []uint64        `json:"hash_ids"`
	APITime  figure          `json:"api_time"`
	Think    figure          `json:"think_time"`
	Agent    string          `json:"subagent_type"`
	Duration figure          `json:"duration_ms"`
	Requests json.RawMessage `json:"requests"`
}

// weka reads agents' conversations, one a file or one a line. Times are seconds from the conversation's start. Block ids
// count whole blocks only and mean something within their conversation; those of a sub-agent within that sub-agent.
func (r *reading) weka(file *input.File) error {
	r.trace.Relative, r.trace.FullBlocks = true, true
	return r.documents(file, r.wekaConversation)
}

// documents calls do with every line, or with the whole file if it is one object over several lines.
func (r *reading) documents(file *input.File, do func(line int, text []byte) error) error {
	for span, err := range file.Lines() {
		if err != nil {
			return err
		}
		if span.Fault == "" && json.Valid(span.Text) && span.Text[0] == '{' {
			break
		}
		if span.Number == 0 && file.Size() <= input.MaxRow {
			text := file.Head(int(file.Size()))
			if !json.Valid(text) {
				break // lines, of which the first is bad
			}
			r.trace.Facts.Read++
			return do(span.Line, text)
		}
		break
	}
	return r.lines(file, do)
}

// wekaScope is one agent's part of a conversation: its cache is its own.
type wekaScope struct {
	session int
	class   string
	size    int
	blocks  map[uint64]uint64 // ids of the file to ids of the trace
}

// wekaCall is a call as it was recorded, with its place in time.
type wekaCall struct {
	row        Row
	start, end int64 // nanoseconds from the conversation's start
	agent      int   // 0 is the conversation's own; each sub-agent has a number
}

func (r *reading) wekaConversation(line int, text []byte) error {
	var raw struct {
		ID       string          `json:"id"`
		Size     figure          `json:"block_size"`
		Requests json.RawMessage `json:"requests"`
	}
	if !r.unmarshal(line, text, &raw) {
		return nil
	}
	var requests []wekaRequest
	if raw.Requests == nil {
		r.refuse(line, "requests", "is missing", "")
		return nil
	}
	if !r.unmarshal(line, raw.Requests, &requests) {
		return nil
	}
	size := 64
	if raw.Size != "" {
		n, ok := r.count(line, "block_size", raw.Size, 1)
		if !ok {
			return nil
		}
		size = n
	}
	size = r.blockSize(size)
	if r.trace.BlockSize != 0 && r.trace.BlockSize != size {
		r.refuse(line, "block_size", "must be the same in all conversations", raw.Size.String())
		return nil
	}
	r.trace.BlockSize = size
	session := r.session("")
	calls := r.wekaCalls(line, requests, wekaScope{session: session, size: size, blocks: map[uint64]uint64{}}, 0, math.MinInt64)
	if len(calls) == 0 {
		r.note(line, "requests", "has no call that can be used: the conversation is left out")
		r.trace.Facts.Sessions--
		return nil
	}
	if len(calls) > maxCalls {
		r.refuse(line, "requests", "must not be more than 16,384 calls", "")
		return nil
	}
	return r.wekaKeep(calls)
}

// wekaCalls reads the calls of one agent and, in their places, those of its sub-agents. begin is the agent's start, if it is
// a sub-agent: calls before it have times that count from it.
func (r *reading) wekaCalls(line int, requests []wekaRequest, scope wekaScope, agent int, begin int64) (calls []wekaCall) {
	r.begun = false
	for _, raw := range requests {
		at, ok := r.moment(line, "t", raw.T, time.Second)
		if !ok {
			continue
		}
		start := int64(at)
		if agent > 0 && start+int64(time.Microsecond) < begin {
			start = later(begin, at)
		}
		r.sorted(line, "t", start, raw.T.String())
		if raw.Type == "subagent" {
			calls = append(calls, r.wekaAgent(line, raw, scope, start, agent)...)
			r.last, r.begun = start, true
			continue
		}
		if call, ok := r.wekaCall(line, raw, scope); ok {
			call.start, call.end, call.agent = start, later(start, call.row.Took), agent
			calls = append(calls, call)
		}
	}
	return calls
}

func (r *reading) wekaAgent(line int, raw wekaRequest, outer wekaScope, start int64, agent int) []wekaCall {
	if agent > 0 {
		r.note(line, "requests", "has a sub-agent within a sub-agent: it is left out")
		return nil
	}
	var requests []wekaRequest
	if raw.Requests == nil || !r.unmarshal(line, raw.Requests, &requests) {
		r.refuse(line, "requests", "of a sub-agent is missing or no list", "")
		return nil
	}
	r.scopes++
	class := "subagent"
	if raw.Agent != "" {
		class = raw.Agent
	}
	inner := wekaScope{session: outer.session, class: r.intern(class), size: outer.size, blocks: map[uint64]uint64{}}
	return r.wekaCalls(line, requests, inner, r.scopes, start)
}

func (r *reading) wekaCall(line int, raw wekaRequest, scope wekaScope) (call wekaCall, ok bool) {
	in, good := r.count(line, "in", raw.In, 1)
	out, outOK := r.count(line, "out", raw.Out, 0)
	good = good && outOK
	if raw.Type != "s" && raw.Type != "n" {
		r.refuse(line, "type", "must be s, n or subagent", raw.Type)
		good = false
	}
	var took, think time.Duration
	for _, span := range []struct {
		key   string
		value figure
		into  *time.Duration
	}{{"api_time", raw.APITime, &took}, {"think_time", raw.Think, &think}} {
		if span.value == "" {
			continue
		}
		d, ok := r.moment(line, span.key, span.value, time.Second)
		*span.into, good = d, good && ok
	}
	if good && len(raw.Blocks) > in/scope.size {
		r.refuse(line, "hash_ids", "names more whole blocks than the input has", "")
		good = false
	}
	if !good {
		return call, false
	}
	if out == 0 {
		r.note(line, "out", "is 0")
	}
	return wekaCall{row: Row{
		InputTokens: in, OutputTokens: out, Session: scope.session, Class: scope.class, Model: r.intern(raw.Model),
		Took: took, Think: think, Blocks: r.wekaBlocks(raw.Blocks, scope), Line: line,
	}}, true
}

// wekaBlocks gives ids of one agent numbers that no other agent's have.
func (r *reading) wekaBlocks(ids []uint64, scope wekaScope) []uint64 {
	if len(ids) == 0 {
		return nil
	}
	blocks := make([]uint64, len(ids))
	for i, id := range ids {
		number, ok := scope.blocks[id]
		if !ok {
			r.blockIDs++
			number = r.blockIDs
			scope.blocks[id] = number
		}
		blocks[i] = number
	}
	return blocks
}

// maxCalls bounds a conversation: each of its calls is held against all before it.
const maxCalls = 16_384

// wekaKeep puts the calls in order of time and ties each to those that had ended when it began.
func (r *reading) wekaKeep(calls []wekaCall) error {
	slices.SortStableFunc(calls, func(a, b wekaCall) int { return cmp.Compare(a.start, b.start) })
	base := len(r.trace.Rows)
	for i, call := range calls {
		index, _, err := r.add(call.start, call.row)
		if err != nil {
			return err
		}
		row := &r.trace.Rows[index]
		row.Turn = i
		end := int64(math.MinInt64)
		for _, before := range wekaBefore(calls[:i], call) {
			row.After = append(row.After, base+before)
			end = max(end, calls[before].end)
		}
		if row.After != nil {
			r.gap(row, time.Duration(call.start-end))
		}
	}
	return nil
}

// wekaBefore lists what a call waits for: the last call of its own agent that had ended; for an agent's first one, that of
// the conversation; and for the conversation's own, the last one of every sub-agent that ended since.
func wekaBefore(calls []wekaCall, call wekaCall) []int {
	own, main := -1, -1
	last := map[int]int{}
	for i, c := range calls {
		if c.end > call.start {
			continue
		}
		if c.agent == call.agent && (own < 0 || c.end >= calls[own].end) {
			own = i
		}
		if c.agent == 0 && (main < 0 || c.end >= calls[main].end) {
			main = i
		}
		if j, ok := last[c.agent]; c.agent != 0 && (!ok || c.end >= calls[j].end) {
			last[c.agent] = i
		}
	}
	switch {
	case call.agent != 0 && own >= 0:
		return []int{own}
	case call.agent != 0 && main >= 0:
		return []int{main}
	case call.agent != 0:
		return nil
	}
	var all []int
	if own >= 0 {
		all = append(all, own)
	}
	for _, i := range last {
		if own < 0 || calls[i].end > calls[own].end {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}
