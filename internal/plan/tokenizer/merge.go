package tokenizer

import (
	"container/heap"
	"math"
	"math/bits"
)

// none marks a byte or character that has no token of its own.
const none = math.MaxUint32

// pairs finds the merge of two neighbouring tokens. It is a hash table with open addressing, filled once.
type pairs struct {
	keys   []uint64 // left<<32 | right, plus one: 0 is an empty place
	values []uint64 // rank<<32 | merged
	shift  int
}

func newPairs(count int) *pairs {
	size := 1 << bits.Len(uint(2*count+1))
	return &pairs{keys: make([]uint64, size), values: make([]uint64, size), shift: 64 - bits.TrailingZeros(uint(size))}
}

func (p *pairs) place(key uint64) int {
	mask := len(p.keys) - 1
	at := int((key * 0x9e3779b97f4a7c15) >> p.shift)
	for p.keys[at] != 0 && p.keys[at] != key {
		at = (at + 1) & mask
	}
	return at
}

// put sets the merge of a pair; a later one replaces an earlier one.
func (p *pairs) put(left, right, rank, merged uint32) {
	key := (uint64(left)<<32 | uint64(right)) + 1
	at := p.place(key)
	p.keys[at], p.values[at] = key, uint64(rank)<<32|uint64(merged)
}

// get returns rank<<32 | merged, or the highest number if the two do not merge.
func (p *pairs) get(left, right uint32) uint64 {
	if at := p.place((uint64(left)<<32 | uint64(right)) + 1); p.keys[at] != 0 {
		return p.values[at]
	}
	return math.MaxUint64
}

// shortWord is how many symbols are merged by looking at all of them each time; more go through a heap.
const shortWord = 32

// merge merges the symbols, best rank first and leftmost first among equals, in place, and returns what is left.
func (p *pairs) merge(symbols []uint32) []uint32 {
	if len(symbols) > shortWord {
		return p.mergeLong(symbols)
	}
	var room [shortWord]uint64
	values := room[:max(len(symbols)-1, 0)]
	for i := range values {
		values[i] = p.get(symbols[i], symbols[i+1])
	}
	for {
		best, at := uint64(math.MaxUint64), -1
		for i, value := range values {
			if value>>32 < best>>32 {
				best, at = value, i
			}
		}
		if at < 0 {
			return symbols
		}
		symbols[at] = uint32(best)
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		values = append(values[:at], values[at+1:]...)
		if at < len(values) {
			values[at] = p.get(symbols[at], symbols[at+1])
		}
		if at > 0 {
			values[at-1] = p.get(symbols[at-1], symbols[at])
		}
	}
}

// mergeLong does the same in n·log n steps.
func (p *pairs) mergeLong(symbols []uint32) []uint32 {
	next, previous := make([]int32, len(symbols)), make([]int32, len(symbols))
	candidates := make(candidates, 0, len(symbols))
	for i := range symbols {
		next[i], previous[i] = int32(i+1), int32(i-1)
		if i+1 < len(symbols) {
			if value := p.get(symbols[i], symbols[i+1]); value != math.MaxUint64 {
				candidates = append(candidates, candidate{value, int32(i)})
			}
		}
	}
	heap.Init(&candidates)
	offer := func(at int32) {
		if at < 0 || int(next[at]) >= len(symbols) {
			return
		}
		if value := p.get(symbols[at], symbols[next[at]]); value != math.MaxUint64 {
			heap.Push(&candidates, candidate{value, at})
		}
	}
	for len(candidates) > 0 {
		best := heap.Pop(&candidates).(candidate)
		at, right := best.at, int32(0)
		if symbols[at] == none {
			continue
		}
		if right = next[at]; int(right) >= len(symbols) || p.get(symbols[at], symbols[right]) != best.value {
			continue // one of the two has become part of another
		}
		symbols[at], symbols[right] = uint32(best.value), none
		next[at] = next[right]
		if int(next[at]) < len(symbols) {
			previous[next[at]] = at
		}
		offer(at)
		offer(previous[at])
	}
	kept := symbols[:0]
	for _, symbol := range symbols {
		if symbol != none {
			kept = append(kept, symbol)
		}
	}
	return kept
}

// candidate is a pair that may be merged: its value in pairs, and where its left symbol stands.
type candidate struct {
	value uint64
	at    int32
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	if c[i].value>>32 != c[j].value>>32 {
		return c[i].value>>32 < c[j].value>>32
	}
	return c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
