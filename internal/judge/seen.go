package judge

// seen is the set of indexes that have been recorded, one bit apiece in pages made when first needed.
type seen map[int64]*[pageBits / 64]uint64

const pageBits = 1 << 12

// add puts an index in and reports whether it is new.
func (s seen) add(index int64) bool {
	key, bit := index/pageBits, uint64(index%pageBits)
	page := s[key]
	if page == nil {
		page = new([pageBits / 64]uint64)
		s[key] = page
	}
	word, mask := &page[bit/64], uint64(1)<<(bit%64)
	fresh := *word&mask == 0
	*word |= mask
	return fresh
}
