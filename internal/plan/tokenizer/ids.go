package tokenizer

import "tare/internal/plan/draw"

// Ordinary returns the ids that text is made of, ascending: all but special, added and unknown tokens.
func (t *Tokenizer) Ordinary() []uint32 {
	var ids []uint32
	for id, text := range t.decoder.texts {
		_, added := t.added[uint32(id)]
		if text != nil && !added && uint32(id) != t.unknown {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// IDs writes prompts as token ids, for servers that take them: each id as likely as any other, special and added ones left out.
// A prompt is a function of the tokenizer, the seed and the prompt's index. IDs is not safe for concurrent use.
type IDs struct {
	source   *draw.Source
	ordinary []uint32
}

// NewIDs returns the token-id prompts of a tokenizer.
func NewIDs(t *Tokenizer, seed uint64) *IDs {
	return &IDs{source: draw.New(seed, "token ids"), ordinary: t.Ordinary()}
}

// Append appends the n tokens of the prompt of index.
func (p *IDs) Append(dst []uint32, index uint64, n int) []uint32 {
	p.source.Seek(index)
	for ; n > 0; n-- {
		dst = append(dst, p.ordinary[p.source.Below(uint64(len(p.ordinary)))])
	}
	return dst
}
