package tokenizer

import (
	"bytes"
	_ "embed"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"tare/internal/plan/draw"
)

// Source is where the words of a prompt come from.
type Source uint8

const (
	Markov Source = iota // a walk over a text that goes on with what follows the same two words elsewhere in it
	Corpus               // a stretch of a text, from a random word on
	Random               // words of one token, each as likely as any other
)

//go:embed opticks.txt.gz
var embeddedCorpus []byte

// embeddedText is the text that prompts are made of if none is given: paragraphs of Newton's Opticks, of 1730.
var embeddedText = sync.OnceValue(func() []byte { return unzip(embeddedCorpus) })

// Prompts writes texts of an exact number of tokens. A text is a function of the tokenizer, the source, its text, the seed, the
// prompt's index and the number of tokens. No two of the first 2²⁰ prompts of four tokens or more begin alike, so that a prefix
// cache finds nothing. Prompts is not safe for concurrent use; a Clone is cheap.
//
// A text is put together of pieces, each a space and what follows up to the next one, whose token counts are known and add
// up. That they do is checked over the whole text when Prompts is made, and over prompts by encoding them again.
type Prompts struct {
	*material
	source  *draw.Source
	check   uint64
	scratch []uint32

	odd, offset uint64 // the nonce of a prompt is index·odd + offset
}

// material is what the prompts of one tokenizer and text share.
type material struct {
	tokenizer *Tokenizer
	from      Source
	leads     [][]byte // words of one token that can begin a text
	words     [][]byte // a space and a word, one token behind any other piece
	pieces    []piece  // of the text, in its order
	followers []int32  // places of pieces, grouped by the two pieces before
	leadBits  int
	wordBits  int
}

// piece is one piece of the text.
type piece struct {
	text   []byte
	tokens int32
	group  int32 // where the followers of this piece and the one before it begin
	choice int32 // how many there are
}

const (
	nonceWords = 4
	leastWords = 64 // of one token, below which texts would say nothing
)

// NewPrompts returns the prompts of a tokenizer. Text is what Markov and Corpus take their words from, nil for an embedded one.
// Every prompt whose index is a multiple of check is encoded again and its count compared; 0 checks none.
func NewPrompts(t *Tokenizer, from Source, text []byte, seed, check uint64) (*Prompts, error) {
	m := &material{tokenizer: t, from: from}
	if err := m.findWords(); err != nil {
		return nil, fmt.Errorf("exact prompts: %w", err)
	}
	if from != Random {
		if text == nil {
			text = embeddedText()
		}
		if err := m.cutText(validUTF8(text)); err != nil {
			return nil, fmt.Errorf("exact prompts: %w", err)
		}
	}
	return (&Prompts{material: m, check: check}).Reseed(seed), nil
}

// Clone returns prompts that write the same texts and may be used beside p.
func (p *Prompts) Clone() *Prompts {
	q := *p
	source := *p.source
	q.source, q.scratch = &source, nil
	return &q
}

// Reseed returns prompts of another seed, which may be used beside p.
func (p *Prompts) Reseed(seed uint64) *Prompts {
	nonce := draw.New(seed, "exact nonce")
	return &Prompts{
		material: p.material, source: draw.New(seed, "exact prompt"), check: p.check, odd: nonce.Uint64() | 1, offset: nonce.Uint64(),
	}
}

// Append appends the prompt of index, which has n tokens.
func (p *Prompts) Append(dst []byte, index uint64, n int) ([]byte, error) {
	begin := len(dst)
	dst = p.write(dst, index, n, false)
	if p.check > 0 && index%p.check == 0 {
		if got := p.count(dst[begin:]); got != max(n, 0) {
			return dst, fmt.Errorf("prompt %d: %d tokens wanted, but its text has %d", index, n, got)
		}
	}
	return dst, nil
}

// AppendBehind appends the text of index, which has n tokens, behind one that Append or AppendBehind wrote: their tokens add up.
func (p *Prompts) AppendBehind(dst []byte, index uint64, n int) []byte {
	return p.write(dst, index, n, true)
}

// AppendInside appends the text of index with which the whole that wrap makes of it, a rendered chat template for instance, has
// n tokens. That is always proved by encoding the whole. Wrap appends the whole to dst.
// Behind says that the text goes on from one that Append wrote, which wrap puts before it.
func (p *Prompts) AppendInside(dst []byte, index uint64, n int, behind bool, wrap func(dst, text []byte) ([]byte, error)) ([]byte, error) {
	begin := len(dst)
	inner, got := n, 0
	for range 4 {
		dst = p.write(dst[:begin], index, inner, behind)
		whole, err := wrap(nil, dst[begin:])
		if err != nil {
			return dst[:begin], fmt.Errorf("prompt %d: %w", index, err)
		}
		if got = p.count(whole); got == n {
			return dst, nil
		}
		if inner -= got - n; inner < 1 {
			return dst[:begin], fmt.Errorf("prompt %d: %d tokens wanted, but what is around the text has %d already", index, n, n-inner)
		}
	}
	return dst[:begin], fmt.Errorf("prompt %d: %d tokens wanted, but the nearest found has %d", index, n, got)
}

func (p *Prompts) count(text []byte) int {
	p.scratch = p.tokenizer.Append(p.scratch[:0], text)
	return len(p.scratch)
}

