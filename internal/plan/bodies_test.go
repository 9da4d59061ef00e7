package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"testing"
)

func hashOf(n uint64) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, n))
	return binary.BigEndian.Uint64(sum[:])
}

func TestRepetitionsAreCountedExactlyWhileTheyFit(t *testing.T) {
	var r repeats
	for n := range uint64(4000) {
		r.add(hashOf(n % 3000))
	}
	if compared, repeated := r.count(); compared != 4000 || repeated != 1000 {
		t.Errorf("got %d compared, %d repeated, want 4000, 1000", compared, repeated)
	}
}

func TestTheShareOfRepetitionsStandsWhenASampleIsKept(t *testing.T) {
	var r repeats
	for n := range uint64(1_000_000) {
		r.add(hashOf(n % 800_000))
	}
	compared, repeated := r.count()
	if share := float64(repeated) / float64(compared); math.Abs(share-0.2) > 0.03 {
		t.Errorf("got %d of %d repeated, want a share near 0.2", repeated, compared)
	}
	if len(r.times) > mostCompared || len(r.times) < mostCompared/4 {
		t.Errorf("got %d kept, want at most %d and not far fewer", len(r.times), mostCompared)
	}
}

func TestABodyIsSilentThatLeavesSamplingToTheServer(t *testing.T) {
	for body, silent := range map[string]int64{
		`{"temperature":0,"top_p":1}`:                                 0,
		`{"temperature":0}`:                                           1,
		`{"top_p":0.5,"tools":[{"temperature":1}]}`:                   1,
		`{"prompt":"\"temperature\":0, \"top_p\":1","temperature":1}`: 1,
	} {
		var f BodyFacts
		if f.heed([]byte(body)); f.Silent != silent {
			t.Errorf("%s: got %d silent, want %d", body, f.Silent, silent)
		}
	}
}
