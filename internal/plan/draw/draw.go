// Package draw makes randomness that does not depend on who draws it, in which order, or on which machine.
//
// Every value is a function of a seed, the name of a stream and an index: a Source at index n gives the same numbers
// whatever was drawn before. The generator is ChaCha8, keyed by SHA-256 over the three.
package draw

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// domain keeps these keys apart from every other use of SHA-256. Changing it changes every plan.
const domain = "tare/draw/v1"

// maxName is the longest stream name that leaves the whole key material in one SHA-256 block, in bytes.
const maxName = 26

// Source is one stream of randomness. Seek before drawing. It allocates nothing and is not safe for concurrent use.
type Source struct {
	generator rand.ChaCha8
	material  [len(domain) + 1 + maxName + 16]byte // domain, length of name, name, seed, index
	length    int
}

// New returns the stream of that name. Names longer than 26 bytes are a mistake of the program: New panics.
func New(seed uint64, name string) *Source {
	if len(name) > maxName {
		panic("draw: stream name longer than 26 bytes: " + name)
	}
	s := new(Source)
	n := copy(s.material[:], domain)
	s.material[n] = byte(len(name))
	n += 1 + copy(s.material[n+1:], name)
	binary.BigEndian.PutUint64(s.material[n:], seed)
	s.length = n + 16
	s.Seek(0)
	return s
}

// Seek starts the randomness of index.
func (s *Source) Seek(index uint64) {
	binary.BigEndian.PutUint64(s.material[s.length-8:], index)
	s.generator.Seed(sha256.Sum256(s.material[:s.length]))
}

// Uint64 returns 64 random bits.
func (s *Source) Uint64() uint64 { return s.generator.Uint64() }

// Below returns a uniform number in [0, n). It panics if n is 0.
func (s *Source) Below(n uint64) uint64 {
	if n == 0 {
		panic("draw: Below(0)")
	}
	high, low := bits.Mul64(s.Uint64(), n)
	if low < n {
		for least := -n % n; low < least; {
			high, low = bits.Mul64(s.Uint64(), n)
		}
	}
	return high
}
