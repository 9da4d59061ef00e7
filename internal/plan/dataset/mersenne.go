package dataset

import "math/bits"

// mersenne is the generator behind Python's random module, the Mersenne twister MT19937 as Matsumoto and Nishimura
// published it, so that a peer's shuffle of a seed gives us the peer's order. Nothing of our own is drawn from it.
type mersenne struct {
	state [624]uint32
	at    int
}

// newMersenne is Python's random.Random(seed) for a seed that is not negative.
func newMersenne(seed uint64) *mersenne {
	key := []uint32{uint32(seed)}
	if seed>>32 != 0 {
		key = append(key, uint32(seed>>32))
	}
	m := &mersenne{at: 624}
	m.fill(19650218)
	m.mix(key)
	return m
}

func (m *mersenne) fill(seed uint32) {
	m.state[0] = seed
	for i := 1; i < len(m.state); i++ {
		before := m.state[i-1]
		m.state[i] = 1812433253*(before^before>>30) + uint32(i)
	}
}

// mix is init_by_array of the published algorithm.
func (m *mersenne) mix(key []uint32) {
	n := len(m.state)
	i, j := 1, 0
	step := func() {
		if i++; i == n {
			m.state[0], i = m.state[n-1], 1
		}
	}
	for range max(n, len(key)) {
		before := m.state[i-1]
		m.state[i] = m.state[i] ^ (before^before>>30)*1664525 + key[j] + uint32(j)
		j = (j + 1) % len(key)
		step()
	}
	for range n - 1 {
		before := m.state[i-1]
		m.state[i] = m.state[i] ^ (before^before>>30)*1566083941 - uint32(i)
		step()
	}
	m.state[0] = 1 << 31
}

func (m *mersenne) uint32() uint32 {
	if m.at == len(m.state) {
		m.turn()
	}
	y := m.state[m.at]
	m.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (m *mersenne) turn() {
	n := len(m.state)
	for i := range n {
		y := m.state[i]&(1<<31) | m.state[(i+1)%n]&(1<<31-1)
		next := m.state[(i+397)%n] ^ y>>1
		if y&1 == 1 {
			next ^= 0x9908b0df
		}
		m.state[i] = next
	}
	m.at = 0
}

// below returns a number in [0, n) as Python's randrange(n) does, for an n below 2³².
func (m *mersenne) below(n uint32) uint32 {
	shift := 32 - bits.Len32(n)
	for {
		if r := m.uint32() >> shift; r < n {
			return r
		}
	}
}
