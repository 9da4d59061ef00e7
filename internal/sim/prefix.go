package sim

import (
	"unicode"
	"unicode/utf8"
)

// chain names the blocks of a sequence of tokens: the name of each stands for its tokens and all before them, so that
// two requests share a block only if they are alike from the first token to its end.
type chain struct {
	size  int      // tokens in a block
	salt  uint64   // keeps sequences apart that are to share nothing; 0 for none
	state uint64   // of all tokens so far
	n     int      // tokens so far
	names []uint64 // of the whole blocks so far
}

// reset begins a sequence anew, with blocks of so many tokens.
func (c *chain) reset(size int) { *c = chain{size: size, names: c.names[:0]} }

// copy makes c what from is, in memory of its own.
func (c *chain) copy(from *chain) {
	c.size, c.salt, c.state, c.n = from.size, from.salt, from.state, from.n
	c.names = append(c.names[:0], from.names...)
}

func (c *chain) add(token uint64) {
	c.state = mix(c.state ^ token)
	if c.n++; c.n%c.size == 0 {
		c.names = append(c.names, c.salted(c.state))
	}
}

// part keeps a sequence without a salt from all that have another than this.
func (c *chain) part(salt uint64) {
	c.salt = salt
	for i, name := range c.names {
		c.names[i] = c.salted(name)
	}
}

func (c *chain) salted(name uint64) uint64 {
	if c.salt == 0 {
		return name
	}
	return mix(name ^ c.salt)
}

// shareable is how many of the first n tokens can come from a cache: whole blocks, and never the last token, which is
// always computed because the next one follows from it.
func (c *chain) shareable(n int) []uint64 { return c.names[:max(n-1, 0)/c.size] }

// identity is a token's, from how it is spelt.
func identity(spelling []byte) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range spelling {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return mix(h)
}

// spoken are the identities of the vocabulary: a reply that comes back in a prompt is made of the same tokens.
var spoken = func() (ids [len(vocabulary)]uint64) {
	for i, word := range vocabulary {
		ids[i] = identity([]byte(word[1:]))
	}
	return ids
}()

// words counts the runs of text between white space as Unicode defines it, and adds them to the chain, if there is one.
func words(text []byte, to *chain) (n int) {
	start := -1 // of the word at hand
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		switch space := unicode.IsSpace(r); {
		case !space && start < 0:
			start = i
			n++
		case space && start >= 0:
			to.say(text[start:i])
			start = -1
		}
		i += size
	}
	if start >= 0 {
		to.say(text[start:])
	}
	return n
}

// say adds a word; to no chain, nothing.
func (c *chain) say(word []byte) {
	if c != nil {
		c.add(identity(word))
	}
}
