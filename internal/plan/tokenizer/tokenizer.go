// Package tokenizer turns text into the tokens that a model's own tokenizer would make of it, id for id.
//
// It reads the files that models come with: tokenizer.json of Hugging Face with a BPE model, tekken.json of Mistral, and
// rank files of tiktoken. What such a file asks for and this package does not know is refused by name when it is loaded;
// nothing is approximated.
package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"sync/atomic"
	"unicode/utf8"
)

// Tokenizer is one tokenizer. It is safe for concurrent use.
type Tokenizer struct {
	id   string
	name string

	early, late *addedTokens // found in the text as it is, and in the normalized text
	normalizers []normalizer // in turn
	splits      []splitter   // in turn
	byteLevel   bool         // symbols are bytes; else they are characters
	vocabulary  map[string]uint32
	merges      *pairs
	whole       bool                // a word that is a token is that token, whatever the merges say
	bytes       [256]uint32         // token of a byte: of a byte-level symbol, or the fallback of a character without a token
	fallback    bool                // characters without a token become bytes
	unknown     uint32              // token of a character that has none, or none
	fuseUnknown bool                // neighbouring unknowns are one token
	joins       map[uint64]struct{} // neighbouring characters that stand together in some merged token; nil if byteLevel
	decoder     decoder
	special     map[uint32]bool
	added       map[uint32]string

	words *wordCache
}

