package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// The wanted orders are those of CPython's random.Random(seed).shuffle.
func TestMersenneShufflesAsPythonDoes(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		want string
	}{
		{0, "[7 8 1 5 3 4 2 0 9 6]"},
		{1, "[6 8 9 7 5 3 0 4 1 2]"},
		{7, "[8 3 1 4 7 0 9 6 2 5]"},
		{1<<40 + 5, "[1 2 3 6 7 0 5 4 9 8]"}, // a key of two words
	} {
		if got := fmt.Sprint(pythonOrder(c.seed, 10)); got != c.want {
			t.Errorf("seed %d: got %s, want %s", c.seed, got, c.want)
		}
	}
	texts := strings.Fields(strings.Trim(fmt.Sprint(pythonOrder(0, 100_000)), "[]"))
	sum := sha256.Sum256([]byte(strings.Join(texts, ",")))
	if got, want := hex.EncodeToString(sum[:]), "5462923d7936404d994b0dbfa244e135b47be3b20069fbb2a71b7619e09f24fd"; got != want {
		t.Errorf("SHA-256 of 100,000 shuffled: got %s, want %s", got, want)
	}
}

func pythonOrder(seed uint64, n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	s := selection{Sample: Sample{Rules: Rules{Order: Python, Seed: seed}}}
	s.shuffle(order)
	return order
}
