package tokenizer_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"tare/internal/plan/tokenizer"
)

var sources = map[string]tokenizer.Source{"markov": tokenizer.Markov, "corpus": tokenizer.Corpus, "random": tokenizer.Random}

func TestPromptsHaveExactlyTheTokensAskedFor(t *testing.T) {
	toks := map[string]*tokenizer.Tokenizer{"embedded": tokenizer.Embedded()}
	for _, name := range []string{"llama3-style", "qwen-style", "llama2-style", "metaspace", "gpt2-style"} {
		toks[name] = load(t, "testdata/"+name+".json")
	}
	for name, tok := range toks {
		for from, source := range sources {
			p := prompts(t, tok, source, nil, 7, 1)
			for index, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 17, 100, 1000, 8192} {
				text, err := p.Append(nil, uint64(index), n)
				if err != nil {
					t.Errorf("%s, %s: %v", name, from, err)
				}
				if got := tok.Count(text); got != n {
					t.Errorf("%s, %s: got %d tokens, want %d", name, from, got, n)
				}
			}
		}
	}
}

func TestPromptsInsideATemplateMakeTheWholeExact(t *testing.T) {
	wrap := func(dst, text []byte) ([]byte, error) {
		return append(append(append(dst, "<|im_start|>user\n"...), text...), "<|im_end|>\n<|im_start|>assistant\n"...), nil
	}
	tok := load(t, "testdata/qwen-style.json")
	p := prompts(t, tok, tokenizer.Markov, nil, 7, 0)
	for index := range uint64(50) {
		n := 20 + int(index)*7
		text, err := p.AppendInside([]byte("kept "), index, n, false, wrap)
		if err != nil {
			t.Fatal(err)
		}
		inner, kept := bytes.CutPrefix(text, []byte("kept "))
		whole, _ := wrap(nil, inner)
		if got := tok.Count(whole); got != n || !kept {
			t.Errorf("prompt %d: got %d tokens in all, want %d, before it %q", index, got, n, text[:5])
		}
	}
	if _, err := p.AppendInside(nil, 0, 3, false, wrap); err == nil || !strings.Contains(err.Error(), "around the text") {
		t.Errorf("fewer tokens than the template has: got %v", err)
	}
}

func TestPromptsDependOnSeedAndIndexOnly(t *testing.T) {
	one := prompts(t, tokenizer.Embedded(), tokenizer.Markov, nil, 3, 0)
	want := text(t, one, 9, 200)
	for index := range uint64(9) {
		text(t, one, index, 50)
	}
	for name, got := range map[string]string{
		"after others": text(t, one, 9, 200), "of a clone": text(t, one.Clone(), 9, 200),
		"of another": text(t, prompts(t, tokenizer.Embedded(), tokenizer.Markov, nil, 3, 1), 9, 200),
	} {
		if got != want {
			t.Errorf("prompt 9 %s: got %q, want %q", name, got, want)
		}
	}
	if got := text(t, prompts(t, tokenizer.Embedded(), tokenizer.Markov, nil, 4, 0), 9, 200); got == want {
		t.Errorf("prompt 9 of another seed is the same: %q", got)
	}
}

func TestPromptsOfFourTokensBeginDifferently(t *testing.T) {
	p := prompts(t, tokenizer.Embedded(), tokenizer.Random, nil, 1, 0)
	seen := map[string]uint64{}
	for i := range uint64(20_000) {
		for _, index := range []uint64{i, i + 1<<20 - 20_000} {
			got := text(t, p, index, 4)
			if was, ok := seen[got]; ok && was != index {
				t.Fatalf("prompts %d and %d both say %q", was, index, got)
			}
			seen[got] = index
		}
	}
}

// TestPromptsAreTheSameEverywhere holds the bytes: a changed hash is a changed plan.
func TestPromptsAreTheSameEverywhere(t *testing.T) {
	for from, want := range map[string]string{
		"markov": "a99d99aff0c91c2055eb7a9ce9e3c4c48a405ec8ffa9d4850efce63cb17b2b2b",
		"corpus": "f059eb19bfe9939ad6ce21a0d2c53c30d45c6b187912373d73eaadef24c6b7a9",
		"random": "f7104d6ac5e12ebd5915fd76ea172cfdb618836f25d85c992b63bc10af1c0b10",
	} {
		h := sha256.New()
		p := prompts(t, tokenizer.Embedded(), sources[from], nil, 7, 0)
		for index := range uint64(200) {
			h.Write([]byte(text(t, p, index, int(index)*3)))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%s: got %s, want %s", from, got, want)
		}
	}
	h := sha256.New()
	ids := tokenizer.NewIDs(tokenizer.Embedded(), 7)
	for index := range uint64(200) {
		for _, id := range ids.Append(nil, index, 50) {
			h.Write(binary.BigEndian.AppendUint32(nil, id))
		}
	}
	if got, want := hex.EncodeToString(h.Sum(nil)), "748c938441a82f54e872a07a19888fa4ac311846af1dfbb595fb4cd3b77337ed"; got != want {
		t.Errorf("ids: got %s, want %s", got, want)
	}
}

