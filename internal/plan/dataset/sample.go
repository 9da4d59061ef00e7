package dataset

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/internal/plan/draw"
	"tare/internal/plan/input"
)

// Pick is one request's row, cut by the rules.
type Pick struct {
	Row          int // good row of the file, from 0
	Part         int // which of the requests that the row gives, from 0
	PromptTokens int // counted, of all turns; 0 if nothing was counted
	OutputTokens int // to be asked for; 0 if neither the row nor the rules say
	Again        bool
}

// Dropped says how many rows a rule left out.
type Dropped struct {
	Rule string
	Rows int64
}

// Sample is what Select chose, in the order in which it is to be sent.
type Sample struct {
	Rules   Rules
	Picks   []Pick
	Dropped []Dropped // by the first rule that a row broke, in the order of the rules
	Tried   int64     // rows that were looked at: none behind the last one picked
	Again   int64     // picks that repeat an earlier one
	file    *File
}

// Row reads pick i and cuts it.
func (s *Sample) Row(i int) (Row, error) {
	pick := s.Picks[i]
	row, err := s.file.Row(pick.Row)
	if err != nil {
		return Row{}, err
	}
	cuts, why := s.Rules.cut(row)
	if pick.Part >= len(cuts) {
		return Row{}, fmt.Errorf("row %d of %s has changed: %s", row.Number+1, s.file.facts.Path, why)
	}
	row = cuts[pick.Part]
	row.OutputTokens = pick.OutputTokens
	return row, nil
}

// Select tries the rows in the order of the rules until count requests are found; count 0 takes all there are. Without a
// counter nothing is counted, and rules that need it are an error; so is finding nothing.
func Select(f *File, rules Rules, count int, counter Counter) (*Sample, error) {
	if err := rules.check(); err != nil {
		return nil, err
	}
	if rules.counts() && counter == nil {
		return nil, input.Faults{{File: f.facts.Path, Reason: "cannot be selected by tokens without a tokenizer"}}
	}
	s := &selection{Sample: Sample{Rules: rules, file: f}, counter: counter, dropped: map[string]int64{}}
	for _, i := range s.order() {
		if count > 0 && len(s.Picks) >= count {
			break
		}
		if err := s.try(int(i), count); err != nil {
			return nil, err
		}
	}
	s.list()
	if len(s.Picks) == 0 {
		return nil, s.nothing()
	}
	s.oversample(count)
	return &s.Sample, nil
}

// counts reports whether the rules compare token counts.
func (r Rules) counts() bool {
	return r.MinPrompt > 0 || r.MaxPrompt > 0 || r.MinOutput > 0 || r.MaxOutput > 0 || r.MaxTotal > 0
}

type selection struct {
	Sample
	counter Counter
	dropped map[string]int64
}

// order lists the good rows that have enough turns, as they are to be tried.
func (s *selection) order() []uint32 {
	var order []uint32
	for i, p := range s.file.index {
		if int64(p.number) < s.Rules.Skip {
			s.dropped[ruleSkip]++
			continue
		}
		if int(p.turns) < s.Rules.MinTurns {
			s.dropped[ruleTurns]++
			continue
		}
		order = append(order, uint32(i))
	}
	s.shuffle(order)
	return order
}

