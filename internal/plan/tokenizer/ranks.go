package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// encoding is what a rank file does not say: how text is split, and the special tokens.
type encoding struct {
	pattern   string
	normalize string // a form of Unicode, or ""
	special   map[string]uint32
}

// The patterns of tiktoken's encodings and of Qwen's.
const (
	r50kPattern   = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
	cl100kPattern = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwenPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// knownEncodings are the names of rank files whose encoding is known.
const knownEncodings = "r50k_base, gpt2, p50k_base, cl100k_base, o200k_base, o200k_harmony, qwen"

// encodingNamed returns the encoding of a rank file's name.
func encodingNamed(name string) (encoding, bool) {
	switch name {
	case "r50k_base", "gpt2", "p50k_base":
		return encoding{pattern: r50kPattern, special: map[string]uint32{"<|endoftext|>": 50256}}, true
	case "cl100k_base":
		return encoding{pattern: cl100kPattern, special: map[string]uint32{
			"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276,
		}}, true
	case "o200k_base":
		return encoding{pattern: o200kPattern, special: map[string]uint32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018}}, true
	case "o200k_harmony":
		return encoding{pattern: o200kPattern, special: harmonyTokens()}, true
	case "qwen":
		return encoding{pattern: qwenPattern, normalize: "NFC", special: qwenTokens()}, true
	}
	return encoding{}, false
}

func harmonyTokens() map[string]uint32 {
	tokens := map[string]uint32{}
	for id := uint32(200000); id < 201088; id++ {
		tokens[fmt.Sprintf("<|reserved_%d|>", id)] = id
	}
	for name, id := range map[string]uint32{
		"<|startoftext|>": 199998, "<|endoftext|>": 199999, "<|return|>": 200002, "<|constrain|>": 200003, "<|channel|>": 200005,
		"<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012, "<|endofprompt|>": 200018,
	} {
		if id != 200018 {
			delete(tokens, fmt.Sprintf("<|reserved_%d|>", id)) // the other one has both names
		}
		tokens[name] = id
	}
	return tokens
}

func qwenTokens() map[string]uint32 {
	const first = 151643
	tokens := map[string]uint32{"<|endoftext|>": first, "<|im_start|>": first + 1, "<|im_end|>": first + 2}
	for i := range uint32(205) {
		tokens[fmt.Sprintf("<|extra_%d|>", i)] = first + 3 + i
	}
	return tokens
}

// readRanks reads a rank file of tiktoken: a line for each token, its bytes in base64 and its rank, which is its id.
func (t *Tokenizer) readRanks(content []byte, path string) error {
	name := strings.TrimSuffix(filepath.Base(path), ".tiktoken")
	e, ok := encodingNamed(name)
	if !ok {
		return fmt.Errorf("a rank file does not say how text is split, and its name %q is not one of %s\nhint: use the tokenizer.json of the same model", name, knownEncodings)
	}
	ranks, err := parseRanks(content)
	if err != nil {
		return err
	}
	return t.fromRanks(ranks, 0, e)
}

// ranked is one line of a rank file.
type ranked struct {
	text []byte
	rank uint32
}

func parseRanks(content []byte) ([]ranked, error) {
	var ranks []ranked
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		encoded, digits, _ := bytes.Cut(line, []byte{' '})
		text, err := base64.StdEncoding.AppendDecode(nil, encoded)
		if err != nil || len(text) == 0 {
			return nil, fmt.Errorf("line %d: %q is not base64", number, encoded)
		}
		rank, err := strconv.ParseUint(string(digits), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("line %d: rank %q is not a whole number", number, digits)
		}
		ranks = append(ranks, ranked{text, uint32(rank)})
	}
	return ranks, nil
}

