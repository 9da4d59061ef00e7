package dataset

import (
	"fmt"
	"strings"

	"tare/internal/plan/input"
)

// Turns says which turns of a row make a request.
type Turns string

const (
	WholeRow  Turns = "whole"      // all turns up to the last reply, which is the recorded output
	FirstTwo  Turns = "first-two"  // turn 0 is the prompt and turn 1 the recorded output, whatever their roles
	EachHuman Turns = "each-human" // every user turn is a request of its own, without what came before
	Chat      Turns = "chat"       // all turns as they are, the last reply too
)

// Order says in which order rows are tried.
type Order string

const (
	InFile   Order = "file"
	Shuffled Order = "shuffled" // by our own draws: stream "dataset/order" of the seed
	Python   Order = "python"   // as Python's random.seed(seed) and random.shuffle leave a list: the peer's own order
)

// Rules say which rows are used and cut how. Nothing is ever truncated: what does not fit is dropped and counted.
type Rules struct {
	Name string // of the preset they came from; empty for rules of one's own

	Turns    Turns
	MinTurns int   // rows with fewer turns are left out before the order is drawn
	Skip     int64 // rows at the head of the file that are never used, good or bad

	Order      Order
	Seed       uint64
	Oversample bool // if too few rows remain, use some again until there are enough: they hit a prefix cache

	MinPrompt, MaxPrompt int // tokens; 0 for no limit, here and below
	MinOutput, MaxOutput int
	MaxTotal             int // prompt and output together

	OutputTokens int // asked of every request; 0 for the recorded length

	MinLetters, MaxLetters int  // characters of the prompt behind trimming
	Plain                  bool // no links, markup, brackets or bare numbers: guidellm's filter
}

// Presets returns the names of the rules of other tools.
func Presets() []string {
	return []string{"vllm", "sglang", "guidellm", "inference-perf", "inference-perf-chat"}
}

// Preset returns another tool's rules for ShareGPT.
func Preset(name string) (rules Rules, ok bool) {
	switch name {
	case "vllm":
		return Rules{
			Name: name, Turns: FirstTwo, MinTurns: 2, Order: Python, Seed: 0, Oversample: true,
			MinPrompt: 4, MaxPrompt: 1024, MinOutput: 4, MaxTotal: 2048,
		}, true
	case "sglang":
		return Rules{Name: name, Turns: FirstTwo, MinTurns: 2, Order: Python, Seed: 1, MinPrompt: 2, MinOutput: 2}, true
	case "guidellm":
		return Rules{Name: name, Turns: EachHuman, Order: InFile, MinLetters: 10, MaxLetters: 1000, Plain: true}, true
	case "inference-perf":
		return Rules{Name: name, Turns: FirstTwo, MinTurns: 2, Order: InFile, Skip: 1, MinPrompt: 1, MinLetters: 1}, true
	case "inference-perf-chat":
		return Rules{Name: name, Turns: Chat, MinTurns: 2, Order: InFile, Skip: 1, OutputTokens: 30}, true
	}
	return Rules{}, false
}

// check faults rules that contradict themselves.
func (r Rules) check() error {
	var all input.Faults
	fault := func(key, reason string, value any) {
		all = append(all, input.Fault{File: "rules", Key: key, Reason: reason, Value: fmt.Sprint(value)})
	}
	for _, limit := range []struct {
		key      string
		low, top int
	}{
		{"prompt tokens", r.MinPrompt, r.MaxPrompt},
		{"output tokens", r.MinOutput, r.MaxOutput},
		{"letters", r.MinLetters, r.MaxLetters},
		{"total tokens", 0, r.MaxTotal},
	} {
		if limit.low < 0 || limit.top < 0 {
			fault(limit.key, "must not be limited to a number below 0", min(limit.low, limit.top))
		} else if limit.top > 0 && limit.low > limit.top {
			fault(limit.key, fmt.Sprintf("must have a least that is not above the most, %d", limit.top), limit.low)
		}
	}
	switch r.Turns {
	case WholeRow, FirstTwo, EachHuman, Chat:
	default:
		fault("turns", "must be one of whole, first-two, each-human and chat", r.Turns)
	}
	switch r.Order {
	case InFile, Shuffled, Python:
	default:
		fault("order", "must be one of file, shuffled and python", r.Order)
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// cut makes of a row the requests that the rules ask for. why names the rule by which a row gives none.
func (r Rules) cut(row Row) (cuts []Row, why string) {
	if row.Body != nil {
		return []Row{row}, ""
	}
	switch r.Turns {
	case FirstTwo:
		return firstTwo(row)
	case EachHuman:
		for _, turn := range row.Turns {
			if turn.Role == User {
				one := row
				one.Turns, one.Output, one.HasOutput, one.OutputTokens = []Turn{{User, strings.TrimSpace(turn.Text)}}, "", false, 0
				cuts = append(cuts, one)
			}
		}
		if len(cuts) == 0 {
			return nil, "no turn of a user"
		}
		return cuts, ""
	case Chat:
		return []Row{row}, ""
	}
	return wholeRow(row)
}

func firstTwo(row Row) ([]Row, string) {
	if len(row.Turns) < 2 && !row.HasOutput || len(row.Turns) == 0 {
		return nil, "fewer than two turns"
	}
	if len(row.Turns) >= 2 {
		row.Output, row.HasOutput = row.Turns[1].Text, true
	}
	row.Turns = []Turn{{User, row.Turns[0].Text}}
	return []Row{row}, ""
}

// wholeRow takes the last reply off the turns; the turns must end with something to reply to.
func wholeRow(row Row) ([]Row, string) {
	if n := len(row.Turns); n > 0 && row.Turns[n-1].Role == Assistant && !row.HasOutput {
		row.Output, row.HasOutput = row.Turns[n-1].Text, true
		row.Turns = row.Turns[:n-1]
	}
	if n := len(row.Turns); n == 0 || row.Turns[n-1].Role == System {
		return nil, "nothing to reply to"
	}
	return []Row{row}, ""
}
