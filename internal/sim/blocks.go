package sim

import "slices"

// blocks are the server's KV memory, cut into blocks of a fixed number of tokens as vLLM cuts it: each is held by requests, or
// free. A free block that was named keeps what it holds, and is found again by its name, until its place is needed: the one
// that was freed first goes first, and of one request's the end of the prompt before its beginning.
type blocks struct {
	most  int              // blocks that the memory has room for
	all   []block          // by number; number 0 is both ends of the list of free ones
	named map[uint64]int32 // number of the block by its name
	held  int              // blocks that requests hold
}

// block is one block. Its name stands for all tokens up to its end.
type block struct {
	name       uint64
	isNamed    bool
	holders    int32
	prev, next int32 // in the list of free ones
}

// newBlocks makes the memory of so many blocks, all empty.
func newBlocks(most int) *blocks {
	return &blocks{most: most, all: make([]block, 1, 64), named: map[uint64]int32{}}
}

// free is how many blocks no request holds.
func (b *blocks) free() int { return b.most - b.held }

// find returns how many of the names, from the first on, are in the memory.
func (b *blocks) find(names []uint64) int {
	for i, name := range names {
		if _, ok := b.named[name]; !ok {
			return i
		}
	}
	return len(names)
}

// hold takes the block with a name, which must be there, for one more request.
func (b *blocks) hold(name uint64) int32 {
	n := b.named[name]
	if b.all[n].holders == 0 {
		b.unlink(n)
		b.held++
	}
	b.all[n].holders++
	return n
}

// keep holds the block with a name, be it there already or not. ok is false when it is not and every block is held.
func (b *blocks) keep(name uint64) (n int32, ok bool) {
	if _, ok := b.named[name]; ok {
		return b.hold(name), true
	}
	if n, ok = b.take(); ok {
		b.name(n, name)
	}
	return n, ok
}

// take gives a request a block without a name. ok is false when every block is held.
func (b *blocks) take() (n int32, ok bool) {
	switch {
	case len(b.all) <= b.most:
		b.all = append(b.all, block{})
		n = int32(len(b.all) - 1)
	case b.all[0].next != 0:
		n = b.all[0].next
		b.unlink(n)
		if b.all[n].isNamed {
			delete(b.named, b.all[n].name)
		}
	default:
		return 0, false
	}
	b.all[n] = block{holders: 1}
	b.held++
	return n, true
}

// name makes a held block found. Of two with the same name the first is.
func (b *blocks) name(n int32, name uint64) {
	if _, ok := b.named[name]; ok || b.all[n].isNamed {
		return
	}
	b.named[name] = n
	b.all[n].name, b.all[n].isNamed = name, true
}

// release gives back what a request held, in the order of its tokens.
func (b *blocks) release(held []int32) {
	for _, n := range slices.Backward(held) {
		if b.all[n].holders--; b.all[n].holders == 0 {
			b.held--
			b.link(n)
		}
	}
}

// link puts a block behind the free ones.
func (b *blocks) link(n int32) {
	last := b.all[0].prev
	b.all[n].prev, b.all[n].next = last, 0
	b.all[last].next, b.all[0].prev = n, n
}

func (b *blocks) unlink(n int32) {
	prev, next := b.all[n].prev, b.all[n].next
	b.all[prev].next, b.all[next].prev = next, prev
}