// TestMarkovTextIsLikeLanguage compares how well texts compress, which is what makes them easy to speculate on.
func TestMarkovTextIsLikeLanguage(t *testing.T) {
	ratio := func(from tokenizer.Source) float64 {
		s := text(t, prompts(t, tokenizer.Embedded(), from, nil, 1, 0), 5, 8000)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(s))
		z.Close()
		return float64(len(s)) / float64(packed.Len())
	}
	markov, corpus, random := ratio(tokenizer.Markov), ratio(tokenizer.Corpus), ratio(tokenizer.Random)
	if markov < 0.85*corpus || random > 0.95*markov {
		t.Errorf("got compression %.2f, want about %.2f as the book has, and more than %.2f as random words have", markov, corpus, random)
	}
}

func TestCorpusPromptsComeFromTheTextGiven(t *testing.T) {
	given := []byte(strings.Repeat("alpha beta  gamma.\n\nDelta épsilon zeta, eta; theta 123 ", 30))
	got := text(t, prompts(t, tokenizer.Embedded(), tokenizer.Corpus, given, 1, 1), 0, 200)
	for _, want := range []string{" zeta, eta; theta 123 alpha beta  gamma.\n\nDelta épsilon zeta"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if _, err := tokenizer.NewPrompts(tokenizer.Embedded(), tokenizer.Corpus, []byte("one"), 1, 1); err == nil {
		t.Error("a text of one word: got no error")
	}
}

func TestVocabularyWithoutWordsIsRefused(t *testing.T) {
	_, err := tokenizer.NewPrompts(load(t, "testdata/splits.json"), tokenizer.Random, nil, 1, 1)
	if err == nil || !strings.Contains(err.Error(), "vocabulary") {
		t.Errorf("got %v, want a refusal that names the vocabulary", err)
	}
}

func TestTokenIDPromptsLeaveSpecialTokensOut(t *testing.T) {
	tok := load(t, "testdata/qwen-style.json")
	special := map[uint32]bool{}
	for _, text := range []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "<mask>"} {
		ids := tok.Append(nil, []byte(text))
		if len(ids) != 1 {
			t.Fatalf("%s: got %v, want one token", text, ids)
		}
		special[ids[0]] = true
	}
	prompt := tokenizer.NewIDs(tok, 1).Append(nil, 3, 200_000)
	if len(prompt) != 200_000 {
		t.Errorf("got %d tokens, want 200000", len(prompt))
	}
	seen := map[uint32]bool{}
	for _, id := range prompt {
		if seen[id] = true; special[id] {
			t.Fatalf("special token %d in a prompt", id)
		}
	}
	if len(seen) < 2400 {
		t.Errorf("got %d different tokens, want nearly all of the 2500", len(seen))
	}
}

func prompts(t testing.TB, tok *tokenizer.Tokenizer, from tokenizer.Source, given []byte, seed, check uint64) *tokenizer.Prompts {
	t.Helper()
	p, err := tokenizer.NewPrompts(tok, from, given, seed, check)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func text(t testing.TB, p *tokenizer.Prompts, index uint64, n int) string {
	t.Helper()
	got, err := p.Append(nil, index, n)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func FuzzByteLevelRoundTrip(f *testing.F) {
	for _, s := range []string{"", "Hello world", " \n\t", "日本 👩🏽‍🚀 é", "<|im_start|>", strings.Repeat("ab", 50)} {
		f.Add(s)
	}
	toks := []*tokenizer.Tokenizer{tokenizer.Embedded(), load(f, "testdata/llama3-style.json")}
	f.Fuzz(func(t *testing.T, s string) {
		s = string([]rune(s))
		for _, tok := range toks {
			tokens := tok.Append(nil, []byte(s))
			got, err := tok.Decode(nil, tokens)
			if err != nil || string(got) != s {
				t.Errorf("%q: got %q (%v)", s, got, err)
			}
			if again := tok.Append(nil, got); !equal(again, tokens) {
				t.Errorf("%q: got %v the second time, %v the first", s, again, tokens)
			}
		}
	})
}

func benchTokenizer(b *testing.B) *tokenizer.Tokenizer {
	if path := os.Getenv("TARE_TOKENIZER"); path != "" {
		return load(b, path)
	}
	return tokenizer.Embedded()
}

func BenchmarkEncode8k(b *testing.B) {
	tok := benchTokenizer(b)
	s := []byte(text(b, prompts(b, tok, tokenizer.Markov, nil, 1, 0), 1, 8192))
	var ids []uint32
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		ids = tok.Append(ids[:0], s)
	}
	b.ReportMetric(8192*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkPrompts8k(b *testing.B) {
	for from, source := range sources {
		for name, check := range map[string]uint64{"unchecked": 0, "checked": 1} {
			b.Run(from+"/"+name, func(b *testing.B) {
				p := prompts(b, benchTokenizer(b), source, nil, 1, check)
				var dst []byte
				for index := uint64(0); b.Loop(); index++ {
					dst, _ = p.Append(dst[:0], index, 8192)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "prompts/s")
			})
		}
	}
}
