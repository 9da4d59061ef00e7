package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// candidates is how many of the tokenizer's first tokens are looked at. Byte-pair encoding numbers tokens by frequency.
const candidates = 4096

// specials are the control tokens of the chat format, in the order of their new ids.
var specials = []string{"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}

// vocabulary is a byte-pair vocabulary, renumbered: tokens, then specials.
type vocabulary struct {
	tokens []string // in the byte-level alphabet of GPT-2: Ġ is a space, Ċ a newline
	merges []string // "left right", in order of rank
	plain  int      // tokens before the specials
}

// id returns the new id of a special token.
func (v vocabulary) id(special string) uint32 {
	for i, t := range v.tokens[v.plain:] {
		if t == special {
			return uint32(v.plain + i)
		}
	}
	panic("not a special token: " + special)
}

func readVocabulary(file string, all bool) (vocabulary, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return vocabulary{}, err
	}
	var t struct {
		Model struct {
			Vocab  map[string]int
			Merges []merge
		}
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return vocabulary{}, err
	}
	return newVocabulary(t.Model.Vocab, t.Model.Merges, all)
}

func newVocabulary(ids map[string]int, merges []merge, all bool) (vocabulary, error) {
	byID := make([]string, candidates)
	for t, id := range ids {
		if id < candidates && (all || ascii(t)) {
			byID[id] = t
		}
	}
	var v vocabulary
	kept := map[string]bool{}
	for _, t := range byID {
		if t != "" {
			v.tokens = append(v.tokens, t)
			kept[t] = true
		}
	}
	if !kept["Ġ"] || !kept["Ċ"] {
		return vocabulary{}, fmt.Errorf("no byte-level tokens for space and newline among the first %d ids", candidates)
	}
	for _, m := range merges {
		if kept[m.left] && kept[m.right] && kept[m.left+m.right] {
			v.merges = append(v.merges, m.left+" "+m.right)
		}
	}
	v.plain = len(v.tokens)
	v.tokens = append(v.tokens, specials...)
	return v, nil
}

// ascii reports whether a token's bytes are all printable ASCII, space or newline.
func ascii(token string) bool {
	for _, r := range token {
		if (r < '!' || r > '~') && r != 'Ġ' && r != 'Ċ' {
			return false
		}
	}
	return true
}

// merge is one merge rule. Files spell it "left right" or ["left", "right"].
type merge struct{ left, right string }

func (m *merge) UnmarshalJSON(b []byte) error {
	var pair [2]string
	if b[0] == '[' {
		if err := json.Unmarshal(b, &pair); err != nil {
			return err
		}
		m.left, m.right = pair[0], pair[1]
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	var ok bool
	if m.left, m.right, ok = strings.Cut(s, " "); !ok {
		return fmt.Errorf("merge rule without a space: %q", s)
	}
	return nil
}