// fromRanks makes a byte-level tokenizer of ranks. The id of a token is its rank plus offset.
func (t *Tokenizer) fromRanks(ranks []ranked, offset uint32, e encoding) error {
	p, err := compile(e.pattern)
	if err != nil {
		return err
	}
	t.byteLevel, t.whole = true, true
	t.splits = []splitter{divider{finder: p, behavior: isolated}}
	if e.normalize != "" {
		t.normalizers = []normalizer{forms[e.normalize]}
	}
	for _, r := range ranks {
		id := r.rank + offset
		t.vocabulary[string(r.text)] = id
		t.decoder.text(id, r.text)
		if len(r.text) == 1 {
			t.bytes[r.text[0]] = id
		}
	}
	for b, token := range t.bytes {
		if token == none {
			return fmt.Errorf("the byte 0x%02x has no rank", b)
		}
	}
	t.mergeByRank(ranks, offset)
	t.early, t.late = new(addedTokens), new(addedTokens)
	for text, id := range e.special {
		t.early.add([]byte(text), addedToken{token: id})
		t.decoder.text(id, []byte(text))
		t.added[id], t.special[id] = text, true
	}
	return nil
}

// text sets the text of a token.
func (d *decoder) text(id uint32, text []byte) {
	for int(id) >= len(d.texts) {
		d.texts = append(d.texts, make([][]byte, max(1024, len(d.texts)))...)
	}
	d.texts[id] = text
}

// mergeByRank lists every pair of tokens that make a token together.
func (t *Tokenizer) mergeByRank(ranks []ranked, offset uint32) {
	type pair struct{ left, right, rank uint32 }
	var found []pair
	for _, r := range ranks {
		for i := 1; i < len(r.text); i++ {
			left, ok := t.vocabulary[string(r.text[:i])]
			if !ok {
				continue
			}
			if right, ok := t.vocabulary[string(r.text[i:])]; ok {
				found = append(found, pair{left, right, r.rank})
			}
		}
	}
	t.merges = newPairs(len(found))
	for _, p := range found {
		t.merges.put(p.left, p.right, p.rank, p.rank+offset)
	}
}

// readTekken reads a tekken.json of Mistral: ranks, with the special tokens' ids before them. Special tokens are not
// recognized in text, as mistral-common does not.
func (t *Tokenizer) readTekken(keys map[string]json.RawMessage) error {
	var config struct {
		Pattern string `json:"pattern"`
		Size    uint32 `json:"default_vocab_size"`
		Special uint32 `json:"default_num_special_tokens"`
	}
	if err := json.Unmarshal(keys["config"], &config); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	var lines []struct {
		Rank  uint32 `json:"rank"`
		Bytes []byte `json:"token_bytes"`
	}
	if err := json.Unmarshal(keys["vocab"], &lines); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	if config.Size <= config.Special {
		return fmt.Errorf("config: default_vocab_size %d is not above default_num_special_tokens %d", config.Size, config.Special)
	}
	var ranks []ranked
	for _, line := range lines {
		if line.Rank < config.Size-config.Special {
			ranks = append(ranks, ranked{line.Bytes, line.Rank})
		}
	}
	if err := t.fromRanks(ranks, config.Special, encoding{pattern: config.Pattern}); err != nil {
		return err
	}
	return t.readTekkenSpecial(keys["special_tokens"], config.Special)
}

// readTekkenSpecial names the special tokens, which older files leave out.
func (t *Tokenizer) readTekkenSpecial(raw json.RawMessage, count uint32) error {
	var tokens []struct {
		Rank uint32 `json:"rank"`
		Text string `json:"token_str"`
	}
	if !absent(raw) {
		if err := json.Unmarshal(raw, &tokens); err != nil {
			return fmt.Errorf("special_tokens: %w", err)
		}
	}
	for id := range count {
		text := fmt.Sprintf("<SPECIAL_%d>", id)
		for _, token := range tokens {
			if token.Rank == id {
				text = token.Text
			}
		}
		t.decoder.text(id, []byte(text))
		t.added[id], t.special[id] = text, true
	}
	return nil
}
