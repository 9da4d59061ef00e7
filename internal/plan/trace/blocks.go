package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"tare/internal/plan/input"
)

// lines calls do with every line of a file of JSON objects.
func (r *reading) lines(file *input.File, do func(line int, text []byte) error) error {
	for span, err := range file.Lines() {
		if err != nil {
			return err
		}
		r.trace.Facts.Read++
		if span.Fault != "" {
			r.refuse(span.Line, "", span.Fault, "")
			continue
		}
		if err := do(span.Line, span.Text); err != nil {
			return err
		}
	}
	return nil
}

// unmarshal reads a JSON object; what is wrong with it is counted.
func (r *reading) unmarshal(line int, text []byte, value any) bool {
	err := json.Unmarshal(text, value)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case !json.Valid(text):
		r.refuse(line, "", "is not valid JSON", string(text))
	case errors.As(err, &kind) && kind.Field != "":
		r.refuse(line, kind.Field, "is of the wrong type", kind.Value)
	default:
		r.refuse(line, "", "is not an object of this format", string(text))
	}
	return false
}

// figure is a JSON number as it is written, or what stands in its place; empty if nothing or null does.
type figure string

// UnmarshalJSON takes anything, so that a bad number is named with its key and not as a bad row.
func (f *figure) UnmarshalJSON(text []byte) error {
	if string(text) != "null" {
		*f = figure(bytes.Trim(text, `"`))
	}
	return nil
}

func (f figure) String() string { return string(f) }

// count reads a count of tokens that must be there.
func (r *reading) count(line int, key string, number figure, least int) (n int, ok bool) {
	if number == "" {
		r.refuse(line, key, "is missing", "")
		return 0, false
	}
	n, ok = input.Whole(number.String())
	if !ok || n < least {
		r.refuse(line, key, notTokens, number.String())
		return 0, false
	}
	return n, true
}

// moment reads a time that is not negative.
func (r *reading) moment(line int, key string, number figure, unit time.Duration) (time.Duration, bool) {
	if number == "" {
		r.refuse(line, key, "is missing", "")
		return 0, false
	}
	d, ok := input.Decimal(number.String(), unit)
	if !ok || d < 0 {
		r.refuse(line, key, notTime, number.String())
		return 0, false
	}
	return d, true
}

// blockSize is the asked size, else the format's.
func (r *reading) blockSize(usual int) int {
	if r.options.BlockSize > 0 {
		return r.options.BlockSize
	}
	return usual
}

// named is how many blocks a prompt of n tokens has, the last one partly filled.
func named(n, size int) int { return (n + size - 1) / size }

// mooncake reads Mooncake's requests: times in milliseconds, a block id for every 512 tokens begun, equal ids for equal
// beginnings. Rows may have AIPerf's additions: session_id, delay (milliseconds after the turn before) and text_input.
func (r *reading) mooncake(file *input.File) error {
	t := r.trace
	t.BlockSize = r.blockSize(512)
	last := map[int]int{}
	return r.lines(file, func(line int, text []byte) error {
		var raw struct {
			Timestamp figure   `json:"timestamp"`
			Delay     figure   `json:"delay"`
			Input     figure   `json:"input_length"`
			Output    figure   `json:"output_length"`
			Session   string   `json:"session_id"`
			Text      *string  `json:"text_input"`
			Blocks    []uint64 `json:"hash_ids"`
		}
		if !r.unmarshal(line, text, &raw) {
			return nil
		}
		in, inOK := 0, true
		if raw.Input != "" || raw.Text == nil {
			in, inOK = r.count(line, "input_length", raw.Input, 1)
		}
		out, outOK := r.count(line, "output_length", raw.Output, 1)
		clock, delay, hasDelay, timeOK := r.turnTime(line, raw.Timestamp, raw.Delay, raw.Session, last)
		if inOK && len(raw.Blocks) > 0 && raw.Input != "" && len(raw.Blocks) != named(in, t.BlockSize) {
			r.refuse(line, "hash_ids", "must name one block for each 512 tokens begun, or for the block size asked for", "")
			inOK = false
		}
		if !inOK || !outOK || !timeOK {
			return nil
		}
		row := Row{InputTokens: in, OutputTokens: out, Blocks: raw.Blocks, Line: line}
		if raw.Text != nil {
			row.Call = &Call{Messages: []Message{{Role: "user", Text: *raw.Text}}}
		}
		if raw.Timestamp != "" {
			r.sorted(line, "timestamp", clock, raw.Timestamp.String())
		}
		index, kept, err := r.add(clock, row)
		if kept {
			r.follow(index, raw.Session, last)
			if hasDelay {
				r.gap(&t.Rows[index], delay)
			}
		}
		return err
	})
}