// Load reads a tokenizer from a file. Faults name the file and the part of it that cannot be used.
func Load(path string) (*Tokenizer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	t, err := parse(content, path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	return t, nil
}

// parse tells the formats apart by their content.
func parse(content []byte, path string) (*Tokenizer, error) {
	t := newTokenizer(content, path)
	var err error
	switch first := bytes.TrimLeft(content, " \t\r\n"); {
	case len(first) == 0:
		err = fmt.Errorf("the file is empty")
	case first[0] == '{':
		err = t.readJSON(content)
	case bytes.IndexByte(first, 0) >= 0 || !utf8.Valid(first):
		err = fmt.Errorf("neither JSON nor a tiktoken rank file; a SentencePiece model (.model) is not read\nhint: use the tokenizer.json of the same model")
	default:
		err = t.readRanks(content, path)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func newTokenizer(content []byte, name string) *Tokenizer {
	sum := sha256.Sum256(content)
	t := &Tokenizer{
		id: hex.EncodeToString(sum[:]), name: name, vocabulary: map[string]uint32{}, unknown: none,
		special: map[uint32]bool{}, added: map[uint32]string{}, words: new(wordCache),
	}
	for b := range t.bytes {
		t.bytes[b] = none
	}
	return t
}

// ID is the SHA-256 of the tokenizer's file, in hexadecimal.
func (t *Tokenizer) ID() string { return t.id }

// Name is the path that the tokenizer was loaded from, or the embedded one's name.
func (t *Tokenizer) Name() string { return t.name }

// Count returns the number of tokens of text.
func (t *Tokenizer) Count(text []byte) int {
	var room [512]uint32
	return len(t.Append(room[:0], text))
}

// Append appends the tokens of text to dst, without those that a server may put around a prompt, such as one for the beginning of
// a text. Special tokens that are written out in the text count as such, as they do for
// the reference. A byte that is not UTF-8 stands for U+FFFD, as it does in a JSON request body.
func (t *Tokenizer) Append(dst []uint32, text []byte) []uint32 {
	text = validUTF8(text)
	t.early.cut(text, func(piece []byte, token uint32) {
		if token != none {
			dst = append(dst, token)
			return
		}
		first := len(piece) > 0 && &piece[0] == &text[0]
		for _, n := range t.normalizers {
			piece = n.normalize(piece)
		}
		begun := false
		t.late.cut(piece, func(piece []byte, token uint32) {
			if token != none {
				dst = append(dst, token)
			} else {
				dst = t.appendSplit(dst, piece, t.splits, first && !begun)
			}
			begun = true
		})
	})
	return dst
}

// validUTF8 returns text with U+FFFD for each byte that is not UTF-8.
func validUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	valid := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		valid = utf8.AppendRune(valid, r)
		text = text[size:]
	}
	return valid
}

// appendSplit passes a piece through the splits that are left, and its parts to the merges. First says that the piece stands
// at the beginning of the text.
func (t *Tokenizer) appendSplit(dst []uint32, piece []byte, splits []splitter, first bool) []uint32 {
	if len(piece) == 0 {
		return dst
	}
	if len(splits) == 0 {
		if t.joins != nil {
			return t.appendJoined(dst, piece)
		}
		return t.appendWord(dst, piece)
	}
	splits[0].split(piece, first, func(part []byte) {
		dst = t.appendSplit(dst, part, splits[1:], first && len(part) > 0 && &part[0] == &piece[0])
	})
	return dst
}

// appendJoined cuts a piece where no merge can reach across, which changes nothing but makes words of it.
func (t *Tokenizer) appendJoined(dst []uint32, piece []byte) []uint32 {
	begin, at := 0, 0
	left := rune(-1)
	for at < len(piece) {
		r, size := utf8.DecodeRune(piece[at:])
		if left >= 0 {
			if _, joined := t.joins[joint(left, r)]; !joined && t.known(left) && t.known(r) {
				dst = t.appendWord(dst, piece[begin:at])
				begin = at
			}
		}
		left = r
		at += size
	}
	return t.appendWord(dst, piece[begin:])
}

func joint(left, right rune) uint64 { return uint64(left)<<32 | uint64(right) }

// known says whether a character has a token, and thus cannot be part of a run of unknown ones.
func (t *Tokenizer) known(r rune) bool {
	var room [utf8.UTFMax]byte
	_, ok := t.vocabulary[string(utf8.AppendRune(room[:0], r))]
	return ok
}

// appendWord appends the tokens of what no other text can change.
func (t *Tokenizer) appendWord(dst []uint32, word []byte) []uint32 {
	if len(word) > longestCached {
		return t.appendMerged(dst, word)
	}
	slot := t.words.slot(word)
	if known := slot.Load(); known != nil && known.word == string(word) {
		return append(dst, known.tokens...)
	}
	begin := len(dst)
	if dst = t.appendMerged(dst, word); t.whole && len(dst) == begin+1 {
		return dst // found as quickly without a slot
	}
	slot.Store(&cachedWord{word: string(word), tokens: append([]uint32(nil), dst[begin:]...)})
	return dst
}

func (t *Tokenizer) appendMerged(dst []uint32, word []byte) []uint32 {
	if t.whole {
		if token, ok := t.vocabulary[string(word)]; ok {
			return append(dst, token)
		}
	}
	begin := len(dst)
	if t.byteLevel {
		for _, b := range word {
			if token := t.bytes[b]; token != none {
				dst = append(dst, token)
			} else if t.unknown != none {
				dst = append(dst, t.unknown)
			}
		}
	} else {
		dst = t.appendCharacters(dst, word)
	}
	return dst[:begin+len(t.merges.merge(dst[begin:]))]
}

// appendCharacters appends the token of each character, the bytes of those that have none, or the unknown token.
func (t *Tokenizer) appendCharacters(dst []uint32, word []byte) []uint32 {
	unknown := false
	flush := func() {
		if unknown {
			dst = append(dst, t.unknown)
		}
		unknown = false
	}
	for len(word) > 0 {
		size := runeLength(word)
		character := word[:size]
		word = word[size:]
		if token, ok := t.vocabulary[string(character)]; ok {
			flush()
			dst = append(dst, token)
			continue
		}
		if t.fallback {
			if tokens, ok := t.byteTokens(character); ok {
				dst = append(dst, tokens[:size]...)
				continue
			}
		}
		if t.unknown != none {
			if !t.fuseUnknown {
				flush()
			}
			unknown = true
		}
	}
	flush()
	return dst
}

func (t *Tokenizer) byteTokens(character []byte) (tokens [utf8.UTFMax]uint32, ok bool) {
	for i, b := range character {
		if tokens[i] = t.bytes[b]; tokens[i] == none {
			return tokens, false
		}
	}
	return tokens, true
}

// wordCache remembers the tokens of words. It is bounded: a word takes the place of another one with the same slot.
type wordCache [1 << cacheBits]atomic.Pointer[cachedWord]

type cachedWord struct {
	word   string
	tokens []uint32
}

const (
	cacheBits     = 16
	longestCached = 64 // bytes
)

func (c *wordCache) slot(word []byte) *atomic.Pointer[cachedWord] {
	hash := uint64(len(word))
	for len(word) >= 8 {
		hash = (hash ^ (uint64(word[0]) | uint64(word[1])<<8 | uint64(word[2])<<16 | uint64(word[3])<<24 |
			uint64(word[4])<<32 | uint64(word[5])<<40 | uint64(word[6])<<48 | uint64(word[7])<<56)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
		word = word[8:]
	}
	var rest uint64
	for _, b := range word {
		rest = rest<<8 | uint64(b)
	}
	hash = (hash ^ rest) * 0x9e3779b97f4a7c15
	return &c[hash>>(64-cacheBits)]
}
