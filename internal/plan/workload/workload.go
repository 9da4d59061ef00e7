// Package workload decides what the requests of a run say.
package workload

import (
	_ "embed"
	"encoding/binary"
	"strings"

	"tare/internal/plan/draw"
)

// words are 1,024 short English words, one a line. Each is a single token, with a leading space, in the vocabularies of
// GPT-2, GPT-4 (cl100k), GPT-4o (o200k), Llama 2, Llama 3 and Mistral.
//
//go:embed words.txt
var words string

const (
	vocabulary = 1024
	wordBits   = 10
	wordRoom   = 8 // bytes of a word and the space after it
	nonceWords = 4
)

// Text writes synthetic prompts. It allocates nothing but a buffer that grows, and is not safe for concurrent use.
type Text struct {
	source  *draw.Source
	words   [vocabulary]uint64 // letters and a space, the first in the lowest byte
	lengths [vocabulary]uint8  // with the space

	odd, offset uint64 // the nonce of a prompt is index·odd + offset
}

// NewText returns the prompts of a seed.
func NewText(seed uint64) *Text {
	t := &Text{source: draw.New(seed, "prompt")}
	for i, word := range strings.Fields(words) {
		var room [wordRoom]byte
		t.lengths[i] = uint8(copy(room[:], word) + 1)
		room[len(word)] = ' '
		t.words[i] = binary.LittleEndian.Uint64(room[:])
	}
	nonce := draw.New(seed, "nonce")
	t.odd, t.offset = nonce.Uint64()|1, nonce.Uint64()
	return t
}

// Append appends the prompt of request index to dst: so many words with a space between them, which common servers count
// as so many tokens. The first four words are a number of the request's own, so that no two of the first 2⁴⁰ prompts of
// four words or more begin alike, and a prefix cache finds nothing; n shorter words tell 2¹⁰ⁿ prompts apart.
func (t *Text) Append(dst []byte, index uint64, count int) []byte {
	if count <= 0 {
		return dst
	}
	dst = room(dst, count)
	at := len(dst)
	dst = dst[:at+count*wordRoom]
	for shift := min(count, nonceWords) * wordBits; shift > 0; count-- {
		shift -= wordBits
		at += t.put(dst[at:], (index*t.odd+t.offset)>>shift)
	}
	t.source.Seek(index)
	for count > 0 {
		random := t.source.Uint64()
		for range min(count, 64/wordBits) {
			at += t.put(dst[at:], random)
			random >>= wordBits
			count--
		}
	}
	return dst[:at-1]
}

// put writes the word of the lowest bits and a space after it, and returns their length.
func (t *Text) put(dst []byte, random uint64) int {
	word := random % vocabulary
	binary.LittleEndian.PutUint64(dst, t.words[word])
	return int(t.lengths[word])
}

// room makes space for count words after dst.
func room(dst []byte, count int) []byte {
	if need := len(dst) + count*wordRoom; cap(dst) < need {
		return append(make([]byte, 0, need), dst...)
	}
	return dst
}