// turnTime is a row's timestamp, or the time of its session's last turn and the delay after it.
func (r *reading) turnTime(line int, stamp, delay figure, session string, last map[int]int) (clock int64, wait time.Duration, hasWait, ok bool) {
	if delay != "" {
		if wait, ok = r.moment(line, "delay", delay, time.Millisecond); !ok {
			return 0, 0, false, false
		}
		hasWait = true
	}
	if stamp != "" || !hasWait {
		at, ok := r.moment(line, "timestamp", stamp, time.Millisecond)
		return int64(at), wait, hasWait, ok
	}
	number, known := r.sessions[session]
	before, has := last[number]
	if session == "" || !known || !has {
		r.refuse(line, "delay", "is after a turn that is not there", delay.String())
		return 0, 0, false, false
	}
	return later(r.clocks[before], wait), wait, true, true
}

// bailian reads Qwen-Bailian's requests: times in seconds, a block id for every 16 tokens begun. parent_chat_id names the
// turn before; -1 is none. A parent from before the recording makes its child the first turn of a session.
func (r *reading) bailian(file *input.File) error {
	t := r.trace
	t.BlockSize = r.blockSize(16)
	chats := map[int64]int{} // row by chat
	return r.lines(file, func(line int, text []byte) error {
		var raw struct {
			Chat      *int64   `json:"chat_id"`
			Parent    *int64   `json:"parent_chat_id"`
			Timestamp figure   `json:"timestamp"`
			Input     figure   `json:"input_length"`
			Output    figure   `json:"output_length"`
			Type      string   `json:"type"`
			Turn      int      `json:"turn"`
			Blocks    []uint64 `json:"hash_ids"`
		}
		if !r.unmarshal(line, text, &raw) {
			return nil
		}
		in, good := r.count(line, "input_length", raw.Input, 1)
		out, outOK := r.count(line, "output_length", raw.Output, 1)
		at, timeOK := r.moment(line, "timestamp", raw.Timestamp, time.Second)
		good = good && outOK && timeOK
		for _, id := range []struct {
			key   string
			value *int64
		}{{"chat_id", raw.Chat}, {"parent_chat_id", raw.Parent}} {
			if id.value == nil {
				r.refuse(line, id.key, "is missing", "")
				good = false
			}
		}
		if !good {
			return nil
		}
		if _, twice := chats[*raw.Chat]; twice {
			r.refuse(line, "chat_id", "must not occur twice", "")
			return nil
		}
		if len(raw.Blocks) != named(in, t.BlockSize) {
			r.note(line, "hash_ids", "names more or fewer blocks than the input has")
		}
		r.sorted(line, "timestamp", int64(at), raw.Timestamp.String())
		index, kept, err := r.add(int64(at), Row{InputTokens: in, OutputTokens: out, Blocks: raw.Blocks, Class: r.intern(raw.Type), Line: line})
		if kept {
			r.child(index, *raw.Parent, chats, line)
			chats[*raw.Chat] = index
		}
		return err
	})
}

// child puts row index behind its parent, or at the head of a session.
func (r *reading) child(index int, parent int64, chats map[int64]int, line int) {
	row := &r.trace.Rows[index]
	before, ok := chats[parent]
	if !ok {
		if parent >= 0 {
			r.note(line, "parent_chat_id", "names a turn that is not there: the row begins a session")
		}
		row.Session = r.session("")
		return
	}
	row.Session, row.Turn, row.After = r.trace.Rows[before].Session, r.trace.Rows[before].Turn+1, []int{before}
}
