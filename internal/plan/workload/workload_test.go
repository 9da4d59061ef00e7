package workload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"tare/internal/plan/workload"
)

func TestPromptHasTheWordsAskedFor(t *testing.T) {
	text := workload.NewText(1)
	for _, count := range []int{0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 128, 5000} {
		got := string(text.Append(nil, 7, count))
		if n := len(strings.Fields(got)); n != count {
			t.Errorf("%d words: got %d: %q", count, n, got)
		}
		if got != strings.Join(strings.Fields(got), " ") {
			t.Errorf("%d words: not one space between words: %q", count, got)
		}
	}
}

func TestPromptDependsOnSeedAndIndexOnly(t *testing.T) {
	one, other := workload.NewText(1), workload.NewText(1)
	want := string(one.Append(nil, 9, 40))
	for index := range uint64(9) {
		other.Append(nil, index, 17)
	}
	if got := string(other.Append(nil, 9, 40)); got != want {
		t.Errorf("prompt 9 after others: got %q, want %q", got, want)
	}
	if got := string(workload.NewText(2).Append(nil, 9, 40)); got == want {
		t.Errorf("prompt 9 of another seed is the same: %q", got)
	}
}

func TestPromptsBeginDifferently(t *testing.T) {
	text := workload.NewText(1)
	seen := map[string]uint64{}
	var prompt []byte
	for i := range uint64(50_000) {
		for _, index := range []uint64{i, i + 1<<32} {
			prompt = text.Append(prompt[:0], index, 4)
			if was, ok := seen[string(prompt)]; ok {
				t.Fatalf("prompts %d and %d both begin %q", was, index, prompt)
			}
			seen[string(prompt)] = index
		}
	}
}

func TestAppendKeepsWhatWasThere(t *testing.T) {
	text := workload.NewText(1)
	if got := string(text.Append([]byte("user: "), 0, 3)); !strings.HasPrefix(got, "user: ") {
		t.Errorf("got %q, want it to begin with %q", got, "user: ")
	}
}

func TestTextIsTheSameEverywhere(t *testing.T) {
	text := workload.NewText(1)
	h := sha256.New()
	for index := range uint64(2000) {
		h.Write(text.Append(nil, index, 128))
	}
	want := "3db1073c74a3c80adcaeaac12d826d9e72bc459e95b146235a0651d316cfba3e"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("SHA-256 of 2,000 prompts: got %s, want %s", got, want)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	text := workload.NewText(1)
	buffer := make([]byte, 0, 2000)
	if got := testing.AllocsPerRun(100, func() { text.Append(buffer, 3, 128) }); got != 0 {
		t.Errorf("allocations per prompt: got %v, want 0", got)
	}
}

func BenchmarkText128(b *testing.B) {
	text := workload.NewText(1)
	var buffer []byte
	for i := range b.N {
		buffer = text.Append(buffer[:0], uint64(i), 128)
	}
}
