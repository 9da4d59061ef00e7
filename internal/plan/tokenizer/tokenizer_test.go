package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"tare/internal/plan/tokenizer"
)

// fixtures are the small tokenizers of testdata, which golden.py has trained with the reference implementation.
var fixtures = []string{"llama3-style", "qwen-style", "llama2-style", "metaspace", "splits", "gpt2-style"}

func TestTokensAreThoseOfTheReference(t *testing.T) {
	texts := read[[]string](t, "testdata/corpus.json")
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			checkTokens(t, load(t, "testdata/"+name+".json"), texts, read[[][]uint32](t, "testdata/"+name+".golden.json"))
		})
	}
	t.Run("embedded", func(t *testing.T) {
		checkTokens(t, tokenizer.Embedded(), texts, read[[][]uint32](t, "testdata/tare-bpe-8k.golden.json"))
	})
}

func checkTokens(t *testing.T, tok *tokenizer.Tokenizer, texts []string, want [][]uint32) {
	t.Helper()
	if len(texts) != len(want) || len(texts) < 300 {
		t.Fatalf("%d texts and %d goldens, want as many of each and 300 at least", len(texts), len(want))
	}
	mismatches := 0
	for i, text := range texts {
		for range 2 { // the second time from the cache of words
			if got := tok.Append(nil, []byte(text)); !slices.Equal(got, want[i]) {
				if mismatches++; mismatches <= 10 {
					t.Errorf("text %d %.120q:\n got %v\nwant %v", i, text, clip(got), clip(want[i]))
				}
				break
			}
		}
	}
	if mismatches > 0 {
		t.Errorf("%d of %d texts differ", mismatches, len(texts))
	}
}

func clip(tokens []uint32) []uint32 { return tokens[:min(len(tokens), 60)] }

func TestDecodedTextIsThatOfTheReference(t *testing.T) {
	texts := read[[]string](t, "testdata/corpus.json")
	for _, name := range []string{"llama3-style", "qwen-style", "llama2-style", "metaspace", "gpt2-style"} {
		t.Run(name, func(t *testing.T) {
			tok := load(t, "testdata/"+name+".json")
			for i, want := range read[[]string](t, "testdata/"+name+".decoded.json") {
				got, err := tok.Decode(nil, tok.Append(nil, []byte(texts[i])))
				if err != nil {
					t.Fatal(err)
				}
				if got := string([]rune(string(got))); got != want { // ours keeps bytes that are no UTF-8
					t.Errorf("text %d %.80q: got %.120q, want %.120q", i, texts[i], got, want)
				}
			}
		})
	}
}

// TestModelsTokenizersAreExact compares with the tokenizers of real models, which are not part of this repository.
// docs/tokenizers.md says how to fill the folder.
func TestModelsTokenizersAreExact(t *testing.T) {
	dir := os.Getenv("TARE_TOKENIZERS")
	if dir == "" {
		t.Skip("TARE_TOKENIZERS names no folder; see docs/tokenizers.md")
	}
	goldens, err := filepath.Glob(filepath.Join(dir, "*", "golden.json"))
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no */golden.json in %s: %v", dir, err)
	}
	for _, golden := range goldens {
		folder := filepath.Dir(golden)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			tok := load(t, fileIn(t, folder))
			var texts []string
			var want [][]uint32
			for _, line := range read[[]struct {
				Text string
				IDs  []uint32
			}](t, golden) {
				texts, want = append(texts, line.Text), append(want, line.IDs)
			}
			checkTokens(t, tok, texts, want)
			t.Logf("%d texts", len(texts))
		})
	}
}

func fileIn(t *testing.T, folder string) string {
	t.Helper()
	for _, pattern := range []string{"tokenizer.json", "tekken.json", "*.tiktoken"} {
		if found, _ := filepath.Glob(filepath.Join(folder, pattern)); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("%s holds no tokenizer", folder)
	return ""
}

func load(t testing.TB, path string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func read[T any](t testing.TB, path string) T {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := json.Unmarshal(content, &value); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

func TestTokenizerIsSafeForConcurrentUse(t *testing.T) {
	texts := read[[]string](t, "testdata/corpus.json")
	want := read[[][]uint32](t, "testdata/qwen-style.golden.json")
	tok := load(t, "testdata/qwen-style.json")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i, text := range texts {
				if got := tok.Append(nil, []byte(text)); !slices.Equal(got, want[i]) {
					t.Errorf("text %d: got %v, want %v", i, clip(got), clip(want[i]))
				}
			}
		})
	}
	group.Wait()
}