// write writes a nonce, then the source's pieces while they fit, then words.
func (p *Prompts) write(dst []byte, index uint64, n int, behind bool) []byte {
	if n <= 0 {
		return dst
	}
	p.source.Seek(index)
	number := index*p.odd + p.offset
	shift := (min(n, nonceWords) - 1) * p.wordBits
	if behind {
		dst = append(dst, p.words[number>>shift&(1<<p.wordBits-1)]...)
	} else {
		dst = append(dst, p.leads[number>>shift&(1<<p.leadBits-1)]...)
	}
	for n--; shift > 0; n-- {
		shift -= p.wordBits
		dst = append(dst, p.words[number>>shift&(1<<p.wordBits-1)]...)
	}
	if len(p.pieces) > 0 && n > 0 {
		dst, n = p.writePieces(dst, n)
	}
	for ; n > 0; n-- {
		dst = append(dst, p.words[p.source.Below(uint64(len(p.words)))]...)
	}
	return dst
}

func (p *Prompts) writePieces(dst []byte, n int) ([]byte, int) {
	at := int(p.source.Below(uint64(len(p.pieces))))
	for {
		piece := &p.pieces[at]
		if int(piece.tokens) > n {
			return dst, n
		}
		dst = append(dst, piece.text...)
		if n -= int(piece.tokens); n == 0 {
			return dst, 0
		}
		if p.from == Markov && piece.choice > 1 {
			at = int(p.followers[int(piece.group)+int(p.source.Below(uint64(piece.choice)))])
		}
		if at++; at == len(p.pieces) {
			at = 0
		}
	}
}

// findWords finds the words of one token: small letters behind a space, in the order of their ids.
func (m *material) findWords() error {
	t := m.tokenizer
	for _, id := range t.Ordinary() {
		text := t.decoder.texts[id]
		if len(text) < 3 || text[0] != ' ' || !smallLetters(text[1:]) {
			continue
		}
		if tokens := t.Append(nil, text[1:]); len(tokens) == 1 {
			m.leads = append(m.leads, text[1:])
		}
		m.words = append(m.words, text)
	}
	if len(m.leads) == 0 {
		return fmt.Errorf("no word of this vocabulary is one token at the beginning of a text")
	}
	kept := m.words[:0]
	for _, word := range m.words {
		if m.tokens(word) == 1 {
			kept = append(kept, word)
		}
	}
	if m.words = kept; len(kept) < leastWords {
		return fmt.Errorf("only %d words of this vocabulary are one token behind another word, want %d", len(kept), leastWords)
	}
	if got, want := t.Count(append(slices.Clone(m.leads[0]), bytes.Join(kept, nil)...)), len(kept)+1; got != want {
		return fmt.Errorf("words of one token do not add up: %d of them have %d tokens", want, got)
	}
	m.leadBits, m.wordBits = bits.Len(uint(len(m.leads)))-1, bits.Len(uint(len(kept)))-1
	return nil
}

func smallLetters(text []byte) bool {
	for _, b := range text {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return true
}

// tokens counts a piece behind a word.
func (m *material) tokens(piece []byte) int {
	return m.tokenizer.Count(append(slices.Clone(m.leads[0]), piece...)) - 1
}

// cutText cuts the text into pieces and counts them.
func (m *material) cutText(text []byte) error {
	counts, total := map[string]int32{}, 1
	numbers := map[string]int32{}
	var ids []int32
	for _, part := range pieces(text) {
		count, ok := counts[string(part)]
		if !ok {
			count = int32(m.tokens(part))
			counts[string(part)], numbers[string(part)] = count, int32(len(numbers))
		}
		if count <= 0 {
			return fmt.Errorf("%q behind a word has %d tokens of its own", part, count)
		}
		m.pieces = append(m.pieces, piece{text: part, tokens: count})
		ids = append(ids, numbers[string(part)])
		total += int(count)
	}
	if len(m.pieces) < 2 {
		return fmt.Errorf("the text has fewer than two words")
	}
	whole := slices.Clone(m.leads[0])
	for _, piece := range m.pieces {
		whole = append(whole, piece.text...)
	}
	if got := m.tokenizer.Count(whole); got != total {
		return fmt.Errorf("tokens of this tokenizer reach across words: the text has %d, its words %d", got, total)
	}
	if m.from == Markov {
		m.group(ids)
	}
	return nil
}

// pieces cuts a text before each single space between two other characters, and leaves what comes before the first out.
func pieces(text []byte) [][]byte {
	var parts [][]byte
	begin := -1
	for at := 1; at+1 < len(text); at++ {
		if text[at] != ' ' || space(text[:at]) || space(text[at+1:at+2]) || text[at+1] >= utf8.RuneSelf {
			continue
		}
		if begin >= 0 {
			parts = append(parts, text[begin:at:at])
		}
		begin = at
	}
	if begin >= 0 && !space(text) {
		parts = append(parts, text[begin:])
	}
	return parts
}

// space says whether text ends with white space or a control character.
func space(text []byte) bool {
	last, _ := utf8.DecodeLastRune(text)
	return last <= ' ' || unicode.IsSpace(last)
}

// group lists, for every piece, the places where it stands behind the same piece.
func (m *material) group(ids []int32) {
	key := func(at int32) uint64 {
		before := at - 1
		if at == 0 {
			before = int32(len(ids)) - 1
		}
		return uint64(ids[before])<<32 | uint64(ids[at])
	}
	m.followers = make([]int32, len(ids))
	for i := range m.followers {
		m.followers[i] = int32(i)
	}
	slices.SortStableFunc(m.followers, func(a, b int32) int {
		if ka, kb := key(a), key(b); ka != kb {
			if ka < kb {
				return -1
			}
			return 1
		}
		return 0
	})
	for begin := 0; begin < len(m.followers); {
		end := begin + 1
		for end < len(m.followers) && key(m.followers[end]) == key(m.followers[begin]) {
			end++
		}
		for _, at := range m.followers[begin:end] {
			m.pieces[at].group, m.pieces[at].choice = int32(begin), int32(end-begin)
		}
		begin = end
	}
}