// shuffle exchanges every row, from the last on, with one drawn from those up to it.
func (s *selection) shuffle(order []uint32) {
	var below func(n uint32) uint32
	switch s.Rules.Order {
	case Python:
		below = newMersenne(s.Rules.Seed).below
	case Shuffled:
		source := draw.New(s.Rules.Seed, "dataset/order")
		below = func(n uint32) uint32 { return uint32(source.Below(uint64(n))) }
	default:
		return
	}
	for i := len(order) - 1; i > 0; i-- {
		j := below(uint32(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
}

const (
	ruleSkip      = "head of the file"
	ruleTurns     = "too few turns"
	ruleCut       = "no request in its turns"
	ruleLetters   = "length of the prompt in letters"
	rulePlain     = "prompt is not plain text"
	ruleMinPrompt = "prompt too short"
	ruleMinOutput = "output too short"
	ruleMaxPrompt = "prompt too long"
	ruleMaxOutput = "output too long"
	ruleMaxTotal  = "prompt and output too long"
	ruleNoRecord  = "no recorded output"
)

func (s *selection) list() {
	for _, rule := range []string{
		ruleSkip, ruleTurns, ruleCut, ruleNoRecord, ruleLetters, rulePlain, ruleMinPrompt, ruleMinOutput, ruleMaxPrompt, ruleMaxOutput, ruleMaxTotal,
	} {
		if n := s.dropped[rule]; n > 0 {
			s.Dropped = append(s.Dropped, Dropped{Rule: rule, Rows: n})
		}
	}
}

// try picks what the rules leave of row i, up to count picks in all.
func (s *selection) try(i, count int) error {
	row, err := s.file.Row(i)
	if err != nil {
		return err
	}
	s.Tried++
	cuts, why := s.Rules.cut(row)
	if why != "" {
		s.dropped[ruleCut]++
		return nil
	}
	for part, cut := range cuts {
		if count > 0 && len(s.Picks) >= count {
			return nil
		}
		pick := Pick{Row: i, Part: part}
		if rule := s.measure(cut, &pick); rule != "" {
			s.dropped[rule]++
			continue
		}
		s.Picks = append(s.Picks, pick)
	}
	return nil
}

// measure counts a request and returns the first rule it breaks.
func (s *selection) measure(row Row, pick *Pick) (broken string) {
	r := s.Rules
	if letters := promptLetters(row); r.MinLetters > 0 && letters < r.MinLetters || r.MaxLetters > 0 && letters > r.MaxLetters {
		return ruleLetters
	}
	if r.Plain && !plain(row) {
		return rulePlain
	}
	pick.OutputTokens = max(row.OutputTokens, 0)
	if s.counter != nil {
		for _, turn := range row.Turns {
			pick.PromptTokens += s.counter.Count([]byte(turn.Text))
		}
		if row.HasOutput {
			pick.OutputTokens = s.counter.Count([]byte(row.Output))
		}
	}
	recorded := pick.OutputTokens
	if r.OutputTokens > 0 {
		pick.OutputTokens = r.OutputTokens
	}
	return r.broken(pick.PromptTokens, recorded, pick.OutputTokens, row.HasOutput || row.OutputTokens > 0)
}

// broken compares lengths in tokens. A length that was asked for is held to no minimum of the record.
func (r Rules) broken(prompt, recorded, asked int, hasRecord bool) string {
	fixed := r.OutputTokens > 0
	switch {
	case !fixed && !hasRecord && (r.MinOutput > 0 || r.MaxOutput > 0 || r.MaxTotal > 0):
		return ruleNoRecord
	case prompt < r.MinPrompt:
		return ruleMinPrompt
	case !fixed && recorded < r.MinOutput:
		return ruleMinOutput
	case r.MaxPrompt > 0 && prompt > r.MaxPrompt:
		return ruleMaxPrompt
	case !fixed && r.MaxOutput > 0 && recorded > r.MaxOutput:
		return ruleMaxOutput
	case r.MaxTotal > 0 && prompt+asked > r.MaxTotal:
		return ruleMaxTotal
	}
	return ""
}

func promptLetters(row Row) (n int) {
	for _, turn := range row.Turns {
		n += utf8.RuneCountInString(turn.Text)
	}
	return n
}

// plain is guidellm's filter of prompts.
func plain(row Row) bool {
	for _, turn := range row.Turns {
		text := turn.Text
		if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.ContainsAny(text, `<>{}[]\`) {
			return false
		}
		if text != "" && strings.IndexFunc(text, func(c rune) bool { return !unicode.IsDigit(c) }) < 0 {
			return false
		}
	}
	return true
}

// oversample repeats picks at random until there are enough: with Python's order as vLLM does, from the seed anew.
func (s *selection) oversample(count int) {
	found := len(s.Picks)
	if !s.Rules.Oversample || found >= count {
		return
	}
	twister := newMersenne(s.Rules.Seed)
	source := draw.New(s.Rules.Seed, "dataset/again")
	for n := uint64(0); len(s.Picks) < count; n++ {
		i := int(twister.below(uint32(found)))
		if s.Rules.Order != Python {
			source.Seek(n)
			i = int(source.Below(uint64(found)))
		}
		pick := s.Picks[i]
		pick.Again = true
		s.Picks = append(s.Picks, pick)
		s.Again++
	}
}

func (s *selection) nothing() error {
	var why []string
	for _, d := range s.Dropped {
		why = append(why, fmt.Sprintf("%d: %s", d.Rows, d.Rule))
	}
	return input.Faults{{
		File: s.file.facts.Path, Reason: "has no row that the rules leave over (" + strings.Join(why, "; ") + ")",
	}}
}
